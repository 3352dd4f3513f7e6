//! Hand-written traces of a few blocks, with their expected categories.

use super::*;
use std::fmt::Write as _;
use vramscope_snapshot::Reader;
use vramscope_trace::slicing::now;

/// A stack of frames, innermost first, as `function@file` or `function@file#line`.
pub(super) type Stack = &'static [&'static str];

pub(super) const MAIN: &str = "<module>@/my/train.py";
pub(super) const CALL: &str = "_call_impl@/lib/torch/nn/modules/module.py";
pub(super) const INIT: Stack =
    &["__init__@/lib/torch/nn/modules/linear.py", "__init__@/my/model.py", MAIN];
const OWN_INIT: Stack = &["__init__@/my/model.py", MAIN];
pub(super) const USER: Stack = &[MAIN];
pub(super) const FORWARD: Stack = &["forward@/lib/torch/nn/modules/linear.py", CALL, MAIN];
pub(super) const BACKWARD: Stack = &[];
pub(super) const STATE: Stack =
    &["_init_group@/lib/torch/optim/adamw.py", "step@/lib/torch/optim/adamw.py", MAIN];
pub(super) const STEP: Stack =
    &["_multi_tensor_adamw@/lib/torch/optim/adamw.py", "step@/lib/torch/optim/adamw.py", MAIN];
pub(super) const ZERO: Stack = &["zero_grad@/lib/torch/optim/optimizer.py", MAIN];

/// Writes a trace event by event.
#[derive(Default)]
pub(super) struct Script {
    events: Vec<String>,
    live: Vec<(u64, u64)>,
    next: u64,
}

impl Script {
    fn event(&mut self, action: &str, addr: u64, size: u64, stack: Stack) {
        let frames: Vec<String> = stack
            .iter()
            .map(|f| f.split_once('@').expect("function@file"))
            .map(|(name, file)| (name, file.split_once('#').unwrap_or((file, "1"))))
            .map(|(name, (file, line))| {
                format!(r#"{{"name": "{name}", "filename": "{file}", "line": {line}}}"#)
            })
            .collect();
        self.events.push(format!(
            r#"{{"action": "{action}", "addr": {addr}, "size": {size}, "frames": [{}]}}"#,
            frames.join(",")
        ));
    }

    pub(super) fn alloc(&mut self, size: u64, stack: Stack) -> u64 {
        self.next += 1 << 20;
        self.event("alloc", self.next, size, stack);
        self.live.push((self.next, size));
        self.next
    }

    pub(super) fn free(&mut self, addr: u64, stack: Stack) {
        let at = self.live.iter().position(|l| l.0 == addr).expect("the block is live");
        let (_, size) = self.live.remove(at);
        self.event("free_requested", addr, size, stack);
        self.event("free_completed", addr, size, stack);
    }

    /// Adds a block from before the window that is live at the end.
    pub(super) fn preexisting(&mut self, size: u64) -> u64 {
        self.next += 1 << 20;
        self.live.push((self.next, size));
        self.next
    }

    pub(super) fn guesses(&self, rules: &Rules) -> Vec<(u64, Category)> {
        self.all(rules).into_iter().map(|(addr, guess)| (addr, guess.category)).collect()
    }

    /// Addresses and guesses of all blocks.
    pub(super) fn all(&self, rules: &Rules) -> Vec<(u64, Guess)> {
        let mut blocks = String::new();
        for (i, (addr, size)) in self.live.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            write!(
                blocks,
                r#"{comma}{{"address": {addr}, "size": {size}, "requested_size": {size},
                "state": "active_allocated"}}"#
            )
            .expect("writing to a String cannot fail");
        }
        let json = format!(
            r#"{{"device_traces": [[{}]],
                "segments": [{{"device": 0, "address": 0, "total_size": {},
                "blocks": [{blocks}]}}]}}"#,
            self.events.join(","),
            self.next + (1 << 20)
        );
        let mut reader = Reader::default();
        reader.feed(json.as_bytes()).expect("JSON");
        let snapshot = reader.finish().expect("a snapshot").remove(0).snapshot;
        let trace = &Trace::all(&snapshot)[0];
        let categories = now(async |budget| Categories::new(&snapshot, trace, rules, budget).await);
        (0..).zip(&trace.blocks).map(|(i, b)| (b.address.0, categories.get(i))).collect()
    }
}

pub(super) fn category(guesses: &[(u64, Category)], addr: u64) -> Category {
    guesses.iter().find(|g| g.0 == addr).expect("a block at the address").1
}

/// Runs forward and backward of a step. Returns its input, activation, temporary and gradient.
pub(super) fn step(script: &mut Script, gradient: u64) -> [u64; 4] {
    let input = script.alloc(300, USER);
    let temporary = script.alloc(700, FORWARD);
    let activation = script.alloc(800, FORWARD);
    script.free(temporary, FORWARD);
    let inner = script.alloc(800, BACKWARD);
    script.free(activation, BACKWARD);
    let gradient = script.alloc(gradient, BACKWARD);
    script.free(inner, BACKWARD);
    [input, activation, temporary, gradient]
}

#[test]
fn blocks_of_a_training_step_get_their_categories() {
    let mut script = Script::default();
    let parameter = script.alloc(1000, INIT);
    let norm = script.alloc(1200, OWN_INIT);
    let mask = script.alloc(5000, OWN_INIT);
    let [input, activation, temporary, gradient] = step(&mut script, 1000);
    let norm_gradient = script.alloc(1200, BACKWARD);
    let states = [script.alloc(1000, STATE), script.alloc(1200, STATE), script.alloc(1000, STATE)];
    let root = script.alloc(1000, STEP);
    script.free(root, STEP);
    script.free(gradient, ZERO);
    script.free(norm_gradient, ZERO);
    script.free(input, USER);
    step(&mut script, 1000);
    let guesses = script.guesses(&Rules::default());
    for (addr, expected) in [
        (parameter, Category::Parameter),
        (norm, Category::Parameter),
        (mask, Category::Buffer),
        (input, Category::Input),
        (activation, Category::Activation),
        (temporary, Category::Temporary),
        (gradient, Category::Gradient),
        (norm_gradient, Category::Gradient),
        (states[0], Category::OptimizerState),
        (states[1], Category::OptimizerState),
        (states[2], Category::OptimizerState),
        (root, Category::Temporary),
    ] {
        assert_eq!(category(&guesses, addr), expected, "{addr:#x}");
    }
}

#[test]
fn gradients_are_found_when_the_optimizer_allocates_nothing() {
    // SGD without momentum allocates nothing. Only the frees in zero_grad show the end of backward.
    let mut script = Script::default();
    script.alloc(1000, INIT);
    for _ in 0..2 {
        let [input, .., gradient] = step(&mut script, 1000);
        script.free(gradient, ZERO);
        script.free(input, USER);
    }
    let gradients =
        script.guesses(&Rules::default()).iter().filter(|g| g.1 == Category::Gradient).count();
    assert_eq!(gradients, 2);
}

#[test]
fn blocks_from_before_the_window_are_classified_by_size() {
    let mut script = Script::default();
    let (parameter, first, second) =
        (script.preexisting(1000), script.preexisting(1000), script.preexisting(1000));
    let mask = script.preexisting(5000);
    for _ in 0..2 {
        let [input, .., gradient] = step(&mut script, 1000);
        let root = script.alloc(1000, STEP);
        script.free(root, STEP);
        script.free(gradient, ZERO);
        script.free(input, USER);
    }
    let guesses = script.guesses(&Rules::default());
    assert_eq!(category(&guesses, parameter), Category::Parameter);
    assert_eq!(category(&guesses, first), Category::OptimizerState);
    assert_eq!(category(&guesses, second), Category::OptimizerState);
    assert_eq!(category(&guesses, mask), Category::Buffer);
}

#[test]
fn gradients_zeroed_in_place_are_found_among_preexisting_blocks() {
    let mut script = Script::default();
    let (parameter, gradient, state) =
        (script.preexisting(1000), script.preexisting(1000), script.preexisting(1000));
    for _ in 0..2 {
        let input = script.alloc(300, USER);
        let activation = script.alloc(800, FORWARD);
        let inner = script.alloc(1000, BACKWARD);
        script.free(activation, BACKWARD);
        // A temporary that is added to the existing gradient, and freed.
        script.free(inner, BACKWARD);
        let root = script.alloc(1000, STEP);
        script.free(root, STEP);
        script.free(input, USER);
    }
    let guesses = script.guesses(&Rules::default());
    assert_eq!(category(&guesses, parameter), Category::Parameter);
    assert_eq!(category(&guesses, gradient), Category::Gradient);
    assert_eq!(category(&guesses, state), Category::OptimizerState);
}

#[test]
fn blocks_without_evidence_are_unknown() {
    let mut script = Script::default();
    script.preexisting(1000);
    script.alloc(500, USER);
    assert!(script.guesses(&Rules::default()).iter().all(|g| g.1 == Category::Unknown));
}

#[test]
fn user_rules_override_all_other_evidence() {
    let mut script = Script::default();
    let block = script.alloc(1000, INIT);
    step(&mut script, 1000);
    let rules = Rules::parse("workspace /my/model.py __init__").expect("a rule");
    assert_eq!(category(&script.guesses(&rules), block), Category::Workspace);
    assert_eq!(category(&script.guesses(&Rules::default()), block), Category::Parameter);
}

#[test]
fn parse_inverts_name() {
    for category in Category::ALL {
        assert_eq!(Category::parse(category.name()), Some(category));
    }
    assert_eq!(Category::parse("parameters"), None);
}
