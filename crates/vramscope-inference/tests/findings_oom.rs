//! Failed allocations on hand-made traces. Sizes are in MiB.

use crate::memory::{MIB, Memory, mib};
use serde_json::{Value, json};
use vramscope_inference::{
    Aftermath, Basis, Category, CostlySetting, Facts, Finding, FindingKind, OomStory, Returned,
    Severity, Verdict,
};
use vramscope_units::Bytes;

fn story(memory: &Memory) -> (Finding, OomStory) {
    let mut found = memory.of_kind(FindingKind::Oom);
    assert_eq!(found.len(), 1, "{found:?}");
    let finding = found.remove(0);
    let Facts::Oom(story) = finding.facts.clone() else { panic!("{finding:?}") };
    (finding, *story)
}

/// Two segments of 100 MiB, whose second halves are free.
fn halves(memory: &mut Memory) {
    for line in [1, 2] {
        let segment = memory.reserve(100, line);
        memory.alloc(segment, 0, 50, line);
    }
}

#[test]
fn oom_beyond_the_device_is_demand() {
    let mut memory = Memory::default();
    memory.fill(100, 1);
    memory.fill(40, 2);
    memory.oom(60, 20, 3);
    let (finding, story) = story(&memory);
    assert_eq!((story.verdict, story.excess()), (Verdict::Demand, Some(mib(40))));
    assert_eq!((story.room, story.active, story.usable), (Some(mib(160)), mib(140), mib(0)));
    assert_eq!((finding.severity, finding.bytes, finding.blocks), (Severity::High, 60 * MIB, 2));
    // The request comes first, then the call sites with most bytes.
    let parts: Vec<_> = finding.parts.iter().map(|p| (p.bytes, p.blocks)).collect();
    assert_eq!(parts, [(mib(60), 0), (mib(100), 1), (mib(40), 1)]);
    assert_eq!(finding.stack(), Some(story.stack));
    assert_eq!((finding.basis, &finding.events[..]), (Basis::Exact, &[4][..]));
}

#[test]
fn oom_beside_free_pieces_is_fragmentation() {
    let mut memory = Memory::default();
    halves(&mut memory);
    memory.oom(80, 30, 3);
    let (_, story) = story(&memory);
    assert_eq!((story.verdict, story.excess()), (Verdict::Fragmentation, None));
    assert_eq!((story.usable, story.largest_usable), (mib(100), mib(50)));
    assert_eq!((story.new_segment, story.segment_lacks()), (Some(mib(80)), Some(mib(50))));
}

#[test]
fn oom_says_nothing_of_new_segments_with_expandable_segments() {
    let mut memory = Memory::under(json!({"expandable_segments": true}));
    halves(&mut memory);
    memory.oom(80, 30, 3);
    let (_, story) = story(&memory);
    assert_eq!((story.verdict, story.segment_lacks()), (Verdict::Fragmentation, None));
}

/// Free memory of a private pool never serves the default pool, whatever the settings.
#[test]
fn oom_beside_a_private_pool_is_stranded() {
    for names_pools in [true, false] {
        let mut memory = Memory::with_pools(names_pools);
        memory.fill(20, 1);
        let pool = memory.reserve_in((0, 1), 0, 400, 2);
        memory.alloc(pool, 0, 20, 2);
        memory.oom(200, 30, 3);
        if names_pools {
            memory.events.last_mut().expect("the failure")["pool_id"] = json!([0, 0]);
        }
        let (finding, story) = story(&memory);
        assert_eq!((story.verdict, story.usable), (Verdict::StrandedPool, mib(0)));
        assert_eq!(story.unusable[0].free, mib(380));
        assert_eq!(story.is_pool_assumed, !names_pools);
        assert_eq!(finding.basis, if names_pools { Basis::Exact } else { Basis::Estimate });
        // One cause makes one finding.
        assert_eq!(memory.of_kind(FindingKind::StrandedPool), []);
        assert_eq!(memory.of_kind(FindingKind::Reserved), []);
    }
}

#[test]
fn oom_beside_a_piece_that_waited_for_a_stream_is_pending() {
    for waits in [true, false] {
        let mut memory = Memory::default();
        let segment = memory.reserve(100, 1);
        memory.alloc(segment, 60, 40, 1);
        let block = memory.alloc(segment, 0, 60, 2);
        memory.request_free(block, 2);
        if waits {
            memory.fill(20, 3);
        }
        memory.complete_free(block);
        memory.oom(50, 10, 4);
        let (_, story) = story(&memory);
        // Without a wait, nothing explains why the piece was not used.
        let verdict = if waits { Verdict::Pending } else { Verdict::Fragmentation };
        assert_eq!((story.verdict, story.largest_usable), (verdict, mib(60)));
    }
}

#[test]
fn oom_after_other_memory_grew_says_so() {
    let mut memory = Memory::default();
    let block = memory.fill(300, 1);
    memory.free(block);
    memory.give_back(0, 1);
    memory.fill(100, 2);
    memory.oom(150, 20, 3);
    let (_, story) = story(&memory);
    // 300 MiB were reserved before, and now 120 MiB are all that PyTorch can have.
    assert_eq!((story.verdict, story.shrunk), (Verdict::OtherMemory, mib(180)));
    assert_eq!(story.excess(), Some(mib(130)));
}

#[test]
fn oom_beside_enough_memory_of_the_driver_is_a_limit() {
    let mut memory = Memory::default();
    memory.fill(100, 1);
    memory.oom(60, 500, 3);
    assert_eq!(story(&memory).1.verdict, Verdict::Limit);
    let failure = memory.events.last_mut().and_then(Value::as_object_mut).expect("the failure");
    failure.remove("device_free");
    let (_, story) = story(&memory);
    assert_eq!((story.verdict, story.room), (Verdict::Unknown, None));
}

#[test]
fn ooms_of_one_step_are_one_finding_about_the_first() {
    let mut memory = Memory::default();
    memory.fill(100, 1);
    memory.optimizer_step();
    memory.oom(24, 10, 2);
    let block = memory.fill(5, 3);
    memory.oom(480, 5, 4);
    memory.free(block);
    memory.optimizer_step();
    memory.fill(5, 5);
    memory.oom(30, 0, 6);
    let mut found = memory.of_kind(FindingKind::Oom);
    found.sort_by_key(|finding| finding.events[0]);
    let stories: Vec<_> = (found.iter())
        .map(|finding| {
            let Facts::Oom(story) = &finding.facts else { panic!("{finding:?}") };
            (story.event.0, story.requested, story.failures, story.last.0, finding.step)
        })
        .collect();
    assert_eq!(
        stories,
        [(2, mib(24), 2, 5, Some(1)), (10, mib(30), 1, 10, Some(2))],
        "the first failure of a step, although a later one asks for more"
    );
}

#[test]
fn ooms_without_steps_are_one_finding() {
    let mut memory = Memory::default();
    memory.fill(100, 1);
    for size in [24, 480, 30] {
        memory.oom(size, 10, 2);
        memory.fill(2, 3);
    }
    let (finding, story) = story(&memory);
    assert_eq!((story.requested, story.failures, finding.step), (mib(24), 3, None));
}

/// A library that asks for less at the same line handles the failure. A program that drops its
/// memory, or goes on at another line, caught an error.
#[test]
fn oom_that_the_line_handles_is_low() {
    for (next, drops, severity) in
        [(2, false, Severity::Low), (2, true, Severity::High), (3, false, Severity::High)]
    {
        let mut memory = Memory::default();
        let block = memory.fill(100, 1);
        memory.oom(80, 10, 2);
        if drops {
            memory.free(block);
        }
        memory.fill(5, next);
        let (finding, story) = story(&memory);
        assert_eq!(finding.severity, severity, "{next} {drops}");
        let handled = severity == Severity::Low;
        assert_eq!(story.aftermath == Aftermath::Handled, handled);
    }
}

/// The last failure ended the run. An error handler that fails after the program dropped its
/// memory did not.
#[test]
fn oom_that_ended_the_run_counts() {
    for drops in [false, true] {
        let mut memory = Memory::default();
        let block = memory.fill(100, 1);
        memory.oom(80, 10, 2);
        let small = memory.fill(5, 2);
        if drops {
            memory.free(block);
        }
        memory.oom(40, 10, 4);
        memory.free(small);
        let (_, story) = story(&memory);
        assert_eq!(story.aftermath, Aftermath::Ended);
        assert_eq!(story.requested, mib(if drops { 80 } else { 40 }));
    }
}

/// Each result replaces the one before. Results that stay side by side are no climb.
#[test]
fn oom_of_a_concatenation_is_a_climb() {
    for replaces in [true, false] {
        let mut memory = Memory::default();
        let mut last = None;
        for size in [10, 20, 30, 40, 50] {
            let block = memory.fill(size, 1);
            if let Some(last) = last.replace(block).filter(|_| replaces) {
                memory.free(last);
            }
        }
        memory.oom(60, 10, 1);
        let climb = story(&memory).1.climb.map(|climb| (climb.times, climb.step));
        assert_eq!(climb, replaces.then_some((5, mib(10))));
    }
}

/// What is in use counts blocks, so that reserved memory minus it is what is free.
#[test]
fn oom_counts_rounding_as_in_use() {
    let mut memory = Memory::default();
    let segment = memory.reserve(100, 1);
    memory.alloc_bytes(segment, 0, (100 * MIB - 600_000, 100 * MIB), 1);
    memory.oom(60, 20, 3);
    let (_, story) = story(&memory);
    assert_eq!((story.active, story.rounding), (mib(100), Bytes(600_000)));
}

#[test]
fn oom_names_blocks_of_its_size_and_the_settings_that_cost_memory() {
    let divisions: Value = (0..16).map(|i| ((1u64 << i).to_string(), json!(2))).collect();
    let mut memory = Memory::under(json!({"roundup_power2_divisions": divisions}));
    let segment = memory.reserve(96, 1);
    memory.alloc_bytes(segment, 0, (66 * MIB, 96 * MIB), 1);
    memory.fill(2, 2);
    memory.oom(96, 20, 3);
    let (_, story) = story(&memory);
    let device = memory.device();
    let lines: Vec<u32> = (story.twins.iter())
        .flat_map(|&stack| device.snapshot.stack(stack).map(|frame| frame.line))
        .collect();
    assert_eq!(lines, [1], "66 MiB are rounded up to 96 MiB");
    assert_eq!(story.settings, [CostlySetting::RoundupPower2Divisions { bytes: mib(30) }]);
}

#[test]
fn oom_tells_of_its_flush_and_leaves_churn_silent() {
    let mut memory = Memory::default();
    memory.fill(100, 1);
    memory.optimizer_step();
    let mut cached: Vec<_> = (0..4).map(|_| memory.fill(40, 2)).collect();
    cached.drain(..).for_each(|block| memory.free(block));
    memory.give_back(1, 3);
    let more = memory.reserve(50, 3);
    memory.alloc(more, 0, 50, 3);
    (2..5).for_each(|segment| memory.give_back(segment, 4));
    memory.oom(300, 100, 4);
    memory.fill(60, 5);
    let (_, story) = story(&memory);
    assert_eq!(story.flush, Some(Returned { segments: 3, bytes: mib(120) }));
    assert_eq!(story.retries, 1);
    assert_eq!(memory.of_kind(FindingKind::Churn), []);
}

/// The step that failed has larger inputs, and its tensors outlive it.
#[test]
fn oom_finds_what_the_exception_keeps() {
    for keeps in [true, false] {
        let mut memory = Memory::default();
        let input = |memory: &mut Memory, size: u64| {
            let block = memory.fill(size, 7);
            memory.frames(json!([{"name": "to", "filename": "/t/torch/utils/data/_utils/pin.py",
                "line": 3}, {"name": "next_batch", "filename": "train.py", "line": 7}]));
            block
        };
        memory.fill(64, 1);
        memory.optimizer_step();
        let block = input(&mut memory, 20);
        memory.free(block);
        memory.optimizer_step();
        let failed = input(&mut memory, 40);
        memory.oom(300, 10, 8);
        if !keeps {
            memory.free(failed);
        }
        for _ in 0..2 {
            let block = input(&mut memory, 20);
            memory.free(block);
            memory.optimizer_step();
        }
        let (_, story) = story(&memory);
        assert_eq!(story.kept, keeps.then_some((mib(40), 1)));
    }
}

/// An exception keeps the frames of a pass, and so its results. What else the step had was freed.
/// The same lines free their blocks in other steps; a list that grows keeps them in each.
#[test]
fn oom_that_keeps_less_than_half_of_its_step_says_so() {
    for (failed_keeps, all_keep) in [(true, false), (false, false), (true, true)] {
        let mut memory = Memory::default();
        for step in 0..6 {
            let results: Vec<_> = (1..=4).map(|line| memory.fill(16, line)).collect();
            let other = memory.fill(128, 5);
            if step == 2 {
                memory.oom(256, 10, 6);
            }
            memory.free(other);
            if !(all_keep || (step == 2 && failed_keeps)) {
                for block in results {
                    memory.free(block);
                }
            }
            memory.optimizer_step();
        }
        let kept = story(&memory).1.kept;
        let expected = (failed_keeps && !all_keep).then_some((mib(64), 4));
        assert_eq!(kept, expected, "{failed_keeps} {all_keep}");
    }
}

/// What is held counts as it was requested. Blocks are larger.
#[test]
fn oom_states_requested_bytes_of_holders() {
    let mut memory = Memory::default();
    let segment = memory.reserve(100, 1);
    memory.alloc_bytes(segment, 0, (90 * MIB, 100 * MIB), 1);
    memory.oom(60, 20, 3);
    let (finding, story) = story(&memory);
    assert_eq!((story.active, story.rounding), (mib(100), mib(10)));
    assert_eq!(finding.parts[1].bytes, mib(90));
    assert_eq!(story.categories.iter().map(|held| held.1.0).sum::<u64>(), 90 * MIB);
}
