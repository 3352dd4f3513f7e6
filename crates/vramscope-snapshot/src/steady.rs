//! Columns in which mostly one value stands.
//!
//! Most runs use one stream and one memory pool, and say so in every event. As long as all rows
//! have the value of the first, only their number is kept.

use vramscope_pickle::make_room;

/// A column of one value, or of any.
#[derive(Clone, Debug)]
pub(crate) struct Steady<T> {
    /// What stands in all rows while there is no other.
    one: T,
    /// How many rows there are while there is no other.
    same: usize,
    /// All rows, once there is another.
    rows: Vec<T>,
}

impl<T: Copy + PartialEq> Steady<T> {
    /// `usual` is what most columns have.
    pub(crate) fn new(usual: T) -> Self {
        Self { one: usual, same: 0, rows: Vec::new() }
    }

    /// The value in a row.
    ///
    /// # Panics
    /// When there is no such row.
    #[inline]
    pub(crate) fn get(&self, row: usize) -> T {
        if row < self.same { self.one } else { self.rows[row] }
    }

    #[inline]
    pub(crate) fn push(&mut self, value: T) {
        if !self.rows.is_empty() {
            self.rows.push(value);
        } else if value == self.one {
            self.same += 1;
        } else {
            self.push_other(value);
        }
    }

    #[cold]
    fn push_other(&mut self, value: T) {
        if self.same == 0 {
            self.one = value;
            self.same = 1;
        } else {
            self.spread();
            self.rows.push(value);
        }
    }

    /// Let another value stand in a row.
    pub(crate) fn set(&mut self, row: usize, value: T) {
        if self.get(row) != value {
            self.spread();
            self.rows[row] = value;
        }
    }

    fn spread(&mut self) {
        if self.rows.is_empty() {
            self.rows = vec![self.one; std::mem::take(&mut self.same)];
        }
    }

    pub(crate) fn make_room(&mut self, late: usize, rest: f64) {
        if !self.rows.is_empty() {
            make_room(&mut self.rows, late, rest);
        }
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        self.same = self.same.min(len);
        self.rows.truncate(len);
    }

    pub(crate) fn shrink(&mut self) {
        self.rows.shrink_to_fit();
    }

    /// Bytes that a row takes.
    pub(crate) fn width(&self) -> usize {
        if self.rows.is_empty() { 0 } else { size_of::<T>() }
    }

    pub(crate) fn memory(&self) -> usize {
        self.rows.capacity() * size_of::<T>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_value_comes_back(
            values in proptest::collection::vec(0u16..3, 0..60),
            others in proptest::collection::vec((any::<proptest::sample::Index>(), 0u16..3), 0..10),
            kept in 0usize..60,
            more in proptest::collection::vec(0u16..3, 0..4),
        ) {
            let (mut column, mut plain) = (Steady::new(1), values.clone());
            for &value in &values {
                column.push(value);
            }
            for (at, value) in others {
                if !plain.is_empty() {
                    let row = at.index(plain.len());
                    column.set(row, value);
                    plain[row] = value;
                }
            }
            column.truncate(kept);
            plain.truncate(kept);
            for value in more {
                column.push(value);
                plain.push(value);
            }
            prop_assert_eq!((0..plain.len()).map(|row| column.get(row)).collect::<Vec<_>>(), plain);
        }
    }

    #[test]
    fn one_value_takes_no_memory_whichever_it_is() {
        for value in [0u16, 7] {
            let mut column = Steady::new(0);
            (0..1000).for_each(|_| column.push(value));
            column.set(500, value);
            assert_eq!((column.get(999), column.memory()), (value, 0));
            column.push(9);
            assert_eq!((column.get(999), column.get(1000)), (value, 9));
        }
    }
}
