//! The memo: values by number.

use crate::error::{ByteOffset, PickleError};
use crate::value::{CompactValue, Value};
use rustc_hash::FxHashMap;

/// Entries that [`op::BINGET`](crate::opcode::BINGET) can refer to.
const DIRECT_ENTRIES: usize = 256;
/// Entries of a page.
const PAGE_ENTRIES: usize = 1 << 14;
/// How far ahead of the last a number may be to be kept in pages.
const MAX_GAP_ENTRIES: usize = 4096;

type Page = Box<[CompactValue; PAGE_ENTRIES]>;

/// In pages, four bytes an entry, while the numbers follow each other, as every pickler writes
/// them: a file of 10 GB has 150 million entries, and pages are never copied. What does not fit
/// there, and numbers far ahead, go into a map, so that no number, however large, reserves memory
/// for those before it.
pub(crate) struct Memo {
    /// The first entries once more, as they are: every second operation refers to one of them.
    direct: [Value; DIRECT_ENTRIES],
    pages: Vec<Page>,
    /// Entries in pages.
    len: usize,
    overflow: FxHashMap<u32, Value>,
    /// Some numbers were far ahead.
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
    /// The value; an open container, too, which has to become an object before anything else may
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

    /// The value, or the error of a reference to what is not there, at `at` in the stream.
    pub(crate) fn recall(&self, index: u32, at: ByteOffset) -> Result<Value, PickleError> {
        self.get(index).ok_or(PickleError::Memo { index: u64::from(index), at })
    }

    /// The value of an entry that is kept in a page; `None` also when it has to be looked for
    /// elsewhere, or is open.
    #[inline]
    pub(crate) fn get_paged(&self, index: u32) -> Option<Value> {
        self.compact(index).value().filter(|value| value.is_value())
    }

    /// The same of one of the first entries.
    #[inline]
    pub(crate) fn get_direct(&self, index: u8) -> Option<Value> {
        Some(self.direct[usize::from(index)]).filter(|value| value.is_value())
    }

    /// Whether the numbers had no gap so far, so that the next one can be appended.
    #[inline]
    pub(crate) fn is_dense(&self) -> bool {
        self.written as usize == self.len && !self.has_gap
    }

    /// Write the entry that follows all others; false, with nothing written, when it is another
    /// one.
    #[inline]
    pub(crate) fn append(&mut self, index: u32, value: Value) -> bool {
        let is_next = index as usize == self.len && !self.has_gap;
        if is_next {
            let next = self.reserve_next();
            self.set(next, value);
        }
        is_next
    }

    /// Makes room for the entry that follows all others, where no number had been far ahead. It
    /// counts as written, and has to be: nothing may ask for it before.
    #[inline]
    pub(crate) fn reserve_next(&mut self) -> u32 {
        if self.len == self.pages.len() * PAGE_ENTRIES {
            self.add_page();
        }
        self.len += 1;
        self.written += 1;
        self.len as u32 - 1
    }

    /// Write an entry. Says whether it had been written before.
    pub(crate) fn put(&mut self, index: u32, value: Value) -> bool {
        let again = self.get(index).is_some();
        self.written += u32::from(!again);
        if index as usize >= self.len + MAX_GAP_ENTRIES {
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

    /// Let an entry refer to what a sink put in its object's place.
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

    /// Write an entry that has its place in a page.
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
        self.pages.push(page.try_into().expect("it was made of so many"));
    }

    /// The number that MEMOIZE gives: how many entries there are.
    pub(crate) fn next_index(&self) -> u32 {
        self.written
    }

    /// How many entries there are.
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
    fn numbers_far_ahead_reserve_nothing() {
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
    fn every_value_comes_back_also_one_that_fits_no_page() {
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
        // What no page could hold is written over by what one can, and the other way round.
        assert!(memo.put(7, Value::NONE) && memo.put(6, Value::int(-1)));
        assert_eq!([7, 6].map(|index| memo.get(index)), [Some(Value::NONE), Some(Value::int(-1))]);
        memo.redirect(6, Value::int(-1), Value::ext(1, 1));
        memo.redirect(8, Value::int(-1), Value::ext(1, 1));
        assert_eq!([6, 8].map(|index| memo.get(index)), [Some(Value::ext(1, 1)), Some(values[3])]);
        assert_eq!(memo.len(), count as usize);
    }

    #[test]
    fn an_entry_takes_four_bytes() {
        let mut memo = Memo::default();
        let count = 100 * PAGE_ENTRIES as u32;
        for index in 0..count {
            memo.append(index, Value::ext(0, index));
        }
        assert!(memo.memory() <= 4 * count as usize + 4096, "{}", memo.memory());
    }
}
