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

/// A finding in JSON and CSV.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FindingRecord {
    /// A stable id: one file gives one id on every machine.
    pub id: String,
    /// The kind.
    pub kind: FindingKind,
    /// The file's path.
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
    /// The call stack in the file's tables; `None` without a stack, and for findings across ranks.
    #[serde(skip)]
    pub stack: Option<StackId>,
    /// The allocator setting that the finding is about.
    #[serde(skip)]
    pub setting: Option<&'static str>,
}

/// The findings of one device, by severity, then bytes. Outliers need a comparison of ranks.
pub fn of_device(target: Target<'_>) -> Vec<FindingRecord> {
    let found = target.entry.findings(target.index).iter();
    let row = |finding: &Finding| {
        let frames = finding.stack.map(|stack| owned_frames(target.snapshot(), stack));
        let text = finding_text::text(target.entry, &finding.facts, finding.stack);
        record(target.path, finding, text, frames.unwrap_or_default())
    };
    found.map(row).collect()
}

/// The record of an outlier. `frames` is the call stack that it is about.
pub fn outlier(path: &str, finding: &Finding, frames: Vec<FrameRecord<'static>>) -> FindingRecord {
    record(path, finding, finding_text::outlier_text(&finding.facts), frames)
}

/// The findings of all devices, and the outliers among them.
pub fn across(ranks: Vec<RankSummary>) -> Findings {
    let facts: Vec<RankFacts> = ranks.iter().map(RankSummary::facts).collect();
    let outliers = outliers(&facts).into_iter().map(|(index, finding)| {
        let rank = &ranks[index];
        let stack = match &finding.facts {
            Facts::Outlier { item: OutlierItem::Stack { hash, .. }, .. } => {
                rank.stacks.iter().find(|s| s.hash == *hash)
            }
            _ => None,
        };
        outlier(&rank.path, &finding, stack.map(|s| s.frames.clone()).unwrap_or_default())
    });
    let outliers: Vec<FindingRecord> = outliers.collect();
    let mut all: Vec<FindingRecord> =
        ranks.into_iter().flat_map(|r| r.findings).chain(outliers).collect();
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
