//! Findings on hand-made traces, one kind at a time.

use crate::parse;
use serde_json::{Value, json};
use vramscope_analysis::{
    Category, Facts, Finding, FindingKind, Growth, OutlierItem, RankFacts, Sites, StepSource,
    Steps, Trace, findings, outliers,
};
use vramscope_snapshot::Snapshot;
use vramscope_units::{Bytes, EventIndex};

const MIB: u64 = 1 << 20;

fn of_kind(snapshot: &Snapshot, kind: FindingKind) -> Vec<Finding> {
    let sites = Sites::new(snapshot);
    let found = Trace::all(snapshot)
        .into_iter()
        .flat_map(|trace| findings(snapshot, &trace, &sites, &|_| None));
    found.filter(|a| a.kind() == kind).collect()
}

/// Builds a trace. Every allocation gets a new address.
#[derive(Default)]
struct Program {
    events: Vec<Value>,
    annotations: Vec<Value>,
    segments: Vec<Value>,
    next: u64,
}

impl Program {
    fn event(&mut self, action: &str, addr: u64, size: u64, line: u32) {
        let time = self.events.len() as u64 * 10;
        let mut event =
            json!({"action": action, "addr": addr, "size": size, "stream": 0, "time_us": time});
        if line > 0 {
            event["frames"] = json!([{"name": "step", "filename": "train.py", "line": line}]);
        }
        self.events.push(event);
    }

    /// Allocates at a line of `train.py`; line 0 means no call stack.
    fn alloc(&mut self, size: u64, line: u32) -> (u64, u64) {
        self.next += 1;
        let block = (self.next << 32, size);
        self.event("alloc", block.0, size, line);
        block
    }

    fn free(&mut self, (addr, size): (u64, u64)) {
        self.event("free_requested", addr, size, 0);
        self.event("free_completed", addr, size, 0);
    }

    /// Allocates activations at ten lines, then frees them.
    fn work(&mut self) {
        let blocks: Vec<_> = (1..=10).map(|line| self.alloc(8 * MIB, line)).collect();
        blocks.into_iter().rev().for_each(|block| self.free(block));
    }

    fn optimizer(&mut self) {
        for stage in ["START", "END"] {
            let time = self.events.len() as u64 * 10;
            let name = "Optimizer.step#SGD.step";
            self.annotations
                .push(json!({"name": name, "stage": stage, "device": 0, "time_us": time}));
        }
    }

    fn snapshot(&self) -> Snapshot {
        let file = json!({
            "segments": self.segments,
            "device_traces": [self.events],
            "external_annotations": self.annotations,
        });
        parse(file.to_string().as_bytes())
    }

    fn growth(&self) -> Vec<Finding> {
        of_kind(&self.snapshot(), FindingKind::Growth)
    }
}

/// Growth by `per_step` bytes in each step, in blocks that are kept.
fn kept(per_step: u64, every: usize, steps: usize) -> Facts {
    let per_step = Bytes(per_step);
    let at_end = Bytes(per_step.0 * steps as u64);
    Facts::Growth(Growth::Kept { per_step: (per_step, per_step), every, steps, at_end })
}

#[test]
fn growth_needs_five_steps_and_no_stacks() {
    for line in [77, 0] {
        let mut program = Program::default();
        for _ in 0..5 {
            program.work();
            program.alloc(3 * MIB, line);
            program.optimizer();
        }
        let growth = program.growth();
        let [leak] = growth.as_slice() else { panic!("one leak, not {growth:?}") };
        assert_eq!((&leak.facts, leak.bytes), (&kept(3 * MIB, 1, 5), 15 * MIB));
    }
}

#[test]
fn growth_at_every_third_step_is_found() {
    let mut program = Program::default();
    for step in 0..18 {
        program.work();
        if step % 3 == 2 {
            program.alloc(MIB, 77);
        }
        program.optimizer();
    }
    let growth = program.growth();
    assert_eq!(growth.len(), 1);
    assert_eq!(growth[0].facts, kept(MIB, 3, 6));
}

#[test]
fn growth_by_replaced_buffers_is_found() {
    let mut program = Program::default();
    let mut history = None;
    for step in 1..=12 {
        program.work();
        let larger = program.alloc(step * 4 * MIB, 77);
        history.replace(larger).into_iter().for_each(|smaller| program.free(smaller));
        program.optimizer();
    }
    let growth = program.growth();
    assert_eq!(growth.len(), 1);
    let Facts::Growth(Growth::Replaced { per_step, every: 1, .. }) = &growth[0].facts else {
        panic!("replaced blocks, not {growth:?}")
    };
    assert_eq!(*per_step, (Bytes(4 * MIB), Bytes(4 * MIB)));
}

#[test]
fn ring_buffers_and_last_gradients_are_not_growth() {
    let mut program = Program::default();
    let mut recent = std::collections::VecDeque::new();
    let mut gradients = Vec::new();
    for _ in 0..12 {
        gradients.drain(..).for_each(|block| program.free(block));
        program.work();
        gradients = (20..30).map(|line| program.alloc(MIB, line)).collect();
        recent.push_back(program.alloc(2 * MIB, 77));
        if recent.len() > 3 {
            recent.pop_front().into_iter().for_each(|block| program.free(block));
        }
        program.optimizer();
    }
    assert_eq!(program.growth(), []);
}

#[test]
fn model_construction_has_no_steps() {
    let mut program = Program::default();
    for _ in 0..24 {
        for line in 1..=12 {
            program.alloc(MIB, line);
        }
    }
    assert_eq!(program.growth(), []);
    let snapshot = program.snapshot();
    assert_eq!(Steps::find(&snapshot, &Trace::all(&snapshot)[0]), None);
}

#[test]
fn never_freed_finds_one_block_in_the_steady_part() {
    let mut program = Program::default();
    for step in 0..12 {
        program.work();
        if step == 6 {
            program.alloc(64 * MIB, 4);
        }
        program.optimizer();
    }
    let snapshot = program.snapshot();
    let stayed = of_kind(&snapshot, FindingKind::NeverFreed);
    let [stayed] = stayed.as_slice() else { panic!("one block, not {stayed:?}") };
    assert_eq!((stayed.bytes, stayed.events.as_slice()), (64 * MIB, [210].as_slice()));
    let Facts::NeverFreed { first, blocks, .. } = stayed.facts else { panic!("{stayed:?}") };
    assert_eq!((first, blocks), (EventIndex(210), 1));
    assert_eq!(of_kind(&snapshot, FindingKind::Growth), []);
}

#[test]
fn retries_count_segments_reserved_again() {
    let mut program = Program::default();
    for _ in 0..3 {
        program.event("segment_alloc", 1 << 40, 64 * MIB, 5);
        let block = (1 << 40, 64 * MIB);
        program.event("alloc", block.0, block.1, 5);
        program.free(block);
        program.event("segment_free", 1 << 40, 64 * MIB, 6);
        program.event("segment_alloc", 1 << 41, 96 * MIB, 6);
        program.event("segment_free", 1 << 41, 96 * MIB, 5);
    }
    let retries = of_kind(&program.snapshot(), FindingKind::Retry);
    let [retry] = retries.as_slice() else { panic!("one finding, not {retries:?}") };
    // The first segment of each size is new, the other two of each size are reserved again.
    assert_eq!(retry.bytes, 2 * (64 + 96) * MIB);
}

#[test]
fn growth_of_one_site_with_many_callers_is_one_finding() {
    let mut program = Program::default();
    for step in 0..12 {
        program.work();
        program.alloc(MIB, 77);
        let frames = &mut program.events.last_mut().expect("the alloc")["frames"];
        let outer = json!({"name": "main", "filename": "train.py", "line": 100 + step});
        frames.as_array_mut().expect("a list").push(outer);
        program.optimizer();
    }
    let growth = program.growth();
    assert_eq!(growth.len(), 1);
    assert_eq!(growth[0].facts, kept(MIB, 1, 12));
}

#[test]
fn profiler_steps_may_contain_micro_batches_and_evaluations() {
    let mut program = Program::default();
    for step in 0..9 {
        let time = program.events.len() as u64 * 10;
        for (stage, name) in [("END", step - 1), ("START", step)] {
            let name = format!("ProfilerStep#{name}");
            program
                .annotations
                .push(json!({"name": name, "stage": stage, "device": 0, "time_us": time}));
        }
        (0..4).for_each(|_| program.work());
        program.alloc(MIB, 77);
        if step % 4 == 3 {
            let outputs: Vec<_> = (0..20).map(|_| program.alloc(4 * MIB, 90)).collect();
            for block in outputs {
                program.free(block);
            }
        }
        program.optimizer();
    }
    let snapshot = program.snapshot();
    let steps = Steps::find(&snapshot, &Trace::all(&snapshot)[0]).expect("steps");
    assert_eq!((steps.source, steps.whole()), (StepSource::ProfilerStep, 8));
    assert_eq!(steps.begins[..3], [0, 121, 242]);
    // The ninth step is not whole, but its block stays too.
    assert_eq!(program.growth().iter().map(|g| g.bytes).collect::<Vec<_>>(), [9 * MIB]);
}

#[test]
fn oom_beside_unused_memory_reports_expandable_segments_off() {
    let mut program = Program::default();
    for segment in 1..=8 {
        program.event("segment_alloc", segment << 32, 128 * MIB, 5);
        let (address, size) = program.alloc(64 * MIB, 5);
        let block = |address: u64, requested: u64, state: &str| {
            let mut block = json!({"address": address, "size": size, "state": state});
            block["requested_size"] = requested.into();
            block
        };
        let blocks =
            [block(address, size, "active_allocated"), block(address + size, 0, "inactive")];
        let segment = json!({
            "device": 0,
            "address": address,
            "total_size": 2 * size,
            "blocks": blocks,
        });
        program.segments.push(segment);
    }
    program.event("oom", 0, 256 * MIB, 6);
    for (setting, is_found) in [("false", true), ("true", false)] {
        let mut snapshot = program.snapshot();
        snapshot.settings.push(("expandable_segments".to_owned(), setting.to_owned()));
        let settings = of_kind(&snapshot, FindingKind::Settings);
        assert_eq!(
            settings.iter().any(|a| a.bytes == 512 * MIB && a.events == [16]),
            is_found,
            "{settings:?}"
        );
    }
    let fragmentation = of_kind(&program.snapshot(), FindingKind::Fragmentation);
    let [fragmentation] = fragmentation.as_slice() else {
        panic!("one finding, not {fragmentation:?}")
    };
    assert_eq!(fragmentation.bytes, 512 * MIB);
}

#[test]
fn outliers_find_a_stack_of_one_rank_and_ignore_small_differences() {
    let rank = |i: u64| {
        let mut facts = RankFacts { name: format!("rank {i}"), ..RankFacts::default() };
        let batch = 6 + i % 3;
        facts.by_stack =
            (0..40).map(|s| (s, format!("gpt.py:{s} forward"), batch * 10 * MIB)).collect();
        facts.by_category = vec![(Category::Activation, batch * 400 * MIB)];
        facts.peaks = vec![("requested_bytes", (batch * 400 * MIB) as i64)];
        facts
    };
    let mut ranks: Vec<RankFacts> = (0..8).map(rank).collect();
    assert_eq!(outliers(&ranks), []);
    ranks[5].by_stack.push((99, "train.py:31 step".to_owned(), 500 * MIB));
    ranks[5].peaks[0].1 += 500 * MIB as i64;
    let found = outliers(&ranks);
    assert_eq!(
        found.iter().map(|f| (f.0, f.1.id.as_str(), f.1.bytes)).collect::<Vec<_>>(),
        [(5, "outlier-0-0000000000000063", 500 * MIB)]
    );
    let expected = Facts::Outlier {
        rank: "rank 5".to_owned(),
        item: OutlierItem::Stack { hash: 99, site: "train.py:31 step".to_owned() },
        bytes: Bytes(500 * MIB),
        usual: Bytes(0),
        ranks: 8,
    };
    assert_eq!(found[0].1.facts, expected);
    // The last stage of a pipeline runs other code, so no rank is compared with it.
    ranks[7].by_stack = (100..140).map(|s| (s, String::new(), 100 * MIB)).collect();
    assert_eq!(outliers(&ranks).len(), 1);
}
