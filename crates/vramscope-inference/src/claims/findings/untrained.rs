//! A model that no optimizer updates, and that runs with autograd: a teacher, a reward model.
//!
//! Its gradients add up from step to step and are never used. Backward visits the models of a pass
//! in reverse, so the model is the one whose results die while these gradients are made. If it
//! runs before the others, it gets data alone, and its results wait for nothing else.

use super::facts::Finding;
use crate::category::Category;
use crate::claims::found::{Common, parts};
use crate::claims::kinds::{Basis, FindingKind};
use crate::claims::phrase::Sentence;
use crate::claims::scene::{Claim, Scene, Spot, SpotWhat, Words};
use crate::evidence::passes::Pass;
use crate::evidence::{Cut, Evidence, Materiality, saving};
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;
use vramscope_snapshot::{Frame, FrameId, StackId};
use vramscope_trace::Block;
use vramscope_trace::slicing::Budget;
use vramscope_units::Bytes;

/// The least saving of a finding, of the peak.
const MATTERS: Materiality = Materiality::percent(3);

/// The smallest share of a model's results that die while its gradients are made, in percent.
const MIN_OF_MODEL_PERCENT: u64 = 80;

/// A model that no optimizer updates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Untrained {
    /// The line of the program that runs it.
    pub called_at: Frame,
    /// Whether it runs before all models that are trained.
    pub is_first: bool,
    /// Its gradients at the peak of `requested_bytes`.
    pub gradients: Bytes,
    /// Its results there that wait for backward, if it runs first.
    pub results: Bytes,
    /// The peak is lower by this without both.
    pub saving: Bytes,
}

/// The call of a model that no optimizer updates.
struct Call {
    frame: FrameId,
    is_first: bool,
}

/// Gradients of parameters that no optimizer updates, in a model of which it updates others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frozen {
    /// The line that calls backward, which makes them; `None` if no call stack has it.
    pub called_at: Option<Frame>,
    /// The peak is lower by this without them.
    pub saving: Bytes,
}

/// The finding about gradients that no optimizer uses, if they matter. `frozen` are their blocks;
/// `is_all` if hardly any others are held, so that no other model is needed to tell them. `trains`
/// is the line that calls backward or the optimizer: a model of its own is called beside it.
pub(super) async fn untrained(
    cx: Evidence<'_>,
    frozen: FxHashSet<u32>,
    is_all: bool,
    trains: Option<Frame>,
    budget: &mut Budget,
) -> Option<Finding> {
    let block = |index: u32| &cx.trace.blocks[index as usize];
    let bytes: u64 = frozen.iter().map(|&index| block(index).bytes.0).sum();
    if !MATTERS.is_met(bytes, cx.peak()) {
        return None;
    }
    budget.charge(4 * cx.trace.blocks.len() as u64).await;
    let whole = |index: &u32| {
        let Block { enters, leaves, bytes, .. } = *block(*index);
        Cut { from: enters, to: leaves, bytes: bytes.0 }
    };
    let mut cuts: Vec<Cut> = frozen.iter().map(whole).collect();
    let mut all: Vec<u32> = frozen.iter().copied().collect();
    let is_beside = |call: &Call| {
        let frame = cx.snapshot.frame(call.frame);
        trains.is_some_and(|trains| (trains.name, trains.file) == (frame.name, frame.file))
    };
    let call = call(cx, &frozen).filter(is_beside);
    if call.is_none() && !is_all {
        return None;
    }
    if let Some(Call { frame, is_first: true }) = call {
        for pass in cx.passes.all.iter().filter(|pass| pass.backward.is_some()) {
            budget.charge(8 * born(cx, pass.begin, pass.end).len() as u64).await;
            let results = results(cx, pass, frame);
            cuts.extend(without_graph(cx, &results));
            all.extend(results);
        }
    }
    let saving = saving(cx, &cuts, budget).await;
    if !MATTERS.is_met(saving.bytes, cx.peak()) {
        return None;
    }
    let peak = cx.peak_slot();
    all.retain(|&index| block(index).is_live_at(peak));
    all.sort_unstable();
    let sum = |is_gradient: bool| -> Bytes {
        let of = all.iter().filter(|index| frozen.contains(index) == is_gradient);
        Bytes(of.map(|&index| block(index).bytes.0).sum())
    };
    let (gradients, results) = (sum(true), sum(false));
    let events = all.iter().filter_map(|&index| block(index).alloc_event()).map(|e| e.0).collect();
    let common = |kind, what| Common {
        step: cx.step_at(peak.saturating_sub(1)),
        phase: peak.checked_sub(1).and_then(|event| cx.phase_at(event)),
        basis: Basis::Estimate,
        blocks: all.len() as u32,
        parts: parts(all.iter().map(|&index| (block(index).stack, block(index).bytes.0))),
        ..cx.found(kind, what, gradients.0 + results.0, saving.bytes, events)
    };
    let saving = Bytes(saving.bytes);
    Some(match call {
        Some(Call { frame, is_first }) => common(FindingKind::NoGrad, "untrained")
            .with(Untrained {
                called_at: cx.snapshot.frame(frame),
                is_first,
                gradients,
                results,
                saving,
            })
            .into(),
        None => common(FindingKind::GradientsHeld, "frozen")
            .with(Frozen { called_at: trains, saving })
            .into(),
    })
}

/// The indices of the blocks that are made between two events.
fn born(cx: Evidence<'_>, begin: f64, end: f64) -> Range<u32> {
    let at = |event: f64| {
        cx.trace.blocks.partition_point(|block| f64::from(block.enters) - 1.0 < event) as u32
    };
    at(begin)..at(end)
}

/// The call of the model whose gradients these are, by the pass that makes most of them.
fn call(cx: Evidence<'_>, frozen: &FxHashSet<u32>) -> Option<Call> {
    let block = |index: u32| &cx.trace.blocks[index as usize];
    let of_pass = |pass: &&Pass| {
        let made = pass.backward.map(|span| born(cx, span.begin, span.end));
        made.into_iter().flatten().filter(|index| frozen.contains(index)).count()
    };
    let pass = cx.passes.all.iter().max_by_key(of_pass)?;
    let backward = pass.backward?;
    let is_gradient = |index: &u32| cx.categories.get(*index).category == Category::Gradient;
    let made = born(cx, backward.begin, backward.end).filter(is_gradient);
    let (own, others): (Vec<u32>, Vec<u32>) = made.partition(|index| frozen.contains(index));
    // The model's part of backward is before that of all others, or after it.
    let is_first = others.last()? < own.first()?;
    if !is_first && own.last()? > others.first()? {
        return None;
    }
    let event = |index: u32| f64::from(block(index).enters) - 1.0;
    let part = if is_first {
        event(*others.last()?)..backward.end
    } else {
        backward.begin..event(*others.first()?)
    };
    let mut calls: FxHashMap<FrameId, (u64, u64)> = FxHashMap::default();
    for index in born(cx, pass.begin, backward.begin).filter(|&index| cx.is_result(index)) {
        let Some(free) = block(index).free_requested() else { continue };
        let is_of_backward = (backward.begin..backward.end).contains(&f64::from(free.0));
        let stack = block(index).stack;
        let frame = cx.calling_frame(stack).filter(|_| is_of_backward && cx.runs_module(stack));
        let Some(frame) = frame else { continue };
        let (all, in_part) = calls.entry(frame).or_default();
        *all += block(index).bytes.0;
        if part.contains(&f64::from(free.0)) {
            *in_part += block(index).bytes.0;
        }
    }
    let is_of_model = |(all, in_part): &(u64, u64)| in_part * 100 >= all * MIN_OF_MODEL_PERCENT;
    let calls = calls.into_iter().filter(|(_, sums)| is_of_model(sums));
    let (frame, _) = calls.max_by_key(|&(frame, (_, bytes))| (bytes, frame.0))?;
    Some(Call { frame, is_first })
}

/// The results of a call of a pass that wait for backward.
fn results(cx: Evidence<'_>, pass: &Pass, frame: FrameId) -> Vec<u32> {
    let begin = pass.backward.map_or(pass.end, |span| span.begin);
    let waits = |&index: &u32| {
        let block = &cx.trace.blocks[index as usize];
        let is_used = block.free_requested().is_some_and(|free| f64::from(free.0) >= begin);
        is_used && cx.is_result(index) && cx.runs_module(block.stack)
    };
    let is_of_call =
        |&index: &u32| cx.calling_frame(cx.trace.blocks[index as usize].stack) == Some(frame);
    born(cx, pass.begin, begin).filter(waits).filter(is_of_call).collect()
}

/// Without autograd a result dies when its line makes the next one. The last one is the model's.
fn without_graph(cx: Evidence<'_>, results: &[u32]) -> Vec<Cut> {
    let block = |index: u32| &cx.trace.blocks[index as usize];
    let end = results.last().map_or(0, |&index| block(index).enters + 1);
    let mut next: FxHashMap<StackId, u32> = FxHashMap::default();
    let cut = |&index: &u32| {
        let Block { enters, leaves, bytes, stack, .. } = *block(index);
        let from = next.insert(stack, enters).unwrap_or(end);
        Cut { from, to: leaves, bytes: bytes.0 }
    };
    results.iter().rev().skip(1).map(cut).collect()
}

impl Claim for Untrained {
    fn words(&self, scene: &Scene<'_>) -> Words {
        let Self { called_at, is_first, gradients, results, saving } = self;
        let held = match results.0 {
            0 => format!("Its gradients hold {gradients}"),
            _ => format!("Its gradients hold {gradients} and its results {results}"),
        };
        let also = if *is_first {
            " Or run it under torch.no_grad(): nothing that it gets needs a gradient."
        } else {
            ""
        };
        Words {
            title: Sentence::new("Autograd runs through a model that no optimizer updates at ")
                .and(scene.frame_noun(*called_at))
                .text(": ")
                .event(scene.bytes().brief(), scene.first_event()),
            text: format!(
                "{held} at the peak. No update replaces these gradients, and no optimizer state \
                 has their sizes. Without them the peak is {saving} lower."
            ),
            action: format!("Call requires_grad_(False) on its parameters.{also}"),
        }
    }

    fn why(&self, _scene: &Scene<'_>) -> String {
        format!("no update uses its gradients; without them the peak is {} lower", self.saving)
    }

    fn spot(&self, _scene: &Scene<'_>) -> Option<Spot> {
        let what = SpotWhat::Text(String::new());
        Some(Spot { frame: self.called_at, note: "which runs it".to_owned(), what })
    }

    fn saving(&self, _scene: &Scene<'_>) -> Option<Bytes> {
        Some(self.saving)
    }
}

impl Claim for Frozen {
    fn words(&self, scene: &Scene<'_>) -> Words {
        let (bytes, saving) = (scene.bytes(), self.saving);
        Words {
            title: Sentence::new("Gradients of frozen parameters kept through ")
                .filter("forward", "phase:forward".to_owned())
                .and(scene.at(self.spot(scene).as_ref()))
                .text(": ")
                .event(bytes.brief(), scene.first_event()),
            text: format!(
                "{bytes} of gradients are live at the peak that no update replaces, and no \
                 optimizer state has their sizes. Without them the peak is {saving} lower."
            ),
            action: "Call requires_grad_(False) on the parameters that are not trained. \
                     zero_grad() of an optimizer that does not have them cannot drop their \
                     gradients."
                .to_owned(),
        }
    }

    fn why(&self, _scene: &Scene<'_>) -> String {
        let saving = self.saving;
        format!(
            "requires_grad is on, and no optimizer has these parameters; without them the peak is \
             {saving} lower"
        )
    }

    fn spot(&self, _scene: &Scene<'_>) -> Option<Spot> {
        let what = SpotWhat::Text(String::new());
        Some(Spot { frame: self.called_at?, note: "which makes them".to_owned(), what })
    }

    fn saving(&self, _scene: &Scene<'_>) -> Option<Bytes> {
        Some(self.saving)
    }
}

#[cfg(test)]
crate::claims::cases::cases! {
    NoGrad,
    fires: ["causes/teacher.pickle.gz"],
    silent: ["causes/input_gradient.pickle.gz"]
}

#[cfg(test)]
mod frozen {
    crate::claims::cases::cases! {
        GradientsHeld,
        fires: ["causes/input_gradient.pickle.gz"],
        silent: ["causes/prefetch.pickle.gz"]
    }
}
