//! The highest separate peaks of a series, ranked by height and filtered by prominence.
use crate::series::Series;
use crate::slicing::{Budget, strides};

/// A peak of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peak {
    /// The first slot of the peak.
    pub slot: u32,
    /// Value at the peak.
    pub value: u64,
    /// How far the series falls on both sides before it reaches the peak's value again. The whole
    /// height for the highest peak.
    pub prominence: u64,
}

/// The separate peaks of a series, highest first. Returns at most `count` peaks with a prominence
/// of at least `min_prominence` (and at least 1). The first one is the maximum of the series.
pub async fn peaks(
    series: &Series,
    count: usize,
    min_prominence: u64,
    budget: &mut Budget,
) -> Vec<Peak> {
    let mut found = Vec::new();
    let mut close = |peak: Candidate, right_low: u64| {
        let prominence = peak.value - peak.left_low.max(right_low);
        if prominence >= min_prominence.max(1) {
            found.push(Peak { slot: peak.slot, value: peak.value, prominence });
        }
    };
    // A stack of candidates with decreasing values. It stays small.
    let mut open: Vec<Candidate> = Vec::new();
    for part in strides(series.len()) {
        budget.charge(part.len() as u64).await;
        let first = part.start as u32;
        // `for_each` is faster than a loop here: the series iterates over its chunks internally.
        series.values(first..part.end as u32).enumerate().for_each(|(i, value)| {
            let mut low = u64::MAX;
            while let Some(lower) = open.pop_if(|top| top.value < value) {
                low = low.min(lower.low_since);
                close(lower, low);
            }
            let mut left_low = 0;
            if let Some(top) = open.last_mut() {
                left_low = top.low_since.min(low);
                top.low_since = left_low.min(value);
                if left_low >= value {
                    // The series has not risen since the candidate: this value is no peak.
                    return;
                }
            }
            open.push(Candidate { slot: first + i as u32, value, left_low, low_since: value });
        });
    }
    for peak in open {
        close(peak, 0);
    }
    found.sort_by_key(|p| (std::cmp::Reverse(p.value), p.slot));
    found.truncate(count);
    found
}

/// A possible peak: no later value is higher so far. Of equal values the first one is the peak.
struct Candidate {
    slot: u32,
    value: u64,
    /// The lowest value since the last value that is at least as high. 0 if there is none.
    left_low: u64,
    /// The lowest value between this candidate and the next one on the stack.
    low_since: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slicing::now;

    fn series(values: &[u64]) -> Series {
        values.iter().copied().collect()
    }

    #[test]
    fn peaks_are_ranked_by_height() {
        let found = now(async |budget| {
            peaks(&series(&[0, 5, 5, 2, 9, 3, 7, 6, 8, 0, 1]), 9, 1, budget).await
        });
        let tuples: Vec<_> = found.iter().map(|p| (p.slot, p.value, p.prominence)).collect();
        // The prominence of the 7 in front of the 8, and of the final 1, is only 1.
        assert_eq!(tuples, [(4, 9, 9), (8, 8, 5), (6, 7, 1), (1, 5, 3), (10, 1, 1)]);
        assert_eq!(
            now(async |budget| peaks(&series(&[0, 5, 5, 2, 9, 3, 7, 6, 8, 0, 1]), 9, 2, budget)
                .await)
            .len(),
            3
        );
        assert_eq!(
            now(async |budget| peaks(&series(&[4, 4, 4]), 9, 1, budget).await),
            [Peak { slot: 0, value: 4, prominence: 4 }]
        );
        assert_eq!(now(async |budget| peaks(&series(&[0, 0]), 9, 1, budget).await), []);
    }

    /// Peaks by the definition of prominence, in quadratic time. A side ends at a value that is at
    /// least as high on the left, and at a higher value on the right.
    fn peaks_by_definition(series: &[u64]) -> Vec<(u64, u32, u64)> {
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
    fn peaks_match_the_definition_of_prominence() {
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
            let mut found: Vec<_> =
                now(async |budget| peaks(&self::series(&series), 99, 1, budget).await)
                    .iter()
                    .map(|p| (p.value, p.slot, p.prominence))
                    .collect();
            found.sort_by_key(|p| p.1);
            assert_eq!(found, peaks_by_definition(&series), "{series:?}");
        }
    }
}
