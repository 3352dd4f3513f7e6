//! Detects unnamed steps from the period of the allocations' call stacks.
//!
//! A training step allocates from many call stacks, and from some of them exactly once: the batch,
//! the embedding, the loss. Stacks that occur equally often and take turns mark the boundaries.

use rustc_hash::{FxHashMap, FxHashSet};
use vramscope_snapshot::{Action, Snapshot, StackId};
use vramscope_trace::Trace;
use vramscope_trace::slicing::{Budget, STRIDE, filled, strides};
use vramscope_trace::sort;
use vramscope_trace::{Block, Origin};

/// The fewest repetitions of a period.
const MIN_REPETITIONS: usize = 3;

/// The fewest allocations in a step of training or generation.
const MIN_ALLOCS_PER_STEP: u32 = 8;

/// The repetitions of a window.
#[derive(Debug, Default)]
pub(super) struct Period {
    /// Slots before the first event of every repetition, and the end of the last one if the window
    /// has it. Empty without a period.
    pub(super) begins: Vec<u32>,
    /// Whether the window ends within a repetition.
    pub(super) is_cut_off: bool,
}

/// The repetitions of a window.
pub(super) async fn period(snapshot: &Snapshot, trace: &Trace, budget: &mut Budget) -> Period {
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
    let Some((_, leader)) = step else { return Period::default() };
    let mut begins: Vec<u32> = leader.iter().map(|&alloc| allocs[alloc as usize].0).collect();
    let end = last_end(trace, &allocs, leader, budget).await;
    begins.extend(end);
    Period { begins, is_cut_off: end.is_none() }
}

/// The slot at which the last repetition ends: before other call stacks allocate, or where it has
/// allocated as much as the shortest one. `None` if the window ends before.
async fn last_end(
    trace: &Trace,
    allocs: &[(u32, u64)],
    leader: &[u32],
    budget: &mut Budget,
) -> Option<u32> {
    let (first, last) = (leader[0] as usize, leader[leader.len() - 1] as usize);
    budget.charge(4 * (allocs.len() - first) as u64).await;
    let known: FxHashSet<u64> = allocs[first..last].iter().map(|alloc| alloc.1).collect();
    let gaps = || leader.windows(2).map(|pair| (pair[1] - pair[0]) as usize);
    let (shortest, longest) = (gaps().min()?, gaps().max()?);
    // A few allocations of other call stacks can lie in a repetition.
    let patience = (shortest / 4).max(4);
    let (mut end, mut others) = (last, 0);
    for (i, alloc) in allocs.iter().enumerate().take(last + longest * 2).skip(last + 1) {
        if known.contains(&alloc.1) {
            (end, others) = (i, 0);
        } else {
            others += 1;
        }
        if others > patience {
            break;
        }
    }
    if others <= patience && (end + 1 - last) * 10 < shortest * 9 {
        return None;
    }
    // What the repetition itself frees belongs to it.
    let (begin, mut slot) = (allocs[last].0, allocs[end].0 + 1);
    let limit = allocs.get(end + 1).map_or(trace.slots() - 1, |alloc| alloc.0);
    for next in slot + 1..=limit {
        budget.charge(1).await;
        let mut changes = trace.changes_at(next).iter();
        if changes.any(|change| trace.blocks[change.block() as usize].enters <= begin) {
            break;
        }
        slot = next;
    }
    Some(slot)
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
    let visit = |_, block: &Block| {
        if block.origin() == Origin::Alloc {
            is_freed[block.enters as usize] = block.leaves < trace.slots();
        }
    };
    trace.each_block(2, budget, visit).await;
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
