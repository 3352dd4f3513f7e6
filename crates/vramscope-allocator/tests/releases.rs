//! What the allocator of one release does, and that of another does not. Each rule was found by
//! `scripts/allocator_differential.py` with the wheels of both releases.

use SegmentAction::{Alloc, Free, Map};
use vramscope_allocator::{
    Allocator, BlockId, Device, OutOfMemory, PoolKind, Release, Request, Reserve, SegmentAction,
    SegmentEvent, Settings, parse_settings,
};

const MIB: u64 = 1 << 20;
const POOL: u32 = 7;

/// An allocator with its events.
struct Run {
    allocator: Allocator,
    events: Vec<SegmentEvent>,
}

impl Run {
    fn new(minor: u32, settings: &Settings, available: u64) -> Self {
        let settings = Settings { release: Release(minor), ..settings.clone() };
        let device =
            Device { available: available * MIB, total: available * MIB, ..Device::default() };
        Self { allocator: Allocator::new(settings, &device), events: Vec::new() }
    }

    fn mib(&mut self, mib: u64, pool: u32) -> Result<BlockId, OutOfMemory> {
        let request = Request { bytes: mib * MIB, stream: 0, pool };
        self.allocator.malloc(request, &mut self.events)
    }

    fn free(&mut self, block: Result<BlockId, OutOfMemory>) {
        assert!(self.allocator.free(block.expect("memory")), "the block is in use");
    }

    fn events(&mut self) -> Vec<(SegmentAction, u64)> {
        std::mem::take(&mut self.events).iter().map(|e| (e.action, e.size / MIB)).collect()
    }
}

fn expandable() -> Settings {
    Settings { expandable_segments: true, ..Settings::default() }
}

#[test]
fn private_pools_are_expandable_from_2_5_on() {
    for (minor, action) in [(4, Alloc), (5, Map)] {
        let mut run = Run::new(minor, &expandable(), 100);
        run.mib(20, POOL).expect("memory");
        assert_eq!(run.events(), [(action, 20)], "2.{minor}");
    }
}

#[test]
fn the_end_of_a_pool_returns_its_memory_from_2_6_on() {
    for (minor, returned) in [(5, vec![]), (6, vec![(Free, 20)])] {
        let mut run = Run::new(minor, &Settings::default(), 100);
        let block = run.mib(20, POOL);
        run.free(block);
        run.events();
        run.allocator.release_pool(POOL, &mut run.events);
        assert_eq!(run.events(), returned, "2.{minor}");
    }
}

/// A pool that helps out serves after the flush up to 2.10, and before it from 2.11 on.
#[test]
fn a_pool_helps_before_the_flush_from_2_11_on() {
    for (minor, events) in [(10, vec![(Free, 30)]), (11, vec![])] {
        let mut run = Run::new(minor, &Settings::default(), 110);
        let kind = PoolKind { use_on_oom: true, ..PoolKind::default() };
        run.allocator.set_pool_kind(POOL, kind);
        let (own, helping) = (run.mib(30, 0), run.mib(60, POOL));
        run.free(own);
        run.free(helping);
        run.events();
        run.mib(60, 0).expect("the pool helps");
        assert_eq!(run.events(), events, "2.{minor}");
    }
}

#[test]
fn a_pool_that_helps_has_no_expandable_segments_from_2_10_on() {
    for (minor, is_served) in [(9, true), (10, false)] {
        let mut run = Run::new(minor, &expandable(), 60);
        let kind = PoolKind { use_on_oom: true, ..PoolKind::default() };
        run.allocator.set_pool_kind(POOL, kind);
        let helping = run.mib(60, POOL);
        run.free(helping);
        assert_eq!(run.mib(60, 0).is_ok(), is_served, "2.{minor}");
    }
}

#[test]
fn blocks_of_a_pool_without_splits_stay_whole() {
    let mut run = Run::new(15, &Settings::default(), 100);
    run.allocator.set_pool_kind(POOL, PoolKind { no_split: true, ..PoolKind::default() });
    run.mib(2, POOL).expect("memory");
    assert_eq!(run.allocator.stats().active_bytes, 20 * MIB);
    run.mib(2, 0).expect("memory");
    assert_eq!(run.allocator.stats().active_bytes, 22 * MIB);
}

/// Of several equal free blocks the one with the lowest address serves; from 2.12 on that of the
/// oldest segment.
#[test]
fn the_oldest_segment_serves_from_2_12_on() {
    for (minor, is_older) in [(11, false), (13, true)] {
        let mut run = Run::new(minor, &Settings::default(), 100);
        run.allocator.place_next_segment(2 << 30, Some(20 * MIB));
        let older = run.mib(20, 0);
        run.allocator.place_next_segment(1 << 30, Some(20 * MIB));
        let newer = run.mib(20, 0);
        run.free(newer);
        run.free(older);
        let served = run.mib(20, 0).expect("memory");
        assert_eq!(run.allocator.address_of(served) == 2 << 30, is_older, "2.{minor}");
        assert_eq!(run.allocator.stats().ties > 0, !is_older, "2.{minor}");
    }
}

/// A request of a pool that no graph is captured into returns cached memory.
#[test]
fn requests_of_pools_flush_from_2_13_on() {
    for (minor, is_capturing, is_served) in
        [(12, false, false), (13, false, true), (13, true, false)]
    {
        let mut run = Run::new(minor, &Settings::default(), 40);
        let block = run.mib(20, 0);
        run.free(block);
        run.allocator.set_capturing(is_capturing);
        assert_eq!(run.mib(30, POOL).is_ok(), is_served, "2.{minor}");
    }
}

/// The whole device is the limit: a fraction of it is checked earlier, and flushes.
#[test]
fn an_early_refusal_returns_nothing() {
    let rejects = Settings { throw_on_cudamalloc_oom: true, ..Settings::default() };
    for (fraction, ooms, events) in [(None, 0, vec![]), (Some(0.5), 1, vec![(Free, 30)])] {
        let settings = Settings { per_process_memory_fraction: fraction, ..rejects.clone() };
        let mut run = Run::new(12, &settings, 100);
        let block = run.mib(30, 0);
        run.free(block);
        run.events();
        assert_eq!(run.mib(200, 0), Err(OutOfMemory));
        assert_eq!(run.events(), events, "{fraction:?}");
        assert_eq!(run.allocator.stats().num_ooms, ooms, "{fraction:?}");
    }
}

#[test]
fn a_request_above_the_address_range_is_refused_and_maps_nothing() {
    let reserve = Some(Reserve::Fraction(0.5));
    let settings = Settings { expandable_segments_reserve: reserve, ..expandable() };
    let mut run = Run::new(15, &settings, 200);
    assert_eq!(run.mib(120, 0), Err(OutOfMemory));
    assert_eq!(run.events(), []);
    // Two ranges have what one cannot.
    let blocks = [run.mib(60, 0), run.mib(60, 0)];
    assert!(blocks.iter().all(Result::is_ok));
}

#[test]
fn a_fraction_of_the_device_is_its_limit() {
    let half = Settings { per_process_memory_fraction: Some(0.5), ..Settings::default() };
    let mut run = Run::new(10, &half, 100);
    assert!(run.mib(40, 0).is_ok() && run.mib(20, 0).is_err());
}

/// The values are those that PyTorch writes into `allocator_settings` for these texts.
#[test]
fn sizes_that_a_list_of_divisions_does_not_name_have_none() {
    for (minor, at_8_mib) in [(9, 2), (11, 4)] {
        let base = Settings { release: Release(minor), ..Settings::default() };
        let listed = parse_settings("roundup_power2_divisions:[2:1,8:4,>:2]", &base);
        let all = listed.expect("settings").roundup_power2_divisions;
        assert_eq!(all[..4], [1, 1, 0, at_8_mib], "2.{minor}");
        assert!(all[4..].iter().all(|&n| n == 2), "2.{minor}");
        let open = parse_settings("roundup_power2_divisions:[2:1,8:4]", &base).expect("settings");
        assert!(open.roundup_power2_divisions[4..].iter().all(|&n| n == 0), "2.{minor}");
    }
}
