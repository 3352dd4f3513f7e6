//! The start, peak and end of a quantity over the window.

/// One of the bands of `torch.cuda.memory_stats()` over a device's window.
///
/// Values are bytes. They are signed because a trace that contradicts its final segments can have a
/// negative start. Such a trace has a warning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Band {
    /// Value before the first event.
    pub start: i64,
    /// Largest value.
    pub peak: i64,
    /// The first event, counted from 0, after which the band is at its peak. `None` when the state
    /// before the window is the peak.
    pub peak_event: Option<u32>,
    /// Value after the last event.
    pub end: i64,
}

impl Band {
    /// Builds a band from the value before the window and the change by each event, in order.
    pub fn of(start: i64, changes: impl IntoIterator<Item = i64>) -> Self {
        let mut band = Self { start, peak: start, peak_event: None, end: start };
        for (event, change) in (0..).zip(changes) {
            band.add(event, change);
        }
        band
    }

    /// Adds the change of the next slot. Slot 0 is the state before the window, and its change is
    /// the start value.
    pub(crate) fn add_slot(&mut self, slot: usize, change: i64) {
        match slot.checked_sub(1) {
            Some(event) => self.add(event as u32, change),
            None => *self = Self::of(change, []),
        }
    }

    /// Adds the change by the next event.
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
    fn peak_event_is_the_first_of_equal_peaks() {
        let band = Band::of(5, [1, -3, 3, 0]);
        assert_eq!(band, Band { start: 5, peak: 6, peak_event: Some(0), end: 6 });
        assert_eq!(Band::of(5, [-1, 1]).peak_event, None);
    }
}
