//! Evidence: what claims read of a device, computed once.
//!
//! One question has one detector here. Claims read its answer, so none contradicts another.

pub(crate) mod attention;
pub(crate) mod autocast;
pub(crate) mod checkpoint;
pub(crate) mod evaluation;
pub(crate) mod failure;
mod frames;
pub(crate) mod gradients;
pub(crate) mod marks;
mod materiality;
mod memory_use;
pub(crate) mod one_piece;
pub(crate) mod optimizer;
pub(crate) mod passes;
pub(crate) mod proof;
pub(crate) mod ranks;
mod returns;
mod run;
mod saving;
pub(crate) mod stacks;
pub(crate) mod traits;

pub use materiality::Materiality;
pub(crate) use memory_use::{
    DEFAULT_POOL, is_graph_pool, pool_or_default, segments_at, slot_of_last_rise,
};
pub use memory_use::{MemoryUse, slot_of_reserved_peak};
pub(crate) use returns::{Burst, Cause, Returns, is_in_graphs};
pub(crate) use run::Run;
pub(crate) use saving::{Cut, Saving, saving};

use crate::category::{Categories, Category, Phase};
use crate::steps::Steps;
use crate::uses::Uses;
use passes::Passes;
use rustc_hash::FxHashMap;
use vramscope_snapshot::{FrameId, Snapshot, StackId};
use vramscope_trace::slicing::Budget;
use vramscope_trace::{Block, Carving, Sites, Trace, is_framework_frame};

/// The sources of claims about one device.
#[derive(Clone, Copy)]
pub struct Evidence<'a> {
    /// The snapshot's tables.
    pub snapshot: &'a Snapshot,
    /// One device's window.
    pub trace: &'a Trace,
    /// The call sites of the snapshot.
    pub sites: &'a Sites,
    /// Block sizes and segments.
    pub carving: &'a Carving,
    /// Categories of blocks, and phases.
    pub categories: &'a Categories,
    /// Training steps, or repetitions; `None` if nothing shows them.
    pub steps: Option<&'a Steps>,
    /// The passes: parts of a program that repeat.
    pub passes: &'a Passes,
    /// The memory that operations of a traced step used; `None` if none was traced.
    pub uses: Option<&'a Uses>,
}

impl Evidence<'_> {
    /// Whether a frame is the program's, or that of a package that builds on PyTorch.
    pub(crate) fn is_program(&self, frame: FrameId) -> bool {
        let frame = self.snapshot.frame(frame);
        !is_framework_frame(&self.snapshot.text(frame.name), &self.snapshot.text(frame.file))
    }

    /// Whether a block is neither a part of the model nor kept for it: a result, or an input.
    pub(crate) fn is_result(&self, block: u32) -> bool {
        matches!(
            self.categories.get(block).category,
            Category::Activation | Category::Temporary | Category::Unknown | Category::Input
        )
    }

    /// The number of parameters of each size.
    pub(crate) async fn parameters_by_size(&self, budget: &mut Budget) -> FxHashMap<u64, usize> {
        let mut counts = FxHashMap::default();
        let visit = |i, block: &Block| {
            if self.categories.get(i).category == Category::Parameter {
                *counts.entry(block.bytes.0).or_default() += 1;
            }
        };
        self.trace.each_block(1, budget, visit).await;
        counts
    }

    /// Whether a backward pass is in the window.
    pub(crate) fn trains(&self) -> bool {
        self.categories.phases().iter().any(|span| span.phase == Phase::Backward)
    }

    /// The phase of an event; `None` if nothing shows it.
    pub(crate) fn phase_at(&self, event: u32) -> Option<Phase> {
        let phases = self.categories.phases();
        let next = phases.partition_point(|span| span.begin <= event);
        let phase = phases[..next].last()?.phase;
        (phase != Phase::Other).then_some(phase)
    }

    /// The training step of the state after an event.
    pub(crate) fn step_at(&self, event: u32) -> Option<u32> {
        self.steps.filter(|steps| steps.are_training())?.at(event + 1)
    }

    /// The slot of the peak of `requested_bytes`.
    pub(crate) fn peak_slot(&self) -> u32 {
        self.trace.requested_band.peak_event.map_or(0, |event| event + 1)
    }

    /// The peak of `requested_bytes`, in bytes.
    pub(crate) fn peak(&self) -> u64 {
        self.trace.requested_band.peak.max(0) as u64
    }

    /// A name for a call stack: its hash, equal in every rank.
    pub(crate) fn hash(&self, stack: StackId) -> String {
        format!("{:016x}", self.sites.get(stack).stack_hash)
    }

    /// A top-level setting's JSON text.
    pub fn setting(&self, key: &str) -> Option<&str> {
        self.snapshot.settings.iter().find(|s| s.0 == key).map(|s| s.1.as_str())
    }

    /// Whether the file says that expandable segments are off.
    pub fn can_expand(&self) -> bool {
        self.setting("expandable_segments") == Some("false")
    }
}
