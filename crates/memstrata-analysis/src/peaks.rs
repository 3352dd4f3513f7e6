//! The next-highest separate peaks of a band.

/// A peak of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peak {
    /// The first slot of it.
    pub slot: u32,
    /// The value there.
    pub value: u64,
    /// How far the series falls on both sides before it is as high again; for the highest, its whole height.
    pub prominence: u64,
}

/// The separate peaks of a series, highest first, at most `count`: those that stand out from what is around them by at
/// least `least`. The first is the series' maximum.
pub fn peaks(series: &[u64], count: usize, least: u64) -> Vec<Peak> {
    // Of equal heights the earlier counts: the later one does not rise above it.
    let left = valleys(series.iter().copied(), |other, value| other >= value);
    let mut right = valleys(series.iter().rev().copied(), |other, value| other > value);
    right.reverse();
    let all = (0u32..).zip(series).zip(left.iter().zip(&right));
    let prominent = all.map(|((slot, &value), (&l, &r))| Peak { slot, value, prominence: value - l.max(r) });
    let mut found: Vec<Peak> = prominent.filter(|p| p.prominence >= least.max(1)).collect();
    found.sort_unstable_by_key(|p| (std::cmp::Reverse(p.value), p.slot));
    found.truncate(count);
    found
}

/// For each value the lowest one since the last that blocks it (is as high); 0 where nothing does.
fn valleys(series: impl Iterator<Item = u64>, blocks: impl Fn(u64, u64) -> bool) -> Vec<u64> {
    // Values that may still block later ones, each with the lowest since the one below it.
    let mut open: Vec<(u64, u64)> = Vec::new();
    let valley = series.map(|value| {
        let mut low = value;
        while let Some(&(other, since)) = open.last() {
            if blocks(other, value) {
                break;
            }
            low = low.min(since);
            open.pop();
        }
        let valley = if open.is_empty() { 0 } else { low };
        open.push((value, low));
        valley
    });
    valley.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separate_peaks_by_height() {
        let found = peaks(&[0, 5, 5, 2, 9, 3, 7, 6, 8, 0, 1], 9, 1);
        let tuples: Vec<_> = found.iter().map(|p| (p.slot, p.value, p.prominence)).collect();
        // 7 before 8 stands out by one only; 1 at the end by one.
        assert_eq!(tuples, [(4, 9, 9), (8, 8, 5), (6, 7, 1), (1, 5, 3), (10, 1, 1)]);
        assert_eq!(peaks(&[0, 5, 5, 2, 9, 3, 7, 6, 8, 0, 1], 9, 2).len(), 3);
        assert_eq!(peaks(&[4, 4, 4], 9, 1), [Peak { slot: 0, value: 4, prominence: 4 }]);
        assert_eq!(peaks(&[0, 0], 9, 1), []);
    }
}
