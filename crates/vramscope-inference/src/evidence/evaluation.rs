//! Evaluations: passes without a backward pass, and whether they keep a graph for one.

use super::Run;
use super::marks::Mark;
use super::proof::{Enabled, Proof};
use super::traits::{made, site};
use crate::category::Category;
use crate::recipes::facts::{Facts, Pass, logits};
use crate::recipes::lives::{Life, Lives};
use crate::step_phases::StepPhase;
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;
use vramscope_snapshot::StackId;

/// Fewer blocks are no evaluation of a model.
const MIN_BLOCKS: usize = 8;

/// Smaller passes tell nothing.
const MIN_BYTES: u64 = 1 << 20;

/// The largest share of an evaluation's bytes that a backward pass may free, in percent.
const MAX_USED_PERCENT: u64 = 10;

/// Without a graph at most this share of what an evaluation makes outlives the next requests, in
/// percent: residual streams do. With one at least the second share does. Between them are
/// evaluations whose results wait for their end.
const MAX_KEPT_PERCENT: u64 = 15;
const MIN_GRAPH_PERCENT: u64 = 45;

/// And so does at least this share of its blocks, in percent: logits that a program collects are
/// few.
const MIN_GRAPH_BLOCKS_PERCENT: usize = 25;

/// A layer makes about this many blocks between the birth of its input and that input's last use.
const REQUESTS_OF_LAYER: usize = 6;

/// Blocks with call stacks below which the last one is the result, and not logits.
const MIN_BLOCKS_OF_LOSS: usize = 6;

/// A pass without a backward pass.
#[derive(Clone, Debug)]
pub(crate) struct Evaluation<'a> {
    pub(crate) pass: &'a Pass,
    /// Its data outside of pools of CUDA graphs, by birth.
    pub(crate) blocks: Vec<usize>,
    /// The logits.
    pub(crate) result: Option<usize>,
    /// Bytes that it makes.
    pub(crate) made: u64,
    /// Bytes that outlive the next requests.
    pub(crate) kept: u64,
    kept_blocks: usize,
    /// It runs under checkpointing: its graph keeps few blocks.
    is_checked: bool,
}

impl Evaluation<'_> {
    fn has_many_kept(&self) -> bool {
        self.kept_blocks * 100 >= self.blocks.len() * MIN_GRAPH_BLOCKS_PERCENT
    }

    /// Whether it keeps a graph; `None` if its blocks do not tell.
    pub(crate) fn has_graph(&self) -> Option<bool> {
        let is_most = |percent| self.kept.saturating_mul(100) > self.made.saturating_mul(percent);
        match (is_most(MAX_KEPT_PERCENT), is_most(MIN_GRAPH_PERCENT)) {
            (false, _) => Some(false),
            _ if self.is_checked => Some(true),
            (_, true) if self.has_many_kept() => Some(true),
            _ => None,
        }
    }
}

/// Passes without a backward pass before a failure that are not those of a first training step: it
/// may run a model twice or three times.
const MIN_PASSES: usize = 4;

/// Whether a run has passes that are certain to have no backward pass.
pub(crate) fn evaluates(lives: &Lives, facts: &Facts) -> bool {
    let passes = facts.passes.iter().filter(|pass| pass.backward.is_none()).count();
    let trains = facts.training().next().is_some();
    passes >= if lives.failure.is_none() || trains { 1 } else { MIN_PASSES }
}

/// The evaluations of a run. Passes whose results a later backward pass frees are none, nor is a
/// last pass that may belong to training.
pub(crate) fn evaluations<'a>(lives: &Lives, facts: &'a Facts) -> Vec<Evaluation<'a>> {
    let trained: FxHashSet<StackId> = facts
        .passes
        .iter()
        .filter(|pass| pass.backward.is_some())
        .flat_map(|pass| &lives.all[lives.born(pass.begin, pass.end)])
        .filter_map(|life| life.stack)
        .collect();
    if !evaluates(lives, facts) {
        return Vec::new();
    }
    let passes = facts.passes.iter().filter(|pass| pass.backward.is_none());
    passes.filter_map(|pass| evaluation(lives, facts, &trained, pass)).collect()
}

fn evaluation<'a>(
    lives: &Lives,
    facts: &Facts,
    trained: &FxHashSet<StackId>,
    pass: &'a Pass,
) -> Option<Evaluation<'a>> {
    let range = lives.born(pass.begin, pass.end);
    let is_data = |index: &usize| {
        let life = &lives.all[*index];
        matches!(
            life.category,
            Category::Activation | Category::Temporary | Category::Unknown | Category::Input
        ) && life.pool == 0
            && !lives.frames(life).is_empty()
    };
    let blocks: Vec<usize> = range.clone().filter(is_data).collect();
    let all = || blocks.iter().map(|&index| &lives.all[index]);
    let is_used =
        |life: &&Life| life.dies_in.is_some_and(|(phase, _)| phase == StepPhase::Backward);
    let bytes: u64 = all().map(|life| life.bytes).sum();
    let used: u64 = all().filter(is_used).map(|life| life.bytes).sum();
    if blocks.is_empty() || used.saturating_mul(100) > bytes.saturating_mul(MAX_USED_PERCENT) {
        return None;
    }
    let is_trained = |life: &&Life| life.stack.is_some_and(|stack| trained.contains(&stack));
    let may_be_training =
        all().any(Life::stays) && all().filter(is_trained).count() * 2 > blocks.len();
    if lives.failure.is_none() && may_be_training {
        return None;
    }
    let of_loss =
        if blocks.len() > MIN_BLOCKS_OF_LOSS { logits(lives, facts, range, pass) } else { None };
    let result = of_loss.map(|logits| logits.block);
    let (mut made, mut kept, mut kept_blocks) = (0, 0, 0);
    for (at, &index) in blocks.iter().enumerate() {
        let life = &lives.all[index];
        let Some(&later) = blocks.get(at + REQUESTS_OF_LAYER) else { break };
        if life.category != Category::Input {
            made += life.bytes;
            let is_kept = Some(index) != result && life.end > lives.all[later].begin + 1.0;
            kept += if is_kept { life.bytes } else { 0 };
            kept_blocks += usize::from(is_kept);
        }
    }
    let is_checked = all().any(|life| lives.mark(life).has(Mark::CHECKPOINT));
    Some(Evaluation { pass, blocks, result, made, kept, kept_blocks, is_checked })
}

/// Whether evaluations of the model that is trained keep no graph.
pub(crate) fn is_without_graph(run: Run<'_>) -> Option<(Enabled, Proof)> {
    let trained = run.typical().filter(|pass| pass.backward.is_some())?;
    let sites = made(run, trained);
    let (mut steps, mut best) = (BTreeSet::new(), None::<Evaluation<'_>>);
    for of in evaluations(run.lives, run.facts) {
        let blocks = || of.blocks.iter().map(|&index| &run.lives.all[index]);
        let is_cut = run.lives.failure.is_some_and(|failure| failure.at <= of.pass.end + 1.0);
        let like = blocks().filter(|life| sites.contains_key(&site(run, life)));
        let like: u64 = like.map(|life| life.bytes).sum();
        let is_of_model = like * 2 >= of.made && of.made >= MIN_BYTES;
        // Under checkpointing a graph may keep as little as no graph.
        if of.blocks.len() < MIN_BLOCKS || is_cut || of.is_checked || !is_of_model {
            continue;
        }
        steps.insert(of.pass.step);
        if best.as_ref().is_none_or(|best| of.made > best.made) {
            best = Some(of);
        }
    }
    let best = best?;
    // A pass in each step may be a part of the training.
    let is_named = run.lives.at(best.pass.begin + 1.0).0 == StepPhase::Evaluation;
    let is_rare = is_named || steps.len() < run.lives.steps().len();
    let has_graph = best.has_graph().filter(|&has_graph| !has_graph || is_rare)?;
    let blocks = best.blocks.iter().map(|&index| &run.lives.all[index]);
    let first = blocks.into_iter().find(|life| life.category != Category::Input)?;
    let (state, bytes) =
        if has_graph { (Enabled::Off, best.kept) } else { (Enabled::On, best.made) };
    let site = run.calls_model(first).or_else(|| run.site(first));
    Some((state, Proof { site, bytes, ..Proof::default() }))
}
