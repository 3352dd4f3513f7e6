//! Memory that nothing needs, and what makes the peak, on hand-made traces: one that has it, one
//! that nearly has it.

use crate::{Device, parse};
use serde_json::{Value, json};
use vramscope_inference::{Facts, Finding, FindingKind, HeldTooLong, PeakPart, Recipe, peak_parts};
use vramscope_trace::slicing::now;
use vramscope_units::Bytes;

const MIB: u64 = 1 << 20;

type Block = (u64, u64);

/// Builds a trace. Every allocation gets a new address.
#[derive(Default)]
struct Program {
    events: Vec<Value>,
    annotations: Vec<Value>,
    next: u64,
}

fn frame(name: &str, file: &str, line: u32) -> Value {
    json!({"name": name, "filename": file, "line": line})
}

const MODULE: &str = "/venv/site-packages/torch/nn/modules/module.py";
const ADAM: &str = "/venv/site-packages/torch/optim/adam.py";

/// A line of a model's forward pass, called from `train.py:20`.
fn model(line: u32) -> Vec<Value> {
    vec![
        frame("forward", "/app/model.py", line),
        frame("_call_impl", MODULE, 1786),
        frame("main", "/app/train.py", 20),
    ]
}

/// A line of the program itself.
fn main(line: u32) -> Vec<Value> {
    vec![frame("main", "/app/train.py", line)]
}

/// The autograd engine.
fn engine() -> Vec<Value> {
    vec![frame("torch::autograd::Engine::evaluate_function()", "??", 0)]
}

/// The optimizer, which updates all parameters in one operation.
fn foreach() -> Vec<Value> {
    vec![
        frame("_multi_tensor_adam", ADAM, 667),
        frame("step", ADAM, 243),
        frame("main", "/app/train.py", 40),
    ]
}

fn zero_grad() -> Vec<Value> {
    let file = "/venv/site-packages/torch/optim/optimizer.py";
    vec![frame("zero_grad", file, 1035), frame("main", "/app/train.py", 41)]
}

impl Program {
    fn event(&mut self, action: &str, (addr, size): Block, frames: Vec<Value>) {
        let time = self.events.len() as u64 * 10;
        let mut event =
            json!({"action": action, "addr": addr, "size": size, "stream": 0, "time_us": time});
        event["frames"] = Value::Array(frames);
        self.events.push(event);
    }

    fn alloc(&mut self, size: u64, frames: Vec<Value>) -> Block {
        self.next += 1;
        let block = (self.next << 32, size);
        self.event("alloc", block, frames);
        block
    }

    fn free(&mut self, block: Block, frames: &[Value]) {
        self.event("free_requested", block, frames.to_vec());
        self.event("free_completed", block, frames.to_vec());
    }

    fn free_all(&mut self, blocks: Vec<Block>, frames: &[Value]) {
        blocks.into_iter().rev().for_each(|block| self.free(block, frames));
    }

    /// The parameters of a model: four tensors of 16 MiB.
    fn build(&mut self) {
        for _ in 0..4 {
            let init = vec![
                frame("__init__", "/venv/site-packages/torch/nn/modules/linear.py", 109),
                frame("__init__", "/app/model.py", 9),
                frame("main", "/app/train.py", 5),
            ];
            self.alloc(16 * MIB, init);
        }
    }

    /// A pass of six layers with five results each. With autograd all of them stay.
    fn pass(&mut self, has_autograd: bool) -> Vec<Block> {
        let (mut kept, mut layer) = (Vec::new(), Vec::new());
        for _ in 0..6 {
            let before = std::mem::take(&mut layer);
            for line in 30..35 {
                layer.push(self.alloc(4 * MIB, model(line)));
            }
            if has_autograd {
                kept.extend(before);
            } else {
                self.free_all(before, &model(36));
            }
        }
        kept.extend(layer);
        kept
    }

    fn backward(&mut self, saved: Vec<Block>) -> Vec<Block> {
        let mut gradients = Vec::new();
        let each = saved.len() / 4;
        for (i, block) in saved.into_iter().rev().enumerate() {
            let inner = self.alloc(MIB, engine());
            self.free(block, &engine());
            self.free(inner, &engine());
            if i % each == each - 1 && gradients.len() < 4 {
                gradients.push(self.alloc(16 * MIB, engine()));
            }
        }
        gradients
    }

    fn optimizer(&mut self, temporaries: u64) {
        for stage in ["START", "END"] {
            let time = self.events.len() as u64 * 10;
            self.annotations.push(json!({"name": "Optimizer.step#Adam.step", "stage": stage,
                "device": 0, "time_us": time}));
            if stage == "START" {
                let made = (0..4).map(|_| self.alloc(temporaries, foreach())).collect();
                self.free_all(made, &foreach());
            }
        }
    }

    fn step(&mut self) {
        let batch = self.alloc(MIB, main(18));
        let saved = self.pass(true);
        let gradients = self.backward(saved);
        self.optimizer(4096);
        self.free_all(gradients, &zero_grad());
        self.free(batch, &main(18));
    }

    fn device(&self) -> Device {
        let file = json!({"segments": [], "device_traces": [self.events],
            "external_annotations": self.annotations});
        Device::new(parse(file.to_string().as_bytes()))
    }

    fn peak_parts(&self) -> Vec<PeakPart> {
        let device = self.device();
        now(async |budget| peak_parts(device.evidence(), budget).await)
    }

    fn found(&self, kind: FindingKind) -> Vec<Finding> {
        self.device().of_kind(kind)
    }
}

#[test]
fn evaluation_with_autograd_is_found() {
    let mut program = Program::default();
    program.build();
    program.step();
    program.step();
    let mut old = Vec::new();
    for _ in 0..3 {
        let graph = program.pass(true);
        program.free_all(std::mem::replace(&mut old, graph), &main(22));
        program.alloc(512, main(23));
    }
    program.free_all(old, &main(24));
    program.step();
    let found = program.found(FindingKind::NoGrad);
    let [finding] = &found[..] else { panic!("one finding, not {found:?}") };
    let Facts::NoGrad(facts) = &finding.facts else { panic!("{finding:?}") };
    // Two graphs of 30 results of 4 MiB.
    assert_eq!((finding.bytes, facts.of_earlier), (240 * MIB, Bytes(120 * MIB)));
    assert_eq!((facts.graphs, facts.largest), (3, Bytes(120 * MIB)));
    assert_eq!(facts.dropped_at.map(|frame| frame.line), Some(22));
    assert_eq!(facts.called_at.map(|frame| frame.line), Some(20));
    assert!(facts.trains && !facts.is_open, "{facts:?}");
    // A training step: parameters, the batch and 30 results.
    assert!(facts.peak_without.0 <= (64 + 1 + 120 + 16) * MIB, "{facts:?}");
}

/// The result of a training step that dies with a graph, with no request between, hid the graph.
#[test]
fn a_result_of_training_is_no_part_of_the_graph_that_dies_with_it() {
    let mut program = Program::default();
    program.build();
    program.step();
    let logits = program.alloc(8 * MIB, model(34));
    let saved = program.pass(true);
    let gradients = program.backward(saved);
    program.optimizer(4096);
    program.free_all(gradients, &zero_grad());
    let mut graph = program.pass(true);
    graph.extend(program.pass(true));
    program.free(logits, &main(22));
    program.free_all(graph, &main(22));
    program.alloc(512, main(23));
    let found = program.found(FindingKind::NoGrad);
    let [finding] = &found[..] else { panic!("one finding, not {found:?}") };
    // Two passes of 30 results of 4 MiB.
    assert_eq!((finding.bytes, finding.blocks), (240 * MIB, 60), "{finding:?}");
}

/// As in a GAN with feature matching: lists of features die together, and the next backward pass
/// uses what else the second pass has saved.
#[test]
fn features_of_a_pass_that_goes_backward_are_no_graph() {
    let mut program = Program::default();
    program.build();
    let halves = |blocks: Vec<Block>| -> [Vec<Block>; 2] {
        let (features, saved) = (0..).zip(blocks).partition(|(i, _)| i % 2 == 0);
        [features, saved].map(|half: Vec<(u32, Block)>| half.into_iter().map(|of| of.1).collect())
    };
    let [mut features, saved] = halves(program.pass(true));
    let mut gradients = program.backward(saved);
    let [more, saved] = halves(program.pass(true));
    features.extend(more);
    program.free_all(features, &main(22));
    gradients.extend(program.backward(saved));
    program.free_all(gradients, &zero_grad());
    let found = program.found(FindingKind::NoGrad);
    assert!(found.is_empty(), "{found:?}");
}

/// A recording that ends in the forward pass of a training step, after an evaluation.
#[test]
fn an_open_pass_of_training_is_no_evaluation() {
    let mut program = Program::default();
    program.build();
    program.step();
    let graph = program.pass(true);
    program.free_all(graph, &main(22));
    program.step();
    program.pass(true);
    program.pass(true);
    let found = program.found(FindingKind::NoGrad);
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn inference_without_autograd_and_training_keep_no_graph() {
    let mut program = Program::default();
    program.build();
    for _ in 0..3 {
        let outputs = program.pass(false);
        program.free_all(outputs, &main(22));
    }
    assert!(program.found(FindingKind::NoGrad).is_empty());

    let mut program = Program::default();
    program.build();
    (0..3).for_each(|_| program.step());
    assert!(program.found(FindingKind::NoGrad).is_empty());
}

#[test]
fn a_cache_of_keys_and_values_is_no_graph() {
    let mut program = Program::default();
    program.build();
    for _ in 0..3 {
        let mut cache = Vec::new();
        for _ in 0..6 {
            let brief = (30..33).map(|line| program.alloc(4 * MIB, model(line))).collect();
            cache.extend((33..35).map(|line| program.alloc(8 * MIB, model(line))));
            program.free_all(brief, &model(36));
        }
        program.free_all(cache, &main(22));
    }
    assert!(program.found(FindingKind::NoGrad).is_empty());
}

fn held(found: &[Finding]) -> (&Finding, &HeldTooLong) {
    let [finding] = found else { panic!("one finding, not {found:?}") };
    let Facts::HeldTooLong(held) = &finding.facts else { panic!("{finding:?}") };
    (finding, held)
}

#[test]
fn a_pass_that_is_kept_once_is_held_for_several_steps() {
    let mut program = Program::default();
    program.build();
    for step in 0..6 {
        if step == 2 {
            program.pass(true);
            program.optimizer(4096);
        } else {
            program.step();
        }
    }
    let found = program.found(FindingKind::HeldTooLong);
    let (finding, facts) = held(&found);
    assert!(matches!(facts, HeldTooLong::LastStep { of_step: Some(2), .. }), "{facts:?}");
    assert_eq!(finding.bytes, 120 * MIB);
}

#[test]
fn results_that_are_gone_at_the_next_peak_cost_its_distance() {
    let mut program = Program::default();
    program.build();
    let mut old = None;
    for _ in 0..4 {
        let batch = program.alloc(MIB, main(18));
        let saved = program.pass(true);
        let output = program.alloc(40 * MIB, model(50));
        if let Some(old) = old.replace(output) {
            program.free(old, &main(20));
        }
        // After the old output is gone, backward needs nearly as much.
        let scratch = program.alloc(30 * MIB, engine());
        program.free(scratch, &engine());
        let gradients = program.backward(saved);
        program.optimizer(4096);
        program.free_all(gradients, &zero_grad());
        program.free(batch, &main(18));
    }
    let found = program.found(FindingKind::HeldTooLong);
    let (finding, facts) = held(&found);
    let HeldTooLong::LastStep { of_step: None, saving, .. } = facts else { panic!("{facts:?}") };
    assert_eq!((finding.bytes, *saving), (40 * MIB, Bytes(10 * MIB)));
}

#[test]
fn gradients_of_frozen_parameters_are_never_replaced() {
    let mut program = Program::default();
    program.build();
    for step in 0..5 {
        let batch = program.alloc(MIB, main(18));
        let saved = program.pass(true);
        let gradients = program.backward(saved);
        if step == 0 {
            program.alloc(48 * MIB, engine());
        }
        program.optimizer(4096);
        program.free_all(gradients, &zero_grad());
        program.free(batch, &main(18));
    }
    let found = program.found(FindingKind::GradientsHeld);
    let [finding] = &found[..] else { panic!("one finding, not {found:?}") };
    assert!(matches!(finding.facts, Facts::Frozen(_)), "{finding:?}");
    assert_eq!(finding.bytes, 48 * MIB);
}

#[test]
fn gradients_that_backward_makes_anew_at_once_are_no_finding() {
    let mut program = Program::default();
    program.build();
    let mut old = Vec::new();
    for _ in 0..5 {
        let batch = program.alloc(MIB, main(18));
        let saved = program.pass(true);
        let brief = program.alloc(512, model(60));
        program.free(brief, &model(60));
        let loss = program.alloc(512, main(25));
        program.free_all(std::mem::take(&mut old), &zero_grad());
        // 2 MiB less than at the end of forward.
        let scratch = program.alloc(62 * MIB, engine());
        program.free(scratch, &engine());
        old = program.backward(saved);
        program.optimizer(4096);
        program.free(loss, &main(25));
        program.free(batch, &main(18));
    }
    assert_eq!(program.found(FindingKind::GradientsHeld), []);
}

#[test]
fn temporaries_of_foreach_set_the_peak() {
    let mut program = Program::default();
    program.build();
    for _ in 0..3 {
        let saved = program.pass(true);
        let gradients = program.backward(saved);
        program.optimizer(32 * MIB);
        program.free_all(gradients, &zero_grad());
    }
    let parts = program.peak_parts();
    let [part] = &parts[..] else { panic!("one part, not {parts:?}") };
    assert_eq!(part.cure, Recipe::foreach_off());
    // Parameters and 30 results.
    assert!((184 * MIB..=200 * MIB).contains(&part.without), "{part:?}");
}

#[test]
fn temporaries_below_another_peak_are_not_named() {
    let mut program = Program::default();
    program.build();
    (0..3).for_each(|_| program.step());
    assert_eq!(program.peak_parts(), []);
}
