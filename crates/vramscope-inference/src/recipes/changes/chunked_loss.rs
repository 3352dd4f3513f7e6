//! Logits and loss in parts, and logits without a copy in 32 bits.

use crate::category::Category;
use crate::recipes::facts::{Facts, Logits, Pass, logits};
use crate::recipes::lives::{Life, Lives};
use crate::recipes::stacks::Kind;
use crate::recipes::{Applied, Declined};
use crate::step_phases::StepPhase;
use rustc_hash::FxHashSet;

/// `chunked_loss:N`: each part is computed under `torch.utils.checkpoint`.
///
/// All of logits' size, in forward and backward, is divided by N. None of it lives from forward to
/// backward: a part's logits are made again. The gradient of the head's weight adds up beside them.
/// A copy of the logits in 32 bits that a package makes goes: the program computes the loss.
///
/// # Errors
/// No pass has logits.
pub(super) fn chunked(lives: &mut Lives, facts: &Facts, parts: u32) -> Result<Applied, Declined> {
    let parts = u64::from(parts);
    let (mut changed, mut site) = (0, None);
    let mut new = Vec::new();
    for pass in &facts.passes {
        let blocks = lives.born(pass.begin, pass.end);
        let Some(logits) = logits(lives, facts, blocks, pass) else { continue };
        if is_upcast_by_package(lives, &logits, pass) {
            drop_upcast(lives, &logits, pass);
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
    }
    lives.all.extend(new);
    if changed == 0 {
        return Err(Declined::NoLogits);
    }
    Ok(Applied { site, changed, ..Applied::default() })
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

/// Whether a package, and neither the program nor PyTorch itself, copies the logits to 32 bits.
fn is_upcast_by_package(lives: &Lives, logits: &Logits, pass: &Pass) -> bool {
    let first = lives.all[logits.block].bytes;
    let copy = lives
        .born(logits.begin, pass.end)
        .map(|index| &lives.all[index])
        .find(|life| Some(life.bytes) == first.checked_mul(2));
    copy.and_then(|copy| lives.frames(copy).first()).is_some_and(|&frame| {
        let kind = lives.stacks.kind(frame);
        kind.has(Kind::LIBRARY) && !kind.has(Kind::TORCH)
    })
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
        .born(begin, last + 8.5)
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

/// `upcast:off`: the copy of the logits in 32 bits goes, and what is computed from it is half as
/// large.
///
/// # Errors
/// A pass has no logits, or they are not copied.
pub(super) fn without_upcast(lives: &mut Lives, facts: &Facts) -> Result<Applied, Declined> {
    let mut changed = 0;
    for pass in &facts.passes {
        let blocks = lives.born(pass.begin, pass.end);
        let logits = logits(lives, facts, blocks, pass).ok_or(Declined::NoLogits)?;
        if !drop_upcast(lives, &logits, pass) {
            return Err(Declined::NoUpcast);
        }
        changed += 1;
    }
    if changed == 0 {
        Err(Declined::NoLogits)
    } else {
        Ok(Applied { changed, ..Applied::default() })
    }
}

/// Leaves out the copy in 32 bits, and its gradient in 16. False if there is none.
fn drop_upcast(lives: &mut Lives, logits: &Logits, pass: &Pass) -> bool {
    let end = pass.backward.map_or(pass.end, |backward| backward.end);
    let first = lives.all[logits.block].bytes;
    let upcast: Vec<usize> = lives
        .born(logits.begin, end)
        .filter(|&index| {
            let life = &lives.all[index];
            Some(life.bytes) == first.checked_mul(2)
                && !matches!(life.category, Category::Parameter | Category::Gradient)
        })
        .collect();
    let [copy, rest @ ..] = &upcast[..] else { return false };
    lives.all[*copy].drop();
    for &index in rest {
        lives.all[index].bytes /= 2;
    }
    if let Some(backward) = pass.backward {
        let low = lives
            .born(backward.begin, end)
            .find(|&i| lives.all[i].bytes == first && upcast.binary_search(&i).is_err());
        if let Some(low) = low {
            lives.all[low].drop();
        }
    }
    true
}
