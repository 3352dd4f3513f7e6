//! A model that is idle on the device while another one needs the memory.
//!
//! The recording does not say which parameters a forward pass reads. Sizes do: the input and the
//! output of a linear layer have one length, and their widths are those of its weight. So the
//! parameters that one line of the program makes belong to the line whose results have their
//! widths.

use crate::category::Category;
use crate::claims::found::{Common, Found, parts};
use crate::claims::kinds::{Basis, FindingKind};
use crate::claims::scene::{Claim, Scene, Spot, Words};
use crate::claims::severity::Severity;
use crate::evidence::marks::{Mark, Marks};
use crate::evidence::{Cut, Evidence, Materiality, saving};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;
use vramscope_snapshot::{Frame, FrameId, StackId};
use vramscope_trace::slicing::{Budget, strides};
use vramscope_trace::{is_package_file, is_python};
use vramscope_units::{Bytes, EventIndex};

/// What an idle model has to hold of the peak where an allocation failed, and elsewhere.
const WORTH_FAILED: Materiality = Materiality::percent(10);
const WORTH: Materiality = Materiality::percent(25);

/// The smallest share of parameters that results of a line explain, in percent.
const MIN_EXPLAINED: u64 = 50;

/// A line that explains this share of what the best one does may use the parameters, too, in
/// percent.
const ALSO_PERCENT: u64 = 60;

/// The largest parameter that may be a vector: a bias, or the weight of a norm.
const MAX_VECTOR: u64 = 64 << 10;

/// The fewest bytes of a vector, and of a row of a result.
const MIN_ROW: u64 = 128;

/// Lengths that are tried, and sizes that are compared. More make it slow.
const MAX_LENGTHS: usize = 8;
const MAX_SIZES: usize = 256;

/// Models that are idle at the failure, or else at the peak of `requested_bytes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Idle {
    /// Bytes of their parameters.
    pub bytes: Bytes,
    /// Idle models.
    pub models: usize,
    /// The last result of the largest of them.
    pub last: EventIndex,
    /// The line that ran it.
    pub ran_at: Frame,
    /// The line that runs another model.
    pub runs_at: Frame,
    /// Whether an allocation failed.
    pub failed: bool,
    /// How much lower the peak of `requested_bytes` is without them.
    pub saving: Bytes,
}

/// The parameters that one line of the program makes.
#[derive(Default)]
struct Model {
    bytes: u64,
    blocks: Vec<u32>,
    sizes: FxHashMap<u64, u64>,
}

/// A line that calls modules.
struct Line {
    frame: FrameId,
    first: u32,
    last: u32,
    sizes: FxHashSet<u64>,
}

/// The finding about idle models. In training each step may use all that a step has used, so only
/// models count that ran before the first one.
pub(super) async fn idle(
    cx: Evidence<'_>,
    marks: &Marks,
    budget: &mut Budget,
) -> Option<Found<Idle>> {
    let training = cx.passes.all.iter().find(|pass| pass.backward.is_some());
    if cx.trains() && training.is_none() {
        return None;
    }
    let until = training.map_or(u32::MAX, |pass| pass.lead.max(0.0) as u32);
    let failed = cx.trace.ooms.last().map(|oom| oom.event.0 + 1);
    let slot = failed.unwrap_or_else(|| cx.peak_slot());
    let models = models(cx, marks, slot, budget).await;
    let lines = lines(cx, marks, slot, budget).await;
    let runs = lines.iter().max_by_key(|line| line.last)?;
    let mut idle: Vec<(&Model, &Line)> = Vec::new();
    for model in &models {
        let mut shares = Vec::with_capacity(lines.len());
        for line in &lines {
            budget.charge((MAX_LENGTHS * model.sizes.len() * line.sizes.len()) as u64).await;
            shares.push((explained(model, line), line));
        }
        let Some(&(best, _)) = shares.iter().max_by_key(|(share, _)| *share) else { continue };
        let uses = shares.iter().filter(|(share, _)| share * 100 >= best * ALSO_PERCENT);
        let Some(&(_, last)) = uses.max_by_key(|(_, line)| line.last) else { continue };
        if best >= MIN_EXPLAINED && last.last < runs.first.min(until) {
            idle.push((model, last));
        }
    }
    let bytes: u64 = idle.iter().map(|(model, _)| model.bytes).sum();
    let worth = if failed.is_some() { WORTH_FAILED } else { WORTH };
    if !worth.is_met(bytes, cx.peak()) {
        return None;
    }
    let of = |model: &Model, line: &Line| {
        let cut = |&i: &u32| {
            let block = &cx.trace.blocks[i as usize];
            Cut { from: line.last + 2, to: block.leaves, bytes: block.bytes.0 }
        };
        model.blocks.iter().map(cut).collect::<Vec<Cut>>()
    };
    let cuts: Vec<Cut> = idle.iter().flat_map(|(model, line)| of(model, line)).collect();
    let saved = saving(cx, &cuts, budget).await.bytes.min(bytes);
    let (_, line) = idle.iter().max_by_key(|(model, _)| model.bytes)?;
    let facts = Idle {
        bytes: Bytes(bytes),
        models: idle.len(),
        last: EventIndex(line.last),
        ran_at: cx.snapshot.frame(line.frame),
        runs_at: cx.snapshot.frame(runs.frame),
        failed: failed.is_some(),
        saving: Bytes(saved),
    };
    let blocks = || idle.iter().flat_map(|(model, _)| &model.blocks);
    let block = |&i: &u32| &cx.trace.blocks[i as usize];
    let parts = parts(blocks().map(block).map(|block| (block.stack, block.bytes.0)));
    let events = blocks().filter_map(|i| block(i).alloc_event()).map(|event| event.0).collect();
    let what = cx.hash(parts.first()?.stack);
    let found = cx.found(FindingKind::IdleModel, what, bytes, saved, events);
    // A program may keep models for the next request on purpose.
    let severity = if failed.is_some() { Severity::Medium } else { Severity::Low };
    let blocks = blocks().count() as u32;
    Some(Common { severity, basis: Basis::Estimate, blocks, parts, ..found }.with(facts))
}

/// The parameters that are live at a slot, by the lines of the program that make them.
async fn models(cx: Evidence<'_>, marks: &Marks, slot: u32, budget: &mut Budget) -> Vec<Model> {
    let mut models: FxHashMap<Vec<FrameId>, Model> = FxHashMap::default();
    for part in strides(cx.trace.blocks.len()) {
        budget.charge(2 * part.len() as u64).await;
        for (i, block) in (part.start as u32..).zip(&cx.trace.blocks[part]) {
            let is_parameter = cx.categories.get(i).category == Category::Parameter;
            if !is_parameter || !block.is_live_at(slot) || block.stack == StackId::EMPTY {
                continue;
            }
            let frames = cx.snapshot.stacks.frames(block.stack).iter().copied();
            let own = frames.filter(|&frame| !marks.of_frame(frame).has(Mark::LIBRARY));
            let model = models.entry(own.collect()).or_default();
            model.bytes += block.bytes.0;
            model.blocks.push(i);
            *model.sizes.entry(block.bytes.0).or_default() += block.bytes.0;
        }
    }
    let mut models: Vec<Model> = models.into_values().collect();
    models.sort_by_key(|model| (Reverse(model.bytes), model.blocks.first().copied()));
    models
}

/// The lines that call modules before a slot, with the sizes of what these make.
async fn lines(cx: Evidence<'_>, marks: &Marks, slot: u32, budget: &mut Budget) -> Vec<Line> {
    let mut callers: FxHashMap<StackId, Option<FrameId>> = FxHashMap::default();
    let mut lines: Vec<Line> = Vec::new();
    let mut index: FxHashMap<FrameId, usize> = FxHashMap::default();
    for part in strides(cx.trace.blocks.len()) {
        budget.charge(4 * part.len() as u64).await;
        for (i, block) in (part.start as u32..).zip(&cx.trace.blocks[part]) {
            let Some(event) = block.alloc_event().filter(|_| block.enters <= slot) else {
                continue;
            };
            if cx.categories.get(i).category == Category::Parameter {
                continue;
            }
            let caller =
                callers.entry(block.stack).or_insert_with(|| caller(cx, marks, block.stack));
            let Some(frame) = *caller else { continue };
            let at = *index.entry(frame).or_insert_with(|| {
                let sizes = FxHashSet::default();
                lines.push(Line { frame, first: event.0, last: event.0, sizes });
                lines.len() - 1
            });
            let line = &mut lines[at];
            line.last = event.0;
            if line.sizes.len() < MAX_SIZES {
                line.sizes.insert(block.bytes.0);
            }
        }
    }
    lines
}

/// The frame that calls the outermost module of a call stack.
fn caller(cx: Evidence<'_>, marks: &Marks, stack: StackId) -> Option<FrameId> {
    let frames = cx.snapshot.stacks.frames(stack);
    let is_call = |&frame: &FrameId| marks.of_frame(frame).has(Mark::MODULE_CALL);
    let outside = &frames[frames.iter().rposition(is_call)?..];
    outside.iter().copied().find(|&frame| !marks.of_frame(frame).has(Mark::TORCH))
}

/// The share of a model's parameters that are weights between two results of a line, in percent.
fn explained(model: &Model, line: &Line) -> u64 {
    let vectors = || model.sizes.keys().filter(|size| (MIN_ROW..=MAX_VECTOR).contains(size));
    let mut lengths: FxHashMap<u64, usize> = FxHashMap::default();
    for vector in vectors() {
        for size in line.sizes.iter().filter(|&size| size.is_multiple_of(*vector)) {
            *lengths.entry(size / vector).or_default() += 1;
        }
    }
    let mut lengths: Vec<(usize, u64)> = lengths.into_iter().map(|(n, votes)| (votes, n)).collect();
    lengths.sort_unstable_by_key(|&of| Reverse(of));
    let tried = lengths.iter().take(MAX_LENGTHS).map(|&(_, length)| length);
    let bytes = |length: u64, element: u64| -> u64 {
        let rows: Vec<u64> = (line.sizes.iter())
            .filter(|size| size.is_multiple_of(length) && *size / length >= MIN_ROW)
            .map(|size| size / length)
            .collect();
        let is_weight = |size: u64| {
            let output = |row: &u64| size / row * element;
            let fits = |row: &u64| size.is_multiple_of(*row) && rows.contains(&output(row));
            size > MAX_VECTOR && rows.iter().any(fits)
        };
        model.sizes.iter().filter(|&(&size, _)| is_weight(size)).map(|(_, bytes)| bytes).sum()
    };
    let most = tried.flat_map(|length| [2, 4].map(|element| bytes(length, element))).max();
    most.unwrap_or(0).saturating_mul(100) / model.bytes.max(1)
}

impl Claim for Idle {
    fn words(&self, scene: &Scene<'_>) -> Words {
        let Self { bytes, models, last, ran_at, runs_at, failed, saving } = self;
        let (ran, runs) = (scene.label(*ran_at), scene.label(*runs_at));
        let what = if *models == 1 { "Idle model" } else { "Idle models" };
        let others = match models {
            1 => String::new(),
            _ => format!(" {models} models are idle."),
        };
        Words {
            title: scene.titled(what, self.spot(scene).as_ref(), *bytes).text(if *failed {
                " when memory ran out"
            } else {
                " at the peak"
            }),
            text: format!(
                "The parameters that {} makes were used last at {ran}, until {last}: no line after \
                 it makes results of their widths (estimate). Now {runs} runs another \
                 model.{others} Without {bytes} of parameters the peak is {saving} lower.",
                scene.main_site()
            ),
            action: "Move a model to the host after its last use (model.to(\"cpu\"), then \
                     torch.cuda.empty_cache()), or delete it. In diffusers call \
                     enable_model_cpu_offload()."
                .to_owned(),
        }
    }

    fn why(&self, scene: &Scene<'_>) -> String {
        format!(
            "not used since {}, at {}; {} runs another model",
            self.last,
            scene.label(self.ran_at),
            scene.label(self.runs_at)
        )
    }

    fn spot(&self, scene: &Scene<'_>) -> Option<Spot> {
        let own = scene.own_spot()?;
        let stack = scene.finding.stack()?;
        let frames = scene.cx.snapshot.stacks.frames(stack).iter().copied();
        let mut frames = frames.map(|frame| scene.cx.snapshot.frame(frame));
        let is_own = |frame: &Frame| {
            let file = scene.cx.snapshot.text(frame.file);
            !is_package_file(&file)
        };
        let frame =
            frames.find(|frame| is_own(frame) && is_python(&scene.cx.snapshot.text(frame.file)));
        Some(Spot { frame: frame.unwrap_or(own.frame), ..own })
    }

    fn saving(&self, _scene: &Scene<'_>) -> Option<Bytes> {
        Some(self.saving)
    }
}

#[cfg(test)]
crate::claims::cases::cases! {
    IdleModel,
    fires: ["causes/idle_model.pickle.gz"],
    silent: ["causes/idle_model_cured.pickle.gz", "causes/cache_twice.pickle.gz"]
}
