//! Memory at the peak of a traced step that no operation uses again.

use crate::claims::found::{Common, Found, parts};
use crate::claims::kinds::{Basis, FindingKind};
use crate::claims::scene::{Claim, Exhibit, Scene, Words};
use crate::claims::words::{capitalized, counted};
use crate::evidence::{Evidence, Materiality};
use crate::uses::UseGroup;
use vramscope_trace::slicing::Budget;
use vramscope_units::Bytes;

/// Lower amounts are no finding.
const MATTERS: Materiality = Materiality::percent(2);

/// A step whose peak is lower than this share of the run's does not set it, in percent.
const SETS_PERCENT: u64 = 98;

/// Memory at the peak of the traced step that is never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeadAtPeak {
    /// Requested bytes at the peak of the traced step.
    pub peak: Bytes,
    /// The peak if each block of the step died at its last use.
    pub floor: Bytes,
    /// The slot of the peak.
    pub slot: u32,
    /// The step, as the program counts.
    pub step: Option<u64>,
    /// Whether that is the peak of the run.
    pub is_of_run: bool,
    /// Bytes at the peak that no operation was seen to use.
    pub not_seen: Bytes,
    /// Whether kernels ran that are not seen.
    pub has_unseen_kernels: bool,
    /// A dead block of the call site with the most bytes.
    pub example: u32,
}

/// The finding about dead memory, if it is large enough.
pub(super) async fn dead_at_peak(
    cx: Evidence<'_>,
    budget: &mut Budget,
) -> Option<Found<DeadAtPeak>> {
    let uses = cx.uses?;
    budget.charge(cx.trace.blocks.len() as u64).await;
    let floor = uses.floor(cx.trace);
    let moment = uses.moment(cx.trace, floor.slot)?;
    let block = |index: u32| &cx.trace.blocks[index as usize];
    let of = |group| moment.blocks.iter().filter(move |one| one.group == group);
    let sum = |group| of(group).map(|one| block(one.block).bytes.0).fold(0, u64::saturating_add);
    let dead = sum(UseGroup::Dead);
    if !MATTERS.is_met(dead, floor.peak) {
        return None;
    }
    let of_run = cx.peak();
    let is_of_run = floor.peak.saturating_mul(100) >= of_run.saturating_mul(SETS_PERCENT);
    let blocks: Vec<u32> = of(UseGroup::Dead).map(|one| one.block).collect();
    let parts = parts(blocks.iter().map(|&one| (block(one).stack, block(one).bytes.0)));
    let main = parts.first()?.stack;
    let facts = DeadAtPeak {
        peak: Bytes(floor.peak),
        floor: Bytes(floor.floor),
        slot: floor.slot,
        step: uses.step,
        is_of_run,
        not_seen: Bytes(sum(UseGroup::NotSeen)),
        has_unseen_kernels: !uses.is_exact(),
        example: blocks
            .iter()
            .copied()
            .filter(|&one| block(one).stack == main)
            .max_by_key(|&one| (uses.last_operation(one).is_some(), std::cmp::Reverse(one)))?,
    };
    let events = blocks.iter().filter_map(|&one| block(one).alloc_event()).map(|event| event.0);
    let event = floor.slot.checked_sub(1);
    let cost = if is_of_run { dead } else { 0 };
    Some(
        Common {
            step: event.and_then(|event| cx.step_at(event)),
            phase: event.and_then(|event| cx.phase_at(event)),
            basis: if uses.is_exact() { Basis::Exact } else { Basis::Estimate },
            blocks: blocks.len() as u32,
            parts,
            ..cx.found(FindingKind::DeadAtPeak, cx.hash(main), dead, cost, events.collect())
        }
        .with(facts),
    )
}

impl Claim for DeadAtPeak {
    fn words(&self, scene: &Scene<'_>) -> Words {
        let site = scene.named_site();
        let blocks = counted(scene.finding.blocks as usize, "block");
        let most =
            site.as_ref().map_or_else(String::new, |site| format!(", most of it from {site}"));
        let last = scene.cx.uses.and_then(|uses| uses.last_operation(self.example));
        let step = self.step.map_or_else(|| "the traced step".to_owned(), |n| format!("step {n}"));
        let mut text = format!(
            "At the peak of {step} ({}) {blocks} ({}) hold what no operation uses again{most}. {}.",
            self.peak,
            scene.bytes(),
            capitalized(&self.why(scene)),
        );
        if !self.is_of_run {
            text.push_str(" Another step sets the peak of the run.");
        }
        if self.not_seen.0 > 0 {
            text = format!("{text} No operation was seen to use {} more.", self.not_seen);
        }
        if self.has_unseen_kernels {
            text.push_str(
                " Kernels ran that PyTorch's dispatcher does not call, such as those of \
                 torch.compile: they may use it.",
            );
        }
        let after = last.map_or_else(String::new, |last| format!(" ({last})"));
        let action = match site {
            Some(site) => format!(
                "`del` what {site} makes after its last use{after}: only references of the program \
                 keep it allocated."
            ),
            None => {
                "Use gradients as they come (an optimizer in backward), or drop what holds these \
                     blocks."
                    .to_owned()
            }
        };
        Words {
            title: scene
                .titled("Tensors never read again", self.spot(scene).as_ref(), scene.bytes())
                .text(" at the peak"),
            text,
            action,
        }
    }

    fn why(&self, _scene: &Scene<'_>) -> String {
        format!("if each block of the step died at its last use, its peak would be {}", self.floor)
    }

    fn saving(&self, scene: &Scene<'_>) -> Option<Bytes> {
        Some(scene.predicted.fixes.first()?.lowers)
    }

    fn exhibit(&self, _scene: &Scene<'_>) -> Exhibit {
        Exhibit::Lives {
            title: "lives of the largest blocks, and the peak of the traced step",
            slot: self.slot,
        }
    }
}

#[cfg(test)]
crate::claims::cases::cases! {
    DeadAtPeak,
    fires: ["beside/uses_kept/rank0_memory_snapshot.pickle.gz"],
    silent: ["beside/uses_dropped/rank0_memory_snapshot.pickle.gz"]
}
