//! `vramscope anomalies`: what deserves a look, in each file and across ranks.

use super::rank::{RankSummary, owned};
use super::{FrameRow, Target};
use serde::{Serialize, Serializer};
use vramscope_analysis::{Anomaly, RankFacts, Severity, outliers};
use vramscope_snapshot::{Snapshot, StackId};

/// `vramscope.anomalies/1`.
#[derive(Debug, Serialize)]
pub struct Anomalies {
    /// The name and version of this form.
    pub schema: &'static str,
    /// The most severe first, and of those the one about most bytes.
    pub anomalies: Vec<AnomalyRow>,
}

/// A finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AnomalyRow {
    /// The same for the same file everywhere.
    pub id: String,
    /// `growth`, `never_freed`, `pending_free`, `oom`, `fragmentation`, `retry`, `settings` or
    /// `outlier`.
    pub kind: &'static str,
    /// The file.
    pub path: String,
    /// The device.
    pub device: u32,
    /// `high`, `medium` or `low`.
    #[serde(serialize_with = "name")]
    pub severity: Severity,
    /// How much memory it is about.
    pub bytes: u64,
    /// What an engineer should know.
    pub text: String,
    /// Events that show it, from 0.
    pub events: Vec<u32>,
    /// The call stack it is about, innermost first; empty where there is none.
    pub frames: Vec<FrameRow<'static>>,
    /// That stack in the file's tables; `None` where there is none, or where ranks are compared.
    #[serde(skip)]
    pub stack: Option<StackId>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn name<S: Serializer>(severity: &Severity, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(severity.name())
}

/// What is found on a device by itself, the most severe first.
pub(crate) fn of_device(target: Target<'_>) -> Vec<AnomalyRow> {
    let found = target.part.anomalies(target.index);
    found.iter().map(|a| row(target.path, target.snapshot(), a.clone())).collect()
}

/// All findings: each device's own, and those that only show when ranks are compared.
pub fn across(ranks: Vec<RankSummary>) -> Anomalies {
    let facts: Vec<RankFacts> = ranks.iter().map(RankSummary::facts).collect();
    let beside: Vec<AnomalyRow> = outliers(&facts)
        .into_iter()
        .map(|(index, anomaly)| {
            let rank = &ranks[index];
            let hash = stack_of_outlier(&anomaly.id);
            let stack = hash.and_then(|hash| rank.stacks.iter().find(|s| s.hash == hash));
            let frames = stack.map(|s| s.frames.clone()).unwrap_or_default();
            named(&rank.path, anomaly, frames)
        })
        .collect();
    let mut all: Vec<AnomalyRow> =
        ranks.into_iter().flat_map(|r| r.anomalies).chain(beside).collect();
    all.sort_unstable_by(|a, b| {
        (a.severity, b.bytes, &a.path, &a.id).cmp(&(b.severity, a.bytes, &b.path, &b.id))
    });
    Anomalies { schema: "vramscope.anomalies/1", anomalies: all }
}

/// The hash of the stack that an outlier is about: it stands at the end of its id.
pub(crate) fn stack_of_outlier(id: &str) -> Option<u64> {
    id.rsplit('-').next().filter(|h| h.len() == 16).and_then(|h| u64::from_str_radix(h, 16).ok())
}

fn row(path: &str, snapshot: &Snapshot, anomaly: Anomaly) -> AnomalyRow {
    let frames = anomaly.stack.map(|stack| owned(snapshot, stack)).unwrap_or_default();
    named(path, anomaly, frames)
}

/// A finding, with the frames of the stack that it is about.
pub(crate) fn named(path: &str, anomaly: Anomaly, frames: Vec<FrameRow<'static>>) -> AnomalyRow {
    AnomalyRow {
        id: anomaly.id,
        kind: anomaly.kind.name(),
        path: path.to_owned(),
        device: anomaly.device,
        severity: anomaly.severity,
        bytes: anomaly.bytes,
        text: anomaly.text,
        events: anomaly.events,
        stack: anomaly.stack,
        frames,
    }
}
