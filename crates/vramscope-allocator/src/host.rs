//! PyTorch's caching allocator for pinned host memory: `CachingHostAllocatorImpl` of
//! `ATen/core/CachingHostAllocator.h`, as of 2.15.
//!
//! * `allocate` rounds a request up to a power of two, unless it is above
//!   `pinned_max_round_threshold_mb` or `pinned_max_cached_size_mb`. Then it keeps its size.
//! * `get_free_block` looks into the free list of the next power of two, from the block that was
//!   freed last on, for one that is large enough. If there is none, new memory is pinned: a
//!   block is a segment of its own, and is never split.
//! * `maybe_cache_block` puts a freed block into its list, or unpins it if it is above
//!   `pinned_max_cached_size_mb`.
//! * `empty_cache` unpins all blocks of the lists.
//!
//! Each pool of CUDA graphs has lists of its own.
//!
//! ```
//! use vramscope_allocator::{HostAllocator, HostSettings};
//!
//! let mut allocator = HostAllocator::new(HostSettings::default());
//! let block = allocator.allocate(0, 3 << 20);
//! assert_eq!(allocator.reserved_bytes(), 4 << 20);
//! allocator.free(block);
//! // The block serves another size that rounds to its own.
//! allocator.allocate(0, 4 << 20);
//! assert_eq!(allocator.reserved_bytes(), 4 << 20);
//! ```

use std::collections::BTreeMap;

/// The settings of `PYTORCH_ALLOC_CONF` that decide what is pinned (PyTorch 2.13).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostSettings {
    /// `pinned_max_round_threshold_mb` in bytes: larger requests are not rounded up.
    pub max_round_threshold: u64,
    /// `pinned_max_cached_size_mb` in bytes: larger requests are not rounded up, and larger blocks
    /// are unpinned when they are freed.
    pub max_cached_size: u64,
}

impl Default for HostSettings {
    fn default() -> Self {
        Self { max_round_threshold: u64::MAX, max_cached_size: u64::MAX }
    }
}

impl HostSettings {
    /// The largest request that is rounded up, in bytes.
    pub fn largest_rounded(&self) -> u64 {
        self.max_round_threshold.min(self.max_cached_size)
    }

    /// The size of the block for a request, in bytes.
    pub fn block_size(&self, request: u64) -> u64 {
        if request <= self.largest_rounded() { power_of_two(request) } else { request }
    }
}

/// The next power of two, which a `size_t` may not have.
fn power_of_two(size: u64) -> u64 {
    size.checked_next_power_of_two().unwrap_or(size)
}

/// A block of pinned memory that a request holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostBlock {
    /// The pool: 0, or that of a CUDA graph.
    pub pool: u32,
    /// Its bytes.
    pub size: u64,
}

/// A model of the allocator for pinned host memory. It has no addresses: blocks of one size are
/// alike.
#[derive(Clone, Debug, Default)]
pub struct HostAllocator {
    settings: HostSettings,
    reserved: u64,
    /// The sizes of free blocks, in the order of their frees, by pool and power of two.
    free: BTreeMap<(u32, u64), Vec<u64>>,
}

impl HostAllocator {
    /// An allocator that has pinned nothing.
    pub fn new(settings: HostSettings) -> Self {
        Self { settings, ..Self::default() }
    }

    /// Serves a request of at least one byte.
    pub fn allocate(&mut self, pool: u32, request: u64) -> HostBlock {
        let size = self.settings.block_size(request);
        let list = self.free.entry((pool, power_of_two(size))).or_default();
        if let Some(at) = list.iter().rposition(|&free| free >= size) {
            return HostBlock { pool, size: list.remove(at) };
        }
        self.pin(pool, size)
    }

    /// A block of `size` bytes of newly pinned memory: one from before a recording, or one that
    /// `cudaHostRegister` pins outside of the allocator.
    pub fn pin(&mut self, pool: u32, size: u64) -> HostBlock {
        self.reserved = self.reserved.saturating_add(size);
        HostBlock { pool, size }
    }

    /// Completes the free of a block: it is cached, or unpinned.
    pub fn free(&mut self, block: HostBlock) {
        if block.size > self.settings.max_cached_size {
            self.unpin(block);
        } else {
            let list = self.free.entry((block.pool, power_of_two(block.size))).or_default();
            list.push(block.size);
        }
    }

    /// Unpins a block without caching it, as `cudaHostUnregister` does.
    pub fn unpin(&mut self, block: HostBlock) {
        self.reserved -= block.size;
    }

    /// Unpins all free blocks of a pool.
    pub fn empty_cache(&mut self, pool: u32) {
        for ((of, _), list) in &mut self.free {
            if *of == pool {
                self.reserved -= list.iter().sum::<u64>();
                list.clear();
            }
        }
    }

    /// The bytes that are pinned.
    pub fn reserved_bytes(&self) -> u64 {
        self.reserved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn with(max_round_threshold: u64, max_cached_size: u64) -> HostAllocator {
        HostAllocator::new(HostSettings { max_round_threshold, max_cached_size })
    }

    #[test]
    fn requests_above_either_setting_keep_their_size() {
        for (round, cached) in [(4 * MIB, u64::MAX), (u64::MAX, 4 * MIB)] {
            let mut allocator = with(round, cached);
            assert_eq!(allocator.allocate(0, 3 * MIB).size, 4 * MIB);
            assert_eq!(allocator.allocate(0, 5 * MIB).size, 5 * MIB);
        }
        assert_eq!(with(u64::MAX, u64::MAX).allocate(0, u64::MAX).size, u64::MAX);
    }

    /// `get_free_block` scans from the newest block on, and takes the first that is large enough.
    #[test]
    fn free_lists_give_the_newest_block_that_is_large_enough() {
        let mut allocator = with(0, u64::MAX);
        let blocks = [7 * MIB, 6 * MIB, 5 * MIB].map(|size| allocator.allocate(0, size));
        for block in blocks {
            allocator.free(block);
        }
        assert_eq!(allocator.allocate(0, 6 * MIB - 1).size, 6 * MIB);
        assert_eq!(allocator.allocate(0, 6 * MIB).size, 7 * MIB);
        assert_eq!(
            allocator.allocate(0, 6 * MIB).size,
            6 * MIB,
            "5 MiB are too small: new memory is pinned"
        );
        assert_eq!(allocator.allocate(0, 4 * MIB).size, 4 * MIB, "4 MiB have another list");
        assert_eq!(allocator.reserved_bytes(), (7 + 6 + 5 + 6 + 4) * MIB);
    }

    #[test]
    fn large_blocks_are_unpinned_and_caches_emptied_by_pool() {
        let mut allocator = with(u64::MAX, 4 * MIB);
        let blocks = [3 * MIB, 5 * MIB].map(|size| allocator.allocate(0, size));
        for block in blocks {
            allocator.free(block);
        }
        assert_eq!(allocator.reserved_bytes(), 4 * MIB);
        let other = allocator.allocate(1, 3 * MIB);
        assert_eq!(allocator.reserved_bytes(), 8 * MIB, "pools share no block");
        allocator.free(other);
        allocator.empty_cache(0);
        assert_eq!(allocator.reserved_bytes(), 4 * MIB);
    }
}
