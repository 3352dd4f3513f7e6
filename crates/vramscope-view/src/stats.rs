//! How long frames take.

/// Frames that are remembered: four seconds at sixty a second.
const FRAMES: usize = 240;

/// The times of the last frames. Recording one costs nothing; the order is found when it is asked
/// for.
#[derive(Clone, Debug)]
pub struct FrameTimes {
    ring: [f32; FRAMES],
    count: usize,
}

impl Default for FrameTimes {
    fn default() -> Self {
        Self { ring: [0.0; FRAMES], count: 0 }
    }
}

impl FrameTimes {
    /// Records a frame of so many milliseconds.
    pub fn record(&mut self, ms: f64) {
        self.ring[self.count % FRAMES] = ms as f32;
        self.count += 1;
    }

    /// The times that this share of the frames stays within (0.5: the median); 0 before the first
    /// frame.
    pub fn quantiles<const N: usize>(&self, shares: [f64; N]) -> [f64; N] {
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
    fn quantiles_of_the_last_frames() {
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
