//! What each phase of each step needs: the peak, the blocks that make it, and what was reserved.
//!
//! One pass over the events finds the peaks of all phases. It keeps live bytes by category and
//! copies them where a phase reaches a new peak.

mod next;
mod parts;

pub use next::{NextPhase, NextStep};

use crate::category::{Categories, Category, Phase};
use crate::steps::Steps;
pub use parts::StepPart;
use serde::{Deserialize, Serialize};
use vramscope_snapshot::Snapshot;
use vramscope_trace::slicing::{Budget, strides};
use vramscope_trace::{Trace, reserve_change};
use vramscope_units::named;

named! {
    /// The phase of a step.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    #[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
    #[serde(rename_all = "snake_case")]
    pub enum StepPhase {
        /// See [`Phase::Forward`].
        Forward = "forward",
        /// See [`Phase::Backward`].
        Backward = "backward",
        /// See [`Phase::Optimizer`].
        Optimizer = "optimizer",
        /// A repetition without a backward pass beside a cache, or that has several forward passes
        /// and leaves nothing behind: a token, a request.
        Generation = "generation",
        /// See [`Phase::Evaluation`].
        Evaluation = "evaluation",
        /// See [`Phase::Other`].
        Other = "other",
    }
}

impl From<Phase> for StepPhase {
    fn from(phase: Phase) -> Self {
        match phase {
            Phase::Forward => Self::Forward,
            Phase::Backward => Self::Backward,
            Phase::Optimizer => Self::Optimizer,
            Phase::Other => Self::Other,
            Phase::Evaluation => Self::Evaluation,
        }
    }
}

/// Live bytes by [`Category`], in the order of [`Category::ALL`].
pub type CategoryBytes = [u64; Category::ALL.len()];

/// A maximal part of the window in one step and one phase.
///
/// Its slots are those after its events. The first part also has the slot before the window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhasePeak {
    /// The step, from 0. `None` before the first step and after the last.
    pub step: Option<u32>,
    /// The phase.
    pub phase: StepPhase,
    /// The first event.
    pub begin: u32,
    /// The event after the last.
    pub end: u32,
    /// The first slot with the most `requested_bytes`.
    pub slot: u32,
    /// `requested_bytes` in that slot.
    pub bytes: u64,
    /// Live bytes in that slot by category. They add up to `bytes`.
    pub categories: CategoryBytes,
    /// Live blocks in that slot.
    pub blocks: u32,
    /// The block of [`Trace::blocks`] that the window allocated last, up to that slot. `None` if it
    /// allocated nothing before.
    pub set_by: Option<u32>,
    /// The most bytes in any slot that are known not to be activations.
    pub without_activations: u64,
    /// What `reserved_bytes` grew by, in bytes.
    pub reserved_growth: i64,
}

/// The phases of all steps of one device's window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepPhases {
    /// The phases in order. They touch each other and cover every event of the window, so their
    /// largest peak is the peak of `requested_bytes`. Empty if nothing shows a step or a phase.
    pub phases: Vec<PhasePeak>,
    /// The estimated peak of the second step. `None` if the first step does not show it.
    pub next: Option<NextStep>,
}

impl StepPhases {
    /// Finds the peaks of all phases. `steps` and `parts` are those of the same trace.
    pub async fn new(
        snapshot: &Snapshot,
        trace: &Trace,
        categories: &Categories,
        steps: Option<&Steps>,
        parts: &[StepPart],
        budget: &mut Budget,
    ) -> Self {
        let mut sweep = Sweep { snapshot, trace, categories, live: Live::default() };
        let mut phases = Vec::with_capacity(parts.len());
        for &part in parts {
            phases.push(sweep.part(part, budget).await);
        }
        let next = match steps {
            Some(steps) => next::next(trace, categories, steps, &phases, budget).await,
            None => None,
        };
        Self { phases, next }
    }

    /// The steps and phases without their peaks, in order. They cover every event. Empty if nothing
    /// shows a step or a phase.
    pub(crate) async fn parts(
        trace: &Trace,
        categories: &Categories,
        steps: Option<&Steps>,
        budget: &mut Budget,
    ) -> Vec<StepPart> {
        let events = trace.device.events.len() as u32;
        let generates = match steps {
            Some(steps) => generates(trace, categories, steps, budget).await,
            None => false,
        };
        parts::parts(events, categories.phases(), steps, generates, budget).await
    }

    /// The step and phase that contain the state of a slot. `None` if nothing shows them.
    pub fn at(&self, slot: u32) -> Option<&PhasePeak> {
        // The slot before the window belongs to the first part.
        let after = self.phases.partition_point(|part| part.end < slot.max(1));
        self.phases.get(after)
    }
}

/// Whether repetitions generate: a cache is live in them, or each has several forward passes and
/// leaves live bytes as it found them.
async fn generates(
    trace: &Trace,
    categories: &Categories,
    steps: &Steps,
    budget: &mut Budget,
) -> bool {
    let (Some(repetition), [first, .., last]) = (steps.repetition, &steps.begins[..]) else {
        return false;
    };
    for part in strides(trace.blocks.len()) {
        budget.charge(2 * part.len() as u64).await;
        let mut blocks = (part.start as u32..).zip(&trace.blocks[part]);
        if blocks.any(|(index, block)| {
            block.enters < *last
                && block.leaves > *first
                && categories.get(index).category == Category::Cache
        }) {
            return true;
        }
    }
    let floors = || steps.begins[1..].iter().map(|&slot| trace.requested.at(slot));
    let (least, most) = (floors().min().unwrap_or(0), floors().max().unwrap_or(0));
    repetition.has_passes && most - least <= most / 100
}

/// The live blocks of a slot.
#[derive(Clone, Copy, Default)]
struct Live {
    bytes: u64,
    categories: CategoryBytes,
    blocks: u32,
    set_by: Option<u32>,
}

impl Live {
    /// Bytes that are known not to be activations.
    fn without_activations(&self) -> u64 {
        let of = |category: Category| self.categories[category as usize];
        self.bytes - of(Category::Activation) - of(Category::Unknown)
    }
}

/// A pass over the slots, part by part.
struct Sweep<'a> {
    snapshot: &'a Snapshot,
    trace: &'a Trace,
    categories: &'a Categories,
    live: Live,
}

/// Cost of a slot, in units of [`Budget`].
const COST_PER_SLOT: u64 = 6;

impl Sweep<'_> {
    async fn part(&mut self, part: StepPart, budget: &mut Budget) -> PhasePeak {
        let first_slot = if part.begin == 0 { 0 } else { part.begin + 1 };
        let mut peak: Option<(u32, Live)> = None;
        let (mut without_activations, mut reserved_growth) = (0, 0);
        for stride in strides((part.end + 1 - first_slot) as usize) {
            budget.charge(stride.len() as u64 * COST_PER_SLOT).await;
            for slot in first_slot + stride.start as u32..first_slot + stride.end as u32 {
                self.enter(slot);
                let live = &self.live;
                if peak.as_ref().is_none_or(|(_, best)| best.bytes < live.bytes) {
                    peak = Some((slot, *live));
                }
                without_activations = without_activations.max(live.without_activations());
                if let Some(event) = slot.checked_sub(1) {
                    let row = self.trace.device.events.start + event;
                    reserved_growth += reserve_change(self.snapshot, row);
                }
            }
        }
        let (slot, at_peak) = peak.unwrap_or((first_slot, self.live));
        PhasePeak {
            step: part.step,
            phase: part.phase,
            begin: part.begin,
            end: part.end,
            slot,
            bytes: at_peak.bytes,
            categories: at_peak.categories,
            blocks: at_peak.blocks,
            set_by: at_peak.set_by,
            without_activations,
            reserved_growth,
        }
    }

    /// Applies the changes of the next slot.
    fn enter(&mut self, slot: u32) {
        let live = &mut self.live;
        for change in self.trace.changes_at(slot) {
            let block = &self.trace.blocks[change.block() as usize];
            let bytes = block.bytes.0;
            let category = self.categories.get(change.block()).category as usize;
            if change.enters() {
                live.bytes += bytes;
                live.categories[category] += bytes;
                live.blocks += 1;
                live.set_by = block.alloc_event().map(|_| change.block()).or(live.set_by);
            } else {
                live.bytes -= bytes;
                live.categories[category] -= bytes;
                live.blocks -= 1;
            }
        }
    }
}
