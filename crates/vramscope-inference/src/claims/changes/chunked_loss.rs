//! Logits and loss in parts.

use super::prelude::*;
use crate::evidence::checkpoint;
use crate::recipes::facts::{Logits, logits};
use rustc_hash::FxHashSet;

/// Backward of the head is over so long after the last block of logits' size.
const REQUESTS_OF_HEAD: f64 = 8.5;

pub(super) static CHUNKED_LOSS: Change = Change {
    form: "chunked_loss:N",
    does: "logits and what is made of them are divided by N, die in forward, and are made again. \
           The gradients of the head's weight add up beside them",
    error_percent: Some(6.0),
    cost: Cost::Edit,
    slows: Slows::Loss,
    tries: |_| vec![Value::Parts(8)],
    cause: Some("copies of the logits: chunked or fused cross-entropy"),
    moves_blocks: true,
    apply: |lives, facts, value, _| chunked(lives, facts, value.parts()),
    is_on: Some(checkpoint::is_loss_in_parts),
    listed_as: "chunked_loss",
    on: [
        "cross entropy runs several times a pass inside of a checkpointing function, or a kernel \
         of Liger or Cut Cross Entropy runs. `partly`: several times, and all parts wait for \
         backward",
        "logits of a whole pass",
    ],
    proof,
    compare,
    must_stay: true,
    line: Line::Loss,
    what: "the head and the loss",
    snippet: include_str!("snippets/chunked_loss.py"),
    called: |value, _| format!("Compute the loss in {value} chunks"),
    found: Some(|passes, _| format!("{passes} passes have logits")),
    ..Change::PLAIN
};

fn proof(state: Enabled, words: &ProofWords) -> String {
    let (parts, ProofWords { at, by, bytes, .. }) = (words.counted("part"), words);
    match state {
        Enabled::On if bytes.0 == 0 => format!("a kernel makes no logits{by}"),
        Enabled::On => format!("{parts} a pass{at}, the largest block has {bytes}{by}"),
        Enabled::Partly => format!("{parts} a pass{at}, and all wait for backward"),
        Enabled::Off => format!("logits of a whole pass{at}: {bytes}"),
    }
}

fn compare(change: &'static Change, a: &Features, b: &Features) -> Compared {
    match came_or_went(change, a, b) {
        Compared::Came(_) => match b.of(change).map_or(0, |of| of.proof.count) {
            parts @ 2.. => Compared::Came(Value::Parts(parts)),
            _ => Compared::Unnamed,
        },
        compared => compared,
    }
}

/// Each part is computed under `torch.utils.checkpoint`.
///
/// All of logits' size, in forward and backward, is divided by N. None of it lives from forward to
/// backward: a part's logits are made again. The gradient of the head's weight adds up beside them.
/// A copy of the logits in 32 bits that a package makes goes: the program computes the loss.
///
/// # Errors
/// No pass has logits.
fn chunked(lives: &mut Lives, facts: &Facts, parts: u32) -> Result<Applied, Declined> {
    let parts = u64::from(parts);
    let (mut changed, mut site) = (0, None);
    let mut new = Vec::new();
    for pass in &facts.passes {
        let blocks = lives.born(pass.begin, pass.end);
        let Some(logits) = logits(lives, facts, blocks, pass) else { continue };
        // The program computes the loss, and a package does not any more.
        let is_of_package = |mark: Mark| mark.has(Mark::LIBRARY) && !mark.has(Mark::TORCH);
        if logits.is_upcast_by(lives, pass, is_of_package) {
            logits.drop_upcast(lives, pass);
        }
        let of_logits = of_logits(lives, &logits, pass);
        if of_logits.is_empty() {
            continue;
        }
        changed += 1;
        let frames = lives.frames(&lives.all[logits.block]);
        site = site.or_else(|| lives.stacks.own(frames).next());
        let last = again(lives, facts, pass, &logits, &of_logits, parts, &mut new);
        for index in of_logits {
            let life = &mut lives.all[index];
            life.bytes /= parts;
            life.end = life.end.min(last.unwrap_or(pass.end));
        }
        if let Some(backward) = pass.backward {
            workspaces(lives, facts, parts, backward.begin, last.unwrap_or(backward.begin));
        }
    }
    lives.all.extend(new);
    Ok(Applied { site, ..Applied::of(changed, Declined::NoLogits)? })
}

/// A kernel's workspace for the gradient of logits is that for one part, or is for the device.
fn workspaces(lives: &mut Lives, facts: &Facts, parts: u64, begin: f64, last: f64) {
    let of_loss = lives.born(begin, last + REQUESTS_OF_HEAD);
    for life in &mut lives.all[of_loss] {
        let other = facts.other_if_scaled(life, 1.0 / parts as f64);
        if other > 1.0 && !life.is_of_model() {
            life.bytes /= parts;
            life.other *= other;
        }
    }
}

/// The blocks of logits' size, ascending. A size of two bytes an element counts only if forward has
/// such logits: a parameter may have it, too.
fn of_logits(lives: &Lives, logits: &Logits, pass: &Pass) -> Vec<usize> {
    let is_size =
        |bytes: u64| [2, 4].iter().any(|by| logits.elements.checked_mul(*by) == Some(bytes));
    let sizes: FxHashSet<u64> = lives.all[lives.born(logits.begin, pass.end)]
        .iter()
        .map(|life| life.bytes)
        .filter(|&bytes| is_size(bytes))
        .collect();
    let end = pass.backward.map_or(pass.end, |backward| backward.end);
    let is_of_model = |life: &Life| {
        matches!(life.category, Category::Parameter | Category::Gradient | Category::OptimizerState)
    };
    lives
        .born(logits.begin, end)
        .filter(|&index| sizes.contains(&lives.all[index].bytes) && !is_of_model(&lives.all[index]))
        .collect()
}

/// Makes logits again before the backward pass, and adds up the head's gradients. Returns when the
/// last of logits' size dies there.
fn again(
    lives: &mut Lives,
    facts: &Facts,
    pass: &Pass,
    logits: &Logits,
    of_logits: &[usize],
    parts: u64,
    new: &mut Vec<Life>,
) -> Option<f64> {
    let backward = pass.backward?;
    let all = &lives.all;
    let of_backward =
        of_logits.iter().map(|&i| &all[i]).filter(|life| life.begin >= backward.begin);
    let ends = of_backward.map(|life| life.end).filter(|&end| end < backward.end);
    let last = ends.fold(backward.begin, f64::max);
    add_up_gradients(lives, facts, of_logits, backward.begin, last, new);
    let in_forward: Vec<usize> = of_logits
        .iter()
        .copied()
        .filter(|&index| lives.all[index].begin < backward.begin)
        .collect();
    let last_birth = in_forward.last().map_or(logits.begin, |&index| lives.all[index].begin);
    let spread = 0.2 / (backward.begin - logits.begin + 1.0);
    let moved = |time: f64| backward.begin - 0.3 + spread * (time - logits.begin);
    for &index in &in_forward {
        let life = lives.all[index];
        let end = if life.end < backward.begin {
            moved(life.end)
        } else if life.end > last || index == logits.block {
            // A variable holds it, and not the graph.
            moved(last_birth + 0.5)
        } else {
            life.end
        };
        new.push(Life {
            begin: moved(life.begin),
            end,
            bytes: life.bytes / parts,
            phase: StepPhase::Backward,
            is_new: true,
            ..life
        });
        if life.end >= backward.begin {
            lives.all[index].end = life.end.min(pass.end - 0.5);
        }
    }
    Some(last)
}

/// The gradient of the head's weight from the parts before lives beside that of each part. For an
/// instant there is a third, their sum: the engine adds the first two to a new one.
fn add_up_gradients(
    lives: &Lives,
    facts: &Facts,
    of_logits: &[usize],
    begin: f64,
    last: f64,
    new: &mut Vec<Life>,
) {
    let is_weight = |bytes: u64| {
        facts.parameters.contains_key(&bytes)
            || (facts.has_autocast && facts.is_half_of_parameter(bytes))
    };
    let head = lives
        .born(begin, last + REQUESTS_OF_HEAD)
        .filter(|index| of_logits.binary_search(index).is_err())
        .map(|index| &lives.all[index])
        .filter(|life| {
            matches!(life.category, Category::Gradient | Category::Temporary)
                && is_weight(life.bytes)
        });
    // Under autocast parts add up in 16 bits.
    let widest = head.clone().map(|life| life.bytes).max();
    let bytes = match widest {
        Some(bytes) if facts.has_autocast && head.clone().any(|b| b.bytes == bytes / 2) => {
            bytes / 2
        }
        Some(bytes) => bytes,
        None => return,
    };
    let Some(&first) = head.clone().find(|life| life.bytes == bytes) else { return };
    let copy = |begin: f64, end: f64| Life {
        begin,
        end,
        category: Category::Temporary,
        is_new: true,
        ..first
    };
    let end = last.max(first.begin) + 0.4;
    new.push(copy(begin - 0.04, end));
    new.push(copy(end - 0.2, end - 0.1));
}
