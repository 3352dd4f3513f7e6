//! Checkpointing: what the model's blocks keep for backward is computed again.

use super::del::places;
use super::prelude::*;
use crate::evidence::{checkpoint, evaluation};
use crate::recipes::facts::{Site, pieces, repeated_sites, with_stack};
use rustc_hash::FxHashSet;
use vramscope_snapshot::StackId;
use vramscope_units::grouped;

/// Smaller blocks between two pieces are no inputs of the next.
const MIN_INPUT: u64 = 64 << 10;

/// Fields of all forms of checkpointing.
pub(super) const PLAIN: Change = Change {
    error_percent: Some(5.0),
    cost: Cost::Time,
    slows: Slows::Recomputes,
    moves_blocks: true,
    group: Group::Graph,
    line: Line::Blocks,
    what: "the call of each block",
    snippet: include_str!("snippets/checkpoint.py"),
    snippet_of_transformers: Some(include_str!("snippets/checkpoint_transformers.py")),
    called: |_, Applied { found, of, .. }| match found {
        0 => "Checkpoint all blocks".to_owned(),
        _ if found == of => format!("Checkpoint all {of} blocks"),
        _ => format!("Checkpoint {found} of the {of} blocks"),
    },
    found: Some(|blocks, site| format!("{blocks} blocks of {site}")),
    ..Change::PLAIN
};

pub(super) static ALL: Change = Change {
    form: "checkpoint:all",
    does: "what the model's blocks keep for backward dies with their result, and is made again \
           before its backward pass",
    tries: |_| vec![Value::None],
    apply: |lives, facts, _, _| checkpoint(lives, facts, &repeated_sites(lives, facts)?, 1),
    is_on: Some(checkpoint::is_on),
    listed_as: "checkpoint",
    on: [
        "the blocks of the model run inside of a checkpointing function (PyTorch, DeepSpeed, \
         Megatron, fairscale, Unsloth), and backward runs modules again. `partly`: the lines of a \
         block run without it, too, or one piece has all blocks",
        "modules run without a compiler, and nothing runs again. Also if checkpointing is called \
         and backward computes nothing again",
    ],
    proof,
    compare: |change, a, b| compare(change, a, b),
    must_stay: true,
    ..PLAIN
};

pub(super) static SITE: Change = Change {
    form: "checkpoint:FILE:LINE",
    does: "the same of the blocks that a line runs",
    apply: |lives, facts, value, cx| {
        checkpoint(lives, facts, &[site_of(lives, facts, value.site(), cx)?], 1)
    },
    ..PLAIN
};

fn proof(state: Enabled, words: &ProofWords) -> String {
    let ProofWords { at, by, other, bytes, .. } = words;
    if state == Enabled::Off && words.count > 0 && !at.is_empty() {
        let blocks = words.counted("block");
        return format!(
            "checkpoint is called for {blocks}{at}, and backward computes nothing again"
        );
    }
    if state == Enabled::Off {
        let passes = words.counted("backward pass");
        return format!("no block of the model is computed again in {passes}");
    }
    if words.at_once > 0 && state == Enabled::Partly {
        let blocks = grouped(words.at_once.into());
        return format!(
            "one checkpointed piece{at} has all {blocks} blocks, backward computes {bytes} again \
             at once{by}"
        );
    }
    let rest = match other {
        Some(line) if state == Enabled::Partly => format!(", the others run at {line}"),
        _ => String::new(),
    };
    let (count, of) = (grouped(words.count.into()), grouped(words.of.into()));
    format!(
        "{count} of {of} blocks run under checkpoint{at}, backward computes {bytes} again{by}{rest}"
    )
}

fn compare(change: &'static Change, a: &Features, b: &Features) -> Compared {
    use Enabled::{Off, On, Partly};
    match (a.state(change), b.state(change)) {
        (Some(Off), Some(On)) => Compared::Came(Value::None),
        // The other half is a change of its own.
        (Some(Off), Some(Partly)) if is_half(b) => Compared::Same,
        (Some(On | Partly), Some(Off)) => Compared::Went,
        (Some(before), Some(after)) if before != after => Compared::Unnamed,
        _ => Compared::Same,
    }
}

/// Whether every other block runs under checkpointing.
pub(super) fn is_half(of: &Features) -> bool {
    of.of(&ALL)
        .is_some_and(|of| of.state == Enabled::Partly && of.proof.count == of.proof.of.div_ceil(2))
}

/// For each piece: what is kept for backward dies when the piece's result is made. The result, and
/// what is made between pieces and used up in this one, lives until the piece is computed again.
/// A copy of all its requests up to the last kept one is put in when backward has freed everything
/// that was made after the piece. Kept blocks die where they did.
///
/// # Errors
/// Nothing runs through the call site again and again.
pub(super) fn checkpoint(
    lives: &mut Lives,
    facts: &Facts,
    sites: &[Site],
    every: usize,
) -> Result<Applied, Declined> {
    let (mut new, mut changed, mut of) = (Vec::new(), 0, 0);
    let all = evaluation::evaluations(lives, facts);
    let evaluations: Vec<f64> = all.iter().map(|of| of.pass.begin).collect();
    for pass in &facts.passes {
        let blocks: Vec<usize> =
            lives.born(pass.begin, pass.end).filter(|&index| !lives.all[index].is_new).collect();
        let stacked = blocks.iter().copied().filter(|&i| !lives.frames(&lives.all[i]).is_empty());
        let stacked: Vec<usize> = stacked.collect();
        let (mut count, mut whole) = (0, 0);
        for &site in sites {
            let found = pieces(lives, &stacked, site);
            if found.len() < 2 {
                continue;
            }
            let stacks = stacks(lives, &stacked, &found);
            whole += stacks.iter().map(|stack| stack.len() as u32).sum::<u32>();
            for piece in stacks.iter().flat_map(|stack| stack.iter().step_by(every)) {
                if pass.backward.is_some() {
                    recompute(lives, &blocks, pass, piece, &mut new);
                } else if !(is_of_package(lives, site) && evaluations.contains(&pass.begin)) {
                    evaluate(lives, &blocks, piece);
                }
                count += 1;
            }
        }
        if count > changed {
            (changed, of) = (count, whole);
        }
    }
    lives.all.extend(new);
    let applied = Applied::of(changed, Declined::NothingRepeats)?;
    let site = sites.first().and_then(|site| lives.stacks.frame_at(site.place));
    Ok(Applied { site, of, ..applied })
}

/// The place of a site through which blocks are made.
fn site_of(lives: &Lives, facts: &Facts, site: &str, cx: Evidence<'_>) -> Result<Site, Declined> {
    let places = places(lives, site, cx);
    let pass = facts.training().next().ok_or(Declined::NoPass)?;
    let blocks = with_stack(lives, lives.born(pass.begin, pass.end));
    let frames = blocks.iter().flat_map(|&index| lives.frames(&lives.all[index]));
    let mut used = frames.map(|&frame| lives.stacks.place(frame));
    used.find(|place| places.contains(place)).map(Site::anywhere).ok_or(Declined::NoSite)
}

/// A piece: when its first and last block are made, and when the next piece begins.
#[derive(Clone, Copy, Debug)]
struct Piece {
    first: f64,
    last: f64,
    next: Option<f64>,
    /// The last block of the piece before.
    before: Option<f64>,
}

impl Piece {
    fn holds(&self, begin: f64) -> bool {
        begin >= self.first && self.next.map_or(begin <= self.last, |next| begin < next)
    }

    /// When all of the piece is done.
    fn stop(&self) -> f64 {
        self.next.unwrap_or(self.last + 1.0)
    }
}

/// The pieces of each stack of blocks. A stack ends where something else runs before the next
/// piece than between the others: the head of an encoder.
fn stacks(lives: &Lives, stacked: &[usize], found: &[Vec<usize>]) -> Vec<Vec<Piece>> {
    let begin = |piece: &Vec<usize>| lives.all[piece[0]].begin;
    let end = |piece: &Vec<usize>| lives.all[piece[piece.len() - 1]].begin;
    let between: Vec<Vec<Option<StackId>>> = found
        .windows(2)
        .map(|two| {
            let from = stacked.partition_point(|&index| lives.all[index].begin <= end(&two[0]));
            let to = stacked.partition_point(|&index| lives.all[index].begin < begin(&two[1]));
            stacked[from..to].iter().map(|&index| lives.all[index].stack).collect()
        })
        .collect();
    let ends_stack = |at: usize| {
        let mut others = between.iter().enumerate().filter(|&(other, _)| other != at);
        found.len() > 2
            && !between[at].is_empty()
            && others.all(|(_, other)| other.iter().all(|stack| !between[at].contains(stack)))
    };
    let mut stacks = vec![Vec::new()];
    for (at, of) in found.iter().enumerate() {
        let is_last = at + 1 == found.len() || ends_stack(at);
        let next = found.get(at + 1).filter(|_| !is_last).map(begin);
        let before = at.checked_sub(1).map(|before| end(&found[before]));
        let piece = Piece { first: begin(of), last: end(of), next, before };
        if let Some(stack) = stacks.last_mut() {
            stack.push(piece);
        }
        if is_last {
            stacks.push(Vec::new());
        }
    }
    stacks
}

fn is_kept_category(category: Category) -> bool {
    !matches!(category, Category::Workspace | Category::Parameter | Category::Buffer)
}

/// Whether a package runs the blocks: it checkpoints them only while the model trains.
fn is_of_package(lives: &Lives, site: Site) -> bool {
    lives.stacks.frame_at(site.place).is_some_and(|frame| {
        let mark = lives.stacks.mark(frame);
        mark.has(Mark::LIBRARY) && !mark.has(Mark::TORCH)
    })
}

/// A graph without backward, as of an evaluation without `no_grad`: what a piece keeps is gone at
/// its end.
fn evaluate(lives: &mut Lives, blocks: &[usize], piece: &Piece) {
    let stop = piece.stop();
    let inside: Vec<usize> = blocks
        .iter()
        .copied()
        .filter(|&index| (piece.first..stop).contains(&lives.all[index].begin))
        .collect();
    let result = inside.iter().copied().rev().find(|&index| lives.all[index].end > stop + 4.0);
    let Some(result) = result else { return };
    let end = lives.all[result].begin + 0.25;
    for index in inside {
        let life = &mut lives.all[index];
        if index != result && life.end > stop + 4.0 && is_kept_category(life.category) {
            life.end = end.max(life.begin + 0.1);
        }
    }
}

fn recompute(lives: &mut Lives, blocks: &[usize], pass: &Pass, piece: &Piece, new: &mut Vec<Life>) {
    let Some(backward) = pass.backward else { return };
    let all = &lives.all;
    let inside: Vec<usize> =
        blocks.iter().copied().filter(|&index| piece.holds(all[index].begin)).collect();
    // The result of the piece is the input of the next.
    let outlives = piece.next.unwrap_or(piece.last + 2.0);
    let result = inside.iter().copied().rev().find(|&index| all[index].end > outlives);
    let kept: FxHashSet<usize> = inside
        .iter()
        .copied()
        .filter(|&index| {
            let life = &all[index];
            Some(index) != result
                && life.end >= backward.begin
                && !life.stays()
                && is_kept_category(life.category)
        })
        .collect();
    let (Some(first), Some(over), Some(last_kept)) = (
        kept.iter().map(|&index| all[index].end).reduce(f64::min),
        kept.iter().map(|&index| all[index].end).reduce(f64::max),
        kept.iter().map(|&index| all[index].begin).reduce(f64::max),
    ) else {
        return;
    };
    // It is computed again when backward has gone through everything made after it.
    let after = blocks[blocks.partition_point(|&index| all[index].begin <= piece.last)..]
        .iter()
        .map(|&index| all[index].end)
        .filter(|end| (backward.begin..backward.end).contains(end) && *end < first);
    let again = after.fold(backward.begin - 0.5, f64::max) + 0.3;
    let stop = piece.stop();
    let spread = 0.5 / (stop - piece.first + 1.0);
    let moved = |time: f64| again + spread * (time - piece.first);
    let begin = piece.before.unwrap_or(pass.begin);
    let result_begin = result.map(|index| all[index].begin);
    for &index in blocks {
        let life = &mut lives.all[index];
        let is_input = (life.begin > begin && life.begin < piece.first)
            && (life.end > piece.first && life.end <= stop)
            && matches!(
                life.category,
                Category::Activation | Category::Temporary | Category::Unknown
            )
            && life.bytes > MIN_INPUT;
        if is_input {
            life.end = over;
        }
    }
    for index in inside {
        let life = lives.all[index];
        if Some(index) == result && piece.next.is_some() {
            lives.all[index].end = life.end.max(again);
        } else if kept.contains(&index) {
            new.push(Life { begin: moved(life.begin), is_new: true, ..life });
            let end = result_begin.map_or(stop - 0.1, |begin| begin + 0.25);
            lives.all[index].end = if end <= life.begin { stop - 0.1 } else { end };
        } else if Some(index) != result
            && life.end < stop + 1.0
            && life.category != Category::Workspace
            && life.begin < last_kept
        {
            // Nothing is made after the last saved one (early stop).
            let (begin, end) = (moved(life.begin), moved(life.end));
            new.push(Life { begin, end, is_new: true, ..life });
        }
    }
}
