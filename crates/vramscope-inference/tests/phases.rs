//! Steps and phases of whole programs, and what alone sets the peak, on hand-made traces.

use crate::{Device, frames_in, load, parse};
use serde_json::{Value, json};
use vramscope_inference::{
    Category, Facts, FindingKind, GrowthKind, PeakCause, Phase, Severity, StepPhase, StepPhases,
};
use vramscope_trace::slicing::now;
use vramscope_units::Bytes;

const MIB: u64 = 1 << 20;

fn phases(device: &Device) -> StepPhases {
    let Device { snapshot, trace, categories, steps, passes, .. } = device;
    let (steps, parts) = (steps.as_ref(), &passes.parts);
    now(async |budget| StepPhases::new(snapshot, trace, categories, steps, parts, budget).await)
}

fn whole_steps(file: &str) -> usize {
    let device = Device::new(load(file));
    device.steps.expect("steps").whole()
}

/// The program runs nine steps, and an evaluation of twelve batches after every fourth.
#[test]
fn training_passes_stay_forward_beside_a_long_evaluation() {
    let device = Device::new(load("phases/lm_eval_long.pickle.gz"));
    assert_eq!(device.steps.as_ref().map(vramscope_inference::Steps::whole), Some(9));
    let found = phases(&device);
    for step in 0..9 {
        let of_step = |phase| {
            found.phases.iter().filter(|p| p.step == Some(step) && p.phase == phase).count()
        };
        assert_eq!((of_step(StepPhase::Forward), of_step(StepPhase::Backward)), (1, 1), "{step}");
    }
    assert!(found.phases.iter().any(|part| part.phase == StepPhase::Evaluation));
}

#[test]
fn several_optimizers_of_one_class_make_one_step() {
    assert_eq!(whole_steps("phases/opt_in_backward.pickle.gz"), 8, "one optimizer a parameter");
    assert_eq!(whole_steps("phases/gan_ema.pickle.gz"), 6, "generator and discriminator");
}

#[test]
fn layers_of_one_forward_pass_are_no_steps() {
    let device = Device::new(load("phases/one_forward.pickle.gz"));
    assert_eq!(device.steps, None);
    let found = phases(&device);
    let peak = found.at(device.trace.requested_band.peak_event.expect("a peak") + 1);
    assert_eq!(peak.map(|part| part.phase), Some(StepPhase::Forward));
}

/// Builds a trace of a program with modules. Every allocation gets a new address.
#[derive(Default)]
struct Program {
    events: Vec<Value>,
    next: u64,
}

type Address = (u64, u64);

impl Program {
    fn event(&mut self, action: &str, (addr, size): Address, frames: &Value) {
        let time = self.events.len() as u64 * 10;
        self.events.push(json!({
            "action": action, "addr": addr, "size": size, "stream": 0, "time_us": time,
            "frames": frames,
        }));
    }

    /// Allocates in a phase, at a line of `model.py` or `train.py`.
    fn alloc(&mut self, phase: Phase, size: u64, line: u32) -> Address {
        self.next += 1;
        let block = (self.next << 32, size);
        self.event("alloc", block, &frames_in(phase, line));
        block
    }

    fn free(&mut self, blocks: impl IntoIterator<Item = Address>) {
        for block in blocks {
            self.event("free_requested", block, &json!([]));
            self.event("free_completed", block, &json!([]));
        }
    }

    /// A step of training whose inputs and activations are `times` as large.
    fn step(&mut self, times: u64) {
        let batch = self.alloc(Phase::Other, times * MIB, 5);
        let activations: Vec<_> =
            (20..30).map(|line| self.alloc(Phase::Forward, times * 8 * MIB, line)).collect();
        let gradients: Vec<_> = (0..10).map(|_| self.alloc(Phase::Backward, 2 * MIB, 0)).collect();
        self.free(activations.into_iter().rev());
        self.free([batch]);
        self.free(gradients);
    }

    /// A forward pass that keeps nothing.
    fn pass(&mut self) {
        let blocks: Vec<_> =
            (20..30).map(|line| self.alloc(Phase::Forward, 4 * MIB, line)).collect();
        self.free(blocks);
    }

    fn device(&self) -> Device {
        let snapshot = json!({
            "segments": [], "device_traces": [self.events],
        });
        Device::new(parse(snapshot.to_string().as_bytes()))
    }

    /// What alone sets the peak, with its severity.
    fn cause(&self) -> Option<(PeakCause, Severity)> {
        let found = self.device().of_kind(FindingKind::PeakCause);
        assert!(found.len() < 2, "{found:?}");
        let found = found.into_iter().next()?;
        match found.facts {
            Facts::PeakCause(cause) => Some((cause, found.common.severity)),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_step_with_larger_inputs_alone_sets_the_peak() {
    let mut program = Program::default();
    for times in [1, 2, 1, 2, 8, 1, 2] {
        program.step(times);
    }
    let Some((PeakCause::LargerStep { step, category, bytes, before, .. }, severity)) =
        program.cause()
    else {
        panic!("{:?}", program.cause())
    };
    assert!(matches!(category, Category::Input | Category::Activation));
    assert_eq!((step, severity), (4, Severity::Low));
    assert_eq!(bytes, Bytes(4 * before.0));
    let mut program = Program::default();
    for times in [1, 2, 1, 2, 2, 1, 2] {
        program.step(times);
    }
    assert_eq!(program.cause(), None, "sizes take turns");
}

#[test]
fn an_evaluation_that_keeps_its_results_sets_the_peak() {
    let evaluated = |keeps: bool| {
        let mut program = Program::default();
        (0..3).for_each(|_| program.step(1));
        let mut results = Vec::new();
        for _ in 0..12 {
            let batch = program.alloc(Phase::Other, MIB, 50);
            program.pass();
            results.push(program.alloc(Phase::Other, 40 * MIB, 60));
            program.free([batch]);
            if !keeps {
                program.free(results.drain(..));
            }
        }
        program.free(results);
        (0..3).for_each(|_| program.step(1));
        program
    };
    let program = evaluated(true);
    let Some((PeakCause::Evaluation { kept, .. }, Severity::Medium)) = program.cause() else {
        panic!("{:?}", program.cause())
    };
    // The last pass needs as much as its result.
    assert_eq!(kept, Bytes(440 * MIB));
    let found = phases(&program.device());
    let count = |phase| found.phases.iter().filter(|part| part.phase == phase).count();
    assert_eq!((count(StepPhase::Forward), count(StepPhase::Evaluation)), (6, 1));
    assert_eq!(evaluated(false).cause(), None);
}

/// Weights are made and then replaced by ones of half the size.
#[test]
fn the_making_of_a_model_sets_the_peak() {
    let mut program = Program::default();
    let weights: Vec<_> = (0..8).map(|_| program.alloc(Phase::Other, 64 * MIB, 1)).collect();
    let halves: Vec<_> = (0..8).map(|_| program.alloc(Phase::Other, 32 * MIB, 2)).collect();
    program.free(weights);
    (0..4).for_each(|_| program.pass());
    program.free(halves);
    let Some((PeakCause::Building { dropped, is_halved, others }, Severity::Low)) = program.cause()
    else {
        panic!("{:?}", program.cause())
    };
    assert_eq!((dropped, is_halved, others), (Bytes(512 * MIB), true, Bytes(296 * MIB)));
}

/// Requests of twenty passes each.
fn requests(keeps_results: bool, keeps_request: bool) -> Program {
    let mut program = Program::default();
    for _ in 0..6 {
        let input = program.alloc(Phase::Other, MIB, 40);
        for line in 80..96 {
            let block = program.alloc(Phase::Other, MIB, line);
            program.free([block]);
        }
        let mut results = Vec::new();
        for _ in 0..20 {
            program.pass();
            results.push(program.alloc(Phase::Other, 2 * MIB, 60));
            if !keeps_results {
                program.free(results.drain(..));
            }
        }
        program.free(results);
        program.free([input]);
        if keeps_request {
            program.alloc(Phase::Other, 3 * MIB, 70);
        }
    }
    program
}

#[test]
fn results_of_each_pass_are_named() {
    let Some((PeakCause::PerPass { blocks, each }, Severity::Medium)) =
        requests(true, false).cause()
    else {
        panic!("results of each pass")
    };
    // The last pass needs more than its result.
    assert_eq!((blocks, each), (19, Bytes(2 * MIB)));
    assert_eq!(requests(false, false).cause(), None);
}

#[test]
fn growth_from_request_to_request_is_found() {
    let device = requests(false, true).device();
    let found = device.of_kind(FindingKind::Growth);
    let [finding] = found.as_slice() else { panic!("one finding, not {found:?}") };
    let Facts::Growth(growth) = &finding.facts else { panic!("{finding:?}") };
    assert_eq!((growth.kind, !growth.are_training()), (GrowthKind::Kept, true));
    assert_eq!(
        (growth.per_step, finding.severity),
        ((Bytes(3 * MIB), Bytes(3 * MIB)), Severity::Medium),
        "a hundredth of the peak or more"
    );
    assert_eq!(requests(false, false).device().of_kind(FindingKind::Growth), []);
}
