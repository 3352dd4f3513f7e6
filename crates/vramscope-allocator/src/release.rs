//! Memory that goes back to the driver.

use crate::SegmentAction;
use crate::allocator::Allocator;
use crate::blocks::{BlockId, FreeList, ListKey};
use crate::observer::Observer;

impl Allocator {
    /// Frees pending blocks, then returns all free segments and whole free pages
    /// (`release_cached_blocks`).
    pub(crate) fn release_all(&mut self, observer: &mut impl Observer) {
        for id in std::mem::take(&mut self.pending) {
            self.free(id);
        }
        let unused = std::mem::take(&mut self.unused_pools);
        let is_released = |key: ListKey| key.pool == 0 || unused.binary_search(&key.pool).is_ok();
        self.release_lists(is_released, observer);
        self.unused_pools = unused;
    }

    /// Returns the free memory of some lists.
    fn release_lists(&mut self, wanted: impl Fn(ListKey) -> bool, observer: &mut impl Observer) {
        let mut lists: Vec<(ListKey, u32)> =
            (0..).zip(&self.blocks.lists).map(|(i, list)| (list.key, i)).collect();
        lists.retain(|(key, _)| wanted(*key));
        // The large default pool comes first, then the small one, each stream by stream. Private
        // pools follow, the small one first.
        lists.sort_unstable_by_key(|(key, _)| {
            (key.pool, key.is_small == (key.pool == 0), key.stream)
        });
        for pool in lists.chunk_by(|(a, _), (b, _)| a.pool == b.pool && a.is_small == b.is_small) {
            self.release_pool_blocks(pool, observer);
        }
    }

    /// Retires a private pool and returns its free memory at once, as the end of a
    /// `torch.cuda.MemPool` does (`emptyCache` of one pool). What is still in use then is returned
    /// by later flushes.
    pub fn release_pool(&mut self, pool: u32, observer: &mut impl Observer) {
        if !self.settings.release.returns_ended_pools() {
            return;
        }
        self.retire_pool(pool);
        self.kinds.retain(|(known, _)| *known != pool);
        let (own, others): (Vec<BlockId>, Vec<BlockId>) =
            std::mem::take(&mut self.pending).into_iter().partition(|&id| {
                let list = self.blocks.find(id).map(|at| self.blocks.get(at).list);
                list.is_some_and(|list| self.blocks.lists[list as usize].key.pool == pool)
            });
        self.pending = others;
        for id in own {
            self.free(id);
        }
        self.release_lists(|key| key.pool == pool, observer);
    }

    /// Returns the free memory of all streams of one pool (`release_blocks`): segments first, then
    /// pages.
    fn release_pool_blocks(&mut self, lists: &[(ListKey, u32)], observer: &mut impl Observer) {
        let free = lists.iter().flat_map(|&(_, list)| &self.blocks.lists[list as usize].free);
        let (expandable, ordinary): (Vec<u32>, Vec<u32>) =
            free.map(|&(.., id)| id).partition(|&id| self.blocks.get(id).is_expandable());
        for id in ordinary {
            if !self.blocks.get(id).is_part() {
                self.release(id, observer);
            }
        }
        for id in expandable {
            self.unmap(id, observer);
        }
    }

    /// Returns a free segment (`release_block`).
    fn release(&mut self, id: u32, observer: &mut impl Observer) {
        let block = *self.blocks.get(id);
        self.blocks.unlist(id);
        self.blocks.remove(id);
        self.driver.free(block.start, block.size);
        self.stats.reserved_bytes -= block.size;
        self.notify(observer, SegmentAction::Free, block.list, block.start, block.size);
    }

    /// Returns oversize blocks of a free list until `size` bytes are free
    /// (`release_available_cached_blocks`). Returns whether that was possible.
    pub(crate) fn release_oversize(
        &mut self,
        list: u32,
        size: u64,
        observer: &mut impl Observer,
    ) -> bool {
        let max_split = self.settings.max_split_size;
        if max_split == u64::MAX {
            return false;
        }
        let wanted = size.max(max_split);
        let free = &self.blocks.lists[list as usize].free;
        // Of an expandable segment nothing is returned here. A part of a segment is as large only
        // after a change of settings.
        let is_whole = |id| !self.blocks.get(id).is_part() && !self.blocks.get(id).is_expandable();
        if let Some(&(.., id)) = free.range((wanted, 0, 0, 0)..).next()
            && is_whole(id)
        {
            self.release(id, observer);
            return true;
        }
        let mut released = 0;
        let mut oversize = Vec::new();
        for &(size, .., id) in free.range((max_split, 0, 0, 0)..(wanted, 0, 0, 0)).rev() {
            if released >= wanted {
                break;
            }
            if is_whole(id) {
                released += size;
                oversize.push(id);
            }
        }
        for id in oversize {
            self.release(id, observer);
        }
        released >= wanted
    }

    /// Returns free segments of the large default pool that were unused longest, when reserved
    /// memory exceeds `garbage_collection_threshold` (`garbage_collect_cached_blocks`).
    pub(crate) fn collect_garbage(&mut self, observer: &mut impl Observer) {
        let allowed = self.allowed.unwrap_or(u64::MAX) as f64;
        let threshold = (self.settings.garbage_collection_threshold * allowed) as u64;
        if self.stats.reserved_bytes <= threshold {
            return;
        }
        let wanted = self.stats.reserved_bytes - threshold;
        let searches = self.blocks.searches;
        let mut candidates: Vec<(u64, u64, u32)> = Vec::new();
        let is_large = |list: &&FreeList| list.key.pool == 0 && !list.key.is_small;
        let mut lists: Vec<_> = self.blocks.lists.iter().filter(is_large).collect();
        lists.sort_unstable_by_key(|list| list.key.stream);
        for list in lists {
            for &(size, .., id) in &list.free {
                let block = self.blocks.get(id);
                if !block.is_part() && !block.is_expandable() {
                    candidates.push((searches - block.freed_at, size, id));
                }
            }
        }
        let mut released = 0;
        while released < wanted && !candidates.is_empty() {
            let total: u64 = candidates.iter().map(|(age, ..)| age).sum();
            let average = total as f64 / candidates.len() as f64;
            let (old, young): (Vec<_>, Vec<_>) =
                candidates.into_iter().partition(|(age, ..)| *age as f64 >= average);
            candidates = young;
            if old.is_empty() {
                break;
            }
            for (_, size, id) in old {
                released += size;
                self.release(id, observer);
            }
        }
    }
}
