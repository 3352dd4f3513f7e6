//! Memory of several steps that is freed at once: reference cycles, which only Python's garbage
//! collector frees.
//!
//! The collector runs at any allocation of a Python object, so it also runs within forward and
//! backward passes. A program that drops what it collected does so between steps.

use crate::category::{Category, Phase};
use crate::claims::found::{Common, Found, parts};
use crate::claims::kinds::FindingKind;
use crate::claims::scene::{Claim, Exhibit, Scene, Spot, SpotWhat, Words};
use crate::claims::words::counted;
use crate::evidence::Evidence;
use crate::steps::Steps;
use rustc_hash::FxHashSet;
use std::ops::Range;
use vramscope_snapshot::Action;
use vramscope_trace::Origin;
use vramscope_trace::slicing::{Budget, strides};
use vramscope_trace::sort;
use vramscope_units::{Bytes, EventIndex};

/// The fewest steps whose blocks a collection frees.
const MIN_STEPS: usize = 3;

/// The fewest bytes that a collection frees.
const MIN_BYTES: u64 = 1 << 20;

/// Events between two frees of one collection. One free takes two events.
const MAX_GAP: u32 = 8;

/// Reference cycles that keep the memory of several steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cycle {
    /// Collections in the window.
    pub collections: usize,
    /// The event of the first free of the largest collection.
    pub largest: EventIndex,
    /// Bytes that it frees.
    pub freed: Bytes,
    /// Steps whose blocks it frees.
    pub steps: usize,
    /// Bytes of collected blocks that are live at the peak of `requested_bytes` although their step
    /// is over.
    pub at_peak: Bytes,
}

/// A block that outlives its step, and the event that frees it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct LateFree {
    event: u32,
    step: usize,
    block: u32,
}

/// The finding about reference cycles, if a collection frees memory of several steps within a
/// forward or backward pass.
pub(super) async fn cycle(cx: Evidence<'_>, budget: &mut Budget) -> Option<Found<Cycle>> {
    let steps = cx.steps.filter(|steps| steps.are_training())?;
    let mut frees = late_frees(cx, steps, budget).await;
    sort(&mut frees, budget).await;
    let mut collections: Vec<&[LateFree]> = Vec::new();
    for burst in frees.chunk_by(|a, b| b.event - a.event <= MAX_GAP) {
        budget.charge(burst.len() as u64).await;
        if is_collection(cx, burst) {
            collections.push(burst);
        }
    }
    let freed = |burst: &[LateFree]| -> u64 {
        burst.iter().map(|free| cx.trace.blocks[free.block as usize].bytes.0).sum()
    };
    let largest = collections.iter().max_by_key(|burst| freed(burst))?;
    let peak = cx.peak_slot();
    let peak_step = steps.before(peak);
    let blocks = || collections.iter().flat_map(|burst| burst.iter());
    let at_peak = blocks().filter(|free| {
        let block = &cx.trace.blocks[free.block as usize];
        block.is_live_at(peak) && free.step < peak_step
    });
    let at_peak: u64 = at_peak.map(|free| cx.trace.blocks[free.block as usize].bytes.0).sum();
    let distinct: FxHashSet<usize> = largest.iter().map(|free| free.step).collect();
    let facts = Cycle {
        collections: collections.len(),
        largest: EventIndex(largest[0].event),
        freed: Bytes(freed(largest)),
        steps: distinct.len(),
        at_peak: Bytes(at_peak),
    };
    let events = collections.iter().map(|burst| burst[0].event).collect();
    Some(
        Common {
            blocks: blocks().count() as u32,
            parts: parts(blocks().map(|free| {
                let block = &cx.trace.blocks[free.block as usize];
                (block.stack, block.bytes.0)
            })),
            ..cx.found(FindingKind::Cycle, largest[0].event, facts.freed.0, at_peak, events)
        }
        .with(facts),
    )
}

/// Blocks that outlive their step and are freed in the window. `zero_grad` frees gradients: they
/// are in no cycle.
async fn late_frees(cx: Evidence<'_>, steps: &Steps, budget: &mut Budget) -> Vec<LateFree> {
    let (mut frees, mut near) = (Vec::new(), 0);
    for part in strides(cx.trace.blocks.len()) {
        budget.charge(4 * part.len() as u64).await;
        let blocks = (part.start as u32..).zip(&cx.trace.blocks[part]);
        for (i, block) in blocks.filter(|(_, b)| b.origin() == Origin::Alloc) {
            if cx.categories.get(i).category == Category::Gradient {
                continue;
            }
            near = steps.before_near(block.enters, near);
            let Some(event) = block.free_requested() else { continue };
            if steps.before_near(event.0 + 1, near) > near {
                frees.push(LateFree { event: event.0, step: near, block: i });
            }
        }
    }
    frees
}

/// Whether frees in a row give back memory of several steps, in the middle of a pass.
fn is_collection(cx: Evidence<'_>, burst: &[LateFree]) -> bool {
    let steps: FxHashSet<usize> = burst.iter().map(|free| free.step).collect();
    let bytes: u64 = burst.iter().map(|f| cx.trace.blocks[f.block as usize].bytes.0).sum();
    steps.len() >= MIN_STEPS
        && bytes >= MIN_BYTES
        && burst.iter().any(|free| is_within_pass(cx, free.event))
}

/// Whether one forward or backward pass allocates both before and after an event.
fn is_within_pass(cx: Evidence<'_>, event: u32) -> bool {
    let phases = cx.categories.phases();
    let next = phases.partition_point(|span| span.begin <= event);
    let Some(span) = next.checked_sub(1).map(|i| phases[i]) else { return false };
    let rows = cx.trace.device.events.start;
    let allocates = |mut events: Range<u32>| {
        events.any(|event| cx.snapshot.events.action(rows + event) == Action::ALLOC)
    };
    matches!(span.phase, Phase::Forward | Phase::Backward | Phase::Evaluation)
        && allocates(span.begin..event)
        && allocates(event..span.end)
}

impl Claim for Cycle {
    fn words(&self, scene: &Scene<'_>) -> Words {
        let Cycle { collections, largest, freed, steps, at_peak } = self;
        let site = scene.main_site();
        Words {
            title: scene
                .titled("Reference cycles", self.spot(scene).as_ref(), *freed)
                .text(" wait for Python's garbage collector"),
            text: format!(
                "{freed} of {steps} past steps were freed at once at {largest}, in the middle of a \
                 pass ({} in the window). Only Python's garbage collector frees memory like that. \
                 Most of it is from {site}. {at_peak} of it is live at the peak.",
                counted(*collections, "such collection"),
            ),
            action: "Break the cycle: find objects that hold each other and a tensor \
                     (gc.set_debug(gc.DEBUG_SAVEALL), or weakref). Until then call gc.collect() \
                     after each step."
                .to_owned(),
        }
    }

    fn why(&self, _scene: &Scene<'_>) -> String {
        "they were freed at once in the middle of a pass: only Python's garbage collector does that"
            .to_owned()
    }

    fn spot(&self, scene: &Scene<'_>) -> Option<Spot> {
        Some(Spot { what: SpotWhat::Text(String::new()), ..scene.own_spot()? })
    }

    fn exhibit(&self, _scene: &Scene<'_>) -> Exhibit {
        Exhibit::Lives {
            title: "lives of the largest blocks, until the collection",
            slot: self.largest.0,
        }
    }
}

#[cfg(test)]
crate::claims::cases::cases! {
    Cycle,
    fires: ["findings/cycle_sawtooth.pickle.gz"],
    silent: ["findings/non_accum_late.pickle.gz", "findings/leak_every.pickle.gz"]
}
