//! `vramscope anomalies`: the findings of each file and across ranks.

pub use blind::BlindSpotRecord;

mod blind;

use crate::card::Card;
use crate::finding_text::{self, Words, headline, rank_headline};
use crate::frames::{FrameRecord, owned_frames, site};
use crate::phrase::Phrase;
use crate::proof::{self, Proof};
use crate::simulated::Simulated;
use crate::target::Target;
use crate::verdict::{self, Action};
use rustc_hash::FxHashMap;
use serde::Serialize;
use vramscope_analysis::{
    Basis, Facts, Finding, FindingKind, Phase, RankFacts, RankSkew, Severity, SkewSite, rank_skew,
};
use vramscope_snapshot::StackId;

/// `vramscope.anomalies/1`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Findings {
    /// The schema's name and version.
    pub schema: &'static str,
    /// The findings by severity, then bytes.
    pub anomalies: Vec<FindingRecord>,
    /// The number of findings that a limit left out; absent if none.
    #[serde(skip_serializing_if = "is_zero")]
    pub omitted: usize,
    /// What could not be looked for, each once.
    pub blind_spots: Vec<BlindSpotRecord>,
    /// Files in folders that are no snapshots.
    pub skipped_files: usize,
}

impl Findings {
    /// The number of findings, shown or not.
    pub fn found(&self) -> usize {
        self.anomalies.len() + self.omitted
    }

    /// Keeps the first `limit` findings.
    pub fn truncate(&mut self, limit: usize) {
        self.omitted += self.anomalies.len().saturating_sub(limit);
        self.anomalies.truncate(limit);
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// A finding in JSON and CSV.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// What the model of the allocator says: first about the run as recorded, then about changes.
    /// Absent where it says nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub simulated: Vec<Simulated>,
    /// The numbers that prove it; absent where there are none to draw.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
    /// What to do, each in a few words with what it brings.
    #[serde(skip)]
    pub actions: Vec<Action>,
    /// The finding in one sentence, with its nouns as links; the rank is named as in the title.
    #[serde(skip)]
    pub headline: Vec<Phrase>,
    /// What leads to it, beyond the headline; empty where `text` says it.
    #[serde(skip)]
    pub cause: String,
    /// The largest call stack, innermost frame first; empty if there is none.
    #[serde(skip)]
    pub frames: Vec<FrameRecord<'static>>,
    /// The largest call stack in the file's tables; `None` without a stack, and for findings across
    /// ranks.
    #[serde(skip)]
    pub stack: Option<StackId>,
}

impl FindingRecord {
    /// The terms of a search for its blocks: its call sites, or what was live when an allocation
    /// failed. Empty where it is about no blocks.
    pub fn terms(&self) -> Vec<String> {
        if self.kind == FindingKind::Oom {
            let event = self.events.first();
            return event.map(|event| format!("live@#{event}")).into_iter().collect();
        }
        self.sites.iter().map(|site| format!("site:{site}")).collect()
    }
}

/// The share of one call site in a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

/// The findings of one device, by severity, then bytes, with what the model of the allocator says
/// about them if [`Derived::Simulated`](crate::Derived::Simulated) is computed. Rank skew needs a
/// comparison of ranks.
pub fn of_device(target: Target<'_>) -> Vec<FindingRecord> {
    let found = target.entry.findings(target.index).iter().enumerate();
    let proofs = target.entry.proofs(target.index);
    let row = |(i, finding): (usize, &Finding)| {
        let simulated = target.entry.simulated(target.index, i);
        let words = finding_text::words(target.entry, finding, simulated);
        let record = FindingRecord {
            children: children(target, finding),
            headline: headline(target.entry, finding, &words.title, simulated),
            cause: finding_text::cause(target.entry, finding),
            simulated: simulated.to_vec(),
            proof: proofs.get(i).cloned().flatten(),
            ..record(target.path, finding, words)
        };
        FindingRecord { actions: verdict::actions_of(target.entry, finding, &record), ..record }
    };
    let with_frames = |record: FindingRecord| {
        let stack = record.stack.unwrap_or(StackId::EMPTY);
        with_frames(record, owned_frames(target.snapshot(), stack))
    };
    found.map(row).map(with_sites).map(with_frames).collect()
}

/// The record with its call sites. A single one has no children.
fn with_sites(mut record: FindingRecord) -> FindingRecord {
    record.sites = record.children.iter().map(|child| child.site.clone()).collect();
    if record.children.len() == 1 {
        record.children.clear();
    }
    record
}

/// The maximum number of callers of a finding's call site.
const MAX_CALLERS: usize = 8;

fn with_frames(record: FindingRecord, frames: Vec<FrameRecord<'static>>) -> FindingRecord {
    let own = frames.iter().filter(|f| !f.is_framework()).map(FrameRecord::label);
    let called_from = own.skip(1).take(MAX_CALLERS).collect();
    FindingRecord { called_from, frames, ..record }
}

/// The shares of call sites, most bytes first. Call stacks with one label are one site. The call
/// sites of a failed allocation keep their order: the requests by time, then what holds memory.
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
    if finding.kind() != FindingKind::Oom {
        children.sort_by_key(|child| std::cmp::Reverse(child.bytes));
    }
    children.truncate(MAX_CHILDREN);
    children
}

/// The record of a finding across ranks. `frames` is the call stack that it is about.
pub fn of_ranks(path: &str, finding: &Finding, frames: Vec<FrameRecord<'static>>) -> FindingRecord {
    let Facts::RankSkew(skew) = &finding.facts else {
        return record(path, finding, Words::default());
    };
    let mut children: Vec<FindingChild> = Vec::new();
    for SkewSite { site, excess, .. } in &skew.sites {
        match children.iter_mut().find(|child| child.site == *site) {
            Some(child) => child.bytes += excess.0,
            None => {
                children.push(FindingChild { site: site.clone(), bytes: excess.0, blocks: 0 });
            }
        }
    }
    children.sort_by_key(|child| std::cmp::Reverse(child.bytes));
    children.truncate(MAX_CHILDREN);
    let words = finding_text::rank_words(skew);
    let headline = rank_headline(skew);
    let proof = Some(proof::ranks(skew));
    let record = FindingRecord { children, proof, headline, ..record(path, finding, words) };
    with_frames(with_sites(record), frames)
}

/// What makes findings of two ranks equal: their kind, and where it happens. What they are about
/// in bytes differs from rank to rank.
pub fn cause_key(finding: &FindingRecord) -> String {
    let what = match finding.kind {
        // The run ended, or memory was reserved, wherever each rank was at that moment.
        FindingKind::Oom | FindingKind::Reserved | FindingKind::PendingFree => "",
        FindingKind::StrandedPool | FindingKind::Churn => {
            finding.id.splitn(3, '-').nth(2).unwrap_or_default()
        }
        FindingKind::Growth
        | FindingKind::Cycle
        | FindingKind::GradientsHeld
        | FindingKind::HeldTooLong
        | FindingKind::RankSkew => finding.sites.first().map_or("", String::as_str),
    };
    format!("{} {what}", finding.kind.name())
}

/// Where a finding of a rank belongs: the folder of its run, its [`cause_key`] and its path.
pub type RunKey<'a> = (&'a str, &'a str, &'a str);

/// Groups findings that are equal on several ranks. `keys` are the findings, the worst first;
/// `None` is one that no other equals. Each group has one finding of a path at most, and the groups
/// are in the order of their first findings.
pub fn groups(keys: &[Option<RunKey<'_>>]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut known: FxHashMap<(&str, &str), Vec<usize>> = FxHashMap::default();
    // A path joins equal groups in their order, so the number of its findings is the next group.
    let mut joined: FxHashMap<RunKey<'_>, usize> = FxHashMap::default();
    for (i, key) in keys.iter().enumerate() {
        let Some((folder, cause, path)) = *key else {
            groups.push(vec![i]);
            continue;
        };
        let same = known.entry((folder, cause)).or_default();
        let next = joined.entry((folder, cause, path)).or_default();
        *next += 1;
        match same.get(*next - 1) {
            Some(&group) => groups[group].push(i),
            None => {
                same.push(groups.len());
                groups.push(vec![i]);
            }
        }
    }
    groups
}

/// What makes one finding worse than another: the least is the worst. A failed allocation ended the
/// run, whatever else was found.
pub fn order(
    kind: FindingKind,
    severity: Severity,
    bytes: u64,
) -> (bool, Severity, std::cmp::Reverse<u64>) {
    (kind != FindingKind::Oom, severity, std::cmp::Reverse(bytes))
}

/// The findings of all devices, and those across ranks.
pub fn across(ranks: Vec<Card>, skipped_files: usize) -> Findings {
    let facts: Vec<RankFacts> = ranks.iter().map(|card| card.facts(&card.names)).collect();
    let skews = rank_skew(&facts).into_iter().map(|(index, finding)| {
        let rank = &ranks[index];
        let largest = match &finding.facts {
            Facts::RankSkew(RankSkew { sites, .. }) => sites.first(),
            _ => None,
        };
        let is_of = |stack: u32, hash: u64| rank.names.stack(stack).hash == hash;
        let stack = largest.and_then(|site| rank.stacks.iter().find(|s| is_of(s.stack, site.hash)));
        let frames = stack.map(|s| s.frames.clone()).unwrap_or_default();
        let mut record = of_ranks(&rank.path, &finding, frames);
        if let Some(rank) = record.rank {
            record.headline.insert(0, name_of(rank));
        }
        record
    });
    let skews: Vec<FindingRecord> = skews.collect();
    let blind_spots = blind::merged(&ranks);
    let mut all: Vec<FindingRecord> = Vec::new();
    let has_other_rank = |of: &RankFacts| {
        facts.iter().any(|f| f.folder == of.folder && f.rank.is_some() && f.rank != of.rank)
    };
    for (summary, facts) in ranks.into_iter().zip(&facts) {
        let rank = facts.rank.filter(|_| has_other_rank(facts));
        all.extend(summary.records.into_iter().map(|finding| named(finding, rank)));
    }
    all.extend(skews);
    all.sort_by(|a, b| {
        (a.severity, b.bytes, &a.path, &a.id).cmp(&(b.severity, a.bytes, &b.path, &b.id))
    });
    Findings {
        schema: "vramscope.anomalies/1",
        anomalies: all,
        omitted: 0,
        blind_spots,
        skipped_files,
    }
}

/// A finding whose title and text begin with the rank.
fn named(mut finding: FindingRecord, rank: Option<u32>) -> FindingRecord {
    if let Some(rank) = rank {
        finding.title = format!("rank {rank}: {}", finding.title);
        finding.text = format!("rank {rank}: {}", finding.text);
        finding.headline.insert(0, name_of(rank));
    }
    finding
}

/// `rank 3: `.
fn name_of(rank: u32) -> Phrase {
    Phrase { text: format!("rank {rank}: "), ..Phrase::default() }
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
        simulated: Vec::new(),
        proof: None,
        actions: Vec::new(),
        headline: Vec::new(),
        cause: String::new(),
        frames: Vec::new(),
        stack: finding.stack(),
    }
}
