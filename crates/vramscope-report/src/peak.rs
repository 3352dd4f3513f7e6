//! `vramscope peak`: the call stacks that hold memory at a band's peak.

pub use crate::band::BandKind;

use super::{
    CategoryShare, Derived, FrameRecord, Target, by_category, event_of, exactness, frame, frames,
    row_category, row_site, slot_of, time_of,
};
use crate::backward::{self, BackwardShare, row_label};
use crate::holders::{Holder, of_blocks};
use crate::ledger::LedgerRecord;
use crate::lens::{AroundRecord, LiveSite, SeparatePeak, around, live_sites, peaks as lens_peaks};
use crate::loaded_file::SnapshotEntry;
use crate::phases::Place;
use crate::places::BlockPlaces;
use crate::search::quoted;
use crate::shapes::{BlockShape, BlockShapes};
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use vramscope_inference::Category;
use vramscope_snapshot::StackId;
use vramscope_trace::slicing::{Budget, STRIDE, now, strides};
use vramscope_trace::{
    Band, NoStack, Series, Share, Trace, by_frame, by_stack, merge_same_lines, peaks,
    reserved_by_stack,
};

/// `vramscope.peak/1`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Peak<'a> {
    /// The schema's name and version.
    pub schema: &'static str,
    /// The file's path.
    pub path: &'a str,
    /// The device's ordinal.
    pub device: u32,
    /// The band's name.
    pub band: &'static str,
    /// The first event after which the band is largest, from 0; -1 is the state before the window.
    pub event: i64,
    /// The time of `event`; null without a clock.
    pub time_us: Option<i64>,
    /// The step that `event` is in, from 0; null outside of steps.
    pub step: Option<u32>,
    /// The phase that `event` is in, as in `vramscope.steps/1`; null if nothing shows phases.
    pub phase: Option<&'static str>,
    /// The place of `event`, with the layer.
    #[serde(skip)]
    pub place: Place,
    /// The band's largest value in bytes. The stacks add up to it.
    pub total: u64,
    /// `exact` or `estimate`.
    pub exactness: &'static str,
    /// Blocks that are live at the peak (segments, for `reserved_bytes`).
    pub blocks: u32,
    /// Live bytes by call stack, most bytes first.
    pub stacks: Vec<StackRecord<'a>>,
    /// The number of stacks left out by `--limit`.
    pub omitted: usize,
    /// Live bytes by frame at any level of the stacks, most inclusive bytes first.
    pub frames: Vec<FrameShareRecord<'a>>,
    /// The number of frames left out by `--limit`.
    pub frames_omitted: usize,
    /// Live bytes by category; empty for `reserved_bytes`.
    pub categories: Vec<CategoryShare>,
    /// The highest separate peaks, the band's peak first.
    pub peaks: Vec<PeakRecord>,
    /// Allocations and frees around `event`, in order.
    pub around: Vec<AroundRecord>,
    /// Blocks that are live after `event` by category and call site, most requested bytes first.
    pub sites: Vec<LiveSite>,
    /// The number of sites left out by `--limit`.
    pub sites_omitted: usize,
    /// Live bytes by stream, most bytes first; empty for `reserved_bytes`.
    pub streams: Vec<StreamShare>,
    /// Live bytes by memory pool, most bytes first; empty for `reserved_bytes`.
    pub pools: Vec<PoolShare>,
    /// The captures of CUDA graphs, and the memory of an inference engine by its use. Absent
    /// without `--by pool`, and without a capture or a KV cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ledger: Option<LedgerRecord>,
}

/// The memory of one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StreamShare {
    /// The stream's handle; 0 is the default stream.
    pub stream: i64,
    /// Bytes.
    pub bytes: u64,
    /// Blocks.
    pub blocks: u32,
}

/// The memory of one pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PoolShare {
    /// The memory pool: `[0, 0]` is the default pool; null if the file does not record pools.
    pub pool: Option<[u64; 2]>,
    /// `small` (requests up to 1 MiB) or `large`: the kind of segment that the blocks lie in.
    pub segment_type: &'static str,
    /// Bytes.
    pub bytes: u64,
    /// Blocks.
    pub blocks: u32,
}

/// The memory of one call stack.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StackRecord<'a> {
    /// A stable id: equal stacks have equal ids in every file. `vramscope show` takes it.
    pub id: String,
    /// Bytes.
    pub bytes: u64,
    /// Blocks.
    pub blocks: u32,
    /// The category, or `mixed` if the blocks have several; null for `reserved_bytes`.
    pub category: Option<&'static str>,
    /// The categories of a mixed row, most bytes first. They add up to `bytes`. Else left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<CategoryShare>,
    /// True if this is the stack of the frees: the blocks were allocated before the window.
    pub of_free: bool,
    /// The call site: the stack's innermost frame in the user's own code.
    pub site: String,
    /// The source line of the call site; absent unless it was recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<&'a str>,
    /// The shape that all its blocks have, as recorded or as far as sizes tell; absent if nothing
    /// tells it or they have several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shape: Option<BlockShape>,
    /// What holds its blocks that are live at the end, most bytes first. Absent unless the file
    /// beside the snapshot tells it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub holders: Vec<Holder>,
    /// Why there is no call stack; null if there is one.
    pub no_stack: Option<NoStack>,
    /// Places in backward of blocks that its threads allocated, most bytes first.
    pub backward: Vec<BackwardShare>,
    /// The call stack, innermost frame first.
    pub frames: Vec<FrameRecord<'a>>,
}

/// The memory of one frame.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FrameShareRecord<'a> {
    /// The frame.
    #[serde(flatten)]
    pub frame: FrameRecord<'a>,
    /// Bytes of all stacks with this frame. Each stack counts once.
    pub inclusive: u64,
    /// Bytes of the stacks whose innermost frame this is.
    pub exclusive: u64,
}

/// A peak that is separate from higher peaks.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PeakRecord {
    /// The first event of the peak; -1 is the state before the window.
    pub event: i64,
    /// The time of `event`; null without a clock.
    pub time_us: Option<i64>,
    /// Bytes.
    pub bytes: u64,
    /// The drop on both sides before the band rises to this height again, in bytes.
    pub prominence: u64,
    /// The step, from 0; null outside of steps.
    pub step: Option<u32>,
    /// The phase; null if nothing shows phases.
    pub phase: Option<&'static str>,
    /// How much lower the next peak of the list is, in bytes; null for the last.
    pub next_lower_bytes: Option<u64>,
    /// The peak and what its end would bring, one sentence each.
    pub text: Vec<String>,
}

impl PeakRecord {
    fn new(trace: &Trace, of: SeparatePeak) -> Self {
        Self {
            event: event_of(of.peak.slot),
            time_us: time_of(trace, of.peak.slot),
            bytes: of.peak.value,
            prominence: of.peak.prominence,
            step: of.place.step,
            phase: of.place.phase,
            next_lower_bytes: of.next_lower.map(|bytes| bytes.0),
            text: of.text,
        }
    }
}

/// What the blocks of a row have in common: the stack, whether it is that of the free, and why
/// there is none.
pub(crate) type RowKey = (StackId, bool, Option<NoStack>);

pub(crate) fn row_key(share: &Share) -> RowKey {
    (share.stack, share.is_of_free, share.no_stack)
}

/// The key of a block's row, after stacks of one line are merged.
pub(crate) fn block_key(target: Target<'_>, block: u32) -> RowKey {
    let trace = target.trace();
    let block = &trace.blocks[block as usize];
    let stack = target.entry.sites.same_line(block.stack);
    (stack, block.has_stack_of_free(), trace.no_stack(block))
}

/// The maximum number of separate peaks.
const MAX_PEAKS: usize = 5;

/// Peaks with less prominence than this fraction of the band's peak belong to a neighboring peak.
const MIN_PROMINENCE_DIVISOR: u64 = 50;

/// The highest separate peaks of a band.
pub async fn separate_peaks(
    series: &Series,
    band: Band,
    budget: &mut Budget,
) -> Vec<vramscope_trace::Peak> {
    let min_prominence = band.peak.max(0) as u64 / MIN_PROMINENCE_DIVISOR;
    peaks(series, MAX_PEAKS, min_prominence, budget).await
}

/// The blocks that are live at a band's peak, by call stack, frame and category.
pub fn peak(target: Target<'_>, band: BandKind, top: Option<usize>) -> Peak<'_> {
    let slot = slot_of(band.of(target).0.peak_event);
    peak_at(target, band, slot, top)
}

/// [`peak`] for any slot.
pub fn peak_at(target: Target<'_>, band: BandKind, slot: u32, top: Option<usize>) -> Peak<'_> {
    now(async |budget| whole(target, band, slot, top, budget).await)
}

/// [`peak`] for a lower separate peak; the first is 1. `None` if there is no such peak.
pub fn nth_peak(
    target: Target<'_>,
    band: BandKind,
    number: usize,
    top: Option<usize>,
) -> Option<Peak<'_>> {
    let peaks = now(async |budget| lens_peaks(target, band, budget).await);
    let slot = peaks.get(number.checked_sub(1)?)?.peak.slot;
    Some(now(async |budget| whole(target, band, slot, top, budget).await))
}

async fn whole<'a>(
    target: Target<'a>,
    band: BandKind,
    slot: u32,
    top: Option<usize>,
    budget: &mut Budget,
) -> Peak<'a> {
    target.entry.derive(Derived::Dims, target.index, budget).await;
    let peak = at_slot(target, band, slot, top, budget).await;
    let around = around(target, slot, budget).await;
    let mut sites = live_sites(target, slot, budget).await;
    let sites_omitted = sites.len().saturating_sub(top.unwrap_or(usize::MAX));
    sites.truncate(sites.len() - sites_omitted);
    let (streams, pools) = streams_and_pools(target, band, slot, budget).await;
    let mut place = peak.place;
    if place.phase.is_none() {
        place = crate::phases::place(target, slot, budget).await;
    }
    let (step, phase) = (place.step, place.phase);
    Peak { step, phase, place, around, sites, sites_omitted, streams, pools, ..peak }
}

/// The live blocks of a slot with their bytes in a band; none of a band without a measure.
async fn live_in(
    target: Target<'_>,
    band: BandKind,
    slot: u32,
    budget: &mut Budget,
) -> Vec<(u32, u64)> {
    let mut live = Vec::new();
    let Some(measure) = band.measure(slot) else { return live };
    let (trace, carving) = (target.trace(), target.entry.carving(target.index));
    for part in strides(trace.blocks.len()) {
        budget.charge(2 * part.len() as u64).await;
        let weights = part.map(|i| (i as u32, measure.of(trace, carving, i as u32) as u64));
        live.extend(weights.filter(|&(_, bytes)| bytes > 0));
    }
    live
}

/// The id of a pool, and the kind of its segments.
type PoolKey = (Option<[u64; 2]>, &'static str);

/// The live blocks of a slot by stream and by pool.
async fn streams_and_pools(
    target: Target<'_>,
    band: BandKind,
    slot: u32,
    budget: &mut Budget,
) -> (Vec<StreamShare>, Vec<PoolShare>) {
    let trace = target.trace();
    let live = live_in(target, band, slot, budget).await;
    let places = BlockPlaces::of(target, live.iter().map(|of| of.0).collect(), budget).await;
    let mut streams: BTreeMap<i64, (u64, u32)> = BTreeMap::new();
    let mut pools: BTreeMap<PoolKey, (u64, u32)> = BTreeMap::new();
    for (block, bytes) in live {
        let stream = target.snapshot().stream(trace.blocks[block as usize].stream);
        let pool = (places.pool(block), places.segment_type(block));
        for sum in [streams.entry(stream).or_default(), pools.entry(pool).or_default()] {
            sum.0 += bytes;
            sum.1 += 1;
        }
    }
    let stream = |(stream, (bytes, blocks))| StreamShare { stream, bytes, blocks };
    let mut streams: Vec<StreamShare> = streams.into_iter().map(stream).collect();
    streams.sort_by_key(|share| Reverse(share.bytes));
    let pool =
        |((pool, segment_type), (bytes, blocks))| PoolShare { pool, segment_type, bytes, blocks };
    let mut pools: Vec<PoolShare> = pools.into_iter().map(pool).collect();
    pools.sort_by_key(|share| Reverse(share.bytes));
    (streams, pools)
}

/// The call stacks at the peak: [`peak`] without `around` and `sites`. Inferred shapes are stated
/// where the dimensions are derived.
pub async fn stacks_at_peak<'a>(
    target: Target<'a>,
    band: BandKind,
    top: Option<usize>,
    budget: &mut Budget,
) -> Peak<'a> {
    let slot = slot_of(band.of(target).0.peak_event);
    at_slot(target, band, slot, top, budget).await
}

async fn at_slot<'a>(
    target: Target<'a>,
    band: BandKind,
    slot: u32,
    top: Option<usize>,
    budget: &mut Budget,
) -> Peak<'a> {
    let (trace, entry, snapshot) = (target.trace(), target.entry, target.snapshot());
    let carving = entry.carving(target.index);
    let categories = entry.categories(target.index);
    let shares = match band.measure(slot) {
        Some(measure) => by_stack(trace, |i| measure.of(trace, carving, i), budget).await,
        None => reserved_by_stack(trace, &carving.segments, slot),
    };
    let shares = merge_same_lines(shares, &entry.sites);
    let live = live_in(target, band, slot, budget).await;
    let shown = top.unwrap_or(shares.len()).min(shares.len());
    let rows: FxHashMap<RowKey, usize> = shares.iter().map(row_key).zip(0..).collect();
    // Categories of the blocks of each row.
    let mut of_row: Vec<Vec<(Category, u64)>> = vec![Vec::new(); shares.len()];
    let mut blocks_of_row: Vec<Vec<u32>> = vec![Vec::new(); shown];
    // Blocks that may be backward's, with their rows and bytes.
    let mut of_backward: Vec<(usize, u32, u64)> = Vec::new();
    for part in live.chunks(STRIDE) {
        budget.charge(2 * part.len() as u64).await;
        for &(i, bytes) in part {
            let Some(&row) = rows.get(&block_key(target, i)) else { continue };
            of_row[row].push((categories.get(i).category, bytes));
            if let Some(blocks) = blocks_of_row.get_mut(row) {
                blocks.push(i);
            }
            let share = &shares[row];
            let is_of_backward =
                share.no_stack.is_some() || entry.sites.is_compiled_only(share.stack);
            if row < shown && is_of_backward {
                of_backward.push((row, i, bytes));
            }
        }
    }
    let backward_shares = backward::shares(target, &of_backward, shown, budget).await;
    let by_frames = by_frame(snapshot, &shares);
    let mut known = BlockShapes::new(target);
    budget.charge(4 * live.len() as u64).await;
    let holders: Vec<Vec<Holder>> =
        blocks_of_row.iter().map(|blocks| of_blocks(target, blocks)).collect();
    let shapes: Vec<Option<BlockShape>> =
        blocks_of_row.into_iter().map(|blocks| known.of_all(blocks)).collect();
    let peaks = lens_peaks(target, band, budget).await;
    let place = peaks.iter().find(|of| of.peak.slot == slot).map(|of| of.place).unwrap_or_default();
    Peak {
        schema: "vramscope.peak/1",
        path: target.path,
        device: target.device(),
        band: band.name(),
        event: event_of(slot),
        time_us: time_of(trace, slot),
        step: place.step,
        phase: place.phase,
        place,
        total: shares.iter().map(|s| s.weight as u64).sum(),
        exactness: exactness(band.of(target).1),
        blocks: shares.iter().map(|s| s.blocks).sum(),
        stacks: shares[..shown]
            .iter()
            .zip(of_row)
            .zip(backward_shares)
            .zip(shapes)
            .zip(holders)
            .map(|((((s, blocks), backward), shape), holders)| {
                let shares = by_category(blocks.into_iter());
                StackRecord {
                    id: stack_id(entry, s.stack, s.no_stack),
                    bytes: s.weight as u64,
                    blocks: s.blocks,
                    category: row_category(&shares),
                    categories: if shares.len() > 1 { shares } else { Vec::new() },
                    of_free: s.is_of_free,
                    site: row_label(row_site(entry, s.stack, s.no_stack), s.no_stack, &backward),
                    source: source(entry, s.stack),
                    shape,
                    holders,
                    no_stack: s.no_stack,
                    backward,
                    frames: frames(snapshot, s.stack),
                }
            })
            .collect(),
        omitted: shares.len() - shown,
        frames_omitted: by_frames.len().saturating_sub(top.unwrap_or(usize::MAX)),
        frames: by_frames
            .into_iter()
            .take(top.unwrap_or(usize::MAX))
            .map(|f| FrameShareRecord {
                frame: frame(snapshot, f.frame),
                inclusive: f.inclusive as u64,
                exclusive: f.exclusive as u64,
            })
            .collect(),
        categories: by_category(live.iter().map(|&(i, bytes)| (categories.get(i).category, bytes))),
        peaks: peaks.into_iter().map(|of| PeakRecord::new(trace, of)).collect(),
        around: Vec::new(),
        sites: Vec::new(),
        sites_omitted: 0,
        streams: Vec::new(),
        pools: Vec::new(),
        ledger: None,
    }
}

/// A search for the blocks of a stack: its hash, or the reason for its lack.
pub(crate) fn stack_id(entry: &SnapshotEntry, stack: StackId, no_stack: Option<NoStack>) -> String {
    match no_stack {
        Some(why) => quoted(&format!("site:{}", crate::text::no_stack(why))),
        None => format!("stack:{:016x}", entry.sites.get(stack).stack_hash),
    }
}

/// The source line of a stack's call site, if it was recorded.
fn source(entry: &SnapshotEntry, stack: StackId) -> Option<&str> {
    let frame = entry.sites.get(stack).frame?;
    entry.source(&entry.snapshot.text(frame.file), frame.line)
}
