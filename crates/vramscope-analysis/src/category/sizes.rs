//! How many parameters have a size, and what follows for the blocks that nothing else tells.

use super::life::{MANY_WORKSPACES, Verdict, WORKSPACES};
use super::phases::Phases;
use super::stacks::{Phase, Says};
use super::{Category, Guess};
use crate::blocks::Block;
use crate::slicing::{Budget, filled, strides};
use crate::trace::Trace;
use rustc_hash::{FxHashMap, FxHashSet};
use vramscope_snapshot::StackId;

/// Smaller temporaries of an optimizer are its scalars (norms, step counts), not as large as a
/// parameter.
const SCALAR: u64 = 64;

/// For every size in bytes, how many of something there are.
type Counts = FxHashMap<u64, u32>;

/// What it costs to look a block's size up, as [`Budget`] counts it.
const SETTLED: u64 = 2;

/// All blocks with what was judged of them.
#[derive(Clone, Copy)]
struct Judged<'a> {
    trace: &'a Trace,
    verdicts: &'a [Verdict],
}

impl Judged<'_> {
    async fn each(self, budget: &mut Budget, mut look: impl FnMut(u32, &Block, Verdict) + Send) {
        for part in strides(self.verdicts.len()) {
            budget.charge(part.len() as u64 * SETTLED).await;
            let from = part.start as u32;
            for ((i, block), verdict) in
                (from..).zip(&self.trace.blocks[part.clone()]).zip(&self.verdicts[part])
            {
                look(i, block, *verdict);
            }
        }
    }

    fn kept(self, block: &Block) -> bool {
        block.leaves == self.trace.slots()
    }
}

fn is(verdict: Verdict, category: Category) -> bool {
    matches!(verdict, Verdict::Is(guess) if guess.category == category)
}

/// For every size the largest count in any one group.
#[derive(Default)]
struct Groups {
    of: FxHashMap<(u64, u32, u32), u32>,
    largest: Counts,
    /// In the order in which they came.
    sizes: Vec<u64>,
}

impl Groups {
    fn add(&mut self, size: u64, group: (u32, u32)) {
        let count = self.of.entry((size, group.0, group.1)).or_default();
        *count += 1;
        let largest = self.largest.entry(size).or_insert_with(|| {
            self.sizes.push(size);
            0
        });
        *largest = (*largest).max(*count);
    }
}

/// Parameters by size. Every gradient of one backward pass has a parameter of its size, and so has
/// every state that one line of an optimizer makes; failing those, the temporaries that one line of
/// it makes in one step.
async fn parameters(
    judged: Judged<'_>,
    says: &[Says],
    phases: &Phases,
    budget: &mut Budget,
) -> Counts {
    let (mut strong, mut weak) = (Groups::default(), Groups::default());
    let look = |_, block: &Block, verdict| {
        let Verdict::Is(guess) = verdict else { return };
        let size = block.bytes.0;
        let run = || block.alloc_event().map_or(0, |event| phases.run(event.0));
        match guess.category {
            Category::Gradient => strong.add(size, (u32::MAX, run())),
            Category::OptimizerState => strong.add(size, (block.stack.0, 0)),
            Category::Temporary
                if size >= SCALAR
                    && block.alloc_event().is_some()
                    && says[block.stack.0 as usize].phase() == Some(Phase::Update) =>
            {
                weak.add(size, (block.stack.0, run()));
            }
            _ => {}
        }
    };
    judged.each(budget, look).await;
    let mut counts = strong.largest;
    for size in weak.sizes {
        counts.entry(size).or_insert(weak.largest.get(&size).copied().unwrap_or(0));
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
    /// The window ends in a forward pass that keeps its activations: training, of which backward is
    /// not in it.
    unfinished: bool,
}

/// Turn first judgements into guesses.
pub(super) async fn settle(
    trace: &Trace,
    says: &[Says],
    phases: &Phases,
    verdicts: &[Verdict],
    budget: &mut Budget,
) -> Vec<Guess> {
    let judged = Judged { trace, verdicts };
    let mut settle = Settle {
        expected: parameters(judged, says, phases, budget).await,
        found: Counts::default(),
        zeroed: Counts::default(),
        before: Counts::default(),
        gradients: Counts::default(),
        states: Counts::default(),
        drafts: FxHashSet::default(),
        phases,
        unfinished: false,
    };
    // Backward passes whose gradients were seen to stay: what was gone before those is no gradient.
    let mut kept_runs: FxHashSet<u32> = FxHashSet::default();
    let (mut activations, mut live) = (0, 0);
    let look = |_, block: &Block, verdict| {
        let (size, born) = (block.bytes.0, block.alloc_event());
        let counts = match verdict {
            Verdict::Before => &mut settle.before,
            // A parameter that is dropped and made again (converted, sharded) is one parameter:
            // only those kept count.
            _ if is(verdict, Category::Parameter) && judged.kept(block) => &mut settle.found,
            _ if is(verdict, Category::OptimizerState) => &mut settle.states,
            _ if is(verdict, Category::Gradient) => {
                kept_runs.extend(born.filter(|_| size >= SCALAR).map(|event| phases.run(event.0)));
                &mut settle.gradients
            }
            _ => {
                if is(verdict, Category::Activation) {
                    activations += 1;
                    live += u32::from(judged.kept(block));
                }
                if is(verdict, Category::Temporary)
                    && born.is_some()
                    && says[block.stack.0 as usize].either
                {
                    settle.drafts.insert((block.stack, size));
                }
                return;
            }
        };
        *counts.entry(size).or_default() += 1;
    };
    judged.each(budget, look).await;
    // A good part of the activations is live at the end. Inference frees them as it goes.
    settle.unfinished = 4 * live > activations;
    settle.multiples(judged, budget).await;
    let mut guesses = filled(Guess::default(), verdicts.len(), budget).await;
    // Those whose stacks say more take their share first.
    for turn in [Verdict::Either, Verdict::Program] {
        let look = |i: u32, block: &Block, verdict| {
            if verdict == turn {
                let (category, confidence) = match turn {
                    Verdict::Either => settle.either(block.stack, block.bytes.0),
                    _ => settle.program(block.bytes.0),
                };
                guesses[i as usize] = Guess { category, confidence };
            }
        };
        judged.each(budget, look).await;
    }
    let parameters = settle.parameters_before(judged, budget).await;
    let look = |i: u32, block: &Block, verdict| {
        let guess = &mut guesses[i as usize];
        match verdict {
            Verdict::Before => {
                let (category, confidence) = if parameters.contains(&i) {
                    (Category::Parameter, 0.5)
                } else {
                    settle.before(block.bytes.0, judged.kept(block))
                };
                *guess = Guess { category, confidence };
            }
            Verdict::Is(known) => *guess = known,
            Verdict::Late(long) => {
                let reset = block
                    .alloc_event()
                    .is_some_and(|event| !kept_runs.contains(&phases.run(event.0)));
                *guess = settle.late(block.bytes.0, long, reset);
            }
            _ => {}
        }
    };
    judged.each(budget, look).await;
    guesses
}

impl Settle<'_> {
    /// Where a training window shows neither gradients nor states, the blocks from before it tell
    /// by how often each size comes: thrice if there are two states a parameter (Adam), twice if
    /// there is one (momentum).
    async fn multiples(&mut self, judged: Judged<'_>, budget: &mut Budget) {
        if !self.expected.is_empty() || !self.unfinished {
            return;
        }
        let mut sizes: Vec<u64> = Vec::new();
        let look = |_, block: &Block, verdict| {
            if verdict == Verdict::Before && judged.kept(block) && !self.is_workspace(block.bytes.0)
            {
                sizes.push(block.bytes.0);
            }
        };
        judged.each(budget, look).await;
        sizes.sort_unstable();
        let sizes: Vec<(u64, u32)> =
            sizes.chunk_by(|a, b| a == b).map(|s| (s[0], s.len() as u32)).collect();
        let bytes = |each: &dyn Fn(u32) -> bool| -> u128 {
            let sizes = sizes.iter().filter(|(_, count)| each(*count));
            sizes.map(|&(size, count)| u128::from(size) * u128::from(count)).sum()
        };
        let all = bytes(&|_| true);
        let Some(times) =
            [3, 2].into_iter().find(|times| 10 * bytes(&|count| count % times == 0) >= 9 * all)
        else {
            return;
        };
        for (size, count) in sizes.into_iter().filter(|(_, count)| count % times == 0) {
            self.expected.insert(size, count / times);
        }
    }

    /// Whether so few blocks from before the window have this size that they are workspaces.
    fn is_workspace(&self, size: u64) -> bool {
        WORKSPACES.contains(&size)
            && self.before.get(&size).is_some_and(|&count| count <= MANY_WORKSPACES)
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
            // Without stacks a model's own tensors are here too, and likelier than data that is
            // kept for good.
            (false, false) => (Category::Buffer, 0.3),
        }
    }

    /// Which blocks from before the window are parameters, where others (states, gradients) have
    /// the same size.
    ///
    /// A model is built in one go, so its parameters lie together, and before what comes after: the
    /// lowest of each size say where (half of their bytes are below), and then those count that lie
    /// closest to there.
    async fn parameters_before(&self, judged: Judged<'_>, budget: &mut Budget) -> FxHashSet<u32> {
        let mut blocks: Vec<(u64, u64, u32)> = Vec::new();
        let look = |i, block: &Block, verdict| {
            if verdict == Verdict::Before && judged.kept(block) {
                blocks.push((block.bytes.0, block.address.0, i));
            }
        };
        judged.each(budget, look).await;
        blocks.sort_unstable();
        let groups = blocks.chunk_by(|a, b| a.0 == b.0).map(|group| {
            let known = |counts: &Counts| counts.get(&group[0].0).copied().unwrap_or(0);
            (
                group,
                group.len().min(known(&self.expected).saturating_sub(known(&self.found)) as usize),
            )
        });
        let center = |least: usize| {
            let groups = groups.clone().filter(|(_, count)| *count >= least);
            let mut lowest: Vec<(u64, u64)> =
                groups.flat_map(|(g, count)| &g[..count]).map(|b| (b.1, b.0)).collect();
            lowest.sort_unstable();
            let mut half = lowest.iter().map(|b| u128::from(b.1)).sum::<u128>() / 2;
            let middle = lowest.iter().find(|b| {
                let reached = u128::from(b.1) >= half;
                half = half.saturating_sub(b.1.into());
                reached
            });
            middle.map(|b| b.0)
        };
        // The place of one tensor is chance (an early segment may have been free again); that of
        // many is not.
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
        let parameter = reset
            && if self.expected.is_empty() { long } else { self.expected.contains_key(&size) };
        let (category, confidence) =
            if parameter { (Category::Gradient, 0.5) } else { (Category::Temporary, 0.7) };
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
            // States are known, so the rest are gradients; unless the window's backward passes made
            // those.
            if known(&self.states) >= parameters {
                let category =
                    if known(&self.gradients) == 0 { Category::Gradient } else { Category::Buffer };
                return (category, 0.4);
            }
            // Backward passes of the window made none, though parameters have gradients: they are
            // older, and are zeroed in place. They were made before the states, so they are the
            // lower ones.
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
        match (
            self.expected.is_empty(),
            self.phases.any(Phase::Forward),
            self.phases.any(Phase::Backward),
        ) {
            (true, true, false) if self.unfinished => (Category::Unknown, 0.0),
            // Nothing but inference: what stays is the model.
            (true, true, false) => (Category::Parameter, 0.4),
            (false, _, _) => (Category::Buffer, 0.3),
            _ => (Category::Unknown, 0.0),
        }
    }
}
