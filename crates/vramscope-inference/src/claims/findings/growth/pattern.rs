//! The shape of a series that grows.
use crate::steps::Steps;
use std::ops::Range;
use vramscope_units::Bytes;

/// The fewest whole steps in which growth can be told from warm-up.
pub(in crate::claims::findings) const MIN_STEPS: usize = 5;

/// Steps in which optimizer state, caches and workspaces are allocated, at most.
const MAX_WARM_UP: usize = 2;

/// The smallest median growth per step to report. Smaller growth, such as a list of scalar losses,
/// adds up to at most 400 MB in 100,000 steps.
const MIN_BYTES_PER_STEP: u64 = 4096;

/// The fewest steps with growth of a series.
pub(in crate::claims::findings) const MIN_GROWING_STEPS: usize = 4;

/// The steps after warm-up; `None` if they are too few.
pub(super) fn steady(steps: &Steps) -> Option<Range<usize>> {
    let whole = steps.whole();
    (whole >= MIN_STEPS).then(|| MAX_WARM_UP.min(whole + 1 - MIN_STEPS)..whole)
}

/// The growth of a series of steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    /// Grows in every step (1), every second step (2), and so on.
    pub(super) every: usize,
    /// The smallest growth in one step.
    min_bytes: u64,
    /// The largest growth in one step.
    max_bytes: u64,
}

impl Pattern {
    /// The smallest and the largest growth in one step.
    pub(super) fn per_step(&self) -> (Bytes, Bytes) {
        (Bytes(self.min_bytes), Bytes(self.max_bytes))
    }
}

/// The growth of a series within steady steps, if it grows regularly by similar amounts up to the
/// end.
///
/// `series` has the steps with a change, ascending. All other steps have none.
pub(super) fn pattern(series: &[(usize, i64)], steady: &Range<usize>) -> Option<Pattern> {
    shape(series, steady, MIN_GROWING_STEPS)
}

/// The growth of a series in every second step, every third, and so on, `least` times at least: as
/// at every evaluation. The last one may follow the last whole step, which `series` has, too.
pub(super) fn spaced(
    series: &[(usize, i64)],
    steady: &Range<usize>,
    least: usize,
) -> Option<Pattern> {
    shape(series, &with_rest(steady), least).filter(|pattern| pattern.every > 1)
}

/// The steady steps with what follows the last whole one.
pub(super) fn with_rest(steady: &Range<usize>) -> Range<usize> {
    steady.start..steady.end + 1
}

fn shape(series: &[(usize, i64)], steady: &Range<usize>, least: usize) -> Option<Pattern> {
    let count = series.len();
    if count < least || series.iter().any(|s| s.1 < 0) {
        return None;
    }
    let every = if count * 5 >= steady.len() * 4 { 1 } else { spacing(series, steady)? };
    // Growth that has ended is a cache that is full, or one phase of the program.
    let last = series[count - 1].0;
    if steady.end - last > every.saturating_mul(2) {
        return None;
    }
    let mut sizes: Vec<u64> = series.iter().map(|s| s.1 as u64).collect();
    sizes.sort_unstable();
    let median = sizes[count / 2];
    let similar = sizes
        .iter()
        .filter(|&&size| size >= median.div_ceil(4) && size <= median.saturating_mul(4))
        .count();
    (similar * 4 >= count * 3 && median >= MIN_BYTES_PER_STEP).then(|| Pattern {
        every,
        min_bytes: sizes[0],
        max_bytes: sizes[count - 1],
    })
}

/// The number of steps between two growths, if it is nearly constant from the first step to the
/// last.
///
/// An example is an output kept at every evaluation.
fn spacing(series: &[(usize, i64)], steady: &Range<usize>) -> Option<usize> {
    let mut gaps: Vec<usize> = series.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    gaps.sort_unstable();
    let gap = gaps[gaps.len() / 2];
    let slack = gap / 4;
    let even = gaps.iter().all(|g| g.abs_diff(gap) <= slack);
    let reaches = series[0].0 - steady.start <= gap
        && steady.end - series[series.len() - 1].0 <= gap + slack + 1;
    (gap > 1 && even && reaches).then_some(gap)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pattern_needs_similar_growth_up_to_the_end() {
        let grow = |steps: &[usize]| -> Vec<(usize, i64)> {
            steps.iter().map(|&step| (step, 1 << 20)).collect()
        };
        assert_eq!(pattern(&grow(&[2, 3, 4, 5, 6, 7]), &(2..8)).map(|p| p.every), Some(1));
        assert_eq!(pattern(&grow(&[2, 4, 6, 8, 10]), &(2..12)).map(|p| p.every), Some(2));
        assert_eq!(pattern(&grow(&[2, 3, 4]), &(2..5)), None, "three steps");
        assert_eq!(pattern(&grow(&[2, 3, 4, 5, 6]), &(2..14)), None, "it ended");
        assert_eq!(
            pattern(&grow(&[4, 8, 12]), &(2..16)),
            None,
            "the fourth is after the last step"
        );
        assert_eq!(spaced(&grow(&[4, 8, 12, 16]), &(2..16), 4).map(|p| p.every), Some(4));
        assert_eq!(spaced(&grow(&[4, 8, 12]), &(2..16), 4), None, "three times");
        assert_eq!(pattern(&[(2, 9000), (3, 9000), (4, 1), (5, 900_000)], &(2..6)), None);
    }
}
