//! `vramscope peak`: who holds memory when a band is largest.

use super::{
    CategoryShare, FrameRecord, Target, by_category, event_of, exactness, frame, frames, site,
    slot_of, time_of,
};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use vramscope_analysis::slicing::{Budget, run_to_completion, strides};
use vramscope_analysis::{
    Band, Category, Exactness, Measure, Series, by_frame, by_stack_sliced, peaks_sliced,
    reserved_by_stack,
};

/// A band of `torch.cuda.memory_stats()`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub enum BandKind {
    /// `requested_bytes`.
    #[serde(rename = "requested_bytes")]
    Requested,
    /// `active_bytes`.
    #[serde(rename = "active_bytes")]
    Active,
    /// `allocated_bytes`.
    #[serde(rename = "allocated_bytes")]
    Allocated,
    /// `reserved_bytes`.
    #[serde(rename = "reserved_bytes")]
    Reserved,
}

impl BandKind {
    /// All of them, in the order in which they are told: what a program asked for first, what the
    /// device gave last.
    pub const ALL: [Self; 4] = [Self::Requested, Self::Active, Self::Allocated, Self::Reserved];

    /// PyTorch's name of it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Requested => "requested_bytes",
            Self::Active => "active_bytes",
            Self::Allocated => "allocated_bytes",
            Self::Reserved => "reserved_bytes",
        }
    }

    /// The band of a device, and how exact it is.
    pub fn of(self, target: Target<'_>) -> (Band, Exactness) {
        let (trace, carving) = (target.trace(), target.entry.carving(target.index));
        match self {
            Self::Requested => (trace.requested_band, trace.exactness),
            Self::Active => (carving.active_band, carving.exactness),
            Self::Allocated => (carving.allocated_band, carving.exactness),
            Self::Reserved => (trace.reserved_band, trace.reserved_exactness()),
        }
    }

    /// Its value in every slot.
    pub fn series(self, target: Target<'_>) -> Cow<'_, Series> {
        run_to_completion(self.series_sliced(target, &mut Budget::unlimited()))
    }

    /// The same in slices.
    pub async fn series_sliced<'a>(
        self,
        target: Target<'a>,
        budget: &mut Budget,
    ) -> Cow<'a, Series> {
        let carving = target.entry.carving(target.index);
        match self {
            Self::Requested => Cow::Borrowed(&target.trace().requested),
            Self::Active => Cow::Borrowed(&carving.active),
            Self::Allocated => Cow::Borrowed(&carving.allocated),
            Self::Reserved => {
                Cow::Owned(target.trace().reserved_sliced(target.snapshot(), budget).await)
            }
        }
    }

    fn measure(self, slot: u32) -> Option<Measure> {
        match self {
            Self::Requested => Some(Measure::Requested(slot)),
            Self::Active => Some(Measure::Active(slot)),
            Self::Allocated => Some(Measure::Allocated(slot)),
            Self::Reserved => None,
        }
    }
}

/// `vramscope.peak/1`.
#[derive(Debug, Serialize)]
pub struct Peak<'a> {
    /// The name and version of this form.
    pub schema: &'static str,
    /// The file.
    pub path: &'a str,
    /// The device.
    pub device: u32,
    /// The band.
    pub band: &'static str,
    /// The first event after which it is largest, from 0; -1 when that is the state before the
    /// window.
    pub event: i64,
    /// That event's time; null without a clock.
    pub time_us: Option<i64>,
    /// The band's largest value in bytes. The stacks add up to it.
    pub total: u64,
    /// How exact it is.
    pub exactness: &'static str,
    /// Blocks that are live there (segments, for `reserved_bytes`).
    pub blocks: u32,
    /// By call stack, most bytes first.
    pub stacks: Vec<StackRow<'a>>,
    /// Stacks that `--top` left out.
    pub stacks_left_out: usize,
    /// By frame, at any level of the stacks, most inclusive bytes first.
    pub frames: Vec<FrameShareRow<'a>>,
    /// By category; empty for `reserved_bytes`.
    pub categories: Vec<CategoryShare>,
    /// The highest separate peaks, this one first.
    pub peaks: Vec<PeakRow>,
}

/// What one call stack holds.
#[derive(Debug, Serialize)]
pub struct StackRow<'a> {
    /// Bytes.
    pub bytes: u64,
    /// Blocks.
    pub blocks: u32,
    /// The category of most of these bytes; null for `reserved_bytes`.
    pub category: Option<Category>,
    /// Whether it is the stack of the free: the blocks were allocated before the window.
    pub of_free: bool,
    /// The call site that names the stack: its innermost frame that is the user's own.
    pub site: String,
    /// Innermost first.
    pub frames: Vec<FrameRecord<'a>>,
}

/// What one frame adds up to.
#[derive(Debug, Serialize)]
pub struct FrameShareRow<'a> {
    /// The frame.
    #[serde(flatten)]
    pub frame: FrameRecord<'a>,
    /// Bytes of all stacks that it is in, each counted once.
    pub inclusive: u64,
    /// Bytes of the stacks in which it is the innermost.
    pub exclusive: u64,
}

/// A separate peak.
#[derive(Debug, Serialize)]
pub struct PeakRow {
    /// The first event of it; -1 before the window.
    pub event: i64,
    /// That event's time; null without a clock.
    pub time_us: Option<i64>,
    /// Bytes.
    pub bytes: u64,
    /// How far the band falls on both sides before it is as high again.
    pub prominence: u64,
}

/// How many separate peaks are told.
const PEAKS: usize = 5;

/// The highest separate peaks of a band. What stands out by less than a fiftieth of the whole is
/// the same peak.
pub async fn separate(
    series: &Series,
    band: Band,
    budget: &mut Budget,
) -> Vec<vramscope_analysis::Peak> {
    peaks_sliced(series, PEAKS, band.peak.max(0) as u64 / 50, budget).await
}

/// The live set at a band's peak.
pub fn peak(target: Target<'_>, band: BandKind, top: Option<usize>) -> Peak<'_> {
    run_to_completion(peak_sliced(target, band, top, &mut Budget::unlimited()))
}

/// The same in slices.
pub async fn peak_sliced<'a>(
    target: Target<'a>,
    band: BandKind,
    top: Option<usize>,
    budget: &mut Budget,
) -> Peak<'a> {
    let (trace, entry, snapshot) = (target.trace(), target.entry, target.snapshot());
    let carving = entry.carving(target.index);
    let (figures, exact) = band.of(target);
    let slot = slot_of(figures.peak_event);
    let categories = entry.categories(target.index);
    let shares = match band.measure(slot) {
        Some(measure) => by_stack_sliced(trace, |i| measure.of(trace, carving, i), budget).await,
        None => reserved_by_stack(&carving.segments, slot),
    };
    let mut live: Vec<(u32, u64)> = Vec::new();
    if let Some(measure) = band.measure(slot) {
        for part in strides(trace.blocks.len()) {
            budget.charge(2 * part.len() as u64).await;
            let weights = part.map(|i| (i as u32, measure.of(trace, carving, i as u32) as u64));
            live.extend(weights.filter(|&(_, bytes)| bytes > 0));
        }
    }
    // For each stack, what its blocks are mostly.
    let mut of_stack = vec![[0u64; Category::ALL.len()]; snapshot.stacks.len()];
    for &(i, bytes) in &live {
        of_stack[trace.blocks[i as usize].stack.0 as usize][categories.get(i).category as usize] +=
            bytes;
    }
    let most = |stack: u32| {
        let sums = &of_stack[stack as usize];
        let best = (0..sums.len()).rev().max_by_key(|&c| sums[c]);
        best.filter(|&c| sums[c] > 0).map(|c| Category::ALL[c])
    };
    let shown = top.unwrap_or(shares.len()).min(shares.len());
    let total: u64 = shares.iter().map(|s| s.weight as u64).sum();
    let series = band.series_sliced(target, budget).await;
    let separate = separate(&series, figures, budget).await;
    Peak {
        schema: "vramscope.peak/1",
        path: target.path,
        device: target.device(),
        band: band.name(),
        event: event_of(slot),
        time_us: time_of(trace, slot),
        total,
        exactness: exactness(exact),
        blocks: shares.iter().map(|s| s.blocks).sum(),
        stacks: shares[..shown]
            .iter()
            .map(|s| StackRow {
                bytes: s.weight as u64,
                blocks: s.blocks,
                category: most(s.stack.0),
                of_free: s.is_of_free,
                site: site(entry, s.stack),
                frames: frames(snapshot, s.stack),
            })
            .collect(),
        stacks_left_out: shares.len() - shown,
        frames: by_frame(snapshot, &shares)
            .into_iter()
            .take(top.unwrap_or(usize::MAX))
            .map(|f| FrameShareRow {
                frame: frame(snapshot, f.frame),
                inclusive: f.inclusive as u64,
                exclusive: f.exclusive as u64,
            })
            .collect(),
        categories: by_category(live.iter().map(|&(i, bytes)| (categories.get(i).category, bytes))),
        peaks: separate
            .into_iter()
            .map(|p| PeakRow {
                event: event_of(p.slot),
                time_us: time_of(trace, p.slot),
                bytes: p.value,
                prominence: p.prominence,
            })
            .collect(),
    }
}
