//! Lists of references that were read before: the same bytes are the same list.
//!
//! In files with much sharing most bytes are memo references, in lists that come again and again.
//! Looking every reference up, and asking the sink about every list, costs far more than comparing
//! the bytes with those of last time.

use crate::opcode as op;
use crate::strings::{HASH_MULTIPLIER, insert_new};
use crate::value::Value;
use hashbrown::HashTable;

/// What the lists' bytes may take together; when it is full, all is forgotten and learnt anew.
const MAX_CACHE_BYTES: usize = 1 << 22;

/// ListCache of references, and what the sink made of the lists that they filled.
#[derive(Default)]
pub(crate) struct ListCache {
    bytes: Vec<u8>,
    entries: Vec<CachedList>,
    /// Indices into `known` by hash.
    table: HashTable<u32>,
    predictor: ListPredictor,
}

/// What came before, and what came after it when it was last so.
struct ListPredictor {
    /// The last three lists, ten bits each: in a training step most stacks have several that may
    /// come next, and what came before tells which.
    history: u32,
    /// Which came next, by a hash of those three.
    successors: Box<[u32; 1 << PREDICTOR_BITS]>,
}

/// Two to this power are as many as the loops of a training step need, and take 8 KiB.
const PREDICTOR_BITS: u32 = 11;

impl Default for ListPredictor {
    fn default() -> Self {
        Self { history: 0, successors: Box::new([0; 1 << PREDICTOR_BITS]) }
    }
}

impl ListPredictor {
    #[inline]
    fn slot(&self) -> usize {
        (self.history.wrapping_mul(HASH_MULTIPLIER as u32) >> (u32::BITS - PREDICTOR_BITS)) as usize
    }

    /// The list that will probably come.
    #[inline]
    fn next_list(&self) -> u32 {
        self.successors[self.slot()]
    }

    /// The one that was guessed has come.
    #[inline]
    fn advance(&mut self, list: u32) {
        self.history = (self.history << 10 ^ list) % (1 << 30);
    }

    /// Another one has come.
    fn learn(&mut self, list: u32) {
        self.successors[self.slot()] = list;
        self.advance(list);
    }
}

struct CachedList {
    start: u32,
    len: u32,
    value: Value,
}

impl CachedList {
    fn bytes<'a>(&self, all: &'a [u8]) -> &'a [u8] {
        &all[self.start as usize..][..self.len as usize]
    }
}

/// How many bytes the references from the start of `bytes` on take with the APPENDS after them;
/// `None` when something else is among them or their end is not here.
pub(crate) fn references_len(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        match *bytes.get(at)? {
            op::LONG_BINGET => at += 5,
            op::BINGET => at += 2,
            op::APPENDS => return Some(at + 1),
            _ => return None,
        }
    }
}

/// The numbers that a run refers to.
pub(crate) fn memo_indices(mut run: &[u8]) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || match *run {
        [op::LONG_BINGET, a, b, c, d, ref rest @ ..] => {
            run = rest;
            Some(u32::from_le_bytes([a, b, c, d]))
        }
        [op::BINGET, index, ref rest @ ..] => {
            run = rest;
            Some(u32::from(index))
        }
        _ => None,
    })
}

/// Sixteen bytes at a time in two lanes, so that one multiplication need not wait for the other.
#[inline(never)]
fn hash(run: &[u8]) -> u64 {
    let word = |bytes: &[u8; 16]| {
        let word = u128::from_le_bytes(*bytes);
        (word as u64, (word >> 64) as u64)
    };
    let step = |lane: u64, word: u64| (lane.rotate_left(5) ^ word).wrapping_mul(HASH_MULTIPLIER);
    let (blocks, rest) = run.as_chunks::<16>();
    let mut last = [0; 16];
    last[..rest.len()].copy_from_slice(rest);
    let (mut a, mut b) = (run.len() as u64, HASH_MULTIPLIER);
    for block in blocks.iter().chain([&last]) {
        let (low, high) = word(block);
        (a, b) = (step(a, low), step(b, high));
    }
    // The table takes the lowest bits and the highest; the middle ones of a product depend on most
    // of its factors.
    step(a, b).rotate_left(26)
}

/// As `==`, which goes byte by byte in WebAssembly: there sixteen at a time, and the last sixteen
/// once more.
#[inline]
fn equal(a: &[u8], b: &[u8]) -> bool {
    if cfg!(not(target_family = "wasm")) {
        return a == b;
    }
    let same = |(a, b): (&[u8; 16], &[u8; 16])| u128::from_le_bytes(*a) == u128::from_le_bytes(*b);
    match (a.last_chunk::<16>(), b.last_chunk::<16>()) {
        (Some(last), Some(other)) => {
            a.len() == b.len()
                && same((last, other))
                && a.as_chunks().0.iter().zip(b.as_chunks().0).all(same)
        }
        _ => a == b,
    }
}

impl ListCache {
    /// The value for the run at the start of `bytes`, and how long it is, if it is the one that
    /// came after the last ones before. Programs repeat themselves, so it mostly is; and where it
    /// ends need not be looked for, because no run is the beginning of another.
    #[inline]
    fn predict(&mut self, bytes: &[u8]) -> Option<(Value, usize)> {
        let next = self.predictor.next_list();
        let known = self.entries.get(next as usize)?;
        let run = known.bytes(&self.bytes);
        if !bytes.get(..run.len()).is_some_and(|start| equal(start, run)) {
            return None;
        }
        let found = (known.value, run.len());
        self.predictor.advance(next);
        Some(found)
    }

    /// The value for the run at the start of `bytes`, and how long it is, if it was there before.
    #[inline]
    pub(crate) fn lookup(&mut self, bytes: &[u8]) -> Option<(Value, usize)> {
        if let Some(expected) = self.predict(bytes) {
            return Some(expected);
        }
        self.lookup_by_hash(bytes)
    }

    #[inline(never)]
    fn lookup_by_hash(&mut self, bytes: &[u8]) -> Option<(Value, usize)> {
        let run = &bytes[..references_len(bytes)?];
        let hash = hash(run);
        let is_it = |&index: &u32| equal(self.entries[index as usize].bytes(&self.bytes), run);
        let index = *self.table.find(hash, is_it)?;
        self.predictor.learn(index);
        Some((self.entries[index as usize].value, run.len()))
    }

    pub(crate) fn insert(&mut self, run: &[u8], value: Value) {
        if run.len() > MAX_CACHE_BYTES - self.bytes.len() {
            self.forget();
            if run.len() > MAX_CACHE_BYTES {
                return;
            }
        }
        let index = self.entries.len() as u32;
        self.entries.push(CachedList {
            start: self.bytes.len() as u32,
            len: run.len() as u32,
            value,
        });
        self.bytes.extend_from_slice(run);
        let (known, bytes) = (&self.entries, &self.bytes);
        insert_new(&mut self.table, hash(run), index, &|&i| hash(known[i as usize].bytes(bytes)));
        self.predictor.learn(index);
    }

    /// A memo entry means something else from now on.
    pub(crate) fn forget(&mut self) {
        if !self.entries.is_empty() {
            // Not cleared but dropped: clearing costs as much as the table is large, however little
            // is in it.
            *self = Self::default();
        }
    }

    pub(crate) fn memory(&self) -> usize {
        self.bytes.capacity()
            + self.entries.capacity() * size_of::<CachedList>()
            + self.table.allocation_size()
            + size_of_val(&*self.predictor.successors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_ends_with_its_appends() {
        assert_eq!(references_len(b"h\x01j\x01\0\0\0ee"), Some(8));
        assert_eq!(references_len(b"e"), Some(1));
        assert_eq!(references_len(b"h\x01j\x01\0\0\0"), None);
        assert_eq!(references_len(b"h\x01j\x01\0"), None);
        assert_eq!(references_len(b"h"), None);
        assert_eq!(references_len(b"h\x01Ne"), None);
        // What stands in an operand is no opcode.
        assert_eq!(references_len(b"jeeeee"), Some(6));
        assert_eq!(memo_indices(b"h\x07j\x01\x02\0\0he").collect::<Vec<_>>(), [7, 513, 101]);
    }

    #[test]
    fn memory_is_bounded() {
        let mut cache = ListCache::default();
        for i in 0..3000u32 {
            let mut run = [b"j".as_slice(), &i.to_le_bytes(), b"h\0"].concat();
            run.resize(4001, b'h');
            run.push(op::APPENDS);
            assert_eq!(cache.lookup(&run), None);
            cache.insert(&run, Value::ext(0, i));
            assert_eq!(cache.lookup(&run), Some((Value::ext(0, i), run.len())));
        }
        assert!(cache.memory() <= 3 * MAX_CACHE_BYTES, "{}", cache.memory());
        let mut long = vec![b'h'; MAX_CACHE_BYTES + 2];
        long.push(op::APPENDS);
        assert_eq!(references_len(&long), Some(long.len()));
        cache.insert(&long, Value::NONE);
        assert_eq!(cache.lookup(&long), None);
    }

    #[test]
    fn what_came_before_tells_what_comes() {
        let run = |list: u8| [op::BINGET, list, op::APPENDS];
        let mut cache = ListCache::default();
        for list in 0..5 {
            cache.insert(&run(list), Value::int(list.into()));
        }
        // After 1 comes 2 or 4: the list in front of it says which.
        let step = [0, 1, 2, 3, 1, 4];
        let mut guessed = 0;
        for list in step.repeat(10) {
            let expected = cache.predict(&run(list));
            guessed += usize::from(expected.is_some());
            assert_eq!(
                expected.or_else(|| cache.lookup_by_hash(&run(list))),
                Some((Value::int(list.into()), 3))
            );
        }
        assert!(guessed >= 9 * step.len(), "{guessed}");
    }

    #[test]
    fn every_byte_counts() {
        let run: Vec<u8> = (0..40).collect();
        for i in 0..run.len() {
            let mut other = run.clone();
            other[i] ^= 0x80;
            assert_ne!(hash(&run), hash(&other));
            assert_ne!(hash(&run[..i]), hash(&run));
        }
    }
}
