//! The memo: values by number.

use crate::error::{ByteOffset, PickleError};
use crate::room::make_room;
use crate::value::Value;
use rustc_hash::FxHashMap;

/// Dense while the numbers are, as every pickler writes them; numbers far ahead go into a map, so that no number,
/// however large, reserves memory for those before it.
#[derive(Default)]
pub(crate) struct Memo {
    dense: Vec<Value>,
    sparse: FxHashMap<u32, Value>,
    written: u32,
    /// How many entries there were when room was made last.
    foreseen: usize,
}

/// How far ahead of the last a number may be to be kept densely.
const SLACK: usize = 4096;

impl Memo {
    /// The value; an open container, too, which has to become an object before anything else may refer to it.
    pub(crate) fn get(&self, index: u32) -> Option<Value> {
        match self.dense.get(index as usize) {
            Some(&value) if value != Value::UNSET => Some(value),
            _ => self.sparse.get(&index).copied(),
        }
    }

    /// The value, or the error of a reference to what is not there, at `at` in the stream.
    pub(crate) fn recall(&self, index: u32, at: ByteOffset) -> Result<Value, PickleError> {
        self.get(index).ok_or(PickleError::Memo { index: u64::from(index), at })
    }

    /// The value of an entry that is kept densely; `None` also when it has to be looked for elsewhere, or is open.
    #[inline]
    pub(crate) fn near(&self, index: u32) -> Option<Value> {
        self.dense.get(index as usize).copied().filter(|value| value.means_something())
    }

    /// Whether the numbers had no gap so far, so that the next one can be appended.
    #[inline]
    pub(crate) fn is_dense(&self) -> bool {
        self.written as usize == self.dense.len() && self.sparse.is_empty()
    }

    /// Write the entry that follows all others; false, with nothing written, when it is another one.
    #[inline]
    pub(crate) fn append(&mut self, index: u32, value: Value) -> bool {
        let is_next = index as usize == self.dense.len() && self.sparse.is_empty();
        if is_next {
            self.dense.push(value);
            self.written += 1;
        }
        is_next
    }

    /// Write an entry. Says whether it had been written before.
    pub(crate) fn put(&mut self, index: u32, value: Value) -> bool {
        let again = self.get(index).is_some();
        self.written += u32::from(!again);
        let at = index as usize;
        if at >= self.dense.len() + SLACK {
            self.sparse.insert(index, value);
            return again;
        }
        if at >= self.dense.len() {
            self.dense.resize(at + 1, Value::UNSET);
        }
        self.dense[at] = value;
        again
    }

    /// Let an entry refer to what a sink put in its object's place.
    #[inline]
    pub(crate) fn redirect(&mut self, index: u32, from: Value, to: Value) {
        if let Some(entry) = self.dense.get_mut(index as usize).filter(|entry| **entry == from) {
            *entry = to;
        } else if self.get(index) == Some(from) {
            self.put(index, to);
        }
    }

    /// The number that MEMOIZE gives: how many entries there are.
    pub(crate) fn next(&self) -> u32 {
        self.written
    }

    /// How many entries there are.
    pub(crate) fn len(&self) -> usize {
        self.written as usize
    }

    /// Make room for the rest of the stream, `rest` times what came since the last time.
    pub(crate) fn foresee(&mut self, rest: f64) {
        let late = self.dense.len() - self.foreseen;
        self.foreseen += late;
        make_room(&mut self.dense, late, rest);
    }

    pub(crate) fn memory(&self) -> usize {
        self.dense.capacity() * size_of::<Value>() + self.sparse.capacity() * 16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_far_ahead_reserve_nothing() {
        let mut memo = Memo::default();
        memo.put(u32::MAX, Value::NONE);
        memo.put(0, Value::bool(true));
        assert_eq!(memo.get(u32::MAX), Some(Value::NONE));
        assert_eq!(memo.get(0), Some(Value::bool(true)));
        assert_eq!(memo.get(1), None);
        assert!(memo.memory() < 1 << 17);
    }
}
