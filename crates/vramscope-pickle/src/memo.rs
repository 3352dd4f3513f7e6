//! The memo: values by index.

use crate::error::{ByteOffset, PickleError};
use crate::value::{CompactValue, Value};
use rustc_hash::FxHashMap;

/// Entries that [`op::BINGET`](crate::opcode::BINGET) can refer to.
const DIRECT_ENTRIES: usize = 256;
/// Entries per page.
const PAGE_ENTRIES: usize = 1 << 14;
/// Entries in pages that may be unwritten, besides one per written entry.
const MAX_GAP_ENTRIES: usize = 4096;

type Page = Box<[CompactValue; PAGE_ENTRIES]>;

/// Picklers number memo entries without gaps, so entries are in pages of four bytes each, which are
/// never copied: a file of 10 GB has 150 million entries. Values that do not fit into four bytes,
/// and entries with an index far ahead, go into a map. So at least half of the entries in pages are
/// written, whatever the indices are.
pub(crate) struct Memo {
    /// A copy of the first entries as full values: every second operation refers to one of them.
    direct: [Value; DIRECT_ENTRIES],
    pages: Vec<Page>,
    /// Number of entries in pages.
    len: usize,
    overflow: FxHashMap<u32, Value>,
    /// Whether some index was far ahead of the one before.
    has_gap: bool,
    written: u32,
}

impl Default for Memo {
    fn default() -> Self {
        Self {
            direct: [Value::UNSET; DIRECT_ENTRIES],
            pages: Vec::new(),
            len: 0,
            overflow: FxHashMap::default(),
            has_gap: false,
            written: 0,
        }
    }
}

impl Memo {
    /// The value of an entry. An open container has to become an object before anything else may
    /// refer to it.
    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<Value> {
        self.compact(index).value().or_else(|| self.get_overflow(index))
    }

    #[cold]
    #[inline(never)]
    fn get_overflow(&self, index: u32) -> Option<Value> {
        self.overflow.get(&index).copied()
    }

    #[inline]
    fn compact(&self, index: u32) -> CompactValue {
        let index = index as usize;
        self.pages
            .get(index / PAGE_ENTRIES)
            .map_or(CompactValue::NONE, |page| page[index % PAGE_ENTRIES])
    }

    /// The value of an entry, or an error for a reference at offset `at` to an entry that was never
    /// written.
    pub(crate) fn recall(&self, index: u32, at: ByteOffset) -> Result<Value, PickleError> {
        self.get(index).ok_or(PickleError::Memo { index: u64::from(index), at })
    }

    /// The value of an entry in a page. `None` also for entries in the map and for lists and dicts.
    #[inline]
    pub(crate) fn get_paged(&self, index: u32) -> Option<Value> {
        self.compact(index).value().filter(|value| value.is_final())
    }

    /// The value of one of the first 256 entries. `None` also for lists and dicts.
    #[inline]
    pub(crate) fn get_direct(&self, index: u8) -> Option<Value> {
        Some(self.direct[usize::from(index)]).filter(|value| value.is_final())
    }

    /// Whether the indices have had no gap, so that the next one can be appended.
    #[inline]
    pub(crate) fn is_dense(&self) -> bool {
        self.written as usize == self.len && !self.has_gap
    }

    /// Writes the next entry. Returns false, with nothing written, if `index` is not the next one.
    #[inline]
    pub(crate) fn append(&mut self, index: u32, value: Value) -> bool {
        let is_next = index as usize == self.len && !self.has_gap;
        if is_next {
            let next = self.reserve_next();
            self.set(next, value);
        }
        is_next
    }

    /// Allocates the next entry, where no index was far ahead. The caller must write it before
    /// anything reads it.
    #[inline]
    pub(crate) fn reserve_next(&mut self) -> u32 {
        if self.len == self.pages.len() * PAGE_ENTRIES {
            self.add_page();
        }
        self.len += 1;
        self.written += 1;
        self.len as u32 - 1
    }

    /// Writes an entry. Returns whether it had been written before.
    pub(crate) fn put(&mut self, index: u32, value: Value) -> bool {
        let again = self.get(index).is_some();
        self.written += u32::from(!again);
        let is_far = index as usize >= self.len
            && index as usize >= 2 * self.written as usize + MAX_GAP_ENTRIES;
        if is_far {
            self.has_gap = true;
            self.overflow.insert(index, value);
            return again;
        }
        self.len = self.len.max(index as usize + 1);
        while self.pages.len() * PAGE_ENTRIES < self.len {
            self.add_page();
        }
        self.set(index, value);
        again
    }

    /// Replaces an entry's container `from` by the sink's value `to`, unless the entry has changed.
    #[inline]
    pub(crate) fn redirect(&mut self, index: u32, from: Value, to: Value) {
        let is_it = match self.compact(index) {
            CompactValue::NONE => self.overflow.get(&index) == Some(&from),
            compact => compact == from.compact(),
        };
        if !is_it {
            return;
        }
        if (index as usize) < self.len {
            self.set(index, to);
        } else {
            self.overflow.insert(index, to);
        }
    }

    /// Writes an entry that has its place in a page.
    #[inline]
    pub(crate) fn set(&mut self, index: u32, value: Value) {
        let (at, compact) = (index as usize, value.compact());
        self.pages[at / PAGE_ENTRIES][at % PAGE_ENTRIES] = compact;
        if at < DIRECT_ENTRIES || compact == CompactValue::NONE {
            self.set_overflow(index, value);
        }
    }

    #[cold]
    fn set_overflow(&mut self, index: u32, value: Value) {
        if let Some(first) = self.direct.get_mut(index as usize) {
            *first = value;
        }
        if value.compact() == CompactValue::NONE {
            self.overflow.insert(index, value);
        }
    }

    #[cold]
    fn add_page(&mut self) {
        let page = vec![CompactValue::NONE; PAGE_ENTRIES].into_boxed_slice();
        self.pages.push(page.try_into().expect("the vector has PAGE_ENTRIES entries"));
    }

    /// The index that MEMOIZE assigns: the number of entries.
    pub(crate) fn next_index(&self) -> u32 {
        self.written
    }

    /// The number of entries.
    pub(crate) fn len(&self) -> usize {
        self.written as usize
    }

    pub(crate) fn memory(&self) -> usize {
        self.pages.len() * size_of::<[CompactValue; PAGE_ENTRIES]>()
            + self.overflow.capacity() * 16
            + size_of_val(&self.direct)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_far_ahead_allocate_nothing() {
        let mut memo = Memo::default();
        memo.put(u32::MAX, Value::NONE);
        memo.put(0, Value::bool(true));
        assert_eq!(memo.get(u32::MAX), Some(Value::NONE));
        assert_eq!(memo.get(0), Some(Value::bool(true)));
        assert_eq!(memo.get(1), None);
        assert!(memo.memory() < 1 << 17);
        assert!(!memo.is_dense() && !memo.append(1, Value::NONE));
    }

    #[test]
    fn sparse_indices_take_memory_per_entry() {
        for step in [2, 3, 100, 4095, 4097, 100_000] {
            let mut memo = Memo::default();
            let count = 40_000;
            for i in 0..count {
                memo.put(i * step, Value::int(1));
            }
            assert!(memo.memory() < 50 * count as usize, "step {step}: {}", memo.memory());
            assert!((0..count).all(|i| memo.get(i * step) == Some(Value::int(1))), "step {step}");
            assert_eq!(memo.get(1), None);
        }
    }

    #[test]
    fn values_of_every_size_are_stored() {
        let values = [
            Value::NONE,
            Value::ext(3, 7),
            Value::ext(200, 7),
            Value::ext(3, u32::MAX),
            Value::int(-1),
        ];
        let mut memo = Memo::default();
        let count = 2 * PAGE_ENTRIES as u32 + 9;
        for index in 0..count {
            assert!(memo.append(index, values[index as usize % 5]));
        }
        assert!(memo.is_dense());
        for index in 0..count {
            assert_eq!(memo.get(index), Some(values[index as usize % 5]), "{index}");
        }
        assert_eq!([memo.get_paged(6), memo.get_paged(7)], [Some(values[1]), None]);
        assert_eq!(memo.get_direct(7), Some(values[2]));
        // A full value replaces a compact one, and the reverse.
        assert!(memo.put(7, Value::NONE) && memo.put(6, Value::int(-1)));
        assert_eq!([7, 6].map(|index| memo.get(index)), [Some(Value::NONE), Some(Value::int(-1))]);
        memo.redirect(6, Value::int(-1), Value::ext(1, 1));
        memo.redirect(8, Value::int(-1), Value::ext(1, 1));
        assert_eq!([6, 8].map(|index| memo.get(index)), [Some(Value::ext(1, 1)), Some(values[3])]);
        assert_eq!(memo.len(), count as usize);
    }

    #[test]
    fn entries_take_four_bytes() {
        let mut memo = Memo::default();
        let count = 100 * PAGE_ENTRIES as u32;
        for index in 0..count {
            memo.append(index, Value::ext(0, index));
        }
        assert!(memo.memory() <= 4 * count as usize + 4096, "{}", memo.memory());
    }
}
