//! What the allocator held from the device, and when: segments, and mapped ranges of expandable
//! ones, with a life each.
//!
//! The file says what there was when it was written; going back through the segment events gives
//! what there was before the window, and going forward again gives every span its life.

use crate::slicing::STRIDE;
use std::collections::BTreeMap;
use vramscope_snapshot::{
    Action, Device, PoolIndex, Report, Segment, SegmentType, Snapshot, StackId, StreamId, Warning,
    WarningKind,
};
use vramscope_units::{Addr, Bytes, EventIndex};

/// Requests up to this many bytes, after rounding, come from the small pool (`kSmallSize` in
/// `c10/core/AllocatorConfig.h`).
pub(crate) const SMALL_SIZE: u64 = 1 << 20;

/// A range of addresses that was reserved from one event to another: a segment, or what one event
/// mapped into an expandable segment (the part of it that stayed, where an unmap took a piece out
/// of the middle).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Where it lies.
    pub address: Addr,
    /// Bytes reserved.
    pub size: Bytes,
    /// The first slot in which it is there.
    pub enters: u32,
    /// The first slot after that in which it is not; the number of slots if it is there at the end.
    pub leaves: u32,
    /// Whether it is a mapped range of an expandable segment.
    pub is_expandable: bool,
    /// The stream that it serves.
    pub stream: StreamId,
    /// The memory pool, where the file tells.
    pub pool: PoolIndex,
    /// Which of the two pools by size it serves.
    pub segment_type: SegmentType,
    /// The stack of the allocation that made it; empty when that was before the window and the file
    /// does not say.
    pub stack: StackId,
    /// The event that made it; `None` before the window.
    pub event: Option<EventIndex>,
}

impl Span {
    /// The first address behind it.
    pub fn end(&self) -> u64 {
        self.address.0.saturating_add(self.size.0)
    }
}

/// All spans of a device's window.
#[derive(Clone, Debug, Default)]
pub struct Segments {
    /// In the order in which they enter, those that are there together by address.
    pub spans: Vec<Span>,
    /// What did not fit.
    pub warnings: Vec<Warning>,
}

/// Ranges of addresses, each with what is known of it.
type Ranges = BTreeMap<u64, Span>;

impl Segments {
    /// From a device's segment events and its final segments.
    pub fn new(snapshot: &Snapshot, device: &Device) -> Self {
        let mut finding = Finding::new(snapshot, device);
        while finding.step().is_some() {}
        finding.finish()
    }

    /// Spans that are there in a slot, by address.
    pub fn at(&self, slot: u32) -> Vec<&Span> {
        let mut there: Vec<&Span> =
            self.spans.iter().filter(|s| s.enters <= slot && slot < s.leaves).collect();
        there.sort_unstable_by_key(|s| s.address);
        there
    }
}

/// Whether an event reserves (true) or gives back (false), and whether it does so in an expandable
/// segment.
pub(crate) fn segment_event(action: Action) -> Option<(bool, bool)> {
    match action {
        Action::SEGMENT_ALLOC => Some((true, false)),
        Action::SEGMENT_FREE => Some((false, false)),
        Action::SEGMENT_MAP => Some((true, true)),
        Action::SEGMENT_UNMAP => Some((false, true)),
        _ => None,
    }
}

fn of_final(segment: &Segment) -> Span {
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

/// Goes through the events three times: back, to what there was before the window; for the types of
/// that; and forward.
pub(crate) struct Finding<'a> {
    stage: Stage,
    /// So many events have been looked at in this stage.
    at: usize,
    /// The final ranges, minus those that the trace reserved, plus those that it gave back.
    before: Ranges,
    /// How many of these have no type yet.
    unknown: usize,
    forward: Forward<'a>,
}

#[derive(Clone, Copy)]
enum Stage {
    Back,
    Types,
    Forward,
}

impl<'a> Finding<'a> {
    pub(crate) fn new(snapshot: &'a Snapshot, device: &'a Device) -> Self {
        let forward = Forward {
            snapshot,
            device,
            spans: Vec::new(),
            open: BTreeMap::new(),
            slots: device.events.len() as u32 + 1,
            following: 0,
            report: Report::default(),
        };
        let before =
            snapshot.segments_of(device).iter().map(|s| (s.address.0, of_final(s))).collect();
        Self { stage: Stage::Back, at: 0, before, unknown: 0, forward }
    }

    /// Goes on by a stride of events, and says what that cost; `None` when all is done.
    pub(crate) fn step(&mut self) -> Option<u64> {
        let count = self.forward.device.events.len();
        let part = self.at..count.min(self.at + STRIDE);
        let is_typed = matches!(self.stage, Stage::Types) && self.unknown == 0;
        if part.is_empty() || is_typed {
            self.at = 0;
            self.stage = match self.stage {
                Stage::Back => {
                    self.unknown = self.before.values().filter(|s| is_unknown(s)).count();
                    Stage::Types
                }
                Stage::Types => {
                    self.turn();
                    Stage::Forward
                }
                Stage::Forward => return None,
            };
            return Some(1 + self.before.len() as u64);
        }
        self.at = part.end;
        for event in part.clone() {
            match self.stage {
                Stage::Back => self.back((count - 1 - event) as u32),
                Stage::Types => self.tell_type(event as u32),
                Stage::Forward => self
                    .forward
                    .event(event as u32, self.forward.device.events.start + event as u32),
            }
        }
        Some(part.len() as u64)
    }

    pub(crate) fn finish(mut self) -> Segments {
        self.forward.name_from_final();
        Segments { spans: self.forward.spans, warnings: self.forward.report.warnings().to_vec() }
    }

    /// Undoes an event.
    fn back(&mut self, event: u32) {
        let snapshot = self.forward.snapshot;
        let (events, row) = (&snapshot.events, self.forward.device.events.start + event);
        let Some((reserves, is_expandable)) = segment_event(events.action(row)) else { return };
        let (address, size) = (events.addr(row), events.size(row));
        let taken = cut(&mut self.before, address.0, address.0.saturating_add(size.0));
        let report = &mut self.forward.report;
        if !reserves {
            if taken > 0 {
                report.warn(WarningKind::SegmentOverlap, None, || {
                    format!("{taken} bytes at {address} are given back at {}, and are there later without having been reserved again", EventIndex(event))
                });
            }
            self.before.insert(address.0, from_event(snapshot, row, is_expandable, 0, None));
        } else if taken < size.0 {
            report.warn(WarningKind::SegmentLost, None, || {
                format!(
                    "the segment at {address} of {} is reserved at {}, and is nowhere later: its release was lost",
                    size,
                    EventIndex(event)
                )
            });
        }
    }

    /// Which pool by size the ranges serve that only their release tells of: what is allocated or
    /// freed in them says so.
    fn tell_type(&mut self, event: u32) {
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
        if is_unknown(span) && address < span.end() {
            let is_small = events.size(row).0 <= SMALL_SIZE;
            span.segment_type = if is_small { SegmentType::Small } else { SegmentType::Large };
            self.unknown -= 1;
        }
    }

    /// What there was before the window is known.
    fn turn(&mut self) {
        for mut span in std::mem::take(&mut self.before).into_values() {
            if is_unknown(&span) {
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

fn is_unknown(span: &Span) -> bool {
    span.segment_type == SegmentType::Unknown
}

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
        // What gives a segment back is not what made it.
        stack: if event.is_some() { events.stack(row) } else { StackId::EMPTY },
        event,
    }
}

/// Takes `[from, to)` out of the ranges, and cuts those that reach beyond it; how many bytes were
/// there.
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

struct Forward<'a> {
    snapshot: &'a Snapshot,
    device: &'a Device,
    spans: Vec<Span>,
    open: BTreeMap<u64, u32>,
    slots: u32,
    /// The first row that is no segment's event behind the last segment that was reserved.
    following: u32,
    report: Report,
}

impl Forward<'_> {
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

    /// Ends what lies in `[from, to)` at `slot`; what reaches beyond goes on as new spans. How many
    /// bytes ended.
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

    /// A segment is made for the allocation that follows it; that one's size tells the pool.
    fn type_of(&mut self, row: u32, span: &Span) -> SegmentType {
        let (events, end) = (&self.snapshot.events, self.device.events.end);
        // Segments that are reserved one after the other, of which a part of a trace has very many,
        // are for the same one.
        if self.following <= row {
            let is_other = |&row: &u32| segment_event(events.action(row)).is_none();
            self.following = (row + 1..end).find(is_other).unwrap_or(end);
        }
        let is_request = self.following < end && events.action(self.following) == Action::ALLOC;
        let request = is_request.then(|| events.size(self.following).0);
        match request {
            Some(bytes) if bytes <= SMALL_SIZE => SegmentType::Small,
            None if span.size.0 <= 2 * SMALL_SIZE => SegmentType::Small,
            _ => SegmentType::Large,
        }
    }

    /// What only the final segments tell of those that are still there.
    fn name_from_final(&mut self) {
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
