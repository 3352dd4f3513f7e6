//! The batch in parts, with gradients that add up.

use super::growth::of_step;
use super::prelude::*;
use super::words::plural;
use crate::evidence::gradients;
use crate::recipes::scaled;
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;
use vramscope_snapshot::StackId;

pub(super) static ACCUMULATE: Change = Change {
    form: "accumulate:N",
    does: "what grows is divided by N, and forward and backward run twice before the optimizer. \
           More passes have the same peak",
    error_percent: Some(5.0),
    cost: Cost::Time,
    slows: Slows::Repeats,
    tries: |_| vec![Value::Parts(2)],
    is_smaller_batch: true,
    moves_blocks: true,
    apply: |lives, facts, value, _| accumulate(lives, facts, value.parts()),
    is_on: Some(is_on),
    listed_as: "accumulate",
    on: ["several backward passes, called from one line, in most steps", "one in each"],
    proof: |_, words| {
        let passes = words.counted("backward pass");
        format!("{passes} before the optimizer in each of {}", plural(words.of, "step"))
    },
    compare: |_, a, b| compare(a, b),
    line: Line::Training,
    what: "the forward pass of a training step",
    snippet: include_str!("snippets/accumulate.py"),
    called: |value, _| match value.parts() {
        2 => "Accumulate 2 half batches".to_owned(),
        parts => format!("Accumulate {parts} parts of the batch"),
    },
    ..Change::PLAIN
};

fn is_on(run: Run<'_>) -> Option<(Enabled, Proof)> {
    let (count, of) = gradients::passes_per_step(run)?;
    let site = |pass: &Pass| run.made_in(pass).find_map(|(_, life)| run.calls_model(life));
    // Passes of several models, or several losses, are no micro-batches.
    let caller = |pass: &Pass| Some(run.lives.stacks.place(site(pass)?));
    let first = run.training().next()?;
    if count > 1 && !run.training().all(|pass| caller(pass) == caller(first)) {
        return None;
    }
    let state = if count > 1 { Enabled::On } else { Enabled::Off };
    Some((state, Proof { site: site(first), count, of, ..Proof::default() }))
}

fn compare(a: &Features, b: &Features) -> Compared {
    match of_step(a, b) {
        Err(unnamed) => unnamed,
        Ok(Some(of)) => match of.passes {
            [before, after] if after < before => Compared::Went,
            [before, after] if after == before => Compared::Same,
            [before, after] if after.is_multiple_of(before) => {
                Compared::Came(Value::Parts(after / before))
            }
            _ => Compared::Unnamed,
        },
        Ok(None) => Compared::Same,
    }
}

/// All that grows is divided by N. Forward and backward run a second time before
/// the optimizer. Their gradients are temporaries that end where the next one is born. Evaluations
/// stay as they are.
///
/// Two passes show the peak of any number of them: gradients live from the first on.
///
/// # Errors
/// No pass has a backward pass.
fn accumulate(lives: &mut Lives, facts: &Facts, parts: u32) -> Result<Applied, Declined> {
    let trained: Vec<i32> =
        facts.passes.iter().filter(|p| p.backward.is_some()).map(|p| p.step).collect();
    if trained.is_empty() {
        return Err(Declined::NoPass);
    }
    let mut changed = 0;
    for life in &mut lives.all {
        if facts.grows(life) && !facts.is_in_evaluation(life.begin) {
            life.other *= facts.other_if_scaled(life, 1.0 / f64::from(parts));
            life.bytes = scaled(life.bytes, 1.0 / f64::from(parts));
            changed += 1;
        }
    }
    let mut per_step: BTreeMap<i32, u32> = BTreeMap::new();
    for step in trained {
        *per_step.entry(step).or_default() += 1;
    }
    // Several micro-batches are there already: each only gets smaller.
    if per_step.values().any(|&count| count > 1) {
        return Applied::of(changed, Declined::NothingGrows);
    }
    let mut new = Vec::new();
    let forward: BTreeMap<i32, f64> = facts
        .passes
        .iter()
        .rev()
        .filter(|pass| pass.backward.is_some() || is_used_by_backward(lives, pass))
        .map(|pass| (pass.step, pass.begin))
        .collect();
    let first_step = forward.keys().next().copied();
    let last_step = forward.keys().next_back().copied();
    // Blocks that outlive the next step, too, are held on purpose.
    let held: FxHashSet<(StackId, u64)> = lives
        .all
        .iter()
        .filter(|life| life.phase == StepPhase::Forward && Some(life.step) < last_step)
        .filter(|life| life.dies_in.is_none_or(|(_, step)| step > life.step + 1))
        .filter_map(|life| Some((life.stack?, life.bytes)))
        .collect();
    for (&step, &begin) in &forward {
        let Some(backward) = lives.span(step, StepPhase::Backward) else { continue };
        let inputs = lives.spans.iter().rfind(|span| {
            span.step == step && span.phase == StepPhase::Other && span.end <= begin + 1.0
        });
        let begin_of_inputs = match inputs {
            Some(span) if Some(step) != first_step => span.begin,
            _ => {
                let before = lives.all[lives.born(-1.0, begin)].iter();
                let inputs = before.filter(|b| b.category == Category::Input && b.step == step);
                inputs.map(|input| input.begin).fold(begin, f64::min)
            }
        };
        let second = Second {
            from: begin_of_inputs,
            to: backward.1,
            forward: begin,
            backward: backward.0,
            next_forward: forward.get(&(step + 1)).copied(),
        };
        second.add(lives, &mut new);
        for index in lives.born(second.from, second.to) {
            let life = lives.all[index];
            // Blocks that the program holds from each step stay.
            let is_held = life.stack.is_some_and(|stack| held.contains(&(stack, life.bytes)));
            let is_of_pass = !life.is_of_model() && life.category != Category::Gradient && !is_held;
            if let Some(end) = second.first_end(&life).filter(|_| is_of_pass) {
                lives.all[index].end = end;
            }
        }
    }
    lives.all.extend(new);
    Applied::of(changed, Declined::NothingGrows)
}

/// Whether backward of the step frees most of what a part of forward left. An evaluation in the
/// step leaves nothing to it.
fn is_used_by_backward(lives: &Lives, pass: &Pass) -> bool {
    let Some(backward) = lives.span(pass.step, StepPhase::Backward) else { return false };
    let (mut left, mut used) = (0_u64, 0_u64);
    for life in &lives.all[lives.born(pass.begin, pass.end)] {
        if life.end > pass.end && !life.is_of_model() {
            left += life.bytes;
            let is_used = (backward.0..backward.1).contains(&life.end);
            used += if is_used { life.bytes } else { 0 };
        }
    }
    used * 2 > left
}

/// The second micro-batch of a step: its time is squeezed into the last half event of the first's
/// backward pass.
struct Second {
    /// From the first input to the end of backward.
    from: f64,
    to: f64,
    forward: f64,
    backward: f64,
    next_forward: Option<f64>,
}

impl Second {
    /// When something happens in the second pass that happens at `time` in the first.
    fn at(&self, time: f64) -> f64 {
        self.to - 0.5 + 0.5 * (time - self.from) / (self.to - self.from)
    }

    fn add(&self, lives: &Lives, new: &mut Vec<Life>) {
        let range = lives.born(self.from, self.to);
        let gradients: Vec<f64> = lives.all[range.clone()]
            .iter()
            .filter(|life| life.category == Category::Gradient)
            .map(|life| life.begin)
            .collect();
        for life in &lives.all[range] {
            if matches!(
                life.category,
                Category::Parameter
                    | Category::OptimizerState
                    | Category::Buffer
                    | Category::Workspace
            ) {
                continue;
            }
            let begin = self.at(life.begin);
            if life.category == Category::Gradient {
                let after = gradients.partition_point(|&birth| birth <= life.begin);
                let last = self.to - 0.01;
                let end = gradients.get(after).map_or(last, |next| (next + 0.5).min(last));
                let category = Category::Temporary;
                new.push(Life { begin, end: self.at(end), category, is_new: true, ..*life });
                continue;
            }
            new.push(Life { begin, end: self.end(life), is_new: true, ..*life });
        }
    }

    /// When the second pass's block dies. Old logits live into the next forward pass: those of the
    /// first micro-batch die as far into the second's.
    fn end(&self, life: &Life) -> f64 {
        if life.end < self.to { self.at(life.end) } else { life.end }
    }

    /// When the first pass's block dies, if it lived beyond the step.
    fn first_end(&self, life: &Life) -> Option<f64> {
        if life.end < self.to {
            return None;
        }
        if life.stays() {
            let dies = matches!(
                life.category,
                Category::Activation | Category::Input | Category::Temporary
            );
            return dies.then(|| self.at(self.backward));
        }
        Some(match self.next_forward {
            Some(next) if life.end >= next => {
                let into = life.end - next + (self.forward - self.from);
                self.at(self.from + into).min(self.at(self.to))
            }
            Some(_) => self.at(self.from + 1.0),
            None => self.at(self.backward),
        })
    }
}
