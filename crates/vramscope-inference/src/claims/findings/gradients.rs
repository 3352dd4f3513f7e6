//! Gradients of an update that stay live through the next forward pass.
//!
//! `zero_grad(set_to_none=True)` frees gradients after each update, so that activations can take
//! their place. Between two updates, gradients of micro-batches are needed.

use super::facts::Finding;
use super::untrained::untrained;
use crate::category::{Category, Phase, PhaseSpan};
use crate::claims::found::{Common, Found, parts};
use crate::claims::kinds::{Basis, FindingKind};
use crate::claims::phrase::Sentence;
use crate::claims::scene::{Claim, Scene, Spot, SpotWhat, Words};
use crate::claims::words::capitalized;
use crate::evidence::{Cut, Evidence, Materiality, saving};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;
use std::ops::Range;
use vramscope_snapshot::{Frame, StackId};
use vramscope_trace::Block;
use vramscope_trace::slicing::{Budget, strides};
use vramscope_units::{Bytes, grouped};

/// A pass that holds fewer bytes does not count.
const MIN_BYTES: u64 = 1 << 20;

/// The least saving of a finding, of the peak. Most programs keep gradients until backward makes
/// new ones.
const MATTERS: Materiality = Materiality::percent(2);

/// The largest share of old gradients beside those of a model that no optimizer updates, in
/// percent of these, if nothing else tells the two.
const MAX_OLD_PERCENT: u64 = 10;

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
    /// The line of the program that calls the optimizer's `step()`, else `backward()`; `None` if no
    /// call stack has one.
    pub called_at: Option<(Frame, Call)>,
}

/// A call of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// `Optimizer.step`.
    Step,
    /// `Tensor.backward`.
    Backward,
}

impl Call {
    fn name(self) -> &'static str {
        match self {
            Self::Step => "step()",
            Self::Backward => "backward()",
        }
    }
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

/// The findings about gradients, if forward passes hold them: of parameters that an optimizer
/// updates, and of others. `growing` are call stacks that grow: another finding names them.
pub(super) async fn gradients_held(
    cx: Evidence<'_>,
    growing: &[StackId],
    budget: &mut Budget,
) -> Vec<Finding> {
    let mut passes = passes_after_updates(cx.categories.phases());
    if passes.is_empty() {
        return Vec::new();
    }
    let mut all: Vec<Held> = Vec::new();
    // The sizes of gradients that are replaced, and of optimizer state.
    let (mut replaced, mut states) = (FxHashSet::default(), FxHashSet::default());
    let (mut called_at, mut backward_at): (Option<(Frame, Call)>, Option<Frame>) = (None, None);
    for part in strides(cx.trace.blocks.len()) {
        budget.charge(2 * part.len() as u64).await;
        for (i, block) in (part.start as u32..).zip(&cx.trace.blocks[part]) {
            let category = cx.categories.get(i).category;
            if called_at.is_none_or(|of| of.1 == Call::Backward) {
                called_at = call(cx, block).or(called_at);
                backward_at = backward_at.or(called_at.map(|of| of.0));
            }
            if category == Category::OptimizerState {
                states.insert(block.bytes.0);
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
            all.push(Held { block: i, passes: first..last });
        }
    }
    let bytes = |held: &Held| cx.trace.blocks[held.block as usize].bytes.0;
    // Others are replaced, these live to the end, and no optimizer state has a size that only they
    // have.
    let is_frozen = |held: &Held| {
        let made = cx.trace.blocks[held.block as usize].alloc_event();
        let is_made = made.is_some_and(|event| cx.phase_at(event.0) == Some(Phase::Backward));
        let lasts = is_made && held.passes.len() >= 2 && held.passes.end == passes.len();
        lasts && (replaced.contains(&bytes(held)) || !states.contains(&bytes(held)))
    };
    let has_frozen = !replaced.is_empty();
    let (frozen, old): (Vec<Held>, Vec<Held>) =
        all.into_iter().partition(|held| has_frozen && is_frozen(held));
    for held in &old {
        passes[held.passes.clone()].iter_mut().for_each(|pass| pass.bytes += bytes(held));
    }
    let mut found: Vec<Finding> = Vec::new();
    let sum = |all: &[Held]| -> u64 { all.iter().map(bytes).sum() };
    let is_all = sum(&old).saturating_mul(100) <= sum(&frozen).saturating_mul(MAX_OLD_PERCENT);
    let frozen = frozen.iter().map(|held| held.block).collect();
    let trains = backward_at.or(called_at.map(|of| of.0));
    found.extend(untrained(cx, frozen, is_all, trains, budget).await);
    found.extend(old_gradients(cx, &passes, &old, called_at, budget).await.map(Finding::from));
    found
}

/// The finding about gradients that an optimizer has used.
async fn old_gradients(
    cx: Evidence<'_>,
    passes: &[Pass],
    all: &[Held],
    called_at: Option<(Frame, Call)>,
    budget: &mut Budget,
) -> Option<Found<GradientsHeld>> {
    let through_forward = passes.iter().map(|pass| pass.bytes).max().unwrap_or(0);
    let peak = cx.peak_slot();
    let at_peak = peak.checked_sub(1).and_then(|event| cx.phase_at(event));
    let peak_pass = passes.partition_point(|pass| pass.update < peak).checked_sub(1)?;
    if !matches!(at_peak, Some(Phase::Forward | Phase::Backward)) {
        return None;
    }
    let block = |held: &Held| &cx.trace.blocks[held.block as usize];
    let live: Vec<&Block> = all
        .iter()
        .filter(|held| held.passes.start <= peak_pass)
        .map(block)
        .filter(|block| block.is_live_at(peak))
        .collect();
    let bytes: u64 = live.iter().map(|block| block.bytes.0).sum();
    let cuts = cuts(cx, passes, all, budget).await;
    let saving = saving(cx, &cuts, budget).await.bytes.min(bytes);
    if !MATTERS.is_met(saving, cx.peak()) {
        return None;
    }
    let facts = GradientsHeld {
        through_forward: Bytes(through_forward),
        passes: passes.iter().filter(|pass| pass.bytes >= MIN_BYTES).count(),
        of_passes: passes.len(),
        at_peak: Bytes(bytes),
        saving: Bytes(saving),
        called_at,
    };
    let events = live.iter().filter_map(|block| block.alloc_event()).map(|e| e.0).collect();
    Some(
        Common {
            step: cx.step_at(peak - 1),
            phase: at_peak,
            basis: if at_peak == Some(Phase::Backward) { Basis::Estimate } else { Basis::Exact },
            blocks: live.len() as u32,
            parts: parts(live.iter().map(|block| (block.stack, block.bytes.0))),
            ..cx.found(FindingKind::GradientsHeld, "zero_grad", bytes, saving, events)
        }
        .with(facts),
    )
}

/// The line of the program that calls `Optimizer.step` or `backward`, if that allocates the block:
/// states of the optimizer, the gradient of the loss itself.
fn call(cx: Evidence<'_>, block: &Block) -> Option<(Frame, Call)> {
    let event = block.alloc_event()?;
    let of = match cx.phase_at(event.0) {
        Some(Phase::Optimizer) => Call::Step,
        Some(Phase::Backward) => Call::Backward,
        _ => return None,
    };
    let (function, file) = match of {
        Call::Step => ("step", "torch/optim/"),
        Call::Backward => ("_make_grads", "torch/autograd/"),
    };
    let is_call = |frame: Frame| {
        cx.snapshot.text(frame.name) == function && cx.snapshot.text(frame.file).contains(file)
    };
    let has_call = block.stack != StackId::EMPTY && cx.snapshot.stack(block.stack).any(is_call);
    let frame = cx.program_frame(block.stack).filter(|_| has_call)?;
    Some((cx.snapshot.frame(frame), of))
}

/// The cuts in lives if gradients are dropped after each update. Backward makes one that is kept
/// again where it makes what it adds to it.
async fn cuts(cx: Evidence<'_>, passes: &[Pass], held: &[Held], budget: &mut Budget) -> Vec<Cut> {
    let mut cuts = Vec::new();
    let mut made: Vec<Option<FxHashMap<u64, VecDeque<u32>>>> =
        passes.iter().map(|_| None).collect();
    for Held { block, passes: of } in held {
        budget.charge(4 * of.len() as u64).await;
        let block = &cx.trace.blocks[*block as usize];
        for at in of.clone() {
            let pass = &passes[at];
            let again = pass.backward.map(|next| {
                let made = made[at].get_or_insert_with(|| made_in(cx, next));
                let same = made.get_mut(&block.bytes.0).and_then(VecDeque::pop_front);
                same.unwrap_or(next.begin + 1)
            });
            let to = block.leaves.min(again.unwrap_or(pass.end + 1));
            cuts.push(Cut { from: pass.updated + 1, to, bytes: block.bytes.0 });
        }
    }
    cuts
}

/// When a backward pass makes results, by their bytes.
fn made_in(cx: Evidence<'_>, backward: PhaseSpan) -> FxHashMap<u64, VecDeque<u32>> {
    let blocks = &cx.trace.blocks;
    let at = |event: u32| blocks.partition_point(|block| block.enters <= event);
    let mut made: FxHashMap<u64, VecDeque<u32>> = FxHashMap::default();
    for block in &blocks[at(backward.begin)..at(backward.end)] {
        made.entry(block.bytes.0).or_default().push_back(block.enters);
    }
    made
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
        let Self { through_forward, passes, of_passes, at_peak, .. } = self;
        let passes = format!(
            "{} of {} forward passes that follow an update",
            grouped(*passes as u64),
            grouped(*of_passes as u64),
        );
        let phase = scene.finding.phase.map_or("step", Phase::name);
        let from = self.called_at.map(|(frame, call)| {
            Sentence::new(format_args!(", from {} at ", call.name())).and(scene.frame_noun(frame))
        });
        Words {
            title: Sentence::new("Old gradients kept through ")
                .filter("forward", "phase:forward".to_owned())
                .and(from.unwrap_or_default())
                .text(": ")
                .event(through_forward.brief(), scene.first_event()),
            text: format!(
                "Gradients of a finished update stay live through {passes}, up to \
                 {through_forward}. {at_peak} of them are live at the peak, in {phase}. {}.",
                capitalized(&self.cost(scene))
            ),
            action: "Call optimizer.zero_grad(set_to_none=True) after each optimizer.step()."
                .to_owned(),
        }
    }

    fn why(&self, scene: &Scene<'_>) -> String {
        self.cost(scene)
    }

    fn spot(&self, _scene: &Scene<'_>) -> Option<Spot> {
        let (frame, call) = self.called_at?;
        let note = match call {
            Call::Step => "the optimizer's step()",
            Call::Backward => "which makes them",
        };
        Some(Spot { frame, note: note.to_owned(), what: SpotWhat::Text(String::new()) })
    }

    fn saving(&self, _scene: &Scene<'_>) -> Option<Bytes> {
        Some(self.saving)
    }
}

impl GradientsHeld {
    /// By how much the peak is lower without them: by the replay, if there is one.
    fn cost(&self, scene: &Scene<'_>) -> String {
        let replayed = scene.predicted.fixes.first().map(|lever| lever.lowers);
        format!("without them the peak is {} lower", replayed.unwrap_or(self.saving))
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
