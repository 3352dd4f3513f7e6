//! `memstrata anomalies`: what deserves a look, in each file and across ranks.

use super::rank::{RankSummary, owned};
use super::{FrameRow, Target};
use memstrata_analysis::{Anomaly, Fragmentation, FreeMemory, RankFacts, anomalies, outliers};
use memstrata_snapshot::Snapshot;
use serde::Serialize;

/// `memstrata.anomalies/1`.
#[derive(Debug, Serialize)]
pub struct Anomalies {
    /// The name and version of this form.
    pub schema: &'static str,
    /// The one about most bytes first.
    pub anomalies: Vec<AnomalyRow>,
}

/// A finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AnomalyRow {
    /// The same for the same file everywhere.
    pub id: String,
    /// `growth`, `never_freed`, `pending_free`, `oom`, `fragmentation`, `retry`, `settings` or `outlier`.
    pub kind: &'static str,
    /// The file.
    pub path: String,
    /// The device.
    pub device: u32,
    /// How much memory it is about.
    pub bytes: u64,
    /// What an engineer should know.
    pub text: String,
    /// Events that show it, from 0.
    pub events: Vec<u32>,
    /// The call stack it is about, innermost first; empty where there is none.
    pub frames: Vec<FrameRow<'static>>,
}

/// What is found on a device by itself.
pub(crate) fn of_device(target: Target<'_>) -> Vec<AnomalyRow> {
    let (trace, snapshot) = (target.trace(), target.snapshot());
    let cached = Fragmentation::new(snapshot, trace, target.part.carving(target.index));
    let free_at = |slot: u32| {
        let (&free, &largest) = (cached.free.get(slot as usize)?, cached.largest.get(slot as usize)?);
        Some(FreeMemory { free, largest })
    };
    let found = anomalies(snapshot, trace, &target.part.sites, &free_at);
    found.into_iter().map(|a| row(target.path, snapshot, a)).collect()
}

/// All findings: each device's own, and those that only show when ranks are compared.
pub fn across(ranks: Vec<RankSummary>) -> Anomalies {
    let facts: Vec<RankFacts> = ranks.iter().map(RankSummary::facts).collect();
    let beside: Vec<AnomalyRow> = outliers(&facts)
        .into_iter()
        .map(|(index, anomaly)| {
            let rank = &ranks[index];
            // An outlier by stack names it by its hash at the end of its id.
            let hash = anomaly.id.rsplit('-').next().and_then(|h| u64::from_str_radix(h, 16).ok());
            let stack = hash.and_then(|hash| rank.stacks.iter().find(|s| s.hash == hash));
            let frames = stack.map(|s| s.frames.clone()).unwrap_or_default();
            named(&rank.path, anomaly, frames)
        })
        .collect();
    let mut all: Vec<AnomalyRow> = ranks.into_iter().flat_map(|r| r.anomalies).chain(beside).collect();
    all.sort_unstable_by(|a, b| (b.bytes, &a.path, &a.id).cmp(&(a.bytes, &b.path, &b.id)));
    Anomalies { schema: "memstrata.anomalies/1", anomalies: all }
}

fn row(path: &str, snapshot: &Snapshot, anomaly: Anomaly) -> AnomalyRow {
    let frames = anomaly.stack.map(|stack| owned(snapshot, stack)).unwrap_or_default();
    named(path, anomaly, frames)
}

fn named(path: &str, anomaly: Anomaly, frames: Vec<FrameRow<'static>>) -> AnomalyRow {
    AnomalyRow {
        id: anomaly.id,
        kind: anomaly.kind.name(),
        path: path.to_owned(),
        device: anomaly.device,
        bytes: anomaly.bytes,
        text: anomaly.text,
        events: anomaly.events,
        frames,
    }
}
