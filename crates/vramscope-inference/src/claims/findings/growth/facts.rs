//! What growth is, as a finding.

use crate::claims::found::Found;
use crate::claims::kinds::FindingKind;
use crate::claims::severity::Severity;
use crate::evidence::Evidence;
use crate::steps::Steps;
use vramscope_snapshot::Frame;
use vramscope_units::Bytes;

/// Growth of repetitions matters if it adds the peak again in at most this many of them.
const FAST_REPETITIONS: u64 = 100;

/// How live bytes grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrowthKind {
    /// New blocks stay in each step.
    Kept,
    /// Blocks are replaced by larger ones.
    Replaced,
}

/// Memory that grows from step to step, from one cause.
#[expect(clippy::struct_excessive_bools, reason = "the facts do not depend on each other")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Growth {
    /// How it grows.
    pub kind: GrowthKind,
    /// The smallest and the largest growth in one step.
    pub per_step: (Bytes, Bytes),
    /// Grows in every step (1), every second step (2), and so on.
    pub every: usize,
    /// How often it grows: steps, and what follows the last whole one.
    pub steps: usize,
    /// Whether no step between the first and the last of them is without growth.
    pub in_a_row: bool,
    /// The mean growth of the steps that grow, spread over [`Growth::every`] steps.
    pub rate: Bytes,
    /// What 1,000 more steps add, at the mean of the steps after warm-up.
    pub per_1000_steps: Bytes,
    /// What came first leaves in a later step, and what came last stays: a queue that grows.
    pub is_queue: bool,
    /// Bytes after the last whole step that this growth has added.
    pub total: Bytes,
    /// The innermost frame outside of PyTorch that the call stacks share; `None` without one.
    pub at: Option<Frame>,
    /// The innermost frame that they share and that is not part of an installed package; `None` if
    /// that is [`Growth::at`] or does not exist.
    pub called_from: Option<Frame>,
    /// Call sites that grow.
    pub sites: usize,
    /// For kept activations of several sites, or several of one call: their bytes in one step, and
    /// the bytes of all activations that such a step allocates.
    pub activations: Option<(Bytes, Bytes)>,
    /// Whether an evaluation makes some of the blocks.
    pub at_evaluation: bool,
    /// The words for the parts that growth is compared between: training steps, requests, passes.
    pub words: [&'static str; 2],
    /// Whether the blocks are caches of keys and values.
    pub is_cache: bool,
    /// Whether the blocks are data from the host, without results or graphs: a store that fills.
    pub is_data: bool,
    /// Whether gradients grow together with results from which they were made: they keep their
    /// graphs.
    pub keeps_graphs: bool,
    /// Whether gradients or optimizer state grow beyond one set for the model's parameters.
    pub is_model_state: bool,
}

impl Growth {
    /// Whether training steps grow, and not requests.
    pub fn are_training(&self) -> bool {
        self.words == Steps::TRAINING
    }
}

/// The finding about a growth.
pub(super) fn finding(
    cx: Evidence<'_>,
    what: &str,
    events: Vec<u32>,
    facts: Growth,
) -> Found<Growth> {
    let (bytes, rate) = (facts.total.0, facts.rate.0);
    let mut found = cx.found(FindingKind::Growth, what, bytes, bytes, events);
    if facts.are_training() {
        // A replay buffer has a bound, and is full in the end.
        if facts.is_data {
            found.severity = Severity::Medium;
        }
        return found.with(facts);
    }
    // A server can keep the caches of its sessions on purpose, but not for long at this rate.
    let peak = cx.peak();
    let is_fast = rate.saturating_mul(FAST_REPETITIONS) >= peak;
    found.severity = if is_fast { Severity::Medium } else { Severity::Low };
    found.with(facts)
}
