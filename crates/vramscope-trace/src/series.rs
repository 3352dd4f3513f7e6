//! A byte count for every slot, stored in four bytes per slot.
//!
//! The encoding is frame of reference. Live memory changes by one block at a time, so neighboring
//! slots have similar values. Each chunk of 256 slots stores the value of its first slot, and one
//! signed 32-bit offset per slot. A chunk with an offset of 2 GiB or more stores 64-bit offsets.

use crate::slicing::{Budget, strides};
use std::ops::Range;

/// Bytes in every slot of a window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Series {
    chunks: Vec<Chunk>,
    /// The lower 32 bits of every slot's offset. In narrow chunks these are the whole offset.
    offsets: Vec<u32>,
    /// The upper 32 bits of the offsets, for wide chunks only.
    upper_offsets: Vec<u32>,
}

/// The header of [`CHUNK_SLOTS`] slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Chunk {
    /// The value of the first slot. Offsets are relative to it.
    base: u64,
    /// Start of the chunk in [`Series::upper_offsets`], or [`NARROW`].
    upper_start: u32,
}

const CHUNK_SLOTS: usize = 256;
/// [`Chunk::upper_start`] of a chunk whose offsets all fit a signed 32-bit number.
const NARROW: u32 = u32::MAX;

impl Series {
    /// An empty series with capacity for `slots` values.
    pub fn with_capacity(slots: usize) -> Self {
        Self {
            chunks: Vec::with_capacity(slots.div_ceil(CHUNK_SLOTS)),
            offsets: Vec::with_capacity(slots),
            upper_offsets: Vec::new(),
        }
    }

    /// Number of slots.
    pub fn len(&self) -> usize {
        self.offsets.len()
    }

    /// Whether the series has no slots.
    pub fn is_empty(&self) -> bool {
        self.offsets.is_empty()
    }

    /// Appends the value of the next slot.
    #[inline]
    pub fn push(&mut self, value: u64) {
        let chunk = match self.chunks.last() {
            Some(&chunk) if !self.offsets.len().is_multiple_of(CHUNK_SLOTS) => chunk,
            _ => {
                self.chunks.push(Chunk { base: value, upper_start: NARROW });
                Chunk { base: value, upper_start: NARROW }
            }
        };
        let offset = value.wrapping_sub(chunk.base) as i64;
        // The sign check keeps narrow offsets in the same order as their values, even where the
        // subtraction wraps. `ChunkSlice::largest` compares offsets in place of values.
        let fits = offset == i64::from(offset as i32) && (offset < 0) == (value < chunk.base);
        if chunk.upper_start != NARROW || !fits {
            self.push_upper((offset >> 32) as u32);
        }
        self.offsets.push(offset as u32);
    }

    /// Appends the upper half of an offset to the last chunk. A narrow chunk becomes wide first.
    #[cold]
    fn push_upper(&mut self, upper: u32) {
        let last = self.offsets.len() / CHUNK_SLOTS;
        if self.chunks[last].upper_start == NARROW {
            self.chunks[last].upper_start = self.upper_offsets.len() as u32;
            let from = last * CHUNK_SLOTS;
            let sign_extended =
                self.offsets[from..].iter().map(|&offset| (offset as i32 >> 31) as u32);
            self.upper_offsets.extend(sign_extended);
        }
        self.upper_offsets.push(upper);
    }

    /// The value in a slot.
    ///
    /// # Panics
    /// When `slot` is out of range.
    #[inline]
    pub fn at(&self, slot: u32) -> u64 {
        let slot = slot as usize;
        let chunk = self.chunks[slot / CHUNK_SLOTS];
        let upper = (chunk.upper_start != NARROW)
            .then(|| self.upper_offsets[chunk.upper_start as usize + slot % CHUNK_SLOTS]);
        decode(chunk.base, self.offsets[slot], upper)
    }

    /// The value in a slot. `None` when `slot` is out of range.
    pub fn get(&self, slot: u32) -> Option<u64> {
        ((slot as usize) < self.len()).then(|| self.at(slot))
    }

    /// The values in a range of slots, in order.
    ///
    /// # Panics
    /// When `slots` is out of range.
    pub fn values(&self, slots: Range<u32>) -> impl Iterator<Item = u64> + '_ {
        assert!(slots.end as usize <= self.len(), "slot {} of {}", slots.end, self.len());
        self.slices(slots).flat_map(|(_, slice)| slice.values())
    }

    /// The values in all slots.
    pub fn to_vec(&self) -> Vec<u64> {
        self.values(0..self.len() as u32).collect()
    }

    /// The largest value in a range of slots, and the first slot that has it. `None` when the range
    /// is empty or ends behind the last slot.
    pub fn largest(&self, slots: Range<u32>) -> Option<(u32, u64)> {
        if slots.end as usize > self.len() {
            return None;
        }
        let mut found: Option<(u32, u64)> = None;
        for (from, slice) in self.slices(slots) {
            let largest = slice.largest();
            // Search for the position only when the maximum rises.
            if found.is_none_or(|(_, best)| best < largest) {
                found = Some(((from + slice.position_of(largest)) as u32, largest));
            }
        }
        found
    }

    /// Splits a range of slots at chunk borders. Returns each slice with its first slot.
    fn slices(&self, slots: Range<u32>) -> impl Iterator<Item = (usize, ChunkSlice<'_>)> {
        let (start, end) = (slots.start as usize, slots.end as usize);
        let chunks =
            if start < end { start / CHUNK_SLOTS..end.div_ceil(CHUNK_SLOTS) } else { 0..0 };
        chunks.map(move |index| {
            let (chunk, from) = (self.chunks[index], start.max(index * CHUNK_SLOTS));
            let offsets = &self.offsets[from..end.min((index + 1) * CHUNK_SLOTS)];
            let upper = match chunk.upper_start {
                NARROW => &[],
                upper => {
                    let start = upper as usize + from % CHUNK_SLOTS;
                    &self.upper_offsets[start..][..offsets.len()]
                }
            };
            (from, ChunkSlice { base: chunk.base, offsets, upper })
        })
    }

    /// [`Series::largest`] in slices.
    pub async fn largest_sliced(
        &self,
        slots: Range<u32>,
        budget: &mut Budget,
    ) -> Option<(u32, u64)> {
        let mut found: Option<(u32, u64)> = None;
        for stride in strides(slots.len()) {
            // A sequential scan handles about eight values per unit of work.
            budget.charge(1 + stride.len() as u64 / 8).await;
            let largest =
                self.largest(slots.start + stride.start as u32..slots.start + stride.end as u32)?;
            if found.is_none_or(|(_, best)| best < largest.1) {
                found = Some(largest);
            }
        }
        found
    }

    /// The largest value of each of several ranges of slots; 0 for an empty one.
    pub async fn tops(
        &self,
        ranges: impl Iterator<Item = Range<u32>> + Send,
        budget: &mut Budget,
    ) -> Vec<u64> {
        let mut tops = Vec::with_capacity(ranges.size_hint().0);
        for range in ranges {
            tops.push(self.largest_sliced(range, budget).await.map_or(0, |(_, top)| top));
        }
        tops
    }
}

/// Splits a range into `count` parts of equal width, for the columns of a plot. Each part has at
/// least one slot, so that parts of a short range overlap.
pub fn columns_of(whole: Range<u64>, count: u32) -> impl Iterator<Item = Range<u64>> + Send {
    let width = u128::from(whole.end.saturating_sub(whole.start));
    let edge = move |column: u32| {
        whole.start + (width * u128::from(column) / u128::from(count.max(1))) as u64
    };
    (0..count).map(move |column| {
        let start = edge(column);
        start..edge(column + 1).max(start + 1)
    })
}

/// Consecutive slots of one chunk.
#[derive(Clone, Copy)]
struct ChunkSlice<'a> {
    base: u64,
    offsets: &'a [u32],
    /// The upper halves of `offsets`. Empty for a narrow chunk.
    upper: &'a [u32],
}

impl<'a> ChunkSlice<'a> {
    fn values(self) -> impl Iterator<Item = u64> + 'a {
        self.offsets
            .iter()
            .enumerate()
            .map(move |(i, &offset)| decode(self.base, offset, self.upper.get(i).copied()))
    }

    fn largest(self) -> u64 {
        if self.upper.is_empty() {
            // The compiler vectorizes this loop over plain 32-bit numbers.
            let largest = self.offsets.iter().map(|&offset| offset as i32).max().unwrap_or(0);
            return decode(self.base, largest as u32, None);
        }
        self.values().max().unwrap_or(0)
    }

    /// Index of the first slot that has a value. The value must occur.
    fn position_of(self, sought: u64) -> usize {
        let position = if self.upper.is_empty() {
            let sought = sought.wrapping_sub(self.base) as u32;
            self.offsets.iter().position(|&offset| offset == sought)
        } else {
            self.values().position(|value| value == sought)
        };
        position.unwrap_or(0)
    }
}

/// Adds an offset to a chunk's base. Without an upper half the offset is a signed 32-bit number.
#[inline]
fn decode(base: u64, offset: u32, upper: Option<u32>) -> u64 {
    let offset = match upper {
        Some(upper) => u64::from(upper) << 32 | u64::from(offset),
        None => i64::from(offset as i32) as u64,
    };
    base.wrapping_add(offset)
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
    use crate::slicing::now;
    use proptest::prelude::*;

    /// Runs of similar values, with jumps of any size between the runs.
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
        fn values_round_trip_and_largest_finds_the_first_maximum(
            values in values(),
            a in any::<u32>(),
            b in any::<u32>(),
        ) {
            let series: Series = values.iter().copied().collect();
            prop_assert_eq!(series.len(), values.len());
            prop_assert_eq!(&series.to_vec(), &values);
            let slots = values.len() as u32 + 1;
            let range = (a % slots).min(b % slots)..(a % slots).max(b % slots);
            let part = &values[range.start as usize..range.end as usize];
            // `max_by_key` returns the last of equal maxima, so the iterator is reversed.
            let slots_with_values = range.clone().zip(part.iter().copied());
            let first = slots_with_values.rev().max_by_key(|(_, value)| *value);
            prop_assert_eq!(series.largest(range.clone()), first);
            let sliced = now(async |budget| series.largest_sliced(range, budget).await);
            prop_assert_eq!(sliced, first);
        }
    }

    #[test]
    fn a_slot_takes_four_bytes_and_only_a_wide_chunk_takes_eight() {
        // Values vary by 64 MiB around 80 GiB. One value, in one chunk, is 3 GiB higher.
        let at = |i: u64| {
            (80 << 30) + ((i * 0x9e37_79b9) % (64 << 20)) + if i == 5000 { 3 << 30 } else { 0 }
        };
        let series: Series = (0..100_000).map(at).collect();
        assert_eq!(
            (series.at(4999), series.at(5000), series.at(99_999)),
            (at(4999), at(5000), at(99_999))
        );
        assert_eq!(series.largest(0..100_000), Some((5000, at(5000))));
        assert_eq!(series.upper_offsets.len(), CHUNK_SLOTS);
        assert_eq!((series.offsets.len(), series.chunks.len()), (100_000, 391));
    }

    #[test]
    fn largest_is_none_for_empty_and_out_of_range_slots() {
        let series: Series = [3, 1, 3].into_iter().collect();
        assert_eq!(series.largest(0..3), Some((0, 3)));
        assert_eq!(series.largest(1..3), Some((2, 3)));
        assert_eq!(series.largest(1..1), None);
        assert_eq!(series.largest(1..4), None);
    }

    #[test]
    fn columns_have_the_largest_value_of_their_slots() {
        let series: Series = [3, 1, 4, 1, 5].into_iter().collect();
        let tops = |count: u32| {
            let ranges = columns_of(0..5, count).map(|part| part.start as u32..part.end as u32);
            now(async |budget| series.tops(ranges, budget).await)
        };
        assert_eq!(tops(2), [3, 5]);
        assert_eq!(tops(7), [3, 3, 1, 4, 4, 1, 5]);
        assert!(tops(0).is_empty());
        // Neither an empty range nor one behind the last slot has a value.
        assert_eq!(now(async |budget| series.tops([2..2, 4..6].into_iter(), budget).await), [0, 0]);
    }

    #[test]
    fn largest_compares_values_as_unsigned() {
        let values = [5, u64::MAX, 7];
        let series: Series = values.into_iter().collect();
        assert_eq!((series.to_vec(), series.largest(0..3)), (values.to_vec(), Some((1, u64::MAX))));
    }
}
