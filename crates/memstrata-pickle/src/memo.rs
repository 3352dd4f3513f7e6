//! The memo: values by number.

use crate::error::{ByteOffset, PickleError};
use crate::value::Value;
use rustc_hash::FxHashMap;

/// Dense while the numbers are, as every pickler writes them; numbers far ahead go into a map, so that no number,
/// however large, reserves memory for those before it.
#[derive(Default)]
pub(crate) struct Memo {
    dense: Vec<Value>,
    sparse: FxHashMap<u32, Value>,
    written: u32,
}

/// How far ahead of the last a number may be to be kept densely.
const SLACK: usize = 4096;

impl Memo {
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

    /// The values of a run of `LONG_BINGET` operations, five bytes each, onto the stack; the first stands at `at`.
    pub(crate) fn recall_run(&self, run: &[u8], stack: &mut Vec<Value>, at: ByteOffset) -> Result<(), PickleError> {
        let indices = run.chunks_exact(5).map(|c| u32::from_le_bytes([c[1], c[2], c[3], c[4]]));
        let from = stack.len();
        stack.extend(indices.clone().map(|i| self.dense.get(i as usize).copied().unwrap_or(Value::UNSET)));
        if stack[from..].contains(&Value::UNSET) {
            stack.truncate(from);
            for (index, at) in indices.zip((at..).step_by(5)) {
                stack.push(self.recall(index, at)?);
            }
        }
        Ok(())
    }

    pub(crate) fn put(&mut self, index: u32, value: Value) {
        self.written += u32::from(self.get(index).is_none());
        let at = index as usize;
        if at >= self.dense.len() + SLACK {
            self.sparse.insert(index, value);
            return;
        }
        if at >= self.dense.len() {
            self.dense.resize(at + 1, Value::UNSET);
        }
        self.dense[at] = value;
    }

    /// Let an entry refer to what a sink put in its object's place.
    pub(crate) fn redirect(&mut self, index: u32, from: Value, to: Value) {
        if self.get(index) == Some(from) {
            self.put(index, to);
        }
    }

    /// The number that MEMOIZE gives: how many entries there are.
    pub(crate) fn next(&self) -> u32 {
        self.written
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
