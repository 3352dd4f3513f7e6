//! A quantity over the window: where it starts, peaks and ends.

/// One of the bands of `torch.cuda.memory_stats()` over a device's window.
///
/// Values are bytes; they are signed because a trace that does not fit its final state can give a
/// start below zero (which is a warning).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Band {
    /// Before the first event.
    pub start: i64,
    /// The largest value.
    pub peak: i64,
    /// The first event after which the band is largest, counted from 0; `None` when that is the
    /// state before the window.
    pub peak_event: Option<u32>,
    /// After the last event.
    pub end: i64,
}

impl Band {
    /// From the value before the window and what every event in turn adds.
    pub fn of(start: i64, changes: impl IntoIterator<Item = i64>) -> Self {
        let mut band = Self { start, peak: start, peak_event: None, end: start };
        for (event, change) in (0..).zip(changes) {
            band.add(event, change);
        }
        band
    }

    /// In the next slot, counted from the one before the window, by what it has more than the one
    /// before it.
    pub(crate) fn follow(&mut self, slot: usize, change: i64) {
        match slot.checked_sub(1) {
            Some(event) => self.add(event as u32, change),
            None => *self = Self::of(change, []),
        }
    }

    /// With what the next event adds.
    pub(crate) fn add(&mut self, event: u32, change: i64) {
        self.end += change;
        if self.end > self.peak {
            self.peak = self.end;
            self.peak_event = Some(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_equal_peaks_counts() {
        let band = Band::of(5, [1, -3, 3, 0]);
        assert_eq!(band, Band { start: 5, peak: 6, peak_event: Some(0), end: 6 });
        assert_eq!(Band::of(5, [-1, 1]).peak_event, None);
    }
}
