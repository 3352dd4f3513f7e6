//! Turns the dicts of segments, blocks and annotations into rows.

use super::{Tables, ext};
use crate::annotations::{Annotation, Stage};
use crate::ids::{PoolIndex, StackId, StreamId};
use crate::json_text::{MAX_SHOWN_BYTES, cut, json_text};
use crate::keys;
use crate::report::{Report, WarningKind};
use crate::segments::{Block, BlockState, Segment, SegmentType};
use vramscope_pickle::{ByteOffset, Heap, Kind, StrId, Value};
use vramscope_units::{Addr, Bytes, Micros};

/// Placeholder for the address of a block that has none in the file.
const UNKNOWN_ADDRESS: u64 = u64::MAX;

/// Keys and values, without keys that are not strings.
fn fields(pairs: &[Value]) -> impl Iterator<Item = (u32, Value)> {
    pairs.chunks_exact(2).filter_map(|pair| match pair[0].kind() {
        Kind::Str(key) => Some((key.0, pair[1])),
        _ => None,
    })
}

fn has(pairs: &[Value], keys: &[u32]) -> bool {
    fields(pairs).any(|(key, _)| keys.contains(&key))
}

/// The newest row of a table, if `row` is it.
fn newest<T>(table: &mut [T], row: u32) -> Option<&mut T> {
    let index = row as usize;
    if index + 1 == table.len() { table.last_mut() } else { None }
}

/// The device of a segment whose `device` is no ordinal. Segments of host memory have -1.
const NO_DEVICE: u32 = u32::MAX;

/// Gives segments without a device the first one, with a warning: their bytes must count.
pub(crate) fn with_devices(segments: &mut [Segment], report: &mut Report) {
    for segment in segments.iter_mut().filter(|segment| segment.device == NO_DEVICE) {
        segment.device = 0;
        report.warn(WarningKind::NotANumber, None, || {
            format!(
                "the device of the segment at {} is negative or not a number: 0 is used",
                segment.address
            )
        });
    }
}

impl Tables {
    /// Applies a further batch of a dict that became a row. `None` if something may have used the
    /// row, or if the row does not tell what the batch means.
    #[inline(never)]
    pub(crate) fn more_of_dict(
        &mut self,
        heap: &mut Heap,
        value: Value,
        pairs: &[Value],
        at: ByteOffset,
    ) -> Option<()> {
        match value.kind() {
            Kind::Ext(ext::EVENT, number) => {
                // Only the newest: lists may have copies of others, and sparse columns are sorted
                // by row.
                let row = self.remap.row(number)?;
                if row as usize + 1 != self.events.len() {
                    return None;
                }
                let event = self.event(heap, row, self.events.get(row), pairs, at);
                self.events.set(row, event);
            }
            Kind::Ext(ext::BLOCK, row) => {
                let mut block = *newest(&mut self.blocks, row)?;
                // The requested size depends on both.
                if has(pairs, &[keys::SIZE, keys::HISTORY])
                    || self.has_history && has(pairs, &[keys::REQUESTED_SIZE, keys::FRAMES])
                {
                    return None;
                }
                if let Some(requested) = self.block_fields(heap, &mut block, pairs, at) {
                    block.requested_size = requested;
                }
                self.blocks[row as usize] = block;
            }
            Kind::Ext(ext::SEGMENT, row) => {
                let mut segment = newest(&mut self.segments, row)?.clone();
                // Blocks without an address have got one from the segment's.
                if has(pairs, &[keys::ADDRESS]) && !segment.blocks.is_empty() {
                    return None;
                }
                self.segment_fields(heap, &mut segment, pairs, at);
                self.place_blocks(heap, &segment, at);
                self.segments[row as usize] = segment;
            }
            Kind::Ext(ext::ANNOTATION, row) => {
                let mut annotation = *newest(&mut self.annotations, row)?;
                annotation_fields(heap, &mut annotation, pairs);
                self.annotations[row as usize] = annotation;
            }
            _ => return None,
        }
        Some(())
    }

    pub(crate) fn block(&mut self, heap: &Heap, pairs: &[Value], at: ByteOffset) -> u32 {
        let mut block = Block {
            address: Addr(UNKNOWN_ADDRESS),
            size: Bytes(0),
            requested_size: Bytes(0),
            state: BlockState::Inactive,
            stack: StackId::EMPTY,
        };
        let mut requested = self.block_fields(heap, &mut block, pairs, at);
        let newest = self.newest_use(heap, pairs, at);
        self.has_history = newest.is_some();
        if let Some((real_size, stack)) = newest {
            block.stack = stack;
            requested = requested.filter(|r| r.0 > 0).or(Some(Bytes(real_size)));
        }
        // The file lacks requested sizes, so the block's size is the best estimate.
        block.requested_size = requested.unwrap_or(block.size);
        self.blocks.push(block);
        self.blocks.len() as u32 - 1
    }

    /// Applies the fields in `pairs`. Returns the requested size, if it is among them.
    fn block_fields(
        &mut self,
        heap: &Heap,
        block: &mut Block,
        pairs: &[Value],
        at: ByteOffset,
    ) -> Option<Bytes> {
        let mut requested = None;
        for (key, value) in fields(pairs) {
            let value = heap.resolve(value);
            match key {
                keys::ADDRESS => {
                    block.address = Addr(self.address(heap, value, at));
                    if block.address.0 == UNKNOWN_ADDRESS {
                        self.warn_not_a_number("an address", at);
                    }
                }
                keys::SIZE => block.size = Bytes(self.bytes(heap, value, at)),
                keys::REQUESTED_SIZE => requested = Some(Bytes(self.bytes(heap, value, at))),
                keys::FRAMES => block.stack = self.stack(heap, value),
                keys::STATE => block.state = self.state(heap, value, at),
                _ => {}
            }
        }
        requested
    }

    /// Before PyTorch 2.1: `history`, with an entry for each former block, the live one first.
    fn newest_use(
        &mut self,
        heap: &Heap,
        pairs: &[Value],
        at: ByteOffset,
    ) -> Option<(u64, StackId)> {
        let (_, list) = fields(pairs).filter(|field| field.0 == keys::HISTORY).last()?;
        let list = heap.resolve(list);
        if let Some(index) = list.as_ext(ext::ROW_RANGE) {
            let list = &mut self.row_ranges[index as usize];
            list.is_used = true;
            if list.kind == ext::HISTORY {
                return Some(self.history[list.start as usize]);
            }
        }
        if matches!(list.kind(), Kind::Ext(..)) || !heap.items(list).is_empty() {
            self.warn_stray(heap, list, Some(at));
        }
        None
    }

    fn state(&mut self, heap: &Heap, value: Value, at: ByteOffset) -> BlockState {
        match value.kind() {
            Kind::Str(StrId(keys::ACTIVE_ALLOCATED)) => BlockState::Allocated,
            // The second name occurs in PyTorch's docstrings, but in no build.
            Kind::Str(StrId(keys::ACTIVE_PENDING_FREE | keys::ACTIVE_AWAITING_FREE)) => {
                BlockState::PendingFree
            }
            Kind::Str(StrId(keys::INACTIVE)) => BlockState::Inactive,
            _ => {
                self.report.warn(WarningKind::UnknownState, Some(at), || {
                    let found = cut(&json_text(heap, value), MAX_SHOWN_BYTES);
                    format!("blocks in unknown state {found} count as inactive")
                });
                BlockState::Inactive
            }
        }
    }

    pub(crate) fn segment(&mut self, heap: &mut Heap, pairs: &[Value], at: ByteOffset) -> u32 {
        let mut segment = Segment {
            device: 0,
            address: Addr(0),
            total_size: Bytes(0),
            allocated_size: Bytes(0),
            active_size: Bytes(0),
            requested_size: Bytes(0),
            stream: StreamId(0),
            segment_type: SegmentType::Unknown,
            pool: PoolIndex::UNKNOWN,
            is_expandable: false,
            stack: StackId::EMPTY,
            blocks: 0..0,
        };
        self.segment_fields(heap, &mut segment, pairs, at);
        self.place_blocks(heap, &segment, at);
        self.segments.push(segment);
        self.segments.len() as u32 - 1
    }

    fn segment_fields(
        &mut self,
        heap: &mut Heap,
        segment: &mut Segment,
        pairs: &[Value],
        at: ByteOffset,
    ) {
        for (key, value) in fields(pairs) {
            let value = heap.resolve(value);
            match key {
                keys::DEVICE => {
                    let device = heap.int(value).and_then(|device| u32::try_from(device).ok());
                    segment.device = device.unwrap_or(NO_DEVICE);
                }
                keys::ADDRESS => segment.address = Addr(self.address(heap, value, at)),
                keys::TOTAL_SIZE => segment.total_size = Bytes(self.bytes(heap, value, at)),
                keys::ALLOCATED_SIZE => segment.allocated_size = Bytes(self.bytes(heap, value, at)),
                keys::ACTIVE_SIZE => segment.active_size = Bytes(self.bytes(heap, value, at)),
                keys::REQUESTED_SIZE => segment.requested_size = Bytes(self.bytes(heap, value, at)),
                keys::STREAM => segment.stream = self.stream(heap, value, at),
                keys::SEGMENT_POOL_ID => segment.pool = self.pool(heap, value, at),
                keys::IS_EXPANDABLE => segment.is_expandable = heap.int(value) == Some(1),
                keys::FRAMES => segment.stack = self.stack(heap, value),
                keys::SEGMENT_TYPE => {
                    segment.segment_type = match value.kind() {
                        Kind::Str(StrId(keys::SMALL)) => SegmentType::Small,
                        Kind::Str(StrId(keys::LARGE)) => SegmentType::Large,
                        _ => SegmentType::Unknown,
                    };
                }
                keys::BLOCKS => segment.blocks = self.rows(heap, value, ext::BLOCK),
                _ => {}
            }
        }
    }

    /// Assigns consecutive addresses to blocks that have none in the file.
    fn place_blocks(&mut self, heap: &mut Heap, segment: &Segment, at: ByteOffset) {
        // Segments may refer to one list of blocks.
        if !heap.budget.ask(segment.blocks.len()) {
            return;
        }
        let mut next = segment.address.0;
        for row in segment.blocks.clone() {
            let block = &mut self.blocks[row as usize];
            if block.address.0 == UNKNOWN_ADDRESS {
                block.address = Addr(next);
                self.placed.insert(row);
            }
            let found = block.address.0;
            let end = found.wrapping_add(block.size.0);
            if found != next && self.placed.contains(&row) {
                // Another segment has the block too. Its address there would be another one.
                self.warn_not_a_number("an address", at);
            }
            next = end;
        }
    }

    pub(crate) fn annotation(&mut self, heap: &Heap, pairs: &[Value]) -> u32 {
        let mut row =
            Annotation { name: StrId(keys::EMPTY), stage: Stage::Start, device: -1, time: None };
        annotation_fields(heap, &mut row, pairs);
        self.annotations.push(row);
        self.annotations.len() as u32 - 1
    }
}

fn annotation_fields(heap: &Heap, row: &mut Annotation, pairs: &[Value]) {
    for (key, value) in fields(pairs) {
        match (key, value.kind()) {
            (keys::NAME, Kind::Str(name)) => row.name = name,
            (keys::NAME, _) => row.name = StrId(keys::EMPTY),
            (keys::STAGE, Kind::Str(StrId(keys::END))) => row.stage = Stage::End,
            (keys::STAGE, _) => row.stage = Stage::Start,
            (keys::DEVICE, _) => row.device = heap.small_int(value).unwrap_or(-1),
            (keys::TIME_US, _) => row.time = heap.small_int(value).map(Micros),
            _ => {}
        }
    }
}
