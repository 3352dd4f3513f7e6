//! Detects unnamed steps from the period of the allocations' call stacks.
//!
//! A training step allocates from many call stacks, and from some of them exactly once: the batch,
//! the embedding, the loss. Stacks that occur equally often and take turns mark the boundaries.

use rustc_hash::FxHashMap;
use vramscope_snapshot::{Action, Snapshot, StackId};
use vramscope_trace::Origin;
use vramscope_trace::Trace;
use vramscope_trace::slicing::{Budget, STRIDE, filled, strides};
use vramscope_trace::sort;

/// The fewest repetitions of a period.
const MIN_REPETITIONS: usize = 3;

/// The fewest allocations in a step of training or generation.
const MIN_ALLOCS_PER_STEP: u32 = 8;

/// Slots before the first event of every step; empty without a period.
pub(super) async fn period(snapshot: &Snapshot, trace: &Trace, budget: &mut Budget) -> Vec<u32> {
    let allocs = allocs(snapshot, trace, budget).await;
    let occurrences = occurrences(&allocs, budget).await;
    // Kinds are ordered by their number of occurrences, then by their first occurrence.
    let mut order: Vec<&Vec<u32>> =
        occurrences.iter().filter(|o| o.len() >= MIN_REPETITIONS).collect();
    order.sort_by_key(|o| (o.len(), o[0]));
    let freed = freed_before(trace, &allocs, budget).await;
    let mut periods: Vec<(usize, &Vec<u32>)> = Vec::new();
    for equally_often in order.chunk_by(|a, b| a.len() == b.len()) {
        let mut leader = None;
        for kind in equally_often {
            if is_regular(kind, budget).await && covers(kind, &freed) {
                leader = Some(*kind);
                break;
            }
        }
        let Some(leader) = leader else { continue };
        let mut members = 0;
        for other in equally_often {
            members += usize::from(takes_turns(leader, other));
            budget.charge(other.len() as u64).await;
        }
        periods.push((members, leader));
    }
    // Layers and micro-batches have shorter periods with about as many members. Evaluations have a
    // longer period with few members. So the longest period with many members is the step.
    let most_members = periods.iter().map(|p| p.0).max().unwrap_or(0);
    let step = periods.into_iter().find(|p| p.0 * 2 >= most_members);
    step.map(|(_, leader)| leader.iter().map(|&alloc| allocs[alloc as usize].0).collect())
        .unwrap_or_default()
}

/// The events that allocate, each with its kind: its call stack, or its size if most stacks are
/// missing.
async fn allocs(snapshot: &Snapshot, trace: &Trace, budget: &mut Budget) -> Vec<(u32, u64)> {
    let (events, start) = (&snapshot.events, trace.device.events.start);
    let (mut of_events, mut without) =
        (Vec::with_capacity(trace.allocations_in_window as usize), 0);
    for part in strides(trace.device.events.len()) {
        budget.charge(2 * part.len() as u64).await;
        for event in part
            .map(|event| event as u32)
            .filter(|event| events.action(start + event) == Action::ALLOC)
        {
            without += usize::from(events.stack(start + event) == StackId::EMPTY);
            of_events.push(event);
        }
    }
    let by_size = without * 2 > of_events.len();
    let kind = |row| if by_size { events.size(row).0 } else { u64::from(events.stack(row).0) };
    let mut allocs = Vec::with_capacity(of_events.len());
    for part in of_events.chunks(STRIDE) {
        budget.charge(2 * part.len() as u64).await;
        allocs.extend(part.iter().map(|&event| (event, kind(start + event))));
    }
    allocs
}

/// The occurrences of each kind as indices into `allocs`. Kinds are in the order of their first
/// occurrence.
async fn occurrences(allocs: &[(u32, u64)], budget: &mut Budget) -> Vec<Vec<u32>> {
    let mut known: FxHashMap<u64, usize> = FxHashMap::default();
    let mut occurrences: Vec<Vec<u32>> = Vec::new();
    for part in strides(allocs.len()) {
        budget.charge(4 * part.len() as u64).await;
        for (i, &(_, kind)) in (part.start as u32..).zip(&allocs[part]) {
            let next = occurrences.len();
            let at = *known.entry(kind).or_insert(next);
            if at == next {
                occurrences.push(Vec::new());
            }
            occurrences[at].push(i);
        }
    }
    occurrences
}

/// At index `i`: the number of the first `i` allocs that are freed in the window.
async fn freed_before(trace: &Trace, allocs: &[(u32, u64)], budget: &mut Budget) -> Vec<u32> {
    let mut is_freed = filled(false, trace.slots() as usize, budget).await;
    for part in strides(trace.blocks.len()) {
        budget.charge(2 * part.len() as u64).await;
        for block in trace.blocks[part].iter().filter(|b| b.origin() == Origin::Alloc) {
            is_freed[block.enters as usize] = block.leaves < trace.slots();
        }
    }
    let mut sum = 0;
    let mut out = Vec::with_capacity(allocs.len() + 1);
    out.push(0);
    for part in allocs.chunks(STRIDE) {
        budget.charge(part.len() as u64).await;
        out.extend(part.iter().map(|&(event, _)| {
            sum += u32::from(is_freed[event as usize + 1]);
            sum
        }));
    }
    out
}

/// Whether occurrences can be steps: far enough apart, and at about equal distances except for
/// evaluations between steps.
async fn is_regular(occurrences: &[u32], budget: &mut Budget) -> bool {
    let mut gaps: Vec<u32> = occurrences.windows(2).map(|pair| pair[1] - pair[0]).collect();
    sort(&mut gaps, budget).await;
    let median = gaps[gaps.len() / 2];
    let similar = gaps
        .iter()
        .filter(|&&gap| gap >= median.div_ceil(2) && gap <= median.saturating_mul(2))
        .count();
    median >= MIN_ALLOCS_PER_STEP && similar * 5 >= gaps.len() * 4
}

/// Whether occurrences fill most of the window, and most allocations between them are freed.
///
/// The construction of a model, layer by layer, also has a period. It is shorter, and keeps what it
/// allocates.
fn covers(occurrences: &[u32], freed: &[u32]) -> bool {
    let (first, last) = (occurrences[0] as usize, occurrences[occurrences.len() - 1] as usize);
    let span = last - first;
    span * 2 >= freed.len() - 1 && (freed[last] - freed[first]) as usize * 4 >= span * 3
}

/// Whether `other` occurs exactly once in every period of `leader`.
fn takes_turns(leader: &[u32], other: &[u32]) -> bool {
    let after = leader.iter().zip(other).all(|(a, b)| a <= b);
    after && leader[1..].iter().zip(other).all(|(next, b)| b < next)
}
