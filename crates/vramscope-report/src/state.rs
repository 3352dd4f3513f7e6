//! `vramscope state`: what is live, and how segments are laid out, after any event.

use super::{
    CategoryShare, FrameRecord, Target, by_category, event_of, frames, site, slot_of, time_of,
};
use crate::segments::{FreeRow, SegmentRecord, free_rows, segment_row};
use crate::text::pool;
use serde::Serialize;
use vramscope_analysis::{Category, LiveSet, Trace};
use vramscope_units::EventIndex;

/// A place in the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// Before the first event.
    Start,
    /// Where `requested_bytes` is largest.
    Peak,
    /// After the last event.
    End,
    /// After this event; -1 is before the first.
    Event(i64),
    /// After the last event up to this time, in microseconds since the Unix epoch.
    Time(i64),
}

impl At {
    /// The slot that it means.
    ///
    /// # Errors
    /// When there is no such event, or no clock; in words.
    pub fn slot(self, trace: &Trace) -> Result<u32, String> {
        let events = trace.slots() - 1;
        match self {
            Self::Start => Ok(0),
            Self::End => Ok(events),
            Self::Peak => Ok(slot_of(trace.requested_band.peak_event)),
            Self::Event(event) => u32::try_from(event + 1).ok().filter(|&slot| slot <= events).ok_or_else(|| {
                format!(
                    "there is no event {event}: device {} has {events}, counted from 0 (-1 is before the first)",
                    trace.device.device
                )
            }),
            Self::Time(time) => {
                let clock = trace.clock.as_ref().ok_or("this file has no times (PyTorch before 2.2): use --event")?;
                // The first event that is later is not there yet.
                Ok(u64::try_from(time - clock.start.0).map_or(0, |offset| clock.events_before(offset + 1)))
            }
        }
    }
}

/// `vramscope.state/1`.
#[derive(Debug, Serialize)]
pub struct State<'a> {
    /// The name and version of this form.
    pub schema: &'static str,
    /// The file.
    pub path: &'a str,
    /// The device.
    pub device: u32,
    /// The event after which this is so, from 0; -1 before the window.
    pub event: i64,
    /// That event's time; null without a clock.
    pub time_us: Option<i64>,
    /// Requested bytes of the blocks below.
    pub requested_bytes: u64,
    /// Their block sizes.
    pub active_bytes: u64,
    /// The same without those that wait for their free.
    pub allocated_bytes: u64,
    /// Sizes of the segments below.
    pub reserved_bytes: u64,
    /// Live blocks, by address.
    pub blocks: Vec<BlockRecord<'a>>,
    /// What they are, most bytes first.
    pub categories: Vec<CategoryShare>,
    /// Segments, by address, with all that lies in them.
    pub segments: Vec<SegmentRecord<'a>>,
    /// Free memory by pool, stream and size class.
    pub free: Vec<FreeRow>,
}

/// A live block.
#[derive(Debug, Serialize)]
pub struct BlockRecord<'a> {
    /// `0x...`.
    pub address: String,
    /// Requested bytes.
    pub bytes: u64,
    /// Bytes carved out for it.
    pub block_bytes: u64,
    /// What it is.
    pub category: Category,
    /// How sure that is, from 0 to 1.
    pub confidence: f32,
    /// The event that allocated it; null when that was before the window.
    pub alloc_event: Option<u32>,
    /// `active_allocated`, or `active_pending_free` while it waits for its free.
    pub state: &'static str,
    /// The stream's handle.
    pub stream: i64,
    /// `[0, 0]` is the default pool; null where the file does not tell.
    pub pool: Option<[u64; 2]>,
    /// Whether `frames` are those of its free.
    pub of_free: bool,
    /// The call site that names the stack: its innermost frame that is the user's own.
    pub site: String,
    /// Innermost first.
    pub frames: Vec<FrameRecord<'a>>,
}

/// The state in a slot.
pub fn state(target: Target<'_>, slot: u32) -> State<'_> {
    let (trace, entry, snapshot) = (target.trace(), target.entry, target.snapshot());
    let carving = entry.carving(target.index);
    let categories = entry.categories(target.index);
    let live = LiveSet::new(trace, slot);
    let segments = live.segments(carving);
    let blocks = live.blocks();
    let row = |&i: &u32| {
        let block = &trace.blocks[i as usize];
        let guess = categories.get(i);
        BlockRecord {
            address: block.address.plain(),
            bytes: block.bytes.0,
            block_bytes: carving.sizes[i as usize].0,
            category: guess.category,
            confidence: guess.confidence,
            alloc_event: block.alloc_event().map(|EventIndex(event)| event),
            state: if carving.is_allocated(trace, i, slot) {
                "active_allocated"
            } else {
                "active_pending_free"
            },
            stream: snapshot.stream(block.stream),
            pool: pool(snapshot, block.pool),
            of_free: block.has_stack_of_free(),
            site: site(entry, block.stack),
            frames: frames(snapshot, block.stack),
        }
    };
    let of = |i: &u32| trace.blocks[*i as usize].bytes.0;
    State {
        schema: "vramscope.state/1",
        path: target.path,
        device: target.device(),
        event: event_of(slot),
        time_us: time_of(trace, slot),
        requested_bytes: trace.requested.at(slot),
        active_bytes: carving.active.at(slot),
        allocated_bytes: carving.allocated.at(slot),
        reserved_bytes: segments.iter().map(|s| s.size.0).sum(),
        categories: by_category(blocks.iter().map(|i| (categories.get(*i).category, of(i)))),
        blocks: blocks.iter().map(row).collect(),
        free: free_rows(snapshot, &segments),
        segments: segments.iter().map(|s| segment_row(target, s)).collect(),
    }
}
