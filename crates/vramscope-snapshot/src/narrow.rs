//! Columns of 64-bit numbers that take four bytes each.
//!
//! What a trace says of its events are addresses on one device, sizes of its blocks, and times of
//! one run: numbers of 64 bits which lie close to each other. A column keeps how far each is from a
//! base, and the few that are too far, or between two steps, beside it by row. Where they are not
//! few after all, or come in no order, it becomes a column of 64 bits.

use std::ops::Range;
use vramscope_pickle::make_room;

/// A column of numbers.
#[derive(Clone, Debug)]
pub struct Narrow {
    kind: Kind,
    base: u64,
    /// What is fewer steps from the base is near: nothing, before there is a number, which the base
    /// is told from, and once all is wide.
    reach: u64,
    /// Steps from the base; [`FAR`] for what is not near.
    near: Vec<u32>,
    /// What is not near, in the order of rows; without what is missing.
    far: Vec<(u32, u64)>,
    /// All of it, once too much is far.
    wide: Vec<u64>,
}

/// What is in a column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    /// Two to this power is a step.
    shift: u8,
    /// How far the base is below the first number.
    below: u64,
    /// What stands for a number that is missing.
    missing: u64,
}

/// Bytes, up to 4 GiB: above zero, whatever comes first.
pub(crate) const SIZES: Kind = Kind { shift: 0, below: 0, missing: 0 };
/// Addresses in steps of 512 bytes, which PyTorch's blocks come in (`kMinBlockSize` in
/// `c10/core/CachingDeviceAllocator.h`), a tebibyte to both sides of the first.
pub(crate) const ADDRESSES: Kind = Kind { shift: 9, below: 1 << 40, missing: 0 };
/// Microseconds, 35 minutes to both sides of the first.
pub(crate) const TIMES: Kind =
    Kind { shift: 0, below: 1 << 31, missing: super::events::NO_TIME as u64 };

/// Not near.
const FAR: u32 = u32::MAX;
/// Of a column with more rows than this, an eighth may be far.
const FEW: usize = 1 << 10;

impl Narrow {
    pub(crate) fn new(kind: Kind) -> Self {
        let reach = if kind.below == 0 { u64::from(FAR) } else { 0 };
        Self { kind, base: 0, reach, near: Vec::new(), far: Vec::new(), wide: Vec::new() }
    }

    /// How many numbers there are.
    pub fn len(&self) -> usize {
        self.near.len().max(self.wide.len())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number in this row.
    ///
    /// # Panics
    /// When there is no such row.
    #[inline]
    pub fn get(&self, row: usize) -> u64 {
        match self.near.get(row) {
            Some(&near) if near != FAR => {
                self.base.wrapping_add(u64::from(near) << self.kind.shift)
            }
            _ => self.look_up(row),
        }
    }

    /// Whether all numbers in these rows are near, and none is before the one in front of it,
    /// counted from the base. Only four bytes of each are looked at.
    pub(crate) fn rises(&self, rows: Range<usize>) -> bool {
        // What is not near would stand at the end of what is.
        self.near.get(rows).is_some_and(|near| near.is_sorted() && near.last() != Some(&FAR))
    }

    #[cold]
    #[inline(never)]
    fn look_up(&self, row: usize) -> u64 {
        assert!(row < self.len(), "row {row} of {}", self.len());
        if self.wide.is_empty() {
            self.far_at(row).unwrap_or(self.kind.missing)
        } else {
            self.wide[row]
        }
    }

    fn far_at(&self, row: usize) -> Option<u64> {
        self.far.binary_search_by_key(&(row as u32), |far| far.0).ok().map(|at| self.far[at].1)
    }

    /// How many steps a number is from the base, when it is near.
    #[inline]
    fn steps(&self, value: u64) -> Option<u32> {
        // What is between two steps comes to the top, and so to more than any reach.
        let steps = value.wrapping_sub(self.base).rotate_right(u32::from(self.kind.shift));
        (steps < self.reach).then_some(steps as u32)
    }

    /// What stands for a number that is near, or missing.
    fn near(&self, value: u64) -> Option<u32> {
        self.steps(value).or((value == self.kind.missing).then_some(FAR))
    }

    #[inline]
    pub(crate) fn push(&mut self, value: u64) {
        match self.steps(value) {
            Some(steps) => self.near.push(steps),
            None => self.push_odd(value),
        }
    }

    /// A number that is far or missing, or any once all is wide.
    #[inline(never)]
    fn push_odd(&mut self, value: u64) {
        if !self.wide.is_empty() {
            self.wide.push(value);
        } else if let Some(near) = self.near(value) {
            self.near.push(near);
        } else if self.reach > 0 {
            self.far.push((self.near.len() as u32, value));
            self.near.push(FAR);
            if self.far.len() > FEW.max(self.near.len() / 8) {
                self.widen();
            }
        } else {
            self.reach = u64::from(FAR);
            self.base = value.wrapping_sub(self.kind.below) >> self.kind.shift << self.kind.shift;
            self.push(value);
        }
    }

    /// Let another number stand in a row.
    pub(crate) fn set(&mut self, row: usize, value: u64) {
        if self.wide.is_empty() {
            match self.near(value) {
                Some(near) if self.far_at(row).is_none() => {
                    self.near[row] = near;
                    return;
                }
                // The rest are in the order of rows, and one among them would have to move many.
                _ => self.widen(),
            }
        }
        self.wide[row] = value;
    }

    fn widen(&mut self) {
        self.wide = (0..self.near.len()).map(|row| self.get(row)).collect();
        (self.near, self.far, self.reach) = (Vec::new(), Vec::new(), 0);
    }

    pub(crate) fn make_room(&mut self, late: usize, rest: f64) {
        if self.wide.is_empty() {
            make_room(&mut self.near, late, rest);
        } else {
            make_room(&mut self.wide, late, rest);
        }
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        self.near.truncate(len);
        self.wide.truncate(len);
        self.far.truncate(self.far.partition_point(|far| (far.0 as usize) < len));
    }

    pub(crate) fn shrink(&mut self) {
        self.near.shrink_to_fit();
        self.far.shrink_to_fit();
        self.wide.shrink_to_fit();
    }

    /// Bytes that a row takes.
    pub(crate) fn width(&self) -> usize {
        if self.wide.is_empty() { 4 } else { 8 }
    }

    pub(crate) fn memory(&self) -> usize {
        self.near.capacity() * 4
            + self.far.capacity() * size_of::<(u32, u64)>()
            + self.wide.capacity() * 8
    }
}

/// Sizes in bytes.
impl FromIterator<u64> for Narrow {
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

    /// Numbers of every kind: close to each other, between steps, far away, missing.
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
    fn near_numbers_rise() {
        const DAY: u64 = 86_400_000_000;
        let column = |numbers: &[u64]| {
            let mut column = Narrow::new(TIMES);
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
            assert_eq!(odd.rises(rows.clone()), rises, "{rows:?}");
        }
        assert!(!odd.rises(7..10), "there is no such row");
        let wide = column(&(0..3000).map(|n| n * DAY).collect::<Vec<_>>());
        assert!(!wide.rises(0..3000), "they need eight bytes");
    }

    proptest! {
        #[test]
        fn every_number_comes_back(
            numbers in proptest::collection::vec(number(), 0..400),
            others in proptest::collection::vec((any::<proptest::sample::Index>(), number()), 0..50),
            kept in 0usize..400,
        ) {
            for kind in [SIZES, ADDRESSES, TIMES] {
                let (mut column, mut plain) = (Narrow::new(kind), numbers.clone());
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
    fn what_is_close_takes_four_bytes() {
        let mut column = Narrow::new(ADDRESSES);
        let first = 0x7f12_3456_7800u64;
        for i in 0..10_000 {
            column.push(first - (1 << 39) + i * 512);
        }
        // No address: an out-of-memory event.
        column.push(0);
        assert!(column.far.is_empty() && column.wide.is_empty());
        assert_eq!((column.get(0), column.get(10_000)), (first - (1 << 39), 0));
        // Over four gigabytes, once in a while.
        let sizes: Narrow =
            (0..10_000u64).map(|i| if i % 100 == 0 { i << 32 } else { i }).collect();
        assert!(sizes.far.len() == 99 && sizes.wide.is_empty(), "{}", sizes.far.len());
        assert_eq!((sizes.get(9_900), sizes.get(9_901)), (9_900 << 32, 9_901));
    }

    #[test]
    #[should_panic(expected = "row 2 of 2")]
    fn a_row_that_is_not_there_is_not_taken_for_a_missing_number() {
        [7, 8].into_iter().collect::<Narrow>().get(2);
    }

    #[test]
    fn what_is_not_close_takes_eight() {
        // Two clocks, hours apart.
        let mut column = Narrow::new(TIMES);
        for i in 0..20_000u64 {
            column.push((i % 2) << 40 | i);
        }
        assert!(column.near.is_empty() && column.far.is_empty());
        assert!((0..20_000u64).all(|i| column.get(i as usize) == ((i % 2) << 40 | i)));
        assert!(column.memory() <= 2 * 8 * 20_000, "{}", column.memory());
    }
}
