//! The layer in which a moment of a forward pass is.

use crate::Target;
use rustc_hash::FxHashMap;
use vramscope_inference::PhasePeak;
use vramscope_snapshot::{Action, Snapshot, StackId};
use vramscope_trace::slicing::{Budget, strides};

/// A layer has at least this many allocations.
const MIN_STACKS: usize = 3;

/// More layers than any model has: something else repeats.
const MAX_LAYERS: u32 = 512;

/// A layer of a forward pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layer {
    /// Its number, from 1.
    pub number: u32,
    /// The number of layers.
    pub of: u32,
}

/// The layer in which the last allocation up to a slot is. `passes` are all phases of the window,
/// and `pass` is the forward pass around the slot.
///
/// Most call stacks that allocate several times in the pass allocate once in each layer, in turns.
/// Another line of the forward function that calls the layers allocates once: the pass is one. If
/// it allocates after the layers, the pass has all of them. Else another pass shows their number.
pub(super) async fn layer(
    target: Target<'_>,
    passes: &[PhasePeak],
    pass: &PhasePeak,
    slot: u32,
    budget: &mut Budget,
) -> Option<Layer> {
    let allocs = allocs(target, pass, budget).await;
    let mut counts: FxHashMap<StackId, u32> = FxHashMap::default();
    for alloc in &allocs {
        *counts.entry(alloc.1).or_default() += 1;
    }
    // The number of call stacks that allocate a number of times.
    let mut stacks: FxHashMap<u32, usize> = FxHashMap::default();
    counts.values().filter(|&&count| count > 1).for_each(|&c| *stacks.entry(c).or_default() += 1);
    let repeated: usize = stacks.values().sum();
    let (&layers, &most) = stacks.iter().max_by_key(|&(&count, &stacks)| (stacks, count))?;
    if layers > MAX_LAYERS || most < MIN_STACKS || most * 2 < repeated {
        return None;
    }
    let is_of_layer = |stack: StackId| counts[&stack] == layers;
    let leader = allocs.iter().find(|alloc| is_of_layer(alloc.1))?.1;
    // The layer in which a call stack allocated last.
    let mut seen: FxHashMap<StackId, u32> = FxHashMap::default();
    let (mut number, mut last) = (0, 0);
    let mut found = None;
    budget.charge(2 * allocs.len() as u64).await;
    for &(event, stack) in &allocs {
        if stack == leader {
            (number, last) = (number + 1, event);
        }
        if is_of_layer(stack) && seen.insert(stack, number).unwrap_or(0) + 1 != number {
            return None;
        }
        if event < slot {
            found = counts[&stack].is_multiple_of(layers).then_some(number);
        }
    }
    let number = found?;
    budget.charge(16 * counts.len() as u64).await;
    let once = allocs.iter().filter(|alloc| counts[&alloc.1] == 1);
    let once = once.filter(|alloc| is_other_line(target.snapshot(), leader, alloc.1));
    if once.map(|alloc| alloc.0).max()? > last {
        return Some(Layer { number, of: layers });
    }
    let mut most = 0;
    for other in passes.iter().filter(|of| of.phase == pass.phase && of.begin != pass.begin) {
        let of_other = self::allocs(target, other, budget).await;
        most = most.max(of_other.iter().filter(|alloc| alloc.1 == leader).count() as u32);
    }
    (layers..=MAX_LAYERS).contains(&most).then_some(Layer { number, of: most })
}

/// The allocations of a phase with a call stack.
async fn allocs(target: Target<'_>, phase: &PhasePeak, budget: &mut Budget) -> Vec<(u32, StackId)> {
    let events = &target.snapshot().events;
    let start = target.trace().device.events.start;
    let mut allocs = Vec::new();
    for part in strides((phase.end - phase.begin) as usize) {
        budget.charge(2 * part.len() as u64).await;
        for event in part.map(|event| phase.begin + event as u32) {
            let stack = events.stack(start + event);
            if events.action(start + event) == Action::ALLOC && stack != StackId::EMPTY {
                allocs.push((event, stack));
            }
        }
    }
    allocs
}

/// Whether two call stacks part at two lines of one module's forward function.
fn is_other_line(snapshot: &Snapshot, a: StackId, b: StackId) -> bool {
    let frames = |stack: StackId| snapshot.stacks.frames(stack).iter().rev();
    let parts = frames(a).zip(frames(b)).find(|(a, b)| a != b);
    let Some((a, b)) = parts.map(|(&a, &b)| (snapshot.frame(a), snapshot.frame(b))) else {
        return false;
    };
    (a.file, a.name) == (b.file, b.name) && &*snapshot.text(a.name) == "forward"
}
