//! Whether a changed run goes through, and how sure that is.

use super::{ChangedAnswer, ChangedRun, MARGIN_OF_MOVES, Outcome, Reading};
use crate::recipes::Rest;
use vramscope_allocator::{AddressOrder, Settings};
use vramscope_trace::slicing::Budget;

/// The search for the least memory ends within this part of it.
const LEAST_PARTS: u64 = 512;
/// Its step, in bytes: the allocator reserves multiples of it.
const STEP: u64 = 2 << 20;

impl ChangedRun<'_> {
    /// The measured error of the peak in percent, before a replay. `None` if it was not measured,
    /// if no training pass was seen, and if the file has two readings.
    pub fn error_percent(&self) -> Option<f64> {
        let (measured, counts) = self.error_percent;
        measured.filter(|_| counts && self.reading == Reading::Only)
    }

    /// Where the peak of `active_bytes` lies, and its error in percent.
    pub async fn active_range(
        &self,
        peak: u64,
        settings: &Settings,
        budget: &mut Budget,
    ) -> ([u64; 2], Option<f64>) {
        let mut range = [peak; 2];
        let (measured, counts) = self.error_percent;
        let percent = measured.unwrap_or(0.0);
        let error = |peak: u64| (peak as f64 * percent / 100.0) as u64;
        let mut is_within = true;
        if let Some(other) = self.other() {
            let [peak_of_other, _] = other.free_peaks(settings, budget).await;
            range = [peak.min(peak_of_other), peak.max(peak_of_other)];
            is_within = peak.abs_diff(peak_of_other) <= error(peak);
        }
        let [low, high] = range;
        let range = [low - error(low), high.saturating_add(error(high))];
        (range, measured.filter(|_| is_within && counts))
    }

    /// The margin in percent. With other settings each block lies elsewhere, so a changed program
    /// leaves other gaps than its replay has.
    fn margin(&self, settings: &Settings) -> u64 {
        if self.has_recipes && settings != self.own {
            self.margin_percent.max(MARGIN_OF_MOVES)
        } else {
            self.margin_percent
        }
    }

    /// Whether the run goes through with `available` bytes, with the margin of
    /// [`Outcome::Fits`].
    pub async fn fits(&self, settings: &Settings, available: u64, budget: &mut Budget) -> bool {
        let less = available - available / 100 * self.margin(settings);
        let order = AddressOrder::Ascending;
        let goes = self.active_peak(settings, budget).await <= less
            && self.replay(settings, Some(less), order, budget).await.fails_at.is_none();
        match self.other().filter(|_| goes) {
            Some(other) => {
                other.replay(settings, Some(available), order, budget).await.fails_at.is_none()
            }
            None => goes,
        }
    }

    /// The least memory with which the run goes through, in bytes: at most one part in
    /// `LEAST_PARTS` too large.
    pub async fn least(&self, settings: &Settings, budget: &mut Budget) -> u64 {
        let order = AddressOrder::Ascending;
        let free = self.replay(settings, None, order, budget).await;
        let [mut low, mut high] =
            [free.active_peak, free.reserved_peak].map(|bytes| bytes.div_ceil(STEP));
        while low < high && high - low > high / LEAST_PARTS {
            let middle = u64::midpoint(low, high);
            let replayed = self.replay(settings, Some(middle * STEP), order, budget).await;
            if replayed.fails_at.is_some() {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        high * STEP
    }

    pub(super) async fn judge(
        &self,
        answer: &mut ChangedAnswer,
        settings: &Settings,
        available: u64,
        budget: &mut Budget,
    ) {
        let order = AddressOrder::Ascending;
        let exact = self.replay(settings, Some(available), order, budget).await;
        answer.flushes = exact.flushes;
        // Where memory is short, the allocator returns what it caches.
        if exact.fails_at.is_none() && answer.reserved_peak > available {
            let peak = exact.reserved_peak;
            let [low, high] = answer.reserved_range.map(|bytes| bytes.min(available));
            answer.reserved_peak = peak;
            answer.reserved_range = [low.min(peak), high.max(peak)];
        }
        answer.fails_in = exact.fails_at.map(|at| self.place(at));
        let less = available - available / 100 * self.margin(settings);
        let fits = if exact.fails_at.is_some() {
            let has_room = self.moves && answer.active_peak <= less;
            if has_room && self.goes_through(settings, available, budget).await {
                Outcome::FitsBarely
            } else {
                Outcome::Short
            }
        } else {
            let close = self.replay(settings, Some(less), order, budget).await;
            match close.fails_at {
                _ if self.rest == Rest::Unknown => Outcome::Unknown,
                Some(_) => Outcome::FitsBarely,
                None => Outcome::Fits,
            }
        };
        answer.fits = Some(fits);
        if let Some(other) = self.other() {
            let order = AddressOrder::Ascending;
            let fails = other.replay(settings, Some(available), order, budget).await.fails_at;
            let disagrees = match fits {
                Outcome::Fits => fails.is_some(),
                Outcome::Short => fails.is_none(),
                Outcome::FitsBarely | Outcome::Unknown => false,
            };
            if disagrees {
                answer.fits = Some(Outcome::FitsBarely);
            }
        }
    }

    /// Whether it goes through with another order of equal addresses. Where requests move, gaps
    /// alone are then no reason to fail.
    async fn goes_through(&self, settings: &Settings, available: u64, budget: &mut Budget) -> bool {
        for order in [AddressOrder::Descending, AddressOrder::Mixed] {
            let replayed = self.replay(settings, Some(available), order, budget).await;
            if replayed.fails_at.is_none() {
                return true;
            }
        }
        false
    }
}
