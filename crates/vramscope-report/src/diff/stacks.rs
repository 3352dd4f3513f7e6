//! The difference between two sides by call stack.

use super::Change;
use crate::FrameRecord;
use crate::side::Side;
use serde::Serialize;
use std::cmp::Reverse;
use vramscope_analysis::{HeldBy, NamedFrame, match_stacks};

/// A call stack in A and in B.
#[derive(Clone, Debug, Serialize)]
pub struct StackDiff {
    /// Bytes.
    #[serde(flatten)]
    pub bytes: Change,
    /// Blocks.
    pub blocks: Change,
    /// The category or `mixed`, from B if B has the stack; null for `reserved_bytes`.
    pub category: Option<String>,
    /// `same` (equal frames), `moved` (other lines or folders), `only_a` or `only_b`.
    pub matched: &'static str,
    /// True if this is the stack of the frees: the blocks were allocated before the window.
    pub of_free: bool,
    /// The call site, from B if B has the stack.
    pub site: String,
    /// The frames, innermost first, from B if B has the stack.
    pub frames: Vec<FrameRecord<'static>>,
}

/// The live memory of two sides at their peaks by call stack, the largest change first.
pub fn stacks(a: &Side, b: &Side) -> Vec<StackDiff> {
    let frames = |side: &Side| -> Vec<Vec<FrameRecord<'static>>> {
        let owned = FrameRecord::into_owned;
        side.stacks.iter().map(|s| side.frames_of(s).into_iter().map(owned).collect()).collect()
    };
    let (frames_a, frames_b) = (frames(a), frames(b));
    let matched = match_stacks(&held(a, &frames_a), &held(b, &frames_b));
    let row = |(i, j): (Option<usize>, Option<usize>)| {
        let (in_a, in_b) = (i.map(|i| &a.stacks[i]), j.map(|j| &b.stacks[j]));
        let shown = in_b.or(in_a)?;
        let shown_frames = j.map(|j| &frames_b[j]).or(i.map(|i| &frames_a[i]))?;
        Some(StackDiff {
            bytes: Change::bytes(in_a.map_or(0, |s| s.bytes), in_b.map_or(0, |s| s.bytes)),
            blocks: Change::new(
                in_a.map_or(0, |s| s.blocks.into()),
                in_b.map_or(0, |s| s.blocks.into()),
            ),
            category: shown.category.clone(),
            matched: match (i, j) {
                (Some(i), Some(j)) if frames_a[i] == frames_b[j] => "same",
                (Some(_), Some(_)) => "moved",
                (_, None) => "only_a",
                (None, _) => "only_b",
            },
            of_free: shown.of_free,
            site: shown.site.clone(),
            frames: shown_frames.clone(),
        })
    };
    let mut rows: Vec<StackDiff> = matched.into_iter().filter_map(row).collect();
    let size =
        |r: &StackDiff| (Reverse(r.bytes.change.unsigned_abs()), Reverse(r.bytes.b.max(r.bytes.a)));
    rows.sort_by(|x, y| {
        size(x)
            .cmp(&size(y))
            .then_with(|| x.site.cmp(&y.site))
            .then_with(|| x.frames.cmp(&y.frames))
    });
    rows
}

/// The stacks of a side as input for [`match_stacks`].
fn held<'a>(side: &Side, frames: &'a [Vec<FrameRecord<'static>>]) -> Vec<HeldBy<'a>> {
    let named =
        |f: &'a FrameRecord<'static>| NamedFrame { name: &f.name, file: &f.file, line: f.line };
    let stacks = side.stacks.iter().zip(frames);
    stacks
        .map(|(stack, frames)| HeldBy {
            bytes: stack.bytes,
            is_of_free: stack.of_free,
            frames: frames.iter().map(named).collect(),
        })
        .collect()
}
