//! Gradients of an update that stay live through the next forward pass.
//!
//! `zero_grad(set_to_none=True)` frees gradients after each update, so that activations can take
//! their place. Between two updates, gradients of micro-batches are needed.

use crate::category::{Category, Phase, PhaseSpan};
use crate::claims::found::{Common, Found, parts};
use crate::claims::kinds::{Basis, FindingKind};
use crate::claims::phrase::Sentence;
use crate::claims::scene::{Claim, Scene, Spot, SpotWhat, Words};
use crate::evidence::Evidence;
use crate::evidence::{Cut, saving};
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;
use vramscope_snapshot::{Frame, StackId};
use vramscope_trace::Block;
use vramscope_trace::slicing::{Budget, strides};
use vramscope_units::{Bytes, grouped};

/// The fewest bytes to report.
const MIN_BYTES: u64 = 1 << 20;

/// Gradients that are live through forward passes that follow an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GradientsHeld {
    /// Bytes at the end of the forward pass that holds most.
    pub through_forward: Bytes,
    /// Forward passes that hold gradients of a finished update.
    pub passes: usize,
    /// Forward passes that follow an update.
    pub of_passes: usize,
    /// Bytes of them that are live at the peak of `requested_bytes`, if a forward or backward pass
    /// peaks. A backward pass would have allocated a part of them again by then.
    pub at_peak: Bytes,
    /// The peak of `requested_bytes` is lower by at most this without them.
    pub saving: Bytes,
    /// Whether they are of parameters that no optimizer updates: `zero_grad` replaces the others,
    /// and no optimizer state has their sizes.
    pub is_frozen: bool,
    /// The line of the program that calls the optimizer's `step()`; `None` if no call stack has it.
    pub step_at: Option<Frame>,
}

/// A forward pass that follows an update: gradients that are older than `update` and live until
/// `end` are held.
#[derive(Clone, Copy, Debug)]
struct Pass {
    update: u32,
    /// The end of the update: the optimizer needs the gradients until then.
    updated: u32,
    end: u32,
    /// The backward pass that follows makes gradients again.
    backward: Option<PhaseSpan>,
    bytes: u64,
}

/// A gradient that a pass holds.
struct Held {
    block: u32,
    /// The first pass that holds it, and the one after the last.
    passes: Range<usize>,
}

/// The finding about gradients, if forward passes hold them. `growing` are call stacks that grow:
/// another finding names them.
pub(super) async fn gradients_held(
    cx: Evidence<'_>,
    growing: &[StackId],
    budget: &mut Budget,
) -> Option<Found<GradientsHeld>> {
    let mut passes = passes_after_updates(cx.categories.phases());
    if passes.is_empty() {
        return None;
    }
    let peak = cx.peak_slot();
    let at_peak = peak.checked_sub(1).and_then(|event| cx.phase_at(event));
    let peak_pass = passes.partition_point(|pass| pass.update < peak).checked_sub(1);
    let costs = matches!(at_peak, Some(Phase::Forward | Phase::Backward));
    let mut all: Vec<Held> = Vec::new();
    let mut live: Vec<(StackId, u64)> = Vec::new();
    let mut events: Vec<u32> = Vec::new();
    // The sizes of gradients that are replaced, and of optimizer state.
    let (mut replaced, mut states) = (FxHashSet::default(), FxHashMap::default());
    let mut step_at = None;
    for part in strides(cx.trace.blocks.len()) {
        budget.charge(2 * part.len() as u64).await;
        for (i, block) in (part.start as u32..).zip(&cx.trace.blocks[part]) {
            let category = cx.categories.get(i).category;
            step_at = step_at.or_else(|| calls_step(cx, block));
            if category == Category::OptimizerState {
                *states.entry(block.bytes.0).or_insert(0usize) += 1;
            }
            // Sizes alone do not tell old gradients from optimizer state.
            let is_known = category == Category::Gradient && block.alloc_event().is_some();
            if !is_known {
                continue;
            }
            let first = passes.partition_point(|pass| pass.update < block.enters);
            let last = passes.partition_point(|pass| pass.end < block.leaves);
            if last < first + 2 && block.free_requested().is_some() {
                replaced.insert(block.bytes.0);
            }
            if growing.contains(&block.stack) || is_shared(cx, block.stack) || first >= last {
                continue;
            }
            for pass in &mut passes[first..last] {
                pass.bytes += block.bytes.0;
            }
            all.push(Held { block: i, passes: first..last });
            let is_at_peak = peak_pass.is_some_and(|pass| first <= pass) && block.is_live_at(peak);
            if costs && is_at_peak {
                live.push((block.stack, block.bytes.0));
                events.extend(block.alloc_event().map(|event| event.0));
            }
        }
    }
    let through_forward = passes.iter().map(|pass| pass.bytes).max().unwrap_or(0);
    if through_forward < MIN_BYTES {
        return None;
    }
    let bytes_at_peak: u64 = live.iter().map(|h| h.1).sum();
    let cost = match bytes_at_peak {
        0 => 0,
        _ => {
            let cuts = cuts(cx, &passes, &all, budget).await;
            saving(cx, &cuts, budget).await.bytes.min(bytes_at_peak)
        }
    };
    let facts = GradientsHeld {
        through_forward: Bytes(through_forward),
        passes: passes.iter().filter(|pass| pass.bytes >= MIN_BYTES).count(),
        of_passes: passes.len(),
        at_peak: Bytes(bytes_at_peak),
        saving: Bytes(cost),
        is_frozen: is_frozen(cx, &all, &replaced, &states),
        step_at,
    };
    let bytes = if cost > 0 { bytes_at_peak } else { through_forward };
    let step = peak.checked_sub(1).filter(|_| cost > 0).and_then(|event| cx.step_at(event));
    Some(
        Common {
            step,
            phase: at_peak.filter(|_| cost > 0),
            basis: if at_peak == Some(Phase::Backward) { Basis::Estimate } else { Basis::Exact },
            blocks: live.len() as u32,
            parts: parts(live),
            ..cx.found(FindingKind::GradientsHeld, "zero_grad", bytes, cost, events)
        }
        .with(facts),
    )
}

/// The line of the program that calls `Optimizer.step`, if that allocates the block.
fn calls_step(cx: Evidence<'_>, block: &Block) -> Option<Frame> {
    let event = block.alloc_event()?;
    if block.stack == StackId::EMPTY || cx.phase_at(event.0) != Some(Phase::Optimizer) {
        return None;
    }
    let mut frames = cx.snapshot.stack(block.stack);
    let is_step = |frame: Frame| {
        cx.snapshot.text(frame.name) == "step"
            && cx.snapshot.text(frame.file).contains("torch/optim/")
    };
    let line = frames.any(is_step).then(|| cx.program_frame(block.stack)).flatten();
    line.map(|frame| cx.snapshot.frame(frame))
}

/// The cuts in lives if gradients are dropped after each update. A gradient that is kept is made
/// again at the same part of the backward pass as before.
async fn cuts(cx: Evidence<'_>, passes: &[Pass], held: &[Held], budget: &mut Budget) -> Vec<Cut> {
    let phases = cx.categories.phases();
    let mut cuts = Vec::new();
    for Held { block, passes: of } in held {
        budget.charge(4 * of.len() as u64).await;
        let block = &cx.trace.blocks[*block as usize];
        let Some(alloc) = block.alloc_event() else { continue };
        let span = phases.partition_point(|span| span.begin <= alloc.0).checked_sub(1);
        let made = span.map(|span| phases[span]).filter(|span| span.phase == Phase::Backward);
        for pass in &passes[of.clone()] {
            let again = pass.backward.map(|next| match made {
                Some(made) => {
                    let part = u64::from(alloc.0 - made.begin) * u64::from(next.end - next.begin);
                    next.begin + (part / u64::from((made.end - made.begin).max(1))) as u32
                }
                None => next.begin,
            });
            let to = block.leaves.min(again.unwrap_or(pass.end) + 1);
            cuts.push(Cut { from: pass.updated + 1, to, bytes: block.bytes.0 });
        }
    }
    cuts
}

/// The smallest share of held gradients that no update replaces, in percent.
const MIN_FROZEN_PERCENT: u64 = 90;

/// Whether the gradients are of parameters that no optimizer updates. Others are replaced, these
/// live through several updates, and no optimizer state has a size that only they have.
fn is_frozen(
    cx: Evidence<'_>,
    held: &[Held],
    replaced: &FxHashSet<u64>,
    states: &FxHashMap<u64, usize>,
) -> bool {
    let size = |held: &Held| cx.trace.blocks[held.block as usize].bytes.0;
    let lasts = |held: &&Held| held.passes.len() >= 2;
    let has_state =
        |held: &&Held| states.contains_key(&size(held)) && !replaced.contains(&size(held));
    let sum = |of: &dyn Fn(&&Held) -> bool| -> u64 { held.iter().filter(of).map(size).sum() };
    let (all, frozen) = (sum(&|_| true), sum(&|held| lasts(held) && !has_state(held)));
    !replaced.is_empty() && frozen.saturating_mul(100) >= all.saturating_mul(MIN_FROZEN_PERCENT)
}

/// Forward passes that follow an update with no other forward pass between.
fn passes_after_updates(phases: &[PhaseSpan]) -> Vec<Pass> {
    let mut passes: Vec<Pass> = Vec::new();
    // Whether a backward pass has run since the last update, and the last update.
    let (mut has_gradients, mut update) = (false, None::<(u32, u32)>);
    for span in phases {
        match span.phase {
            Phase::Backward => {
                has_gradients = true;
                if let Some(pass) = passes.last_mut() {
                    pass.backward = pass.backward.or(Some(*span));
                }
            }
            Phase::Optimizer if has_gradients => {
                update = Some((span.begin, span.end));
                has_gradients = false;
            }
            Phase::Forward => {
                passes.extend(update.take().map(|(update, updated)| Pass {
                    update,
                    updated,
                    end: span.end,
                    backward: None,
                    bytes: 0,
                }));
            }
            Phase::Optimizer | Phase::Other | Phase::Evaluation => {}
        }
    }
    passes
}

/// Whether a call stack belongs to code that keeps gradients in buffers of its own: buckets of
/// `DistributedDataParallel`, partitions of a sharded optimizer. They are not freed on purpose.
fn is_shared(cx: Evidence<'_>, stack: StackId) -> bool {
    cx.snapshot.stack(stack).any(|frame| {
        let (file, name) = (cx.snapshot.text(frame.file), cx.snapshot.text(frame.name));
        ["distributed", "deepspeed", "megatron"].iter().any(|part| file.contains(part))
            || name.contains("c10d::")
    })
}

impl Claim for GradientsHeld {
    fn words(&self, scene: &Scene<'_>) -> Words {
        let GradientsHeld {
            through_forward, passes, of_passes, at_peak, saving, is_frozen, ..
        } = self;
        let passes = format!(
            "{} of {} forward passes that follow an update",
            grouped(*passes as u64),
            grouped(*of_passes as u64),
        );
        let cost = match scene.finding.phase {
            None => "The peak is as high without them.".to_owned(),
            Some(phase) => {
                let made = match phase {
                    Phase::Backward => " Backward makes gradients again, so that is the most.",
                    _ => "",
                };
                let name = phase.name();
                format!(
                    "{at_peak} of them are live at the peak, in {name}. Without them the peak is \
                     {saving} lower.{made}"
                )
            }
        };
        let (why, action) = if *is_frozen {
            (
                " No update replaces them, and no optimizer state has their sizes: no optimizer \
                 has these parameters.",
                "Call requires_grad_(False) on the parameters that are not trained. zero_grad() of \
                 an optimizer that does not have them cannot drop their gradients.",
            )
        } else {
            ("", "Call optimizer.zero_grad(set_to_none=True) after each optimizer.step().")
        };
        let cause = if *is_frozen { "Gradients of frozen parameters" } else { "Old gradients" };
        let from = self
            .step_at
            .map(|frame| Sentence::new(", from step() at ").and(scene.frame_noun(frame)));
        Words {
            title: Sentence::new(format_args!("{cause} kept through "))
                .filter("forward", "phase:forward".to_owned())
                .and(from.unwrap_or_default())
                .text(": ")
                .event(through_forward.brief(), scene.first_event()),
            text: format!(
                "Gradients of a finished update stay live through {passes}, up to \
                 {through_forward}. {cost}{why}"
            ),
            action: action.to_owned(),
        }
    }

    fn why(&self, scene: &Scene<'_>) -> String {
        let peak = if scene.finding.phase.is_some() {
            format!("without them the peak is {} lower", self.saving)
        } else {
            "the peak is as high without them".to_owned()
        };
        if self.is_frozen { format!("no optimizer has these parameters; {peak}") } else { peak }
    }

    fn spot(&self, _scene: &Scene<'_>) -> Option<Spot> {
        let what = SpotWhat::Text(String::new());
        Some(Spot { frame: self.step_at?, note: "the optimizer's step()".to_owned(), what })
    }

    fn saving(&self, scene: &Scene<'_>) -> Option<Bytes> {
        scene.finding.phase.map(|_| self.saving)
    }
}

#[cfg(test)]
crate::claims::cases::cases! {
    GradientsHeld,
    fires: ["findings/zero_grad_kept_step.pickle.gz", "findings/resnet50_nozero.pickle.gz"],
    silent: ["findings/non_accum_late.pickle.gz", "findings/non_ppo.pickle.gz"]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_follow_updates_and_not_micro_batches() {
        let spans: Vec<PhaseSpan> = (0..)
            .zip("fbofbfbofb".chars())
            .map(|(i, letter)| PhaseSpan {
                begin: i * 10,
                end: i * 10 + 10,
                phase: match letter {
                    'f' => Phase::Forward,
                    'b' => Phase::Backward,
                    _ => Phase::Optimizer,
                },
            })
            .collect();
        let found: Vec<(u32, u32)> =
            passes_after_updates(&spans).iter().map(|pass| (pass.update, pass.end)).collect();
        assert_eq!(found, [(20, 40), (70, 90)]);
    }
}
