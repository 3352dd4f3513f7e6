//! How many bytes there are in every slot, in four bytes a slot.
//!
//! What is live changes by a block at a time, so slots that follow each other have about the same
//! value: it is kept as the distance from the first of 256 of them. Where one of those is 2 GiB
//! away or more, all of them take eight bytes.

use crate::slicing::{Budget, strides};
use std::ops::Range;

/// Bytes in every slot of a window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Series {
    chunks: Vec<Chunk>,
    /// The lower half of each distance; all of it where the chunk is near.
    low: Vec<u32>,
    /// The upper halves, of chunks that are not.
    high: Vec<u32>,
}

/// Slots whose values are told by their distance from the first of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Chunk {
    first: u64,
    /// Where its upper halves begin, or [`NEAR`].
    high: u32,
}

const CHUNK: usize = 256;
/// All distances are of 32 bits, with their sign.
const NEAR: u32 = u32::MAX;

impl Series {
    /// With room for so many slots.
    pub fn with_capacity(slots: usize) -> Self {
        Self {
            chunks: Vec::with_capacity(slots.div_ceil(CHUNK)),
            low: Vec::with_capacity(slots),
            high: Vec::new(),
        }
    }

    /// How many slots there are.
    pub fn len(&self) -> usize {
        self.low.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.low.is_empty()
    }

    /// The value of the next slot.
    #[inline]
    pub fn push(&mut self, value: u64) {
        let chunk = match self.chunks.last() {
            Some(&chunk) if !self.low.len().is_multiple_of(CHUNK) => chunk,
            _ => {
                self.chunks.push(Chunk { first: value, high: NEAR });
                Chunk { first: value, high: NEAR }
            }
        };
        let distance = value.wrapping_sub(chunk.first) as i64;
        // Near ones are in the order of their distances, too.
        let is_near =
            distance == i64::from(distance as i32) && (distance < 0) == (value < chunk.first);
        if chunk.high != NEAR || !is_near {
            self.push_high((distance >> 32) as u32);
        }
        self.low.push(distance as u32);
    }

    /// The upper half of a slot of the last chunk, all of which have one from now on.
    #[cold]
    fn push_high(&mut self, high: u32) {
        let last = self.low.len() / CHUNK;
        if self.chunks[last].high == NEAR {
            self.chunks[last].high = self.high.len() as u32;
            let from = last * CHUNK;
            self.high.extend(self.low[from..].iter().map(|&low| (low as i32 >> 31) as u32));
        }
        self.high.push(high);
    }

    /// The value in a slot.
    ///
    /// # Panics
    /// When there is no such slot.
    #[inline]
    pub fn at(&self, slot: u32) -> u64 {
        let slot = slot as usize;
        let chunk = self.chunks[slot / CHUNK];
        let high = (chunk.high != NEAR).then(|| self.high[chunk.high as usize + slot % CHUNK]);
        value(chunk.first, self.low[slot], high)
    }

    /// The same, `None` when there is no such slot.
    pub fn get(&self, slot: u32) -> Option<u64> {
        ((slot as usize) < self.len()).then(|| self.at(slot))
    }

    /// The values in a range of slots, in order.
    ///
    /// # Panics
    /// When there are no such slots.
    pub fn values(&self, slots: Range<u32>) -> impl Iterator<Item = u64> + '_ {
        assert!(slots.end as usize <= self.len(), "slot {} of {}", slots.end, self.len());
        self.parts(slots).flat_map(|(_, part)| part.values())
    }

    /// The values in all slots.
    pub fn to_vec(&self) -> Vec<u64> {
        self.values(0..self.len() as u32).collect()
    }

    /// The first slot of a range in which the value is largest, and that value; `None` when the
    /// range is empty or not all there.
    pub fn largest(&self, slots: Range<u32>) -> Option<(u32, u64)> {
        if slots.end as usize > self.len() {
            return None;
        }
        let mut found: Option<(u32, u64)> = None;
        for (from, part) in self.parts(slots) {
            let largest = part.largest();
            // Only where there is more than before it has to be looked for.
            if found.is_none_or(|(_, most)| most < largest) {
                found = Some(((from + part.place_of(largest)) as u32, largest));
            }
        }
        found
    }

    /// A range of slots by chunks: where each part of it begins, and what is there.
    fn parts(&self, slots: Range<u32>) -> impl Iterator<Item = (usize, Part<'_>)> {
        let (start, end) = (slots.start as usize, slots.end as usize);
        let chunks = if start < end { start / CHUNK..end.div_ceil(CHUNK) } else { 0..0 };
        chunks.map(move |index| {
            let (chunk, from) = (self.chunks[index], start.max(index * CHUNK));
            let low = &self.low[from..end.min((index + 1) * CHUNK)];
            let high = match chunk.high {
                NEAR => &[],
                high => &self.high[high as usize + from % CHUNK..][..low.len()],
            };
            (from, Part { first: chunk.first, low, high })
        })
    }

    /// The same in slices.
    pub async fn largest_sliced(
        &self,
        slots: Range<u32>,
        budget: &mut Budget,
    ) -> Option<(u32, u64)> {
        let mut found: Option<(u32, u64)> = None;
        for part in strides(slots.len()) {
            // They are numbers in a row.
            budget.charge(1 + part.len() as u64 / 8).await;
            let largest =
                self.largest(slots.start + part.start as u32..slots.start + part.end as u32)?;
            if found.is_none_or(|(_, most)| most < largest.1) {
                found = Some(largest);
            }
        }
        found
    }
}

/// Slots of one chunk.
#[derive(Clone, Copy)]
struct Part<'a> {
    first: u64,
    low: &'a [u32],
    /// As many, or none where they are near.
    high: &'a [u32],
}

impl<'a> Part<'a> {
    fn values(self) -> impl Iterator<Item = u64> + 'a {
        self.low
            .iter()
            .enumerate()
            .map(move |(i, &low)| value(self.first, low, self.high.get(i).copied()))
    }

    fn largest(self) -> u64 {
        if self.high.is_empty() {
            // In a loop of its own, that takes several at once.
            let largest = self.low.iter().map(|&low| low as i32).max().unwrap_or(0);
            return value(self.first, largest as u32, None);
        }
        self.values().max().unwrap_or(0)
    }

    /// Where the first of this value is, which is there.
    fn place_of(self, sought: u64) -> usize {
        let place = if self.high.is_empty() {
            let sought = sought.wrapping_sub(self.first) as u32;
            self.low.iter().position(|&low| low == sought)
        } else {
            self.values().position(|value| value == sought)
        };
        place.unwrap_or(0)
    }
}

/// What is so far from the first of its chunk.
#[inline]
fn value(first: u64, low: u32, high: Option<u32>) -> u64 {
    let distance = match high {
        Some(high) => u64::from(high) << 32 | u64::from(low),
        None => i64::from(low as i32) as u64,
    };
    first.wrapping_add(distance)
}

impl FromIterator<u64> for Series {
    fn from_iter<I: IntoIterator<Item = u64>>(values: I) -> Self {
        let values = values.into_iter();
        let mut series = Self::with_capacity(values.size_hint().0);
        for value in values {
            series.push(value);
        }
        series
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slicing::run_to_completion;
    use proptest::prelude::*;

    /// Stretches in which values are close to each other, and jumps of any size.
    fn values() -> impl Strategy<Value = Vec<u64>> {
        let stretch = (any::<u64>(), 0u32..50, proptest::collection::vec(any::<u64>(), 0..400));
        let stretches = proptest::collection::vec(stretch, 0..4);
        stretches.prop_map(|all| {
            let near = |(first, bits, steps): (u64, u32, Vec<u64>)| {
                steps.into_iter().map(move |step| first.wrapping_add(step >> (63 - bits)))
            };
            all.into_iter().flat_map(near).collect()
        })
    }

    proptest! {
        #[test]
        fn every_value_comes_back(values in values(), a in any::<u32>(), b in any::<u32>()) {
            let series: Series = values.iter().copied().collect();
            prop_assert_eq!(series.len(), values.len());
            prop_assert_eq!(&series.to_vec(), &values);
            let slots = values.len() as u32 + 1;
            let range = (a % slots).min(b % slots)..(a % slots).max(b % slots);
            let part = &values[range.start as usize..range.end as usize];
            // `max_by_key` takes the last of equals.
            let first = range.clone().zip(part.iter().copied()).rev().max_by_key(|(_, value)| *value);
            prop_assert_eq!(series.largest(range.clone()), first);
            prop_assert_eq!(run_to_completion(series.largest_sliced(range, &mut Budget::unlimited())), first);
        }
    }

    #[test]
    fn a_slot_takes_four_bytes() {
        // 80 GiB and 64 MiB back and forth; once, in one chunk, 3 GiB at once.
        let at = |i: u64| {
            (80 << 30) + ((i * 0x9e37_79b9) % (64 << 20)) + if i == 5000 { 3 << 30 } else { 0 }
        };
        let series: Series = (0..100_000).map(at).collect();
        assert_eq!(
            (series.at(4999), series.at(5000), series.at(99_999)),
            (at(4999), at(5000), at(99_999))
        );
        assert_eq!(series.largest(0..100_000), Some((5000, at(5000))));
        assert_eq!(series.high.len(), CHUNK);
        assert_eq!((series.low.len(), series.chunks.len()), (100_000, 391));
    }

    #[test]
    fn there_is_no_largest_of_what_is_not_there() {
        let series: Series = [3, 1, 3].into_iter().collect();
        assert_eq!(series.largest(0..3), Some((0, 3)));
        assert_eq!(series.largest(1..3), Some((2, 3)));
        assert_eq!(series.largest(1..1), None);
        assert_eq!(series.largest(1..4), None);
    }

    #[test]
    fn the_largest_number_is_not_just_below_zero() {
        let values = [5, u64::MAX, 7];
        let series: Series = values.into_iter().collect();
        assert_eq!((series.to_vec(), series.largest(0..3)), (values.to_vec(), Some((1, u64::MAX))));
    }
}
