//! The report on the phases of a hand-made run of two training steps, with values by hand.

use serde_json::{Value, json};
use vramscope_report::phases::phases;
use vramscope_report::{FileReader, LoadedFile};
use vramscope_trace::slicing::now;

const MAIN: &str = "<module>@/my/train.py";
const INIT: &[&str] = &["__init__@/lib/torch/nn/modules/linear.py", MAIN];
const FORWARD: &[&str] = &["_call_impl@/lib/torch/nn/modules/module.py", MAIN];
const BACKWARD: &[&str] = &[];
const STATE: &[&str] = &["_init_group@/lib/torch/optim/adamw.py", MAIN];
const ZERO: &[&str] = &["zero_grad@/lib/torch/optim/optimizer.py", MAIN];

/// A trace without a clock and without annotations. Every allocation gets a new address.
#[derive(Default)]
struct Run {
    events: Vec<Value>,
    live: Vec<(u64, u64)>,
}

impl Run {
    fn event(&mut self, action: &str, addr: u64, size: u64, stack: &[&str]) {
        let frame = |frame: &&str| {
            let (name, file) = frame.split_once('@').expect("function@file");
            json!({"name": name, "filename": file, "line": 7})
        };
        let frames: Vec<Value> = stack.iter().map(frame).collect();
        self.events.push(json!({"action": action, "addr": addr, "size": size, "frames": frames}));
    }

    fn alloc(&mut self, size: u64, stack: &[&str]) -> u64 {
        let address = (self.events.len() as u64 + 1) << 20;
        self.event("alloc", address, size, stack);
        self.live.push((address, size));
        address
    }

    fn free(&mut self, address: u64, stack: &[&str]) {
        let at = self.live.iter().position(|block| block.0 == address).expect("a live block");
        let (_, size) = self.live.remove(at);
        self.event("free_requested", address, size, stack);
        self.event("free_completed", address, size, stack);
    }

    /// A training step: 300 bytes of activations, 1,000 of gradients, 200 of temporaries.
    fn step(&mut self, is_first: bool) {
        let activation = self.alloc(300, FORWARD);
        let temporary = self.alloc(200, BACKWARD);
        let gradient = self.alloc(1000, BACKWARD);
        self.free(activation, BACKWARD);
        self.free(temporary, BACKWARD);
        if is_first {
            self.alloc(2000, STATE);
        }
        self.free(gradient, ZERO);
    }

    /// A training step whose optimizer replaces 2,000 bytes of state.
    fn replacing_step(&mut self, state: u64) -> u64 {
        let activation = self.alloc(300, FORWARD);
        let gradient = self.alloc(1000, BACKWARD);
        self.free(activation, BACKWARD);
        let replaced = self.alloc(2000, STATE);
        self.free(state, STATE);
        self.free(gradient, ZERO);
        replaced
    }

    fn file(&self) -> LoadedFile {
        let block = |&(address, size): &(u64, u64)| {
            json!({"address": address, "size": size, "requested_size": size,
                "state": "active_allocated"})
        };
        let blocks: Vec<Value> = self.live.iter().map(block).collect();
        let segment =
            json!({"device": 0, "address": 0, "total_size": 1u64 << 40, "blocks": blocks});
        let file = json!({"device_traces": [self.events], "segments": [segment]}).to_string();
        let mut reader = FileReader::new("rank3.json", file.len() as u64);
        reader.feed(file.as_bytes()).expect("a snapshot");
        reader.finish().expect("a snapshot")
    }
}

fn report(steps: usize) -> Value {
    let mut run = Run::default();
    run.alloc(1000, INIT);
    (0..steps).for_each(|step| run.step(step == 0));
    report_of(&run)
}

fn report_of(run: &Run) -> Value {
    let file = run.file();
    let target = file.target(0, 0).expect("device 0");
    serde_json::to_value(now(async |budget| phases(target, None, budget).await))
        .expect("it serializes")
}

/// Phase, first event, event after the last, peak, event of the peak.
fn rows(step: &Value) -> Vec<Value> {
    let phases = step["phases"].as_array().expect("a list");
    let row =
        |p: &Value| json!([p["phase"], p["begin"], p["end"], p["peak_bytes"], p["peak_event"]]);
    phases.iter().map(row).collect()
}

#[test]
fn two_steps_by_hand() {
    let report = report(2);
    assert_eq!((&report["rank"], &report["device"]), (&json!(3), &json!(0)));
    assert_eq!(report["steps_by"], "optimizer_update");
    assert_eq!(
        rows(&report["steps"][0]),
        [
            json!(["other", 0, 1, 1000, 0]),
            json!(["forward", 1, 2, 1300, 1]),
            json!(["backward", 2, 8, 2500, 3]),
            json!(["optimizer", 8, 11, 4000, 8]),
        ]
    );
    assert_eq!(
        rows(&report["steps"][1]),
        [
            json!(["forward", 11, 12, 3300, 11]),
            json!(["backward", 12, 18, 4500, 13]),
            json!(["optimizer", 18, 20, 4000, 18]),
        ]
    );
    let backward = &report["steps"][1]["phases"][1];
    let live = json!({"parameter": 1000, "gradient": 1000, "optimizer_state": 2000,
        "activation": 300, "temporary": 200});
    for (category, bytes) in backward["categories"].as_object().expect("a map") {
        assert_eq!(bytes, live.get(category).unwrap_or(&json!(0)), "{category}");
    }
    assert_eq!(backward["site"], "no call stack");
    assert_eq!(report["steps"][0]["phases"][3]["site"], "train.py:7 <module>");
    assert_eq!(report["outside"], json!([]));
}

#[test]
fn the_sum_names_the_phase_that_limits_and_the_formula_has_its_error() {
    let report = report(2);
    let sum = report["sum"].as_array().expect("a list");
    let names: Vec<&Value> = sum.iter().map(|row| &row["phase"]).collect();
    assert_eq!(names, ["backward", "optimizer", "forward", "other"]);
    assert_eq!(
        sum[0],
        json!({"phase": "backward", "step": 1, "peak_event": 13, "peak_bytes": 4500,
            "parameter": 1000, "optimizer_state": 2000, "gradient": 1000, "activation": 300,
            "temporary": 200, "other": 0})
    );
    // Without activations, backward holds 4,200 bytes.
    assert_eq!(
        report["limiting"],
        json!({"phase": "backward", "bytes": 4500, "next_phase": "optimizer", "next_bytes": 4000,
            "without_activations_bytes": 4200, "without_activations_phase": "backward"})
    );
    // 1,000 + 2,000 + max(1,000 + 200, 300).
    assert_eq!(
        report["formula"],
        json!({"parameter": 1000, "optimizer_state": 2000, "gradient_and_temporary": 1200,
            "activation": 300, "bytes": 4200, "error_bytes": -300})
    );
}

#[test]
fn the_first_step_alone_shows_the_second() {
    let phase = |phase: &str, without_new: u64| {
        json!({"phase": phase, "without_new_bytes": without_new, "held_bytes": 0,
            "bytes": without_new + 2000})
    };
    let next = json!({"basis": "estimate", "phase": "backward", "peak_bytes": 4500,
        "new_state_bytes": 2000, "other_new_bytes": 0, "recorded_bytes": null,
        "phases": [phase("forward", 1300), phase("backward", 2500), phase("optimizer", 2000)]});
    let first = report(1);
    assert_eq!(first["next_step"], next);
    let texts = first["text"].as_array().expect("a list");
    let text = texts.iter().filter_map(Value::as_str).find(|text| text.contains("next step"));
    assert!(text.is_some_and(|text| text.contains("4.39 KiB in the backward phase")), "{texts:?}");
    assert_eq!(report(2)["next_step"]["recorded_bytes"], 4500);
}

#[test]
fn state_that_is_replaced_is_not_new() {
    let mut run = Run::default();
    run.alloc(1000, INIT);
    // Nothing tells that this is the state of earlier steps.
    let state = run.alloc(2000, &[MAIN]);
    run.replacing_step(state);
    let report = report_of(&run);
    assert_eq!(report["steps"][0]["phases"][3]["phase"], "optimizer");
    assert_eq!(report["next_step"], Value::Null);
}
