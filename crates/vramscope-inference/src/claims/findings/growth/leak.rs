//! From call stacks that grow to leaks: one for each set of steps.

use super::facts::{Growth, GrowthKind, finding};
use super::series::Candidate;
use crate::category::{Category, Phase};
use crate::claims::found::{Found, Part, parts};
use crate::evidence::Evidence;
use crate::evidence::failure::failure;
use crate::steps::Steps;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;
use vramscope_snapshot::{Frame, FrameId, StackId};
use vramscope_trace::group_by_key;
use vramscope_trace::slicing::Budget;
use vramscope_trace::{Block, is_package_file};
use vramscope_units::Bytes;

/// The fewest call sites of kept activations that are called a graph.
const MIN_GRAPH_SITES: usize = 4;

/// The fewest pieces of data that a step stores: a list of batches keeps one or two.
const MIN_STORED: usize = 4;

/// Candidates that grow in the same steps.
struct Leak {
    kind: GrowthKind,
    every: usize,
    steps: FxHashSet<usize>,
    candidates: Vec<Candidate>,
}

/// Merges candidates that grow in the same steps, and makes a finding of each leak.
pub(super) async fn merged(
    cx: Evidence<'_>,
    steps: &Steps,
    steady: &Range<usize>,
    candidates: Vec<Candidate>,
    budget: &mut Budget,
) -> Vec<Found<Growth>> {
    if candidates.is_empty() {
        return Vec::new();
    }
    let parameters = cx.parameters_by_size(budget).await;
    let mut leaks: Vec<Leak> = Vec::new();
    // A failed step does not show which of its blocks stay.
    let failed = failure(cx.snapshot, cx.trace).map(|failure| failure.at as u32);
    let whole = |at: u32| steps.begins.iter().copied().rfind(|&begin| begin <= at);
    let whole = failed.and_then(whole);
    for mut candidate in candidates {
        budget.charge(candidate.blocks.len() as u64).await;
        if let Some(whole) = whole {
            candidate.blocks.retain(|&i| cx.trace.blocks[i as usize].enters <= whole);
        }
        if is_one_model(cx, &candidate, &parameters) {
            continue;
        }
        let grows: FxHashSet<usize> = candidate.series.iter().map(|s| s.0).collect();
        let same = |leak: &&mut Leak| {
            let both = leak.steps.intersection(&grows).count();
            leak.kind == candidate.kind && both * 5 >= (leak.steps.len() + grows.len() - both) * 4
        };
        match leaks.iter_mut().find(same) {
            Some(leak) => {
                leak.steps.extend(grows);
                leak.candidates.push(candidate);
            }
            None => leaks.push(Leak {
                kind: candidate.kind,
                every: candidate.pattern.every,
                steps: grows,
                candidates: vec![candidate],
            }),
        }
    }
    let activations = activations_by_step(cx, steps, budget).await;
    leaks
        .into_iter()
        .map(|leak| leak.finding(cx, steps, steady, &activations, &parameters))
        .collect()
}

/// Optimizers keep at most this many tensors per parameter (Adam with `amsgrad`).
const MAX_STATES: usize = 3;

/// Whether a candidate is gradients or optimizer state of the model's own parameters, which appear
/// as layers are unfrozen. There is no more than one set of them.
fn is_one_model(
    cx: Evidence<'_>,
    candidate: &Candidate,
    parameters: &FxHashMap<u64, usize>,
) -> bool {
    let mut sizes: FxHashMap<u64, usize> = FxHashMap::default();
    let mut sets = 1;
    for &block in &candidate.blocks {
        match cx.categories.get(block).category {
            Category::Gradient => {}
            Category::OptimizerState => sets = MAX_STATES,
            _ => return false,
        }
        *sizes.entry(cx.trace.blocks[block as usize].bytes.0).or_default() += 1;
    }
    sizes.iter().all(|(size, &count)| count <= sets * parameters.get(size).copied().unwrap_or(0))
}

/// Bytes of activations that each step allocates.
async fn activations_by_step(cx: Evidence<'_>, steps: &Steps, budget: &mut Budget) -> Vec<u64> {
    let mut bytes = vec![0; steps.whole()];
    let mut near = 0;
    let visit = |i, block: &Block| {
        near = steps.before_near(block.enters, near);
        let sum = near.checked_sub(1).and_then(|step| bytes.get_mut(step));
        if let Some(sum) = sum.filter(|_| is_activation(cx, i)) {
            *sum += block.bytes.0;
        }
    };
    cx.trace.each_block(2, budget, visit).await;
    bytes
}

fn is_activation(cx: Evidence<'_>, block: u32) -> bool {
    cx.categories.get(block).category == Category::Activation
}

impl Leak {
    fn finding(
        self,
        cx: Evidence<'_>,
        steps: &Steps,
        steady: &Range<usize>,
        activations: &[u64],
        parameters: &FxHashMap<u64, usize>,
    ) -> Found<Growth> {
        let blocks = || self.candidates.iter().flat_map(|c| c.blocks.iter().copied());
        let block = |i: u32| &cx.trace.blocks[i as usize];
        // The step after the last whole one may have failed in its middle.
        let failed = failure(cx.snapshot, cx.trace).map(|failure| failure.at as u32);
        let last = failed.map_or(steps.whole(), |at| steps.before(at).saturating_sub(1));
        let is_whole = |of: &(usize, u64)| self.every > 1 || of.0 < last.min(steps.whole());
        let steps_of = self.candidates.iter().flat_map(|c| c.series.iter().copied());
        let steps_of = steps_of.filter(is_whole).collect();
        let by_step = group_by_key(steps_of);
        let in_a_row = by_step.windows(2).all(|pair| pair[1].0 == pair[0].0 + 1);
        let by_step: Vec<u64> = by_step.into_iter().map(|(_, bytes)| bytes.iter().sum()).collect();
        let grows_by: u64 = by_step.iter().sum();
        let (per_step, total) = match (self.kind, &self.candidates[..]) {
            (GrowthKind::Kept, _) => {
                (range(&by_step), blocks().map(|i| block(i).bytes.0).sum::<u64>())
            }
            (GrowthKind::Replaced, [only]) => (only.pattern.per_step(), by_step.iter().sum()),
            (GrowthKind::Replaced, _) => (range(&by_step), by_step.iter().sum()),
        };
        let mut grown: Vec<usize> =
            blocks().filter_map(|i| steps.before(block(i).enters).checked_sub(1)).collect();
        grown.sort_unstable();
        grown.dedup();
        let parts = parts(blocks().map(|i| (block(i).stack, block(i).bytes.0)));
        let sites: FxHashSet<u64> =
            parts.iter().map(|part| cx.sites.get(part.stack).site_hash).collect();
        let kept = blocks().filter(|&i| is_activation(cx, i)).map(|i| block(i).bytes.0);
        let kept: u64 = kept.sum();
        let is_graph = self.kind == GrowthKind::Kept
            && kept * 2 > total
            && (sites.len() >= MIN_GRAPH_SITES || self.keeps_inner_results(cx, steps));
        let activations = is_graph.then(|| {
            let of_steps: u64 = grown.iter().filter_map(|&step| activations.get(step)).sum();
            let count = grown.len().max(1) as u64;
            (Bytes(kept / count), Bytes(of_steps / count))
        });
        let common = common_frames(cx, &parts);
        let is_queue = self.candidates.iter().all(|c| c.is_queue);
        let mean = grows_by / by_step.len().max(1) as u64;
        let facts = Growth {
            kind: self.kind,
            per_step,
            every: self.every,
            steps: if self.kind == GrowthKind::Kept {
                // The last one may be in no whole step.
                (total.saturating_mul(2) / mean.max(1)).div_ceil(2) as usize
            } else {
                by_step.len()
            },
            in_a_row,
            per_1000_steps: Bytes(match self.every {
                1 => grows_by.saturating_mul(1000) / steady.len().max(1) as u64,
                every => mean.saturating_mul(1000) / every as u64,
            }),
            rate: Bytes(mean / self.every.max(1) as u64),
            is_queue,
            total: Bytes(total),
            at: common.at,
            called_from: common.called_from,
            sites: sites.len(),
            activations,
            at_evaluation: blocks()
                .filter_map(|i| block(i).alloc_event())
                .any(|event| cx.phase_at(event.0) == Some(Phase::Evaluation)),
            words: steps.words(),
            is_cache: blocks().all(|i| cx.categories.get(i).category == Category::Cache),
            is_data: !is_queue && self.is_data(cx, grown.len()),
            keeps_graphs: self.keeps_graphs(cx, parameters),
            is_model_state: blocks().all(|i| {
                matches!(
                    cx.categories.get(i).category,
                    Category::Gradient | Category::OptimizerState
                )
            }),
        };
        let hash = cx.hash(parts.first().map_or(StackId::EMPTY, |part| part.stack));
        let allocs = || blocks().filter_map(|i| block(i).alloc_event()).map(|e| e.0);
        let phase = allocs().next().and_then(|event| cx.phase_at(event));
        let mut found = finding(cx, &hash, allocs().collect(), facts);
        found.common.phase = phase.filter(|_| allocs().all(|event| cx.phase_at(event) == phase));
        found.common.blocks = blocks().count() as u32;
        found.common.parts = parts;
        found
    }
}

impl Leak {
    /// Whether steps store pieces of data, several in each, and nothing that passes made: frames of
    /// a replay buffer. `steps` is the number of steps that grow.
    fn is_data(&self, cx: Evidence<'_>, steps: usize) -> bool {
        let mut blocks = self.candidates.iter().flat_map(|candidate| &candidate.blocks);
        let is_even = self.candidates.iter().all(|candidate| {
            let bytes = |&i: &u32| cx.trace.blocks[i as usize].bytes;
            candidate.blocks.windows(2).all(|pair| bytes(&pair[0]) == bytes(&pair[1]))
        });
        is_even
            && blocks.clone().count() >= MIN_STORED * steps
            && blocks.all(|&i| cx.categories.get(i).category == Category::Input)
    }

    /// Whether gradients of parameters and results of forward passes stay in the same steps, each a
    /// tenth of the bytes at least. A leaf that is no parameter has a gradient, too.
    fn keeps_graphs(&self, cx: Evidence<'_>, parameters: &FxHashMap<u64, usize>) -> bool {
        let (mut gradients, mut results, mut all) = (0, 0, 0);
        let mut sizes: FxHashSet<u64> = FxHashSet::default();
        for &i in self.candidates.iter().flat_map(|c| &c.blocks) {
            let bytes = cx.trace.blocks[i as usize].bytes.0;
            all += bytes;
            if cx.categories.get(i).category == Category::Gradient {
                gradients += bytes;
                sizes.extend(parameters.contains_key(&bytes).then_some(bytes));
            } else if cx.is_result(i) {
                results += bytes;
            }
        }
        // A backward pass makes gradients of all parameters.
        let of_model: u64 = sizes.iter().map(|size| size * parameters[size] as u64).sum();
        let is_of_model = of_model > 0 && all * 10 >= of_model * 9 * self.steps.len() as u64;
        let is_kept = self.kind == GrowthKind::Kept && is_of_model;
        is_kept && gradients * 10 >= all && results * 10 >= all
    }

    /// Whether one call of a line keeps several blocks of unlike sizes, in each step that grows. A
    /// list of outputs has one of them: the graph of the output keeps the others.
    fn keeps_inner_results(&self, cx: Evidence<'_>, steps: &Steps) -> bool {
        let mut kept: Vec<((StackId, u64), usize)> = Vec::new();
        for &i in self.candidates.iter().flat_map(|c| &c.blocks) {
            let block = &cx.trace.blocks[i as usize];
            if is_activation(cx, i) && cx.runs_module(block.stack) {
                kept.push(((block.stack, block.bytes.0), steps.before(block.enters)));
            }
        }
        kept.sort_unstable();
        kept.dedup();
        // The last step may not be whole.
        let recurs = |group: &[((StackId, u64), usize)]| group.len() + 1 >= self.steps.len();
        let recurring: Vec<StackId> =
            kept.chunk_by(|a, b| a.0 == b.0).filter(|g| recurs(g)).map(|g| g[0].0.0).collect();
        recurring.windows(2).any(|pair| pair[0] == pair[1])
    }
}

fn range(by_step: &[u64]) -> (Bytes, Bytes) {
    let bytes = || by_step.iter().copied();
    (Bytes(bytes().min().unwrap_or(0)), Bytes(bytes().max().unwrap_or(0)))
}

/// The frames that the call stacks of a leak share.
struct CommonFrames {
    at: Option<Frame>,
    called_from: Option<Frame>,
}

/// The innermost frames that the largest parts share.
fn common_frames(cx: Evidence<'_>, parts: &[Part]) -> CommonFrames {
    let common = cx.common_frames(parts);
    let at = common.last().copied();
    let program = common.iter().rev().copied().find(|&f| !is_package(cx, f));
    CommonFrames {
        at: at.map(|f| cx.snapshot.frame(f)),
        called_from: program.filter(|&f| Some(f) != at).map(|f| cx.snapshot.frame(f)),
    }
}

/// Whether a frame belongs to an installed package.
fn is_package(cx: Evidence<'_>, frame: FrameId) -> bool {
    let file = cx.snapshot.text(cx.snapshot.frame(frame).file);
    is_package_file(&file)
}
