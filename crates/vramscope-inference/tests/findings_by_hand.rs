//! Growth, cycles and steps on hand-made traces, one kind at a time.

use crate::{Device, frames_in, parse};
use serde_json::{Value, json};
use vramscope_inference::{
    Facts, Finding, FindingKind, Growth, GrowthKind, HeldTooLong, Phase, StepSource,
};
use vramscope_units::Bytes;

const MIB: u64 = 1 << 20;

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

    fn device(&self) -> Device {
        let file = json!({
            "segments": self.segments,
            "device_traces": [self.events],
            "external_annotations": self.annotations,
        });
        Device::new(parse(file.to_string().as_bytes()))
    }

    fn growth(&self) -> Vec<Finding> {
        self.device().of_kind(FindingKind::Growth)
    }
}

fn facts(finding: &Finding) -> &Growth {
    let Facts::Growth(growth) = &finding.facts else { panic!("growth, not {finding:?}") };
    growth
}

/// Kind, bytes in each step, interval, steps and total of the only growth.
fn only(found: &[Finding]) -> (GrowthKind, u64, usize, usize, u64) {
    let [finding] = found else { panic!("one finding, not {found:?}") };
    let growth = facts(finding);
    assert_eq!(growth.per_step.0, growth.per_step.1, "{growth:?}");
    (growth.kind, growth.per_step.0.0, growth.every, growth.steps, growth.total.0)
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
        assert_eq!(only(&program.growth()), (GrowthKind::Kept, 3 * MIB, 1, 5, 15 * MIB));
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
    assert_eq!(only(&program.growth()), (GrowthKind::Kept, MIB, 3, 6, 6 * MIB));
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
    let (kind, per_step, every, ..) = only(&program.growth());
    assert_eq!((kind, per_step, every), (GrowthKind::Replaced, 4 * MIB, 1));
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
    assert_eq!(program.device().steps, None);
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
    assert_eq!(only(&program.growth()), (GrowthKind::Kept, MIB, 1, 12, 12 * MIB));
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
    let steps = program.device().steps.expect("steps");
    assert_eq!((steps.source, steps.whole()), (StepSource::ProfilerStep, 8));
    assert_eq!(steps.begins[..3], [0, 121, 242]);
    // The ninth step is not whole, but its block stays too.
    assert_eq!(program.growth().iter().map(|g| g.bytes).collect::<Vec<_>>(), [9 * MIB]);
}

/// A line of the program that keeps memory only in the first half of the run fills a cache.
#[test]
fn growth_that_ends_is_none() {
    let mut program = Program::default();
    for step in 0..16 {
        program.work();
        if step < 9 {
            program.alloc(MIB, 77);
        }
        program.optimizer();
    }
    assert_eq!(program.growth(), []);
}

/// Lines that grow in the same steps are one leak, other steps are another.
#[test]
fn growth_in_the_same_steps_is_one_finding() {
    let mut program = Program::default();
    for step in 0..16 {
        program.work();
        for line in 77..80 {
            program.alloc(MIB, line);
        }
        if step % 4 == 3 {
            program.alloc(2 * MIB, 90);
        }
        program.optimizer();
    }
    let growth = program.growth();
    let sizes: Vec<(usize, u64)> =
        growth.iter().map(|leak| (facts(leak).sites, leak.bytes)).collect();
    assert_eq!(sizes, [(3, 48 * MIB), (1, 8 * MIB)]);
    assert_eq!(
        growth[0].parts.iter().map(|part| part.bytes).collect::<Vec<_>>(),
        [Bytes(16 * MIB), Bytes(16 * MIB), Bytes(16 * MIB)]
    );
}

/// Activations that stay until the next step grow with the sequence length. So does everything
/// else.
#[test]
fn growth_with_the_inputs_is_none() {
    let mut program = Program::default();
    let mut logits = None;
    for step in 1..=14 {
        let blocks: Vec<_> = (1..=10).map(|line| program.alloc(step * 4 * MIB, line)).collect();
        let new = program.alloc(step * 4 * MIB, 77);
        logits.replace(new).into_iter().for_each(|old| program.free(old));
        blocks.into_iter().rev().for_each(|block| program.free(block));
        program.optimizer();
    }
    assert_eq!(program.growth(), []);
}

/// Allocates in a phase, at a line of `model.py` or `train.py`.
fn pass(program: &mut Program, phase: Phase, size: u64, line: u32) -> (u64, u64) {
    let block = program.alloc(size, line);
    program.events.last_mut().expect("the alloc")["frames"] = frames_in(phase, line);
    block
}

/// A training step without named ranges: activations, then gradients that replace the last ones.
fn step(program: &mut Program, gradients: &mut Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    gradients.drain(..).for_each(|block| program.free(block));
    let batch = pass(program, Phase::Other, MIB, 5);
    let activations: Vec<_> =
        (20..30).map(|line| pass(program, Phase::Forward, 24 * MIB, line)).collect();
    *gradients = (0..10).map(|_| pass(program, Phase::Backward, 2 * MIB, 0)).collect();
    program.free(batch);
    activations
}

#[test]
fn steps_are_told_by_forward_and_backward_passes() {
    let mut program = Program::default();
    let mut gradients = Vec::new();
    for _ in 0..6 {
        let activations = step(&mut program, &mut gradients);
        activations.into_iter().rev().for_each(|block| program.free(block));
    }
    let steps = program.device().steps.expect("steps");
    assert_eq!((steps.source, steps.whole()), (StepSource::Rhythm, 6));
}

/// Layers or generated tokens have no backward pass, so they are repetitions.
#[test]
fn repetitions_are_no_training_steps() {
    let mut program = Program::default();
    let mut cache = Vec::new();
    for _ in 0..12 {
        let blocks: Vec<_> =
            (20..32).map(|line| pass(&mut program, Phase::Forward, MIB, line)).collect();
        cache.push(pass(&mut program, Phase::Forward, 4 * MIB, 40));
        blocks.into_iter().rev().for_each(|block| program.free(block));
    }
    let device = program.device();
    let steps = device.steps.as_ref().expect("repetitions");
    assert_eq!(steps.source, StepSource::Repetition);
    assert!(!steps.are_training());
    assert_eq!(device.of_kind(FindingKind::Growth), []);
}

/// Activations of four steps are freed at once, in the middle of a forward pass.
#[test]
fn memory_of_several_steps_freed_within_a_pass_is_a_cycle() {
    let mut program = Program::default();
    let (mut gradients, mut garbage) = (Vec::new(), Vec::new());
    for index in 0..12 {
        let activations = step(&mut program, &mut gradients);
        garbage.push(activations[0]);
        activations[1..].iter().rev().for_each(|&block| program.free(block));
        if index % 4 == 3 {
            let before: Vec<_> =
                (50..56).map(|line| pass(&mut program, Phase::Forward, MIB, line)).collect();
            garbage.drain(..).for_each(|block| program.free(block));
            let after: Vec<_> =
                (60..66).map(|line| pass(&mut program, Phase::Forward, MIB, line)).collect();
            before.into_iter().chain(after).for_each(|block| program.free(block));
        }
    }
    let found = program.device().of_kind(FindingKind::Cycle);
    let [finding] = found.as_slice() else { panic!("one finding, not {found:?}") };
    let Facts::Cycle(cycle) = finding.facts else { panic!("{finding:?}") };
    assert_eq!((cycle.freed, cycle.collections >= 2), (Bytes(96 * MIB), true));
    assert_eq!(program.growth(), []);
}

/// Predictions that an epoch collects are dropped between steps.
#[test]
fn memory_dropped_between_steps_is_no_cycle() {
    let mut program = Program::default();
    let (mut gradients, mut predictions) = (Vec::new(), Vec::new());
    for index in 0..12 {
        let activations = step(&mut program, &mut gradients);
        predictions.push(activations[0]);
        activations[1..].iter().rev().for_each(|&block| program.free(block));
        if index % 4 == 3 {
            predictions.drain(..).for_each(|block| program.free(block));
        }
    }
    assert_eq!(program.device().of_kind(FindingKind::Cycle), []);
}

/// The output of each step is freed by the line that computes the next one. The peak is in the
/// forward pass, before that line ends.
#[test]
fn results_of_the_last_step_at_the_peak_are_held() {
    let mut program = Program::default();
    let (mut gradients, mut output) = (Vec::new(), None);
    for _ in 0..6 {
        let mut activations = step(&mut program, &mut gradients);
        let new = activations.pop().expect("the output");
        output.replace(new).into_iter().for_each(|old: (u64, u64)| program.free(old));
        activations.into_iter().rev().for_each(|block| program.free(block));
    }
    let device = program.device();
    let held = device.of_kind(FindingKind::HeldTooLong);
    let [held] = held.as_slice() else { panic!("one finding, not {held:?}") };
    let Facts::HeldTooLong(HeldTooLong::LastStep { .. }) = held.facts else { panic!("{held:?}") };
    assert_eq!((held.bytes, held.blocks), (24 * MIB, 1));
}

#[test]
fn a_queue_grows_by_what_comes_minus_what_goes() {
    let mut program = Program::default();
    let mut queue = std::collections::VecDeque::new();
    for _ in 0..10 {
        program.work();
        for _ in 0..3 {
            queue.push_back(program.alloc(MIB, 77));
        }
        let first = queue.pop_front().expect("an item");
        program.free(first);
        program.optimizer();
    }
    let found = program.growth();
    let [finding] = &found[..] else { panic!("one finding, not {found:?}") };
    let growth = facts(finding);
    assert_eq!((growth.per_step, growth.is_queue), ((Bytes(2 * MIB), Bytes(2 * MIB)), true));
    assert_eq!((growth.total, growth.per_1000_steps), (Bytes(20 * MIB), Bytes(2000 * MIB)));
}

#[test]
fn a_rate_counts_steps_that_add_nothing() {
    let mut program = Program::default();
    for step in 0..18 {
        program.work();
        if step % 3 == 2 {
            program.alloc(3 * MIB, 77);
        }
        program.optimizer();
    }
    // What follows the last whole step is in no step, and counts as one time.
    program.alloc(3 * MIB, 77);
    let found = program.growth();
    let growth = facts(&found[0]);
    assert_eq!((growth.steps, growth.every), (7, 3));
    let per_step = growth.per_1000_steps.0 / 1000;
    assert!(per_step > MIB * 9 / 10 && per_step <= MIB * 12 / 10, "{growth:?}");
}
