//! Finds passes: where phases begin, and where inputs do.

use super::{Pass, PassBasis, PassKind, Span};
use crate::category::{Categories, Category};
use crate::step_phases::StepPhase;
use rustc_hash::FxHashSet;
use std::ops::Range;
use vramscope_snapshot::StackId;
use vramscope_trace::Trace;
use vramscope_trace::slicing::{Budget, strides};

/// A block as far as passes need it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Made {
    pub(crate) begin: f64,
    pub(crate) end: f64,
    pub(crate) bytes: u64,
    /// `None` for a block that no event of the recording makes.
    pub(crate) stack: Option<StackId>,
    pub(crate) category: Category,
}

/// Blocks by birth.
pub(crate) trait Blocks: Sync {
    fn count(&self) -> usize;
    fn made(&self, index: usize) -> Made;

    /// The blocks that are born from `begin` on and before `end`.
    fn born(&self, begin: f64, end: f64) -> Range<usize> {
        let at = |time: f64| {
            let (mut low, mut high) = (0, self.count());
            while low < high {
                let middle = usize::midpoint(low, high);
                if self.made(middle).begin < time { low = middle + 1 } else { high = middle }
            }
            low
        };
        let from = at(begin);
        from..at(end).max(from)
    }
}

impl Blocks for (&Trace, &Categories) {
    fn count(&self) -> usize {
        self.0.blocks.len()
    }

    fn made(&self, index: usize) -> Made {
        let block = &self.0.blocks[index];
        let is_freed = block.leaves < self.0.slots();
        Made {
            begin: f64::from(block.enters) - 1.0,
            end: if is_freed { f64::from(block.leaves) - 1.0 } else { f64::INFINITY },
            bytes: block.bytes.0,
            stack: Some(block.stack),
            category: self.1.get(index as u32).category,
        }
    }
}

/// Where an input is made: its call stack, or its size without one.
type Site = (StackId, u64);

/// An input.
struct Input {
    begin: f64,
    block: u32,
    site: Site,
    /// Whether another call site made a block since the input before.
    is_after_work: bool,
}

/// The inputs of a window.
async fn inputs(blocks: &impl Blocks, budget: &mut Budget) -> Vec<Input> {
    let mut all: Vec<Input> = Vec::new();
    let mut is_after_work = false;
    for part in strides(blocks.count()) {
        budget.charge(2 * part.len() as u64).await;
        for index in part {
            let made = blocks.made(index);
            let stack = made.stack.unwrap_or(StackId::EMPTY);
            if made.category == Category::Input && made.begin >= 0.0 {
                let site = (stack, if stack == StackId::EMPTY { made.bytes } else { 0 });
                let block = index as u32;
                all.push(Input { begin: made.begin, block, site, is_after_work });
                is_after_work = false;
            } else {
                is_after_work |= all.last().is_none_or(|input| input.site.0 != stack);
            }
        }
    }
    all
}

/// Whether blocks of a category outlive a step: weights, states, workspaces.
pub(crate) fn outlives_steps(category: Category) -> bool {
    matches!(
        category,
        Category::Parameter
            | Category::OptimizerState
            | Category::Buffer
            | Category::Workspace
            | Category::Cache
    )
}

/// The passes of a window, by time. `spans` are its parts by time.
pub(crate) async fn passes(spans: &[Span], blocks: &impl Blocks, budget: &mut Budget) -> Vec<Pass> {
    let inputs = inputs(blocks, budget).await;
    let of = |begin: f64, end: f64| -> &[Input] {
        let from = inputs.partition_point(|input| input.begin < begin);
        let to = inputs.partition_point(|input| input.begin < end);
        &inputs[from..to.max(from)]
    };
    let mut passes: Vec<Pass> = Vec::new();
    // When the pass before was over, and when its step was.
    let (mut over, mut lead) = (f64::NEG_INFINITY, None);
    // The call sites of inputs with which passes began.
    let mut begun: FxHashSet<Site> = FxHashSet::default();
    for (at, span) in spans.iter().enumerate() {
        if span.phase == StepPhase::Optimizer && lead.is_some() {
            lead = Some(span.end);
        }
        if span.phase == StepPhase::Backward {
            (over, lead) = (span.end, Some(span.end));
        }
        if !span.is_of_model() {
            continue;
        }
        let next = spans[at + 1..]
            .iter()
            .find(|next| next.is_of_model() || next.phase == StepPhase::Backward);
        let backward = next.filter(|next| next.phase == StepPhase::Backward);
        let before = of(over, span.begin);
        let first = before.first().map_or(span.begin, |input| input.begin);
        begun.extend(before.iter().map(|input| input.site));
        let mut cuts = vec![span.begin];
        let mut seen: FxHashSet<Site> = FxHashSet::default();
        let in_span =
            if span.phase == StepPhase::Generation { &[] } else { of(span.begin, span.end) };
        for input in in_span.iter().filter(|input| input.begin > span.begin) {
            let is_new = !seen.insert(input.site) || begun.contains(&input.site);
            let is_of_one = || {
                backward.is_none_or(|backward| is_of_one_pass(blocks, span, input.begin, backward))
            };
            if input.is_after_work && (is_new && backward.is_none() || !is_of_one()) {
                cuts.push(input.begin);
                begun.insert(input.site);
                seen.clear();
            }
        }
        for (nth, &begin) in cuts.iter().enumerate() {
            let end = cuts.get(nth + 1).copied().unwrap_or(span.end);
            let backward = backward.copied().filter(|_| nth + 1 == cuts.len());
            let is_first = nth == 0;
            let from = if is_first { over } else { begin };
            passes.push(Pass {
                kind: match span.phase {
                    StepPhase::Generation => PassKind::Generation,
                    _ if backward.is_some() => PassKind::Step,
                    _ => PassKind::Evaluation,
                },
                basis: match span.phase {
                    StepPhase::Generation => PassBasis::Repetition,
                    _ if is_first => PassBasis::Phase,
                    _ => PassBasis::Inputs,
                },
                step: span.step,
                lead: if is_first { lead.unwrap_or(first).min(first) } else { begin },
                begin,
                end,
                backward,
                inputs: of(from, end).iter().map(|input| input.block).collect(),
            });
        }
        (over, lead) = (span.end, Some(span.end));
    }
    mark_micro_batches(&mut passes);
    passes
}

/// Several passes of one step with backward passes are micro-batches.
fn mark_micro_batches(passes: &mut [Pass]) {
    for step in passes.chunk_by_mut(|a, b| a.step == b.step) {
        if step.iter().filter(|pass| pass.kind == PassKind::Step).count() > 1 {
            let trained = step.iter_mut().filter(|pass| pass.kind == PassKind::Step);
            trained.for_each(|pass| pass.kind = PassKind::MicroBatch);
        }
    }
}

/// Whether what comes before a cut belongs to the pass after it: the backward pass frees most of
/// what it left. Labels are often made after the forward pass.
fn is_of_one_pass(blocks: &impl Blocks, span: &Span, cut: f64, backward: &Span) -> bool {
    let (mut left, mut used) = (0_u64, 0_u64);
    for made in blocks.born(span.begin, cut).map(|index| blocks.made(index)) {
        if made.end > cut && !outlives_steps(made.category) && made.category != Category::Input {
            left += made.bytes;
            let is_used = (backward.begin..backward.end).contains(&made.end);
            used += if is_used { made.bytes } else { 0 };
        }
    }
    used * 2 > left
}
