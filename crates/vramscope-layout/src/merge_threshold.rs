//! The height below which blocks are merged, per band of heights.
//!
//! Most of a stack changes little over time, and a few ranges of heights change often. A threshold
//! per band lets the busy bands be drawn coarser while the others keep their detail.

/// Minimum number of bands in a cell of at least this many rows. The maximum is one less than twice
/// that.
const MIN_BANDS: u32 = 16;

/// The height in bytes below which pieces are merged, for each band of a cell.
#[derive(Clone, Debug)]
pub(crate) struct MergeThreshold {
    /// Lower edge of the lowest band, in bytes.
    low: u64,
    /// Log2 of a band's height in bytes.
    band_shift: u32,
    /// Threshold of each band in bytes, from the bottom up. The first also applies below its band,
    /// and the last above its band.
    bands: Vec<u64>,
}

impl MergeThreshold {
    /// One threshold for all heights.
    pub(crate) fn uniform(bytes: u64) -> Self {
        Self { low: 0, band_shift: u64::BITS - 1, bands: vec![bytes.max(1)] }
    }

    /// The bands of a cell that begins at `low` and has `rows` rows of `2^ky` bytes. All bands
    /// start with the threshold `bytes`.
    pub(crate) fn for_cell(low: u64, rows: u32, ky: u8, bytes: u64) -> Self {
        let rows_shift = (rows / MIN_BANDS).max(1).ilog2();
        Self {
            low,
            band_shift: u32::from(ky) + rows_shift,
            bands: vec![bytes.max(1); (rows >> rows_shift).max(1) as usize],
        }
    }

    /// The threshold for a piece whose lower edge is at `height`.
    #[inline]
    pub(crate) fn at(&self, height: u64) -> u64 {
        self.bands[self.band(height)]
    }

    /// The largest threshold between two heights.
    pub(crate) fn max_between(&self, low: u64, high: u64) -> u64 {
        self.bands[self.band(low)..=self.band(high)].iter().copied().max().unwrap_or(1)
    }

    fn band(&self, height: u64) -> usize {
        let band = height.saturating_sub(self.low) >> self.band_shift;
        (band as usize).min(self.bands.len() - 1)
    }

    /// Raises the thresholds of the busiest bands, so that about `budget` pieces remain.
    ///
    /// `heights` are the lower edges of a sample of the pieces. Each of them counts `weight` times.
    /// Bands with at most a fair share of `budget` keep their threshold.
    pub(crate) fn coarsen(
        &mut self,
        heights: impl Iterator<Item = u64>,
        weight: usize,
        budget: usize,
    ) {
        let mut counts = vec![0; self.bands.len()];
        for height in heights {
            counts[self.band(height)] += weight;
        }
        let share = fair_share(&counts, budget);
        for (threshold, count) in self.bands.iter_mut().zip(counts) {
            if count > share {
                let factor = count.div_ceil(share).next_power_of_two();
                *threshold = threshold.saturating_mul(factor as u64);
            }
        }
    }
}

/// Max-min fair share of `budget`: the limit per band at which all bands together fit the budget.
/// Bands below the limit leave their unused part to the others. `usize::MAX` when everything fits.
fn fair_share(counts: &[usize], budget: usize) -> usize {
    let mut share = 0;
    loop {
        let satisfied = || counts.iter().filter(|&&count| count <= share);
        let others = counts.len() - satisfied().count();
        if others == 0 {
            return usize::MAX;
        }
        // The share only grows: every newly satisfied band leaves part of its share unused.
        let larger = budget.saturating_sub(satisfied().sum()) / others;
        if larger <= share {
            return share.max(1);
        }
        share = larger;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fair_share_gives_unused_budget_to_busy_bands() {
        assert_eq!(fair_share(&[10, 10, 10], 30), usize::MAX);
        assert_eq!(fair_share(&[1, 100, 3, 100], 40), 18);
        assert_eq!(fair_share(&[100, 100], 40), 20);
        assert_eq!(fair_share(&[5, 5], 1), 1);
        assert_eq!(fair_share(&[], 1), usize::MAX);
    }

    #[test]
    fn coarsen_raises_only_busy_bands() {
        let mut threshold = MergeThreshold::for_cell(1 << 20, 512, 4, 8);
        assert_eq!(threshold.bands.len(), 16);
        // Heights outside the cell belong to its first or last band.
        assert_eq!(
            (threshold.band(0), threshold.band((1 << 20) + 512), threshold.band(u64::MAX)),
            (0, 1, 15)
        );
        let heights =
            || (0..1000).map(|i| (1 << 20) + 512 * 3 + i % 512).chain([0, 1 << 20, u64::MAX]);
        threshold.coarsen(heights(), 1, 503);
        assert_eq!(
            (threshold.max_between(0, 1 << 20), threshold.max_between(0, u64::MAX)),
            (8, 16)
        );
        assert_eq!(threshold.bands.iter().filter(|&&b| b == 8).count(), 15);
        assert_eq!(threshold.at((1 << 20) + 512 * 3), 16);
        // A second call multiplies the raised threshold again: from 16 to 16 * 16.
        threshold.coarsen(heights(), 4, 503);
        assert_eq!((threshold.at((1 << 20) + 512 * 4 - 1), threshold.at(0)), (16 * 16, 8));
        assert_eq!(MergeThreshold::for_cell(7, 1, 60, 0).at(u64::MAX), 1);
        assert_eq!(MergeThreshold::uniform(9).at(u64::MAX), 9);
    }
}
