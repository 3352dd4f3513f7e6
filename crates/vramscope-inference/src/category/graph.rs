//! Where no backward pass is in the window: the loss belongs to the forward pass whose graph it
//! keeps.

use super::spans::{Phase, Run};
use vramscope_trace::Trace;
use vramscope_trace::slicing::{Budget, STRIDE};

/// The fewest blocks of a forward pass that a graph keeps. Half or double of it changes no peak of
/// 61 recordings.
const MIN_KEPT: usize = 16;

/// Gives the program's own code behind a forward pass the phase of that pass, while most of the
/// blocks that it has kept are live. Without a graph a pass keeps little more than its result.
pub(super) async fn extend_forward(trace: &Trace, runs: &mut Vec<Run>, budget: &mut Budget) {
    if !runs.iter().any(|run| run.phase == Phase::Forward)
        || runs.iter().any(|run| run.phase == Phase::Backward)
    {
        return;
    }
    let events = trace.device.events.len() as u32;
    let mut extended: Vec<Run> = Vec::with_capacity(runs.len());
    for (i, run) in runs.iter().enumerate() {
        let end = runs.get(i + 1).map_or(events, |next| next.begin);
        let before = i.checked_sub(1).map(|before| runs[before]);
        let Some(forward) =
            before.filter(|before| before.phase == Phase::Forward && run.phase == Phase::Other)
        else {
            extended.push(*run);
            continue;
        };
        let entering = trace.changes_in(forward.begin + 1..run.begin + 1).iter();
        let blocks = entering.filter(|c| c.enters()).map(|c| &trace.blocks[c.block() as usize]);
        let mut leaves: Vec<u32> =
            blocks.map(|block| block.leaves).filter(|&leaves| leaves > run.begin).collect();
        budget.charge(4 * u64::from(run.begin - forward.begin) + STRIDE as u64).await;
        leaves.sort_unstable();
        // The slot at which half of them are gone.
        let half = leaves.get(leaves.len() / 2).filter(|_| leaves.len() >= MIN_KEPT);
        match half.map(|&slot| slot.saturating_sub(1)) {
            Some(gone) if gone > run.begin => {
                extended.push(Run { phase: Phase::Forward, ..*run });
                if gone < end {
                    extended.push(Run { begin: gone, phase: Phase::Other, shown: 1 });
                }
            }
            _ => extended.push(*run),
        }
    }
    *runs = extended;
}
