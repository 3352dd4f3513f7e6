//! Series of growth by call stack and by call site.

use super::facts::GrowthKind;
use super::pattern::{Pattern, pattern, spaced, with_rest};
use crate::category::Category;
use crate::evidence::Evidence;
use crate::steps::Steps;
use rustc_hash::FxHashMap;
use std::ops::Range;
use vramscope_snapshot::StackId;
use vramscope_trace::slicing::{Budget, strides};
use vramscope_trace::sort;
use vramscope_trace::{Block, Origin};

/// The fewest replacements by a larger tensor that count as growth.
const MIN_REPLACEMENTS: usize = 6;

/// The fewest bytes of growth by replacement to report.
const MIN_REPLACED_BYTES: i64 = 4 << 20;

/// The smallest share of what leaves a queue that came before all that stays, in percent.
const MIN_OLDER_PERCENT: usize = 80;

/// The allocation of a block in a step, or (with negative bytes) its free.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct StepChange {
    /// A call stack, or the hash of a call site.
    group: u64,
    /// The step of the allocation or free; -1 is before the first step.
    step: i64,
    /// Index into the trace's blocks.
    block: u32,
    /// Bytes added in the step.
    bytes: i64,
    /// The block was allocated in the window and is live after the last whole step. What a program
    /// frees when it ends, it kept for all of its steps.
    stays: bool,
    /// The block was allocated in a whole step, or is live when the window allocates last.
    lasts: bool,
}

/// A call stack or a call site that grows.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) kind: GrowthKind,
    pub(super) pattern: Pattern,
    /// Steady steps in which it grows, with the growth.
    pub(super) series: Vec<(usize, u64)>,
    /// What came first leaves in a later step, and what came last stays: a queue that grows.
    pub(super) is_queue: bool,
    /// Blocks that are live after the last whole step (kept), or all blocks (replaced), in the
    /// order of their allocation.
    pub(super) blocks: Vec<u32>,
}

/// The call stacks that grow, and the call sites that grow although no stack of theirs does.
/// `least` is how often what does not grow in every step has to grow.
pub(super) async fn candidates(
    cx: Evidence<'_>,
    steps: &Steps,
    steady: Range<usize>,
    least: usize,
    budget: &mut Budget,
) -> Vec<Candidate> {
    let rotating = rotating(cx, steps, &steady, budget).await;
    // What a request allocates grows with the cache that it extends.
    let inputs = if steps.are_training() {
        allocated_by_step(cx, steps, budget).await
    } else {
        vec![0; steps.whole()]
    };
    let mut found: Vec<Candidate> = Vec::new();
    let mut is_reported = vec![false; cx.snapshot.stacks.len()];
    // Different steps may reach one line through different callers.
    for by_site in [false, true] {
        let group_of = |stack: StackId| {
            if !by_site {
                return Some(u64::from(stack.0));
            }
            let site = cx.sites.get(stack);
            (site.frame.is_some() && !is_reported[stack.0 as usize]).then_some(site.site_hash)
        };
        let changes = step_changes(cx, steps, group_of, budget).await;
        let before = found.len();
        for group in changes.chunk_by(|a, b| a.group == b.group) {
            budget.charge(4 * group.len() as u64).await;
            found.extend(
                kept(group, &steady, &rotating, least)
                    .or_else(|| replaced(group, &steady, &inputs)),
            );
        }
        for &block in found[before..].iter().flat_map(|candidate| &candidate.blocks) {
            is_reported[cx.trace.blocks[block as usize].stack.0 as usize] = true;
        }
    }
    found
}

/// Allocations and frees of the blocks that are live at a step boundary or at the end, sorted by
/// group, then step.
async fn step_changes(
    cx: Evidence<'_>,
    steps: &Steps,
    group_of: impl Fn(StackId) -> Option<u64> + Sync,
    budget: &mut Budget,
) -> Vec<StepChange> {
    let (mut changes, mut enters) = (Vec::new(), 0);
    let end = cx.trace.blocks.last().map_or(0, |block| block.enters);
    let visit = |block, b: &Block| {
        enters = steps.before_near(b.enters, enters);
        let leaves = steps.before_near(b.leaves, enters);
        let stays = leaves == steps.begins.len() && b.origin() == Origin::Alloc;
        if enters == leaves && !stays {
            return;
        }
        let Some(group) = group_of(b.stack) else { return };
        if cx.categories.get(block).category == Category::Workspace {
            return;
        }
        let bytes = b.bytes.0 as i64;
        let lasts = enters < steps.begins.len() || b.is_live_at(end);
        let change = StepChange { group, step: enters as i64 - 1, block, bytes, stays, lasts };
        changes.push(change.clone());
        if leaves < steps.begins.len() {
            let step = leaves as i64 - 1;
            changes.push(StepChange { step, bytes: -bytes, stays: false, ..change });
        }
    };
    cx.trace.each_block(4, budget, visit).await;
    sort(&mut changes, budget).await;
    changes
}

/// The number of blocks of each size that were allocated before the window and freed in its steady
/// steps.
///
/// A fixed number of buffers that are handed on from step to step looks like growth until the first
/// of them is freed.
async fn rotating(
    cx: Evidence<'_>,
    steps: &Steps,
    steady: &Range<usize>,
    budget: &mut Budget,
) -> FxHashMap<u64, usize> {
    let mut sizes = FxHashMap::default();
    for part in strides(cx.trace.blocks.len()) {
        budget.charge(part.len() as u64).await;
        for block in cx.trace.blocks[part].iter().filter(|b| b.origin() == Origin::PreexistingFreed)
        {
            let step = steps.before(block.leaves);
            if step > steady.start && step < steps.begins.len() {
                *sizes.entry(block.bytes.0).or_default() += 1;
            }
        }
    }
    sizes
}

/// Bytes allocated in each step. They grow with the step's inputs.
async fn allocated_by_step(cx: Evidence<'_>, steps: &Steps, budget: &mut Budget) -> Vec<u64> {
    let mut bytes = vec![0; steps.whole()];
    let mut near = 0;
    let visit = |_, block: &Block| {
        if block.origin() == Origin::Alloc {
            near = steps.before_near(block.enters, near);
            if let Some(sum) = near.checked_sub(1).and_then(|step| bytes.get_mut(step)) {
                *sum += block.bytes.0;
            }
        }
    };
    cx.trace.each_block(1, budget, visit).await;
    bytes
}

/// The sums of a group's changes in steady steps, without steps that change nothing.
fn series(
    group: &[StepChange],
    steady: &Range<usize>,
    of: impl Fn(&StepChange) -> bool,
) -> Vec<(usize, i64)> {
    let steady =
        |c: &&StepChange| c.step >= steady.start as i64 && c.step < steady.end as i64 && of(c);
    let mut sums: Vec<(usize, i64)> = Vec::new();
    for change in group.iter().filter(steady) {
        match sums.last_mut().filter(|last| last.0 == change.step as usize) {
            Some(last) => last.1 += change.bytes,
            None => sums.push((change.step as usize, change.bytes)),
        }
    }
    sums.retain(|s| s.1 != 0);
    sums
}

fn total(series: &[(usize, i64)]) -> i64 {
    series.iter().map(|s| s.1).sum()
}

fn growths(series: &[(usize, i64)]) -> Vec<(usize, u64)> {
    series.iter().map(|&(step, bytes)| (step, bytes.max(0) as u64)).collect()
}

/// New blocks of the group stay in each step.
fn kept(
    group: &[StepChange],
    steady: &Range<usize>,
    rotating: &FxHashMap<u64, usize>,
    least: usize,
) -> Option<Candidate> {
    let of = |range: &Range<usize>| {
        (series(group, range, |c| c.stays && c.lasts), series(group, range, |c| c.lasts))
    };
    let (mut kept, mut net) = of(steady);
    let mut found = pattern(&kept, steady);
    if found.is_none() {
        (kept, net) = of(&with_rest(steady));
        found = spaced(&kept, steady, least);
    }
    let is_rare = found.is_some_and(|pattern| pattern.every > 1);
    let mut staying = staying(group, steady);
    staying.retain(|change| !is_rare || change.lasts);
    let rotates = |change: &&&StepChange| {
        rotating.get(&(change.bytes as u64)).is_some_and(|&freed| freed * 2 >= kept.len())
    };
    let is_ring = staying.iter().filter(rotates).count() * 2 > staying.len();
    if total(&kept) > total(&net) * 2 || is_ring {
        return None;
    }
    let mut pattern_of = found?;
    let blocks = staying.iter().map(|c| c.block).collect();
    let leaves = total(&net) < total(&kept);
    let is_queue = leaves && is_first_in_first_out(group, steady, &staying);
    let mut series = growths(&kept);
    if let Some(of_net) = pattern(&net, steady).filter(|_| leaves) {
        pattern_of = of_net;
        series = growths(&net);
    }
    Some(Candidate { kind: GrowthKind::Kept, pattern: pattern_of, series, is_queue, blocks })
}

/// Whether what leaves in steady steps came before all that stays. What is replaced beside a list
/// that grows is younger than the list's first items.
fn is_first_in_first_out(
    group: &[StepChange],
    steady: &Range<usize>,
    staying: &[&StepChange],
) -> bool {
    let is_steady = |c: &&StepChange| c.step >= steady.start as i64 && c.step < steady.end as i64;
    let left = || group.iter().filter(is_steady).filter(|c| c.bytes < 0).map(|c| c.block);
    let oldest = staying.iter().map(|c| c.block).min().unwrap_or(0);
    let older = left().filter(|&block| block < oldest).count();
    older * 100 >= left().count() * MIN_OLDER_PERCENT
}

/// The blocks that stay, of steady steps and of warm-up. Warm-up also allocates what is meant to
/// stay, in other sizes.
fn staying<'a>(group: &'a [StepChange], steady: &Range<usize>) -> Vec<&'a StepChange> {
    let is_steady = |c: &StepChange| c.step >= steady.start as i64;
    let all = || group.iter().filter(|c| c.stays && c.step >= 0);
    let sizes = || all().filter(|c| is_steady(c)).map(|c| c.bytes);
    let (least, most) = (sizes().min().unwrap_or(0) / 4, sizes().max().unwrap_or(0) * 4);
    all().filter(|c| is_steady(c) || (least..=most).contains(&c.bytes)).collect()
}

/// Blocks of the group are replaced by larger ones. `inputs` are the bytes that each step
/// allocates.
fn replaced(group: &[StepChange], steady: &Range<usize>, inputs: &[u64]) -> Option<Candidate> {
    let net = series(group, steady, |_| true);
    if net.len() < MIN_REPLACEMENTS || total(&net) < MIN_REPLACED_BYTES {
        return None;
    }
    let pattern = pattern(&net, steady)?;
    if scales_with_inputs(group, steady, inputs) {
        return None;
    }
    let blocks = group.iter().filter(|c| c.bytes > 0 && c.step >= 0).map(|c| c.block).collect();
    let series = growths(&net);
    Some(Candidate { kind: GrowthKind::Replaced, pattern, series, is_queue: false, blocks })
}

/// Whether live bytes at the end of a step grow as what the step allocates: longer sequences, or
/// larger batches.
fn scales_with_inputs(group: &[StepChange], steady: &Range<usize>, inputs: &[u64]) -> bool {
    let mut live = 0i64;
    let mut changes = group.iter().peekable();
    let mut ends: Vec<(f64, f64)> = Vec::new();
    for step in steady.clone() {
        let mut own = 0;
        while let Some(change) = changes.next_if(|c| c.step <= step as i64) {
            live += change.bytes;
            if change.step == step as i64 {
                own += change.bytes.max(0) as u64;
            }
        }
        ends.push((live as f64, inputs[step].saturating_sub(own) as f64));
    }
    let ([first, .., last], true) = (&ends[..], ends.len() >= 2) else { return false };
    let grows = |of: fn(&(f64, f64)) -> f64| of(last) / of(first).max(1.0) - 1.0;
    let (live, inputs) = (grows(|end| end.0), grows(|end| end.1));
    // A step also allocates parameters' gradients and temporaries, which do not grow.
    inputs > 0.1 && live < inputs * 3.0
}
