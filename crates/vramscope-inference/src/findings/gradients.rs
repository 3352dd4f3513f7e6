//! Gradients of an update that stay live through the next forward pass.
//!
//! `zero_grad(set_to_none=True)` frees gradients after each update, so that activations can take
//! their place. Between two updates, gradients of micro-batches are needed.

use super::{Basis, Evidence, Facts, Finding, parts};
use crate::category::{Category, Phase, PhaseSpan};
use vramscope_snapshot::StackId;
use vramscope_trace::slicing::{Budget, strides};
use vramscope_units::Bytes;

/// The fewest bytes to report.
const MIN_BYTES: u64 = 1 << 20;

/// Gradients that are live through forward passes that follow an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GradientsHeld {
    /// Bytes at the end of the forward pass that holds most.
    pub through_forward: Bytes,
    /// Forward passes that hold gradients of a finished update.
    pub passes: usize,
    /// Forward passes that follow an update.
    pub of_passes: usize,
    /// Bytes of them that are live at the peak of `requested_bytes`, if a forward or backward pass
    /// peaks. A backward pass would have allocated a part of them again by then.
    pub at_peak: Bytes,
}

/// A forward pass that follows an update: gradients that are older than `update` and live until
/// `end` are held.
struct Pass {
    update: u32,
    end: u32,
    bytes: u64,
}

/// The finding about gradients, if forward passes hold them. `growing` are call stacks that grow:
/// another finding names them.
pub(super) async fn gradients_held(
    cx: Evidence<'_>,
    growing: &[StackId],
    budget: &mut Budget,
) -> Option<Finding> {
    let mut passes = passes_after_updates(cx.categories.phases());
    if passes.is_empty() {
        return None;
    }
    let peak = cx.peak_slot();
    let at_peak = peak.checked_sub(1).and_then(|event| cx.phase_at(event));
    let peak_pass = passes.partition_point(|pass| pass.update < peak).checked_sub(1);
    let costs = matches!(at_peak, Some(Phase::Forward | Phase::Backward));
    let mut held: Vec<(StackId, u64)> = Vec::new();
    let mut events: Vec<u32> = Vec::new();
    for part in strides(cx.trace.blocks.len()) {
        budget.charge(2 * part.len() as u64).await;
        for (i, block) in (part.start as u32..).zip(&cx.trace.blocks[part]) {
            let is_gradient = cx.categories.get(i).category == Category::Gradient;
            // Sizes alone do not tell old gradients from optimizer state.
            let is_known = is_gradient && block.alloc_event().is_some();
            if !is_known || growing.contains(&block.stack) || is_shared(cx, block.stack) {
                continue;
            }
            let first = passes.partition_point(|pass| pass.update < block.enters);
            let last = passes.partition_point(|pass| pass.end < block.leaves);
            for pass in passes.get_mut(first..last).unwrap_or_default() {
                pass.bytes += block.bytes.0;
            }
            let is_at_peak = peak_pass.is_some_and(|pass| first <= pass) && block.is_live_at(peak);
            if costs && is_at_peak {
                held.push((block.stack, block.bytes.0));
                events.extend(block.alloc_event().map(|event| event.0));
            }
        }
    }
    let through_forward = passes.iter().map(|pass| pass.bytes).max().unwrap_or(0);
    if through_forward < MIN_BYTES {
        return None;
    }
    let cost: u64 = held.iter().map(|h| h.1).sum();
    let facts = GradientsHeld {
        through_forward: Bytes(through_forward),
        passes: passes.iter().filter(|pass| pass.bytes >= MIN_BYTES).count(),
        of_passes: passes.len(),
        at_peak: Bytes(cost),
    };
    let bytes = if cost > 0 { cost } else { through_forward };
    let step = peak.checked_sub(1).filter(|_| cost > 0).and_then(|event| cx.step_at(event));
    Some(Finding {
        step,
        phase: at_peak.filter(|_| cost > 0),
        basis: if at_peak == Some(Phase::Backward) { Basis::Estimate } else { Basis::Exact },
        blocks: held.len() as u32,
        parts: parts(held),
        ..cx.finding("zero_grad", bytes, cost, events, Facts::GradientsHeld(facts))
    })
}

/// Forward passes that follow an update with no other forward pass between.
fn passes_after_updates(phases: &[PhaseSpan]) -> Vec<Pass> {
    let mut passes: Vec<Pass> = Vec::new();
    // Whether a backward pass has run since the last update, and where the last update began.
    let (mut has_gradients, mut update) = (false, None);
    for span in phases {
        match span.phase {
            Phase::Backward => has_gradients = true,
            Phase::Optimizer if has_gradients => {
                update = Some(span.begin);
                has_gradients = false;
            }
            Phase::Forward => {
                let pass = |update| Pass { update, end: span.end, bytes: 0 };
                passes.extend(update.take().map(pass));
            }
            Phase::Optimizer | Phase::Other | Phase::Evaluation => {}
        }
    }
    passes
}

/// Whether a call stack belongs to code that keeps gradients in buffers of its own: buckets of
/// `DistributedDataParallel`, partitions of a sharded optimizer. They are not freed on purpose.
fn is_shared(cx: Evidence<'_>, stack: StackId) -> bool {
    cx.snapshot.stack(stack).any(|frame| {
        let (file, name) = (cx.snapshot.text(frame.file), cx.snapshot.text(frame.name));
        ["distributed", "deepspeed", "megatron"].iter().any(|part| file.contains(part))
            || name.contains("c10d::")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_follow_updates_and_not_micro_batches() {
        let spans: Vec<PhaseSpan> = (0..)
            .zip("fbofbfbofb".chars())
            .map(|(i, letter)| PhaseSpan {
                begin: i * 10,
                end: i * 10 + 10,
                phase: match letter {
                    'f' => Phase::Forward,
                    'b' => Phase::Backward,
                    _ => Phase::Optimizer,
                },
            })
            .collect();
        let found: Vec<(u32, u32)> =
            passes_after_updates(&spans).iter().map(|pass| (pass.update, pass.end)).collect();
        assert_eq!(found, [(20, 40), (70, 90)]);
    }
}
