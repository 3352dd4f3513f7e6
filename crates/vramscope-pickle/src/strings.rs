//! Strings, each stored once.

use crate::value::StrId;
use hashbrown::HashTable;
use rustc_hash::FxHasher;
use std::hash::Hasher as _;

/// An interning table of byte strings. Ids count from zero in the order of first sight.
///
/// Bytes are kept as they came: Python writes lone surrogates as bytes that are not valid UTF-8.
#[derive(Default, Clone)]
pub struct Strings {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    table: HashTable<u32>,
    /// Short strings that were met lately, by their bytes and length in one number.
    recent: Vec<(u64, StrId)>,
}

/// How many strings `recent` holds.
const RECENT_STRINGS: usize = 64;
/// The number of no string: none is so long.
const NO_WORD: u64 = u64::MAX;

/// A multiplier with no pattern in its bits.
pub(crate) const HASH_MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(bytes);
    hasher.finish()
}

impl Strings {
    /// A table with the first ids given to these strings, in order.
    pub fn with_known(known: &[&str]) -> Self {
        let mut strings = Self::default();
        for s in known {
            strings.intern(s.as_bytes());
        }
        strings
    }

    /// The id of these bytes, stored if they are new.
    pub fn intern(&mut self, bytes: &[u8]) -> StrId {
        // Pickles repeat some short strings ("N/A") once an event.
        if bytes.len() > 7 {
            return self.intern_hashed(bytes);
        }
        let word = bytes.iter().fold(bytes.len() as u64, |word, &byte| word << 8 | u64::from(byte));
        let place = (word.wrapping_mul(HASH_MULTIPLIER) >> 58) as usize;
        match self.recent.get(place) {
            Some(&(known, id)) if known == word => id,
            _ => {
                let id = self.intern_hashed(bytes);
                self.recent.resize(RECENT_STRINGS, (NO_WORD, StrId(0)));
                self.recent[place] = (word, id);
                id
            }
        }
    }

    fn intern_hashed(&mut self, bytes: &[u8]) -> StrId {
        let hash_of = |id: u32, ends: &[usize], all: &[u8]| hash(slice(ends, all, id));
        let (ends, all) = (&self.ends, &self.bytes);
        let h = hash(bytes);
        if let Some(&id) = self.table.find(h, |&id| slice(ends, all, id) == bytes) {
            return StrId(id);
        }
        let id = self.ends.len() as u32;
        self.bytes.extend_from_slice(bytes);
        self.ends.push(self.bytes.len());
        let (ends, all) = (&self.ends, &self.bytes);
        insert_new(&mut self.table, h, id, &|&id| hash_of(id, ends, all));
        StrId(id)
    }

    /// The bytes of a string.
    pub fn bytes(&self, id: StrId) -> &[u8] {
        slice(&self.ends, &self.bytes, id.0)
    }

    /// The string for people; bytes that are not UTF-8 become U+FFFD.
    pub fn text(&self, id: StrId) -> std::borrow::Cow<'_, str> {
        let bytes = self.bytes(id);
        // This looks at many bytes at a time, while what mends looks at one.
        str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Into::into)
    }

    /// How many distinct strings there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Bytes of memory that the table holds.
    pub fn memory(&self) -> usize {
        self.bytes.capacity()
            + self.ends.capacity() * size_of::<usize>()
            + self.table.allocation_size()
            + self.recent.capacity() * size_of::<(u64, StrId)>()
    }
}

/// Put an index that is not there yet into a table, under this hash; `hash_of` tells those of the
/// others, should it grow.
// Tables share one such function, which keeps the page's module small.
#[inline(never)]
pub fn insert_new(
    table: &mut HashTable<u32>,
    hash: u64,
    index: u32,
    hash_of: &dyn Fn(&u32) -> u64,
) {
    table.insert_unique(hash, index, hash_of);
}

fn slice<'a>(ends: &[usize], all: &'a [u8], id: u32) -> &'a [u8] {
    let id = id as usize;
    &all[if id == 0 { 0 } else { ends[id - 1] }..ends[id]]
}

impl std::fmt::Debug for Strings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries((0..self.len() as u32).map(|i| self.text(StrId(i)))).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_strings_share_an_id() {
        let mut strings = Strings::with_known(&["action", "addr"]);
        assert_eq!(strings.intern(b"addr"), StrId(1));
        assert_eq!(strings.intern(b""), StrId(2));
        assert_eq!(strings.intern(b"\xed\xb2\x80"), StrId(3));
        assert_eq!(strings.bytes(StrId(3)), b"\xed\xb2\x80");
        assert_eq!(strings.bytes(StrId(2)), b"");
        assert_eq!(strings.len(), 4);
    }
}
