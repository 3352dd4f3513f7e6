//! Reserved, stranded, pending and returned memory on hand-made traces. Sizes are in MiB.

use crate::memory::{MIB, Memory, mib};
use serde_json::{Value, json};
use vramscope_inference::{
    CostlySetting, Facts, Finding, FindingKind, GraphPools, PendingFrees, ReservedPeak,
    SegmentChurn, Severity, StrandedPool,
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
    assert_eq!(peak.memory.in_use, mib(150));
    assert_eq!((peak.memory.stuck, peak.memory.stuck_segments), (mib(150), 1));
    assert_eq!((finding.bytes, finding.severity), (300 * MIB, Severity::Low));
    assert_eq!(finding.events, [6 + 2 + 2]);
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
    let expected =
        CostlySetting::MaxSplitSize { limit: mib(64), segments: 3, pieces: 0, bytes: mib(700) };
    assert_eq!(peak.settings, [expected]);
}

/// Of the slots with most reserved bytes, the one with most in use is judged, not the first.
#[test]
fn reserved_judges_the_moment_with_most_in_use() {
    let mut memory = Memory::default();
    let segment = memory.reserve(1000, 1);
    let first = memory.alloc(segment, 0, 100, 1);
    memory.free(first);
    let most = memory.alloc(segment, 0, 600, 1);
    memory.free(most);
    memory.alloc(segment, 0, 50, 1);
    let (finding, peak) = reserved(&memory).expect("400 MiB were never in use");
    assert_eq!(
        (peak.needed, peak.memory.in_use, peak.memory.stuck),
        (mib(600), mib(600), mib(400))
    );
    assert_eq!((finding.bytes, &finding.events[..]), (400 * MIB, &[4][..]));
}

/// With expandable segments, a request below the limit uses no free piece above it.
#[test]
fn reserved_names_max_split_size_with_expandable_segments() {
    let settings = json!({"max_split_size": 64 * MIB, "expandable_segments": true});
    let mut memory = Memory::under(settings);
    let segment = memory.reserve(800, 1);
    memory.alloc(segment, 0, 20, 1);
    memory.alloc(segment, 400, 20, 1);
    memory.alloc(segment, 480, 20, 1);
    let (finding, peak) = reserved(&memory).expect("most is free");
    // Free are 380, 60 (below the limit) and 300 MiB.
    let expected =
        CostlySetting::MaxSplitSize { limit: mib(64), segments: 0, pieces: 2, bytes: mib(680) };
    assert_eq!((peak.settings.as_slice(), finding.severity), (&[expected][..], Severity::Medium));
}

#[test]
fn reserved_matters_from_two_gib_and_60_percent_on() {
    // 3,400 of 5,400 MiB are not needed, 4,400 of 7,400 (59 %), and 1,700 of 2,700.
    for (size, other, severity) in
        [(2000, 1400, Severity::Medium), (3000, 1400, Severity::Low), (1000, 700, Severity::Low)]
    {
        let mut memory = Memory::default();
        let block = memory.fill(size, 1);
        memory.free(block);
        memory.fill(other, 2);
        let segment = memory.reserve(size, 2);
        memory.alloc(segment, 0, 10, 2);
        let (finding, _) = reserved(&memory).expect("two of three segments are free");
        assert_eq!(finding.severity, severity, "{size} MiB");
    }
}

/// A side stream's free segments serve no other stream.
#[test]
fn reserved_names_free_memory_of_side_streams() {
    let mut memory = Memory::default();
    memory.fill(100, 1);
    let side = memory.reserve_in((0, 0), 7, 400, 2);
    let block = memory.alloc(side, 0, 400, 2);
    memory.fill(50, 1);
    memory.free(block);
    for line in 3..8 {
        memory.fill(if line == 5 { 140 } else { 90 }, line);
    }
    let (finding, peak) = reserved(&memory).expect("400 MiB are free on stream 7");
    let [found] = peak.out_of_reach.as_slice() else { panic!("{:?}", peak.out_of_reach) };
    // The 50 MiB were reserved while nothing was free on the stream.
    assert_eq!((found.free, found.elsewhere, found.request), (mib(400), mib(500), mib(140)));
    assert_eq!((found.bytes(), finding.severity), (mib(400), Severity::Medium));
}

/// Steps, each with work of 200 MiB. `each` adds to a step.
fn steps(count: u64, each: impl Fn(&mut Memory, u64)) -> Memory {
    let mut memory = Memory::default();
    let main = memory.reserve(200, 1);
    for step in 0..count {
        let block = memory.alloc(main, 0, 200, 2);
        each(&mut memory, step);
        memory.free(block);
        memory.optimizer_step();
    }
    memory
}

#[test]
fn reserved_that_creeps_names_its_line_and_streams() {
    let memory = steps(8, |memory, step| {
        let side = memory.reserve_in((0, 0), 10 + step, 30, 5);
        let block = memory.alloc(side, 0, 30, 5);
        memory.free(block);
    });
    let (finding, peak) = reserved(&memory).expect("a stream for each step");
    let creep = peak.creep.expect("30 MiB a step");
    // The first two of eight steps are warm-up.
    assert_eq!((creep.steps, creep.rises, creep.new_streams), (6, 6, 6));
    assert_eq!((creep.per_step, creep.total), (mib(30), mib(180)));
    assert_eq!(finding.severity, Severity::Low);
    // What stays in use is growth, not creep.
    let memory = steps(8, |memory, _| {
        memory.fill(30, 5);
    });
    assert_eq!(reserved(&memory).and_then(|(_, peak)| peak.creep), None);
    // One stream for all steps.
    let memory = steps(8, |memory, step| {
        if step == 0 {
            let side = memory.reserve_in((0, 0), 10, 30, 5);
            let block = memory.alloc(side, 0, 30, 5);
            memory.free(block);
        }
    });
    assert_eq!(reserved(&memory), None);
}

/// Captures of graphs with work between them: `pool` says in which pool each is, and what it
/// reserves.
fn captures(pools: &[(u64, u64)]) -> Memory {
    let mut memory = Memory::with_pools(true);
    let main = memory.reserve(300, 1);
    for &(pool, size) in pools {
        let block = memory.alloc(main, 0, 300, 2);
        memory.free(block);
        let segment = memory.reserve_in((pool, 0), 7, size, 3);
        let work = memory.alloc(segment, 0, size, 3);
        memory.free(work);
        memory.alloc(segment, 0, 10, 4);
    }
    memory
}

fn graph_pools(memory: &Memory) -> Option<(Finding, GraphPools)> {
    let finding = memory.of_kind(FindingKind::StrandedPool).pop()?;
    let Facts::GraphPools(pools) = finding.facts.clone() else { panic!("{finding:?}") };
    Some((finding, pools))
}

#[test]
fn graphs_with_a_pool_each_could_share_one() {
    let (finding, pools) =
        graph_pools(&captures(&[(1, 40), (2, 60), (3, 80), (4, 100)])).expect("four pools");
    // Most is in use when the last graph works: 100 MiB beside three results.
    assert_eq!((pools.pools, pools.reserved, pools.live), (4, mib(280), mib(130)));
    assert_eq!(pools.range, (mib(40), mib(100)));
    // With the largest first, the work of the others fits behind the results in its segment.
    assert_eq!((pools.shared, finding.bytes), (mib(100), 180 * MIB));
    // In this order, each needs a segment of its own.
    assert_eq!(pools.one_pool.map(|one_pool| one_pool.one), Some(mib(280)));
    assert_eq!((finding.severity, pools.growth), (Severity::Medium, None));
    assert_eq!(graph_pools(&captures(&[(1, 40), (2, 60)])), None, "two pools");
}

#[test]
fn a_graph_pool_that_grows_with_each_capture_is_named() {
    let growing = [(1, 40), (1, 60), (1, 80), (1, 100), (1, 120)];
    let (finding, pools) = graph_pools(&captures(&growing)).expect("five captures");
    let growth = pools.growth.expect("each reserves more");
    assert_eq!((growth.captures, growth.grew, growth.each), (5, 5, mib(80)));
    // A few shapes are captured on purpose.
    assert_eq!((finding.severity, finding.bytes), (Severity::Low, 400 * MIB));
    assert_eq!(graph_pools(&captures(&growing[..3])), None, "three captures");
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
    assert_eq!((side.pool, side.free, side.largest), (PoolId(0, 1), mib(350), mib(350)));
    assert_eq!((side.unused, side.reserved_elsewhere), (mib(350), mib(400)));
    assert_eq!((finding.bytes, finding.severity), (350 * MIB, Severity::Low));
    assert_eq!((side.since, &finding.events[..]), (Some(EventIndex(4)), &[4, 7][..]));
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

/// PyTorch looks whether a stream is done only when it allocates, so a final state says nothing.
#[test]
fn pending_frees_need_a_trace() {
    let mut memory = Memory::default();
    let block = memory.fill(400, 1);
    memory.fill(100, 1);
    memory.request_free(block, 2);
    memory.events.clear();
    assert_eq!(pending(&memory), None);
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

/// A call that makes room has looked for free memory first. What it returns could not have served
/// its request.
#[test]
fn a_return_of_what_would_have_fit_made_no_room() {
    for (size, by_allocator) in [(180, true), (150, false)] {
        let mut memory = Memory::default();
        for size in [160, size] {
            let block = memory.fill(size, 1);
            memory.free(block);
            memory.give_back(block.0, 1);
        }
        memory.fill(200, 1);
        let found = memory.of_kind(FindingKind::Churn);
        let returns = |finding: &Finding| match &finding.facts {
            Facts::Churn(churn) if churn.by_allocator => churn.bursts,
            _ => 0,
        };
        let made_room: usize = found.iter().map(returns).sum();
        // The second return is a retry either way: 200 MiB fit into none.
        assert_eq!(made_room, if by_allocator { 2 } else { 1 }, "{size} MiB: {found:?}");
    }
}

/// `frames` of a convolution that cuDNN searches: a workspace is tried, and the cache is emptied.
fn searched(frames: &Value) -> Memory {
    let mut memory = Memory::default();
    let main = memory.reserve(300, 1);
    for size in [400, 500] {
        let segment = memory.reserve(size, 2);
        memory.frames(frames.clone());
        let workspace = memory.alloc(segment, 0, size, 2);
        memory.frames(frames.clone());
        memory.free(workspace);
        memory.give_back(segment, 2);
        memory.frames(frames.clone());
        let output = memory.alloc(main, 0, 200, 2);
        memory.frames(frames.clone());
        memory.free(output);
    }
    memory.fill(50, 3);
    memory
}

#[test]
fn a_search_of_cudnn_is_no_refusal_of_the_driver() {
    let conv = json!([
        {"name": "_conv_forward", "filename": "/x/torch/nn/modules/conv.py", "line": 548},
        {"name": "step", "filename": "train.py", "line": 2},
    ]);
    let (finding, churn) = returned(&searched(&conv)).expect("two searches");
    let search = churn.search.expect("a search");
    assert_eq!((churn.by_allocator, churn.bursts, churn.returned), (false, 2, mib(900)));
    assert_eq!((search.peak, search.later, search.largest), (mib(500), Some(mib(200)), mib(500)));
    assert_eq!((finding.bytes, finding.severity), (300 * MIB, Severity::Low));
    assert_eq!(finding.id.to_string(), "churn-0-search");
    // The program itself may empty the cache.
    let (_, churn) = returned(&searched(&empty_cache())).expect("two returns");
    assert_eq!((churn.by_allocator, churn.search), (false, None));
}
