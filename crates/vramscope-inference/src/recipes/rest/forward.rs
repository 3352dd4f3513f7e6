//! The first forward pass failed.

use super::{Failure, Rest, backward, made};
use crate::category::Category;
use crate::evidence::marks::Mark;
use crate::recipes::facts::{Facts, model_blocks, with_stack};
use crate::recipes::lives::{Life, Lives, Span};
use crate::step_phases::StepPhase;
use vramscope_trace::slicing::Budget;

/// Parameters of at least this many bytes count the layers.
const LARGE_PARAMETER: u64 = 64 << 10;

/// Parameters whose order is read.
const MAX_PARAMETERS: usize = 4096;

/// Parameters of a layer.
const MAX_PERIOD: usize = 256;

/// The layers to come are as many as the order of the parameters says ([`layers`]), each as the
/// last whole one. Then logits twice (tokens x rows of the largest parameter), then as
/// [`backward::complete`].
///
/// `None` if the layers differ, as in a U-Net.
pub(super) async fn complete(
    lives: &mut Lives,
    facts: &Facts,
    failure: Failure,
    step: i32,
    budget: &mut Budget,
) -> Option<Rest> {
    let at = failure.at;
    budget.charge(4 * lives.all.len() as u64).await;
    let forward = *lives.spans.iter().find(|span| span.phase == StepPhase::Forward)?;
    let blocks = with_stack(lives, lives.born(forward.begin, at));
    let is_kept = |life: &Life| life.stays() && !life.is_of_model();
    let (site, pieces) = model_blocks(lives, &blocks, is_kept).ok()?;
    let layers = layers(lives, facts)?;
    let size = |piece: &Vec<usize>| -> u64 {
        piece.iter().map(|&i| &lives.all[i]).filter(|b| is_kept(b)).map(|b| b.bytes).sum()
    };
    let sizes: Vec<u64> = pieces.iter().map(size).collect();
    let is_alike = pieces.len() < 3 || sizes[1].abs_diff(sizes[0]) as f64 <= 0.02 * sizes[0] as f64;
    if pieces.len() > layers || !is_alike {
        return None;
    }
    let runs_in_piece = blocks
        .last()
        .is_some_and(|&last| site.position(lives, lives.frames(&lives.all[last])).is_some());
    let cut_off = pieces.len() < layers || runs_in_piece;
    let whole = if cut_off { &pieces[..pieces.len() - 1] } else { &pieces[..] };
    let unit = whole.last()?;
    let begin = lives.all[unit[0]].begin;
    let end_of_last = lives.all[*pieces.last()?.last()?].begin;
    let next = match pieces.get(whole.len()) {
        Some(next) => lives.all[next[0]].begin,
        None => lives.all[*unit.last()?].begin + 1.0,
    };
    let is_cut = whole.len() < pieces.len();
    let late: Vec<u64> = blocks
        .iter()
        .map(|&index| &lives.all[index])
        .filter(|life| life.begin > end_of_last - 2.0 && !life.is_of_model())
        .map(|life| life.bytes)
        .collect();
    let width = next - begin;
    if is_cut {
        lives.all.retain(|life| life.begin < next || life.is_of_model());
    }
    let template = *lives.all.get(unit[0])?;
    let range = lives.born(begin, next);
    let mut new: Vec<Life> = Vec::new();
    let missing = layers - whole.len();
    for nth in 0..missing {
        let offset = at + 1.0 + nth as f64 * width - begin;
        let of_unit = lives.all[range.clone()].iter().filter(|life| !life.is_of_model());
        new.extend(of_unit.map(|life| Life {
            begin: life.begin + offset,
            end: life.end + offset,
            ..*life
        }));
    }
    let mut end = at + 1.0 + missing as f64 * width;
    let kept = |begin: f64, bytes: u64| Life {
        bytes,
        ..made(failure, begin, f64::INFINITY, Category::Activation, StepPhase::Forward, step)
    };
    let has_logits = |bytes: u64| late.iter().any(|&of| of >= bytes);
    match logits_to_come(lives, facts, forward.begin) {
        Some((elements, other)) if !has_logits(elements * 2) => {
            let logits = |after| Life { other, ..kept(end + after, elements * 4) };
            new.extend([0.0, 1.0].map(logits));
        }
        _ if !is_cut => new.push(kept(end + 1.0, failure.bytes)),
        _ => {}
    }
    end += 3.0;
    lives.all.append(&mut new);
    lives.sort(budget).await;
    lives.spans.retain(|span| span.begin <= forward.begin);
    if let Some(last) = lives.spans.last_mut() {
        last.end = end;
    }
    lives.spans.push(Span { begin: end, end: end + 1.0, phase: StepPhase::Backward, step });
    let last = lives.all[lives.born(end - 6.0 + 1e-6, end)].iter();
    let last = last.max_by_key(|life| life.bytes);
    let (loss, other) = last.map_or((512, 1.0), |life| (life.bytes, life.other));
    let gradient = Life {
        bytes: loss,
        other,
        stack: None,
        phase: StepPhase::Backward,
        category: Category::Temporary,
        begin: end + 0.5,
        end: end + 6.0,
        dies_in: Some((StepPhase::Backward, step)),
        ..template
    };
    lives.all.push(gradient);
    lives.sort(budget).await;
    let of_loss = Failure { at: end + 0.6, bytes: loss, ..failure };
    backward::complete(lives, facts, of_loss, step, budget).await;
    Some(Rest::Forward)
}

/// The number of layers: how often the sizes of parameters repeat, in the order in which they are
/// made. Of all periods the one counts that covers the most bytes, the shortest of several.
///
/// Without a period that covers most of the model, the least number of large parameters of a size.
fn layers(lives: &Lives, facts: &Facts) -> Option<usize> {
    let parameters = lives.all.iter().filter(|life| {
        life.category == Category::Parameter
            && life.begin < facts.first_forward
            && life.end > facts.first_forward
    });
    let sizes: Vec<u64> = parameters.map(|life| life.bytes).take(MAX_PARAMETERS).collect();
    let mut best: Option<(u64, usize)> = None;
    for period in 1..=(sizes.len() / 2).min(MAX_PERIOD) {
        let mut begin = 0;
        for at in period..=sizes.len() {
            if at < sizes.len() && sizes[at] == sizes[at - period] {
                continue;
            }
            let repeats = (at - begin) / period;
            let bytes = sizes[begin..begin + repeats * period].iter().sum();
            if repeats > 1 && best.is_none_or(|(most, _)| bytes > most) {
                best = Some((bytes, repeats));
            }
            begin = at + 1 - period;
        }
    }
    let total: u64 = sizes.iter().sum();
    let large = facts.parameters.iter().filter(|&(bytes, n)| *bytes >= LARGE_PARAMETER && *n > 1);
    match best {
        Some((bytes, repeats)) if bytes * 2 > total => Some(repeats),
        _ => large.map(|(_, n)| *n as usize).min(),
    }
}

/// Elements of the logits: tokens x the widest width, if the largest parameter has that width, and
/// the pass looks tokens up in an embedding. Then [`Life::other`]: a second parameter of that size
/// is a head. With one alone the head may share it, or there may be none.
fn logits_to_come(lives: &Lives, facts: &Facts, begin: f64) -> Option<(u64, f32)> {
    let made = &lives.all[lives.born(begin, f64::INFINITY)];
    if !made.iter().any(|life| lives.mark(life).has(Mark::EMBEDDING)) {
        return None;
    }
    let other = if *facts.parameters.values().next_back()? > 1 { 1.0 } else { 0.0 };
    let elements = facts.parameters.keys().next_back()? / facts.element;
    let width = *facts.widths.iter().max()?;
    let tokens = facts.tokens?;
    (width > 0 && elements.is_multiple_of(width)).then_some((tokens * width, other))
}
