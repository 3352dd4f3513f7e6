//! A column that stores one value while all rows are equal.
//!
//! Most runs use one stream and one memory pool, and write both into every event.

use vramscope_pickle::reserve_for;

/// A column of equal values, or of any values.
#[derive(Clone, Debug)]
pub(crate) struct ConstantColumn<T> {
    /// The value of all rows while they are equal.
    value: T,
    /// The number of rows while they are equal.
    len: usize,
    /// All rows, once they differ.
    values: Vec<T>,
}

impl<T: Copy + PartialEq> ConstantColumn<T> {
    /// An empty column. `usual` is the value that most columns have.
    pub(crate) fn new(usual: T) -> Self {
        Self { value: usual, len: 0, values: Vec::new() }
    }

    /// The value in a row.
    ///
    /// # Panics
    /// When the row does not exist.
    #[inline]
    pub(crate) fn get(&self, row: usize) -> T {
        if row < self.len { self.value } else { self.values[row] }
    }

    #[inline]
    pub(crate) fn push(&mut self, value: T) {
        if !self.values.is_empty() {
            self.values.push(value);
        } else if value == self.value {
            self.len += 1;
        } else {
            self.push_other(value);
        }
    }

    #[cold]
    fn push_other(&mut self, value: T) {
        if self.len == 0 {
            self.value = value;
            self.len = 1;
        } else {
            self.materialize();
            self.values.push(value);
        }
    }

    /// Replaces the value in a row.
    pub(crate) fn set(&mut self, row: usize, value: T) {
        if self.get(row) != value {
            self.materialize();
            self.values[row] = value;
        }
    }

    fn materialize(&mut self) {
        if self.values.is_empty() {
            self.values = vec![self.value; std::mem::take(&mut self.len)];
        }
    }

    pub(crate) fn reserve(&mut self, recent: usize, remaining: f64) {
        if !self.values.is_empty() {
            reserve_for(&mut self.values, recent, remaining);
        }
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
        self.values.truncate(len);
    }

    pub(crate) fn shrink(&mut self) {
        self.values.shrink_to_fit();
    }

    /// Bytes per row.
    pub(crate) fn row_bytes(&self) -> usize {
        if self.values.is_empty() { 0 } else { size_of::<T>() }
    }

    pub(crate) fn memory(&self) -> usize {
        self.values.capacity() * size_of::<T>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn values_round_trip(
            values in proptest::collection::vec(0u16..3, 0..60),
            others in proptest::collection::vec((any::<proptest::sample::Index>(), 0u16..3), 0..10),
            kept in 0usize..60,
            more in proptest::collection::vec(0u16..3, 0..4),
        ) {
            let (mut column, mut plain) = (ConstantColumn::new(1), values.clone());
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
    fn equal_values_take_no_memory() {
        for value in [0u16, 7] {
            let mut column = ConstantColumn::new(0);
            (0..1000).for_each(|_| column.push(value));
            column.set(500, value);
            assert_eq!((column.get(999), column.memory()), (value, 0));
            column.push(9);
            assert_eq!((column.get(999), column.get(1000)), (value, 9));
        }
    }
}
