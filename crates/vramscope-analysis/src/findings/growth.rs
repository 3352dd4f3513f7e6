//! Memory that grows from step to step, by call stack.
//!
//! Memory is compared at step boundaries, where activations are freed. Two series are tested per
//! call stack. Bytes allocated in a step and never freed show accumulation. Net live bytes also
//! show a buffer that is replaced by a larger one in every step.

use super::{Evidence, Facts, Finding, Growth, Part};
use crate::blocks::Origin;
use crate::slicing::{Budget, strides};
use crate::sort;
use crate::steps::Steps;
use rustc_hash::FxHashMap;
use vramscope_snapshot::StackId;
use vramscope_units::Bytes;

/// The smallest median growth per step to report. Smaller growth, such as a list of scalar losses,
/// adds up to at most 400 MB in 100,000 steps.
const MIN_BYTES_PER_STEP: u64 = 4096;

/// The fewest steps with growth of a series.
const MIN_GROWING_STEPS: usize = 4;

/// The fewest replacements by a larger buffer that count as growth.
const MIN_REPLACEMENTS: usize = 8;

/// The fewest bytes of growth by replacement to report.
const MIN_REPLACED_BYTES: u64 = 16 << 20;

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
    /// The block was allocated in the window and is live at its end.
    stays: bool,
}

/// The growth of a series of steps.
struct Pattern {
    /// Grows in every step (1), every second step (2), and so on.
    every: usize,
    /// The smallest growth in one step.
    min_bytes: u64,
    /// The largest growth in one step.
    max_bytes: u64,
}

pub(super) async fn growth(
    cx: Evidence<'_>,
    budget: &mut Budget,
) -> Vec<Finding> {
    let Some((steps, warm_up)) = cx.steps.and_then(|steps| Some((steps, steps.warm_up()?))) else {
        return Vec::new();
    };
    let rotating = rotating(cx, steps, warm_up, budget).await;
    let mut found = Vec::new();
    let mut reported = vec![false; cx.snapshot.stacks.len()];
    // Stacks that do not grow by themselves are grouped by call site, because different steps may
    // reach one line through different callers.
    for by_site in [false, true] {
        let group_of = |stack: StackId| {
            if !by_site {
                return Some(u64::from(stack.0));
            }
            let site = cx.sites.get(stack);
            (site.frame.is_some() && !reported[stack.0 as usize]).then_some(site.site_hash)
        };
        let changes = step_changes(cx, steps, group_of, budget).await;
        for group in changes.chunk_by(|a, b| a.group == b.group) {
            if let Some(finding) = find_in_group(cx, steps, warm_up, group, &rotating) {
                if let Some(stack) = finding.stack() {
                    reported[stack.0 as usize] = true;
                }
                found.push(finding);
            }
            budget.charge(4 * group.len() as u64).await;
        }
    }
    found
}

/// Allocations and frees of the blocks that are live at a step boundary or at the end, sorted by
/// group, then step.
async fn step_changes(
    cx: Evidence<'_>,
    steps: &Steps,
    group_of: impl Fn(StackId) -> Option<u64>,
    budget: &mut Budget,
) -> Vec<StepChange> {
    let (mut changes, mut enters) = (Vec::new(), 0);
    for part in strides(cx.trace.blocks.len()) {
        budget.charge(4 * part.len() as u64).await;
        for (block, b) in (part.start as u32..).zip(&cx.trace.blocks[part]) {
            enters = steps.before_near(b.enters, enters);
            let leaves = steps.before_near(b.leaves, enters);
            let stays = b.leaves == cx.trace.slots() && b.origin() == Origin::Alloc;
            if enters == leaves && !stays {
                continue;
            }
            let Some(group) = group_of(b.stack) else { continue };
            let bytes = b.bytes.0 as i64;
            changes.push(StepChange { group, step: enters as i64 - 1, block, bytes, stays });
            if leaves < steps.begins.len() {
                changes.push(StepChange {
                    group,
                    step: leaves as i64 - 1,
                    block,
                    bytes: -bytes,
                    stays: false,
                });
            }
        }
    }
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
    warm_up: usize,
    budget: &mut Budget,
) -> FxHashMap<u64, usize> {
    let mut sizes = FxHashMap::default();
    for part in strides(cx.trace.blocks.len()) {
        budget.charge(part.len() as u64).await;
        for block in cx.trace.blocks[part].iter().filter(|b| b.origin() == Origin::PreexistingFreed)
        {
            let step = steps.before(block.leaves);
            if step > warm_up && step < steps.begins.len() {
                *sizes.entry(block.bytes.0).or_default() += 1;
            }
        }
    }
    sizes
}

/// The finding for one group of changes, if the group grows.
fn find_in_group(
    cx: Evidence<'_>,
    steps: &Steps,
    warm_up: usize,
    group: &[StepChange],
    rotating: &FxHashMap<u64, usize>,
) -> Option<Finding> {
    let series = |of: &dyn Fn(&StepChange) -> bool| -> Vec<(usize, i64)> {
        let steady =
            |c: &&StepChange| c.step >= warm_up as i64 && c.step < steps.whole() as i64 && of(c);
        let mut sums: Vec<(usize, i64)> = Vec::new();
        for change in group.iter().filter(steady) {
            match sums.last_mut().filter(|last| last.0 == change.step as usize) {
                Some(last) => last.1 += change.bytes,
                None => sums.push((change.step as usize, change.bytes)),
            }
        }
        sums.retain(|s| s.1 != 0);
        sums
    };
    let (kept, net) = (series(&|c| c.stays), series(&|_| true));
    let total = |series: &[(usize, i64)]| series.iter().map(|s| s.1).sum::<i64>();
    let staying: Vec<&StepChange> = group.iter().filter(|c| c.stays && c.step >= 0).collect();
    let rotates = |change: &&&StepChange| {
        rotating.get(&(change.bytes as u64)).is_some_and(|&freed| freed * 2 >= kept.len())
    };
    let is_ring = staying.iter().filter(rotates).count() * 2 > staying.len();
    if total(&kept) <= total(&net) * 2
        && !is_ring
        && let Some(pattern) = pattern(&kept, warm_up, steps.whole())
    {
        let bytes = staying.iter().map(|c| c.bytes as u64).sum();
        let mut growing_steps: Vec<i64> = staying.iter().map(|c| c.step).collect();
        growing_steps.dedup();
        let facts = Growth::Kept {
            per_step: pattern.per_step(),
            every: pattern.every,
            steps: growing_steps.len(),
            at_end: Bytes(bytes),
        };
        return Some(finding(cx, &staying, bytes, facts));
    }
    // A cache grows between generated tokens on purpose, so this needs steps that the program
    // named. Batches may also grow a few times in a row by chance.
    if !steps.are_training() || net.len() < MIN_REPLACEMENTS {
        return None;
    }
    let pattern = pattern(&net, warm_up, steps.whole())?;
    let bytes = u64::try_from(total(&net)).ok().filter(|&bytes| bytes >= MIN_REPLACED_BYTES)?;
    let facts = Growth::Replaced {
        per_step: pattern.per_step(),
        every: pattern.every,
        steps: net.len(),
        in_all: Bytes(bytes),
    };
    let allocs: Vec<&StepChange> = group.iter().filter(|c| c.bytes > 0 && c.step >= 0).collect();
    Some(finding(cx, &allocs, bytes, facts))
}

fn finding(cx: Evidence<'_>, allocs: &[&StepChange], bytes: u64, facts: Growth) -> Finding {
    let block = |c: &&StepChange| &cx.trace.blocks[c.block as usize];
    // The stack with most bytes represents a call site with several stacks.
    let mut stacks: Vec<(StackId, i64)> =
        allocs.iter().map(|c| (block(c).stack, c.bytes)).collect();
    stacks.sort_unstable();
    let stack = stacks
        .chunk_by(|a, b| a.0 == b.0)
        .max_by_key(|chunk| (chunk.iter().map(|s| s.1).sum::<i64>(), std::cmp::Reverse(chunk[0].0)))
        .map_or(StackId::EMPTY, |chunk| chunk[0].0);
    let events = allocs.iter().filter_map(|c| block(c).alloc_event()).map(|event| event.0);
    let part = Part { stack, bytes: Bytes(bytes), blocks: allocs.len() as u32 };
    Finding {
        parts: vec![part],
        blocks: part.blocks,
        ..cx.finding(cx.hash(stack), bytes, bytes, events.collect(), Facts::Growth(facts))
    }
}

/// The growth of a series between two steps, if it grows regularly by similar amounts.
///
/// `series` has the steps with a change. All other steps have none.
fn pattern(series: &[(usize, i64)], from: usize, to: usize) -> Option<Pattern> {
    let count = series.len();
    if count < MIN_GROWING_STEPS || series.iter().any(|s| s.1 < 0) {
        return None;
    }
    let every = if count * 5 >= (to - from) * 4 { 1 } else { spacing(series, from, to)? };
    let mut sizes: Vec<u64> = series.iter().map(|s| s.1 as u64).collect();
    sizes.sort_unstable();
    let median = sizes[count / 2];
    let similar = sizes
        .iter()
        .filter(|&&size| size >= median.div_ceil(4) && size <= median.saturating_mul(4))
        .count();
    (similar * 4 >= count * 3 && median >= MIN_BYTES_PER_STEP).then(|| Pattern {
        every,
        min_bytes: sizes[0],
        max_bytes: sizes[count - 1],
    })
}

/// The number of steps between two growths, if it is nearly constant from the first step to the
/// last.
///
/// Examples are outputs kept at every evaluation, and detected steps that are parts of real steps.
fn spacing(series: &[(usize, i64)], from: usize, to: usize) -> Option<usize> {
    let mut gaps: Vec<usize> = series.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    gaps.sort_unstable();
    let gap = gaps[gaps.len() / 2];
    let slack = gap / 4;
    let even = gaps.iter().all(|g| g.abs_diff(gap) <= slack);
    let reaches = series[0].0 - from <= gap && to - series[series.len() - 1].0 <= gap + slack + 1;
    (gap > 1 && even && reaches).then_some(gap)
}

impl Pattern {
    /// The smallest and the largest growth in one step.
    fn per_step(&self) -> (Bytes, Bytes) {
        (Bytes(self.min_bytes), Bytes(self.max_bytes))
    }
}
