//! A loaded snapshot.

use crate::annotations::Annotation;
use crate::events::{Action, Events};
use crate::frames::{Frame, Frames, Stacks};
use crate::ids::{FrameId, PoolId, PoolIndex, StackId, StreamId};
use crate::report::Report;
use crate::segments::{Block, Segment};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use vramscope_pickle::{StrId, Strings};

/// One snapshot: the allocator's state on every device when it was taken, and what was recorded
/// before.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Every text of the file, once.
    pub strings: Strings,
    /// Distinct frames.
    pub frames: Frames,
    /// Distinct stacks.
    pub stacks: Stacks,
    /// Trace entries of all devices. Others may hold them, too: they are most of a snapshot.
    pub events: Arc<Events>,
    /// Segments, by device and address. Those of pinned host memory are in [`HostMemory`].
    pub segments: Vec<Segment>,
    /// Blocks of all segments.
    pub blocks: Vec<Block>,
    /// NamedSnapshot ranges, as recorded.
    pub annotations: Vec<Annotation>,
    /// Stream handles; the first is the default stream, 0.
    pub streams: Vec<i64>,
    /// Memory pools; the first is the default pool.
    pub pools: Vec<PoolId>,
    /// Names of actions, by [`Action`].
    pub actions: Vec<StrId>,
    /// `allocator_settings`: dotted keys and their values as JSON text, in the file's order.
    pub settings: Vec<(String, String)>,
    /// Devices with events or segments, by ordinal.
    pub devices: Vec<Device>,
    /// Pinned host memory.
    pub host: HostMemory,
    /// What was odd.
    pub report: Report,
    /// Distinct frames and stacks that something refers to.
    pub used: UsedCounts,
    /// Bytes of the pickle (or JSON) that were read.
    pub bytes: u64,
}

/// One device's rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Local ordinal.
    pub device: u32,
    /// Its trace, oldest first: rows of [`Snapshot::events`].
    pub events: Range<u32>,
    /// Its segments: indices into [`Snapshot::segments`].
    pub segments: Range<u32>,
    /// Which events of its trace these are, where only a range of them was read.
    pub excerpt: Option<Excerpt>,
}

/// A range of a trace's events. The rows of the trace are those inside of it, without a gap; before
/// and behind them are events of what was live around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// Those that were asked for, as the file counts them.
    pub events: Range<u32>,
    /// How many the file has.
    pub of: u32,
    /// RowCounts before the first of them.
    pub before: u32,
}

/// Pinned host memory (since PyTorch 2.14, when it was asked for).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostMemory {
    /// Its trace.
    pub events: Range<u32>,
    /// Its segments.
    pub segments: Vec<Segment>,
    /// Blocks that the file lists without segments.
    pub blocks: Range<u32>,
}

/// How many distinct frames and stacks are in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsedCounts {
    /// Frames, by name, file and line.
    pub frames: u32,
    /// Stacks, the empty one not counted.
    pub stacks: u32,
}

impl Snapshot {
    /// A text, for people.
    pub fn text(&self, id: StrId) -> Cow<'_, str> {
        self.strings.text(id)
    }

    /// A frame.
    pub fn frame(&self, id: FrameId) -> Frame {
        self.frames.get(id)
    }

    /// A stack's frames, innermost first.
    pub fn stack(&self, id: StackId) -> impl ExactSizeIterator<Item = Frame> + DoubleEndedIterator {
        self.stacks.frames(id).iter().map(|&f| self.frames.get(f))
    }

    /// The name of an action.
    pub fn action_name(&self, action: Action) -> Cow<'_, str> {
        match self.actions.get(usize::from(action.0)) {
            Some(&name) => self.text(name),
            None => Cow::Borrowed("(no action)"),
        }
    }

    /// The pool, where it is known.
    pub fn pool(&self, index: PoolIndex) -> Option<PoolId> {
        self.pools.get(usize::from(index.0)).copied()
    }

    /// The stream's handle.
    pub fn stream(&self, id: StreamId) -> i64 {
        self.streams[usize::from(id.0)]
    }

    /// A device, if it has events or segments.
    pub fn device(&self, ordinal: u32) -> Option<&Device> {
        self.devices.iter().find(|d| d.device == ordinal)
    }

    /// The segments of a device.
    pub fn segments_of(&self, device: &Device) -> &[Segment] {
        &self.segments[device.segments.start as usize..device.segments.end as usize]
    }

    /// The blocks of a segment, in address order.
    pub fn blocks_of(&self, segment: &Segment) -> &[Block] {
        &self.blocks[segment.blocks.start as usize..segment.blocks.end as usize]
    }
}
