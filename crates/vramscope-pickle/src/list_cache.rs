//! A cache of lists that consist of memo references, keyed by their bytes.
//!
//! In files with much sharing most bytes are memo references, in lists that occur again and again.
//! Looking up every reference and calling the sink for every list costs far more than comparing the
//! bytes with those of a known list.

use crate::opcode as op;
use crate::strings::{HASH_MULTIPLIER, insert_new};
use crate::value::Value;
use hashbrown::HashTable;

/// Limit of the cached bytes. When it is reached, the cache is cleared.
const MAX_CACHE_BYTES: usize = 1 << 22;

/// Byte runs of references, each with the sink's value for the list that it fills.
#[derive(Default)]
pub(crate) struct ListCache {
    bytes: Vec<u8>,
    entries: Vec<CachedList>,
    /// Indices into `entries`, by hash.
    table: HashTable<u32>,
    predictor: ListPredictor,
}

/// Predicts the next list from the last three.
struct ListPredictor {
    /// The last three lists, ten bits each. In a training step most stacks have several successors,
    /// and the lists before tell which one comes.
    history: u32,
    /// The last successor of a history, by the history's hash.
    successors: Box<[u32; 1 << PREDICTOR_BITS]>,
}

/// The predictor has 2^11 slots, 8 KiB: enough for the loops of a training step.
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

    /// The predicted list.
    #[inline]
    fn next_list(&self) -> u32 {
        self.successors[self.slot()]
    }

    /// Appends to the history after a correct prediction.
    #[inline]
    fn advance(&mut self, list: u32) {
        self.history = (self.history << 10 ^ list) % (1 << 30);
    }

    /// Appends to the history after a misprediction, and stores the right successor.
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

/// The length in bytes of the references at the start of `bytes`, APPENDS included. `None` if
/// another opcode is among them or their end is missing.
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

/// The memo indices of a run of references.
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

/// Hashes 16 bytes at a time in two lanes, so that their multiplications overlap.
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
    // The table uses the lowest and highest bits. The middle bits of a product depend on most of
    // its factors.
    step(a, b).rotate_left(26)
}

/// `==`, which compares byte by byte in WebAssembly. There this compares 16 bytes at a time, and
/// the last 16 once more.
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
    /// The value and the length of the run at the start of `bytes`, if it is the predicted one.
    /// Programs repeat themselves, so it mostly is. The comparison needs no search for the end: no
    /// run is a prefix of another.
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

    /// The value and the length of the run at the start of `bytes`, on a cache hit.
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

    /// Clears the cache, because a memo entry was overwritten.
    pub(crate) fn forget(&mut self) {
        if !self.entries.is_empty() {
            // Replaced, not cleared: clearing takes time proportional to the table's capacity.
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
    fn references_end_with_appends() {
        assert_eq!(references_len(b"h\x01j\x01\0\0\0ee"), Some(8));
        assert_eq!(references_len(b"e"), Some(1));
        assert_eq!(references_len(b"h\x01j\x01\0\0\0"), None);
        assert_eq!(references_len(b"h\x01j\x01\0"), None);
        assert_eq!(references_len(b"h"), None);
        assert_eq!(references_len(b"h\x01Ne"), None);
        // A byte of an operand that equals an opcode.
        assert_eq!(references_len(b"jeeeee"), Some(6));
        assert_eq!(memo_indices(b"h\x07j\x01\x02\0\0he").collect::<Vec<_>>(), [7, 513, 101]);
    }

    #[test]
    fn cache_memory_is_bounded() {
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
    fn predictor_uses_the_lists_before() {
        let run = |list: u8| [op::BINGET, list, op::APPENDS];
        let mut cache = ListCache::default();
        for list in 0..5 {
            cache.insert(&run(list), Value::int(list.into()));
        }
        // List 1 is followed by 2 or 4, depending on the list before it.
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
    fn hash_depends_on_every_byte() {
        let run: Vec<u8> = (0..40).collect();
        for i in 0..run.len() {
            let mut other = run.clone();
            other[i] ^= 0x80;
            assert_ne!(hash(&run), hash(&other));
            assert_ne!(hash(&run[..i]), hash(&run));
        }
    }
}
