//! Logits and loss in parts, and logits without a copy in 32 bits.

use crate::category::Category;
use crate::recipes::facts::{Facts, Logits, Pass, logits};
use crate::recipes::lives::{Life, Lives};
use crate::recipes::{Applied, Declined};
use rustc_hash::FxHashSet;

/// `chunked_loss:N`: all of logits' size, in forward and backward, is divided by N. None of it lives
/// from forward to backward: logits are made again. The gradient of the head's weight lives from
/// the begin of backward, a second one at its own place, and for an instant a third, because the
/// engine adds them to a new one.
///
/// # Errors
/// No pass has logits.
pub(super) fn chunked(
    lives: &mut Lives,
    facts: &Facts,
    parts: u32,
) -> Result<Applied, Declined> {
    let parts = u64::from(parts);
    let mut changed = 0;
    let mut new = Vec::new();
    for pass in &facts.passes {
        let blocks = lives.born(pass.begin, pass.end);
        let Some(logits) = logits(lives, facts, blocks.clone(), pass) else { continue };
        let end = pass.backward.map_or(pass.end, |backward| backward.end);
        // Two bytes count only if forward has such logits: they may have a parameter's size.
        let sizes: FxHashSet<u64> = blocks
            .map(|index| &lives.all[index])
            .filter(|life| life.begin >= logits.begin)
            .map(|life| life.bytes)
            .filter(|&bytes| is_of(&logits, bytes))
            .collect();
        let of_logits: Vec<usize> = lives
            .born(logits.begin, end)
            .filter(|&index| sizes.contains(&lives.all[index].bytes))
            .filter(|&index| {
                !matches!(
                    lives.all[index].category,
                    Category::Parameter | Category::Gradient | Category::OptimizerState
                )
            })
            .collect();
        if of_logits.is_empty() {
            continue;
        }
        changed += 1;
        let last = again(lives, facts, pass, &logits, &of_logits, parts, &mut new);
        for index in of_logits {
            let life = &mut lives.all[index];
            life.bytes /= parts;
            life.end = life.end.min(last.unwrap_or(pass.end));
        }
    }
    lives.all.extend(new);
    if changed == 0 { Err(Declined::NoLogits) } else { Ok(Applied { changed, ..Applied::default() }) }
}

/// Whether a size is that of the logits, in two bytes or four.
fn is_of(logits: &Logits, bytes: u64) -> bool {
    [2, 4].iter().any(|element| logits.elements.checked_mul(*element) == Some(bytes))
}

/// Makes logits again before the backward pass, and adds the head's gradients. Returns when the
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
    let is_other = |index: &usize| of_logits.binary_search(index).is_err();
    let head = lives
        .born(backward.begin, last + 8.5)
        .filter(is_other)
        .map(|index| &all[index])
        .filter(|life| {
            matches!(life.category, Category::Gradient | Category::Temporary)
                && facts.parameters.contains_key(&life.bytes)
        })
        .reduce(|largest, life| if life.bytes > largest.bytes { life } else { largest });
    if let Some(head) = head {
        let copy = |begin: f64, end: f64| Life {
            begin,
            end,
            category: Category::Temporary,
            is_new: true,
            ..*head
        };
        let at = head.begin.max(backward.begin);
        new.push(copy(backward.begin - 0.04, last.max(at + 0.5)));
        new.push(copy(at + 0.1, at + 0.3));
    }
    let spread = 0.2 / (backward.begin - logits.begin + 1.0);
    for &index in of_logits {
        let life = lives.all[index];
        if life.begin < backward.begin && life.end >= backward.begin {
            new.push(Life {
                begin: backward.begin - 0.3 + spread * (life.begin - logits.begin),
                end: life.end.min(last),
                bytes: life.bytes / parts,
                is_new: true,
                ..life
            });
            lives.all[index].end = life.end.min(pass.end - 0.5);
        }
    }
    Some(last)
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
        let [copy, rest @ ..] = &upcast[..] else { return Err(Declined::NoUpcast) };
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
        changed += 1;
    }
    if changed == 0 { Err(Declined::NoLogits) } else { Ok(Applied { changed, ..Applied::default() }) }
}
