//! Sizes of a run that another run can be compared with. Call sites are kept as hashes of their
//! texts, which are equal in every file.

use super::marks::Mark;
use super::{Run, gradients};
use crate::category::Category;
use crate::recipes::facts::{MIN_SCALED, Pass, attention_maps};
use crate::recipes::lives::Life;
use crate::step_phases::StepPhase;
use rustc_hash::{FxHashMap, FxHasher};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use vramscope_snapshot::FrameId;
use vramscope_trace::file_name;

/// Blocks of one call site in a pass.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Made {
    /// The largest block.
    pub(crate) bytes: u64,
    /// The program makes it itself, and no package.
    pub(crate) is_own: bool,
    /// Blocks of the site.
    pub(crate) count: u32,
}

impl Made {
    /// Bytes of the largest block.
    pub(crate) fn each(self) -> f64 {
        self.bytes as f64
    }
}

/// A line whose results outlive the backward pass of their step.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    /// The function and its file.
    pub(crate) function: u64,
    /// `train.py:12`.
    pub(crate) line: String,
    pub(crate) bytes: u64,
}

/// Sizes of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Traits {
    /// Training passes of a step.
    pub(crate) passes: Option<u32>,
    /// Blocks that grow with tokens in a training pass, by call site.
    pub(crate) training: FxHashMap<u64, Made>,
    /// Such blocks in an evaluation.
    pub(crate) evaluation: FxHashMap<u64, Made>,
    /// All training passes have inputs of one size, as far as they are known.
    pub(crate) is_steady: bool,
    /// Bytes of a batch's inputs.
    pub(crate) inputs: u64,
    /// Sizes of parameters, and how many there are of each.
    pub(crate) parameters: BTreeMap<u64, u32>,
    /// Sizes of a step's gradients.
    pub(crate) gradients: BTreeMap<u64, u32>,
    /// Sizes of embeddings.
    pub(crate) embeddings: Vec<u64>,
    pub(crate) has_maps: bool,
    /// Tokens of a pass.
    pub(crate) tokens: Option<u64>,
    pub(crate) held: Vec<Held>,
    /// Functions that make results in forward.
    pub(crate) functions: Vec<u64>,
}

/// Lines with fewer bytes are not worth a change.
const MIN_HELD: u64 = 1 << 20;

impl Traits {
    pub(crate) fn new(run: Run<'_>) -> Self {
        let mut traits = Self {
            passes: gradients::passes_per_step(run).map(|per_step| per_step.0),
            parameters: run.facts.parameters.clone(),
            tokens: run.facts.tokens,
            is_steady: is_steady(run),
            has_maps: !attention_maps(run.lives, run.facts).is_empty(),
            ..Self::default()
        };
        if let Some(step) = gradients::of_step(run).map(|of| of.step) {
            for life in &run.lives.all {
                if life.category == Category::Gradient && life.step == step {
                    *traits.gradients.entry(life.bytes).or_default() += 1;
                }
            }
        }
        for life in &run.lives.all {
            let is_embedding = life.category == Category::Parameter
                && run
                    .lives
                    .frames(life)
                    .iter()
                    .any(|&f| run.lives.stacks.mark(f).has(Mark::EMBEDDING));
            if is_embedding && !traits.embeddings.contains(&life.bytes) {
                traits.embeddings.push(life.bytes);
            }
        }
        if let Some(pass) = run.typical() {
            traits.training = made(run, pass);
            traits.inputs = inputs(run, pass);
            let lines = run.made_in(pass).filter_map(|(_, life)| line(run, life));
            traits.functions = lines.map(|frame| function(run, frame)).collect();
            traits.functions.sort_unstable();
            traits.functions.dedup();
        }
        let evaluations = run.facts.passes.iter().filter(|pass| pass.backward.is_none());
        let all = evaluations.map(|pass| made(run, pass));
        traits.evaluation = all.max_by_key(FxHashMap::len).unwrap_or_default();
        traits.held = held(run)
            .into_iter()
            .filter(|&(_, bytes)| bytes >= MIN_HELD)
            .map(|(frame, bytes)| {
                let of = run.cx.snapshot.frame(frame);
                let file = run.cx.snapshot.text(of.file);
                let line = format!("{}:{}", file_name(&file), of.line);
                Held { function: function(run, frame), line, bytes }
            })
            .collect();
        traits
    }
}

/// The line of the program that gets what a module makes; else its innermost line.
fn line(run: Run<'_>, life: &Life) -> Option<FrameId> {
    let own = || run.lives.stacks.own(run.lives.frames(life)).next();
    run.calls_model(life).or_else(own)
}

/// The lines whose results live into another step, with the most bytes of a step.
fn held(run: Run<'_>) -> Vec<(FrameId, u64)> {
    let mut lines: BTreeMap<FrameId, BTreeMap<i32, u64>> = BTreeMap::new();
    for life in &run.lives.all {
        let is_held = life.phase == StepPhase::Forward
            && matches!(life.category, Category::Activation | Category::Unknown)
            && life.dies_in.is_some_and(|(_, step)| step > life.step);
        if let Some(frame) = line(run, life).filter(|_| is_held) {
            *lines.entry(frame).or_default().entry(life.step).or_default() += life.bytes;
        }
    }
    let most = |steps: BTreeMap<i32, u64>| steps.into_values().max().unwrap_or(0);
    let mut lines: Vec<(FrameId, u64)> =
        lines.into_iter().map(|(frame, steps)| (frame, most(steps))).collect();
    lines.sort_by_key(|&(frame, bytes)| (Reverse(bytes), frame));
    lines
}

/// Blocks that grow with tokens in a pass, by call site.
pub(crate) fn made(run: Run<'_>, pass: &Pass) -> FxHashMap<u64, Made> {
    let mut all: FxHashMap<u64, Made> = FxHashMap::default();
    for (_, life) in run.made_in(pass) {
        let is_data = life.category != Category::Input && !life.is_weight_copy;
        if is_data && life.bytes >= MIN_SCALED && run.facts.grows(life) {
            let of = all.entry(site(run, life)).or_default();
            of.bytes = of.bytes.max(life.bytes);
            of.count += 1;
            of.is_own = !run.lives.stacks.mark(run.lives.frames(life)[0]).has(Mark::LIBRARY);
        }
    }
    all
}

/// Whether the largest input of each training pass but the first has one size.
fn is_steady(run: Run<'_>) -> bool {
    let bytes = |&index: &u32| run.lives.all[index as usize].bytes;
    let inputs =
        run.training().skip(1).map(|pass| pass.inputs.iter().map(bytes).max().unwrap_or(0));
    let mut known: Vec<u64> = inputs.filter(|&bytes| bytes > 0).collect();
    known.dedup();
    known.len() < 2
}

fn inputs(run: Run<'_>, pass: &Pass) -> u64 {
    pass.inputs.iter().map(|&index| run.lives.all[index as usize].bytes).sum()
}

/// Frames that name a call site.
const FRAMES: usize = 3;

/// The innermost frames, without calls of modules and of checkpointing functions.
pub(crate) fn site(run: Run<'_>, life: &Life) -> u64 {
    let mut hasher = FxHasher::default();
    let frames = run.lives.frames(life).iter().copied().filter(|&frame| {
        let kind = run.lives.stacks.mark(frame);
        !kind.has(Mark::MODULE_CALL) && !kind.has(Mark::CHECKPOINT)
    });
    for (at, frame) in frames.take(FRAMES).enumerate() {
        function(run, frame).hash(&mut hasher);
        // Outer lines differ where a change of the program is made.
        if at < 2 {
            run.cx.snapshot.frame(frame).line.hash(&mut hasher);
        }
    }
    hasher.finish()
}

/// A function and its file.
fn function(run: Run<'_>, frame: FrameId) -> u64 {
    let of = run.cx.snapshot.frame(frame);
    let mut hasher = FxHasher::default();
    run.cx.snapshot.text(of.name).hash(&mut hasher);
    file_name(&run.cx.snapshot.text(of.file)).hash(&mut hasher);
    hasher.finish()
}

/// Bytes of sizes that occur several times each.
pub(crate) fn total(sizes: &BTreeMap<u64, u32>) -> u64 {
    sizes.iter().map(|(bytes, count)| bytes * u64::from(*count)).sum()
}
