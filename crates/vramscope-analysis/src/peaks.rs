//! The next-highest separate peaks of a band.

use crate::series::Series;
use crate::slicing::{Budget, run_to_completion, strides};

/// A peak of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peak {
    /// The first slot of it.
    pub slot: u32,
    /// The value there.
    pub value: u64,
    /// How far the series falls on both sides before it is as high again; for the highest, its
    /// whole height.
    pub prominence: u64,
}

/// The separate peaks of a series, highest first, at most `count`: those that stand out from what
/// is around them by at least `least`. The first is the series' maximum.
pub fn peaks(series: &Series, count: usize, least: u64) -> Vec<Peak> {
    run_to_completion(peaks_sliced(series, count, least, &mut Budget::unlimited()))
}

/// The same in slices.
pub async fn peaks_sliced(
    series: &Series,
    count: usize,
    least: u64,
    budget: &mut Budget,
) -> Vec<Peak> {
    let mut found = Vec::new();
    let mut close = |peak: Open, right: u64| {
        let prominence = peak.value - peak.left.max(right);
        if prominence >= least.max(1) {
            found.push(Peak { slot: peak.slot, value: peak.value, prominence });
        }
    };
    // Each is at most as high as the one before it, and so few that they take next to no memory.
    let mut open: Vec<Open> = Vec::new();
    for part in strides(series.len()) {
        budget.charge(part.len() as u64).await;
        let first = part.start as u32;
        // Not a loop: the series goes through its chunks by itself.
        series.values(first..part.end as u32).enumerate().for_each(|(i, value)| {
            let mut low = u64::MAX;
            while let Some(lower) = open.pop_if(|top| top.value < value) {
                low = low.min(lower.since);
                close(lower, low);
            }
            let mut left = 0;
            if let Some(top) = open.last_mut() {
                left = top.since.min(low);
                top.since = left.min(value);
                if left >= value {
                    // It only went down since then: this stands for nothing of its own.
                    return;
                }
            }
            open.push(Open { slot: first + i as u32, value, left, since: value });
        });
    }
    for peak in open {
        close(peak, 0);
    }
    found.sort_unstable_by_key(|p| (std::cmp::Reverse(p.value), p.slot));
    found.truncate(count);
    found
}

/// A value than which nothing higher has come yet. Of equal heights the earlier counts: the later
/// one does not rise above it.
struct Open {
    slot: u32,
    value: u64,
    /// The lowest value since the last that was as high; 0 where none was.
    left: u64,
    /// The lowest value from this one to the next that is open.
    since: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(values: &[u64]) -> Series {
        values.iter().copied().collect()
    }

    #[test]
    fn separate_peaks_by_height() {
        let found = peaks(&series(&[0, 5, 5, 2, 9, 3, 7, 6, 8, 0, 1]), 9, 1);
        let tuples: Vec<_> = found.iter().map(|p| (p.slot, p.value, p.prominence)).collect();
        // 7 before 8 stands out by one only; 1 at the end by one.
        assert_eq!(tuples, [(4, 9, 9), (8, 8, 5), (6, 7, 1), (1, 5, 3), (10, 1, 1)]);
        assert_eq!(peaks(&series(&[0, 5, 5, 2, 9, 3, 7, 6, 8, 0, 1]), 9, 2).len(), 3);
        assert_eq!(peaks(&series(&[4, 4, 4]), 9, 1), [Peak { slot: 0, value: 4, prominence: 4 }]);
        assert_eq!(peaks(&series(&[0, 0]), 9, 1), []);
    }

    /// As it is defined: how low it gets on each side before it is as high again (on the right:
    /// higher).
    fn defined(series: &[u64]) -> Vec<(u64, u32, u64)> {
        let lowest = |side: Vec<u64>, is_end: &dyn Fn(u64) -> bool| match side
            .iter()
            .position(|&value| is_end(value))
        {
            Some(end) => side[..end].iter().copied().min().unwrap_or(u64::MAX),
            None => 0,
        };
        let all = (0u32..).zip(series).map(|(slot, &value)| {
            let (before, after) = (&series[..slot as usize], &series[slot as usize + 1..]);
            let left =
                lowest(before.iter().rev().copied().collect(), &|other| other >= value).min(value);
            let right = lowest(after.to_vec(), &|other| other > value).min(value);
            (value, slot, value - left.max(right))
        });
        all.filter(|peak| peak.2 > 0).collect()
    }

    #[test]
    fn peaks_are_what_they_are_defined_as() {
        let mut state = 7u64;
        for len in (0..400).map(|i| i % 40) {
            let series: Vec<u64> = (0..len)
                .map(|_| {
                    state = state
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1_442_695_040_888_963_407);
                    state >> 61
                })
                .collect();
            let mut found: Vec<_> = peaks(&self::series(&series), 99, 1)
                .iter()
                .map(|p| (p.value, p.slot, p.prominence))
                .collect();
            found.sort_by_key(|p| p.1);
            assert_eq!(found, defined(&series), "{series:?}");
        }
    }
}
