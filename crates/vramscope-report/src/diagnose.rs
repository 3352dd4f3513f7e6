//! `vramscope diagnose`: the verdict about a file or a run, on one page.

mod fit;

use crate::findings::{BlindSpotRecord, FindingRecord, across};
use crate::peak::BandKind;
use crate::phases::{Place, place_sliced};
use crate::rank::RankSummary;
use crate::target::{Target, slot_of};
use crate::text::rank_name;
use serde::Serialize;
use std::collections::BTreeMap;
use vramscope_analysis::slicing::{Budget, run_to_completion};
use vramscope_analysis::{BlindSpot, Category, FindingKind, Severity};
use vramscope_snapshot::HOST;
use vramscope_units::{Bytes, EventIndex, grouped};

/// The maximum number of findings in a [`Diagnosis`].
pub const MAX_FINDINGS: usize = 5;

/// `vramscope.diagnose/1`. Its JSON has at most 8 kB.
#[derive(Clone, Debug, Serialize)]
pub struct Diagnosis {
    /// The schema's name and version.
    pub schema: &'static str,
    /// The result in one or two sentences.
    pub verdict: String,
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

/// The highest peak of `requested_bytes` of all ranks.
#[derive(Clone, Debug, Serialize)]
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

/// One device, with the step and the phase of its peak.
pub fn at_peak(target: Target<'_>) -> (RankSummary, Place) {
    let slot = slot_of(target.trace().requested_band.peak_event);
    let summary = RankSummary::new(target);
    let place = run_to_completion(place_sliced(target, slot, &mut Budget::unlimited()));
    (summary, place)
}

/// The verdict about devices, with at most `limit` findings.
pub fn diagnose(ranks: Vec<(RankSummary, Place)>, limit: usize, skipped_files: usize) -> Diagnosis {
    let (peak, sentence) = highest_peak(&ranks).unzip();
    let summaries = ranks.into_iter().map(|(summary, _)| summary).collect();
    let all = across(summaries, skipped_files);
    let mut findings = merged(all.anomalies);
    let found = findings.len();
    let verdict = verdict(&findings, sentence, &all.blind_spots);
    findings.truncate(limit.min(MAX_FINDINGS));
    let mut diagnosis = Diagnosis {
        schema: "vramscope.diagnose/1",
        verdict,
        findings,
        omitted: None,
        peak,
        blind_spots: all.blind_spots,
        skipped_files,
    };
    fit::fit(&mut diagnosis, found);
    diagnosis
}

/// One finding for equal findings of the ranks of one run: of one kind, at the same call sites.
fn merged(findings: Vec<FindingRecord>) -> Vec<FindingRecord> {
    let mut merged: Vec<(FindingRecord, usize)> = Vec::new();
    for finding in findings {
        let same = merged.iter_mut().find(|(known, _)| {
            is_of_run(known)
                && is_of_run(&finding)
                && known.path != finding.path
                && (known.kind, &known.sites) == (finding.kind, &finding.sites)
                && folder(&known.path) == folder(&finding.path)
        });
        match same {
            Some((_, others)) => *others += 1,
            None => merged.push((finding, 0)),
        }
    }
    let named = |(mut finding, others): (FindingRecord, usize)| {
        if let (Some(rank), true) = (finding.rank, others > 0) {
            let title = finding.title.trim_start_matches(&format!("rank {rank}: ")).to_owned();
            let ranks = if others == 1 { "rank" } else { "ranks" };
            finding.title =
                format!("rank {rank} and {} more {ranks}: {title}", grouped(others as u64));
        }
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
fn highest_peak(ranks: &[(RankSummary, Place)]) -> Option<(PeakSummary, String)> {
    let bytes = |rank: &RankSummary| {
        let peak = rank.peaks.iter().find(|peak| peak.0 == BandKind::Requested.name());
        peak.map_or(0, |peak| u64::try_from(peak.1).unwrap_or(0))
    };
    let gpus = ranks.iter().filter(|(rank, _)| rank.device != HOST).count();
    // `max_by_key` takes the last of equals. The first rank represents the others.
    let (rank, at) =
        ranks.iter().rev().max_by_key(|(rank, _)| (rank.device != HOST, bytes(rank)))?;
    let whole = Some(bytes(rank)).filter(|&whole| whole > 0)?;
    let is_state = |spot: &BlindSpot| matches!(spot, BlindSpot::NoHistory | BlindSpot::StateOnly);
    let place = match (at.phase.filter(|&phase| phase != "other"), at.step) {
        _ if rank.blind_spots.iter().any(is_state) => "when the snapshot was taken".to_owned(),
        (Some(phase), Some(step)) => format!("in {phase} of step {step}"),
        (Some(phase), None) => format!("in {phase}"),
        (None, Some(step)) => format!("in step {step}"),
        (None, None) => match u32::try_from(rank.peak_event) {
            Ok(event) => format!("at {}", EventIndex(event)),
            Err(_) => "before the first event".to_owned(),
        },
    };
    let on =
        if gpus > 1 { format!(" on {}", rank_name(rank.rank, &rank.path)) } else { String::new() };
    let share = |of: u64| (u128::from(of) * 100 + u128::from(whole) / 2) / u128::from(whole);
    let largest = rank.categories.iter().filter(|c| share(c.bytes) >= MIN_NAMED_PERCENT);
    let named: Vec<String> = largest
        .take(MAX_NAMED)
        .map(|c| format!("{} % {}", share(c.bytes), plural(c.category)))
        .collect();
    let sentence =
        format!("Peak {} of requested_bytes {place}{on}: {}", Bytes(whole), named.join(", "));
    let summary = PeakSummary {
        path: rank.path.clone(),
        rank: rank.rank,
        device: rank.device,
        bytes: whole,
        event: rank.peak_event,
        step: at.step,
        phase: at.phase,
        categories: rank.categories.iter().map(|c| (c.category.name(), c.bytes)).collect(),
    };
    Some((summary, sentence))
}

/// The maximum number of categories in the sentence about the peak.
const MAX_NAMED: usize = 4;

/// Categories with a smaller share are not named.
const MIN_NAMED_PERCENT: u128 = 2;

fn plural(category: Category) -> String {
    match category {
        Category::Temporary => "temporaries".to_owned(),
        Category::Parameter
        | Category::Gradient
        | Category::Buffer
        | Category::Input
        | Category::Activation
        | Category::Workspace => format!("{}s", category.name()),
        _ => category.name().replace('_', " "),
    }
}

fn verdict(
    findings: &[FindingRecord],
    peak: Option<String>,
    blind_spots: &[BlindSpotRecord],
) -> String {
    let Some(peak) = peak else { return "No memory was allocated.".to_owned() };
    // A failed allocation ended the run, whatever else was found.
    let oom = findings.iter().find(|finding| finding.kind == FindingKind::Oom);
    match oom.or_else(|| findings.iter().find(|finding| finding.severity != Severity::Low)) {
        Some(oom) if oom.kind == FindingKind::Oom => {
            format!("{}. {}", oom.title, oom.cause)
        }
        Some(worst) => format!("{}. {peak}.", worst.title),
        None if blind_spots.is_empty() && findings.is_empty() => {
            format!("{peak}; nothing is wrong with it.")
        }
        None if blind_spots.is_empty() => format!("{peak}; nothing serious was found."),
        None => format!("{peak}. Nothing serious was found, but not all could be looked for."),
    }
}
