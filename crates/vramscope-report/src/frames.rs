//! Frames, call stacks and call sites as records.

use crate::text::{self, NO_STACK};
use crate::{SnapshotEntry, Target};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use vramscope_snapshot::{Frame, FrameId, Snapshot, StackId};
use vramscope_trace::{Block, NoStack, is_framework_frame};

/// One frame of a call stack.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FrameRecord<'a> {
    /// The function.
    pub name: Cow<'a, str>,
    /// The file's path.
    pub file: Cow<'a, str>,
    /// The line; 0 if unknown.
    pub line: u32,
}

impl FrameRecord<'_> {
    /// Whether the frame belongs to PyTorch, Python, compiled code or a package's wrappers, not to
    /// the user's program.
    pub fn is_framework(&self) -> bool {
        is_framework_frame(&self.name, &self.file)
    }

    /// The frame as a call site: `model.py:212 forward`.
    pub fn label(&self) -> String {
        text::frame_label(&self.name, &self.file, self.line)
    }

    /// A copy that outlives the snapshot's tables.
    pub fn into_owned(self) -> FrameRecord<'static> {
        FrameRecord {
            name: self.name.into_owned().into(),
            file: self.file.into_owned().into(),
            line: self.line,
        }
    }
}

fn record(snapshot: &Snapshot, frame: Frame) -> FrameRecord<'_> {
    let (name, file) = (snapshot.text(frame.name), snapshot.text(frame.file));
    FrameRecord { name, file, line: frame.line }
}

/// The record of a frame.
pub fn frame(snapshot: &Snapshot, id: FrameId) -> FrameRecord<'_> {
    record(snapshot, snapshot.frame(id))
}

/// The frames of a stack, innermost first.
pub fn frames(snapshot: &Snapshot, stack: StackId) -> Vec<FrameRecord<'_>> {
    snapshot.stack(stack).map(|f| record(snapshot, f)).collect()
}

/// The frames of a stack, innermost first, as copies that outlive the snapshot's tables.
pub fn owned_frames(snapshot: &Snapshot, stack: StackId) -> Vec<FrameRecord<'static>> {
    frames(snapshot, stack).into_iter().map(FrameRecord::into_owned).collect()
}

/// The distinct call stacks of a report's rows. A row refers to its stack by index, because many
/// rows have equal stacks.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct StackTable<'a> {
    stacks: Vec<Vec<FrameRecord<'a>>>,
    #[serde(skip)]
    indices: FxHashMap<StackId, u32>,
}

impl<'a> StackTable<'a> {
    /// The index of a stack, which is added if it is new. The empty stack has an index as well.
    pub fn add(&mut self, snapshot: &'a Snapshot, stack: StackId) -> u32 {
        *self.indices.entry(stack).or_insert_with(|| {
            self.stacks.push(frames(snapshot, stack));
            (self.stacks.len() - 1) as u32
        })
    }

    /// The frames of the stack at an index, innermost first.
    ///
    /// # Panics
    /// [`StackTable::add`] has not returned the index.
    pub fn frames(&self, index: u32) -> &[FrameRecord<'a>] {
        &self.stacks[index as usize]
    }
}

/// The call site of a stack, from its innermost frame in the user's program:
/// `model.py:212 forward`, or [`NO_STACK`].
pub fn site(entry: &SnapshotEntry, stack: StackId) -> String {
    let frame = entry.sites.get(stack).frame;
    frame.map_or_else(|| NO_STACK.to_owned(), |f| record(&entry.snapshot, f).label())
}

/// Who freed a block, from the stack of its free: [`site`], or autograd.
pub fn freed_by(entry: &SnapshotEntry, stack: StackId) -> String {
    if entry.sites.is_autograd(&entry.snapshot, stack) {
        return "autograd, once backward has used it".to_owned();
    }
    site(entry, stack)
}

/// A call stack as tables name it: its index in the snapshot; `None` without frames.
pub(crate) fn stack(id: StackId) -> Option<u32> {
    (id != StackId::EMPTY).then_some(id.0)
}

/// The call site of a row of blocks: [`site`], or why there is no call stack.
pub fn row_site(entry: &SnapshotEntry, stack: StackId, no_stack: Option<NoStack>) -> String {
    no_stack.map_or_else(|| site(entry, stack), |why| text::no_stack(why).to_owned())
}

/// The call site of a block: [`site`], or why there is no call stack.
pub fn block_site(target: Target<'_>, block: &Block) -> String {
    row_site(target.entry, block.stack, target.trace().no_stack(block))
}
