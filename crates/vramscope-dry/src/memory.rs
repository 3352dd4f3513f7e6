//! Addresses of device memory, in the order in which a driver gives them out.
//!
//! PyTorch takes the lowest of free blocks of equal size, so this order decides how much memory is
//! reserved. The rule was read off recordings of an H100:
//!
//! - Memory comes in chunks of 32 MiB, or the next multiple for a larger request. A chunk holds
//!   pieces of 2 MiB or a multiple.
//! - The newest chunk with a large enough hole serves a request, from below.
//! - Without a hole, a new chunk goes directly below the lowest chunk, or into the highest gap that
//!   an earlier chunk left, if it fits. A chunk without pieces is given back.
//! - The context holds 8 MiB of the first chunk and, below it, a scratch area of 414 of 416 MiB.
//!   The driver gives the scratch area back before the fourth request. Before the second request
//!   it takes 2 and 26 MiB for code.

use std::collections::{BTreeMap, BTreeSet};

#[cfg(test)]
mod tests;

/// The size of a piece is a multiple of this many bytes.
pub(crate) const PIECE: u64 = 2 << 20;

/// The size of a chunk is a multiple of this many bytes.
const CHUNK: u64 = 32 << 20;

/// Memory of the first chunk that belongs to the context, in bytes.
const CONTEXT: u64 = 8 << 20;

/// The chunk with the scratch area of the context, in bytes. All but its last piece is taken.
const SCRATCH: u64 = 13 * CHUNK;

/// Memory that the driver takes for code before the second request, in bytes.
const CODE: [u64; 2] = [PIECE, 13 * PIECE];

/// Rounds `bytes` up to a multiple of `unit`. `None`: the result does not fit into 64 bits.
pub(crate) fn round_up(bytes: u64, unit: u64) -> Option<u64> {
    bytes.checked_next_multiple_of(unit)
}

/// The addresses of one device.
#[derive(Debug)]
pub(crate) struct Addresses {
    /// Chunks by their first address.
    chunks: BTreeMap<u64, Chunk>,
    /// Age and first address of chunks with holes, by the largest hole.
    open: BySize<(u64, u64)>,
    /// Sizes of the gaps between chunks, by first address.
    gaps: BTreeMap<u64, u64>,
    /// First addresses of gaps, by size.
    gaps_by_size: BySize<u64>,
    /// Sizes of pieces in use, by first address.
    pieces: BTreeMap<u64, u64>,
    /// The age of the next chunk.
    age: u64,
    /// Requests until now.
    requests: u64,
    /// The first address of the memory that the context keeps.
    context: u64,
    /// The first address of the scratch area.
    scratch: u64,
}

/// A chunk of memory.
#[derive(Debug)]
struct Chunk {
    /// In bytes.
    size: u64,
    /// Newer chunks have greater ages.
    age: u64,
    /// Sizes of holes, by first address.
    holes: BTreeMap<u64, u64>,
}

impl Chunk {
    /// The size of the largest hole, in bytes.
    fn largest_hole(&self) -> u64 {
        self.holes.values().copied().max().unwrap_or(0)
    }
}

impl Addresses {
    /// The addresses of a device whose context has just been made. Both bounds are multiples of
    /// the size of a chunk.
    pub(crate) fn new(first: u64, end: u64) -> Self {
        let mut new = Self {
            chunks: BTreeMap::new(),
            open: BySize::default(),
            gaps: BTreeMap::new(),
            gaps_by_size: BySize::default(),
            pieces: BTreeMap::new(),
            age: 0,
            requests: 0,
            context: end - CHUNK,
            scratch: end - CHUNK - SCRATCH,
        };
        new.add_gap(first, end - first);
        // The second area fits into no chunk with a hole: it gets a chunk of its own.
        new.place(CONTEXT);
        new.place(SCRATCH - PIECE);
        new
    }

    /// The address of `size` bytes, a multiple of a piece. `None`: no range is large enough.
    pub(crate) fn request(&mut self, size: u64) -> Option<u64> {
        self.requests += 1;
        match self.requests {
            2 => CODE.map(|size| self.place(size)).into_iter().for_each(drop),
            4 => drop(self.release(self.scratch)),
            _ => {}
        }
        self.place(size)
    }

    /// Gives back the piece that begins at `address`, and returns its size in bytes.
    pub(crate) fn release(&mut self, address: u64) -> Option<u64> {
        let size = self.pieces.remove(&address)?;
        let (&first, chunk) = self.chunks.range_mut(..=address).next_back()?;
        self.open.remove(chunk.largest_hole(), (chunk.age, first));
        join(&mut chunk.holes, address, size);
        if chunk.largest_hole() < chunk.size {
            self.open.insert(chunk.largest_hole(), (chunk.age, first));
        } else {
            let size = chunk.size;
            self.chunks.remove(&first);
            self.add_gap(first, size);
        }
        Some(size)
    }

    /// The piece that `address` lies in: its first address and size in bytes.
    pub(crate) fn piece(&self, address: u64) -> Option<(u64, u64)> {
        let (&first, &size) = self.pieces.range(..=address).next_back()?;
        (address < first + size).then_some((first, size))
    }

    /// The first addresses of all pieces.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = u64> {
        self.pieces.keys().copied()
    }

    /// The first address of the memory that the context keeps.
    pub(crate) fn context(&self) -> u64 {
        self.context
    }

    /// Takes `size` bytes by the rule.
    fn place(&mut self, size: u64) -> Option<u64> {
        let first = match self.open.greatest(size) {
            Some((_, first)) => first,
            None => self.add_chunk(round_up(size, CHUNK)?)?,
        };
        let chunk = self.chunks.get_mut(&first)?;
        self.open.remove(chunk.largest_hole(), (chunk.age, first));
        let (&hole, &room) = chunk.holes.iter().find(|&(_, &room)| room >= size)?;
        chunk.holes.remove(&hole);
        if room > size {
            chunk.holes.insert(hole + size, room - size);
        }
        self.open.insert(chunk.largest_hole(), (chunk.age, first));
        self.pieces.insert(hole, size);
        Some(hole)
    }

    /// Makes an empty chunk of `size` bytes in the highest gap with room, and returns its first
    /// address.
    fn add_chunk(&mut self, size: u64) -> Option<u64> {
        let gap = self.gaps_by_size.greatest(size)?;
        let room = self.gaps.remove(&gap)?;
        self.gaps_by_size.remove(room, gap);
        if room > size {
            self.gaps.insert(gap, room - size);
            self.gaps_by_size.insert(room - size, gap);
        }
        let first = gap + room - size;
        self.age += 1;
        let chunk = Chunk { size, age: self.age, holes: BTreeMap::from([(first, size)]) };
        self.open.insert(size, (chunk.age, first));
        self.chunks.insert(first, chunk);
        Some(first)
    }

    /// Adds a gap and joins it with its neighbors.
    fn add_gap(&mut self, first: u64, size: u64) {
        let joined = join(&mut self.gaps, first, size);
        for (neighbor, size) in joined.removed.into_iter().flatten() {
            self.gaps_by_size.remove(size, neighbor);
        }
        self.gaps_by_size.insert(joined.size, joined.first);
    }
}

/// A range that grew by its neighbors.
struct Joined {
    /// The first address.
    first: u64,
    /// In bytes.
    size: u64,
    /// First address and size of the neighbors that are part of it now.
    removed: [Option<(u64, u64)>; 2],
}

/// Adds a range to `ranges` (sizes by first address) and joins it with the ranges that it touches.
fn join(ranges: &mut BTreeMap<u64, u64>, mut first: u64, mut size: u64) -> Joined {
    let above = ranges.remove_entry(&(first + size));
    if let Some((_, more)) = above {
        size += more;
    }
    let below = ranges.range(..first).next_back();
    let below = below.map(|(&at, &n)| (at, n)).filter(|(at, n)| at + n == first);
    if let Some((at, more)) = below {
        first = at;
        size += more;
    }
    ranges.insert(first, size);
    Joined { first, size, removed: [above, below] }
}

/// Keys by a size: finds the greatest key among those with enough.
#[derive(Debug)]
struct BySize<K> {
    /// Few sizes occur, so that a search through the sizes is short.
    keys: BTreeMap<u64, BTreeSet<K>>,
}

impl<K> Default for BySize<K> {
    fn default() -> Self {
        Self { keys: BTreeMap::new() }
    }
}

impl<K: Ord + Copy> BySize<K> {
    /// Adds a key. A key of size 0 is never found, so it is not kept.
    fn insert(&mut self, size: u64, key: K) {
        if size > 0 {
            self.keys.entry(size).or_default().insert(key);
        }
    }

    /// Removes a key that was added with this size.
    fn remove(&mut self, size: u64, key: K) {
        if let Some(keys) = self.keys.get_mut(&size) {
            keys.remove(&key);
            if keys.is_empty() {
                self.keys.remove(&size);
            }
        }
    }

    /// The greatest key whose size is at least `size`.
    fn greatest(&self, size: u64) -> Option<K> {
        self.keys.range(size..).filter_map(|(_, keys)| keys.last()).max().copied()
    }
}

/// Address ranges that a program reserves and maps memory into.
#[derive(Debug)]
pub(crate) struct Reservations {
    /// Sizes of ranges that are free, by first address.
    free: BTreeMap<u64, u64>,
    /// Sizes of ranges in use with the space behind them, by first address.
    used: BTreeMap<u64, u64>,
}

/// The space behind a reservation, in bytes: neighbors must not look like one range.
const SPACE: u64 = 1 << 30;

impl Reservations {
    /// All of a range of addresses is free.
    pub(crate) fn new(first: u64, end: u64) -> Self {
        Self { free: BTreeMap::from([(first, end - first)]), used: BTreeMap::new() }
    }

    /// Reserves the lowest range of `size` bytes at a multiple of `alignment`, a power of 2 or 0.
    pub(crate) fn reserve(&mut self, size: u64, alignment: u64) -> Option<u64> {
        let size = round_up(size, PIECE)?.checked_add(SPACE)?;
        let alignment = alignment.max(PIECE);
        let (gap, room, first) = self.free.iter().find_map(|(&gap, &room)| {
            let first = round_up(gap, alignment)?;
            (first.checked_add(size)? <= gap + room).then_some((gap, room, first))
        })?;
        self.free.remove(&gap);
        for (first, size) in [(gap, first - gap), (first + size, gap + room - first - size)] {
            if size > 0 {
                self.free.insert(first, size);
            }
        }
        self.used.insert(first, size);
        Some(first)
    }

    /// Gives back the range that begins at `first`. False: none begins there.
    pub(crate) fn release(&mut self, first: u64) -> bool {
        let size = self.used.remove(&first);
        size.map(|size| join(&mut self.free, first, size)).is_some()
    }

    /// Whether a reserved range contains `size` bytes from `first`.
    pub(crate) fn contains(&self, first: u64, size: u64) -> bool {
        let range = self.used.range(..=first).next_back();
        range.is_some_and(|(&at, &room)| first - at + size <= room - SPACE)
    }
}
