//! Requests and frees.

use crate::blocks::{Block, BlockId, BlockState, Blocks, ListKey};
use crate::driver::{Device, Driver};
use crate::observer::Observer;
use crate::settings::{SMALL_SIZE, Settings};

/// A request for memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Requested bytes.
    pub bytes: u64,
    /// Any number that names the stream.
    pub stream: u32,
    /// Any number that names the private pool. 0 is the default pool.
    pub pool: u32,
}

/// A request for which there is not enough memory, even after all free memory was returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory;

/// Counters of an allocator. All but the last two are in bytes, and have the names of
/// `torch.cuda.memory_stats`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// `reserved_bytes.all.current`.
    pub reserved_bytes: u64,
    /// `reserved_bytes.all.peak`.
    pub reserved_peak: u64,
    /// `active_bytes.all.current`.
    pub active_bytes: u64,
    /// `active_bytes.all.peak`.
    pub active_peak: u64,
    /// `requested_bytes.all.current`.
    pub requested_bytes: u64,
    /// `num_alloc_retries`: requests that were tried again after all free memory was returned.
    pub num_alloc_retries: u64,
    /// `num_ooms`.
    pub num_ooms: u64,
    /// Requests served by one of several free blocks of equal size. Their addresses decided which.
    pub ties: u64,
}

/// The caching allocator of one device. A clone goes on from the same state.
#[derive(Clone, Debug)]
pub struct Allocator {
    pub(crate) settings: Settings,
    pub(crate) allowed: Option<u64>,
    /// The size of the device, in bytes.
    total: u64,
    pub(crate) driver: Driver,
    pub(crate) blocks: Blocks,
    pub(crate) stats: Stats,
    /// Blocks that wait for a stream. Some are complete again.
    pub(crate) pending: Vec<BlockId>,
    /// Private pools that nothing uses any more, ascending: their free segments can be returned.
    pub(crate) unused_pools: Vec<u32>,
    /// The number of driver calls that fail next, whatever is available.
    forced_failures: u32,
    /// Private pools with arguments of `torch.cuda.MemPool`, the oldest first.
    pub(crate) kinds: Vec<(u32, PoolKind)>,
    /// Whether a CUDA graph is captured.
    is_capturing: bool,
}

/// The arguments of `torch.cuda.MemPool`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolKind {
    /// `use_on_oom` (PyTorch 2.9): its free blocks serve the default pool when memory is short.
    pub use_on_oom: bool,
    /// `no_split` (PyTorch 2.10): its blocks are not split.
    pub no_split: bool,
}

impl Allocator {
    /// An allocator without segments.
    pub fn new(settings: Settings, device: &Device) -> Self {
        let page = settings.page(false);
        let reserve = settings.expandable_segments_reserve;
        Self {
            allowed: device.allowed.or(settings.allowed(device.total)),
            total: device.total,
            driver: Driver::new(device, page, reserve.map(|reserve| reserve.bytes(device.total))),
            blocks: Blocks::new(page, settings.release.prefers_older_segments()),
            settings,
            stats: Stats::default(),
            pending: Vec::new(),
            unused_pools: Vec::new(),
            forced_failures: 0,
            kinds: Vec::new(),
            is_capturing: false,
        }
    }

    /// Sets the arguments of `torch.cuda.MemPool` for a private pool.
    pub fn set_pool_kind(&mut self, pool: u32, kind: PoolKind) {
        self.kinds.retain(|(known, _)| *known != pool);
        self.kinds.push((pool, kind));
    }

    /// Tells that the capture of a CUDA graph begins or ends. A capture must not wait for the
    /// device, so meanwhile no request returns cached memory.
    pub fn set_capturing(&mut self, is_capturing: bool) {
        self.is_capturing = is_capturing;
    }

    fn kind(&self, pool: u32) -> PoolKind {
        self.kinds
            .iter()
            .find(|(known, _)| *known == pool)
            .map(|(_, kind)| *kind)
            .unwrap_or_default()
    }

    /// The counters.
    pub fn stats(&self) -> Stats {
        self.stats
    }

    /// Sets the bytes that PyTorch can have, for a device on which that changes.
    pub fn set_available(&mut self, bytes: u64) {
        self.driver.set_available(bytes);
    }

    /// Sets the address of the next ordinary segment. With `bytes`, only a segment of that size
    /// gets it. Without this call the driver's model decides.
    pub fn place_next_segment(&mut self, address: u64, bytes: Option<u64>) {
        self.driver.next_segment = Some((address, bytes));
    }

    /// Makes the next driver call of the next request fail, as if the device were full.
    pub fn refuse_next(&mut self) {
        self.forced_failures = 1;
    }

    /// Serves a request (`malloc`).
    ///
    /// PyTorch returns no free memory while it allocates from a private pool, because the capture
    /// of a CUDA graph must not synchronize. So such a request is not tried again.
    ///
    /// # Errors
    ///
    /// [`OutOfMemory`] when the device has too little memory even after all free memory was
    /// returned.
    pub fn malloc(
        &mut self,
        request: Request,
        observer: &mut impl Observer,
    ) -> Result<BlockId, OutOfMemory> {
        let size = self.settings.round(request.bytes);
        let is_small = size <= SMALL_SIZE;
        let list =
            self.blocks.list(ListKey { pool: request.pool, is_small, stream: request.stream });
        let collects = self.allowed.is_some() && self.settings.garbage_collection_threshold > 0.0;
        if collects && request.pool == 0 && !is_small {
            self.blocks.searches += 1;
        }
        let found = match self.best_fit(list, size) {
            Some(id) => Some(id),
            None => {
                if collects {
                    self.collect_garbage(observer);
                }
                if self.refuses_early(size) {
                    return Err(OutOfMemory);
                }
                self.new_block(list, size, observer).or_else(|| {
                    let helps_first = self.settings.release.tries_pools_before_flush();
                    let is_default = request.pool == 0;
                    (is_default && helps_first)
                        .then(|| self.helping_block(size, is_small, request.stream))
                        .flatten()
                        .or_else(|| {
                            self.release_oversize(list, size, observer)
                                .then(|| self.new_block(list, size, observer))
                                .flatten()
                        })
                        .or_else(|| {
                            if !self.may_flush(request.pool) {
                                return None;
                            }
                            self.release_all(observer);
                            self.stats.num_alloc_retries += 1;
                            self.new_block(list, size, observer)
                        })
                        .or_else(|| {
                            (is_default && !helps_first)
                                .then(|| self.helping_block(size, is_small, request.stream))
                                .flatten()
                        })
                })
            }
        };
        self.driver.next_segment = None;
        self.forced_failures = 0;
        let Some(id) = found else {
            self.stats.num_ooms += 1;
            return Err(OutOfMemory);
        };
        let rest = self.blocks.get(id).size - size;
        let pool = self.blocks.lists[self.blocks.get(id).list as usize].key.pool;
        if !self.kind(pool).no_split && self.settings.splits(size, rest, is_small) {
            self.blocks.split(id, size, BlockState::Free);
            if self.settings.release.counts_parts_as_new() {
                self.blocks.get_mut(id).segment = self.blocks.next_segment();
            }
        }
        let block = self.blocks.get_mut(id);
        (block.state, block.requested) = (BlockState::Allocated, request.bytes);
        self.stats.active_bytes += block.size;
        self.stats.active_peak = self.stats.active_peak.max(self.stats.active_bytes);
        self.stats.requested_bytes += request.bytes;
        Ok(self.blocks.name(id))
    }

    /// Frees a block that no other stream uses (`free`), or that waited for one. Returns whether
    /// the block was in use: a flush may have freed a block that waited.
    pub fn free(&mut self, id: BlockId) -> bool {
        let Some(at) = self.blocks.find(id) else { return false };
        self.free_block(at);
        true
    }

    /// Frees a block that other streams still use (`free` after `record_stream`). It stays active
    /// until [`Allocator::free`], or until all free memory is returned.
    pub fn free_later(&mut self, id: BlockId) {
        let Some(at) = self.blocks.find(id) else { return };
        let block = self.blocks.get_mut(at);
        if block.state == BlockState::Allocated {
            block.state = BlockState::PendingFree;
            self.pending.push(id);
        }
    }

    /// Whether a block waits for a stream.
    pub fn is_pending(&self, id: BlockId) -> bool {
        self.blocks.find(id).is_some_and(|at| self.blocks.get(at).state == BlockState::PendingFree)
    }

    /// Returns free memory to the driver (`empty_cache`).
    pub fn empty_cache(&mut self, observer: &mut impl Observer) {
        self.release_all(observer);
    }

    /// Tells that nothing uses a private pool any more, as after the reset of a CUDA graph: the
    /// next flush returns its free segments (`releasePool`).
    pub fn retire_pool(&mut self, pool: u32) {
        if let Err(at) = self.unused_pools.binary_search(&pool) {
            self.unused_pools.insert(at, pool);
        }
    }

    /// Moves a block to its free list (`free_block`).
    pub(crate) fn free_block(&mut self, id: u32) {
        let block = self.blocks.get_mut(id);
        self.stats.active_bytes -= block.size;
        self.stats.requested_bytes -= block.requested;
        (block.state, block.requested) = (BlockState::Free, 0);
        self.blocks.merge_and_list(id);
    }

    /// Whether a request is refused before anything is returned: with `throw_on_cudamalloc_oom` and
    /// without a limit, if the process would reserve more than the whole device.
    fn refuses_early(&self, size: u64) -> bool {
        let bytes = self.settings.segment_size(size);
        self.settings.throw_on_cudamalloc_oom
            && self.allowed.is_none()
            && self.stats.reserved_bytes.saturating_add(bytes) > self.total
    }

    /// Whether a request of a pool may return cached memory and try again.
    fn may_flush(&self, pool: u32) -> bool {
        pool == 0 || (self.settings.release.flushes_for_pools() && !self.is_capturing)
    }

    /// A free block of a private pool that helps out (`try_mempool_fallback`).
    fn helping_block(&mut self, size: u64, is_small: bool, stream: u32) -> Option<u32> {
        let is_expandable =
            self.settings.expandable_segments && self.settings.release.takes_expandable_help();
        let helping: Vec<u32> =
            self.kinds.iter().filter(|(_, kind)| kind.use_on_oom).map(|(pool, _)| *pool).collect();
        helping.into_iter().find_map(|pool| {
            let list = self.blocks.list(ListKey { pool, is_small, stream });
            self.best_fit_of(list, size, is_expandable)
        })
    }

    /// Takes the free block that serves `size` bytes best (`get_free_block`).
    fn best_fit(&mut self, list: u32, size: u64) -> Option<u32> {
        self.best_fit_of(list, size, self.settings.expandable_segments)
    }

    /// [`Self::best_fit`], of expandable segments or only of others.
    fn best_fit_of(&mut self, list: u32, size: u64, is_expandable: bool) -> Option<u32> {
        let mut larger = self.blocks.lists[list as usize].free.range((size, 0, 0, 0)..);
        let mut best = *larger.next()?;
        let mut next = larger.next().copied();
        if self.blocks.get(best.3).is_expandable() {
            if is_expandable {
                // A block before unmapped memory counts with that memory.
                while self.blocks.get(best.3).is_expandable()
                    && let Some(other) = next
                    && self.expandable_size(other.3) < self.expandable_size(best.3)
                {
                    best = other;
                    next = larger.next().copied();
                }
            } else {
                // Expandable segments were switched off: only other segments serve.
                best = std::iter::once(next)
                    .flatten()
                    .chain(larger.copied())
                    .find(|other| !self.blocks.get(other.3).is_expandable())?;
                next = None;
            }
        }
        if !self.settings.may_serve(size, best.0) {
            return None;
        }
        if next.is_some_and(|other| other.0 == best.0) && self.blocks.are_by_address() {
            self.stats.ties += 1;
        }
        self.blocks.lists[list as usize].free.remove(&best);
        Some(best.3)
    }

    /// The size of a free block with the unmapped memory behind it.
    fn expandable_size(&self, id: u32) -> u64 {
        let block = self.blocks.get(id);
        let next = self.blocks.neighbor(block.next);
        let unmapped = next.filter(|next| next.state == BlockState::Unmapped);
        block.size + unmapped.map_or(0, |next| next.size)
    }

    /// Takes memory from the driver for a block of `size` bytes (`alloc_block`). The block is in no
    /// free list. `None` when there is not enough memory.
    fn new_block(&mut self, list: u32, size: u64, observer: &mut impl Observer) -> Option<u32> {
        if self.forced_failures > 0 {
            self.forced_failures -= 1;
            return None;
        }
        let bytes = self.settings.segment_size(size);
        if self.allowed.is_some_and(|most| self.stats.reserved_bytes.saturating_add(bytes) > most) {
            return None;
        }
        let is_private = self.blocks.lists[list as usize].key.pool != 0;
        if self.settings.expandable_segments
            && (!is_private || self.settings.release.expands_private_pools())
        {
            return self.expandable_block(list, size, observer);
        }
        let start = self.driver.allocate(bytes)?;
        // `Allocated` keeps the block out of the free list. The caller sets the state.
        let state = BlockState::Allocated;
        let segment = self.blocks.next_segment();
        let block = Block { start, size: bytes, state, list, segment, ..Block::default() };
        let id = self.blocks.insert(block);
        self.reserve(bytes);
        self.notify(observer, crate::SegmentAction::Alloc, list, start, bytes);
        Some(id)
    }

    /// Counts reserved bytes.
    pub(crate) fn reserve(&mut self, bytes: u64) {
        self.stats.reserved_bytes += bytes;
        self.stats.reserved_peak = self.stats.reserved_peak.max(self.stats.reserved_bytes);
    }
}
