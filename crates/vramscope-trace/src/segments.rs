//! The memory that the allocator reserved from the device, and when: segments, and mapped ranges of
//! expandable segments.
//!
//! The file lists the segments at the end. Undoing the segment events backward gives the segments
//! from before the window. Replaying the events forward then gives every span its life.

use crate::slicing::STRIDE;
use std::collections::BTreeMap;
use vramscope_snapshot::{
    Action, Device, PoolIndex, Report, Segment, SegmentType, Snapshot, StackId, StreamId, Warning,
    WarningKind,
};
use vramscope_units::{Addr, Bytes, EventIndex};

/// Requests up to this many bytes, after rounding, come from the small pool (`kSmallSize` in
/// `c10/core/AllocatorConfig.h`).
pub const SMALL_SIZE: u64 = 1 << 20;

/// A range of addresses that is reserved from one event to another.
///
/// A span is a whole segment, or a range that one event mapped into an expandable segment. An unmap
/// in the middle of a mapped range ends the span, and the remaining ranges become new spans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// First address.
    pub address: Addr,
    /// Bytes reserved.
    pub size: Bytes,
    /// The first slot in which the span is reserved.
    pub enters: u32,
    /// The first slot after its life. The number of slots if the span is reserved at the end.
    pub leaves: u32,
    /// Whether the span is a mapped range of an expandable segment.
    pub is_expandable: bool,
    /// The stream that allocates from the span.
    pub stream: StreamId,
    /// Memory pool, if the file names it.
    pub pool: PoolIndex,
    /// Whether the span serves small or large requests.
    pub segment_type: SegmentType,
    /// The stack of the allocation that caused the reservation. Empty for spans from before the
    /// window if the file does not have it.
    pub stack: StackId,
    /// The event that reserved the span. `None` for spans from before the window.
    pub event: Option<EventIndex>,
}

impl Span {
    /// The first address behind the span.
    pub fn end(&self) -> u64 {
        self.address.0.saturating_add(self.size.0)
    }

    /// Whether the span is reserved in a slot.
    pub fn is_reserved_at(&self, slot: u32) -> bool {
        self.enters <= slot && slot < self.leaves
    }
}

/// All spans of a device's window.
#[derive(Clone, Debug, Default)]
pub struct Segments {
    /// Spans in the order of [`Span::enters`]. Spans from before the window are in address order.
    pub spans: Vec<Span>,
    /// Contradictions between segment events and final segments.
    pub warnings: Vec<Warning>,
}

/// Spans by start address.
type Ranges = BTreeMap<u64, Span>;

impl Segments {
    /// Builds the spans from a device's segment events and its final segments.
    pub fn new(snapshot: &Snapshot, device: &Device) -> Self {
        let mut builder = SegmentsBuilder::new(snapshot, device);
        while builder.step().is_some() {}
        builder.finish()
    }

    /// The spans that are reserved in a slot, by address.
    pub fn at(&self, slot: u32) -> Vec<&Span> {
        let mut spans: Vec<&Span> = self.spans.iter().filter(|s| s.is_reserved_at(slot)).collect();
        spans.sort_by_key(|s| s.address);
        spans
    }
}

/// Classifies a segment event as `(reserves, is_expandable)`. `None` for other events.
pub fn segment_event(action: Action) -> Option<(bool, bool)> {
    match action {
        Action::SEGMENT_ALLOC => Some((true, false)),
        Action::SEGMENT_FREE => Some((false, false)),
        Action::SEGMENT_MAP => Some((true, true)),
        Action::SEGMENT_UNMAP => Some((false, true)),
        _ => None,
    }
}

/// The span of a final segment. Its life is not known yet.
fn from_final(segment: &Segment) -> Span {
    Span {
        address: segment.address,
        size: segment.total_size,
        enters: 0,
        leaves: 0,
        is_expandable: segment.is_expandable,
        stream: segment.stream,
        pool: segment.pool,
        segment_type: segment.segment_type,
        stack: segment.stack,
        event: None,
    }
}

/// Builds [`Segments`] in three passes over the events.
pub(crate) struct SegmentsBuilder<'a> {
    pass: Pass,
    /// Number of events processed in the current pass.
    at: usize,
    /// The ranges from before the window: the final ranges, minus the reserved ones, plus the
    /// released ones. Complete after [`Pass::Backward`].
    before: Ranges,
    /// Number of ranges in `before` without a segment type.
    untyped: usize,
    forward: ForwardPass<'a>,
}

#[derive(Clone, Copy)]
enum Pass {
    /// Undoes the events from last to first, to find the ranges from before the window.
    Backward,
    /// Finds the segment types of those ranges.
    Types,
    /// Replays the events.
    Forward,
}

impl<'a> SegmentsBuilder<'a> {
    pub(crate) fn new(snapshot: &'a Snapshot, device: &'a Device) -> Self {
        let forward = ForwardPass {
            snapshot,
            device,
            spans: Vec::new(),
            open: BTreeMap::new(),
            slots: device.events.len() as u32 + 1,
            next_other_row: 0,
            report: Report::default(),
        };
        let before =
            snapshot.segments_of(device).iter().map(|s| (s.address.0, from_final(s))).collect();
        Self { pass: Pass::Backward, at: 0, before, untyped: 0, forward }
    }

    /// Processes one stride of events. Returns its cost in units of [`Budget`], or `None` when all
    /// passes are done.
    ///
    /// [`Budget`]: crate::slicing::Budget
    pub(crate) fn step(&mut self) -> Option<u64> {
        let count = self.forward.device.events.len();
        let stride = self.at..count.min(self.at + STRIDE);
        let is_typed = matches!(self.pass, Pass::Types) && self.untyped == 0;
        if stride.is_empty() || is_typed {
            self.at = 0;
            self.pass = match self.pass {
                Pass::Backward => {
                    self.untyped = self.before.values().filter(|s| is_untyped(s)).count();
                    Pass::Types
                }
                Pass::Types => {
                    self.start_forward();
                    Pass::Forward
                }
                Pass::Forward => return None,
            };
            return Some(1 + self.before.len() as u64);
        }
        self.at = stride.end;
        for event in stride.clone() {
            match self.pass {
                Pass::Backward => self.undo((count - 1 - event) as u32),
                Pass::Types => self.find_type(event as u32),
                Pass::Forward => self
                    .forward
                    .event(event as u32, self.forward.device.events.start + event as u32),
            }
        }
        Some(stride.len() as u64)
    }

    pub(crate) fn finish(mut self) -> Segments {
        self.forward.copy_from_final();
        share_pools(&mut self.forward.spans);
        Segments { spans: self.forward.spans, warnings: self.forward.report.warnings().to_vec() }
    }

    /// Undoes an event in `before`.
    fn undo(&mut self, event: u32) {
        let snapshot = self.forward.snapshot;
        let (events, row) = (&snapshot.events, self.forward.device.events.start + event);
        let Some((reserves, is_expandable)) = segment_event(events.action(row)) else { return };
        let (address, size) = (events.addr(row), events.size(row));
        let taken = cut(&mut self.before, address.0, address.0.saturating_add(size.0));
        let report = &mut self.forward.report;
        if !reserves {
            if taken > 0 {
                report.warn(WarningKind::SegmentOverlap, None, || {
                    format!(
                        "{taken} bytes at {address} are given back at {}, and are there later \
                        without having been reserved again",
                        EventIndex(event)
                    )
                });
            }
            self.before.insert(address.0, from_event(snapshot, row, is_expandable, 0, None));
        } else if taken < size.0 {
            report.warn(WarningKind::SegmentLost, None, || {
                format!(
                    "the segment at {address} of {} is reserved at {}, and is nowhere later: its \
                     release was lost",
                    size,
                    EventIndex(event)
                )
            });
        }
    }

    /// Finds the segment type of a range that only its release names. An allocation or a free in
    /// the range shows the type by its size.
    fn find_type(&mut self, event: u32) {
        let (events, row) =
            (&self.forward.snapshot.events, self.forward.device.events.start + event);
        let action = events.action(row);
        if !matches!(
            action,
            Action::ALLOC | Action::FREE_REQUESTED | Action::FREE_COMPLETED | Action::FREE
        ) {
            return;
        }
        let address = events.addr(row).0;
        let Some((_, span)) = self.before.range_mut(..=address).next_back() else { return };
        if is_untyped(span) && address < span.end() {
            let is_small = events.size(row).0 <= SMALL_SIZE;
            span.segment_type = if is_small { SegmentType::Small } else { SegmentType::Large };
            self.untyped -= 1;
        }
    }

    /// Opens the ranges from before the window. A range that is still without a type gets one by
    /// its own size.
    fn start_forward(&mut self) {
        for mut span in std::mem::take(&mut self.before).into_values() {
            if is_untyped(&span) {
                span.segment_type = if span.size.0 <= 2 * SMALL_SIZE {
                    SegmentType::Small
                } else {
                    SegmentType::Large
                };
            }
            self.forward.open(span);
        }
    }
}

fn is_untyped(span: &Span) -> bool {
    span.segment_type == SegmentType::Unknown
}

/// The span that an event reserves or releases. Its end is not known yet.
fn from_event(
    snapshot: &Snapshot,
    row: u32,
    is_expandable: bool,
    enters: u32,
    event: Option<EventIndex>,
) -> Span {
    let events = &snapshot.events;
    Span {
        address: events.addr(row),
        size: events.size(row),
        enters,
        leaves: 0,
        is_expandable,
        stream: events.stream(row),
        pool: events.pool(row),
        segment_type: SegmentType::Unknown,
        // The stack of a release is not the stack of the reservation.
        stack: if event.is_some() { events.stack(row) } else { StackId::EMPTY },
        event,
    }
}

/// Removes `[from, to)` from the ranges. Ranges that reach beyond it are shortened or split.
/// Returns the number of bytes removed.
fn cut(ranges: &mut Ranges, from: u64, to: u64) -> u64 {
    let mut taken = 0;
    let first = ranges.range(..from).next_back().filter(|(_, s)| s.end() > from).map(|(&at, _)| at);
    let keys: Vec<u64> =
        first.into_iter().chain(ranges.range(from..to.max(from)).map(|(&at, _)| at)).collect();
    for key in keys {
        let Some(span) = ranges.remove(&key) else { continue };
        let (low, high) = (span.address.0.max(from), span.end().min(to));
        taken += high - low;
        for (start, end) in [(span.address.0, low), (high, span.end())] {
            if start < end {
                ranges.insert(
                    start,
                    Span { address: Addr(start), size: Bytes(end - start), ..span.clone() },
                );
            }
        }
    }
    taken
}

/// Gives the mapped ranges of one expandable segment one pool and one type. Events of PyTorch
/// before 2.12 name no pool, so only the ranges that are mapped at the end have one in the file.
///
/// A segment's ranges touch or overlap, at different times. Another segment is far away, because
/// each reserves more addresses than the device has memory (`ExpandableSegment` in
/// `c10/cuda/CUDACachingAllocator.cpp`).
fn share_pools(spans: &mut [Span]) {
    let is_part = |span: &(u32, &Span)| span.1.is_expandable;
    let mut parts: Vec<u32> = (0u32..).zip(&*spans).filter(is_part).map(|part| part.0).collect();
    parts.sort_by_key(|&part| (spans[part as usize].address, part));
    let mut rest = &parts[..];
    while let Some(&first) = rest.first() {
        let (mut end, stream) = (0, spans[first as usize].stream);
        let mut known = None;
        let count = rest
            .iter()
            .map(|&part| &spans[part as usize])
            .take_while(|span| {
                let is_same = end == 0 || span.address.0 <= end && span.stream == stream;
                if is_same {
                    end = span.end().max(end);
                    let kind = (span.pool, span.segment_type);
                    known = known.or(Some(kind).filter(|_| span.pool != PoolIndex::UNKNOWN));
                }
                is_same
            })
            .count();
        let (segment, others) = rest.split_at(count);
        if let Some((pool, segment_type)) = known {
            for &part in segment {
                let span = &mut spans[part as usize];
                if span.pool == PoolIndex::UNKNOWN {
                    (span.pool, span.segment_type) = (pool, segment_type);
                }
            }
        }
        rest = others;
    }
}

/// The forward pass of [`SegmentsBuilder`].
struct ForwardPass<'a> {
    snapshot: &'a Snapshot,
    device: &'a Device,
    spans: Vec<Span>,
    /// Indices of the reserved spans by start address.
    open: BTreeMap<u64, u32>,
    slots: u32,
    /// Cache of [`ForwardPass::type_of`]: the first row behind the last reservation that is not a
    /// segment event.
    next_other_row: u32,
    report: Report,
}

impl ForwardPass<'_> {
    /// Adds a span that is reserved until another event closes it.
    fn open(&mut self, mut span: Span) {
        self.open.insert(span.address.0, self.spans.len() as u32);
        span.leaves = self.slots;
        self.spans.push(span);
    }

    fn event(&mut self, event: u32, row: u32) {
        let events = &self.snapshot.events;
        let Some((reserves, is_expandable)) = segment_event(events.action(row)) else { return };
        let (address, size, slot) = (events.addr(row).0, events.size(row).0, event + 1);
        let end = address.saturating_add(size);
        let taken = self.close(address, end, slot);
        if !reserves {
            if taken < size {
                self.report.warn(WarningKind::SegmentLost, None, || {
                    format!(
                        "{} gives back {size} bytes, of which only {taken} were reserved",
                        EventIndex(event)
                    )
                });
            }
            return;
        }
        if taken > 0 {
            self.report.warn(WarningKind::SegmentOverlap, None, || {
                format!(
                    "{} reserves {taken} bytes that were reserved already: their release was lost",
                    EventIndex(event)
                )
            });
        }
        let mut span = from_event(self.snapshot, row, is_expandable, slot, Some(EventIndex(event)));
        span.segment_type = self.type_of(row, &span);
        self.open(span);
    }

    /// Ends the spans in `[from, to)` at `slot`. Parts of a span outside of the range continue as
    /// new spans. Returns the number of bytes that ended.
    fn close(&mut self, from: u64, to: u64, slot: u32) -> u64 {
        let spans = &self.spans;
        let reaches = |i: u32| spans[i as usize].end() > from;
        let first =
            self.open.range(..from).next_back().filter(|&(_, &i)| reaches(i)).map(|(&at, _)| at);
        let keys: Vec<u64> = first
            .into_iter()
            .chain(self.open.range(from..to.max(from)).map(|(&at, _)| at))
            .collect();
        let mut taken = 0;
        for key in keys {
            let Some(index) = self.open.remove(&key) else { continue };
            let span = &mut self.spans[index as usize];
            span.leaves = slot;
            let span = span.clone();
            let (low, high) = (span.address.0.max(from), span.end().min(to));
            taken += high - low;
            for (start, end) in [(span.address.0, low), (high, span.end())] {
                if start < end {
                    let rest = Span {
                        address: Addr(start),
                        size: Bytes(end - start),
                        enters: slot,
                        ..span.clone()
                    };
                    self.open(rest);
                }
            }
        }
        taken
    }

    /// The segment type of a reservation. The allocator reserves a segment for the next allocation
    /// in the trace, and the size of that allocation selects the pool.
    fn type_of(&mut self, row: u32, span: &Span) -> SegmentType {
        let (events, end) = (&self.snapshot.events, self.device.events.end);
        // Consecutive reservations share the next allocation. An excerpt can have a great many of
        // them in a row, so the search result is cached.
        if self.next_other_row <= row {
            let is_other = |&row: &u32| segment_event(events.action(row)).is_none();
            self.next_other_row = (row + 1..end).find(is_other).unwrap_or(end);
        }
        let next = self.next_other_row;
        let is_request = next < end && events.action(next) == Action::ALLOC;
        let request = is_request.then(|| events.size(next).0);
        match request {
            Some(bytes) if bytes <= SMALL_SIZE => SegmentType::Small,
            None if span.size.0 <= 2 * SMALL_SIZE => SegmentType::Small,
            _ => SegmentType::Large,
        }
    }

    /// Copies pool, type and stack from the final segments to the spans that are still reserved.
    fn copy_from_final(&mut self) {
        for segment in self.snapshot.segments_of(self.device) {
            let (from, to) =
                (segment.address.0, segment.address.0.saturating_add(segment.total_size.0));
            let keys: Vec<u32> = self.open.range(from..to.max(from)).map(|(_, &i)| i).collect();
            for index in keys {
                let span = &mut self.spans[index as usize];
                span.pool = segment.pool;
                span.segment_type = segment.segment_type;
                if span.stack == StackId::EMPTY {
                    span.stack = segment.stack;
                }
            }
        }
    }
}
