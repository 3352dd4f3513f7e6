//! The memo: values by number.

use crate::error::{ByteOffset, PickleError};
use crate::value::{Brief, Value};
use rustc_hash::FxHashMap;

/// Entries that [`op::BINGET`](crate::opcode::BINGET) can refer to.
const FIRST: usize = 256;
/// Entries of a page.
const PAGE: usize = 1 << 14;
/// How far ahead of the last a number may be to be kept in pages.
const SLACK: usize = 4096;

type Page = Box<[Brief; PAGE]>;

/// In pages, four bytes an entry, while the numbers follow each other, as every pickler writes
/// them: a file of 10 GB has 150 million entries, and pages are never copied. What does not fit
/// there, and numbers far ahead, go into a map, so that no number, however large, reserves memory
/// for those before it.
pub(crate) struct Memo {
    /// The first entries once more, as they are: every second operation refers to one of them.
    first: [Value; FIRST],
    pages: Vec<Page>,
    /// Entries in pages.
    len: usize,
    apart: FxHashMap<u32, Value>,
    /// Some numbers were far ahead.
    ahead: bool,
    written: u32,
}

impl Default for Memo {
    fn default() -> Self {
        Self {
            first: [Value::UNSET; FIRST],
            pages: Vec::new(),
            len: 0,
            apart: FxHashMap::default(),
            ahead: false,
            written: 0,
        }
    }
}

impl Memo {
    /// The value; an open container, too, which has to become an object before anything else may
    /// refer to it.
    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<Value> {
        self.brief(index).value().or_else(|| self.get_apart(index))
    }

    #[cold]
    #[inline(never)]
    fn get_apart(&self, index: u32) -> Option<Value> {
        self.apart.get(&index).copied()
    }

    #[inline]
    fn brief(&self, index: u32) -> Brief {
        let index = index as usize;
        self.pages.get(index / PAGE).map_or(Brief::NONE, |page| page[index % PAGE])
    }

    /// The value, or the error of a reference to what is not there, at `at` in the stream.
    pub(crate) fn recall(&self, index: u32, at: ByteOffset) -> Result<Value, PickleError> {
        self.get(index).ok_or(PickleError::Memo { index: u64::from(index), at })
    }

    /// The value of an entry that is kept in a page; `None` also when it has to be looked for
    /// elsewhere, or is open.
    #[inline]
    pub(crate) fn near(&self, index: u32) -> Option<Value> {
        self.brief(index).value().filter(|value| value.means_something())
    }

    /// The same of one of the first entries.
    #[inline]
    pub(crate) fn first(&self, index: u8) -> Option<Value> {
        Some(self.first[usize::from(index)]).filter(|value| value.means_something())
    }

    /// Whether the numbers had no gap so far, so that the next one can be appended.
    #[inline]
    pub(crate) fn is_dense(&self) -> bool {
        self.written as usize == self.len && !self.ahead
    }

    /// Write the entry that follows all others; false, with nothing written, when it is another
    /// one.
    #[inline]
    pub(crate) fn append(&mut self, index: u32, value: Value) -> bool {
        let is_next = index as usize == self.len && !self.ahead;
        if is_next {
            let next = self.reserve();
            self.set(next, value);
        }
        is_next
    }

    /// Makes room for the entry that follows all others, where no number had been far ahead. It
    /// counts as written, and has to be: nothing may ask for it before.
    #[inline]
    pub(crate) fn reserve(&mut self) -> u32 {
        if self.len == self.pages.len() * PAGE {
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
        if index as usize >= self.len + SLACK {
            self.ahead = true;
            self.apart.insert(index, value);
            return again;
        }
        self.len = self.len.max(index as usize + 1);
        while self.pages.len() * PAGE < self.len {
            self.add_page();
        }
        self.set(index, value);
        again
    }

    /// Let an entry refer to what a sink put in its object's place.
    #[inline]
    pub(crate) fn redirect(&mut self, index: u32, from: Value, to: Value) {
        let is_it = match self.brief(index) {
            Brief::NONE => self.apart.get(&index) == Some(&from),
            brief => brief == from.brief(),
        };
        if !is_it {
            return;
        }
        if (index as usize) < self.len {
            self.set(index, to);
        } else {
            self.apart.insert(index, to);
        }
    }

    /// Write an entry that has its place in a page.
    #[inline]
    pub(crate) fn set(&mut self, index: u32, value: Value) {
        let (at, brief) = (index as usize, value.brief());
        self.pages[at / PAGE][at % PAGE] = brief;
        if at < FIRST || brief == Brief::NONE {
            self.set_apart(index, value);
        }
    }

    #[cold]
    fn set_apart(&mut self, index: u32, value: Value) {
        if let Some(first) = self.first.get_mut(index as usize) {
            *first = value;
        }
        if value.brief() == Brief::NONE {
            self.apart.insert(index, value);
        }
    }

    #[cold]
    fn add_page(&mut self) {
        let page = vec![Brief::NONE; PAGE].into_boxed_slice();
        self.pages.push(page.try_into().expect("it was made of so many"));
    }

    /// The number that MEMOIZE gives: how many entries there are.
    pub(crate) fn next(&self) -> u32 {
        self.written
    }

    /// How many entries there are.
    pub(crate) fn len(&self) -> usize {
        self.written as usize
    }

    pub(crate) fn memory(&self) -> usize {
        self.pages.len() * size_of::<[Brief; PAGE]>()
            + self.apart.capacity() * 16
            + size_of_val(&self.first)
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
        let count = 2 * PAGE as u32 + 9;
        for index in 0..count {
            assert!(memo.append(index, values[index as usize % 5]));
        }
        assert!(memo.is_dense());
        for index in 0..count {
            assert_eq!(memo.get(index), Some(values[index as usize % 5]), "{index}");
        }
        assert_eq!([memo.near(6), memo.near(7)], [Some(values[1]), None]);
        assert_eq!(memo.first(7), Some(values[2]));
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
        let count = 100 * PAGE as u32;
        for index in 0..count {
            memo.append(index, Value::ext(0, index));
        }
        assert!(memo.memory() <= 4 * count as usize + 4096, "{}", memo.memory());
    }
}
