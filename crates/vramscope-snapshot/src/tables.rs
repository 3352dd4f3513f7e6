//! The tables under construction: each container that the parser completes becomes a row.

mod event;
mod key_order;
mod segment;

use crate::annotations::Annotation;
use crate::event_range::RowRemap;
use crate::events::{Event, Events};
use crate::frames::{Frame, Frames, Stacks};
use crate::ids::{FrameId, PoolId, PoolIndex, StackId, StreamId};
use crate::json_text::{MAX_SHOWN_BYTES, cut, json_text};
use crate::keys;
use crate::report::{Report, WarningKind};
use crate::segments::{Block, Segment};
use key_order::KeyOrder;
use rustc_hash::{FxHashMap, FxHashSet};
pub(crate) use segment::with_devices;
use std::ops::Range;
use vramscope_pickle::{Budget, ByteOffset, Heap, Kind, StrId, Value};

/// Kinds of a [`Value::ext`]: the table that a taken container went to.
pub(crate) mod ext {
    pub(crate) const EVENT: u8 = 0;
    pub(crate) const FRAME: u8 = 1;
    pub(crate) const STACK: u8 = 2;
    pub(crate) const BLOCK: u8 = 3;
    pub(crate) const SEGMENT: u8 = 4;
    pub(crate) const ANNOTATION: u8 = 5;
    pub(crate) const POOL: u8 = 6;
    pub(crate) const TEXT: u8 = 7;
    pub(crate) const HISTORY: u8 = 8;
    /// A list of rows: an index into `Tables::row_ranges`.
    pub(crate) const ROW_RANGE: u8 = 9;
    /// A stack that may have further batches: an index into `Tables::long_stacks`.
    pub(crate) const LONG_STACK: u8 = 10;
}

/// A stack of at least one batch of frames.
pub(crate) enum LongStack {
    /// Nothing refers to it yet, and it may grow.
    Open(Vec<FrameId>),
    /// Something refers to it.
    Used(StackId),
}

/// A list whose items became consecutive rows of one table.
#[derive(Clone, Copy)]
pub(crate) struct RowRange {
    pub(crate) kind: u8,
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// Whether a row refers to these rows, so that the list must not change.
    pub(crate) is_used: bool,
}

impl RowRange {
    pub(crate) fn range(self) -> Range<u32> {
        self.start..self.end
    }
}

/// The tables under construction.
pub(crate) struct Tables {
    pub(crate) frames: Frames,
    pub(crate) stacks: Stacks,
    pub(crate) events: Events,
    pub(crate) segments: Vec<Segment>,
    pub(crate) blocks: Vec<Block>,
    pub(crate) annotations: Vec<Annotation>,
    pub(crate) streams: Vec<i64>,
    pub(crate) pools: Vec<PoolId>,
    /// Action names. PyTorch's come first, in [`Action`](crate::Action)'s order.
    pub(crate) actions: Vec<StrId>,
    pub(crate) row_ranges: Vec<RowRange>,
    pub(crate) long_stacks: Vec<LongStack>,
    /// Frames in `long_stacks`.
    long_frames: usize,
    /// Stream and pool indices by handle and id.
    stream_index: FxHashMap<i64, StreamId>,
    pool_index: FxHashMap<PoolId, PoolIndex>,
    /// The rows of lists that no sink took, by kind, so that each list is copied once.
    untaken: FxHashMap<(Value, u8), Range<u32>>,
    pub(crate) history: Vec<(u64, StackId)>,
    /// Whether the newest block has a history, which precedes its own stack.
    pub(crate) has_history: bool,
    /// Blocks without an address in the file that have got one from their segment.
    pub(crate) placed: FxHashSet<u32>,
    pub(crate) report: Report,
    scratch: Vec<FrameId>,
    pub(crate) key_order: KeyOrder,
    /// Whether the last stack consisted of frames only.
    pub(crate) only_frames: bool,
    /// The state of the event filter, unless all events are kept.
    pub(crate) filter: Option<Box<crate::event_range::FilterState>>,
    /// Maps event numbers to rows.
    pub(crate) remap: RowRemap,
    /// Blocks of `torch_npu`'s workspace allocator: address and size.
    pub(crate) workspaces: Vec<(u64, u64)>,
    /// How many made-up events of the last of them are still to come.
    made_up: u8,
}

impl Tables {
    /// Bytes of memory that the tables hold, without the parser.
    pub(crate) fn memory(&self) -> usize {
        self.events.memory()
            + self.frames.memory()
            + self.stacks.memory()
            + self.segments.capacity() * size_of::<Segment>()
            + self.blocks.capacity() * size_of::<Block>()
            + self.annotations.capacity() * size_of::<Annotation>()
            + self.history.capacity() * size_of::<(u64, StackId)>()
            + self.row_ranges.capacity() * size_of::<RowRange>()
            + self.long_stacks.capacity() * size_of::<LongStack>()
            + self.long_frames * 2 * size_of::<FrameId>()
            + (self.streams.capacity() + self.stream_index.capacity()) * 16
            + (self.pools.capacity() + self.pool_index.capacity() * 2) * size_of::<PoolId>()
            + self.untaken.capacity() * 32
            + (self.placed.capacity() + self.workspaces.capacity() * 2) * 8
            + self.filter.as_ref().map_or(0, |filter| filter.memory())
    }

    /// Whether an event, a block or a segment was read.
    pub(crate) fn has_rows(&self) -> bool {
        !(self.events.is_empty() && self.blocks.is_empty() && self.segments.is_empty())
    }

    pub(crate) fn new() -> Self {
        Self {
            frames: Frames::default(),
            stacks: Stacks::default(),
            events: Events::default(),
            segments: Vec::new(),
            blocks: Vec::new(),
            annotations: Vec::new(),
            streams: vec![0],
            pools: vec![PoolId::DEFAULT],
            actions: (keys::ALLOC..=keys::FREE)
                .chain([keys::WORKSPACE_SNAPSHOT, keys::SEGMENT_ALLOC, keys::ALLOC])
                .map(StrId)
                .collect(),
            row_ranges: Vec::new(),
            long_stacks: Vec::new(),
            long_frames: 0,
            stream_index: FxHashMap::default(),
            pool_index: FxHashMap::from_iter([(PoolId::DEFAULT, PoolIndex(0))]),
            untaken: FxHashMap::default(),
            history: Vec::new(),
            has_history: false,
            placed: FxHashSet::default(),
            report: Report::default(),
            scratch: Vec::new(),
            key_order: KeyOrder::default(),
            only_frames: false,
            filter: None,
            remap: RowRemap::default(),
            workspaces: Vec::new(),
            made_up: 0,
        }
    }

    /// An address modulo 2^64: PyTorch's C++ pickler writes addresses from 2^63 on as negative
    /// numbers.
    #[inline]
    fn address(&mut self, heap: &Heap, value: Value, at: ByteOffset) -> u64 {
        match value.kind() {
            Kind::Int(address) => address as u64,
            _ => self.odd_address(heap, value, at),
        }
    }

    #[inline(never)]
    fn odd_address(&mut self, heap: &Heap, value: Value, at: ByteOffset) -> u64 {
        let address = heap.int(value);
        if address.is_none() {
            self.warn_not_a_number("an address", at);
        }
        address.unwrap_or(0) as u64
    }

    #[inline]
    pub(crate) fn bytes(&mut self, heap: &Heap, value: Value, at: ByteOffset) -> u64 {
        match value.kind() {
            Kind::Int(bytes) if bytes >= 0 => bytes as u64,
            _ => self.odd_bytes(heap, value, at),
        }
    }

    /// A size that is not a small integer. Sizes from 2^63 on are damage, but are kept as written.
    #[inline(never)]
    fn odd_bytes(&mut self, heap: &Heap, value: Value, at: ByteOffset) -> u64 {
        let bytes = heap.int(value).and_then(|bytes| u64::try_from(bytes).ok());
        if bytes.is_none() {
            self.warn_not_a_number("a size", at);
        }
        bytes.unwrap_or(0)
    }

    pub(crate) fn warn_not_a_number(&mut self, what: &'static str, at: ByteOffset) {
        self.report.warn(WarningKind::NotANumber, Some(at), || {
            format!(
                "{what} is missing, negative or not a number in the dict that ends at byte {at}: \
                 0 is used"
            )
        });
    }

    #[inline]
    fn stream(&mut self, heap: &Heap, value: Value, at: ByteOffset) -> StreamId {
        if value.kind() == Kind::Int(0) { StreamId(0) } else { self.other_stream(heap, value, at) }
    }

    /// The stream of a handle other than the integer 0.
    #[inline(never)]
    fn other_stream(&mut self, heap: &Heap, value: Value, at: ByteOffset) -> StreamId {
        // PyTorch writes the 64 bits of the handle signed or unsigned.
        let handle = heap.int(value).map_or(0, |handle| handle as i64);
        if handle == 0 {
            return StreamId(0);
        }
        if let Some(&known) = self.stream_index.get(&handle) {
            return known;
        }
        let index = self.streams.len();
        if index < usize::from(u16::MAX) {
            self.streams.push(handle);
            self.stream_index.insert(handle, StreamId(index as u16));
            return StreamId(index as u16);
        }
        self.report.warn(WarningKind::TooManyStreams, Some(at), || {
            "more than 65,534 streams: further ones are shown as the default stream".into()
        });
        StreamId(0)
    }

    fn pool(&mut self, heap: &Heap, value: Value, at: ByteOffset) -> PoolIndex {
        let value = heap.resolve(value);
        if let Some(index) = value.as_ext(ext::POOL) {
            return PoolIndex(index as u16);
        }
        match *heap.items(value) {
            [a, b] => self.pool_of(heap, a, b, at).unwrap_or(PoolIndex::UNKNOWN),
            _ => PoolIndex::UNKNOWN,
        }
    }

    pub(crate) fn pool_of(
        &mut self,
        heap: &Heap,
        a: Value,
        b: Value,
        at: ByteOffset,
    ) -> Option<PoolIndex> {
        let is_int = |v: Value| matches!(v.kind(), Kind::Int(_) | Kind::Long(_));
        let whole = |v| heap.int(v).filter(|_| is_int(v)).and_then(|i| u64::try_from(i).ok());
        let id = PoolId(whole(a)?, whole(b)?);
        if let Some(&known) = self.pool_index.get(&id) {
            return Some(known);
        }
        let index = self.pools.len();
        if index < usize::from(u16::MAX) {
            self.pools.push(id);
            self.pool_index.insert(id, PoolIndex(index as u16));
            return Some(PoolIndex(index as u16));
        }
        self.report.warn(WarningKind::TooManyPools, Some(at), || {
            "more than 65,534 memory pools: further ones are shown as unknown".into()
        });
        Some(PoolIndex::UNKNOWN)
    }

    #[inline]
    pub(crate) fn stack(&mut self, heap: &Heap, value: Value) -> StackId {
        let value = heap.resolve(value);
        match value.as_ext(ext::STACK) {
            Some(id) => StackId(id),
            None => self.long_stack(heap, value),
        }
    }

    /// A stack of several batches. The empty stack for a list that is empty or does not begin with
    /// a frame.
    #[inline(never)]
    fn long_stack(&mut self, heap: &Heap, value: Value) -> StackId {
        let Some(index) = value.as_ext(ext::LONG_STACK) else {
            if matches!(value.kind(), Kind::Ext(..)) || !heap.items(value).is_empty() {
                self.report.warn(WarningKind::NotAFrame, None, || {
                    let shown = cut(&json_text(heap, value), MAX_SHOWN_BYTES);
                    format!("a call stack is {shown}, not a list of frames: it is left out")
                });
            }
            return StackId::EMPTY;
        };
        let stack = &mut self.long_stacks[index as usize];
        let id = match stack {
            LongStack::Open(frames) => {
                self.long_frames -= frames.len();
                self.stacks.intern(frames)
            }
            LongStack::Used(id) => *id,
        };
        *stack = LongStack::Used(id);
        id
    }

    pub(crate) fn frame(&mut self, heap: &mut Heap, pairs: &[Value]) -> FrameId {
        let empty = StrId(keys::EMPTY);
        let (mut name, mut file, mut line) = (empty, empty, 0);
        let mut has_notes = false;
        for pair in pairs.chunks_exact(2) {
            let (Kind::Str(key), value) = (pair[0].kind(), pair[1]) else { continue };
            match (key.0, value.kind()) {
                (keys::NAME, Kind::Str(text)) => name = text,
                (keys::FILENAME, Kind::Str(text)) => file = text,
                // A key that is in a dict twice has its last value.
                (keys::NAME, _) => name = empty,
                (keys::FILENAME, _) => file = empty,
                // None, negative and absent lines count as unknown.
                (keys::LINE, _) => {
                    line = heap.small_int(value).and_then(|l| u32::try_from(l).ok()).unwrap_or(0);
                }
                (keys::FX_NODE_OP..=keys::FX_ORIGINAL_TRACE, Kind::Str(_)) => has_notes = true,
                _ => {}
            }
        }
        let id = self.frames.intern(Frame { name, file, line });
        if has_notes {
            for (i, pair) in pairs.chunks_exact(2).enumerate() {
                let is_again = || pairs[2 * i + 2..].iter().step_by(2).any(|key| *key == pair[0]);
                if let (Kind::Str(key), Kind::Str(text)) = (pair[0].kind(), pair[1].kind())
                    && (keys::FX_NODE_OP..=keys::FX_ORIGINAL_TRACE).contains(&key.0)
                    && !is_again()
                {
                    self.frames.note(id, key, text);
                }
            }
        }
        id
    }

    /// The rows of a list: of a taken one, or of one that stayed in the heap because it also holds
    /// other items.
    pub(crate) fn rows(&mut self, heap: &mut Heap, value: Value, kind: u8) -> Range<u32> {
        let value = heap.resolve(value);
        if let Some(list) = value.as_ext(ext::ROW_RANGE) {
            let list = &mut self.row_ranges[list as usize];
            list.is_used = true;
            if list.kind == kind {
                return list.range();
            }
        }
        if matches!(value.kind(), Kind::Ext(..)) {
            self.warn_stray(heap, value, None);
            return 0..0;
        }
        if let Some(known) = self.untaken.get(&(value, kind)) {
            return known.clone();
        }
        let rows = self.rows_of(heap, kind, heap.items(value), None);
        let range = self.contiguous(&mut heap.budget, kind, &rows);
        if !rows.is_empty() {
            self.untaken.insert((value, kind), range.clone());
        }
        range
    }

    /// The rows of a list's items. In a trace, any other item gets a row without data, so that
    /// event indices stay those of the file. In other lists it is left out.
    fn rows_of(
        &mut self,
        heap: &Heap,
        kind: u8,
        items: &[Value],
        at: Option<ByteOffset>,
    ) -> Vec<u32> {
        let mut rows = Vec::with_capacity(items.len());
        for &item in items {
            let row = heap.resolve(item).as_ext(kind);
            if let Some(row) =
                if kind == ext::EVENT { row.and_then(|number| self.remap.row(number)) } else { row }
            {
                rows.push(row);
                continue;
            }
            if kind == ext::EVENT {
                rows.push(self.events.push_outlined(Event::UNKNOWN));
            }
            self.warn_stray(heap, item, at);
        }
        rows
    }

    pub(crate) fn warn_stray(&mut self, heap: &Heap, item: Value, at: Option<ByteOffset>) {
        self.report.warn(WarningKind::StrayItem, at, || {
            let shown = cut(&json_text(heap, item), MAX_SHOWN_BYTES);
            format!("a list of events, blocks, segments or annotations holds {shown}")
        });
    }

    /// The kind of the rows of a list that was taken.
    pub(crate) fn list_kind(&self, heap: &Heap, value: Value) -> Option<u8> {
        let list = heap.resolve(value).as_ext(ext::ROW_RANGE)?;
        Some(self.row_ranges[list as usize].kind)
    }

    /// The rows of a list's items, if they are consecutive, as nearly always.
    fn consecutive_rows(&self, kind: u8, items: &[Value]) -> Option<Range<u32>> {
        let first = items.first()?.as_ext(kind)?;
        let all = items.iter().zip(first..).all(|(item, next)| *item == Value::ext(kind, next));
        let start = if kind == ext::EVENT { self.remap.row(first)? } else { first };
        all.then(|| start..start + items.len() as u32)
    }

    /// The rows as one range. Rows that are not consecutive are copied to the end of the table, if
    /// the budget allows it.
    fn contiguous(&mut self, budget: &mut Budget, kind: u8, rows: &[u32]) -> Range<u32> {
        let Some(&first) = rows.first() else { return 0..0 };
        if rows.iter().zip(first..).all(|(&row, next)| row == next) {
            return first..first + rows.len() as u32;
        }
        if !budget.ask(rows.len() * COPIED_BYTES) {
            return 0..0;
        }
        let start = self.len_of(kind);
        for &row in rows {
            self.copy(kind, row);
        }
        start..self.len_of(kind)
    }

    fn len_of(&self, kind: u8) -> u32 {
        let len = match kind {
            ext::EVENT => self.events.len(),
            ext::BLOCK => self.blocks.len(),
            ext::SEGMENT => self.segments.len(),
            ext::ANNOTATION => self.annotations.len(),
            _ => self.history.len(),
        };
        len as u32
    }

    fn copy(&mut self, kind: u8, row: u32) {
        let i = row as usize;
        match kind {
            ext::EVENT => drop(self.events.copy(row)),
            ext::BLOCK => {
                if self.placed.contains(&row) {
                    self.placed.insert(self.blocks.len() as u32);
                }
                self.blocks.push(self.blocks[i]);
            }
            ext::SEGMENT => self.segments.push(self.segments[i].clone()),
            ext::ANNOTATION => self.annotations.push(self.annotations[i]),
            _ => self.history.push(self.history[i]),
        }
    }

    /// Interns a stack.
    pub(crate) fn stack_of(&mut self, heap: &Heap, items: &[Value], at: ByteOffset) -> StackId {
        let mut frames = std::mem::take(&mut self.scratch);
        frames.clear();
        self.add_frames(heap, items, &mut frames, at);
        let id = self.stacks.intern(&frames);
        self.scratch = frames;
        id
    }

    /// The frames of a batch of a long stack.
    pub(crate) fn frames_of(
        &mut self,
        heap: &Heap,
        items: &[Value],
        at: ByteOffset,
    ) -> Vec<FrameId> {
        let mut frames = Vec::new();
        self.add_frames(heap, items, &mut frames, at);
        self.long_frames += frames.len();
        frames
    }

    fn add_frames(
        &mut self,
        heap: &Heap,
        items: &[Value],
        frames: &mut Vec<FrameId>,
        at: ByteOffset,
    ) {
        self.only_frames = true;
        frames.reserve(items.len());
        for &item in items {
            match item.as_ext(ext::FRAME).or_else(|| heap.resolve(item).as_ext(ext::FRAME)) {
                Some(id) => frames.push(FrameId(id)),
                None => {
                    self.only_frames = false;
                    self.report.warn(WarningKind::NotAFrame, Some(at), || {
                        format!(
                            "the call stack that ends at byte {at} holds something other than \
                             frames: it is left out"
                        )
                    });
                }
            }
        }
    }

    pub(crate) fn row_range_of(
        &mut self,
        heap: &mut Heap,
        so_far: Option<RowRange>,
        kind: u8,
        items: &[Value],
        at: ByteOffset,
    ) -> RowRange {
        if let Some(rows) = self.consecutive_rows(kind, items)
            && so_far.is_none_or(|list| list.end == rows.start)
        {
            return RowRange {
                kind,
                start: so_far.map_or(rows.start, |list| list.start),
                end: rows.end,
                is_used: false,
            };
        }
        let rows = self.rows_of(heap, kind, items, Some(at));
        let whole = |range: Range<u32>| RowRange {
            kind,
            start: range.start,
            end: range.end,
            is_used: false,
        };
        let Some(list) = so_far else {
            return whole(self.contiguous(&mut heap.budget, kind, &rows));
        };
        if rows.iter().zip(list.end..).all(|(&row, next)| row == next) {
            return RowRange { end: list.end + rows.len() as u32, ..list };
        }
        if !heap.budget.ask(list.range().len() * size_of::<u32>()) {
            return list;
        }
        let all: Vec<u32> = list.range().chain(rows).collect();
        whole(self.contiguous(&mut heap.budget, kind, &all))
    }
}

/// Bytes of a copied row, at most: an event with all sparse columns.
const COPIED_BYTES: usize = 96;
