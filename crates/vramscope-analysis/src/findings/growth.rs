//! Memory that grows from step to step, by call stack.
//!
//! Two things are looked at, at the boundaries of steps, where activations are dead: blocks that
//! are made in a step and never freed, and the live bytes of a stack. The first finds what
//! accumulates; the second also finds a buffer that is replaced by a larger one in every step.

use super::{Context, Facts, Finding, Growth, StepSource, Steps};
use crate::blocks::Origin;
use crate::slicing::{Budget, strides};
use crate::sort;
use rustc_hash::FxHashMap;
use vramscope_snapshot::StackId;
use vramscope_units::Bytes;

/// Growth below this in a step is left alone: a list of scalar losses is 400 MB after 100,000 steps
/// at the most.
const LEAST_PER_STEP: u64 = 4096;

/// A buffer that is replaced by a larger one so many times grows.
const LEAST_REPLACED: usize = 8;

/// And by so much in all.
const LEAST_REPLACED_BYTES: u64 = 16 << 20;

/// A block as the steps see it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    /// What it is grouped by.
    group: u64,
    /// The step in which it appears, or (negative bytes) is gone.
    step: i64,
    block: u32,
    bytes: i64,
    /// Made in the window and live at its end.
    stays: bool,
}

/// How a series of steps grows.
struct Rhythm {
    /// Grows in every step (1), every second step (2) ...
    every: usize,
    least: u64,
    most: u64,
}

pub(super) async fn growth(
    cx: &Context<'_>,
    steps: Option<&Steps>,
    budget: &mut Budget,
) -> Vec<Finding> {
    let Some((steps, warm_up)) = steps.and_then(|steps| Some((steps, steps.warm_up()?))) else {
        return Vec::new();
    };
    let rotating = rotating(cx, steps, warm_up, budget).await;
    let mut found = Vec::new();
    let mut reported = vec![false; cx.snapshot.stacks.len()];
    // By stack first. What remains goes by call site: one line may be reached by different ways in
    // different steps.
    for by_site in [false, true] {
        let group_of = |stack: StackId| {
            if !by_site {
                return Some(u64::from(stack.0));
            }
            let site = cx.sites.get(stack);
            (site.frame.is_some() && !reported[stack.0 as usize]).then_some(site.site_hash)
        };
        let entries = entries(cx, steps, group_of, budget).await;
        for group in entries.chunk_by(|a, b| a.group == b.group) {
            if let Some(finding) = grown(cx, steps, warm_up, group, &rotating) {
                if let Some(stack) = finding.stack {
                    reported[stack.0 as usize] = true;
                }
                found.push(finding);
            }
            budget.charge(4 * group.len() as u64).await;
        }
    }
    found
}

/// Blocks that are live at a boundary or at the end, by group and step.
async fn entries(
    cx: &Context<'_>,
    steps: &Steps,
    group_of: impl Fn(StackId) -> Option<u64>,
    budget: &mut Budget,
) -> Vec<Entry> {
    let (mut entries, mut enters) = (Vec::new(), 0);
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
            entries.push(Entry { group, step: enters as i64 - 1, block, bytes, stays });
            if leaves < steps.begins.len() {
                entries.push(Entry {
                    group,
                    step: leaves as i64 - 1,
                    block,
                    bytes: -bytes,
                    stays: false,
                });
            }
        }
    }
    sort(&mut entries, budget).await;
    entries
}

/// Sizes of blocks from before the window that are freed in its steady steps, and how many: a fixed
/// number of buffers that are handed on from step to step looks like growth until the first of them
/// is freed.
async fn rotating(
    cx: &Context<'_>,
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

fn grown(
    cx: &Context,
    steps: &Steps,
    warm_up: usize,
    group: &[Entry],
    rotating: &FxHashMap<u64, usize>,
) -> Option<Finding> {
    let series = |of: &dyn Fn(&Entry) -> bool| -> Vec<(usize, i64)> {
        let steady =
            |e: &&Entry| e.step >= warm_up as i64 && e.step < steps.whole() as i64 && of(e);
        let mut sums: Vec<(usize, i64)> = Vec::new();
        for entry in group.iter().filter(steady) {
            match sums.last_mut().filter(|last| last.0 == entry.step as usize) {
                Some(last) => last.1 += entry.bytes,
                None => sums.push((entry.step as usize, entry.bytes)),
            }
        }
        sums.retain(|s| s.1 != 0);
        sums
    };
    let (kept, net) = (series(&|e| e.stays), series(&|_| true));
    let total = |series: &[(usize, i64)]| series.iter().map(|s| s.1).sum::<i64>();
    let staying: Vec<&Entry> = group.iter().filter(|e| e.stays && e.step >= 0).collect();
    let rotates = |entry: &&&Entry| {
        rotating.get(&(entry.bytes as u64)).is_some_and(|&freed| freed * 2 >= kept.len())
    };
    let is_ring = staying.iter().filter(rotates).count() * 2 > staying.len();
    if total(&kept) <= total(&net) * 2
        && !is_ring
        && let Some(rhythm) = rhythm(&kept, warm_up, steps.whole())
    {
        let bytes = staying.iter().map(|e| e.bytes as u64).sum();
        let mut grew: Vec<i64> = staying.iter().map(|e| e.step).collect();
        grew.dedup();
        let facts = Growth::Kept {
            per_step: rhythm.per_step(),
            every: rhythm.every,
            steps: grew.len(),
            at_end: Bytes(bytes),
        };
        return Some(finding(cx, &staying, bytes, facts));
    }
    // Between generated tokens a cache grows on purpose, so this needs steps that the program
    // named; and a batch may well be larger than the one before a few times in a row.
    if steps.source == StepSource::Periodicity || net.len() < LEAST_REPLACED {
        return None;
    }
    let rhythm = rhythm(&net, warm_up, steps.whole())?;
    let bytes = u64::try_from(total(&net)).ok().filter(|&bytes| bytes >= LEAST_REPLACED_BYTES)?;
    let facts = Growth::Replaced {
        per_step: rhythm.per_step(),
        every: rhythm.every,
        steps: net.len(),
        in_all: Bytes(bytes),
    };
    let all: Vec<&Entry> = group.iter().filter(|e| e.bytes > 0 && e.step >= 0).collect();
    Some(finding(cx, &all, bytes, facts))
}

fn finding(cx: &Context, entries: &[&Entry], bytes: u64, facts: Growth) -> Finding {
    let block = |e: &&Entry| &cx.trace.blocks[e.block as usize];
    // Where a site was reached by several stacks, the one with most bytes stands for it.
    let mut stacks: Vec<(StackId, i64)> =
        entries.iter().map(|e| (block(e).stack, e.bytes)).collect();
    stacks.sort_unstable();
    let stack = stacks
        .chunk_by(|a, b| a.0 == b.0)
        .max_by_key(|chunk| (chunk.iter().map(|c| c.1).sum::<i64>(), std::cmp::Reverse(chunk[0].0)))
        .map_or(StackId::EMPTY, |chunk| chunk[0].0);
    let events = entries.iter().filter_map(|e| block(e).alloc_event()).map(|event| event.0);
    cx.stack_finding(stack, bytes, events.collect(), Facts::Growth(facts))
}

/// Whether a series (steps with their changes, other steps have none) grows by about the same again
/// and again.
fn rhythm(series: &[(usize, i64)], from: usize, to: usize) -> Option<Rhythm> {
    let count = series.len();
    if count < 4 || series.iter().any(|s| s.1 < 0) {
        return None;
    }
    let every = if count * 5 >= (to - from) * 4 { 1 } else { spacing(series, from, to)? };
    let mut sizes: Vec<u64> = series.iter().map(|s| s.1 as u64).collect();
    sizes.sort_unstable();
    let middle = sizes[count / 2];
    let alike = sizes
        .iter()
        .filter(|&&size| size >= middle.div_ceil(4) && size <= middle.saturating_mul(4))
        .count();
    (alike * 4 >= count * 3 && middle >= LEAST_PER_STEP).then(|| Rhythm {
        every,
        least: sizes[0],
        most: sizes[count - 1],
    })
}

/// The distance at which a series grows, where it grows every so many steps from the beginning to
/// the end: something that is kept at every evaluation, or steps that are parts of steps.
fn spacing(series: &[(usize, i64)], from: usize, to: usize) -> Option<usize> {
    let mut gaps: Vec<usize> = series.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    gaps.sort_unstable();
    let gap = gaps[gaps.len() / 2];
    let slack = gap / 4;
    let even = gaps.iter().all(|g| g.abs_diff(gap) <= slack);
    let reaches = series[0].0 - from <= gap && to - series[series.len() - 1].0 <= gap + slack + 1;
    (gap > 1 && even && reaches).then_some(gap)
}

impl Rhythm {
    /// The smallest and the largest growth in one step.
    fn per_step(&self) -> (Bytes, Bytes) {
        (Bytes(self.least), Bytes(self.most))
    }
}
