//! Checkpointing that saves nothing at the peak: one piece has all blocks of the model.

use crate::category::Phase;
use crate::claims::found::{Common, Found, parts};
use crate::claims::kinds::{Basis, FindingKind};
use crate::claims::scene::{Claim, Scene, Spot, SpotWhat, Words};
use crate::evidence::marks::Marks;
use crate::evidence::one_piece::{Piece, one_piece};
use crate::evidence::{Cut, Evidence, Materiality, saving};
use vramscope_snapshot::Frame;
use vramscope_trace::slicing::Budget;
use vramscope_units::{Bytes, grouped};

/// The smallest saving that is worth a claim.
const WORTH: Materiality = Materiality::percent(5);

/// Cost of reading a block with its stack, in units of [`Budget`].
const COST_PER_BLOCK: u64 = 16;

/// A checkpointed piece that backward computes again at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnePiece {
    /// Bytes of it that are live at the peak of `requested_bytes`.
    pub at_peak: Bytes,
    /// Its share of all that this backward pass computes again, in percent.
    pub percent: u64,
    /// How often the model's blocks repeat in it.
    pub blocks: u32,
    /// How much lower the peak of `requested_bytes` is if each block is computed again alone.
    pub saving: Bytes,
    /// The line that calls the checkpointing function.
    pub caller: Option<Frame>,
}

/// The finding about the piece whose blocks are live at the peak.
pub(super) async fn in_one_piece(
    cx: Evidence<'_>,
    marks: &Marks,
    budget: &mut Budget,
) -> Option<Found<OnePiece>> {
    let peak = cx.peak_slot();
    let is_at_peak = |span: crate::evidence::passes::Span| {
        (span.begin..span.end).contains(&(f64::from(peak) - 1.0))
    };
    let of_peak = cx.passes.all.iter().position(|pass| pass.backward.is_some_and(is_at_peak))?;
    let mut cuts = Vec::new();
    let mut of_peak_piece = None;
    for (at, pass) in cx.passes.all.iter().enumerate() {
        budget.charge(COST_PER_BLOCK * (pass.over() - pass.begin).max(0.0) as u64).await;
        let Some(piece) = one_piece(cx, marks, pass) else { continue };
        cuts.extend(one_by_one(cx, &piece));
        if at == of_peak {
            of_peak_piece = Some(piece);
        }
    }
    let piece = of_peak_piece?;
    let live = piece.kept.iter().map(|&(index, _)| &cx.trace.blocks[index as usize]);
    let live: Vec<_> = live.filter(|block| block.is_live_at(peak)).collect();
    let at_peak: u64 = live.iter().map(|block| block.bytes.0).sum();
    let saved = saving(cx, &cuts, budget).await.bytes.min(at_peak);
    if !WORTH.is_met(saved, cx.peak()) {
        return None;
    }
    let facts = OnePiece {
        at_peak: Bytes(at_peak),
        percent: piece.percent,
        blocks: piece.blocks,
        saving: Bytes(saved),
        caller: piece.caller.map(|frame| cx.snapshot.frame(frame)),
    };
    let parts = parts(live.iter().map(|block| (block.stack, block.bytes.0)));
    let what = cx.hash(parts.first()?.stack);
    let events = live.iter().filter_map(|block| block.alloc_event()).map(|event| event.0).collect();
    Some(
        Common {
            step: peak.checked_sub(1).and_then(|event| cx.step_at(event)),
            phase: Some(Phase::Backward),
            basis: Basis::Estimate,
            blocks: live.len() as u32,
            parts,
            ..cx.found(FindingKind::OnePiece, what, at_peak, saved, events)
        }
        .with(facts),
    )
}

/// What a run lacks that computes each block of the model again alone: a block's results are made
/// when backward is done with the block that follows. Its last one is the input of that, and stays.
fn one_by_one(cx: Evidence<'_>, piece: &Piece) -> Vec<Cut> {
    let block = |index: u32| &cx.trace.blocks[index as usize];
    let of =
        |number: u32| piece.kept.iter().filter(move |kept| kept.1 == number).map(|kept| kept.0);
    let mut cuts = Vec::new();
    for number in 0..piece.blocks - 1 {
        let next = of(number + 1).max_by_key(|&index| block(index).bytes);
        let Some(done) = next.map(|index| block(index).leaves) else { continue };
        let last = of(number).next_back();
        for index in of(number).filter(|&index| Some(index) != last) {
            let own = block(index);
            cuts.push(Cut { from: own.enters, to: own.leaves.min(done), bytes: own.bytes.0 });
        }
    }
    cuts
}

impl Claim for OnePiece {
    fn words(&self, scene: &Scene<'_>) -> Words {
        let Self { at_peak, percent, blocks, saving, .. } = self;
        let blocks = grouped(u64::from(*blocks));
        Words {
            title: scene
                .titled(
                    &format!("One checkpoint around all {blocks} blocks"),
                    self.spot(scene).as_ref(),
                    *at_peak,
                )
                .text(" at the peak"),
            text: format!(
                "One checkpointed piece holds {percent} % of what backward computes again: all \
                 {blocks} blocks of the model, {at_peak} at the peak. So checkpointing saves \
                 nothing there. With a piece for each block the peak is {saving} lower."
            ),
            action: "Checkpoint each block in the loop over the blocks: x = checkpoint(block, x, \
                     use_reentrant=False)."
                .to_owned(),
        }
    }

    fn why(&self, _scene: &Scene<'_>) -> String {
        format!(
            "one piece holds {} % of what is recomputed; with a piece for each block the peak is \
             {} lower",
            self.percent, self.saving
        )
    }

    fn spot(&self, scene: &Scene<'_>) -> Option<Spot> {
        let what = SpotWhat::Text(String::new());
        match self.caller {
            Some(frame) => Some(Spot { frame, note: String::new(), what }),
            None => Some(Spot { what, ..scene.own_spot()? }),
        }
    }

    fn saving(&self, _scene: &Scene<'_>) -> Option<Bytes> {
        Some(self.saving)
    }
}

#[cfg(test)]
crate::claims::cases::cases! {
    OnePiece,
    fires: ["causes/one_piece.pickle.gz"],
    silent: ["causes/one_piece_cured.pickle.gz"]
}
