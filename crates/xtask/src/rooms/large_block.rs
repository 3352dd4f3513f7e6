//! One block that makes half of the peak.

use crate::claims::found::{Common, Found, parts};
use crate::claims::kinds::{Basis, FindingKind};
use crate::claims::phrase::Sentence;
use crate::claims::scene::{Claim, Scene, Words};
use crate::evidence::{Evidence, Materiality};
use vramscope_trace::Block;
use vramscope_trace::slicing::{Budget, strides};
use vramscope_units::Bytes;

const MATTERS: Materiality = Materiality::percent(50);

/// A block that makes half of the peak.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LargeBlock {
    /// The peak of `requested_bytes`.
    pub peak: Bytes,
}

pub(super) async fn large_block(
    cx: Evidence<'_>,
    budget: &mut Budget,
) -> Option<Found<LargeBlock>> {
    let mut largest: Option<&Block> = None;
    for part in strides(cx.trace.blocks.len()) {
        budget.charge(part.len() as u64).await;
        let live = cx.trace.blocks[part].iter().filter(|block| block.is_live_at(cx.peak_slot()));
        largest = largest.into_iter().chain(live).max_by_key(|block| block.bytes);
    }
    let block = largest.filter(|block| MATTERS.is_met(block.bytes.0, cx.peak()))?;
    let bytes = block.bytes.0;
    Some(
        Common {
            basis: Basis::Exact,
            blocks: 1,
            parts: parts([(block.stack, bytes)]),
            ..cx.found(FindingKind::LargeBlock, cx.hash(block.stack), bytes, bytes, Vec::new())
        }
        .with(LargeBlock { peak: Bytes(cx.peak()) }),
    )
}

impl Claim for LargeBlock {
    fn words(&self, scene: &Scene<'_>) -> Words {
        Words {
            title: Sentence::new("One block makes half of the peak: ").event(scene.bytes(), None),
            text: format!("{} makes {} of {}.", scene.main_site(), scene.bytes(), self.peak),
            action: "Make it in parts.".to_owned(),
        }
    }

    fn why(&self, _scene: &Scene<'_>) -> String {
        "no other block is as large".to_owned()
    }
}

#[cfg(test)]
crate::claims::cases::cases! {
    LargeBlock,
    fires: ["findings/side_stream_strands.pickle.gz"],
    silent: ["findings/cycle_sawtooth.pickle.gz"]
}
