//! The difference between two sides by call stack.

use super::{BytesDiff, CountDiff};
use crate::FrameRecord;
use crate::side::{Side, SideStack};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use vramscope_inference::{HeldBy, NamedFrame, match_stacks};
use vramscope_trace::{NoStack, file_name, is_generated_file};

/// A call stack in A and in B.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StackDiff {
    /// Bytes.
    #[serde(flatten)]
    pub bytes: BytesDiff,
    /// Blocks.
    pub blocks: CountDiff,
    /// The category, or `mixed` if a side or the two sides have several; null for `reserved_bytes`.
    pub category: Option<String>,
    /// How A and B were matched.
    pub matched: Matched,
    /// True if this is the stack of the frees: the blocks were allocated before the window.
    pub of_free: bool,
    /// The call site, from B if B has the stack.
    pub site: String,
    /// Why there is no call stack; null if there is one.
    pub no_stack: Option<NoStack>,
    /// The frames, innermost first, from B if B has the stack.
    pub frames: Vec<FrameRecord<'static>>,
}

/// How a call stack of A and of B were matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Matched {
    /// The frames are equal.
    Same,
    /// The functions are equal. Lines or folders differ.
    Moved,
    /// Only A has the stack.
    OnlyA,
    /// Only B has the stack.
    OnlyB,
}

/// The live memory of two sides at their peaks by call stack, the largest change first.
///
/// Where a side ran compiled code, both sides are summed by the model's lines: a compiler fuses the
/// operations of a line, and its stacks have other callers.
pub fn stacks(a: &Side, b: &Side) -> Vec<StackDiff> {
    let (rows_a, rows_b) = (rows(a), rows(b));
    let compiled: FxHashSet<Function> =
        rows_a.iter().chain(&rows_b).filter_map(Row::compiled_function).collect();
    let [rows_a, rows_b] = [rows_a, rows_b].map(|rows| by_line(rows, &compiled));
    let matched = match_stacks(&held(&rows_a), &held(&rows_b));
    let row = |(i, j): (Option<usize>, Option<usize>)| {
        let (in_a, in_b) = (i.map(|i| &rows_a[i]), j.map(|j| &rows_b[j]));
        let shown = in_b.or(in_a)?;
        Some(StackDiff {
            bytes: BytesDiff::of(in_a.map_or(0, |s| s.bytes), in_b.map_or(0, |s| s.bytes)),
            blocks: CountDiff::new(
                in_a.map_or(0, |s| s.blocks.into()),
                in_b.map_or(0, |s| s.blocks.into()),
            ),
            category: match (in_a.map(|s| &s.category), in_b.map(|s| &s.category)) {
                (Some(Some(a)), Some(Some(b))) if a != b => Some("mixed".to_owned()),
                _ => shown.category.clone(),
            },
            matched: match (i, j) {
                (Some(i), Some(j)) if rows_a[i].frames == rows_b[j].frames => Matched::Same,
                (Some(_), Some(_)) => Matched::Moved,
                (_, None) => Matched::OnlyA,
                (None, _) => Matched::OnlyB,
            },
            of_free: shown.of_free,
            site: shown.site.clone(),
            no_stack: shown.no_stack,
            frames: shown.frames.clone(),
        })
    };
    let mut rows: Vec<StackDiff> = matched.into_iter().filter_map(row).collect();
    let size = |r: &StackDiff| {
        (Reverse(r.bytes.change.0.unsigned_abs()), Reverse(r.bytes.b.max(r.bytes.a)))
    };
    rows.sort_by(|x, y| {
        size(x)
            .cmp(&size(y))
            .then_with(|| x.site.cmp(&y.site))
            .then_with(|| x.frames.cmp(&y.frames))
    });
    rows
}

/// A function and the name of its file.
type Function = (String, String);

/// The live memory of a call stack of one side, or of a line of the model.
struct Row {
    bytes: u64,
    blocks: u32,
    category: Option<String>,
    of_free: bool,
    no_stack: Option<NoStack>,
    site: String,
    frames: Vec<FrameRecord<'static>>,
    /// Whether the row is of a line. Its other frames are those of its largest stack.
    is_line: bool,
}

impl Row {
    /// The innermost frame of the user's own code.
    fn own_frame(&self) -> Option<&FrameRecord<'static>> {
        self.frames.iter().find(|frame| !frame.is_framework())
    }

    fn function(&self) -> Option<Function> {
        let frame = self.own_frame()?;
        Some((frame.name.to_string(), file_name(&frame.file).to_owned()))
    }

    /// The function of the model from which compiled code made the allocations.
    fn compiled_function(&self) -> Option<Function> {
        let is_compiled = self.frames.iter().any(|frame| is_generated_file(&frame.file));
        if is_compiled { self.function() } else { None }
    }
}

fn rows(side: &Side) -> Vec<Row> {
    let row = |stack: &SideStack| Row {
        bytes: stack.bytes,
        blocks: stack.blocks,
        category: stack.category.clone(),
        of_free: stack.of_free,
        no_stack: stack.no_stack,
        site: stack.site.clone(),
        frames: side.frames_of(stack).into_iter().map(FrameRecord::into_owned).collect(),
        is_line: false,
    };
    side.stacks.iter().map(row).collect()
}

/// Sums the rows of the given functions by line. Rows come in order of size, so a sum keeps what
/// describes its largest row.
fn by_line(rows: Vec<Row>, functions: &FxHashSet<Function>) -> Vec<Row> {
    let mut lines: FxHashMap<(FrameRecord<'static>, bool), usize> = FxHashMap::default();
    let mut sums: Vec<Row> = Vec::with_capacity(rows.len());
    for mut row in rows {
        let function = row.function().filter(|function| functions.contains(function));
        let line = function.and_then(|_| Some((row.own_frame()?.clone(), row.of_free)));
        let Some(line) = line else {
            sums.push(row);
            continue;
        };
        let next = sums.len();
        let at = *lines.entry(line).or_insert(next);
        if at == next {
            row.is_line = true;
            sums.push(row);
        } else {
            sums[at].bytes = sums[at].bytes.saturating_add(row.bytes);
            sums[at].blocks += row.blocks;
        }
    }
    sums
}

fn named<'a>(frame: &'a FrameRecord<'static>) -> NamedFrame<'a> {
    NamedFrame { name: &frame.name, file: &frame.file, line: frame.line }
}

/// Rows as input for [`match_stacks`]. A line has only its own frame.
fn held(rows: &[Row]) -> Vec<HeldBy<'_>> {
    fn row(row: &Row) -> HeldBy<'_> {
        HeldBy {
            bytes: row.bytes,
            is_of_free: row.of_free,
            no_stack: row.no_stack,
            frames: match row.own_frame() {
                Some(frame) if row.is_line => vec![named(frame)],
                _ => row.frames.iter().map(named).collect(),
            },
        }
    }
    rows.iter().map(row).collect()
}
