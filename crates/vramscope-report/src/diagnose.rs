//! `vramscope diagnose`: the verdict about a file or a run, on one page.

mod fit;

use crate::card::Card;
use crate::derived::Derived;
use crate::findings::{BlindSpotRecord, FindingRecord, RunKey, across, cause_key, groups, order};
use crate::peak::BandKind;
use crate::phases::{Place, place_sliced};
use crate::phrase::plain;
use crate::target::{Target, slot_of};
use crate::text::rank_name;
use crate::verdict::{Verdict, peak_place, peak_sentence, verdict_sliced};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use vramscope_analysis::slicing::{Budget, run_to_completion};
use vramscope_analysis::{BlindSpot, FindingKind, Severity};
use vramscope_snapshot::HOST;
use vramscope_units::grouped;

/// The maximum number of findings in a [`Diagnosis`].
pub const MAX_FINDINGS: usize = 5;

/// The maximum number of devices in a [`Diagnosis`].
const MAX_HEADLINES: usize = 4;

/// `vramscope.diagnose/1`. Its JSON has at most 8 kB.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Diagnosis {
    /// The schema's name and version.
    pub schema: &'static str,
    /// The result: the headline of the worst finding, and what leads to it.
    pub verdict: String,
    /// One sentence for each device, the worst first, at most four. The page begins with it.
    pub headlines: Vec<Headline>,
    /// The number of further devices; absent if none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headlines_omitted: Option<usize>,
    /// The memory of the first of these devices, at the moment of its headline; null if nothing
    /// was reserved.
    pub memory: Option<MemorySummary>,
    /// The findings that matter most, at most five. One finding stands for equal ones of several
    /// ranks. Long lists and texts are cut.
    pub findings: Vec<FindingRecord>,
    /// The number of further findings; absent if none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub omitted: Option<usize>,
    /// The highest peak of `requested_bytes`; null if no memory was allocated.
    pub peak: Option<PeakSummary>,
    /// What could not be looked for.
    pub blind_spots: Vec<BlindSpotRecord>,
    /// Files in folders that are no snapshots.
    pub skipped_files: usize,
}

impl Diagnosis {
    /// The number of findings, shown or not.
    pub fn found(&self) -> usize {
        self.findings.len() + self.omitted.unwrap_or(0)
    }
}

/// The sentence about a device.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Headline {
    /// The file's path.
    pub path: String,
    /// The rank in the path; null if there is none.
    pub rank: Option<u32>,
    /// The device's ordinal.
    pub device: u32,
    /// The severity of its worst finding; null without one above low.
    pub severity: Option<Severity>,
    /// The id of that finding; null without one.
    pub finding: Option<String>,
    /// The sentence.
    pub text: String,
}

/// The memory of a device at one moment. Bytes.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemorySummary {
    /// The event after which it holds, from 0; -1 is the state before the window.
    pub event: i64,
    /// `reserved_bytes`.
    pub reserved: u64,
    /// What PyTorch can have; null where the file does not tell.
    pub capacity: Option<u64>,
    /// The request that failed; null without one.
    pub request: Option<u64>,
    /// What it is used for: categories of blocks, what no block holds, and what PyTorch did not
    /// reserve.
    pub parts: BTreeMap<&'static str, u64>,
}

/// The highest peak of `requested_bytes` of all ranks.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PeakSummary {
    /// The file's path.
    pub path: String,
    /// The rank in the path; null if there is none.
    pub rank: Option<u32>,
    /// The device's ordinal.
    pub device: u32,
    /// Requested bytes.
    pub bytes: u64,
    /// The first event after which it is reached, from 0; -1 is the state before the window.
    pub event: i64,
    /// The training step, from 0; null if nothing shows it.
    pub step: Option<u32>,
    /// The phase; null if nothing shows it.
    pub phase: Option<&'static str>,
    /// Requested bytes by category.
    pub categories: BTreeMap<&'static str, u64>,
}

/// One device: its card, the step and the phase of its peak, and its verdict.
#[derive(Debug)]
pub struct Diagnosed {
    card: Card,
    place: Place,
    verdict: Verdict,
}

/// What a diagnosis needs of one device.
pub fn at_peak(target: Target<'_>) -> Diagnosed {
    let slot = slot_of(target.trace().requested_band.peak_event);
    let card = Card::new(target);
    let all = async {
        let budget = &mut Budget::unlimited();
        target.entry.derive(Derived::Findings, target.index, budget).await;
        let place = place_sliced(target, slot, budget).await;
        (place, verdict_sliced(target, budget).await)
    };
    let (place, verdict) = run_to_completion(all);
    Diagnosed { card, place, verdict }
}

/// The verdict about devices, with at most `limit` findings.
pub fn diagnose(ranks: Vec<Diagnosed>, limit: usize, skipped_files: usize) -> Diagnosis {
    let (peak, sentence) = highest_peak(&ranks).unzip();
    let headlines = headlines(&ranks);
    let cards = ranks.into_iter().map(|rank| rank.card).collect();
    let all = across(cards, skipped_files);
    let mut headlines = compared(headlines, &all.anomalies);
    let headlines_omitted =
        Some(headlines.len().saturating_sub(MAX_HEADLINES)).filter(|&omitted| omitted > 0);
    let memory = headlines.first_mut().and_then(|worst| worst.memory.take());
    headlines.truncate(MAX_HEADLINES);
    let headlines = headlines.into_iter().map(|one| one.headline).collect();
    let mut findings = merged(all.anomalies);
    let found = findings.len();
    let verdict = verdict(&findings, sentence, &all.blind_spots);
    findings.truncate(limit.min(MAX_FINDINGS));
    let mut diagnosis = Diagnosis {
        schema: "vramscope.diagnose/1",
        verdict,
        headlines,
        headlines_omitted,
        memory,
        findings,
        omitted: None,
        peak,
        blind_spots: all.blind_spots,
        skipped_files,
    };
    fit::fit(&mut diagnosis, found);
    diagnosis
}

/// What makes one headline worse than another: the least is the worst.
type Weight = (bool, Option<(bool, Severity, Reverse<u64>)>, bool, Reverse<u64>);

/// A headline, with its weight and the memory of its device.
struct Weighted {
    weight: Weight,
    headline: Headline,
    memory: Option<MemorySummary>,
}

/// The sentence about each device by its own findings.
fn headlines(ranks: &[Diagnosed]) -> Vec<Weighted> {
    let weighted = |rank: &Diagnosed| {
        let id = rank.verdict.finding.as_ref();
        let mut findings = rank.card.records.iter();
        let worst = findings.find(|finding| Some(&finding.id) == id);
        let worst = worst.map(|f| order(f.kind, f.severity, f.bytes));
        let bar = &rank.verdict.memory;
        let memory = (bar.reserved.0 > 0).then(|| MemorySummary {
            event: bar.event,
            reserved: bar.reserved.0,
            capacity: bar.capacity.map(|bytes| bytes.0),
            request: bar.request.map(|bytes| bytes.0),
            parts: bar.parts.iter().map(|part| (part.name, part.bytes.0)).collect(),
        });
        let is_host = rank.card.device == HOST;
        Weighted {
            weight: (worst.is_none(), worst, is_host, Reverse(requested_peak(rank))),
            headline: Headline {
                path: rank.card.path.clone(),
                rank: rank.card.rank,
                device: rank.card.device,
                severity: rank.verdict.severity,
                finding: rank.verdict.finding.clone(),
                text: plain(&rank.verdict.headline),
            },
            memory,
        }
    };
    ranks.iter().map(weighted).collect()
}

/// The headlines, the worst first. What the comparison of ranks found takes the place of what is
/// not worse.
fn compared(mut all: Vec<Weighted>, findings: &[FindingRecord]) -> Vec<Weighted> {
    let skews =
        findings.iter().filter(|f| f.kind == FindingKind::RankSkew && f.severity != Severity::Low);
    for skew in skews {
        let weight = order(skew.kind, skew.severity, skew.bytes);
        let of = all
            .iter_mut()
            .find(|one| (&one.headline.path, one.headline.device) == (&skew.path, skew.device));
        if let Some(one) = of.filter(|one| one.weight.1.is_none_or(|own| weight < own)) {
            (one.weight.0, one.weight.1) = (false, Some(weight));
            one.headline.severity = Some(skew.severity);
            one.headline.finding = Some(skew.id.clone());
            // The rank is a field of its own.
            one.headline.text = plain(skew.headline.get(1..).unwrap_or_default());
        }
    }
    all.sort_by_key(|a| a.weight);
    all
}

/// The peak of `requested_bytes`.
fn requested_peak(rank: &Diagnosed) -> u64 {
    rank.card.peak(BandKind::Requested)
}

/// One finding for equal findings of the ranks of one run, the worst of them.
fn merged(findings: Vec<FindingRecord>) -> Vec<FindingRecord> {
    let causes: Vec<String> = findings.iter().map(cause_key).collect();
    let keys: Vec<Option<RunKey<'_>>> = findings
        .iter()
        .zip(&causes)
        .map(|(finding, cause)| {
            let folder = folder(&finding.path).filter(|_| is_of_run(finding))?;
            Some((folder, cause.as_str(), finding.path.as_str()))
        })
        .collect();
    let groups = groups(&keys);
    let mut findings: Vec<Option<FindingRecord>> = findings.into_iter().map(Some).collect();
    let first = |group: Vec<usize>| Some((findings[group[0]].take()?, group.len() - 1));
    let merged: Vec<(FindingRecord, usize)> = groups.into_iter().filter_map(first).collect();
    let named = |(mut finding, others): (FindingRecord, usize)| {
        if let (Some(rank), true) = (finding.rank, others > 0) {
            let title = finding.title.trim_start_matches(&format!("rank {rank}: ")).to_owned();
            let ranks = if others == 1 { "rank" } else { "ranks" };
            let named = format!("rank {rank} and {} more {ranks}: ", grouped(others as u64));
            finding.title = format!("{named}{title}");
            if let Some(name) = finding.headline.first_mut() {
                name.text = named;
            }
        }
        // It has the numbers of a chart, and a diagnosis is small.
        finding.proof = None;
        finding
    };
    merged.into_iter().map(named).collect()
}

/// Whether the title names the rank of a run.
fn is_of_run(finding: &FindingRecord) -> bool {
    let prefix = finding.rank.map(|rank| format!("rank {rank}: "));
    finding.kind != FindingKind::RankSkew
        && prefix.is_some_and(|prefix| finding.title.starts_with(&prefix))
}

fn folder(path: &str) -> Option<&str> {
    crate::rank_of::run_of(path).map(|(folder, _)| folder)
}

/// The highest peak, and a sentence about it. Pinned host memory counts only if there is no other.
fn highest_peak(ranks: &[Diagnosed]) -> Option<(PeakSummary, String)> {
    let gpus = ranks.iter().filter(|rank| rank.card.device != HOST).count();
    // `max_by_key` takes the last of equals. The first rank represents the others.
    let found =
        ranks.iter().rev().max_by_key(|rank| (rank.card.device != HOST, requested_peak(rank)))?;
    let whole = Some(requested_peak(found)).filter(|&whole| whole > 0)?;
    let (rank, at) = (&found.card, &found.place);
    let is_state = |spot: &BlindSpot| matches!(spot, BlindSpot::NoHistory | BlindSpot::StateOnly);
    let event = rank.band(BandKind::Requested).peak_event.0;
    let place = peak_place(at, event, rank.blind_spots.iter().any(is_state));
    let shares = rank.categories.iter().map(|share| (share.category, share.bytes.0)).collect();
    let sentence = plain(&peak_sentence(&place, shares, u32::try_from(event).ok()));
    let on =
        if gpus > 1 { format!("{}: ", rank_name(rank.rank, &rank.path)) } else { String::new() };
    let summary = PeakSummary {
        path: rank.path.clone(),
        rank: rank.rank,
        device: rank.device,
        bytes: whole,
        event,
        step: at.step,
        phase: at.phase,
        categories: rank.categories.iter().map(|c| (c.category.name(), c.bytes.0)).collect(),
    };
    Some((summary, format!("{on}{sentence}")))
}

fn verdict(
    findings: &[FindingRecord],
    peak: Option<String>,
    blind_spots: &[BlindSpotRecord],
) -> String {
    let Some(peak) = peak else { return "No memory was allocated.".to_owned() };
    let serious = findings.iter().filter(|finding| finding.severity != Severity::Low);
    match serious.min_by_key(|f| order(f.kind, f.severity, f.bytes)) {
        Some(worst) if worst.kind == FindingKind::Oom => {
            format!("{} {}", plain(&worst.headline), worst.cause)
        }
        Some(worst) => format!("{} {peak}", plain(&worst.headline)),
        None if blind_spots.is_empty() && findings.is_empty() => {
            format!("{peak} Nothing is wrong with it.")
        }
        None if blind_spots.is_empty() => format!("{peak} Nothing serious was found."),
        None => format!("{peak} Nothing serious was found, but not all could be looked for."),
    }
}
