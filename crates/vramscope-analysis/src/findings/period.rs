//! Steps without names: the rhythm of the allocations' call stacks.
//!
//! A training step allocates from many call stacks, and from some of them exactly once: the batch,
//! the embedding, the loss. Stacks that occur equally often and take turns give the boundaries.

use crate::blocks::Origin;
use crate::slicing::{Budget, STRIDE, filled, strides};
use crate::sort;
use crate::trace::Trace;
use rustc_hash::FxHashMap;
use vramscope_snapshot::{Action, Snapshot, StackId};

/// A rhythm is believed from this many repetitions on.
const FEWEST: usize = 3;

/// A loop over fewer allocations than this is no step of training or generation.
const LEAST_ALLOCS: u32 = 8;

/// Slots before the first event of every step; empty where there is no rhythm.
pub(super) async fn period(snapshot: &Snapshot, trace: &Trace, budget: &mut Budget) -> Vec<u32> {
    let allocs = allocs(snapshot, trace, budget).await;
    let places = places(&allocs, budget).await;
    // Kinds by how often they occur; among equals the first to occur leads.
    let mut order: Vec<&Vec<u32>> = places.iter().filter(|p| p.len() >= FEWEST).collect();
    order.sort_by_key(|p| (p.len(), p[0]));
    let freed = freed_before(trace, &allocs, budget).await;
    let mut rhythms: Vec<(usize, &Vec<u32>)> = Vec::new();
    for class in order.chunk_by(|a, b| a.len() == b.len()) {
        let mut leader = None;
        for places in class {
            if is_regular(places, budget).await && covers(places, &freed) {
                leader = Some(*places);
                break;
            }
        }
        let Some(leader) = leader else { continue };
        let mut voices = 0;
        for other in class {
            voices += usize::from(takes_turns(leader, other));
            budget.charge(other.len() as u64).await;
        }
        rhythms.push((voices, leader));
    }
    // Layers and micro-batches have a rhythm too, with about as many voices, and evaluations a
    // longer one with few: the longest among those with many voices is the step.
    let most = rhythms.iter().map(|r| r.0).max().unwrap_or(0);
    let step = rhythms.into_iter().find(|r| r.0 * 2 >= most);
    step.map(|(_, leader)| leader.iter().map(|&alloc| allocs[alloc as usize].0).collect())
        .unwrap_or_default()
}

/// Events that allocate, each with what kind of allocation it is: its stack, or its size where
/// stacks are mostly missing.
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

/// Where each kind occurs: indices into `allocs`, kinds in the order of their first occurrence.
async fn places(allocs: &[(u32, u64)], budget: &mut Budget) -> Vec<Vec<u32>> {
    let mut known: FxHashMap<u64, usize> = FxHashMap::default();
    let mut places: Vec<Vec<u32>> = Vec::new();
    for part in strides(allocs.len()) {
        budget.charge(4 * part.len() as u64).await;
        for (i, &(_, kind)) in (part.start as u32..).zip(&allocs[part]) {
            let next = places.len();
            let at = *known.entry(kind).or_insert(next);
            if at == next {
                places.push(Vec::new());
            }
            places[at].push(i);
        }
    }
    places
}

/// Of the first `i` allocs, how many are freed in the window.
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

/// Steps are more than a few allocations, and about equally long but for evaluations between them.
async fn is_regular(places: &[u32], budget: &mut Budget) -> bool {
    let mut gaps: Vec<u32> = places.windows(2).map(|pair| pair[1] - pair[0]).collect();
    sort(&mut gaps, budget).await;
    let median = gaps[gaps.len() / 2];
    let alike = gaps
        .iter()
        .filter(|&&gap| gap >= median.div_ceil(2) && gap <= median.saturating_mul(2))
        .count();
    median >= LEAST_ALLOCS && alike * 5 >= gaps.len() * 4
}

/// Steps fill most of the window, and most of what they allocate is freed: making a model, layer by
/// layer, has a rhythm too, but is shorter and keeps what it allocates.
fn covers(places: &[u32], freed: &[u32]) -> bool {
    let (first, last) = (places[0] as usize, places[places.len() - 1] as usize);
    let span = last - first;
    span * 2 >= freed.len() - 1 && (freed[last] - freed[first]) as usize * 4 >= span * 3
}

/// Whether `other` occurs exactly once in every period of `leader`.
fn takes_turns(leader: &[u32], other: &[u32]) -> bool {
    let after = leader.iter().zip(other).all(|(a, b)| a <= b);
    after && leader[1..].iter().zip(other).all(|(next, b)| b < next)
}
