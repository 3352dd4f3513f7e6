//! The map of segments after an event, and its cache.

use super::lru_cache::LruCache;
use super::subject::Subject;
use crate::messages::DeviceRef;
use crate::messages::views::{MapGroup, MapInfo, MapPin, MapSpec, ROW_UNITS};
use crate::scheduler::SLICE;
use vramscope_layout::SegmentMap;
use vramscope_report::segments::{pin_text, states};
use vramscope_report::{Quantity, Target, event_of, row_site, slot_after, text};
use vramscope_snapshot::SegmentType;
use vramscope_trace::slicing::Budget;
use vramscope_trace::{
    ChangedSegment, FreeKind, FreeShare, PieceKind, Pin, SegmentState, changed_segments,
    free_shares, pins,
};
use vramscope_units::{Bytes, EventIndex};

/// Cached maps: that of the view, and those around the cursor while it steps.
const MAX_MAPS: usize = 4;

/// Pins that an answer lists.
const MAX_PINS: usize = 100;

/// The least number of lines, so that a line is not longer than the plot.
const MIN_LINES: u32 = 4;

/// The least number of bytes in a line: half a segment of the small pool.
const MIN_LINE_BYTES: u64 = 1 << 20;

/// The most recently used maps.
pub(crate) struct Maps(LruCache<(DeviceRef, MapSpec), Map>);

impl Default for Maps {
    fn default() -> Self {
        Self(LruCache::new(MAX_MAPS))
    }
}

impl Maps {
    /// The map of a spec. Runs a slice of computing it; `None` until it is complete.
    pub(crate) fn poll(&mut self, on: &Subject, spec: &MapSpec) -> Option<&Map> {
        let map = self.0.poll((on.device, spec.clone()), |key| map(on.clone(), key));
        map.map(|map| &*map)
    }
}

async fn map(on: Subject, (_, spec): (DeviceRef, MapSpec)) -> Map {
    Map::new(on.at(), &spec, &mut Budget::of(SLICE)).await
}

/// A map and its figures.
pub(crate) struct Map {
    /// The pieces in their lines.
    pub(super) map: SegmentMap,
    /// The figures.
    pub(crate) info: MapInfo,
}

impl Map {
    /// The map of a device after an event.
    async fn new(at: Target<'_>, spec: &MapSpec, budget: &mut Budget) -> Self {
        let (trace, snapshot) = (at.trace(), at.snapshot());
        let slot = slot_after(trace, spec.event);
        let after = states(at, slot, budget).await;
        budget.charge(8 * after.iter().map(|s| s.pieces.len() as u64).sum::<u64>()).await;
        let mut shares = free_shares(&after);
        let (pins, text) = (pins(snapshot, &after), sums(&after, event_of(slot)));
        let shown = match spec.from {
            Some(from) => {
                let before = states(at, slot_after(trace, from), budget).await;
                budget.charge(8 * before.iter().map(|s| s.pieces.len() as u64).sum::<u64>()).await;
                changed_segments(&before, after, |block| {
                    let block = &trace.blocks[block as usize];
                    block.is_live_at(slot)
                })
            }
            None => after.into_iter().map(unchanged).collect(),
        };
        // Everything of a group can be released.
        for segment in &shown {
            let kind = kind_of(&segment.state);
            if !shares.iter().any(|share| share.kind == kind) {
                let none = Bytes(0);
                shares.push(FreeShare {
                    kind,
                    reserved: none,
                    active: none,
                    free: none,
                    largest: none,
                });
            }
        }
        // The order does not change while the cursor steps: by pool, stream and class.
        shares.sort_by_key(|share| {
            let kind = share.kind;
            let pool = snapshot.pool(kind.pool);
            (pool.is_none(), pool, snapshot.stream(kind.stream), kind.is_small)
        });
        let of = |share: &FreeShare| -> Vec<Parts<'_>> {
            let is_in = |segment: &&ChangedSegment| kind_of(&segment.state) == share.kind;
            shown.iter().filter(is_in).map(parts).collect()
        };
        let groups: Vec<Vec<Parts<'_>>> = shares.iter().map(of).collect();
        let size = |group: &Vec<Parts<'_>>| group.iter().map(|(segment, _)| segment.size.0).sum();
        let sizes: Vec<u64> = groups.iter().map(size).collect();
        let count = |share: &FreeShare| {
            let is_in = |segment: &&ChangedSegment| {
                kind_of(&segment.state) == share.kind && !segment.is_released
            };
            shown.iter().filter(is_in).count()
        };
        let peak = (trace.reserved_band.peak.max(0) as u64).min(MAX_PEAK);
        let line_bytes = line_bytes(&sizes, peak, spec.lines.max(MIN_LINES));
        let map = SegmentMap::changed(&groups, line_bytes, ROW_UNITS);
        let info = MapInfo {
            units: map.units(),
            line_bytes: map.line_bytes() as f64,
            text,
            scale: format!("a line is {}", Bytes(line_bytes)),
            groups: (0..)
                .zip(&shares)
                .map(|(index, share)| map_group(at, share, count(share), map.head(index)))
                .collect(),
            pinned: pinned(&pins),
            pins: pins.iter().take(MAX_PINS).filter_map(|pin| map_pin(at, &map, pin)).collect(),
        };
        Self { map, info }
    }
}

fn kind_of(segment: &SegmentState) -> FreeKind {
    FreeKind {
        pool: segment.pool,
        stream: segment.stream,
        is_small: segment.segment_type == SegmentType::Small,
    }
}

/// A segment and the kinds of its pieces.
type Parts<'a> = (&'a SegmentState, &'a [PieceKind]);

fn parts(segment: &ChangedSegment) -> Parts<'_> {
    (&segment.state, &segment.kinds)
}

/// A segment of a map that shows no changes.
fn unchanged(state: SegmentState) -> ChangedSegment {
    ChangedSegment { state, kinds: Vec::new(), is_released: false }
}

/// A larger peak comes from a damaged file.
const MAX_PEAK: u64 = 1 << 50;

/// Bytes in a line, so that all groups fit into the lines. It is chosen by the peak of reserved
/// bytes, so that it mostly stays while the cursor steps.
fn line_bytes(groups: &[u64], peak: u64, lines: u32) -> u64 {
    let lines = u64::from(lines);
    // Quarters of powers of two.
    let least = (peak / lines).max(MIN_LINE_BYTES);
    let mut quarter = (1u64 << least.ilog2()) / 4;
    let mut quarters = least.div_ceil(quarter);
    while SegmentMap::lines_for(groups, quarter * quarters) > lines {
        quarters += 1;
        if quarters >= 8 {
            (quarter, quarters) = (quarter * 2, 4);
        }
        // More groups than lines: the map scrolls.
        if quarter * quarters > 4 * least.max(peak) {
            return least.next_power_of_two();
        }
    }
    quarter * quarters
}

fn sums(states: &[SegmentState], event: i64) -> String {
    let segments = Quantity::count(states.len() as u64, "segment", "segments").exact;
    let sum = |of: fn(&SegmentState) -> Bytes| Bytes(states.iter().map(|s| of(s).0).sum());
    let (reserved, active) = (sum(|s| s.size), sum(|s| s.active));
    let when = match u32::try_from(event) {
        Ok(event) => format!("After {}", EventIndex(event)),
        Err(_) => "Before the window".to_owned(),
    };
    format!("{when}: {segments}, {reserved} reserved, {active} active")
}

fn map_group(at: Target<'_>, share: &FreeShare, segments: usize, head: [f64; 2]) -> MapGroup {
    let snapshot = at.snapshot();
    MapGroup {
        y: (head[0], head[1]),
        name: text::free_kind(snapshot, share.kind),
        title: text::handles(snapshot, share.kind.pool, share.kind.stream),
        segments: Quantity::count(segments as u64, "segment", "segments"),
        reserved: Quantity::bytes(share.reserved),
        active: Quantity::bytes(share.active),
        free: Quantity::bytes(share.free),
        hole: Quantity::bytes(share.largest),
    }
}

fn map_pin(at: Target<'_>, map: &SegmentMap, pin: &Pin) -> Option<MapPin> {
    let part = *map.parts_of(pin.block).first()?;
    let block = &at.trace().blocks[pin.block as usize];
    Some(MapPin {
        block: pin.block,
        x: (part.x[0] as f64, part.x[1] as f64),
        y: (part.y[0], part.y[1]),
        kept: Quantity::bytes(pin.kept),
        text: pin_text(pin),
        site: row_site(at.entry, block.stack, at.trace().no_stack(block)),
    })
}

fn pinned(pins: &[Pin]) -> String {
    if pins.is_empty() {
        return String::new();
    }
    let segments = Quantity::count(pins.len() as u64, "segment", "segments").exact;
    format!("{segments}, {}", Bytes(pins.iter().map(|pin| pin.kept.0).sum()))
}
