//! One side of a comparison: what is kept of a device so that it can be laid beside another,
//! however large its file is.
//!
//! Texts stand in it once. A rank's worker writes it as JSON, which the page carries to the
//! coordinator unread: byte counts stay exact, and the files need not be open together.

use crate::findings::FindingRecord;
use crate::frames::FrameRecord;
use crate::peak::{BandKind, peak_sliced};
use crate::rank::RankSummary;
use crate::target::Target;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use vramscope_analysis::slicing::{Budget, run_to_completion};
use vramscope_analysis::{Category, Exactness, FindingKind};

/// One device of one file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Side {
    /// The file.
    pub path: String,
    /// The rank that its name tells.
    pub rank: Option<u32>,
    /// The device.
    pub device: u32,
    /// The band at whose peak the live set is compared.
    pub band: BandKind,
    /// The event of that peak; -1 is the state before the window.
    pub event: i64,
    /// The four bands, in the order of [`BandKind::ALL`].
    pub bands: [Figures; 4],
    /// Blocks that are live at the peak (segments, for `reserved_bytes`).
    pub blocks: u32,
    /// Out-of-memory events.
    pub ooms: u32,
    /// Its own findings, the most severe first.
    pub findings: Vec<SideFinding>,
    /// What is live at the peak, by category: name, bytes, blocks.
    pub categories: Vec<(Category, u64, u32)>,
    /// The same by call stack, most bytes first.
    pub stacks: Vec<SideStack>,
    /// What the stacks' frames are: function, file, line.
    pub frames: Vec<(String, String, u32)>,
    /// The band over the window along each axis that the trace has; empty where nobody draws it.
    pub curves: Vec<SideCurve>,
}

/// A band.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Figures {
    /// Before the first event.
    pub start: i64,
    /// The largest value.
    pub peak: i64,
    /// After the last event.
    pub end: i64,
    /// Whether they are to the byte.
    pub exact: bool,
}

/// A finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SideFinding {
    /// The kind.
    pub kind: FindingKind,
    /// What it is about, without lines: the function and file of its call site, a setting's name,
    /// or nothing.
    pub about: String,
    /// How much memory it is about.
    pub bytes: u64,
    /// What an engineer should know.
    pub text: String,
}

/// What a call stack holds at the peak.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SideStack {
    /// Bytes.
    pub bytes: u64,
    /// Blocks.
    pub blocks: u32,
    /// What most of these bytes are; `None` for segments.
    pub category: Option<Category>,
    /// Whether it is the stack of the free.
    pub of_free: bool,
    /// The call site that names it.
    pub site: String,
    /// Innermost first: indices into the side's frames.
    pub frames: Vec<u32>,
}

/// A band along an axis.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SideCurve {
    /// `event`, `time` or `step`.
    pub align: Align,
    /// Where it begins, counted from the first event, its time, or the first step.
    pub from: f64,
    /// Where it ends.
    pub to: f64,
    /// The largest value in each of so many equal parts.
    pub tops: Vec<u64>,
}

/// What two recordings are laid over each other by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub enum Align {
    /// Events, counted from the first.
    Event,
    /// Time from the first event.
    Time,
    /// Training steps, each as wide as the others.
    Step,
}

impl Side {
    /// Of one device, without its curves.
    pub fn new(target: Target<'_>, band: BandKind) -> Self {
        run_to_completion(Self::sliced(target, band, &mut Budget::unlimited()))
    }

    /// The same in slices.
    pub async fn sliced<'a>(target: Target<'a>, band: BandKind, budget: &mut Budget) -> Self {
        let summary = RankSummary::sliced(target, budget).await;
        let set = peak_sliced(target, band, None, budget).await;
        let mut frames: Vec<(String, String, u32)> = Vec::new();
        let mut known: BTreeMap<FrameRecord<'_>, u32> = BTreeMap::new();
        let mut intern = |frame: FrameRecord<'a>| {
            let next = frames.len() as u32;
            let text = (frame.name.to_string(), frame.file.to_string(), frame.line);
            let index = *known.entry(frame).or_insert(next);
            if index == next {
                frames.push(text);
            }
            index
        };
        let stacks = set.stacks.into_iter().map(|stack| SideStack {
            bytes: stack.bytes,
            blocks: stack.blocks,
            category: stack.category,
            of_free: stack.of_free,
            site: stack.site,
            frames: stack.frames.into_iter().map(&mut intern).collect(),
        });
        let stacks = stacks.collect();
        Self {
            bands: BandKind::ALL.map(|kind| {
                let (band, exactness) = kind.of(target);
                Figures {
                    start: band.start,
                    peak: band.peak,
                    end: band.end,
                    exact: exactness == Exactness::Exact,
                }
            }),
            band,
            event: set.event,
            blocks: set.blocks,
            categories: set
                .categories
                .into_iter()
                .map(|c| (c.category, c.bytes, c.blocks))
                .collect(),
            ooms: summary.ooms.len() as u32,
            findings: summary.findings.iter().map(finding).collect(),
            path: summary.path,
            rank: summary.rank,
            device: summary.device,
            stacks,
            frames,
            curves: Vec::new(),
        }
    }

    /// A band's figures.
    pub fn figures(&self, band: BandKind) -> Figures {
        self.bands[band as usize]
    }

    /// A stack's frames.
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

    /// What to call it: `rank 3`, or the path.
    pub fn name(&self) -> String {
        self.rank.map_or_else(|| self.path.clone(), |rank| format!("rank {rank}"))
    }
}

/// What a finding is about must be the same in two recordings although lines shift and events have
/// other numbers.
fn finding(row: &FindingRecord) -> SideFinding {
    let own = row.frames.iter().find(|f| !f.is_framework()).or_else(|| row.frames.first());
    let about = match own {
        Some(frame) => format!("{} {}", frame.name, crate::text::file_name(&frame.file)),
        None => row.setting.unwrap_or_default().to_owned(),
    };
    SideFinding { kind: row.kind, about, bytes: row.bytes, text: row.text.clone() }
}
