//! A column of 64-bit numbers in four bytes each: frame-of-reference encoding with exceptions.
//!
//! The addresses on one device, the sizes of its blocks and the times of one run are 64-bit numbers
//! close to each other. The column stores each number's offset from a base. Numbers too far away,
//! or between two steps, are exceptions, stored by row. With too many exceptions, or one that
//! cannot be appended in row order, the column switches to 64 bits.

use std::ops::Range;
use vramscope_pickle::reserve_for;

/// A column of numbers.
#[derive(Clone, Debug)]
pub struct DeltaColumn {
    encoding: Encoding,
    base: u64,
    /// Offsets below this are stored inline. 0 until the first value fixes `base`, and after the
    /// switch to 64 bits.
    max_offset: u64,
    /// Steps from the base, or [`EXCEPTION`].
    offsets: Vec<u32>,
    /// Numbers without an offset, by row, without the missing ones.
    exceptions: Vec<(u32, u64)>,
    /// All numbers in 64 bits, after the switch.
    full: Vec<u64>,
}

/// How a column encodes its numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Encoding {
    /// A step is 2^`shift`.
    shift: u8,
    /// Distance from the base up to the first number.
    headroom: u64,
    /// The number that stands for a missing one.
    missing: u64,
}

/// Sizes in bytes. The base is 0, so sizes up to 4 GiB have an offset.
pub(crate) const SIZES: Encoding = Encoding { shift: 0, headroom: 0, missing: 0 };
/// Addresses in steps of 512 bytes, the granularity of PyTorch's blocks (`kMinBlockSize` in
/// `c10/core/CachingDeviceAllocator.h`). They reach one tebibyte to both sides of the first.
pub(crate) const ADDRESSES: Encoding = Encoding { shift: 9, headroom: 1 << 40, missing: 0 };
/// Microseconds, 35 minutes to both sides of the first.
pub(crate) const TIMES: Encoding =
    Encoding { shift: 0, headroom: 1 << 31, missing: super::events::NO_TIME as u64 };

/// The offset of an exception or a missing number.
const EXCEPTION: u32 = u32::MAX;
/// Exceptions that a column may have in any case. A longer column may have one per eight rows.
const FREE_EXCEPTIONS: usize = 1 << 10;

impl DeltaColumn {
    pub(crate) fn new(encoding: Encoding) -> Self {
        let max_offset = if encoding.headroom == 0 { u64::from(EXCEPTION) } else { 0 };
        Self {
            encoding,
            base: 0,
            max_offset,
            offsets: Vec::new(),
            exceptions: Vec::new(),
            full: Vec::new(),
        }
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.offsets.len().max(self.full.len())
    }

    /// Whether the column is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number in this row.
    ///
    /// # Panics
    /// When the row does not exist.
    #[inline]
    pub fn get(&self, row: usize) -> u64 {
        match self.offsets.get(row) {
            Some(&near) if near != EXCEPTION => {
                self.base.wrapping_add(u64::from(near) << self.encoding.shift)
            }
            _ => self.get_outside(row),
        }
    }

    /// Whether all numbers in these rows have offsets, and the offsets never decrease. Reads only
    /// four bytes per row.
    pub(crate) fn is_sorted(&self, rows: Range<usize>) -> bool {
        // [`EXCEPTION`] is the largest offset, so sorted offsets have it at the end.
        self.offsets
            .get(rows)
            .is_some_and(|near| near.is_sorted() && near.last() != Some(&EXCEPTION))
    }

    #[cold]
    #[inline(never)]
    fn get_outside(&self, row: usize) -> u64 {
        assert!(row < self.len(), "row {row} of {}", self.len());
        if self.full.is_empty() {
            self.exception_at(row).unwrap_or(self.encoding.missing)
        } else {
            self.full[row]
        }
    }

    fn exception_at(&self, row: usize) -> Option<u64> {
        self.exceptions
            .binary_search_by_key(&(row as u32), |far| far.0)
            .ok()
            .map(|at| self.exceptions[at].1)
    }

    /// A number's offset, if it has one.
    #[inline]
    fn offset_of(&self, value: u64) -> Option<u32> {
        // The rotation moves bits below a step to the top, which makes the result exceed
        // `max_offset`.
        let steps = value.wrapping_sub(self.base).rotate_right(u32::from(self.encoding.shift));
        (steps < self.max_offset).then_some(steps as u32)
    }

    /// The offset that represents a number, if it has one or is missing.
    fn offset_or_missing(&self, value: u64) -> Option<u32> {
        self.offset_of(value).or((value == self.encoding.missing).then_some(EXCEPTION))
    }

    #[inline]
    pub(crate) fn push(&mut self, value: u64) {
        match self.offset_of(value) {
            Some(steps) => self.offsets.push(steps),
            None => self.push_outside(value),
        }
    }

    /// Adds a number without an offset, or any number after the switch to 64 bits.
    #[inline(never)]
    fn push_outside(&mut self, value: u64) {
        if !self.full.is_empty() {
            self.full.push(value);
        } else if let Some(near) = self.offset_or_missing(value) {
            self.offsets.push(near);
        } else if self.max_offset > 0 {
            self.exceptions.push((self.offsets.len() as u32, value));
            self.offsets.push(EXCEPTION);
            if self.exceptions.len() > FREE_EXCEPTIONS.max(self.offsets.len() / 8) {
                self.widen();
            }
        } else {
            self.max_offset = u64::from(EXCEPTION);
            self.base = value.wrapping_sub(self.encoding.headroom) >> self.encoding.shift
                << self.encoding.shift;
            self.push(value);
        }
    }

    /// An upper bound of the sum of a column of sizes. Reads only exceptions and 64-bit numbers.
    pub(crate) fn at_most(&self) -> u128 {
        let near = self.offsets.len() as u128 * u128::from(EXCEPTION);
        let far = self.exceptions.iter().map(|far| far.1).chain(self.full.iter().copied());
        near + far.map(u128::from).sum::<u128>()
    }

    /// Replaces the number in a row.
    pub(crate) fn set(&mut self, row: usize, value: u64) {
        if self.full.is_empty() {
            match self.offset_or_missing(value) {
                Some(near) if self.exception_at(row).is_none() => {
                    self.offsets[row] = near;
                    return;
                }
                // Exceptions are sorted by row: inserting or removing one would move many.
                _ => self.widen(),
            }
        }
        self.full[row] = value;
    }

    fn widen(&mut self) {
        self.full = (0..self.offsets.len()).map(|row| self.get(row)).collect();
        (self.offsets, self.exceptions, self.max_offset) = (Vec::new(), Vec::new(), 0);
    }

    pub(crate) fn reserve(&mut self, recent: usize, remaining: f64) {
        if self.full.is_empty() {
            reserve_for(&mut self.offsets, recent, remaining);
        } else {
            reserve_for(&mut self.full, recent, remaining);
        }
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        self.offsets.truncate(len);
        self.full.truncate(len);
        self.exceptions.truncate(self.exceptions.partition_point(|far| (far.0 as usize) < len));
    }

    pub(crate) fn shrink(&mut self) {
        self.offsets.shrink_to_fit();
        self.exceptions.shrink_to_fit();
        self.full.shrink_to_fit();
    }

    /// Bytes per row.
    pub(crate) fn row_bytes(&self) -> usize {
        if self.full.is_empty() { 4 } else { 8 }
    }

    pub(crate) fn memory(&self) -> usize {
        self.offsets.capacity() * 4
            + self.exceptions.capacity() * size_of::<(u32, u64)>()
            + self.full.capacity() * 8
    }
}

/// Collects sizes in bytes.
impl FromIterator<u64> for DeltaColumn {
    fn from_iter<I: IntoIterator<Item = u64>>(sizes: I) -> Self {
        let mut column = Self::new(SIZES);
        for size in sizes {
            column.push(size);
        }
        column
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Numbers of all kinds: close to each other, between steps, far away, missing.
    fn number() -> impl Strategy<Value = u64> {
        let near = (0..1u64 << 20).prop_map(|n| 0x7f00_0000_0000 + n * 512);
        prop_oneof![
            20 => near,
            1 => 0..1u64 << 33,
            1 => any::<u64>(),
            1 => Just(0),
            1 => Just(u64::from(u32::MAX)),
            1 => Just(i64::MIN as u64),
        ]
    }

    #[test]
    fn is_sorted_compares_offsets() {
        const DAY: u64 = 86_400_000_000;
        let column = |numbers: &[u64]| {
            let mut column = DeltaColumn::new(TIMES);
            for &n in numbers {
                column.push(n);
            }
            column
        };
        let odd = column(&[9, 5, 5, 7, TIMES.missing, 8, DAY, 8, 9]);
        for (rows, rises) in [
            (1..4, true),
            (7..9, true),
            (2..2, true),
            (0..2, false),
            (3..5, false),
            (4..6, false),
            (6..7, false),
        ] {
            assert_eq!(odd.is_sorted(rows.clone()), rises, "{rows:?}");
        }
        assert!(!odd.is_sorted(7..10), "the rows end at 9");
        let wide = column(&(0..3000).map(|n| n * DAY).collect::<Vec<_>>());
        assert!(!wide.is_sorted(0..3000), "the column has switched to 64 bits");
    }

    proptest! {
        #[test]
        fn numbers_round_trip(
            numbers in proptest::collection::vec(number(), 0..400),
            others in proptest::collection::vec(
                (any::<proptest::sample::Index>(), number()),
                0..50,
            ),
            kept in 0usize..400,
        ) {
            for encoding in [SIZES, ADDRESSES, TIMES] {
                let (mut column, mut plain) = (DeltaColumn::new(encoding), numbers.clone());
                for &n in &numbers {
                    column.push(n);
                }
                for (at, n) in &others {
                    if !plain.is_empty() {
                        let row = at.index(plain.len());
                        column.set(row, *n);
                        plain[row] = *n;
                    }
                }
                column.truncate(kept);
                plain.truncate(kept);
                let back: Vec<u64> = (0..column.len()).map(|row| column.get(row)).collect();
                prop_assert_eq!(back, plain);
            }
        }
    }

    #[test]
    fn close_numbers_take_four_bytes() {
        let mut column = DeltaColumn::new(ADDRESSES);
        let first = 0x7f12_3456_7800u64;
        for i in 0..10_000 {
            column.push(first - (1 << 39) + i * 512);
        }
        // An OOM event has no address.
        column.push(0);
        assert!(column.exceptions.is_empty() && column.full.is_empty());
        assert_eq!((column.get(0), column.get(10_000)), (first - (1 << 39), 0));
        // One size in 100 exceeds 4 GiB.
        let sizes: DeltaColumn =
            (0..10_000u64).map(|i| if i % 100 == 0 { i << 32 } else { i }).collect();
        assert!(
            sizes.exceptions.len() == 99 && sizes.full.is_empty(),
            "{}",
            sizes.exceptions.len()
        );
        assert_eq!((sizes.get(9_900), sizes.get(9_901)), (9_900 << 32, 9_901));
    }

    #[test]
    #[should_panic(expected = "row 2 of 2")]
    fn get_panics_beyond_the_last_row() {
        [7, 8].into_iter().collect::<DeltaColumn>().get(2);
    }

    #[test]
    fn distant_numbers_take_eight_bytes() {
        // Two clocks, hours apart.
        let mut column = DeltaColumn::new(TIMES);
        for i in 0..20_000u64 {
            column.push((i % 2) << 40 | i);
        }
        assert!(column.offsets.is_empty() && column.exceptions.is_empty());
        assert!((0..20_000u64).all(|i| column.get(i as usize) == ((i % 2) << 40 | i)));
        assert!(column.memory() <= 2 * 8 * 20_000, "{}", column.memory());
    }
}
