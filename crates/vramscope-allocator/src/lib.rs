//! A model of PyTorch's caching allocator for CUDA devices that reserves the same bytes.
//!
//! The rest of this page says how that allocator works. Names in `code` are functions and constants
//! of `c10/cuda/CUDACachingAllocator.cpp`, where PyTorch implements it.
//!
//! ```
//! use vramscope_allocator::{Allocator, Device, Request, Settings};
//!
//! let mut allocator = Allocator::new(Settings::default(), &Device::default());
//! let mut events = Vec::new();
//! let mut request = |allocator: &mut Allocator, bytes| {
//!     allocator.malloc(Request { bytes, stream: 0, pool: 0 }, &mut events)
//! };
//! let block = request(&mut allocator, 3 << 20)?;
//! // The segment has 20 MiB. The program holds 3 of them.
//! assert_eq!(allocator.stats().reserved_bytes, 20 << 20);
//! assert_eq!(allocator.stats().active_bytes, 3 << 20);
//! // A free block stays reserved, and serves the next request.
//! allocator.free(block);
//! request(&mut allocator, 12 << 20)?;
//! assert_eq!(allocator.stats().reserved_bytes, 20 << 20);
//! assert_eq!(events.len(), 1);
//! # Ok::<(), vramscope_allocator::OutOfMemory>(())
//! ```
//!
//! # What it is for
//!
//! `cudaMalloc` and `cudaFree` are slow, and `cudaFree` waits until the device is idle. A training
//! step makes thousands of requests. So PyTorch takes large segments from the driver, cuts blocks
//! from them, and keeps what the program frees.
//!
//! Three sums describe the state. *Requested* bytes are what the program asked for. *Active* bytes
//! are the blocks that serve these requests. *Reserved* bytes are all segments. Other programs, and
//! tools such as `nvidia-smi`, see reserved bytes. Reserved memory that is not active is not lost:
//! it serves later requests, as far as it fits them.
//!
//! # Rounding
//!
//! `round_size` rounds a request up to a multiple of 512 bytes (`kMinBlockSize`). With
//! `roundup_power2_divisions` a request of more than 512 bytes times the number of divisions is
//! rounded up to one of equal steps between two powers of two (`roundup_power2_next_division`).
//! Requests of slightly different sizes then get equal blocks, which can replace each other.
//!
//! # Pools and streams
//!
//! A block of at most 1 MiB (`kSmallSize`) comes from the small pool, another from the large pool
//! (`get_pool`). A free block serves requests of its own pool and its own stream only: kernels of
//! one stream run in order, so the memory can be used again without waiting. Free memory of one
//! stream never serves another, even if the device is full.
//!
//! # Best fit and splitting
//!
//! `get_free_block` takes the smallest free block that is large enough. Of several blocks of that
//! size it takes the one with the lowest address; from PyTorch 2.12 on that of the segment that was
//! taken first. So up to 2.11 addresses can decide which block serves a request, and
//! [`Stats::ties`] counts how often.
//!
//! `should_split` decides about the rest of the block. The small pool splits it off if it has at
//! least 512 bytes. The large pool splits it off if it has more than 1 MiB, and leaves it to the
//! request otherwise. When a block is freed, `try_merge_blocks` merges it with the free blocks
//! before and behind it. Blocks of different segments never merge.
//!
//! With `max_split_size_mb`, a block of at least that size is oversize. It is never split, and
//! serves only requests that are oversize themselves and less than 20 MiB smaller
//! (`max_non_split_rounding_mb` changes the 20 MiB).
//!
//! # Segments
//!
//! If no free block fits, `alloc_block` takes a segment. `get_allocation_size` says how large:
//!
//! | block | segment |
//! |---|---|
//! | up to 1 MiB | 2 MiB (`kSmallBuffer`) |
//! | up to 10 MiB (`kMinLargeAlloc`), which is excluded | 20 MiB, or `large_segment_size_mb` |
//! | larger | a multiple of 2 MiB (`kRoundLarge`) |
//!
//! # When memory is short
//!
//! The process has a limit if the program called `set_per_process_memory_fraction`, or set
//! `per_process_memory_fraction`. A request for which no free block fits goes through these steps
//! until one succeeds:
//!
//! 1. If the process has a limit, and `garbage_collection_threshold`
//!    is set, and reserved memory exceeds that part of the allowed memory,
//!    `garbage_collect_cached_blocks` returns free segments of the default large pool. The age of a
//!    segment is the number of searches since it became free. All segments of at least the average
//!    age go, again and again until enough is returned.
//! 2. `alloc_block` asks the driver. It fails at once if the segment would exceed the allowed
//!    memory.
//! 3. With `max_split_size_mb`, `release_available_cached_blocks` returns one oversize segment of
//!    this stream that is as large as the request, or several, the largest first. Then the driver
//!    is asked again.
//! 4. `release_cached_blocks` flushes: it waits for all streams, completes all pending frees, and
//!    returns every free segment of every stream. Then the driver is asked again.
//!    `num_alloc_retries` counts this.
//! 5. The request fails. `num_ooms` counts this. What was returned stays returned.
//!
//! With `throw_on_cudamalloc_oom` and without a limit, a request that would make reserved bytes
//! exceed the size of the device is refused before step 2. Nothing is returned, no event is
//! recorded, and `num_oom_rejections` counts it.
//!
//! A `torch.cuda.MemPool(use_on_oom=True)` helps out: its free blocks serve the default pool before
//! step 3, up to 2.10 after step 4.
//!
//! A segment with one small block in use cannot be returned. Its free part is what the message of
//! an out-of-memory error calls reserved but unallocated.
//!
//! # Expandable segments
//!
//! With `expandable_segments:True` a segment is a range of addresses, 9/8 as large as the device
//! (`expandable_segments_reserve` makes it smaller; a request above it fails), and memory is mapped
//! into it by pages: 20 MiB in the large pool, 2 MiB in the small one. Usually there is one segment
//! for each stream and pool. It grows at its end, so its free blocks merge, and no rests of many
//! segments remain.
//!
//! * `get_free_block` counts a free block before unmapped memory with that memory. So it prefers a
//!   larger block that cannot grow.
//! * `find_expandable_block` takes the lowest address at which free and unmapped memory together
//!   are large enough. So it fills gaps first.
//! * `map_block` maps what is missing. If one gap could be filled and the next could not, the first
//!   stays mapped.
//! * `unmap_block` returns the whole pages within a free block during a flush. A block in use keeps
//!   the pages that it touches.
//! * `should_split` splits off every rest of at least 512 bytes.
//!
//! Garbage collection and the return of oversize segments leave expandable segments alone.
//!
//! # Blocks that several streams use
//!
//! After `record_stream`, a freed block waits until the other streams have finished what they had
//! to do at the time of the free (`insert_events`). It stays active so long, and merges with
//! nothing. Every request of the default pool looks which blocks are complete (`process_events`),
//! and a flush waits for all. When a stream finishes depends on the device. So the model does not
//! know it, and the caller says it: [`Allocator::free_later`], then [`Allocator::free`].
//!
//! # Private pools and CUDA graphs
//!
//! A CUDA graph replays kernels with fixed addresses, so its memory must not serve anything else.
//! While a graph is captured, or within `torch.cuda.use_mem_pool`, requests go to a private pool
//! with its own small and large pool. A request during a capture is not tried again after a flush,
//! because a capture must not wait for the device. Up to 2.12 that holds for all private pools.
//! Blocks of a `torch.cuda.MemPool(no_split=True)` are not split.
//!
//! Free segments of a private pool are returned only when nothing uses the pool any more
//! (`releasePool`, [`Allocator::retire_pool`]), at the next flush. The end of a
//! `torch.cuda.MemPool` returns them at once ([`Allocator::release_pool`]).
//!
//! # What differs by version
//!
//! | PyTorch | difference |
//! |---|---|
//! | 2.1 | expandable segments \[1\] |
//! | 2.5 | private pools use expandable segments, too |
//! | 2.5 | steps 1 and 3 skip expandable segments; before, they stop PyTorch \[2\] |
//! | 2.6 | `max_non_split_rounding_mb` \[3\] |
//! | 2.6 | the end of a `MemPool` returns its memory; in 2.5 nothing does |
//! | 2.9 | pools that help out (`use_on_oom`): after the flush |
//! | 2.10 | `per_process_memory_fraction`; pools that are not split |
//! | 2.10 | expandable blocks do not help out |
//! | 2.10 | `>` in `roundup_power2_divisions` leaves the value of the last size alone |
//! | 2.11 | pools help out before the flush; `large_segment_size_mb` \[4\] |
//! | 2.12 | of several equal free blocks that of the oldest segment serves \[5\] |
//! | 2.12 | `throw_on_cudamalloc_oom`; the bytes of a fraction are rounded |
//! | 2.13 | a request of a private pool flushes, unless a graph is captured |
//! | 2.15 | `expandable_segments_reserve` |
//!
//! `Release` has a function for each that replays need. All were found by
//! `scripts/allocator_differential.py` with the wheels before and after, except \[1\] pull request
//! 96995. \[2\] pull request 134338. \[3\] pull request 136174. \[4\] pull request 172056. \[5\]
//! In 2.12 each thread counts its segments by itself, and a block that is split off counts as one.
//!
//! `pinned_max_round_threshold_mb` and `pinned_max_cached_size_mb` concern pinned host memory,
//! which another allocator serves (pull request 171662): [`HostAllocator`].
//!
//! # Limits of the model
//!
//! * The driver is an address range with a limit. A real driver can refuse below the limit, and
//!   places segments as it likes. [`AddressOrder`] has three orders: where they give equal results,
//!   addresses do not matter. [`Allocator::place_next_segment`] and [`Allocator::refuse_next`]
//!   repeat what a trace has recorded.
//! * A request of the default pool during the capture of another stream flushes here, and does not
//!   flush in PyTorch.
//! * Settings do not change while a program runs.
//! * It does not know custom allocators of a `MemPool`, checkpoints of private pools, the ranges
//!   that a program gives to classes of streams (`expandable_segments_reserve_by_class`), and frees
//!   of other libraries that PyTorch triggers by `trigger_free_memory_callbacks`.
//! * With several retired private pools, the order of the events within a flush is that of their
//!   numbers. PyTorch's order is that of a hash table. So is the order of several pools that help.
//!
//! `scripts/allocator_differential.py` and `tests/differential.rs` compare the model with PyTorch
//! itself (2.1, 2.4, 2.7, 2.9, 2.15), segment by segment.

mod allocator;
mod blocks;
mod configuration;
mod driver;
mod expandable;
mod host;
mod observer;
mod release;
mod settings;
mod state;
mod version;

pub use allocator::{Allocator, OutOfMemory, PoolKind, Request, Stats};
pub use blocks::{BlockId, BlockState};
pub use configuration::{
    SETTING_KEYS, SettingCause, SettingError, parse_settings, settings_text,
    split_outside_brackets, unmodeled_settings,
};
pub use driver::{AddressOrder, Device};
pub use host::{HostAllocator, HostBlock, HostSettings};
pub use observer::{Observer, SegmentAction, SegmentEvent};
pub use settings::{
    DIVISION_INTERVALS, LARGE_SEGMENT, MIN_BLOCK_SIZE, Reserve, SMALL_SEGMENT, SMALL_SIZE, Settings,
};
pub use state::{BlockInfo, ReservedParts, StartBlock, StartSegment};
pub use version::Release;
