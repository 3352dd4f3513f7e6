//! What is too low to see, and merged: by height, since a stack is mostly still and restless in
//! places.

/// Into so many bands a cell's height is parted, at least; twice as many at most.
const BANDS: u32 = 16;

/// The height below which pieces are merged, which is coarser in some bands of a cell than in
/// others.
#[derive(Clone, Debug)]
pub(crate) struct Least {
    /// Where the lowest band begins.
    low: u64,
    /// Two to this power is a band's height in bytes.
    shift: u32,
    /// One for each band, upwards; the last counts above them, too.
    bands: Vec<u64>,
}

impl Least {
    /// The same at every height.
    pub(crate) fn even(least: u64) -> Self {
        Self { low: 0, shift: u64::BITS - 1, bands: vec![least.max(1)] }
    }

    /// The same in all bands of a cell that begins at `low` and has so many rows of two to the
    /// power of `ky` bytes.
    pub(crate) fn of_rows(low: u64, rows: u32, ky: u8, least: u64) -> Self {
        let of_a_band = (rows / BANDS).max(1).ilog2();
        Self {
            low,
            shift: u32::from(ky) + of_a_band,
            bands: vec![least.max(1); (rows >> of_a_band).max(1) as usize],
        }
    }

    /// What counts for a piece that begins at this height.
    #[inline]
    pub(crate) fn at(&self, height: u64) -> u64 {
        self.bands[self.band(height)]
    }

    /// The most that counts anywhere between two heights.
    pub(crate) fn over(&self, low: u64, high: u64) -> u64 {
        self.bands[self.band(low)..=self.band(high)].iter().copied().max().unwrap_or(1)
    }

    fn band(&self, height: u64) -> usize {
        let band = height.saturating_sub(self.low) >> self.shift;
        (band as usize).min(self.bands.len() - 1)
    }

    /// Coarser, so that of pieces that begin at these heights, each of which stands for `each`,
    /// about `budget` are left. Bands that have few stay as they are.
    pub(crate) fn coarsen(
        &mut self,
        heights: impl Iterator<Item = u64>,
        each: usize,
        budget: usize,
    ) {
        let mut counts = vec![0; self.bands.len()];
        for height in heights {
            counts[self.band(height)] += each;
        }
        let share = share(&counts, budget);
        for (least, count) in self.bands.iter_mut().zip(counts) {
            if count > share {
                let times = count.div_ceil(share).next_power_of_two();
                *least = least.saturating_mul(times as u64);
            }
        }
    }
}

/// What each may have at most, if all of them together have no more than `budget`: who needs less
/// leaves the rest to the others.
fn share(counts: &[usize], budget: usize) -> usize {
    let mut share = 0;
    loop {
        let few = || counts.iter().filter(|&&count| count <= share);
        let others = counts.len() - few().count();
        if others == 0 {
            return usize::MAX;
        }
        // It only grows: whoever is found to need no more than it leaves something.
        let more = budget.saturating_sub(few().sum()) / others;
        if more <= share {
            return share.max(1);
        }
        share = more;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_needs_little_leaves_the_rest() {
        assert_eq!(share(&[10, 10, 10], 30), usize::MAX);
        assert_eq!(share(&[1, 100, 3, 100], 40), 18);
        assert_eq!(share(&[100, 100], 40), 20);
        assert_eq!(share(&[5, 5], 1), 1);
        assert_eq!(share(&[], 1), usize::MAX);
    }

    #[test]
    fn only_bands_with_many_pieces_become_coarser() {
        let mut least = Least::of_rows(1 << 20, 512, 4, 8);
        assert_eq!(least.bands.len(), 16);
        // Below the first and above the last they count to those.
        assert_eq!((least.band(0), least.band((1 << 20) + 512), least.band(u64::MAX)), (0, 1, 15));
        let heights =
            || (0..1000).map(|i| (1 << 20) + 512 * 3 + i % 512).chain([0, 1 << 20, u64::MAX]);
        least.coarsen(heights(), 1, 503);
        assert_eq!((least.over(0, 1 << 20), least.over(0, u64::MAX)), (8, 16));
        assert_eq!(least.bands.iter().filter(|&&b| b == 8).count(), 15);
        assert_eq!(least.at((1 << 20) + 512 * 3), 16);
        // There is nothing to spare: the next time it is as coarse again.
        least.coarsen(heights(), 4, 503);
        assert_eq!((least.at((1 << 20) + 512 * 4 - 1), least.at(0)), (16 * 16, 8));
        assert_eq!(Least::of_rows(7, 1, 60, 0).at(u64::MAX), 1);
        assert_eq!(Least::even(9).at(u64::MAX), 9);
    }
}
