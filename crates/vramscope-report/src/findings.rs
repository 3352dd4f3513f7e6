//! `vramscope anomalies`: the findings of each file and across ranks.

use crate::finding_text;
use crate::frames::{FrameRecord, owned_frames};
use crate::rank::RankSummary;
use crate::target::Target;
use serde::Serialize;
use vramscope_analysis::{
    Facts, Finding, FindingKind, OutlierItem, RankFacts, SettingCost, Severity, outliers,
};
use vramscope_snapshot::StackId;

/// `vramscope.anomalies/1`.
#[derive(Debug, Serialize)]
pub struct Findings {
    /// The schema's name and version.
    pub schema: &'static str,
    /// The findings by severity, then bytes.
    pub anomalies: Vec<FindingRecord>,
}

/// A finding as JSON and CSV have it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FindingRecord {
    /// A stable id: equal for the same file everywhere.
    pub id: String,
    /// The kind.
    pub kind: FindingKind,
    /// The file.
    pub path: String,
    /// The device's ordinal.
    pub device: u32,
    /// The severity.
    pub severity: Severity,
    /// Bytes that the finding is about.
    pub bytes: u64,
    /// The finding in words.
    pub text: String,
    /// Evidence: event indices from 0.
    pub events: Vec<u32>,
    /// The call stack that the finding is about, innermost frame first; empty if there is none.
    pub frames: Vec<FrameRecord<'static>>,
    /// That stack in the file's tables; `None` if there is none, or for findings across ranks.
    #[serde(skip)]
    pub stack: Option<StackId>,
    /// The allocator setting that the finding is about.
    #[serde(skip)]
    pub setting: Option<&'static str>,
}

/// The findings of one device by itself, by severity, then bytes.
pub fn of_device(target: Target<'_>) -> Vec<FindingRecord> {
    let found = target.entry.findings(target.index).iter();
    let of = |finding: &Finding| {
        let frames = finding.stack.map(|stack| owned_frames(target.snapshot(), stack));
        let text = finding_text::text(target.entry, &finding.facts, finding.stack);
        record(target.path, finding, text, frames.unwrap_or_default())
    };
    found.map(of).collect()
}

/// A finding across ranks. `frames` are those of the call stack that it is about.
pub fn outlier(path: &str, finding: &Finding, frames: Vec<FrameRecord<'static>>) -> FindingRecord {
    record(path, finding, finding_text::outlier_text(&finding.facts), frames)
}

/// All findings: those of each device, and those that only a comparison of ranks shows.
pub fn across(ranks: Vec<RankSummary>) -> Findings {
    let facts: Vec<RankFacts> = ranks.iter().map(RankSummary::facts).collect();
    let beside = outliers(&facts).into_iter().map(|(index, finding)| {
        let rank = &ranks[index];
        let stack = match &finding.facts {
            Facts::Outlier { item: OutlierItem::Stack { hash, .. }, .. } => {
                rank.stacks.iter().find(|s| s.hash == *hash)
            }
            _ => None,
        };
        outlier(&rank.path, &finding, stack.map(|s| s.frames.clone()).unwrap_or_default())
    });
    let beside: Vec<FindingRecord> = beside.collect();
    let mut all: Vec<FindingRecord> =
        ranks.into_iter().flat_map(|r| r.findings).chain(beside).collect();
    all.sort_unstable_by(|a, b| {
        (a.severity, b.bytes, &a.path, &a.id).cmp(&(b.severity, a.bytes, &b.path, &b.id))
    });
    Findings { schema: "vramscope.anomalies/1", anomalies: all }
}

fn record(
    path: &str,
    finding: &Finding,
    text: String,
    frames: Vec<FrameRecord<'static>>,
) -> FindingRecord {
    let setting = match &finding.facts {
        Facts::Settings(cost) => Some(SettingCost::key(cost)),
        _ => None,
    };
    FindingRecord {
        id: finding.id.clone(),
        kind: finding.kind(),
        path: path.to_owned(),
        device: finding.device,
        severity: finding.severity,
        bytes: finding.bytes,
        text,
        events: finding.events.clone(),
        frames,
        stack: finding.stack,
        setting,
    }
}
