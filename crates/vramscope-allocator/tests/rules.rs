//! One small program for each rule of the allocator.

use vramscope_allocator::{
    Allocator, BlockId, Device, OutOfMemory, Release, Request, SegmentAction, SegmentEvent,
    Settings,
};

const MIB: u64 = 1 << 20;

/// An allocator with its events.
struct Run {
    allocator: Allocator,
    events: Vec<SegmentEvent>,
}

impl Run {
    fn new(settings: Settings, device: &Device) -> Self {
        Self { allocator: Allocator::new(settings, device), events: Vec::new() }
    }

    fn plain() -> Self {
        Self::new(Settings::default(), &Device::default())
    }

    fn with_available(settings: Settings, mib: u64) -> Self {
        Self::new(settings, &Device { available: mib * MIB, ..Device::default() })
    }

    fn try_of(&mut self, bytes: u64, stream: u32, pool: u32) -> Result<BlockId, OutOfMemory> {
        self.allocator.malloc(Request { bytes, stream, pool }, &mut self.events)
    }

    fn bytes(&mut self, bytes: u64) -> BlockId {
        self.try_of(bytes, 0, 0).expect("there is enough memory")
    }

    fn mib(&mut self, mib: u64) -> BlockId {
        self.bytes(mib * MIB)
    }

    fn free(&mut self, blocks: &[BlockId]) {
        for &block in blocks {
            assert!(self.allocator.free(block), "the block is in use");
        }
    }

    fn empty_cache(&mut self) {
        self.allocator.empty_cache(&mut self.events);
    }

    fn reserved_mib(&self) -> u64 {
        self.allocator.stats().reserved_bytes / MIB
    }

    /// Actions and MiB of the events since the last call.
    fn events(&mut self) -> Vec<(SegmentAction, u64)> {
        std::mem::take(&mut self.events)
            .into_iter()
            .map(|event| (event.action, event.size / MIB))
            .collect()
    }
}

fn expandable() -> Settings {
    Settings { expandable_segments: true, ..Settings::default() }
}

fn max_split(mib: u64) -> Settings {
    Settings { max_split_size: mib * MIB, ..Settings::default() }
}

use SegmentAction::{Alloc, Free, Map, Unmap};

#[test]
fn small_blocks_share_a_segment_to_the_last_512_bytes() {
    let mut run = Run::plain();
    run.mib(1);
    run.bytes(MIB - 512);
    run.bytes(1);
    assert_eq!(run.events(), [(Alloc, 2)]);
    run.bytes(1);
    assert_eq!(run.events(), [(Alloc, 2)]);
}

#[test]
fn large_block_keeps_a_rest_of_up_to_1_mib() {
    let mut run = Run::plain();
    let whole = run.mib(11);
    assert_eq!(run.allocator.size_of(whole), 12 * MIB);
    let split = run.bytes(11 * MIB - 512);
    assert_eq!(run.allocator.size_of(split), 11 * MIB - 512);
    let shared = run.mib(3);
    assert_eq!(run.allocator.size_of(shared), 3 * MIB);
    assert_eq!(run.events(), [(Alloc, 12), (Alloc, 12), (Alloc, 20)]);
}

#[test]
fn best_fit_takes_the_smallest_block_and_then_the_lowest_address() {
    // From 2.12 on the oldest segment comes first.
    let settings = Settings { release: Release(11), ..Settings::default() };
    let mut run = Run::new(settings, &Device::default());
    let blocks = [run.mib(30), run.mib(14), run.mib(12), run.mib(14)];
    let second = run.allocator.address_of(blocks[1]);
    run.free(&blocks);
    let found = run.mib(13);
    assert_eq!(run.allocator.address_of(found), second);
    assert_eq!(run.allocator.stats().ties, 1);
    run.mib(12);
    assert_eq!(run.allocator.stats().ties, 1);
}

#[test]
fn a_block_serves_its_own_stream_and_pool_only() {
    let mut run = Run::plain();
    let block = run.mib(20);
    run.free(&[block]);
    run.try_of(20 * MIB, 1, 0).unwrap();
    run.try_of(20 * MIB, 0, 1).unwrap();
    run.bytes(MIB);
    assert_eq!(run.events(), [(Alloc, 20), (Alloc, 20), (Alloc, 20), (Alloc, 2)]);
    run.mib(20);
    assert_eq!(run.events(), []);
}

#[test]
fn full_device_flushes_all_free_segments_and_tries_again() {
    let mut run = Run::with_available(Settings::default(), 60);
    let small = run.bytes(512);
    let other_stream = run.try_of(20 * MIB, 1, 0).unwrap();
    let held = run.mib(12);
    let large = run.mib(20);
    run.free(&[small, other_stream, large]);
    run.events();
    run.mib(40);
    assert_eq!(run.events(), [(Free, 20), (Free, 20), (Free, 2), (Alloc, 40)]);
    let stats = run.allocator.stats();
    assert_eq!((stats.num_alloc_retries, stats.num_ooms), (1, 0));
    run.free(&[held]);
}

#[test]
fn failed_request_leaves_a_usable_allocator() {
    let mut run = Run::with_available(Settings::default(), 40);
    let held = run.mib(12);
    assert_eq!(run.try_of(30 * MIB, 0, 0), Err(OutOfMemory));
    let stats = run.allocator.stats();
    assert_eq!((stats.num_alloc_retries, stats.num_ooms), (1, 1));
    assert_eq!((stats.active_bytes, run.reserved_mib()), (12 * MIB, 12));
    run.free(&[held]);
    run.mib(40);
    assert_eq!(run.events(), [(Alloc, 12), (Free, 12), (Alloc, 40)]);
}

#[test]
fn absurd_requests_fail() {
    for settings in [Settings::default(), expandable(), max_split(32)] {
        for bytes in [u64::MAX, 1 << 60, 1 << 48, 1 << 42] {
            let mut run = Run::with_available(settings.clone(), 1 << 16);
            assert_eq!(run.try_of(bytes, 0, 0), Err(OutOfMemory));
            assert_eq!(run.reserved_mib(), 0);
        }
    }
}

#[test]
fn refused_request_flushes_even_if_there_is_memory() {
    let mut run = Run::plain();
    let block = run.mib(12);
    run.free(&[block]);
    run.allocator.refuse_next();
    run.mib(30);
    assert_eq!(run.events(), [(Alloc, 12), (Free, 12), (Alloc, 30)]);
    run.mib(30);
    assert_eq!(run.allocator.stats().num_alloc_retries, 1);
}

#[test]
fn available_memory_can_change() {
    let mut run = Run::with_available(Settings::default(), 20);
    let block = run.mib(20);
    run.allocator.set_available(10 * MIB);
    run.free(&[block]);
    assert_eq!(run.try_of(30 * MIB, 0, 0), Err(OutOfMemory));
    run.allocator.set_available(40 * MIB);
    run.mib(30);
    assert_eq!(run.events(), [(Alloc, 20), (Free, 20), (Alloc, 30)]);
}

#[test]
fn allowed_memory_counts_whole_segments() {
    let device = Device { allowed: Some(30 * MIB), ..Device::default() };
    let mut run = Run::new(expandable(), &device);
    run.mib(18);
    // 12 MiB fit into the page and one more, but 2 MiB of the page and a segment of 12 do not.
    assert_eq!(run.try_of(12 * MIB, 0, 0), Err(OutOfMemory));
    run.mib(2);
    assert_eq!(run.events(), [(Map, 20)]);
}

#[test]
fn oversize_blocks_are_neither_split_nor_lent_to_smaller_requests() {
    let mut run = Run::new(max_split(32), &Device::default());
    let block = run.mib(64);
    run.free(&[block]);
    run.mib(31);
    run.mib(36);
    let nearly = run.mib(45);
    assert_eq!(run.allocator.size_of(nearly), 64 * MIB);
    assert_eq!(run.events(), [(Alloc, 64), (Alloc, 32), (Alloc, 36)]);
}

#[test]
fn max_non_split_rounding_widens_what_an_oversize_block_serves() {
    let rounding = |mib: u64| Settings { max_non_split_rounding_size: mib * MIB, ..max_split(32) };
    for (mib, is_served) in [(27, false), (28, false), (29, true)] {
        let mut run = Run::new(rounding(mib), &Device::default());
        let block = run.mib(64);
        run.free(&[block]);
        run.events();
        run.mib(36);
        assert_eq!(run.events().is_empty(), is_served, "{mib}");
    }
}

#[test]
fn one_oversize_block_is_returned_before_all_others() {
    let mut run = Run::with_available(max_split(32), 90);
    let blocks = [run.mib(12), run.mib(64)];
    run.free(&blocks);
    run.events();
    run.mib(36);
    assert_eq!(run.events(), [(Free, 64), (Alloc, 36)]);
    assert_eq!(run.allocator.stats().num_alloc_retries, 0);
}

#[test]
fn oversize_blocks_are_returned_largest_first_until_they_suffice() {
    let mut run = Run::with_available(max_split(32), 116);
    let blocks = [run.mib(12), run.mib(32), run.mib(36), run.mib(34)];
    run.free(&blocks);
    run.events();
    run.mib(60);
    assert_eq!(run.events(), [(Free, 36), (Free, 34), (Alloc, 60)]);
    // The others are not enough for the next, so everything goes.
    assert_eq!(run.try_of(90 * MIB, 0, 0), Err(OutOfMemory));
    assert_eq!(run.events(), [(Free, 32), (Free, 12)]);
    assert_eq!(run.allocator.stats().num_alloc_retries, 1);
}

#[test]
fn garbage_collection_returns_the_oldest_free_segments() {
    let settings = Settings { garbage_collection_threshold: 0.5, ..Settings::default() };
    let device = Device { allowed: Some(120 * MIB), ..Device::default() };
    for (device, collected) in
        [(device, vec![(Free, 30), (Alloc, 34)]), (Device::default(), vec![(Alloc, 34)])]
    {
        let mut run = Run::new(settings.clone(), &device);
        let [old, young, reused] = [run.mib(30), run.mib(28), run.mib(12)];
        run.free(&[old, reused]);
        for _ in 0..5 {
            let block = run.mib(12);
            run.free(&[block]);
        }
        run.free(&[young]);
        run.events();
        run.mib(34);
        assert_eq!(run.events(), collected);
        assert_eq!(run.allocator.stats().num_alloc_retries, 0);
    }
}

#[test]
fn expandable_segment_grows_by_pages_and_merges() {
    let mut run = Run::new(expandable(), &Device::default());
    let first = run.mib(3);
    let start = run.allocator.address_of(first);
    run.free(&[first]);
    let grown = run.mib(21);
    assert_eq!(run.allocator.address_of(grown), start);
    assert_eq!(run.events(), [(Map, 20), (Map, 20)]);
    let small = run.bytes(1);
    assert_eq!(run.events(), [(Map, 2)]);
    run.free(&[grown, small]);
    run.empty_cache();
    assert_eq!(run.events(), [(Unmap, 40), (Unmap, 2)]);
    // A new address range, and again the lowest of its own.
    let again = run.mib(3);
    assert!(run.allocator.address_of(again) > start);
}

#[test]
fn flush_unmaps_whole_pages_and_the_gap_is_filled_first() {
    let mut run = Run::new(expandable(), &Device::default());
    let [a, b, c] = [run.mib(18), run.mib(18), run.mib(18)];
    let start = run.allocator.address_of(a);
    run.free(&[a]);
    run.empty_cache();
    assert_eq!(run.reserved_mib(), 60);
    run.free(&[b]);
    run.empty_cache();
    assert_eq!(run.reserved_mib(), 40);
    run.events();
    let filled = run.mib(20);
    assert_eq!(run.allocator.address_of(filled), start);
    assert_eq!(run.events(), [(Map, 20)]);
    run.free(&[c]);
}

#[test]
fn the_size_of_large_segments_is_a_setting() {
    let large = |mib: u64| Settings { large_segment_size: mib * MIB, ..Settings::default() };
    let mut run = Run::new(large(40), &Device::default());
    run.mib(2);
    run.mib(38);
    run.bytes(512);
    run.mib(12);
    assert_eq!(run.events(), [(Alloc, 40), (Alloc, 2), (Alloc, 12)]);
    let settings = Settings { expandable_segments: true, ..large(12) };
    let mut run = Run::new(settings, &Device::default());
    let [a, b] = [run.mib(5), run.mib(20)];
    assert_eq!(run.events(), [(Map, 12), (Map, 24)]);
    run.bytes(512);
    assert_eq!(run.events(), [(Map, 2)]);
    run.free(&[b]);
    run.empty_cache();
    assert_eq!(run.events(), [(Unmap, 24)]);
    run.free(&[a]);
    run.empty_cache();
    assert_eq!(run.reserved_mib(), 2);
}

#[test]
fn best_fit_counts_unmapped_memory_behind_an_expandable_block() {
    let mut run = Run::new(expandable(), &Device::default());
    let [a, ..] = [run.mib(15), run.mib(5), run.mib(15)];
    let inner = run.allocator.address_of(a);
    run.free(&[a]);
    // 5 MiB at the end are smaller than 15, but can grow.
    let block = run.mib(4);
    assert_eq!(run.allocator.address_of(block), inner);
}

#[test]
fn pages_stay_mapped_when_a_later_page_cannot_be_had() {
    let mut run = Run::with_available(expandable(), 60);
    let [a, b, c] = [run.mib(18), run.mib(18), run.mib(18)];
    run.free(&[a, b]);
    run.empty_cache();
    run.free(&[c]);
    run.events();
    assert_eq!(run.try_of(70 * MIB, 0, 0), Err(OutOfMemory));
    // The gap is filled, the end cannot grow, and the flush returns all.
    assert_eq!(run.events(), [(Map, 20), (Unmap, 60)]);
    run.mib(60);
    assert_eq!(run.events(), [(Map, 60)]);
}

#[test]
fn pending_block_is_active_until_it_is_complete() {
    let mut run = Run::plain();
    let block = run.mib(12);
    run.allocator.free_later(block);
    run.allocator.free_later(block);
    assert!(run.allocator.is_pending(block));
    assert_eq!(run.allocator.stats().active_bytes, 12 * MIB);
    run.mib(12);
    assert_eq!(run.events(), [(Alloc, 12), (Alloc, 12)]);
    assert!(run.allocator.free(block));
    assert!(!run.allocator.free(block));
    run.mib(12);
    assert_eq!(run.events(), []);
}

#[test]
fn flush_completes_pending_frees_and_their_ids_name_nothing_then() {
    let mut run = Run::with_available(Settings::default(), 40);
    let block = run.mib(20);
    run.allocator.free_later(block);
    let next = run.mib(30);
    assert_eq!(run.events(), [(Alloc, 20), (Free, 20), (Alloc, 30)]);
    assert!(!run.allocator.is_pending(block));
    assert!(!run.allocator.free(block));
    assert_eq!(run.allocator.stats().active_bytes, 30 * MIB);
    run.free(&[next]);
}

#[test]
fn private_pool_keeps_its_segments_until_it_is_retired() {
    let mut run = Run::plain();
    let block = run.try_of(12 * MIB, 0, 7).unwrap();
    run.free(&[block]);
    run.empty_cache();
    assert_eq!(run.events(), [(Alloc, 12)]);
    run.allocator.retire_pool(7);
    assert_eq!(run.events(), []);
    run.empty_cache();
    assert_eq!(run.events(), [(Free, 12)]);
}

#[test]
fn end_of_a_pool_returns_its_memory_only() {
    let mut run = Run::plain();
    let [plain, other] = [run.mib(14), run.try_of(16 * MIB, 0, 8).unwrap()];
    let [pending, held] =
        [run.try_of(12 * MIB, 0, 7).unwrap(), run.try_of(18 * MIB, 0, 7).unwrap()];
    run.free(&[plain]);
    run.allocator.free_later(pending);
    run.allocator.free_later(other);
    run.events();
    run.allocator.release_pool(7, &mut run.events);
    assert_eq!(run.events(), [(Free, 12)]);
    assert!(run.allocator.is_pending(other));
    run.free(&[held]);
    run.empty_cache();
    assert_eq!(run.events(), [(Free, 14), (Free, 18)]);
}

#[test]
fn request_of_a_capture_is_not_tried_again() {
    let mut run = Run::with_available(Settings::default(), 40);
    run.allocator.set_capturing(true);
    let block = run.mib(20);
    run.free(&[block]);
    assert_eq!(run.try_of(30 * MIB, 0, 7), Err(OutOfMemory));
    assert_eq!(run.events(), [(Alloc, 20)]);
    let stats = run.allocator.stats();
    assert_eq!((stats.num_alloc_retries, stats.num_ooms), (0, 1));
}
