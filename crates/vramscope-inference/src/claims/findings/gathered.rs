//! Gathered weights that stay after forward: each layer keeps the parameters of all ranks until its
//! backward pass.

use crate::category::Phase;
use crate::claims::found::{Common, Found, parts};
use crate::claims::kinds::{Basis, FindingKind};
use crate::claims::scene::{Claim, Scene, Spot, SpotWhat, Words};
use crate::evidence::marks::{Mark, Marks};
use crate::evidence::passes::Pass;
use crate::evidence::{Cut, Evidence, Materiality, saving};
use vramscope_trace::Block;
use vramscope_trace::slicing::{Budget, strides};
use vramscope_units::{Bytes, grouped};

/// The smallest saving that is worth a claim.
const WORTH: Materiality = Materiality::percent(10);

/// The fewest layers whose weights stay. One root module keeps its own on purpose.
const MIN_LAYERS: usize = 4;

/// A backward pass gathers at most this share of what stays, in percent. Else it gathers each layer
/// again, as it does after resharding.
const MAX_AGAIN_PERCENT: u64 = 25;

/// Gathered weights that are live from forward to backward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gathered {
    /// Bytes that a forward pass leaves.
    pub kept: Bytes,
    /// Layers whose weights they are.
    pub layers: usize,
    /// How much lower the peak of `requested_bytes` is if layers free their weights after forward.
    pub saving: Bytes,
}

/// The gathered blocks of each layer, by birth, that are live after a forward pass.
struct Left {
    layers: Vec<Vec<u32>>,
    bytes: u64,
}

/// The finding about gathered weights of the pass that holds the peak.
pub(super) async fn gathered(
    cx: Evidence<'_>,
    marks: &Marks,
    budget: &mut Budget,
) -> Option<Found<Gathered>> {
    let peak = cx.peak_slot();
    let trained = || cx.passes.all.iter().filter(|pass| pass.backward.is_some());
    let is_of_peak = |pass: &&Pass| (pass.begin..=pass.over() + 1.0).contains(&f64::from(peak));
    trained().find(is_of_peak)?;
    let mut all: Vec<u32> = Vec::new();
    for part in strides(cx.trace.blocks.len()) {
        budget.charge(part.len() as u64).await;
        let gathers = |&index: &usize| {
            let block = &cx.trace.blocks[index];
            block.alloc_event().is_some() && marks.of(block.stack).has(Mark::GATHER)
        };
        all.extend(part.filter(gathers).map(|index| index as u32));
    }
    let (mut cuts, mut of_peak) = (Vec::new(), None);
    for pass in trained() {
        budget.charge(8 * all.len() as u64).await;
        let Some(left) = left(cx, marks, pass, &all) else { continue };
        cuts.extend(resharded(cx, &left));
        if is_of_peak(&pass) {
            of_peak = Some(left);
        }
    }
    let left = of_peak?;
    let saved = saving(cx, &cuts, budget).await.bytes.min(left.bytes);
    if !WORTH.is_met(saved, cx.peak()) {
        return None;
    }
    let facts =
        Gathered { kept: Bytes(left.bytes), layers: left.layers.len(), saving: Bytes(saved) };
    let blocks = || left.layers.iter().flatten().map(|&index| &cx.trace.blocks[index as usize]);
    let parts = parts(blocks().map(|block| (block.stack, block.bytes.0)));
    let what = cx.hash(parts.first()?.stack);
    let events = blocks().filter_map(Block::alloc_event).map(|event| event.0).collect();
    Some(
        Common {
            step: peak.checked_sub(1).and_then(|event| cx.step_at(event)),
            phase: Some(Phase::Forward),
            basis: Basis::Estimate,
            blocks: blocks().count() as u32,
            parts,
            ..cx.found(FindingKind::Gathered, what, left.bytes, saved, events)
        }
        .with(facts),
    )
}

/// The blocks that a pass gathers in forward and keeps until backward, which does not gather them
/// again.
fn left(cx: Evidence<'_>, marks: &Marks, pass: &Pass, gathers: &[u32]) -> Option<Left> {
    let backward = pass.backward?;
    let block = |index: u32| &cx.trace.blocks[index as usize];
    let born = |index: u32| f64::from(block(index).enters) - 1.0;
    let made = |begin: f64, end: f64| {
        gathers.iter().copied().filter(move |&index| (begin..end).contains(&born(index)))
    };
    let bytes = |of: &mut dyn Iterator<Item = u32>| -> u64 { of.map(|i| block(i).bytes.0).sum() };
    // The first layer's can be freed when backward is over.
    let later = cx.passes.all.iter().map(|next| next.begin).find(|&begin| begin > pass.begin);
    let over = later.unwrap_or(f64::from(cx.trace.slots()));
    let kept: Vec<u32> = made(pass.begin, pass.end)
        .filter(|&index| {
            let freed = f64::from(block(index).leaves) - 1.0;
            freed > backward.begin && freed < over
        })
        .collect();
    let bytes_kept = bytes(&mut kept.iter().copied());
    let again = bytes(&mut made(backward.begin, backward.end));
    if bytes_kept == 0 || again * 100 > bytes_kept * MAX_AGAIN_PERCENT {
        return None;
    }
    let mut layers: Vec<Vec<u32>> = Vec::new();
    for index in kept {
        // The layer before has computed something when the next one gathers its weights.
        let is_same = |layer: &Vec<u32>| {
            let last = layer[layer.len() - 1];
            (last + 1..index).all(|between| marks.of(block(between).stack).has(Mark::GATHER))
        };
        match layers.last_mut().filter(|layer| is_same(layer)) {
            Some(layer) => layer.push(index),
            None => layers.push(vec![index]),
        }
    }
    let left = Left { layers, bytes: bytes_kept };
    (left.layers.len() >= MIN_LAYERS).then_some(left)
}

/// What a run lacks whose layers free their weights after forward: a layer has them until the next
/// but one is gathered, and again when backward is done with that.
fn resharded(cx: Evidence<'_>, left: &Left) -> Vec<Cut> {
    let block = |index: u32| &cx.trace.blocks[index as usize];
    let mut cuts = Vec::new();
    for three in left.layers.windows(3) {
        let [own, _, later] = three else { continue };
        let from = block(later[0]).enters;
        let to = later.iter().map(|&index| block(index).leaves).min().unwrap_or(from);
        cuts.extend(own.iter().map(|&index| {
            let own = block(index);
            Cut { from: from.max(own.enters), to: to.min(own.leaves), bytes: own.bytes.0 }
        }));
    }
    cuts
}

impl Claim for Gathered {
    fn words(&self, scene: &Scene<'_>) -> Words {
        let Self { kept, layers, saving } = self;
        let layers = grouped(*layers as u64);
        Words {
            title: scene
                .titled("Gathered weights kept after forward", self.spot(scene).as_ref(), *kept)
                .text(format_args!(" of {layers} layers")),
            text: format!(
                "Forward gathers the weights of {layers} layers from all ranks and keeps them \
                 until backward: {kept}. Backward gathers nothing again. If each layer frees them \
                 after forward, the peak is {saving} lower."
            ),
            action: "Call fully_shard(layer, reshard_after_forward=True) for each layer, or use \
                     ShardingStrategy.FULL_SHARD (ZeRO stage 3). Backward gathers each layer again."
                .to_owned(),
        }
    }

    fn why(&self, _scene: &Scene<'_>) -> String {
        format!(
            "they stay until backward, which gathers nothing again; freed after forward the peak \
             is {} lower",
            self.saving
        )
    }

    fn spot(&self, scene: &Scene<'_>) -> Option<Spot> {
        Some(Spot { what: SpotWhat::Text(scene.blocks_text()), ..scene.own_spot()? })
    }

    fn saving(&self, _scene: &Scene<'_>) -> Option<Bytes> {
        Some(self.saving)
    }
}

#[cfg(test)]
crate::claims::cases::cases! {
    Gathered,
    fires: ["causes/gathered.pickle.gz"],
    silent: ["causes/gathered_cured.pickle.gz"]
}
