//! `vramscope diagnose`: the verdict about a file or a run, on one page.

mod fit;
mod indexed;
mod ranks;
mod runs;

pub use ranks::RankGroup;

use ranks::RankMemory;
use runs::Runs;

use crate::card::{Card, peak_words};
use crate::diagnostic::Answer;
use crate::dry::DrySummary;
use crate::findings::{
    BlindSpotRecord, CauseKey, FindingEntry, FindingRecord, RunKey, Weight, blind, groups, named,
    of_run,
};
use crate::levers::{self, MAX_TOLD};
use crate::lines::{HoldingLine, holding_lines};
use crate::moments::{Dump, Process, of_iterations, processes};
use crate::peak::BandKind;
use crate::phases::place;
use crate::rank_of::{iteration_of, run_folder_of};
use crate::serving::CacheShare;
use crate::target::{Target, slot_of};
use crate::verdict;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use vramscope_inference::Lever;
use vramscope_inference::plain;
use vramscope_inference::{FindingId, FindingKind, Severity};
use vramscope_snapshot::HOST;
use vramscope_trace::slicing::{Budget, now};
use vramscope_units::Bytes;

/// The maximum number of findings in a [`Diagnosis`] of the main ones.
pub const MAX_FINDINGS: usize = 5;

/// The findings that a [`Diagnosis`] lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    /// The main ones, at most this number and [`MAX_FINDINGS`]. One stands for equal ones of
    /// several ranks.
    Main(usize),
    /// All findings of each rank, at most this number.
    All(usize),
}

/// The maximum number of processes in a [`Diagnosis`].
const MAX_PROCESSES: usize = 4;

/// The maximum number of devices in a [`Diagnosis`].
const MAX_HEADLINES: usize = 4;

/// `vramscope.diagnose/1`. Its JSON has at most 8 kB, unless all findings are listed.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Diagnosis {
    /// The schema's name and version.
    pub schema: &'static str,
    /// The first words of the answer.
    pub sentence: String,
    /// The result: one sentence for each device, the worst first: at most four, or with `--all`
    /// every device. The page begins with it.
    pub headlines: Vec<Headline>,
    /// The number of further devices; absent if none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub headlines_omitted: Option<usize>,
    /// The dry run, if the files are of one; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub dry: Option<DrySummary>,
    /// The memory of the first of these devices, at the moment of its headline; null if nothing
    /// was reserved.
    pub memory: Option<MemorySummary>,
    /// The ranks in groups of like ones, the worst first; absent for a single device.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "typescript", ts(skip))]
    pub ranks: Vec<RankGroup>,
    /// The findings that matter most, at most five. One finding stands for equal ones of several
    /// ranks. Long lists and texts are cut. With `--all` the complete findings of each rank, by
    /// severity, then bytes.
    #[cfg_attr(feature = "typescript", ts(as = "Vec<FindingRecord>"))]
    pub findings: Vec<FindingEntry>,
    /// The number of further findings; absent if none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub omitted: Option<usize>,
    /// The highest peak of `requested_bytes`; null if no memory was allocated.
    pub peak: Option<PeakSummary>,
    /// The levers of the device with the highest peak, best first, if one file is diagnosed: at
    /// most five. A failed run has its levers as `fixes` of its finding.
    pub levers: Vec<Lever>,
    /// Processes of which several dumps were read, that with the most growth first: at most four,
    /// or with `--all` every one. Absent if none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "typescript", ts(skip))]
    pub processes: Vec<Process>,
    /// What could not be looked for.
    pub blind_spots: Vec<BlindSpotRecord>,
    /// Files in folders that are no snapshots.
    pub skipped_files: usize,
    /// Paths of files that are known from an index only.
    #[serde(skip)]
    #[cfg_attr(feature = "typescript", ts(skip))]
    pub indexed: FxHashSet<String>,
}

impl Diagnosis {
    /// The diagnosis for scripts: its JSON has at most 8 kB.
    #[must_use]
    pub fn fitted(self) -> Self {
        self.fitted_to(fit::MAX_BYTES)
    }

    /// The diagnosis with at most this many bytes of indented JSON. Long lists and texts are cut,
    /// then findings are left out.
    #[must_use]
    pub fn fitted_to(mut self, max_bytes: usize) -> Self {
        let positive = |count: usize| Some(count).filter(|&count| count > 0);
        let found = self.found();
        self.headlines_omitted = positive(self.headlines.len().saturating_sub(MAX_HEADLINES));
        self.headlines.truncate(MAX_HEADLINES);
        self.processes.truncate(MAX_PROCESSES);
        // They have the numbers of charts.
        self.findings.iter_mut().for_each(|finding| finding.record.proof = None);
        fit::fit(&mut self, found, max_bytes);
        self
    }

    /// The number of findings, shown or not.
    pub fn found(&self) -> usize {
        self.findings.len() + self.omitted.unwrap_or(0)
    }
}

/// The sentence about a device.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Headline {
    /// The file's path.
    pub path: String,
    /// The rank in the path; null if there is none.
    pub rank: Option<u32>,
    /// The device's ordinal.
    pub device: u32,
    /// The severity of the finding that it is about; null if it is about the peak.
    pub severity: Option<Severity>,
    /// The id of that finding; null without one.
    pub finding: Option<FindingId>,
    /// The sentence, without the rank: cause, place, amount.
    pub text: String,
}

/// The memory of a device at one moment. Bytes.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct MemorySummary {
    /// The event after which it holds, from 0; -1 is the state before the window.
    #[cfg_attr(feature = "typescript", ts(type = "number"))]
    pub event: i64,
    /// `reserved_bytes`.
    pub reserved: Bytes,
    /// What PyTorch can have; null where the file does not tell.
    pub capacity: Option<Bytes>,
    /// The request that failed; null without one.
    pub request: Option<Bytes>,
    /// What it is used for: categories of blocks, what no block holds, and what PyTorch did not
    /// reserve.
    pub parts: BTreeMap<&'static str, Bytes>,
    /// The lines that hold most when an allocation failed, most first; absent else.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "typescript", ts(as = "Option<Vec<HoldingLine>>", optional))]
    pub lines: Vec<HoldingLine>,
}

/// The highest peak of `requested_bytes` of all ranks.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct PeakSummary {
    /// The file's path.
    pub path: String,
    /// The rank in the path; null if there is none.
    pub rank: Option<u32>,
    /// The device's ordinal.
    pub device: u32,
    /// Requested bytes.
    pub bytes: Bytes,
    /// The first event after which it is reached, from 0; -1 is the state before the window.
    #[cfg_attr(feature = "typescript", ts(type = "number"))]
    pub event: i64,
    /// The training step, from 0; null if nothing shows it.
    pub step: Option<u32>,
    /// The phase; null if nothing shows it.
    pub phase: Option<&'static str>,
    /// Both in words, with a space before them: ` in backward of step 2`.
    #[serde(skip)]
    #[cfg_attr(feature = "typescript", ts(skip))]
    pub place: String,
    /// Whether the file has only the state at the end.
    #[serde(skip)]
    #[cfg_attr(feature = "typescript", ts(skip))]
    pub is_end: bool,
    /// Requested bytes by category.
    pub categories: BTreeMap<&'static str, Bytes>,
    /// The lines that hold most, most first: at most five. Absent for files that an index tells.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "typescript", ts(as = "Option<Vec<HoldingLine>>", optional))]
    pub lines: Vec<HoldingLine>,
    /// The part of the GPU that the KV cache of an inference engine has; absent for other runs, and
    /// where a finding has the first words.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub cache: Option<CacheShare>,
}

/// One device: its card, the step and the phase of its peak, and its verdict.
#[derive(Debug)]
pub struct Diagnosed {
    card: Card,
    /// The place of the peak.
    peak: Peak,
    /// The severity of the finding that its headline is about; `None` if that is the peak.
    severity: Option<Severity>,
    /// The id of that finding.
    finding: Option<FindingId>,
    headline: String,
    memory: Option<MemorySummary>,
    /// `None` for a card of an index.
    dump: Option<Dump>,
    levers: Vec<Lever>,
    dry: Option<DrySummary>,
    /// Whether the card is of an earlier version, without what could not be looked for.
    is_old: bool,
}

/// The place of the peak of `requested_bytes`.
#[derive(Debug)]
struct Peak {
    step: Option<u32>,
    phase: Option<&'static str>,
    /// Both in words, with a space before them.
    text: String,
    /// The lines that hold most.
    lines: Vec<HoldingLine>,
    /// The part of the GPU that the KV cache of an engine has.
    cache: Option<CacheShare>,
}

/// [`diagnosed`], without pauses.
pub fn at_peak(target: Target<'_>) -> Diagnosed {
    now(async |budget| diagnosed(target, budget).await)
}

/// [`diagnosed_with_levers`], without pauses.
pub fn with_levers(target: Target<'_>) -> Diagnosed {
    now(async |budget| diagnosed_with_levers(target, budget).await)
}

/// [`diagnosed`], and what can be changed. Each lever costs several replays of the run.
pub async fn diagnosed_with_levers(target: Target<'_>, budget: &mut Budget) -> Diagnosed {
    let mut diagnosed = diagnosed(target, budget).await;
    let findings = &diagnosed.card.entries;
    // After a failure its finding has them.
    if !findings.iter().any(|finding| finding.record.kind == FindingKind::Oom) {
        let found = levers::levers(target, findings, [None; 2], MAX_TOLD, budget).await;
        diagnosed.levers = found.levers;
    }
    diagnosed
}

/// Gathers what [`diagnose`] needs of one device: card, verdict, memory at the peak.
pub async fn diagnosed(target: Target<'_>, budget: &mut Budget) -> Diagnosed {
    let slot = slot_of(target.trace().requested_band.peak_event);
    let card = Card::new(target, budget).await;
    let at = place(target, slot, budget).await;
    let verdict = verdict::verdict(target, budget).await;
    let bar = &verdict.memory;
    let dry = DrySummary::of(target, &card);
    let lines = match verdict.lines {
        Some(lines) => lines,
        None => holding_lines(target, slot, budget).await,
    };
    let at_failure = match bar.request {
        Some(_) => holding_lines(target, (bar.event + 1).max(0) as u32, budget).await,
        None => Vec::new(),
    };
    Diagnosed {
        dump: Some(Dump::new(target, &card, budget).await),
        peak: Peak {
            step: at.step,
            phase: at.phase,
            text: peak_words(&at, &card),
            lines,
            cache: verdict.cache,
        },
        card,
        severity: verdict.severity,
        finding: verdict.finding,
        headline: plain(&verdict.headline),
        memory: (bar.reserved.0 > 0).then(|| MemorySummary {
            event: bar.event,
            reserved: bar.reserved,
            capacity: bar.capacity,
            request: bar.request,
            parts: bar.parts.iter().map(|part| (part.name, part.bytes)).collect(),
            lines: at_failure,
        }),
        levers: Vec::new(),
        dry,
        is_old: false,
    }
}

/// The verdict about devices, with their findings.
pub fn diagnose(mut ranks: Vec<Diagnosed>, listing: Listing, skipped_files: usize) -> Diagnosis {
    let peak = highest_peak(&ranks);
    let headlines = headlines(&mut ranks);
    let worst = ranks.iter_mut().max_by_key(|rank| requested_peak(rank));
    let levers = worst.map(|rank| std::mem::take(&mut rank.levers)).unwrap_or_default();
    let dry = DrySummary::worst(ranks.iter_mut().filter_map(|rank| rank.dry.take()));
    let is_indexed = |rank: &&Diagnosed| rank.dump.is_none();
    let indexed: Vec<&Card> = ranks.iter().filter(is_indexed).map(|rank| &rank.card).collect();
    let dumps = ranks.iter().filter_map(|rank| Some((&rank.card, rank.dump.as_ref()?)));
    let dumps: Vec<(&Card, &Dump)> = dumps.collect();
    let runs = runs::several(&dumps);
    let mut processes = processes(&dumps);
    processes.extend(of_iterations(&indexed));
    processes.sort_by_key(|process| Reverse(process.growth_bytes));
    let lacks = indexed::lacks(&indexed, ranks.iter().filter(|rank| rank.is_old).count());
    let left_out: usize = indexed.iter().map(|card| card.other_findings.len()).sum();
    let indexed: FxHashSet<String> = indexed.iter().map(|card| card.path.clone()).collect();
    let mut of_ranks: Vec<RankMemory> = ranks.iter().filter_map(RankMemory::of).collect();
    let cards: Vec<Card> = ranks.into_iter().map(|rank| rank.card).collect();
    let mut blind_spots: Vec<_> = lacks.into_iter().chain(blind::merged(&cards)).collect();
    let all = of_run(cards);
    let mut headlines = compared(headlines, &all);
    let memory = headlines.first_mut().and_then(|worst| worst.memory.take());
    let paths = || headlines.iter().map(|one| one.headline.path.as_str());
    let shown = |runs: &Runs| paths().find_map(|path| runs.of(path).map(str::to_owned));
    if let Some((runs, shown)) = runs.as_ref().and_then(|runs| Some((runs, shown(runs)?))) {
        of_ranks.retain(|one| runs.of(&one.path) == Some(&shown));
        blind_spots.insert(0, runs.note(&shown));
    }
    let every_headline: Vec<&Headline> = headlines.iter().map(|one| &one.headline).collect();
    let rank_groups = ranks::groups(of_ranks, &every_headline, &all);
    let every: Option<Vec<FindingEntry>> = match listing {
        Listing::Main(_) => None,
        Listing::All(_) => Some(all.iter().cloned().map(named).collect()),
    };
    let main = merged(all, &processes);
    let mut diagnosis = Diagnosis {
        schema: "vramscope.diagnose/1",
        sentence: String::new(),
        headlines: headlines.into_iter().map(|one| one.headline).collect(),
        headlines_omitted: None,
        dry,
        memory,
        ranks: rank_groups,
        findings: every.unwrap_or(main),
        omitted: None,
        peak,
        levers,
        processes,
        blind_spots,
        skipped_files,
        indexed,
    };
    let found = diagnosis.findings.len();
    let limit = match listing {
        Listing::Main(limit) => limit.min(MAX_FINDINGS),
        Listing::All(limit) => limit,
    };
    diagnosis.findings.truncate(limit);
    let mut omitted = found - diagnosis.findings.len();
    if matches!(listing, Listing::All(_)) {
        omitted += left_out;
    }
    diagnosis.omitted = Some(omitted).filter(|&omitted| omitted > 0);
    diagnosis.sentence = Answer::new(&diagnosis, &[], false).sentence();
    diagnosis
}

/// What makes one headline worse than another: the least is the worst.
type HeadlineWeight = (bool, Option<Weight>, bool, Reverse<u64>);

/// A headline, with its weight and the memory of its device.
struct Weighted {
    weight: HeadlineWeight,
    headline: Headline,
    memory: Option<MemorySummary>,
}

/// The sentence about each device by its own findings.
fn headlines(ranks: &mut [Diagnosed]) -> Vec<Weighted> {
    let weighted = |rank: &mut Diagnosed| {
        let id = rank.finding.as_ref();
        let mut records = rank.card.entries.iter().map(|finding| &finding.record);
        let worst = records.find(|record| Some(&record.id) == id).map(FindingRecord::weight);
        let is_host = rank.card.device == HOST;
        Weighted {
            weight: (worst.is_none(), worst, is_host, Reverse(requested_peak(rank))),
            headline: Headline {
                path: rank.card.path.clone(),
                rank: rank.card.rank,
                device: rank.card.device,
                severity: rank.severity,
                finding: rank.finding.clone(),
                text: rank.headline.clone(),
            },
            memory: rank.memory.take(),
        }
    };
    ranks.iter_mut().map(weighted).collect()
}

/// The headlines, the worst first. What the comparison of ranks found takes the place of what is
/// not worse.
fn compared(mut all: Vec<Weighted>, findings: &[(FindingEntry, Option<u32>)]) -> Vec<Weighted> {
    let skews = findings
        .iter()
        .filter(|(entry, _)| entry.leads && entry.record.kind == FindingKind::RankSkew);
    for (FindingEntry { record: skew, .. }, _) in skews {
        let weight = skew.weight();
        let of = all
            .iter_mut()
            .find(|one| (&one.headline.path, one.headline.device) == (&skew.path, skew.device));
        if let Some(one) = of.filter(|one| one.weight.1.is_none_or(|own| weight < own)) {
            (one.weight.0, one.weight.1) = (false, Some(weight));
            one.headline.severity = Some(skew.severity);
            one.headline.finding = Some(skew.id.clone());
            one.headline.text.clone_from(&skew.title);
        }
    }
    all.sort_by_key(|a| a.weight);
    all
}

/// The peak of `requested_bytes`.
fn requested_peak(rank: &Diagnosed) -> u64 {
    rank.card.peak(BandKind::Requested)
}

/// One finding for equal findings of the ranks of one run or of the dumps of one process, the worst
/// of them.
fn merged(findings: Vec<(FindingEntry, Option<u32>)>, processes: &[Process]) -> Vec<FindingEntry> {
    let mut process_of: FxHashMap<(&str, u32), &str> = FxHashMap::default();
    for process in processes {
        let paths = process.moments.iter().map(|moment| moment.path.as_str());
        let first = paths.clone().next().unwrap_or_default();
        process_of.extend(paths.map(|path| ((path, process.device), first)));
    }
    let keys: Vec<Option<RunKey<'_, CauseKey<'_>>>> = findings
        .iter()
        .map(|(FindingEntry { record, .. }, rank)| {
            let place = match rank {
                Some(_) => folder(&record.path)?,
                None => process_of.get(&(record.path.as_str(), record.device))?,
            };
            Some((place, record.cause(), record.path.as_str()))
        })
        .collect();
    let groups = groups(&keys);
    let ranks: Vec<Option<u32>> = findings.iter().map(|(_, rank)| *rank).collect();
    let mut findings: Vec<_> = findings.into_iter().map(Some).collect();
    let merge = |group: Vec<usize>| {
        // A rank may have several dumps.
        let of_group: BTreeSet<u32> = group.iter().filter_map(|&i| ranks[i]).collect();
        let (mut finding, rank) = findings[group[0]].take()?;
        Some(match rank {
            Some(rank) => {
                let dumps = group.iter().filter(|&&i| ranks[i] == Some(rank)).count();
                finding.other_moments = dumps - 1;
                finding.named(rank, of_group.len() - 1)
            }
            None => finding.of_moment(group.len() - 1),
        })
    };
    groups.into_iter().filter_map(merge).collect()
}

/// The folder of a rank's run. All iterations of a run have one.
fn folder(path: &str) -> Option<&str> {
    match iteration_of(path) {
        Some(_) => Some(run_folder_of(path)),
        None => crate::rank_of::run_of(path).map(|(folder, _)| folder),
    }
}

/// The highest peak. Pinned host memory counts only if there is no other.
fn highest_peak(ranks: &[Diagnosed]) -> Option<PeakSummary> {
    // `max_by_key` takes the last of equals. The first rank represents the others.
    let found =
        ranks.iter().rev().max_by_key(|rank| (rank.card.device != HOST, requested_peak(rank)))?;
    let whole = Some(requested_peak(found)).filter(|&whole| whole > 0)?;
    let (rank, at) = (&found.card, &found.peak);
    Some(PeakSummary {
        path: rank.path.clone(),
        rank: rank.rank,
        device: rank.device,
        bytes: Bytes(whole),
        event: rank.band(BandKind::Requested).peak_event.0,
        step: at.step,
        phase: at.phase,
        place: at.text.clone(),
        is_end: rank.peak_words("", &[], None).is_end,
        categories: rank.categories.iter().map(|c| (c.category.name(), c.bytes)).collect(),
        lines: at.lines.clone(),
        cache: at.cache.clone(),
    })
}
