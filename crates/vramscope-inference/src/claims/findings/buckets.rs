//! Buckets of `DistributedDataParallel` beside the gradients that they are copies of.
//!
//! With `gradient_as_bucket_view` gradients lie in the buckets. Without it each gradient is copied
//! into a bucket, reduced there and copied back. The buckets stay through all steps.

use crate::category::Category;
use crate::claims::found::{Common, Found, Part, parts};
use crate::claims::kinds::{Basis, FindingKind};
use crate::claims::scene::{Claim, Scene, Spot, SpotWhat, Words};
use crate::evidence::{Cut, Evidence, Materiality, saving};
use vramscope_snapshot::StackId;
use vramscope_trace::slicing::{Budget, strides};
use vramscope_units::Bytes;

/// The smallest saving that is worth a claim.
const WORTH: Materiality = Materiality::percent(5);

/// Buckets and gradients have sums that differ by at most this share, in percent. A bucket rounds
/// the sizes of its gradients up.
const MAX_DIFFERENCE_PERCENT: u64 = 3;

/// Buckets that are a second copy of all gradients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buckets {
    /// Bytes of the buckets.
    pub buckets: Bytes,
    /// Bytes of the gradients of a step.
    pub gradients: Bytes,
    /// How much lower the peak of `requested_bytes` is if gradients lie in the buckets.
    pub saving: Bytes,
}

/// The finding about buckets, if a backward pass ends with gradients that have their bytes.
pub(super) async fn buckets(cx: Evidence<'_>, budget: &mut Budget) -> Option<Found<Buckets>> {
    let backward: Vec<(u32, u32)> = cx
        .passes
        .all
        .iter()
        .filter_map(|pass| pass.backward)
        .map(|span| (span.begin as u32, span.end as u32))
        .collect();
    // In the first pass the buckets wait for their final order.
    let &(begin, end) = backward.get(backward.len() / 2)?;
    let (mut copies, mut of_step) = (Vec::new(), 0);
    let (mut gradients, mut cuts) = (Vec::new(), Vec::new());
    for part in strides(cx.trace.blocks.len()) {
        budget.charge(2 * part.len() as u64).await;
        for (index, block) in (part.start as u32..).zip(&cx.trace.blocks[part]) {
            let is_there = block.is_live_at(end);
            match cx.categories.get(index).category {
                Category::Communication if is_there && block.enters <= begin => {
                    copies.push((block.stack, block.bytes.0));
                }
                Category::Gradient => {
                    of_step += if is_there { block.bytes.0 } else { 0 };
                    let event = block.alloc_event().map(|event| event.0);
                    gradients.extend(event.filter(|_| is_there));
                    cuts.push(Cut { from: block.enters, to: block.leaves, bytes: block.bytes.0 });
                }
                _ => {}
            }
        }
    }
    // The first buckets can stay beside those in their final order.
    let are_alike = |set: &&Part| {
        set.bytes.0.abs_diff(of_step) * 100 <= of_step * MAX_DIFFERENCE_PERCENT
            && set.blocks as usize <= gradients.len()
            && is_of_ddp(cx, set.stack)
    };
    let sets = parts(copies);
    let set = *sets.iter().filter(|set| set.bytes.0 > 0).find(are_alike)?;
    let of_buckets = set.bytes.0;
    let saved = saving(cx, &cuts, budget).await.bytes.min(of_step);
    if !WORTH.is_met(saved, cx.peak()) {
        return None;
    }
    let facts =
        Buckets { buckets: Bytes(of_buckets), gradients: Bytes(of_step), saving: Bytes(saved) };
    Some(
        Common {
            basis: Basis::Exact,
            blocks: set.blocks,
            parts: vec![set],
            ..cx.found(FindingKind::Buckets, "ddp", of_buckets, saved, gradients)
        }
        .with(facts),
    )
}

/// Whether the module of data parallelism makes a block: the action names its option.
fn is_of_ddp(cx: Evidence<'_>, stack: StackId) -> bool {
    cx.snapshot.stack(stack).any(|frame| {
        let file = cx.snapshot.text(frame.file).replace('\\', "/");
        file.ends_with("/torch/nn/parallel/distributed.py")
    })
}

impl Claim for Buckets {
    fn words(&self, scene: &Scene<'_>) -> Words {
        let Self { buckets, gradients, saving } = self;
        Words {
            title: scene.titled(
                "Gradients copied to buckets of DistributedDataParallel",
                self.spot(scene).as_ref(),
                *buckets,
            ),
            text: format!(
                "DistributedDataParallel keeps buckets of {buckets} through all steps, to reduce \
                 gradients. Beside them the gradients of a step have {gradients}. With gradients \
                 as views of the buckets the peak is {saving} lower."
            ),
            action: "Pass gradient_as_bucket_view=True to DistributedDataParallel: gradients lie \
                     in the buckets then."
                .to_owned(),
        }
    }

    fn why(&self, _scene: &Scene<'_>) -> String {
        format!(
            "gradients have {} beside them; with gradients as views of the buckets the peak is {} \
             lower",
            self.gradients, self.saving
        )
    }

    fn spot(&self, scene: &Scene<'_>) -> Option<Spot> {
        Some(Spot { what: SpotWhat::Text(String::new()), ..scene.own_spot()? })
    }

    fn saving(&self, _scene: &Scene<'_>) -> Option<Bytes> {
        Some(self.saving)
    }
}

#[cfg(test)]
crate::claims::cases::cases! {
    Buckets,
    fires: ["causes/ddp_buckets.pickle.gz"],
    silent: ["causes/ddp_buckets_cured.pickle.gz"]
}
