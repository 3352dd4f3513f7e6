//! A sorted set of row indices: a bitmap with rank checkpoints.
//!
//! A filtered table keeps one bit for each row of the full table. A list of 32-bit indices would
//! take up to 32 times the memory, and copying it while it grows would exceed a slice.

use std::ops::Range;

/// Words between two rank checkpoints.
const CHECKPOINT_WORDS: usize = 64;
/// Bits between two rank checkpoints.
const CHECKPOINT_BITS: u32 = CHECKPOINT_WORDS as u32 * u64::BITS;

/// A set of `u32` values that is filled in ascending order.
#[derive(Default)]
pub(super) struct RankedBitmap {
    words: Vec<u64>,
    /// The number of values before every [`CHECKPOINT_WORDS`]th word.
    checkpoints: Vec<u32>,
    len: u32,
}

impl RankedBitmap {
    /// The number of values.
    pub(super) fn len(&self) -> u32 {
        self.len
    }

    /// Adds a value. It must be larger than all earlier values.
    pub(super) fn push(&mut self, value: u32) {
        let word = (value / u64::BITS) as usize;
        while self.words.len() <= word {
            if self.words.len().is_multiple_of(CHECKPOINT_WORDS) {
                self.checkpoints.push(self.len);
            }
            self.words.push(0);
        }
        self.words[word] |= 1 << (value % u64::BITS);
        self.len += 1;
    }

    /// The values with these ranks, clamped to the length.
    pub(super) fn range(&self, ranks: Range<u32>) -> impl ExactSizeIterator<Item = u32> {
        let end = ranks.end.min(self.len);
        let start = ranks.start.min(end);
        let checkpoint =
            self.checkpoints.partition_point(|&before| before <= start).saturating_sub(1);
        let words = self.words.iter().enumerate().skip(checkpoint * CHECKPOINT_WORDS);
        let values =
            words.flat_map(|(at, &word)| ones(word).map(move |bit| at as u32 * u64::BITS + bit));
        // Values between the checkpoint and the first rank.
        let skipped = self.checkpoints.get(checkpoint).map_or(0, |before| start - before);
        let mut values = values.skip(skipped as usize);
        (start..end).map(move |_| values.next().expect("the bitmap has `len` values"))
    }

    /// The number of values that are at most `value`.
    pub(super) fn count_up_to(&self, value: u32) -> u32 {
        let checkpoint = (value / CHECKPOINT_BITS) as usize;
        let Some(before) = self.checkpoints.get(checkpoint) else { return self.len };
        let up_to = |at: usize, word: u64| match value.checked_sub(at as u32 * u64::BITS) {
            Some(bit) if bit < u64::BITS - 1 => word & ((2 << bit) - 1),
            Some(_) => word,
            None => 0,
        };
        let first = checkpoint * CHECKPOINT_WORDS;
        let words = self.words.iter().enumerate().skip(first).take(CHECKPOINT_WORDS);
        before + words.map(|(at, &word)| up_to(at, word).count_ones()).sum::<u32>()
    }
}

/// The positions of the set bits, ascending.
fn ones(mut word: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let bit = word.trailing_zeros();
        word &= word.wrapping_sub(1);
        (bit < u64::BITS).then_some(bit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bitmap_equals_a_sorted_list(
            steps in proptest::collection::vec(
                prop_oneof![9 => 1u32..4, 1 => 1u32..70, 1 => 1u32..9000],
                0..3000,
            ),
            start in 0u32..3100,
            count in 0u32..3100,
            value in 0u32..20_000,
        ) {
            let sums = steps.iter().scan(0, |sum, step| { *sum += step; Some(*sum - 1) });
            let list: Vec<u32> = sums.collect();
            let mut bitmap = RankedBitmap::default();
            for &value in &list {
                bitmap.push(value);
            }
            prop_assert_eq!(bitmap.len() as usize, list.len());
            let clamped = |rank: u32| rank.min(bitmap.len()) as usize;
            let ranks = clamped(start)..clamped(start + count);
            let range = bitmap.range(start..start + count);
            prop_assert_eq!(range.len(), ranks.len());
            prop_assert_eq!(range.collect::<Vec<_>>(), &list[ranks]);
            for value in [value, list.last().copied().unwrap_or(7), u32::MAX] {
                let expected = list.partition_point(|&n| n <= value);
                prop_assert_eq!(bitmap.count_up_to(value) as usize, expected);
            }
        }
    }
}
