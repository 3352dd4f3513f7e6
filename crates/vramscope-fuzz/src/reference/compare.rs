//! Compares the reader's tables with those of the reference.

use super::tables::{Annotation, Device, Event, Stack, State, Tables, Text};
use std::collections::BTreeMap;
use vramscope_snapshot::{
    BlockState, Events, PoolIndex, SegmentType, Snapshot, SparseColumn, StackId, Stage, StrId,
    WarningKind,
};

/// Compares all tables.
///
/// # Panics
/// When they differ.
pub(super) fn compare(read: &Snapshot, expected: &Tables) {
    assert!(!expected.is_changed, "a value was dropped without a warning");
    let has_strays = read.report.warnings().iter().any(|w| w.kind == WarningKind::NotAFrame);
    let mut compared = Comparison { read, stacks: (!has_strays).then(BTreeMap::new) };
    let ordinals: Vec<u32> = read.devices.iter().map(|device| device.device).collect();
    assert_eq!(ordinals, expected.devices.keys().copied().collect::<Vec<_>>(), "devices");
    for (device, expected) in read.devices.iter().zip(expected.devices.values()) {
        compared.events(device.events.clone(), &expected.events);
        compared.segments(device, expected);
    }
    compared.annotations(&expected.annotations);
    if let Some(settings) = &expected.settings {
        assert_eq!(read.settings, *settings, "settings");
    }
}

struct Comparison<'a> {
    read: &'a Snapshot,
    /// Stacks that are known to be equal to what the reader calls so. `None` if stacks may differ.
    stacks: Option<BTreeMap<u32, Stack>>,
}

impl Comparison<'_> {
    fn events(&mut self, rows: std::ops::Range<u32>, expected: &[Event]) {
        assert_eq!(rows.len(), expected.len(), "events");
        let (read, events) = (self.read, &self.read.events);
        for (row, event) in rows.clone().zip(expected) {
            let at = row - rows.start;
            let action = read.action_name(events.action(row));
            assert_eq!(action, String::from_utf8_lossy(&event.action), "action of event {at}");
            assert_eq!(events.addr(row).0, event.addr, "address of event {at}");
            assert_eq!(events.size(row).0, event.size, "size of event {at}");
            assert_eq!(events.time(row).map(|t| t.0), event.time, "time of event {at}");
            assert_eq!(read.stream(events.stream(row)), event.stream, "stream of event {at}");
            assert_eq!(self.pool(events.pool(row)), event.pool, "pool of event {at}");
            let free = Events::sparse(&events.device_free, row).map(|free| free.0);
            assert_eq!(free, event.device_free, "free memory of event {at}");
            self.stack(events.stack(row), &event.stack);
            let columns = [
                &events.compile_context,
                &events.user_metadata,
                &events.internal_metadata,
                &events.category,
                &events.forward_frames,
            ];
            for (i, (column, text)) in columns.into_iter().zip(&event.texts).enumerate() {
                let text = match text {
                    Text::Missing => None,
                    Text::Plain(text) => Some(&**text),
                    Text::Other => continue,
                };
                assert_eq!(self.sparse_text(column, row), text, "text {i} of event {at}");
            }
        }
    }

    fn sparse_text(&self, column: &SparseColumn<StrId>, row: u32) -> Option<&[u8]> {
        Events::sparse(column, row).map(|id| self.read.strings.bytes(id))
    }

    fn pool(&self, index: PoolIndex) -> Option<(u64, u64)> {
        self.read.pool(index).map(|pool| (pool.0, pool.1))
    }

    fn stack(&mut self, id: StackId, expected: &Stack) {
        let Some(known) = &mut self.stacks else { return };
        if known.get(&id.0) == Some(expected) {
            return;
        }
        let strings = &self.read.strings;
        let frames = self.read.stack(id);
        assert_eq!(frames.len(), expected.len(), "frames of a stack");
        for (frame, expected) in frames.zip(expected.iter()) {
            assert_eq!(strings.bytes(frame.name), &*expected.name, "a frame's name");
            assert_eq!(strings.bytes(frame.file), &*expected.file, "a frame's file");
            assert_eq!(frame.line, expected.line, "a frame's line");
        }
        known.insert(id.0, expected.clone());
    }

    fn segments(&mut self, device: &vramscope_snapshot::Device, expected: &Device) {
        let segments = self.read.segments_of(device);
        assert_eq!(segments.len(), expected.segments.len(), "segments");
        for (segment, expected) in segments.iter().zip(&expected.segments) {
            assert_eq!(segment.address.0, expected.address, "a segment's address");
            let sizes = [
                segment.total_size.0,
                segment.allocated_size.0,
                segment.active_size.0,
                segment.requested_size.0,
            ];
            assert_eq!(sizes, expected.sizes, "a segment's sizes");
            assert_eq!(self.read.stream(segment.stream), expected.stream, "a segment's stream");
            let is_small = match segment.segment_type {
                SegmentType::Small => Some(true),
                SegmentType::Large => Some(false),
                SegmentType::Unknown => None,
            };
            assert_eq!(is_small, expected.is_small, "a segment's type");
            assert_eq!(self.pool(segment.pool), expected.pool, "a segment's pool");
            assert_eq!(segment.is_expandable, expected.is_expandable, "a segment's kind");
            self.stack(segment.stack, &expected.stack);
            let blocks = self.read.blocks_of(segment);
            assert_eq!(blocks.len(), expected.blocks.len(), "blocks of a segment");
            for (block, expected) in blocks.iter().zip(&expected.blocks) {
                assert_eq!(Some(block.address.0), expected.address, "a block's address");
                assert_eq!(block.size.0, expected.size, "a block's size");
                assert_eq!(block.requested_size.0, expected.requested, "a block's request");
                let state = match block.state {
                    BlockState::Allocated => State::Allocated,
                    BlockState::PendingFree => State::PendingFree,
                    BlockState::Inactive => State::Inactive,
                };
                assert_eq!(state, expected.state, "a block's state");
                self.stack(block.stack, &expected.stack);
            }
        }
    }

    fn annotations(&self, expected: &[Annotation]) {
        assert_eq!(self.read.annotations.len(), expected.len(), "annotations");
        for (found, expected) in self.read.annotations.iter().zip(expected) {
            assert_eq!(self.read.strings.bytes(found.name), &*expected.name, "an annotation");
            assert_eq!(found.stage == Stage::End, expected.is_end, "an annotation's stage");
            assert_eq!(found.device, expected.device, "an annotation's device");
            assert_eq!(found.time.map(|t| t.0), expected.time, "an annotation's time");
        }
    }
}
