//! Reserved, stranded, pending and returned memory on hand-made traces. Sizes are in MiB.

use crate::memory::{MIB, Memory, mib};
use serde_json::{Value, json};
use vramscope_inference::{
    CostlySetting, Facts, Finding, FindingKind, PendingFrees, ReservedPeak, SegmentChurn, Severity,
    StrandedPool,
};
use vramscope_snapshot::{PoolId, StackId};
use vramscope_units::EventIndex;

fn reserved(memory: &Memory) -> Option<(Finding, ReservedPeak)> {
    let finding = memory.of_kind(FindingKind::Reserved).pop()?;
    let Facts::Reserved(peak) = finding.facts.clone() else { panic!("{finding:?}") };
    Some((finding, *peak))
}

fn stranded(memory: &Memory) -> Option<(Finding, StrandedPool)> {
    let finding = memory.of_kind(FindingKind::StrandedPool).pop()?;
    let Facts::StrandedPool(side) = finding.facts.clone() else { panic!("{finding:?}") };
    Some((finding, side))
}

fn pending(memory: &Memory) -> Option<(Finding, PendingFrees)> {
    let finding = memory.of_kind(FindingKind::PendingFree).pop()?;
    let Facts::PendingFree(waits) = finding.facts.clone() else { panic!("{finding:?}") };
    Some((finding, waits))
}

fn returned(memory: &Memory) -> Option<(Finding, SegmentChurn)> {
    let finding = memory.of_kind(FindingKind::Churn).pop()?;
    let Facts::Churn(churn) = finding.facts.clone() else { panic!("{finding:?}") };
    Some((finding, churn))
}

#[test]
fn reserved_says_what_the_memory_is_for() {
    let mut memory = Memory::default();
    let idle: Vec<_> = (0..2).map(|_| memory.fill(200, 1)).collect();
    for block in idle {
        memory.free(block);
    }
    let used = memory.reserve(300, 2);
    memory.alloc(used, 0, 100, 2);
    memory.alloc(used, 200, 50, 2);
    let (finding, peak) = reserved(&memory).expect("more than half is not needed");
    assert_eq!((peak.reserved, peak.needed), (mib(700), mib(400)));
    assert_eq!((peak.memory.idle, peak.memory.idle_segments), (mib(400), 2));
    assert_eq!(peak.memory.in_use, mib(100));
    assert_eq!((peak.memory.stuck, peak.memory.stuck_segments), (mib(200), 1));
    assert_eq!((finding.bytes, finding.severity), (300 * MIB, Severity::Low));
    assert_eq!(finding.events, [6 + 2]);
}

#[test]
fn reserved_is_silent_below_a_tenth_of_the_peak() {
    let mut memory = Memory::default();
    let block = memory.fill(300, 1);
    memory.free(block);
    memory.fill(3000, 2);
    assert_eq!(reserved(&memory), None, "a tenth of 3300 MiB is 330 MiB");
    let block = memory.fill(40, 1);
    memory.free(block);
    memory.fill(40, 2);
    assert!(reserved(&memory).is_some());
}

/// The allocator had to make room, so less matters more.
#[test]
fn reserved_matters_when_memory_was_short() {
    let mut memory = Memory::default();
    let block = memory.fill(30, 1);
    memory.free(block);
    memory.give_back(0, 2);
    let segment = memory.reserve(100, 2);
    memory.alloc(segment, 0, 90, 2);
    let (finding, peak) = reserved(&memory).expect("10 of 100 MiB");
    assert_eq!((finding.severity, peak.was_short), (Severity::Medium, true));
}

#[test]
fn reserved_judges_a_file_without_events() {
    let mut memory = Memory::default();
    for _ in 0..10 {
        let segment = memory.reserve(200, 1);
        memory.alloc(segment, 50, 100, 1);
    }
    memory.events.clear();
    let (finding, peak) = reserved(&memory).expect("half is free");
    assert_eq!((peak.is_state_only, peak.event, peak.reserved), (true, None, mib(2000)));
    assert_eq!((peak.memory.stuck, peak.memory.largest_stuck), (mib(1000), mib(50)));
    assert_eq!(finding.bytes, 1000 * MIB);
}

#[test]
fn free_memory_of_graph_pools_is_needed() {
    for (pool, stream, is_needed) in [((1, 0), 0, true), ((0, 1), 7, true), ((0, 1), 0, false)] {
        let mut memory = Memory::default();
        let segment = memory.reserve_in(pool, stream, 600, 1);
        memory.alloc(segment, 0, 200, 1);
        memory.fill(200, 2);
        assert_eq!(reserved(&memory).is_none(), is_needed, "{pool:?} on stream {stream}");
    }
}

#[test]
fn reserved_names_max_split_size() {
    let mut memory = Memory::under(json!({"max_split_size": 64 * MIB}));
    for size in [300, 400] {
        let block = memory.fill(size, 1);
        memory.free(block);
    }
    memory.fill(300, 2);
    let (_, peak) = reserved(&memory).expect("most is free");
    let expected = CostlySetting::MaxSplitSize { limit: mib(64), segments: 3, bytes: mib(700) };
    assert_eq!(peak.settings, [expected]);
}

#[test]
fn reserved_names_roundup() {
    let divisions: Value = (0..16).map(|i| ((1u64 << i).to_string(), json!(2))).collect();
    let mut memory = Memory::under(json!({"roundup_power2_divisions": divisions}));
    for line in 1..=3 {
        let segment = memory.reserve(384, line);
        memory.alloc_bytes(segment, 0, (260 * MIB, 384 * MIB), line);
    }
    let (finding, peak) = reserved(&memory).expect("a third is added by rounding");
    assert_eq!(finding.bytes, 3 * 124 * MIB);
    assert_eq!(peak.settings, [CostlySetting::RoundupPower2Divisions { bytes: mib(372) }]);
}

/// A pool is emptied, then the default pool reserves as much again.
fn emptied_pool(pool: (u64, u64), stream: u64) -> Memory {
    let mut memory = Memory::with_pools(true);
    let segment = memory.reserve_in(pool, stream, 400, 1);
    let block = memory.alloc(segment, 0, 400, 1);
    memory.free(block);
    memory.alloc(segment, 0, 50, 1);
    memory.fill(300, 2);
    memory.fill(100, 2);
    memory
}

#[test]
fn free_memory_of_a_private_pool_is_stranded() {
    let memory = emptied_pool((0, 1), 0);
    let (finding, side) = stranded(&memory).expect("350 MiB are out of reach");
    assert_eq!((side.pool, side.free, side.largest), (Some(PoolId(0, 1)), mib(350), mib(350)));
    assert_eq!((side.unused, side.reserved_elsewhere), (mib(350), mib(400)));
    assert_eq!((finding.bytes, finding.severity), (350 * MIB, Severity::Low));
    assert_eq!((side.since, finding.events), (Some(EventIndex(4)), vec![4, 7]));
    // Graphs use their memory in replays.
    for (pool, stream) in [((1, 0), 0), ((0, 1), 7)] {
        assert_eq!(stranded(&emptied_pool(pool, stream)), None, "{pool:?} on stream {stream}");
    }
}

#[test]
fn free_memory_of_a_pool_that_was_in_use_meanwhile_is_not_stranded() {
    let mut memory = Memory::with_pools(true);
    memory.fill(300, 2);
    let segment = memory.reserve_in((0, 1), 0, 400, 1);
    let block = memory.alloc(segment, 0, 400, 1);
    memory.fill(400, 2);
    memory.free(block);
    memory.fill(20, 2);
    assert_eq!(stranded(&memory), None, "only 20 MiB were reserved beside it");
}

#[test]
fn only_parts_of_used_segments_are_stranded_on_a_side_stream() {
    for is_used in [true, false] {
        let mut memory = Memory::default();
        let side = memory.reserve_in((0, 0), 7, 400, 1);
        let block = memory.alloc(side, 0, 400, 1);
        memory.free(block);
        if is_used {
            memory.alloc(side, 390, 10, 1);
        }
        memory.fill(500, 2);
        let found = stranded(&memory);
        // A free segment is returned when memory is short.
        assert_eq!(found.is_some(), is_used);
        if let Some((_, side)) = found {
            assert_eq!((side.pool, side.free), (None, mib(390)));
        }
    }
}

/// Blocks of 40 MiB, whose frees wait until the work behind them is allocated.
fn waiting(frees: u32) -> Memory {
    let mut memory = Memory::default();
    memory.fill(200, 1);
    let blocks: Vec<_> = (0..frees).map(|i| memory.fill(40, 10 + i)).collect();
    for (i, &block) in blocks.iter().enumerate() {
        memory.request_free(block, 20 + i as u32 % 2);
    }
    let work = memory.fill(60, 3);
    for block in blocks {
        memory.complete_free(block);
    }
    memory.free(work);
    memory
}

#[test]
fn pending_frees_cost_the_difference_of_the_peaks() {
    let memory = waiting(3);
    let (finding, waits) = pending(&memory).expect("the peak is 60 MiB higher");
    // 200 + 3 x 40 + 60 against 200 + 3 x 40.
    assert_eq!((waits.peak, waits.peak_without), (mib(380), mib(320)));
    assert_eq!((finding.bytes, waits.waiting, waits.frees), (60 * MIB, mib(120), 3));
    let parts: Vec<_> = finding.parts.iter().map(|p| (p.bytes, p.blocks)).collect();
    assert_eq!(parts, [(mib(80), 2), (mib(40), 1)], "one for each line that frees");
    assert_eq!(finding.severity, Severity::Medium);
}

#[test]
fn pending_frees_away_from_the_peak_are_silent() {
    let mut memory = waiting(3);
    assert!(pending(&memory).is_some());
    memory.fill(400, 4);
    assert_eq!(pending(&memory), None, "the peak is now without a pending free");
}

/// Calls of `empty_cache` in a loop, with segments of other sizes every time.
fn emptied(calls: u64, frames: &Value) -> Memory {
    let mut memory = Memory::default();
    for call in 0..calls {
        let block = memory.fill(100 + call, 1);
        memory.free(block);
        memory.give_back(block.0, 2);
        memory.frames(frames.clone());
    }
    memory
}

fn empty_cache() -> Value {
    json!([{"name": "empty_cache", "filename": "/x/torch/cuda/memory.py", "line": 218},
        {"name": "step", "filename": "train.py", "line": 2}])
}

#[test]
fn churn_counts_all_bytes_reserved_again() {
    let (finding, churn) = returned(&emptied(4, &empty_cache())).expect("four returns");
    assert_eq!((churn.bursts, churn.segments, churn.returned), (4, 4, mib(406)));
    // 101, 102 and 103 MiB are reserved after 100, 201 and 303 MiB were returned in all.
    assert_eq!(churn.reserved_again, mib(303));
    assert_eq!((finding.severity, finding.parts.len()), (Severity::Medium, 1));
    assert_ne!(finding.stack(), Some(StackId::EMPTY));
    let (finding, churn) = returned(&emptied(2, &empty_cache())).expect("two returns");
    assert_eq!((churn.reserved_again, finding.severity), (mib(100), Severity::Low));
    assert_eq!(returned(&emptied(1, &empty_cache())), None, "once, between two phases");
}

#[test]
fn churn_is_silent_for_captures() {
    let mut frames = empty_cache();
    frames[1] = json!({"name": "__enter__", "filename": "/x/torch/cuda/graphs.py", "line": 175});
    assert_eq!(returned(&emptied(4, &frames)), None);
    // Old releases record other stacks. What is allocated next tells.
    let mut memory = Memory::default();
    for graph in 1..5 {
        let block = memory.fill(100, 1);
        memory.free(block);
        memory.give_back(block.0, 1);
        let pool = memory.reserve_in((graph, 0), 7, 50, 3);
        memory.alloc(pool, 0, 50, 3);
    }
    assert_eq!(returned(&memory), None);
}

#[test]
fn churn_of_the_allocator_is_another_finding() {
    let mut memory = Memory::default();
    for size in [100, 120, 140, 160] {
        let segment = memory.reserve(size, 1);
        let block = memory.alloc(segment, 0, size, 1);
        memory.free(block);
        memory.give_back(segment, 1);
    }
    memory.fill(180, 1);
    let (finding, churn) = returned(&memory).expect("four retries");
    assert!(churn.by_allocator);
    assert_eq!((churn.bursts, churn.reserved_again), (4, mib(520)));
    assert_eq!(finding.id.to_string(), "churn-0-make-room");
}
