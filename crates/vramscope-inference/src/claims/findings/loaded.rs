//! A checkpoint that was loaded to the device and stays beside the weights that were set from it.

use crate::category::Category;
use crate::claims::found::{Common, Found, parts};
use crate::claims::kinds::{Basis, FindingKind};
use crate::claims::scene::{Claim, Scene, Words};
use crate::evidence::marks::{Mark, Marks};
use crate::evidence::{Cut, Evidence, Materiality, saving};
use std::collections::BTreeMap;
use vramscope_trace::slicing::{Budget, strides};
use vramscope_units::Bytes;

/// The smallest saving that is worth a claim.
const WORTH: Materiality = Materiality::percent(5);

/// The smallest share of loaded bytes that have a twin, and of twins with a state, in percent.
const MIN_PERCENT: u64 = 90;

/// Loaded tensors and weights have sums that differ by at most this share, in percent.
const MAX_DIFFERENCE_PERCENT: u64 = 2;

/// With the states of Adam a checkpoint has three tensors for each parameter.
const WITH_STATES: u64 = 3;

/// Tensors of a checkpoint beside weights that are as large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// Bytes of the tensors of which the weights are copies.
    pub copies: Bytes,
    /// Their number.
    pub tensors: usize,
    /// How much lower the peak of `requested_bytes` is without them.
    pub saving: Bytes,
}

/// Sums of the blocks of one size.
#[derive(Clone, Debug, Default)]
struct OfSize {
    loaded: Vec<u32>,
    weights: u64,
    /// States that an optimizer makes in the window.
    states: u64,
}

/// The finding about a checkpoint, if the peak has its tensors and beside them as many weights
/// that were not loaded.
///
/// The loaded tensors can be the weights themselves, or the states of an optimizer. So other
/// weights are as large, and the optimizer makes states of its own. Or there are three for each
/// weight.
pub(super) async fn loaded(
    cx: Evidence<'_>,
    marks: &Marks,
    budget: &mut Budget,
) -> Option<Found<Loaded>> {
    let peak = cx.peak_slot();
    let first = cx.passes.all.first()?.begin;
    let mut sizes: BTreeMap<u64, OfSize> = BTreeMap::new();
    for part in strides(cx.trace.blocks.len()) {
        budget.charge(2 * part.len() as u64).await;
        for (index, block) in (part.start as u32..).zip(&cx.trace.blocks[part]) {
            let category = cx.categories.get(index).category;
            let is_early = f64::from(block.enters) - 1.0 < first;
            let (mark, bytes) = (marks.of(block.stack), block.bytes.0);
            if category == Category::OptimizerState && !is_early && !mark.has(Mark::LOADED) {
                sizes.entry(bytes).or_default().states += 1;
            } else if is_early && block.is_live_at(peak) && f64::from(block.leaves) > first + 1.0 {
                let of = sizes.entry(bytes).or_default();
                match category {
                    _ if mark.has(Mark::LOADED) => of.loaded.push(index),
                    Category::Parameter | Category::Buffer => of.weights += 1,
                    _ => {}
                }
            }
        }
    }
    let sum = |of: &dyn Fn(&OfSize) -> u64| -> u64 {
        sizes.iter().map(|(bytes, sums)| bytes * of(sums)).sum()
    };
    let all = sum(&|of| of.loaded.len() as u64);
    // A module can lay its weights into one block.
    let (weights, states) = (sum(&|of| of.weights), sum(&|of| of.states));
    let are_as_large = weights.abs_diff(all) * 100 <= all * MAX_DIFFERENCE_PERCENT;
    let with_twin = sum(&|of| of.weights.min(of.loaded.len() as u64));
    let is_most = |part: u64, whole: u64| part * 100 >= whole * MIN_PERCENT;
    // A checkpoint can have averages or states beside the weights.
    let has_more = all > weights && is_most(with_twin, weights);
    let twins = if are_as_large || has_more { all } else { with_twin };
    let are_weights = is_most(twins, all) && (!cx.trains() || is_most(states, twins.min(weights)));
    let have_states = sum(&|of| of.weights.min(of.loaded.len() as u64 / WITH_STATES)) * WITH_STATES;
    if all == 0 || !(are_weights || is_most(have_states, all) && states == 0) {
        return None;
    }
    let mut copies: Vec<u32> = Vec::new();
    for of in sizes.into_values() {
        let count = if are_as_large || has_more { of.loaded.len() } else { of.weights as usize };
        let count = count.min(of.loaded.len());
        copies.extend(&of.loaded[..count]);
    }
    copies.sort_unstable();
    let block = |index: &u32| &cx.trace.blocks[*index as usize];
    let cut = |block: &vramscope_trace::Block| Cut {
        from: (first as u32).max(block.enters),
        to: block.leaves,
        bytes: block.bytes.0,
    };
    let cuts: Vec<Cut> = copies.iter().map(|index| cut(block(index))).collect();
    let saved = saving(cx, &cuts, budget).await.bytes.min(twins);
    if !WORTH.is_met(saved, cx.peak()) {
        return None;
    }
    let facts = Loaded { copies: Bytes(twins), tensors: copies.len(), saving: Bytes(saved) };
    let parts = parts(copies.iter().map(|index| (block(index).stack, block(index).bytes.0)));
    let what = cx.hash(parts.first()?.stack);
    let events = copies.iter().filter_map(|index| block(index).alloc_event()).map(|e| e.0);
    Some(
        Common {
            basis: Basis::Estimate,
            blocks: copies.len() as u32,
            parts,
            ..cx.found(FindingKind::Loaded, what, twins, saved, events.collect())
        }
        .with(facts),
    )
}

impl Claim for Loaded {
    fn words(&self, scene: &Scene<'_>) -> Words {
        let Self { copies, tensors, saving } = self;
        Words {
            title: scene.titled(
                "Checkpoint kept beside the weights that it set, loaded",
                self.spot(scene).as_ref(),
                *copies,
            ),
            text: format!(
                "{tensors} tensors that were loaded to the device stay: {copies}. The weights \
                 beside them are as large, so load_state_dict() copied them. Without them the \
                 peak is {saving} lower."
            ),
            action: "Load it with map_location=\"cpu\", or del the checkpoint after \
                     load_state_dict()."
                .to_owned(),
        }
    }

    fn why(&self, _scene: &Scene<'_>) -> String {
        format!(
            "the weights beside it are as large; without them the peak is {} lower",
            self.saving
        )
    }

    fn saving(&self, _scene: &Scene<'_>) -> Option<Bytes> {
        Some(self.saving)
    }
}

#[cfg(test)]
crate::claims::cases::cases! {
    Loaded,
    fires: ["causes/loaded_copy.pickle.gz"],
    silent: ["causes/loaded_copy_cured.pickle.gz"]
}
