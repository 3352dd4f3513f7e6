//! Steps without names: the rhythm of the allocations' call stacks.
//!
//! A training step allocates from many call stacks, and from some of them exactly once: the batch, the embedding, the
//! loss. Stacks that occur equally often and take turns give the boundaries.

use crate::blocks::Origin;
use crate::trace::Trace;
use memstrata_snapshot::{Action, Snapshot, StackId};
use rustc_hash::FxHashMap;

/// A rhythm is believed from this many repetitions on.
const FEWEST: usize = 3;

/// A loop over fewer allocations than this is no step of training or generation.
const LEAST_ALLOCS: u32 = 8;

/// Slots before the first event of every step; empty where there is no rhythm.
pub(super) fn period(snapshot: &Snapshot, trace: &Trace) -> Vec<u32> {
    let allocs = allocs(snapshot, trace);
    let places = places(&allocs);
    // Kinds by how often they occur; among equals the first to occur leads.
    let mut order: Vec<&Vec<u32>> = places.iter().filter(|p| p.len() >= FEWEST).collect();
    order.sort_by_key(|p| (p.len(), p[0]));
    let freed = freed_before(trace, &allocs);
    let mut rhythms: Vec<(usize, &Vec<u32>)> = Vec::new();
    for class in order.chunk_by(|a, b| a.len() == b.len()) {
        let leads = |p: &&&Vec<u32>| is_regular(p) && covers(p, &freed);
        if let Some(&leader) = class.iter().find(leads) {
            let voices = class.iter().filter(|other| takes_turns(leader, other)).count();
            rhythms.push((voices, leader));
        }
    }
    // Layers and micro-batches have a rhythm too, with about as many voices, and evaluations a longer one with few: the
    // longest among those with many voices is the step.
    let most = rhythms.iter().map(|r| r.0).max().unwrap_or(0);
    let step = rhythms.into_iter().find(|r| r.0 * 2 >= most);
    step.map(|(_, leader)| leader.iter().map(|&alloc| allocs[alloc as usize].0).collect()).unwrap_or_default()
}

/// Events that allocate, each with what kind of allocation it is: its stack, or its size where stacks are mostly
/// missing.
fn allocs(snapshot: &Snapshot, trace: &Trace) -> Vec<(u32, u64)> {
    let events = &snapshot.events;
    let rows = (0..).zip(trace.device.events.clone());
    let rows: Vec<(u32, u32)> = rows.filter(|&(_, row)| events.action(row) == Action::ALLOC).collect();
    let without = rows.iter().filter(|&&(_, row)| events.stack(row) == StackId::EMPTY).count();
    let by_size = without * 2 > rows.len();
    let kind = |row| if by_size { events.size(row).0 } else { u64::from(events.stack(row).0) };
    rows.into_iter().map(|(event, row)| (event, kind(row))).collect()
}

/// Where each kind occurs: indices into `allocs`, kinds in the order of their first occurrence.
fn places(allocs: &[(u32, u64)]) -> Vec<Vec<u32>> {
    let mut known: FxHashMap<u64, usize> = FxHashMap::default();
    let mut places: Vec<Vec<u32>> = Vec::new();
    for (i, &(_, kind)) in (0..).zip(allocs) {
        let next = places.len();
        let at = *known.entry(kind).or_insert(next);
        if at == next {
            places.push(Vec::new());
        }
        places[at].push(i);
    }
    places
}

/// Of the first `i` allocs, how many are freed in the window.
fn freed_before(trace: &Trace, allocs: &[(u32, u64)]) -> Vec<u32> {
    let mut is_freed = vec![false; trace.slots() as usize];
    for block in trace.blocks.iter().filter(|b| b.origin == Origin::Alloc) {
        is_freed[block.enters as usize] = block.leaves < trace.slots();
    }
    let mut sum = 0;
    let mut out = vec![0];
    for &(event, _) in allocs {
        sum += u32::from(is_freed[event as usize + 1]);
        out.push(sum);
    }
    out
}

/// Steps are more than a few allocations, and about equally long but for evaluations between them.
fn is_regular(places: &[u32]) -> bool {
    let mut gaps: Vec<u32> = places.windows(2).map(|pair| pair[1] - pair[0]).collect();
    gaps.sort_unstable();
    let median = gaps[gaps.len() / 2];
    let alike = gaps.iter().filter(|&&gap| gap >= median.div_ceil(2) && gap <= median.saturating_mul(2)).count();
    median >= LEAST_ALLOCS && alike * 5 >= gaps.len() * 4
}

/// Steps fill most of the window, and most of what they allocate is freed: making a model, layer by layer, has a rhythm
/// too, but is shorter and keeps what it allocates.
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
