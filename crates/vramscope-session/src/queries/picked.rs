//! Which rows of a long list a filter leaves.
//!
//! A bit for each row of the list: a list of those that are left would take thirty times as much,
//! and be copied while it grows, which takes longer than a slice.

use std::ops::Range;

/// Words between two places of which it is known how many numbers come before.
const PART: usize = 64;
/// Numbers of such a part.
const NUMBERS: u32 = PART as u32 * u64::BITS;

/// Numbers in rising order.
#[derive(Default)]
pub(super) struct Picked {
    words: Vec<u64>,
    /// How many numbers are before each [`PART`] of the words.
    before: Vec<u32>,
    len: u32,
}

impl Picked {
    /// How many there are.
    pub(super) fn len(&self) -> u32 {
        self.len
    }

    /// Add a number, which has to be larger than all before it.
    pub(super) fn push(&mut self, number: u32) {
        let word = (number / u64::BITS) as usize;
        while self.words.len() <= word {
            if self.words.len().is_multiple_of(PART) {
                self.before.push(self.len);
            }
            self.words.push(0);
        }
        self.words[word] |= 1 << (number % u64::BITS);
        self.len += 1;
    }

    /// Those in these places of the order, as far as there are any.
    pub(super) fn range(&self, places: Range<u32>) -> impl ExactSizeIterator<Item = u32> {
        let end = places.end.min(self.len);
        let start = places.start.min(end);
        let part = self.before.partition_point(|&before| before <= start).saturating_sub(1);
        let words = self.words.iter().enumerate().skip(part * PART);
        let numbers =
            words.flat_map(|(at, &word)| ones(word).map(move |bit| at as u32 * u64::BITS + bit));
        // Some of the part come before the first that is wanted.
        let mut numbers =
            numbers.skip(self.before.get(part).map_or(0, |before| start - before) as usize);
        (start..end).map(move |_| numbers.next().expect("there are as many as were counted"))
    }

    /// How many of them are at most this.
    pub(super) fn up_to(&self, number: u32) -> u32 {
        let part = (number / NUMBERS) as usize;
        let Some(before) = self.before.get(part) else { return self.len };
        let upto = |at: usize, word: u64| match number.checked_sub(at as u32 * u64::BITS) {
            Some(bit) if bit < u64::BITS - 1 => word & ((2 << bit) - 1),
            Some(_) => word,
            None => 0,
        };
        let words = self.words.iter().enumerate().skip(part * PART).take(PART);
        before + words.map(|(at, &word)| upto(at, word).count_ones()).sum::<u32>()
    }
}

/// The bits that are set.
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
        fn it_is_the_list_of_its_numbers(
            steps in proptest::collection::vec(prop_oneof![9 => 1u32..4, 1 => 1u32..70, 1 => 1u32..9000], 0..3000),
            start in 0u32..3100,
            count in 0u32..3100,
            number in 0u32..20_000,
        ) {
            let plain: Vec<u32> = steps.iter().scan(0, |sum, step| { *sum += step; Some(*sum - 1) }).collect();
            let mut picked = Picked::default();
            for &number in &plain {
                picked.push(number);
            }
            prop_assert_eq!(picked.len() as usize, plain.len());
            let rows = start.min(picked.len()) as usize..(start + count).min(picked.len()) as usize;
            let range = picked.range(start..start + count);
            prop_assert_eq!(range.len(), rows.len());
            prop_assert_eq!(range.collect::<Vec<_>>(), &plain[rows]);
            for number in [number, plain.last().copied().unwrap_or(7), u32::MAX] {
                prop_assert_eq!(picked.up_to(number) as usize, plain.partition_point(|&n| n <= number));
            }
        }
    }
}
