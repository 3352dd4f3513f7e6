//! Statistics of frame times.

/// Number of frame times that are kept: 4 seconds at 60 frames per second.
const FRAMES: usize = 240;

/// The times of the last frames. Recording is cheap, and sorting happens in
/// [`FrameTimes::quantiles`].
#[derive(Clone, Debug)]
pub(crate) struct FrameTimes {
    ring: [f32; FRAMES],
    count: usize,
}

impl Default for FrameTimes {
    fn default() -> Self {
        Self { ring: [0.0; FRAMES], count: 0 }
    }
}

impl FrameTimes {
    /// Records the time of a frame in milliseconds.
    pub(crate) fn record(&mut self, ms: f64) {
        self.ring[self.count % FRAMES] = ms as f32;
        self.count += 1;
    }

    /// Quantiles of the frame times in milliseconds. A share of 0.5 gives the median. 0 before the
    /// first frame.
    pub(crate) fn quantiles<const N: usize>(&self, shares: [f64; N]) -> [f64; N] {
        let mut sorted = self.ring;
        let sorted = &mut sorted[..self.count.min(FRAMES)];
        sorted.sort_unstable_by(f32::total_cmp);
        shares.map(|share| match sorted.len() {
            0 => 0.0,
            n => f64::from(sorted[((share * n as f64).ceil() as usize).clamp(1, n) - 1]),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{FRAMES, FrameTimes};

    #[test]
    fn quantiles_cover_only_the_last_frames() {
        let mut times = FrameTimes::default();
        assert_eq!(times.quantiles([0.5, 0.95]).map(|v| v as u32), [0, 0]);
        for i in 1..=100 {
            times.record(f64::from(i));
        }
        assert_eq!(times.quantiles([0.5, 0.95, 1.0]).map(|v| v as u32), [50, 95, 100]);
        for _ in 0..FRAMES {
            times.record(7.0);
        }
        assert_eq!(times.quantiles([0.0, 0.95]).map(|v| v as u32), [7, 7]);
    }
}
