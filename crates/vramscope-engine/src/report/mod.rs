//! What the program prints of a file, with its documented JSON forms (docs/cli.md): one module a
//! command, and the exports.
//!
//! Each is a function from a [`Part`] to a value that serializes; text for people is made from the
//! same value by the program.

pub mod anomalies;
pub mod apart;
pub mod blocks;
pub mod check;
pub mod diff;
pub mod export;
pub mod flame;
pub mod info;
pub mod peak;
pub mod rank;
pub mod segments;
pub mod side;
pub mod state;
pub mod summary;

use crate::file::Part;
use crate::text;
use serde::Serialize;
use std::borrow::Cow;
use vramscope_analysis::{Category, Exactness, Trace};
use vramscope_snapshot::{Frame, FrameId, PoolIndex, SegmentType, Snapshot, StackId};

/// One device of one snapshot of a file.
#[derive(Clone, Copy)]
pub struct Target<'a> {
    /// The path that the file was given by, with `#name` behind it where it holds several
    /// snapshots.
    pub path: &'a str,
    /// The snapshot.
    pub part: &'a Part,
    /// Index of the device's trace in it.
    pub index: usize,
}

impl<'a> Target<'a> {
    /// The tables.
    pub fn snapshot(&self) -> &'a Snapshot {
        &self.part.snapshot
    }

    /// The device's trace.
    pub fn trace(&self) -> &'a Trace {
        &self.part.traces[self.index]
    }

    /// The device's ordinal.
    pub fn device(&self) -> u32 {
        self.trace().device.device
    }
}

/// The slot after an event; -1 is the state before the window.
pub(crate) fn slot_of(event: Option<u32>) -> u32 {
    event.map_or(0, |e| e + 1)
}

/// The event that a slot comes after; -1 for the state before the window.
pub(crate) fn event_of(slot: u32) -> i64 {
    i64::from(slot) - 1
}

/// An event's time since the Unix epoch in microseconds; null without a clock, and before the
/// window.
pub(crate) fn time_of(trace: &Trace, slot: u32) -> Option<i64> {
    let clock = trace.clock.as_ref()?;
    slot.checked_sub(1).map(|event| clock.start.0 + clock.offset(event) as i64)
}

pub(crate) fn exactness(of: Exactness) -> &'static str {
    match of {
        Exactness::Exact => "exact",
        Exactness::Estimate => "estimate",
    }
}

/// One frame of a call stack.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct FrameRow<'a> {
    /// The function.
    pub name: Cow<'a, str>,
    /// The file.
    pub file: Cow<'a, str>,
    /// The line; 0 when unknown.
    pub line: u32,
}

impl FrameRow<'_> {
    /// Whether it stands between the user's code and the allocator: PyTorch's, Python's, or
    /// compiled.
    pub fn is_framework(&self) -> bool {
        vramscope_analysis::is_framework_file(&self.file)
    }

    /// `file.py:31 function`, the file without its folders; a C++ function without its arguments.
    pub fn short(&self) -> String {
        match text::place_if_known(&self.file, self.line) {
            _ if self.line == 0 && self.name.contains("::") => {
                text::without_arguments(&self.name).to_owned()
            }
            None => self.name.to_string(),
            Some(place) => format!("{place} {}", self.name),
        }
    }
}

fn row(snapshot: &Snapshot, frame: Frame) -> FrameRow<'_> {
    FrameRow { name: snapshot.text(frame.name), file: snapshot.text(frame.file), line: frame.line }
}

/// A frame's texts.
pub(crate) fn frame(snapshot: &Snapshot, id: FrameId) -> FrameRow<'_> {
    row(snapshot, snapshot.frame(id))
}

/// A stack's frames, innermost first.
pub(crate) fn frames(snapshot: &Snapshot, stack: StackId) -> Vec<FrameRow<'_>> {
    snapshot.stack(stack).map(|f| row(snapshot, f)).collect()
}

/// The call site that names a stack: its innermost frame that is the user's own.
pub(crate) fn site(part: &Part, stack: StackId) -> String {
    let frame = part.sites.get(stack).frame;
    frame.map_or_else(|| "(no stack)".to_owned(), |f| row(&part.snapshot, f).short())
}

/// `(0, 0)` is the default pool; null where the file does not tell.
pub(crate) fn pool(snapshot: &Snapshot, index: PoolIndex) -> Option<[u64; 2]> {
    snapshot.pool(index).map(|p| [p.0, p.1])
}

pub(crate) fn segment_type(of: SegmentType) -> &'static str {
    match of {
        SegmentType::Small => "small",
        SegmentType::Large => "large",
        SegmentType::Unknown => "unknown",
    }
}

/// Bytes and blocks of a category.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CategoryShare {
    /// Its name.
    pub category: &'static str,
    /// Bytes of it.
    pub bytes: u64,
    /// Blocks of it.
    pub blocks: u32,
}

/// Adds blocks up by category, most bytes first.
pub(crate) fn by_category(blocks: impl Iterator<Item = (Category, u64)>) -> Vec<CategoryShare> {
    let mut shares: Vec<CategoryShare> = Category::ALL
        .iter()
        .map(|c| CategoryShare { category: c.name(), bytes: 0, blocks: 0 })
        .collect();
    for (category, bytes) in blocks {
        let share = &mut shares[category as usize];
        share.bytes += bytes;
        share.blocks += 1;
    }
    shares.retain(|s| s.blocks > 0);
    shares.sort_by_key(|s| std::cmp::Reverse(s.bytes));
    shares
}
