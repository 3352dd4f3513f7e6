//! `memstrata anomalies`: what deserves a look, in each file and across ranks.

use super::{FrameRow, Target, by_category, frames, site, slot_of};
use memstrata_analysis::{Anomaly, Fragmentation, FreeMemory, Measure, RankFacts, anomalies_with, by_stack, outliers};
use memstrata_snapshot::{Snapshot, StackId};
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

/// What one device brings to the findings: its own, and what the comparison of ranks needs of it. Small, so that a
/// thousand ranks fit.
#[derive(Clone, Debug)]
pub struct DeviceFindings {
    /// Its own findings.
    pub anomalies: Vec<AnomalyRow>,
    /// For [`across`].
    pub facts: RankFacts,
    path: String,
    /// Call stacks of the facts, in their order.
    stacks: Vec<Vec<FrameRow<'static>>>,
}

/// How many call stacks a rank is compared by.
const STACKS: usize = 200;

/// What is found on a device by itself.
pub fn of_device(target: Target<'_>) -> DeviceFindings {
    let (trace, part, snapshot) = (target.trace(), target.part, target.snapshot());
    let carving = part.carving(target.index);
    let cached = Fragmentation::new(snapshot, trace, carving);
    let free_at = |slot: u32| {
        let (&free, &largest) = (cached.free.get(slot as usize)?, cached.largest.get(slot as usize)?);
        Some(FreeMemory { free, largest })
    };
    let found = anomalies_with(snapshot, trace, &part.sites, &free_at);
    let slot = slot_of(trace.requested_band.peak_event);
    let shares = by_stack(trace, carving, Measure::Requested(slot));
    let shares = &shares[..shares.len().min(STACKS)];
    let categories = part.categories(target.index);
    let live = (0u32..).zip(&trace.blocks).filter(|(_, b)| b.enters <= slot && slot < b.leaves);
    let of_category = by_category(live.map(|(i, b)| (categories.get(i).category, b.bytes.0)));
    let facts = RankFacts {
        name: crate::text::file_name(target.path).to_owned(),
        device: target.device(),
        peaks: vec![
            ("requested_bytes", trace.requested_band.peak),
            ("active_bytes", carving.active_band.peak),
            ("allocated_bytes", carving.allocated_band.peak),
            ("reserved_bytes", trace.reserved_band.peak),
        ],
        by_stack: shares
            .iter()
            .map(|s| (part.sites.get(s.stack).stack_hash, site(part, s.stack), s.weight as u64))
            .collect(),
        by_category: of_category.iter().map(|c| (c.category, c.bytes)).collect(),
    };
    DeviceFindings {
        anomalies: found.into_iter().map(|a| row(target.path, snapshot, a)).collect(),
        stacks: shares.iter().map(|s| owned(snapshot, s.stack)).collect(),
        path: target.path.to_owned(),
        facts,
    }
}

/// All findings: each device's own, and those that only show when ranks are compared.
pub fn across(devices: Vec<DeviceFindings>) -> Anomalies {
    let facts: Vec<RankFacts> = devices.iter().map(|d| d.facts.clone()).collect();
    let beside: Vec<AnomalyRow> = outliers(&facts)
        .into_iter()
        .map(|(rank, anomaly)| {
            let device = &devices[rank];
            // An outlier by stack names it by its hash at the end of its id.
            let hash = anomaly.id.rsplit('-').next().and_then(|h| u64::from_str_radix(h, 16).ok());
            let at = hash.and_then(|hash| device.facts.by_stack.iter().position(|s| s.0 == hash));
            let frames = at.map(|i| device.stacks[i].clone()).unwrap_or_default();
            named(&device.path, anomaly, frames)
        })
        .collect();
    let mut all: Vec<AnomalyRow> = devices.into_iter().flat_map(|d| d.anomalies).chain(beside).collect();
    all.sort_by(|a, b| (b.bytes, &a.path, &a.id).cmp(&(a.bytes, &b.path, &b.id)));
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

/// Frames that outlive the tables that they come from.
fn owned(snapshot: &Snapshot, stack: StackId) -> Vec<FrameRow<'static>> {
    let own =
        |f: FrameRow<'_>| FrameRow { name: f.name.into_owned().into(), file: f.file.into_owned().into(), line: f.line };
    frames(snapshot, stack).into_iter().map(own).collect()
}
