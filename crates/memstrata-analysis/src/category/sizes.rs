//! How many parameters have a size, and what follows for the blocks that nothing else tells.

use super::life::{MANY_WORKSPACES, Verdict, WORKSPACES};
use super::phases::Phases;
use super::stacks::{Phase, Says};
use super::{Category, Guess};
use crate::trace::Trace;
use memstrata_snapshot::StackId;
use rustc_hash::{FxHashMap, FxHashSet};

/// Smaller temporaries of an optimizer are its scalars (norms, step counts), not as large as a parameter.
const SCALAR: u64 = 64;

/// For every size in bytes, how many of something there are.
type Counts = FxHashMap<u64, u32>;

/// The largest count of a size in any one group.
fn largest(mut keys: Vec<(u64, u32, u32)>) -> Counts {
    keys.sort_unstable();
    let mut counts = Counts::default();
    for group in keys.chunk_by(|a, b| a == b) {
        let count = counts.entry(group[0].0).or_default();
        *count = (*count).max(group.len() as u32);
    }
    counts
}

/// Parameters by size. Every gradient of one backward pass has a parameter of its size, and so has every state that one
/// line of an optimizer makes; failing those, the temporaries that one line of it makes in one step.
fn parameters(trace: &Trace, says: &[Says], phases: &Phases, verdicts: &[Verdict]) -> Counts {
    let (mut strong, mut weak) = (Vec::new(), Vec::new());
    for (block, verdict) in trace.blocks.iter().zip(verdicts) {
        let Verdict::Is(guess) = verdict else { continue };
        let size = block.bytes.0;
        let run = block.alloc_event().map_or(0, |event| phases.run(event.0));
        match guess.category {
            Category::Gradient => strong.push((size, u32::MAX, run)),
            Category::OptimizerState => strong.push((size, block.stack.0, 0)),
            Category::Temporary
                if size >= SCALAR
                    && block.alloc_event().is_some()
                    && says[block.stack.0 as usize].phase() == Some(Phase::Update) =>
            {
                weak.push((size, block.stack.0, run));
            }
            _ => {}
        }
    }
    let (mut counts, weak_sizes) = (largest(strong), weak.clone());
    let weak = largest(weak);
    for (size, ..) in weak_sizes {
        counts.entry(size).or_insert(weak.get(&size).copied().unwrap_or(0));
    }
    counts
}

struct Settle<'a> {
    /// Parameters that must exist.
    expected: Counts,
    /// Parameters found so far.
    found: Counts,
    /// Blocks from before the window without a stack, by size.
    before: Counts,
    /// Gradients that this window's backward passes made.
    gradients: Counts,
    /// Gradients from before the window found so far, that are zeroed in place.
    zeroed: Counts,
    /// Optimizer states known from stacks.
    states: Counts,
    /// Stacks and sizes of temporaries that a module's `__init__` made.
    drafts: FxHashSet<(StackId, u64)>,
    phases: &'a Phases,
    /// The window ends in a forward pass that keeps its activations: training, of which backward is not in it.
    unfinished: bool,
}

fn count(verdicts: &[Verdict], trace: &Trace, which: impl Fn(&Verdict) -> bool) -> Counts {
    let mut counts = Counts::default();
    for (block, _) in trace.blocks.iter().zip(verdicts).filter(|(_, v)| which(v)) {
        *counts.entry(block.bytes.0).or_default() += 1;
    }
    counts
}

/// Turn first judgements into guesses.
pub(super) fn settle(trace: &Trace, says: &[Says], phases: &Phases, verdicts: &[Verdict]) -> Vec<Guess> {
    let category = |verdict: &Verdict, category| matches!(verdict, Verdict::Is(g) if g.category == category);
    let drafts = trace.blocks.iter().zip(verdicts).filter(|(b, v)| {
        says[b.stack.0 as usize].either && category(v, Category::Temporary) && b.alloc_event().is_some()
    });
    let mut settle = Settle {
        expected: parameters(trace, says, phases, verdicts),
        found: Counts::default(),
        zeroed: Counts::default(),
        before: count(verdicts, trace, |v| *v == Verdict::Before),
        gradients: count(verdicts, trace, |v| category(v, Category::Gradient)),
        states: count(verdicts, trace, |v| category(v, Category::OptimizerState)),
        drafts: drafts.map(|(b, _)| (b.stack, b.bytes.0)).collect(),
        phases,
        unfinished: unfinished(trace, verdicts),
    };
    settle.multiples(trace, verdicts);
    // A parameter that is dropped and made again (converted, sharded) is one parameter: only those kept count.
    let kept = |b: &crate::blocks::Block| b.leaves == trace.slots();
    for (block, _) in trace.blocks.iter().zip(verdicts).filter(|(b, v)| kept(b) && category(v, Category::Parameter)) {
        *settle.found.entry(block.bytes.0).or_default() += 1;
    }
    let mut guesses = vec![Guess::default(); verdicts.len()];
    // Those whose stacks say more take their share first.
    for turn in [Verdict::Either, Verdict::Program] {
        for (i, block) in trace.blocks.iter().enumerate().filter(|&(i, _)| verdicts[i] == turn) {
            let (category, confidence) = match turn {
                Verdict::Either => settle.either(block.stack, block.bytes.0),
                _ => settle.program(block.bytes.0),
            };
            guesses[i] = Guess { category, confidence };
        }
    }
    let parameters = settle.parameters_before(trace, verdicts);
    for (i, block) in trace.blocks.iter().enumerate().filter(|&(i, _)| verdicts[i] == Verdict::Before) {
        let (category, confidence) = if parameters.contains(&(i as u32)) {
            (Category::Parameter, 0.5)
        } else {
            settle.before(block.bytes.0, kept(block))
        };
        guesses[i] = Guess { category, confidence };
    }
    // Backward passes whose gradients were seen to stay: what was gone before those is no gradient.
    let stays =
        trace.blocks.iter().zip(verdicts).filter(|(b, v)| b.bytes.0 >= SCALAR && category(v, Category::Gradient));
    let kept_runs: FxHashSet<u32> = stays.filter_map(|(b, _)| Some(phases.run(b.alloc_event()?.0))).collect();
    for ((guess, verdict), block) in guesses.iter_mut().zip(verdicts).zip(&trace.blocks) {
        match verdict {
            Verdict::Is(known) => *guess = *known,
            Verdict::Late(long) => {
                let reset = block.alloc_event().is_some_and(|event| !kept_runs.contains(&phases.run(event.0)));
                *guess = settle.late(block.bytes.0, *long, reset);
            }
            _ => {}
        }
    }
    guesses
}

/// Whether a good part of the activations is live at the end. Inference frees them as it goes.
fn unfinished(trace: &Trace, verdicts: &[Verdict]) -> bool {
    let activations = trace.blocks.iter().zip(verdicts).filter(|(_, v)| match v {
        Verdict::Is(guess) => guess.category == Category::Activation,
        _ => false,
    });
    let (all, live) =
        activations.fold((0, 0), |(all, live), (b, _)| (all + 1, live + u32::from(b.leaves == trace.slots())));
    4 * live > all
}

impl Settle<'_> {
    /// Where a training window shows neither gradients nor states, the blocks from before it tell by how often each
    /// size comes: thrice if there are two states a parameter (Adam), twice if there is one (momentum).
    fn multiples(&mut self, trace: &Trace, verdicts: &[Verdict]) {
        if !self.expected.is_empty() || !self.unfinished {
            return;
        }
        let before = trace.blocks.iter().zip(verdicts);
        let before = before.filter(|(b, v)| **v == Verdict::Before && b.leaves == trace.slots());
        let sizes = before.map(|(b, _)| b.bytes.0);
        let mut sizes: Vec<u64> = sizes.filter(|&size| !self.is_workspace(size)).collect();
        sizes.sort_unstable();
        let sizes: Vec<(u64, u32)> = sizes.chunk_by(|a, b| a == b).map(|s| (s[0], s.len() as u32)).collect();
        let bytes = |each: &dyn Fn(u32) -> bool| -> u128 {
            let sizes = sizes.iter().filter(|(_, count)| each(*count));
            sizes.map(|&(size, count)| u128::from(size) * u128::from(count)).sum()
        };
        let all = bytes(&|_| true);
        let Some(times) = [3, 2].into_iter().find(|times| 10 * bytes(&|count| count % times == 0) >= 9 * all) else {
            return;
        };
        for (size, count) in sizes.into_iter().filter(|(_, count)| count % times == 0) {
            self.expected.insert(size, count / times);
        }
    }

    /// Whether so few blocks from before the window have this size that they are workspaces.
    fn is_workspace(&self, size: u64) -> bool {
        WORKSPACES.contains(&size) && self.before.get(&size).is_some_and(|&count| count <= MANY_WORKSPACES)
    }

    /// Whether one more parameter of this size must exist; if so, it is found.
    fn missing(&mut self, size: u64) -> bool {
        let expected = self.expected.get(&size).copied().unwrap_or(0);
        let found = self.found.entry(size).or_default();
        let missing = *found < expected;
        *found += u32::from(missing);
        missing
    }

    fn either(&mut self, stack: StackId, size: u64) -> (Category, f32) {
        if self.missing(size) {
            return (Category::Parameter, 0.8);
        }
        let draft = self.drafts.contains(&(stack, size));
        match self.expected.is_empty() {
            false => (Category::Buffer, if draft { 0.8 } else { 0.7 }),
            // `tril(ones(n, n))` leaves a draft behind, `Parameter(ones(n))` does not.
            true if draft => (Category::Buffer, 0.5),
            true => (Category::Parameter, 0.5),
        }
    }

    fn program(&mut self, size: u64) -> (Category, f32) {
        match (self.missing(size), self.phases.framed) {
            (true, framed) => (Category::Parameter, if framed { 0.6 } else { 0.5 }),
            (false, true) => (Category::Input, 0.6),
            // Without stacks a model's own tensors are here too, and likelier than data that is kept for good.
            (false, false) => (Category::Buffer, 0.3),
        }
    }

    /// Which blocks from before the window are parameters, where others (states, gradients) have the same size.
    ///
    /// A model is built in one go, so its parameters lie together, and before what comes after: the lowest of each size
    /// say where (half of their bytes are below), and then those count that lie closest to there.
    fn parameters_before(&self, trace: &Trace, verdicts: &[Verdict]) -> FxHashSet<u32> {
        let before = (0..).zip(&trace.blocks).zip(verdicts);
        let before = before.filter(|((_, b), v)| **v == Verdict::Before && b.leaves == trace.slots());
        let mut blocks: Vec<(u64, u64, u32)> = before.map(|((i, b), _)| (b.bytes.0, b.address.0, i)).collect();
        blocks.sort_unstable();
        let groups = blocks.chunk_by(|a, b| a.0 == b.0).map(|group| {
            let known = |counts: &Counts| counts.get(&group[0].0).copied().unwrap_or(0);
            (group, group.len().min(known(&self.expected).saturating_sub(known(&self.found)) as usize))
        });
        let center = |least: usize| {
            let groups = groups.clone().filter(|(_, count)| *count >= least);
            let mut lowest: Vec<(u64, u64)> = groups.flat_map(|(g, count)| &g[..count]).map(|b| (b.1, b.0)).collect();
            lowest.sort_unstable();
            let mut half = lowest.iter().map(|b| u128::from(b.1)).sum::<u128>() / 2;
            let middle = lowest.iter().find(|b| {
                let reached = u128::from(b.1) >= half;
                half = half.saturating_sub(b.1.into());
                reached
            });
            middle.map(|b| b.0)
        };
        // The place of one tensor is chance (an early segment may have been free again); that of many is not.
        let Some(center) = center(2).or_else(|| center(1)) else { return FxHashSet::default() };
        let nearest = groups.flat_map(|(group, count)| {
            let distance = |b: &(u64, u64, u32)| u128::from(b.1.abs_diff(center));
            let mut sum: u128 = group[..count].iter().map(distance).sum();
            let mut best = (sum, 0);
            for start in 1..=group.len() - count {
                sum = sum + distance(&group[start + count - 1]) - distance(&group[start - 1]);
                best = best.min((sum, start));
            }
            &group[best.1..best.1 + count]
        });
        nearest.map(|b| b.2).collect()
    }

    fn late(&self, size: u64, long: bool, reset: bool) -> Guess {
        let parameter = reset && if self.expected.is_empty() { long } else { self.expected.contains_key(&size) };
        let (category, confidence) = if parameter { (Category::Gradient, 0.5) } else { (Category::Temporary, 0.7) };
        Guess { category, confidence }
    }

    fn before(&mut self, size: u64, kept: bool) -> (Category, f32) {
        let known = |counts: &Counts| counts.get(&size).copied().unwrap_or(0);
        let parameters = known(&self.expected);
        if !kept {
            return match parameters {
                0 => (Category::Unknown, 0.0),
                _ => (Category::Gradient, 0.4),
            };
        }
        if parameters > 0 {
            // States are known, so the rest are gradients; unless the window's backward passes made those.
            if known(&self.states) >= parameters {
                let category = if known(&self.gradients) == 0 { Category::Gradient } else { Category::Buffer };
                return (category, 0.4);
            }
            // Backward passes of the window made none, though parameters have gradients: they are older, and are zeroed
            // in place. They were made before the states, so they are the lower ones.
            if known(&self.gradients) == 0 && self.phases.any(Phase::Backward) {
                let zeroed = self.zeroed.entry(size).or_default();
                if *zeroed < parameters {
                    *zeroed += 1;
                    return (Category::Gradient, 0.3);
                }
            }
            return (Category::OptimizerState, 0.4);
        }
        if self.is_workspace(size) && self.phases.any(Phase::Forward) {
            return (Category::Workspace, 0.3);
        }
        match (self.expected.is_empty(), self.phases.any(Phase::Forward), self.phases.any(Phase::Backward)) {
            (true, true, false) if self.unfinished => (Category::Unknown, 0.0),
            // Nothing but inference: what stays is the model.
            (true, true, false) => (Category::Parameter, 0.4),
            (false, _, _) => (Category::Buffer, 0.3),
            _ => (Category::Unknown, 0.0),
        }
    }
}
