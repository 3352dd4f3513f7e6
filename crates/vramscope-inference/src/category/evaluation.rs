//! Finds evaluation: forward passes between training steps that no backward pass follows.
//!
//! A stretch of forward passes before a backward pass ends with the pass that backward uses. Passes
//! before it are evaluation if nothing that they allocate is needed in training.

use super::spans::{Phase, Run, leads};
use super::window::MIN_BYTES;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;
use vramscope_snapshot::{Action, FrameId, Snapshot, StackId};
use vramscope_trace::slicing::{Budget, strides};
use vramscope_trace::{Block, Trace, is_framework_file};

/// The fewest forward passes of an evaluation that no function's name shows. The last pass of a
/// window can be a training step that is cut off.
const MIN_PASSES: usize = 2;

/// An evaluation allocates at least this part of the blocks of a training pass: it runs the model.
/// Half or double of it changes no peak of 101 recordings.
const MIN_MODEL_DIVISOR: usize = 4;

/// Blocks that a pass without gradients keeps as its result: logits and a loss. Half or double of
/// it changes no peak of 101 recordings.
const MAX_RESULTS: usize = 2;

/// Gives the runs of evaluations their phase.
pub(super) async fn mark(
    snapshot: &Snapshot,
    trace: &Trace,
    runs: &mut Vec<Run>,
    budget: &mut Budget,
) {
    let events = trace.device.events.len() as u32;
    let search = Search { snapshot, trace, runs, events, backward: backward_passes(runs) };
    if search.backward.is_empty() {
        return;
    }
    let mut training: FxHashSet<FrameId> = FxHashSet::default();
    let (mut starts_of_training, mut training_blocks) = (1, 0);
    let mut candidates: Vec<Candidate> = Vec::new();
    for stretch in search.stretches() {
        let first = search.training_run(&stretch, budget).await;
        if let Some(run) = first {
            let events = search.runs[run].begin..search.end_of(stretch.end - 1);
            training_blocks = search.blocks(events.clone()).count().max(training_blocks);
            let starts = search.starts(events, budget).await;
            starts_of_training = starts_of_training.max(starts.at.len());
            training.extend(snapshot.stacks.frames(starts.key));
        }
        candidates.extend(search.candidate(stretch.start..first.unwrap_or(stretch.end)));
    }
    let mut names: FxHashMap<FrameId, bool> = FxHashMap::default();
    let mut lives: Vec<(Candidate, Life, bool)> = Vec::with_capacity(candidates.len());
    for candidate in candidates {
        let life = search.life(&candidate, starts_of_training, budget).await;
        let frames = life.stacks.iter().flat_map(|&stack| snapshot.stacks.frames(stack));
        let mut own = frames.filter(|frame| !training.contains(frame));
        let is_named =
            own.any(|&frame| *names.entry(frame).or_insert_with(|| is_named(snapshot, frame)));
        lives.push((candidate, life, is_named));
    }
    let mut found: Vec<Range<u32>> = Vec::new();
    for (candidate, life, is_named) in &lives {
        let alike = || lives.iter().filter(|(_, other, _)| other.starts.key == life.starts.key);
        budget.charge(lives.len() as u64).await;
        // Results of rollouts, of a teacher or of a frozen model are used in training.
        let is_used = alike().any(|(_, other, _)| other.survivors > 0);
        let is_occasional = alike().count() * 2 <= search.backward.len();
        let is_late = search.backward.first().is_some_and(|&first| candidate.begin > first);
        // A single pass at the end can be a step of training that is cut off.
        let passes = life.starts.at.len() / starts_of_training;
        let is_model = life.blocks * MIN_MODEL_DIVISOR >= training_blocks;
        let is_enough = passes >= MIN_PASSES
            || search.backward.last().is_some_and(|&last| candidate.begin < last);
        let is_free = !is_used && is_occasional && is_late && is_model && is_enough;
        if !life.keeps_graph && (*is_named || is_free) {
            found.push(candidate.begin..life.end);
        }
    }
    if !found.is_empty() {
        *runs = cut(runs, &found);
    }
}

/// The first event of each backward pass that follows a forward pass.
fn backward_passes(runs: &[Run]) -> Vec<u32> {
    let mut passes = Vec::new();
    let mut has_forward = false;
    for run in runs {
        match run.phase {
            Phase::Forward => has_forward = true,
            Phase::Backward if std::mem::take(&mut has_forward) => passes.push(run.begin),
            _ => {}
        }
    }
    passes
}

/// Whether a function's name says that it evaluates.
fn is_named(snapshot: &Snapshot, frame: FrameId) -> bool {
    let frame = snapshot.frame(frame);
    let (name, file) = (snapshot.text(frame.name), snapshot.text(frame.file));
    if !file.contains(".py") || is_framework_file(&file.replace('\\', "/")) {
        return false;
    }
    let name = name.to_ascii_lowercase();
    let mut words = name.split(|c: char| !c.is_ascii_alphabetic());
    let is_evaluation = |word: &str| word.starts_with("eval") || word.starts_with("valid");
    !name.contains("train") && words.any(is_evaluation)
}

struct Search<'a> {
    snapshot: &'a Snapshot,
    trace: &'a Trace,
    runs: &'a [Run],
    events: u32,
    backward: Vec<u32>,
}

/// Runs that may be an evaluation.
struct Candidate {
    /// From the first forward run to the last one.
    runs: Range<usize>,
    begin: u32,
    /// The end of the last forward run.
    end: u32,
    /// The end of the program's own code that follows.
    limit: u32,
}

/// The allocations of the first call stack in a range.
struct Starts {
    key: StackId,
    /// Their events.
    at: Vec<u32>,
}

/// What a candidate's blocks show.
struct Life {
    starts: Starts,
    /// Blocks that it allocates.
    blocks: usize,
    /// Blocks that live into a backward pass.
    survivors: usize,
    /// Whether the first pass keeps blocks for a backward pass until the last one ends.
    keeps_graph: bool,
    /// Its call stacks.
    stacks: FxHashSet<StackId>,
    /// The event after its last one.
    end: u32,
}

impl Search<'_> {
    /// Runs of forward passes and of the program's own code, from the first forward run on.
    fn stretches(&self) -> Vec<Range<usize>> {
        let mut found: Vec<Range<usize>> = Vec::new();
        let mut open = None;
        for (i, run) in self.runs.iter().enumerate() {
            match run.phase {
                Phase::Forward => open = open.or(Some(i)),
                Phase::Other => {}
                _ => found.extend(open.take().map(|first| first..i)),
            }
        }
        found.extend(open.map(|first| first..self.runs.len()));
        found
    }

    fn end_of(&self, run: usize) -> u32 {
        self.runs.get(run + 1).map_or(self.events, |next| next.begin)
    }

    fn blocks(&self, events: Range<u32>) -> impl Iterator<Item = &Block> {
        let changes = self.trace.changes_in(events.start + 1..events.end + 1);
        let entering = changes.iter().filter(|change| change.enters());
        entering.map(|change| &self.trace.blocks[change.block() as usize])
    }

    async fn starts(&self, events: Range<u32>, budget: &mut Budget) -> Starts {
        budget.charge(2 * u64::from(events.end - events.start)).await;
        let key = self.blocks(events.clone()).next().map_or(StackId::EMPTY, |block| block.stack);
        let starts = self.blocks(events).filter(|block| block.stack == key);
        Starts { key, at: starts.map(|block| block.enters - 1).collect() }
    }

    /// The forward run of a stretch from which on backward frees what forward keeps. The first one
    /// if it frees nothing; `None` if no backward pass follows.
    async fn training_run(&self, stretch: &Range<usize>, budget: &mut Budget) -> Option<usize> {
        let after = &self.runs[stretch.end..];
        if !leads(after) {
            return None;
        }
        let backward = after.iter().position(|run| run.phase == Phase::Backward)?;
        let is_next = |run: &&Run| matches!(run.phase, Phase::Forward | Phase::Optimizer);
        let end = after[backward..].iter().find(is_next).map_or(self.events, |run| run.begin);
        let freed = after[backward].begin + 1..end + 2;
        for i in stretch.clone().filter(|&i| self.runs[i].phase == Phase::Forward) {
            let events = self.runs[i].begin..self.end_of(i);
            budget.charge(2 * u64::from(events.end - events.start)).await;
            if self.blocks(events).any(|block| freed.contains(&block.leaves)) {
                return Some(i);
            }
        }
        Some(stretch.start)
    }

    fn candidate(&self, runs: Range<usize>) -> Option<Candidate> {
        let last = runs.clone().rev().find(|&i| self.runs[i].phase == Phase::Forward)?;
        let end = self.end_of(last);
        let is_own = self.runs.get(last + 1).is_some_and(|run| run.phase == Phase::Other);
        let limit = if is_own { self.end_of(last + 1) } else { end };
        Some(Candidate {
            begin: self.runs[runs.start].begin,
            runs: runs.start..last + 1,
            end,
            limit,
        })
    }

    /// `pass` is the number of starts of a pass.
    async fn life(&self, candidate: &Candidate, pass: usize, budget: &mut Budget) -> Life {
        let Candidate { begin, end, limit, .. } = *candidate;
        budget.charge(6 * u64::from(limit - begin)).await;
        let starts = self.starts(begin..end, budget).await;
        // The first pass, and the last allocation of all: the end of the first if it is alone.
        let second = starts.at.get(pass).copied().unwrap_or(end);
        let last_alloc = self.blocks(begin..end).last().map_or(end, |block| block.enters);
        let (mut results, mut made) = (0, 0);
        for block in self.blocks(begin..second) {
            made += 1;
            let is_kept = block.bytes.0 >= MIN_BYTES && block.leaves > last_alloc;
            results += usize::from(is_kept);
        }
        // The program's own call stacks between the passes.
        let mut own: FxHashSet<StackId> = FxHashSet::default();
        let mut stacks: FxHashSet<StackId> = FxHashSet::default();
        for i in candidate.runs.clone() {
            let is_own = self.runs[i].phase == Phase::Other;
            for block in self.blocks(self.runs[i].begin..self.end_of(i)) {
                stacks.insert(block.stack);
                if is_own {
                    own.insert(block.stack);
                }
            }
        }
        let end = self.end(begin, end, limit, &own, budget).await;
        let next = self.backward.partition_point(|&event| event < end);
        let survives = |block: &&Block| {
            let after = self.backward.get(next).is_some_and(|&event| block.leaves > event + 1);
            // What stays to the end is a result.
            block.bytes.0 >= MIN_BYTES && after && block.leaves <= self.events
        };
        Life {
            starts,
            blocks: self.blocks(begin..end).count(),
            survivors: self.blocks(begin..end).filter(survives).count(),
            keeps_graph: results > MAX_RESULTS.max(made / 10),
            stacks,
            end,
        }
    }

    /// The event after the last one of the program's own code behind the last pass that frees what
    /// the evaluation allocated, or allocates from a call stack of `own`.
    async fn end(
        &self,
        begin: u32,
        end: u32,
        limit: u32,
        own: &FxHashSet<StackId>,
        budget: &mut Budget,
    ) -> u32 {
        let mut last = end;
        let (events, rows) = (&self.snapshot.events, self.trace.device.events.start);
        for part in strides((limit - end) as usize) {
            budget.charge(4 * part.len() as u64).await;
            for event in end + part.start as u32..end + part.end as u32 {
                let is_own = events.action(rows + event) == Action::ALLOC
                    && own.contains(&events.stack(rows + event));
                if is_own || self.frees_evaluation(event, begin, last) {
                    last = event + 1;
                }
            }
        }
        last
    }

    /// Whether an event frees a block that was allocated from `begin` up to `end`.
    fn frees_evaluation(&self, event: u32, begin: u32, end: u32) -> bool {
        self.trace.changes_at(event + 1).iter().any(|change| {
            let enters = self.trace.blocks[change.block() as usize].enters;
            !change.enters() && enters > begin && enters <= end
        })
    }
}

/// Replaces runs by evaluations, which are runs of their own. The last run of an evaluation goes on
/// behind it.
fn cut(runs: &[Run], found: &[Range<u32>]) -> Vec<Run> {
    let mut out: Vec<Run> = Vec::with_capacity(runs.len() + found.len());
    let mut next = found.iter().peekable();
    for (i, run) in runs.iter().enumerate() {
        let end = runs.get(i + 1).map_or(u32::MAX, |run| run.begin);
        let Some(range) = next.peek().filter(|range| range.start <= run.begin) else {
            out.push(*run);
            continue;
        };
        match out.last_mut().filter(|last| last.phase == Phase::Evaluation) {
            Some(last) if last.begin >= range.start => last.shown += run.shown,
            _ => out.push(Run { phase: Phase::Evaluation, ..*run }),
        }
        if range.end < end {
            out.push(Run { begin: range.end, phase: run.phase, shown: 1 });
        }
        if range.end <= end {
            next.next();
        }
    }
    out
}
