//! A loaded snapshot.

use crate::annotations::Annotation;
use crate::device_kind::DeviceKind;
use crate::events::{Action, Events};
use crate::frames::{Frame, Frames, Stacks};
use crate::ids::{FrameId, PoolId, PoolIndex, StackId, StreamId};
use crate::report::Report;
use crate::segments::{Block, Segment};
use crate::shape_data::ShapeData;
use crate::source_code::SourceCode;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use vramscope_pickle::{StrId, Strings};
use vramscope_units::{Addr, Bytes};

/// The allocator's state on every device when the snapshot was taken, and the events recorded
/// before.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// All strings of the file, interned.
    pub strings: Strings,
    /// Distinct frames.
    pub frames: Frames,
    /// Distinct stacks.
    pub stacks: Stacks,
    /// Trace entries of all devices. Shared, because they are most of a snapshot's memory.
    pub events: Arc<Events>,
    /// Segments, sorted by device and address. Those of pinned host memory are last.
    pub segments: Vec<Segment>,
    /// Blocks of all segments.
    pub blocks: Vec<Block>,
    /// Ends of named ranges, as recorded.
    pub annotations: Vec<Annotation>,
    /// Stream handles. The first is the default stream, 0.
    pub streams: Vec<i64>,
    /// Memory pools. The first is the default pool.
    pub pools: Vec<PoolId>,
    /// Action names, indexed by [`Action`].
    pub actions: Vec<StrId>,
    /// `allocator_settings`: dotted keys and their values as JSON text, in file order.
    pub settings: Vec<(String, String)>,
    /// Texts of source files, if the recorder added them.
    pub source_code: SourceCode,
    /// Tensors that operations returned, if the recorder added them.
    pub shape_data: ShapeData,
    /// Devices with events or segments, sorted by ordinal. Pinned host memory is last.
    pub devices: Vec<Device>,
    /// Defects that reading worked around.
    pub report: Report,
    /// The number of distinct frames and stacks in use.
    pub used: UsedCounts,
    /// Bytes of the pickle (or JSON).
    pub bytes: u64,
    /// Bytes that the devices' allocator adds to each request before it rounds: 32 on Ascend NPUs,
    /// 0 elsewhere.
    pub padding: Bytes,
    /// Addresses of the blocks of `torch_npu`'s workspace allocator, sorted.
    pub workspaces: Vec<Addr>,
}

/// The ordinal of pinned host memory, in place of a device's. PyTorch numbers devices with 8 bits
/// and a sign, so no device has it.
pub const HOST: u32 = 128;

/// The name of a device for texts: `device 0`, or `host` for pinned host memory.
pub fn device_name(ordinal: u32) -> Cow<'static, str> {
    match ordinal {
        HOST => Cow::Borrowed("host"),
        _ => Cow::Owned(format!("device {ordinal}")),
    }
}

/// The rows of one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// The ordinal on the local machine; [`HOST`] for pinned host memory.
    pub device: u32,
    /// The kind of memory.
    pub kind: DeviceKind,
    /// The device's trace, oldest event first: rows of [`Snapshot::events`].
    pub events: Range<u32>,
    /// The device's segments: indices into [`Snapshot::segments`].
    pub segments: Range<u32>,
    /// The range of events that was read, unless all were.
    pub excerpt: Option<Excerpt>,
}

/// The part of a trace that was read. It consists of all events of the requested range, with events
/// of blocks that were live around it before and behind them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// The requested range, in the file's event indices.
    pub events: Range<u32>,
    /// The number of events in the file.
    pub of: u32,
    /// The number of rows before the requested range.
    pub before: u32,
}

/// The number of distinct frames and stacks that events, blocks or segments refer to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsedCounts {
    /// Distinct frames, by name, file and line.
    pub frames: u32,
    /// Distinct stacks, without the empty one.
    pub stacks: u32,
}

impl Snapshot {
    /// About the bytes of memory that the tables hold.
    pub(crate) fn memory(&self) -> usize {
        let settings: usize =
            self.settings.iter().map(|(key, value)| key.len() + value.len()).sum();
        self.strings.memory()
            + self.frames.memory()
            + self.stacks.memory()
            + self.events.memory()
            + size_of_val(&*self.segments)
            + size_of_val(&*self.blocks)
            + size_of_val(&*self.annotations)
            + size_of_val(&*self.streams)
            + size_of_val(&*self.pools)
            + size_of_val(&*self.settings)
            + settings
            + self.source_code.memory()
            + self.shape_data.memory()
    }

    /// A string as text. Invalid UTF-8 becomes U+FFFD.
    pub fn text(&self, id: StrId) -> Cow<'_, str> {
        self.strings.text(id)
    }

    /// The text of a source file, if the snapshot has it.
    pub fn source_text(&self, file: &str) -> Option<Cow<'_, str>> {
        self.source_code.text(&self.strings, file).map(String::from_utf8_lossy)
    }

    /// A line of source, if the snapshot has it. Lines count from 1.
    pub fn source_line(&self, file: &str, line: u32) -> Option<&str> {
        str::from_utf8(self.source_code.line(&self.strings, file, line)?).ok()
    }

    /// The distinct tensors that operations returned at an address of a device, as far as the
    /// recorder logged them: shape and type.
    pub fn logged_tensors(
        &self,
        device: u32,
        address: u64,
    ) -> impl Iterator<Item = (&[u64], Cow<'_, str>)> {
        let tensors = self.shape_data.tensors(&self.strings, device, address);
        tensors.map(|(dims, dtype)| (dims, String::from_utf8_lossy(dtype)))
    }

    /// A frame.
    pub fn frame(&self, id: FrameId) -> Frame {
        self.frames.get(id)
    }

    /// The frames of a stack, innermost first.
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

    /// The pool's id, if known.
    pub fn pool(&self, index: PoolIndex) -> Option<PoolId> {
        self.pools.get(usize::from(index.0)).copied()
    }

    /// The handle of a stream.
    pub fn stream(&self, id: StreamId) -> i64 {
        self.streams[usize::from(id.0)]
    }

    /// The device with this ordinal, if it has events or segments.
    pub fn device(&self, ordinal: u32) -> Option<&Device> {
        self.devices.iter().find(|d| d.device == ordinal)
    }

    /// The segments of a device, in address order.
    pub fn segments_of(&self, device: &Device) -> &[Segment] {
        &self.segments[device.segments.start as usize..device.segments.end as usize]
    }

    /// The blocks of a segment, in address order.
    pub fn blocks_of(&self, segment: &Segment) -> &[Block] {
        &self.blocks[segment.blocks.start as usize..segment.blocks.end as usize]
    }
}
