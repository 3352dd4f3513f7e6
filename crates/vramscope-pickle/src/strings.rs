//! Interned strings.

use crate::value::StrId;
use hashbrown::HashTable;
use rustc_hash::FxHasher;
use std::hash::Hasher as _;

/// An interning table of byte strings. Ids count from zero in the order of first occurrence.
///
/// Bytes are stored as written: Python writes lone surrogates as bytes that are not valid UTF-8.
#[derive(Default, Clone)]
pub struct Strings {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    table: HashTable<u32>,
    /// A direct-mapped cache of short strings: bytes and length in one word, and the id.
    recent: Vec<(u64, StrId)>,
}

/// Slots of `recent`.
const RECENT_STRINGS: usize = 64;
/// A word that no string has.
const NO_WORD: u64 = u64::MAX;

/// A multiplier without a pattern in its bits (2^64 divided by the golden ratio).
pub(crate) const HASH_MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(bytes);
    hasher.finish()
}

impl Strings {
    /// Creates a table that gives the first ids to `known`, in order.
    pub fn with_known(known: &[&str]) -> Self {
        let mut strings = Self::default();
        for s in known {
            strings.intern(s.as_bytes());
        }
        strings
    }

    /// The id of these bytes, added if they are new.
    pub fn intern(&mut self, bytes: &[u8]) -> StrId {
        // Pickles repeat some short strings ("N/A") in every event.
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

    /// The string as text. Invalid UTF-8 becomes U+FFFD.
    pub fn text(&self, id: StrId) -> std::borrow::Cow<'_, str> {
        let bytes = self.bytes(id);
        // `from_utf8` checks many bytes at a time; `from_utf8_lossy` checks one.
        str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Into::into)
    }

    /// The number of distinct strings.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether the table is empty.
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

/// Inserts a new index with this hash. `hash_of` rehashes the other indices when the table grows.
// Out of line, so that all tables share the code.
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
