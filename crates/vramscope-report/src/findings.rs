//! `vramscope anomalies`: the findings of each file and across ranks.

use crate::finding_text::{self, Words};
use crate::frames::{FrameRecord, owned_frames, site};
use crate::rank::RankSummary;
use crate::target::Target;
use serde::Serialize;
use vramscope_analysis::{
    Basis, Facts, Finding, FindingKind, OutlierItem, Phase, RankFacts, Severity, outliers,
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
    /// The severity.
    pub severity: Severity,
    /// The file's path.
    pub path: String,
    /// The rank in the path; null if there is none.
    pub rank: Option<u32>,
    /// The device's ordinal.
    pub device: u32,
    /// The finding in a few words.
    pub title: String,
    /// Subject, numbers and cause.
    pub text: String,
    /// What to do.
    pub action: String,
    /// Bytes that the finding is about.
    pub bytes: u64,
    /// The training step, from 0; null if the finding is about several or none.
    pub step: Option<u32>,
    /// The phase; null if the finding is about several or none.
    pub phase: Option<&'static str>,
    /// How the numbers were obtained.
    pub basis: Basis,
    /// Evidence: event indices from 0.
    pub events: Vec<u32>,
    /// The call sites that the finding is about, most bytes first.
    pub sites: Vec<String>,
    /// The callers of the first site, innermost first: frames outside of PyTorch.
    pub called_from: Vec<String>,
    /// The number of blocks that the finding is about.
    pub blocks: u32,
    /// The shares of the call sites, if there are several.
    pub children: Vec<FindingChild>,
    /// The largest call stack, innermost frame first; empty if there is none.
    #[serde(skip)]
    pub frames: Vec<FrameRecord<'static>>,
    /// The largest call stack in the file's tables; `None` without a stack, and for findings across
    /// ranks.
    #[serde(skip)]
    pub stack: Option<StackId>,
}

/// The share of one call site in a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FindingChild {
    /// The call site.
    pub site: String,
    /// Its bytes.
    pub bytes: u64,
    /// Its blocks.
    pub blocks: u32,
}

/// The maximum number of children. The rest is in the text's sum.
const MAX_CHILDREN: usize = 20;

/// The findings of one device, by severity, then bytes. Rank skew needs a comparison of ranks.
pub fn of_device(target: Target<'_>) -> Vec<FindingRecord> {
    let found = target.entry.findings(target.index).iter();
    let row = |finding: &Finding| FindingRecord {
        children: children(target, finding),
        ..record(target.path, finding, finding_text::words(target.entry, finding))
    };
    let with_frames = |record: FindingRecord| {
        let stack = record.stack.unwrap_or(StackId::EMPTY);
        with_frames(record, owned_frames(target.snapshot(), stack))
    };
    let with_sites = |mut record: FindingRecord| {
        record.sites = record.children.iter().map(|child| child.site.clone()).collect();
        if record.children.len() == 1 {
            record.children.clear();
        }
        record
    };
    found.map(row).map(with_sites).map(with_frames).collect()
}

/// The maximum number of callers of a finding's call site.
const MAX_CALLERS: usize = 8;

fn with_frames(record: FindingRecord, frames: Vec<FrameRecord<'static>>) -> FindingRecord {
    let own = frames.iter().filter(|f| !f.is_framework()).map(FrameRecord::label);
    let called_from = own.skip(1).take(MAX_CALLERS).collect();
    FindingRecord { called_from, frames, ..record }
}

/// The shares of call sites, most bytes first. Call stacks with one label are one site.
fn children(target: Target<'_>, finding: &Finding) -> Vec<FindingChild> {
    let mut children: Vec<FindingChild> = Vec::new();
    for part in &finding.parts {
        let site = site(target.entry, part.stack);
        match children.iter_mut().find(|child| child.site == site) {
            Some(child) => {
                child.bytes += part.bytes.0;
                child.blocks += part.blocks;
            }
            None => {
                children.push(FindingChild { site, bytes: part.bytes.0, blocks: part.blocks });
            }
        }
    }
    children.sort_by_key(|child| std::cmp::Reverse(child.bytes));
    children.truncate(MAX_CHILDREN);
    children
}

/// The record of a finding across ranks. `frames` is the call stack that it is about.
pub fn outlier(path: &str, finding: &Finding, frames: Vec<FrameRecord<'static>>) -> FindingRecord {
    let sites = frames.first().map(FrameRecord::label).into_iter().collect();
    let words = finding_text::rank_words(&finding.facts);
    with_frames(FindingRecord { sites, ..record(path, finding, words) }, frames)
}

/// The findings of all devices, and the outliers among them.
pub fn across(ranks: Vec<RankSummary>) -> Findings {
    let facts: Vec<RankFacts> = ranks.iter().map(RankSummary::facts).collect();
    let outliers = outliers(&facts).into_iter().map(|(index, finding)| {
        let rank = &ranks[index];
        let stack = match &finding.facts {
            Facts::RankSkew { item: OutlierItem::Stack { hash, .. }, .. } => {
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

/// A record without call sites.
fn record(path: &str, finding: &Finding, words: Words) -> FindingRecord {
    FindingRecord {
        id: finding.id.clone(),
        kind: finding.kind(),
        severity: finding.severity,
        path: path.to_owned(),
        rank: crate::rank_of(path),
        device: finding.device,
        title: words.title,
        text: words.text,
        action: words.action,
        bytes: finding.bytes,
        step: finding.step,
        phase: finding.phase.map(Phase::name),
        basis: finding.basis,
        events: finding.events.clone(),
        sites: Vec::new(),
        called_from: Vec::new(),
        blocks: finding.blocks,
        children: Vec::new(),
        frames: Vec::new(),
        stack: finding.stack(),
    }
}
