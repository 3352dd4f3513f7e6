//! One device's window: its blocks, the slots in which they are live, and the resulting bands.

use crate::band::Band;
use crate::blocks::{Block, Origin, Pairing, pair};
use crate::changes::{Change, Changes};
use crate::clock::Clock;
use crate::excerpt;
use crate::host;
use crate::no_stack::StackCoverage;
use crate::parallel;
use crate::segments::segment_event;
use crate::series::Series;
use crate::slicing::{Budget, strides};
use crate::time_scale::TimeScale;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use vramscope_snapshot::{Action, AffectedCurve, Device, Report, Snapshot, Warning, WarningKind};
use vramscope_units::{Bytes, EventIndex};

/// How much of the device's history the window covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coverage {
    /// No block was live before the window.
    Whole,
    /// Some blocks were live before the window.
    Partial,
    /// The file has no events of the device.
    None,
}

/// Whether a band equals PyTorch's own counter, as far as the file shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Exactness {
    /// The trace agrees with the final segments.
    Exact,
    /// The trace disagrees with the final segments, or events were lost.
    Estimate,
}

/// An out-of-memory event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Oom {
    /// Index of the event in the trace.
    pub event: EventIndex,
    /// Requested bytes, after rounding.
    pub requested: Bytes,
    /// Bytes that the driver reported free.
    pub device_free: Option<Bytes>,
}

/// One device's window.
///
/// Slot 0 is the state before the window. Slot `i + 1` is the state after event `i`.
#[derive(Clone, Debug)]
pub struct Trace {
    /// The device's ordinal, and its rows in the snapshot.
    pub device: Device,
    /// Blocks in stack order, bottom first.
    pub blocks: Vec<Block>,
    /// Requested bytes in every slot.
    pub requested: Series,
    /// `requested_bytes` over the window.
    pub requested_band: Band,
    /// `reserved_bytes` over the window.
    pub reserved_band: Band,
    /// Whether `requested_bytes` is exact.
    pub exactness: Exactness,
    /// How much of the device's history is in the trace.
    pub coverage: Coverage,
    /// Number of `alloc` events.
    pub allocations_in_window: u32,
    /// Number of blocks from before the window that are freed in it.
    pub preexisting_freed: u32,
    /// Number of blocks from before the window that are live at the end.
    pub preexisting_live: u32,
    /// Number of active blocks in the final segments.
    pub end_live_blocks: u32,
    /// Out-of-memory events.
    pub ooms: Vec<Oom>,
    /// Number of events by action, in the order of [`Snapshot::actions`].
    pub actions: Vec<(Action, u32)>,
    /// The time axis, when there is a clock.
    pub clock: Option<Clock>,
    /// The scale of the time axis.
    pub time_scale: TimeScale,
    /// Inconsistencies found in this trace.
    pub warnings: Vec<Warning>,
    /// Whether reading dropped or changed a value of the file.
    is_changed: bool,
    /// Which blocks have call stacks.
    pub(crate) stack_coverage: StackCoverage,
    /// Blocks that enter and leave at each slot.
    changes: Changes,
}

impl Trace {
    /// Pairs a device's events with its final segments.
    pub fn new(snapshot: &Snapshot, device: &Device) -> Self {
        let mut report = Report::default();
        if let Some(excerpt) = &device.excerpt {
            excerpt::warn(excerpt, device, &mut report);
        }
        let actions = actions(snapshot, device);
        let Pairing { mut blocks, others } = pair(snapshot, device, &actions, &mut report);
        let slots = device.events.len() + 1;
        if device.kind.is_host() {
            host::set_requests(snapshot, device, &mut blocks, &mut report);
        }
        let changes = Changes::new(&blocks.iter().map(|block| block.enters..block.leaves), slots);
        let (mut requested, mut requested_band) = (Series::with_capacity(slots), Band::default());
        let mut total = 0;
        for (slot, changes) in changes.each(slots).enumerate() {
            let before = total;
            for change in changes {
                let bytes = blocks[change.block() as usize].bytes.0;
                total = if change.enters() { total + bytes } else { total - bytes };
            }
            requested.push(total);
            requested_band.add_slot(slot, total as i64 - before as i64);
        }
        let reserved_band = reserved(snapshot, device, &others, &mut report);
        let mut origins = [0; 5];
        for block in &blocks {
            origins[block.origin() as usize] += 1;
        }
        let count = |origin: Origin| origins[origin as usize];
        let (preexisting_freed, preexisting_live) =
            (count(Origin::PreexistingFreed), count(Origin::PreexistingLive));
        let end_live_blocks = check_end(snapshot, device, requested_band.end, &mut report);
        let coverage = match preexisting_freed + preexisting_live {
            _ if device.events.is_empty() => Coverage::None,
            0 => Coverage::Whole,
            _ => Coverage::Partial,
        };
        let is_changed = snapshot.report.changes_values();
        let clock = Clock::new(snapshot, device);
        let time_scale =
            clock.as_ref().map(|clock| TimeScale::new(clock, &requested, requested_band.peak));
        let estimate = is_changed || report.affects(AffectedCurve::RequestedBytes);
        Self {
            device: device.clone(),
            requested,
            requested_band,
            reserved_band,
            exactness: if estimate { Exactness::Estimate } else { Exactness::Exact },
            coverage,
            allocations_in_window: count(Origin::Alloc),
            preexisting_freed,
            preexisting_live,
            end_live_blocks,
            ooms: ooms(snapshot, device, &others),
            actions,
            clock,
            time_scale: time_scale.unwrap_or_default(),
            warnings: report.warnings().to_vec(),
            is_changed,
            stack_coverage: StackCoverage::of(&blocks),
            blocks,
            changes,
        }
    }

    /// The traces of all devices of a snapshot.
    pub fn all(snapshot: &Snapshot) -> Vec<Self> {
        let new = |device: &Device| Self::new(snapshot, device);
        // In most recordings only one device has events. Then a second thread has no work.
        let traced = snapshot.devices.iter().filter(|device| !device.events.is_empty()).count();
        if traced > 1 {
            parallel::map(&snapshot.devices, new)
        } else {
            snapshot.devices.iter().map(new).collect()
        }
    }

    /// `reserved_bytes` in every slot.
    pub async fn reserved(&self, snapshot: &Snapshot, budget: &mut Budget) -> Series {
        let mut total = self.reserved_band.start;
        let mut series = Series::with_capacity(self.slots() as usize);
        series.push(total.max(0) as u64);
        for part in strides(self.device.events.len()) {
            budget.charge(part.len() as u64).await;
            for event in part {
                total += reserve_change(snapshot, self.device.events.start + event as u32);
                series.push(total.max(0) as u64);
            }
        }
        series
    }

    /// Whether `reserved_bytes` is exact.
    pub fn reserved_exactness(&self) -> Exactness {
        let is_affected = |w: &Warning| w.kind.affects() == Some(AffectedCurve::ReservedBytes);
        if self.is_changed || self.warnings.iter().any(is_affected) {
            Exactness::Estimate
        } else {
            Exactness::Exact
        }
    }

    /// Whether the lives of the blocks are exact, as far as the file shows. Their requested sizes
    /// may be unknown.
    pub(crate) fn lives_exactness(&self) -> Exactness {
        let is_about_lives = |w: &Warning| {
            w.kind != WarningKind::HostRequests
                && w.kind.affects() == Some(AffectedCurve::RequestedBytes)
        };
        if self.is_changed || self.warnings.iter().any(is_about_lives) {
            Exactness::Estimate
        } else {
            Exactness::Exact
        }
    }

    /// Number of slots: one before the window, and one after each event.
    pub fn slots(&self) -> u32 {
        self.requested.len() as u32
    }

    /// Whether only the state when the snapshot was taken is known. `enabled="state"` records one
    /// event.
    pub fn is_state_only(&self) -> bool {
        self.device.events.len() <= 1
    }

    /// The blocks that leave and enter between the previous slot and this one. Leaving blocks come
    /// first.
    pub fn changes_at(&self, slot: u32) -> &[Change] {
        self.changes.at(slot as usize)
    }

    /// Calls `visit` for every block with its index. Each costs `cost` units of the budget.
    pub async fn each_block<'a>(
        &'a self,
        cost: u64,
        budget: &mut Budget,
        mut visit: impl FnMut(u32, &'a Block) + Send,
    ) {
        for part in strides(self.blocks.len()) {
            budget.charge(cost * part.len() as u64).await;
            for (index, block) in (part.start as u32..).zip(&self.blocks[part]) {
                visit(index, block);
            }
        }
    }

    /// The blocks that are live in a slot, with their indices.
    pub async fn live_at(&self, slot: u32, budget: &mut Budget) -> Vec<(u32, &Block)> {
        let mut live = Vec::new();
        for part in strides(self.blocks.len()) {
            budget.charge(part.len() as u64).await;
            let blocks = (part.start as u32..).zip(&self.blocks[part]);
            live.extend(blocks.filter(|(_, block)| block.is_live_at(slot)));
        }
        live
    }

    /// The blocks that leave and enter in a range of slots, in slot order.
    pub fn changes_in(&self, slots: Range<u32>) -> &[Change] {
        self.changes.within(slots.start as usize..slots.end as usize)
    }

    /// The index of the block with a stable name. The name is an address with the event that
    /// allocated the block, or with `None` for a block from before the window.
    pub fn find(&self, address: u64, alloc: Option<EventIndex>) -> Option<u32> {
        match alloc {
            Some(event) => {
                let slot = event.0.checked_add(1).filter(|&slot| slot < self.slots())?;
                let entering =
                    self.changes_at(slot).iter().filter(|c| c.enters()).map(|c| c.block());
                entering.into_iter().find(|&b| self.blocks[b as usize].address.0 == address)
            }
            None => {
                let before = self.blocks.iter().take_while(|b| b.is_preexisting());
                before.into_iter().position(|b| b.address.0 == address).map(|b| b as u32)
            }
        }
    }
}

/// The change of `reserved_bytes` by an event, in bytes.
pub fn reserve_change(snapshot: &Snapshot, row: u32) -> i64 {
    let Some((grows, _)) = segment_event(snapshot.events.action(row)) else { return 0 };
    let size = i64::try_from(snapshot.events.size(row).0).unwrap_or(i64::MAX);
    if grows { size } else { -size }
}

/// The `reserved_bytes` band. `others` are the rows of events that do not belong to a block.
///
/// The band is counted back from the size of the final segments.
fn reserved(snapshot: &Snapshot, device: &Device, others: &[u32], report: &mut Report) -> Band {
    let changes =
        others.iter().map(|&row| (row - device.events.start, reserve_change(snapshot, row)));
    let changes: Vec<(u32, i64)> = changes.filter(|(_, change)| *change != 0).collect();
    let net: i64 = changes.iter().map(|(_, change)| change).sum();
    let end: i64 = snapshot.segments_of(device).iter().map(|s| s.total_size.0 as i64).sum();
    let mut band = Band::of(end - net, []);
    for (event, change) in changes {
        band.add(event, change);
    }
    if band.start < 0 {
        report.warn(WarningKind::ReservedBelowZero, None, || {
            format!(
                "the trace reserves {} bytes more than the final segments hold: segment events \
                 are missing, and reserved_bytes is too low",
                -band.start
            )
        });
    }
    band
}

/// Compares the requested bytes after the last event with the final segments. Returns the number of
/// active blocks in the final segments.
fn check_end(snapshot: &Snapshot, device: &Device, end: i64, report: &mut Report) -> u32 {
    let blocks = snapshot.segments_of(device).iter().flat_map(|s| snapshot.blocks_of(s));
    let (mut count, mut bytes) = (0, 0i64);
    for block in blocks.filter(|b| b.state.is_active()) {
        count += 1;
        bytes += block.requested_size.0 as i64;
    }
    // A trace cut out of a snapshot has no segments to compare with.
    if end != bytes && !device.segments.is_empty() {
        report.warn(WarningKind::EndsRequested, None, || {
            format!(
                "requested bytes after the last event are {end}, those of the final segments \
                 {bytes}: {} apart",
                Bytes(end.abs_diff(bytes)).exact()
            )
        });
    }
    count
}

/// The out-of-memory events among the rows of `others`.
fn ooms(snapshot: &Snapshot, device: &Device, others: &[u32]) -> Vec<Oom> {
    let events = &snapshot.events;
    let rows = others.iter().filter(|&&row| events.action(row) == Action::OOM);
    rows.map(|&row| Oom {
        event: EventIndex(row - device.events.start),
        requested: events.size(row),
        device_free: vramscope_snapshot::Events::sparse(&events.device_free, row),
    })
    .collect()
}

/// The number of events of each action that occurs.
fn actions(snapshot: &Snapshot, device: &Device) -> Vec<(Action, u32)> {
    let mut counts = [0u32; 256];
    for row in device.events.clone() {
        counts[usize::from(snapshot.events.action(row).0)] += 1;
    }
    (0..=u8::MAX).map(Action).zip(counts).filter(|(_, count)| *count > 0).collect()
}
