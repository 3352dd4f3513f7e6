//! One side of a comparison: a compact extract of one device.
//!
//! Each text is stored once. A rank's worker writes the side as JSON, and the page passes that JSON
//! to the coordinator without parsing it. So byte counts stay exact, and the two files need not be
//! open at one time.

pub(crate) mod inputs;

use crate::findings::{FindingEntry, FindingRecord, without_replays};
use crate::frames::FrameRecord;
use crate::peak::{BandKind, stacks_at_peak};
use crate::target::Target;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use vramscope_inference::Category;
use vramscope_trace::slicing::Budget;
use vramscope_trace::{Exactness, NoStack};

/// One device of one file, as one side of a comparison.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Side {
    /// The file's path.
    pub path: String,
    /// The rank in the path; null if there is none.
    pub rank: Option<u32>,
    /// The device's ordinal.
    pub device: u32,
    /// The band at whose peak the live set is compared.
    pub band: BandKind,
    /// The event of the band's peak; -1 is the state before the window.
    pub event: i64,
    /// `allocator_settings`: dotted keys and their values as JSON text. Empty before PyTorch 2.3.
    pub settings: Vec<(String, String)>,
    /// The number of whole training steps; 0 if none were found.
    pub steps: u32,
    /// Bytes of the input blocks of a typical step; `None` if no block is known to be input.
    pub input_bytes: Option<u64>,
    /// The four bands, in the order of [`BandKind::ALL`].
    pub bands: [BandFigures; 4],
    /// Blocks that are live at the peak (segments, for `reserved_bytes`).
    pub blocks: u32,
    /// Out-of-memory events.
    pub ooms: u32,
    /// The device's own findings, by severity, then bytes.
    pub findings: Vec<SideFinding>,
    /// Live memory at the peak by category: category, bytes, blocks.
    pub categories: Vec<(Category, u64, u32)>,
    /// Live memory at the peak by call stack, most bytes first.
    pub stacks: Vec<SideStack>,
    /// The distinct frames of the stacks: function, file, line.
    pub frames: Vec<(String, String, u32)>,
    /// The band over the window along each axis of the trace; empty on the command line.
    pub curves: Vec<SideCurve>,
}

/// The figures of a band, in bytes.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct BandFigures {
    /// Before the first event.
    pub start: i64,
    /// The largest value.
    pub peak: i64,
    /// After the last event.
    pub end: i64,
    /// True if the figures are exact to the byte.
    pub exact: bool,
}

/// A finding of a side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct SideFinding {
    /// The subject that identifies it in another recording: the function and file of its call site,
    /// a setting's key, or an empty text.
    pub about: String,
    /// The finding, without the numbers that prove it: a comparison draws no chart of them.
    #[serde(flatten)]
    pub record: FindingRecord,
}

/// The live memory of a call stack at the peak.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SideStack {
    /// Bytes.
    pub bytes: u64,
    /// Blocks.
    pub blocks: u32,
    /// The category, or `mixed`; `None` for segments.
    pub category: Option<String>,
    /// True if this is the stack of the frees.
    pub of_free: bool,
    /// The call site.
    pub site: String,
    /// Why there is no call stack.
    pub no_stack: Option<NoStack>,
    /// Indices into [`Side::frames`], innermost frame first.
    pub frames: Vec<u32>,
}

/// A band along an axis.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SideCurve {
    /// The axis.
    pub align: Align,
    /// Start of the curve, relative to the first event, its time, or the first step.
    pub from: f64,
    /// End of the curve, in the same unit.
    pub to: f64,
    /// The largest value in each of the equally wide columns.
    pub tops: Vec<u64>,
}

/// The axis by which two recordings are aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub enum Align {
    /// Events, counted from the first.
    Event,
    /// Time from the first event.
    Time,
    /// Training steps, all equally wide.
    Step,
}

impl Side {
    /// Extracts one device, without its curves.
    pub async fn new<'a>(target: Target<'a>, band: BandKind, budget: &mut Budget) -> Self {
        // A comparison tells which findings came and went: replays would take longer than all else.
        let findings = without_replays(target);
        let peak = stacks_at_peak(target, band, None, budget).await;
        let (steps, input_bytes) = inputs::of_steps(target, budget).await;
        let mut frames: Vec<(String, String, u32)> = Vec::new();
        let mut known: FxHashMap<FrameRecord<'_>, u32> = FxHashMap::default();
        let mut intern = |frame: FrameRecord<'a>| {
            let next = frames.len() as u32;
            let text = (frame.name.to_string(), frame.file.to_string(), frame.line);
            let index = *known.entry(frame).or_insert(next);
            if index == next {
                frames.push(text);
            }
            index
        };
        let stacks = peak.stacks.into_iter().map(|stack| SideStack {
            bytes: stack.bytes,
            blocks: stack.blocks,
            category: stack.category.map(str::to_owned),
            of_free: stack.of_free,
            site: stack.site,
            no_stack: stack.no_stack,
            frames: stack.frames.into_iter().map(&mut intern).collect(),
        });
        let stacks = stacks.collect();
        Self {
            settings: target.snapshot().settings.clone(),
            steps,
            input_bytes,
            bands: BandKind::ALL.map(|kind| {
                let (band, exactness) = kind.of(target);
                BandFigures {
                    start: band.start,
                    peak: band.peak,
                    end: band.end,
                    exact: exactness == Exactness::Exact,
                }
            }),
            band,
            event: peak.event,
            blocks: peak.blocks,
            categories: peak
                .categories
                .into_iter()
                .map(|c| (c.category, c.bytes.0, c.blocks))
                .collect(),
            ooms: target.trace().ooms.len() as u32,
            findings: findings.iter().map(finding).collect(),
            path: target.path.to_owned(),
            rank: crate::rank_of(target.path),
            device: target.device(),
            stacks,
            frames,
            curves: Vec::new(),
        }
    }

    /// The figures of a band.
    pub fn figures(&self, band: BandKind) -> BandFigures {
        self.bands[band as usize]
    }

    /// The frames of a stack, innermost first.
    pub fn frames_of(&self, stack: &SideStack) -> Vec<FrameRecord<'_>> {
        let row = |&i: &u32| {
            self.frames.get(i as usize).map(|(name, file, line)| FrameRecord {
                name: name.into(),
                file: file.into(),
                line: *line,
            })
        };
        stack.frames.iter().filter_map(row).collect()
    }

    /// The name for texts: `rank 3`, or the path if the rank is unknown.
    pub fn name(&self) -> String {
        self.rank.map_or_else(|| self.path.clone(), |rank| format!("rank {rank}"))
    }
}

/// Extracts a finding. Its subject must match in another recording, where lines may have shifted
/// and events have other numbers.
fn finding(FindingEntry { record, frames, .. }: &FindingEntry) -> SideFinding {
    let own = frames.iter().find(|f| !f.is_framework()).or_else(|| frames.first());
    let about = match own {
        Some(frame) => format!("{} {}", frame.name, crate::text::file_name(&frame.file)),
        None => String::new(),
    };
    SideFinding { about, record: FindingRecord { proof: None, ..record.clone() } }
}
