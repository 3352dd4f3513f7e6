//! What is said, from the record of a diagnosis.

use super::{Answer, Bar, Diagnostic, Fact, FactLabel, LeverRow, LookRow, RankRow, time_note};
use crate::diagnose::{Diagnosis, MemorySummary, PeakSummary};
use crate::findings::{BlindSpotRecord, FindingEntry, FindingRecord, of_device};
use crate::holders::{Holder, HolderKind};
use crate::lines::HoldingLine;
use crate::moments::{MIN_GROWTH, Process};
use crate::proof::{Proof, ProofForm};
use crate::target::Target;
use crate::text::file_name;
use crate::verdict::{MemoryBar, PeakWords, verdict};
use std::collections::{BTreeMap, BTreeSet};
use vramscope_inference::{
    Category, Covers, FindingId, FindingKind, Lever, LeverBasis, Sentence, Severity, is_detail,
    lower_first, plain,
};
use vramscope_trace::slicing::Budget;
use vramscope_units::{Bytes, EventIndex, grouped, sparkline};

/// The most groups of ranks that are shown.
const MAX_RANKS: usize = 12;

/// The lines of a peak that are shown.
const LINES_OF_PEAK: usize = 3;

/// The lines of a run's peak that are shown.
const LINES_OF_RUN: usize = 2;

/// The most processes that are told one by one.
const MAX_PROCESSES: usize = 4;

impl Answer {
    /// What is said about a diagnosis. `paths` are those that the user named. With `has_details`
    /// each finding has its whole text.
    pub fn new(diagnosis: &Diagnosis, paths: &[String], has_details: bool) -> Self {
        let is_run = !diagnosis.ranks.is_empty();
        let files: BTreeSet<&str> =
            diagnosis.headlines.iter().map(|one| one.path.as_str()).collect();
        let files = files.len();
        let mut findings = said(&diagnosis.findings, &diagnosis.levers, has_details);
        if files < 2 {
            // The file is named once.
            let unplaced = findings.iter_mut().skip(1).filter(|one| one.site.is_empty());
            unplaced.for_each(|one| one.file.clear());
        }
        let worst = diagnosis.headlines.first().and_then(|headline| headline.finding.as_ref());
        let memory = diagnosis.memory.as_ref().filter(|_| is_failure(&diagnosis.findings, worst));
        if let (Some(memory), Some(first)) = (memory, findings.first_mut()) {
            let MemorySummary { reserved, capacity, request, parts, lines, .. } = memory;
            first.bar = Some(bar_of_failure(*reserved, *capacity, *request, parts, lines));
        }
        let peak = diagnosis.peak.as_ref().filter(|_| memory.is_none()).map(|peak| {
            let of = match peak.rank.filter(|_| is_run) {
                Some(rank) => format!(" on rank {rank}"),
                None if files > 1 => format!(" in {}", file_name(&peak.path)),
                None => String::new(),
            };
            let place = Sentence::new(format_args!("{of}{}", peak.place));
            let words = match findings.first() {
                Some(first) if first.leads => {
                    format!("Peak {}{}", peak.bytes.brief(), place.plain())
                }
                _ => peak.words(place).sentence().plain(),
            };
            // Of a run the headline names the line.
            let shown = if files < 2 { LINES_OF_PEAK } else { LINES_OF_RUN };
            let shown = peak.lines.len().min(shown);
            (words, Bar::new(String::new(), &peak.categories, None, &peak.lines[..shown]))
        });
        let is_empty = diagnosis.peak.is_none() && diagnosis.dry.is_none();
        Self {
            dry: diagnosis.dry.as_ref().map(|dry| dry.text.clone()),
            empty: is_empty.then(|| empty(paths).to_owned()),
            findings,
            omitted: diagnosis.omitted.unwrap_or(0),
            processes: processes(&diagnosis.processes, has_details),
            peak,
            ranks: ranks(diagnosis),
            levers: levers(&diagnosis.levers),
            help: help(diagnosis, paths),
            notes: notes(diagnosis),
        }
    }

    /// What is said about one device. Findings must be derived before.
    pub async fn of_device(target: Target<'_>, budget: &mut Budget) -> Self {
        let verdict = verdict(target, budget).await;
        let mut entries = of_device(target);
        entries.sort_by_key(FindingEntry::weight);
        let mut findings = said(&entries, &[], false);
        for one in &mut findings {
            one.file.clear();
        }
        let memory = &verdict.memory;
        let parts: BTreeMap<&'static str, Bytes> =
            memory.parts.iter().map(|part| (part.name, part.bytes)).collect();
        let is_failure = is_failure(&entries, verdict.finding.as_ref());
        let mut peak = None;
        match findings.first_mut().filter(|_| is_failure) {
            Some(first) => {
                let MemoryBar { reserved, capacity, request, .. } = *memory;
                first.bar = Some(bar_of_failure(reserved, capacity, request, &parts, &[]));
            }
            None if !parts.is_empty() => {
                let words = match verdict.severity {
                    None => plain(&verdict.headline),
                    Some(_) => format!("{} reserved {}", memory.reserved, memory.moment),
                };
                peak = Some((words, Bar::new(String::new(), &parts, None, &[])));
            }
            None => {}
        }
        Self { findings, peak, ..Self::default() }
    }
}

/// Whether the worst finding is a failed allocation, and comes first.
fn is_failure(findings: &[FindingEntry], worst: Option<&FindingId>) -> bool {
    findings.first().is_some_and(|entry| {
        Some(&entry.record.id) == worst && entry.record.kind == FindingKind::Oom
    })
}

/// The memory when an allocation failed.
fn bar_of_failure(
    reserved: Bytes,
    capacity: Option<Bytes>,
    request: Option<Bytes>,
    parts: &BTreeMap<&'static str, Bytes>,
    lines: &[HoldingLine],
) -> Bar {
    let title = match capacity {
        Some(capacity) => format!("{capacity} for PyTorch"),
        None => format!("{reserved} reserved"),
    };
    Bar::new(title, parts, request, lines)
}

/// The findings that are said.
fn said(all: &[FindingEntry], levers: &[Lever], has_details: bool) -> Vec<Diagnostic> {
    let is_told = |record: &FindingRecord| {
        let on_device = |one: &&FindingEntry| {
            (&one.record.path, one.record.device) == (&record.path, record.device)
        };
        is_detail(record.kind, all.iter().filter(on_device).map(|one| one.record.kind))
    };
    let told = all.iter().filter(|one| has_details || !is_told(&one.record));
    let mut said: Vec<Diagnostic> =
        told.map(|entry| diagnostic(entry, levers, has_details)).collect();
    // What grows is why the run failed, unless the failure has another reason.
    let mut growths = said.iter().filter(|one| one.kind == FindingKind::Growth.name());
    let grown = growths.clone().find(|one| one.leads).or_else(|| growths.next());
    let cause = grown.map(|one| {
        let holders = one.facts.iter().filter(|fact| fact.label == FactLabel::HeldBy);
        let why = Fact { label: FactLabel::Why, text: lower_first(&one.headline) };
        holders.cloned().chain([why]).collect::<Vec<_>>()
    });
    let is_without = |one: &&mut Diagnostic| {
        one.kind == FindingKind::Oom.name()
            && !one.facts.iter().any(|fact| fact.label == FactLabel::Why)
    };
    if let (Some(cause), Some(first)) = (cause, said.first_mut().filter(is_without)) {
        first.facts.splice(..0, cause);
    }
    said
}

impl Answer {
    /// One finding with its whole text.
    pub fn of_finding(entry: &FindingEntry) -> Self {
        Self { findings: vec![diagnostic(entry, &[], true)], ..Self::default() }
    }
}

/// The sentence about files without memory.
fn empty(paths: &[String]) -> &'static str {
    match paths {
        [_] => "This snapshot is empty: recording was off, or nothing ran on a GPU",
        _ => "These snapshots are empty: recording was off, or nothing ran on a GPU",
    }
}

impl PeakSummary {
    /// The sentence about the peak. `place` is its step and phase.
    fn words(&self, place: Sentence) -> PeakWords<'_> {
        let bytes = |category: Category| {
            Some((category, self.categories.get(category.name()).map(|bytes| bytes.0)?))
        };
        PeakWords {
            place,
            is_end: self.is_end,
            categories: Category::ALL.into_iter().filter_map(bytes).collect(),
            lines: &self.lines,
            event: u32::try_from(self.event).ok(),
            cache: self.cache.as_ref(),
        }
    }
}

/// One finding.
fn diagnostic(entry: &FindingEntry, levers: &[Lever], has_details: bool) -> Diagnostic {
    let record = &entry.record;
    let place = record.place.as_ref();
    let event = record.events.first().filter(|_| record.kind == FindingKind::Oom);
    let event = event.map_or_else(String::new, |event: &EventIndex| format!(" {event}"));
    let moments = match entry.other_moments {
        0 => String::new(),
        1 => " and 1 more dump".to_owned(),
        count => format!(" and {count} more dumps"),
    };
    let source =
        place.and_then(|place| Some((place.line, place.source.clone().filter(|s| !s.is_empty())?)));
    let mut facts = Vec::new();
    facts.extend(record.proof.as_ref().and_then(|proof| bars(record.kind, proof)));
    let mut push = |label: FactLabel, text: &str| {
        if !text.is_empty() {
            facts.push(Fact { label, text: text.trim_end_matches('.').to_owned() });
        }
    };
    push(FactLabel::Why, &record.why);
    for (label, text) in held_by(record) {
        push(label, &text);
    }
    // A lever says what to do with its number.
    let is_cured = levers.iter().any(|lever| lever.cures.as_ref() == Some(&record.id));
    if !is_cured {
        push(FactLabel::Help, &lower_first(&entry.advice));
    }
    Diagnostic {
        id: Some(record.id.clone()),
        level: record.severity.into(),
        kind: record.kind.name(),
        headline: entry.headline(),
        leads: entry.leads,
        site: place.map(|place| place.site.clone()).unwrap_or_default(),
        note: place.map(|place| place.note.clone()).unwrap_or_default(),
        file: format!("{}{event}{moments}", file_name(&record.path)),
        source,
        what: place.map(|place| place.what.clone()).unwrap_or_default(),
        bar: None,
        facts,
        fixes: fixes(record, levers),
        looks: looks(record),
        figures: Vec::new(),
        detail: if has_details { record.text.clone() } else { String::new() },
    }
}

/// What holds the memory. The drop of an only holder is part of the help, unless an allocation
/// failed: then each line is a choice.
fn held_by(record: &FindingRecord) -> Vec<(FactLabel, String)> {
    let is_choice = record.kind == FindingKind::Oom || record.holders.len() > 1;
    let line = |holder: &Holder| {
        let is_reference = holder.kind == HolderKind::Reference;
        let label = if is_reference { FactLabel::HeldBy } else { FactLabel::Holder };
        let text = match holder.drop.as_str() {
            drop if is_choice && !drop.is_empty() => format!("{}; {drop}", holder.text),
            _ => holder.text.clone(),
        };
        (label, text)
    };
    record.holders.iter().map(line).collect()
}

/// The values of each step or rank as a row of bars.
fn bars(kind: FindingKind, proof: &Proof) -> Option<Fact> {
    if proof.form != ProofForm::Columns || proof.values.len() < 2 {
        return None;
    }
    let [first, .., last] = proof.values[..] else { return None };
    let text = |value: u64| proof.unit.text(value);
    let row = sparkline(&proof.values);
    let text = match kind {
        FindingKind::Growth => format!("{} {row} {}", text(first), text(last)),
        FindingKind::RankSkew => row,
        _ => return None,
    };
    Some(Fact { label: FactLabel::Bars(proof.title.clone()), text })
}

/// The fixes of a failed allocation, and what does not help. Of another finding, the levers that
/// the list of the answer does not have.
fn fixes(record: &FindingRecord, levers: &[Lever]) -> Vec<LeverRow> {
    let is_failure = record.kind == FindingKind::Oom;
    let mut number = 0;
    let row = |lever: &Lever| {
        number += u32::from(!lever.is_short());
        let label = match (lever.is_short(), is_failure) {
            (true, _) => "no".to_owned(),
            (false, true) => format!("fix {number}"),
            (false, false) => format!("lever {number}"),
        };
        LeverRow::new(lever, label, record.step.is_some())
    };
    let is_listed = |lever: &&Lever| levers.iter().any(|listed| listed.id == lever.id);
    record.fixes.iter().filter(|lever| is_failure || !is_listed(lever)).map(row).collect()
}

fn looks(record: &FindingRecord) -> Vec<LookRow> {
    let row = |look: &vramscope_inference::Look| LookRow {
        site: look.site.clone().unwrap_or_default(),
        text: format!("{} of the peak: {}", look.bytes, look.text),
    };
    record.look.iter().map(row).collect()
}

/// The list of what can be changed.
fn levers(all: &[Lever]) -> Vec<LeverRow> {
    let row = |(i, lever): (usize, &Lever)| LeverRow::new(lever, format!("lever {}", i + 1), true);
    all.iter().enumerate().map(row).collect()
}

/// The groups of ranks.
fn ranks(diagnosis: &Diagnosis) -> Vec<RankRow> {
    let range = |[least, most]: [u64; 2]| {
        let [(least, unit), (most, of_most)] = [least, most].map(|bytes| Bytes(bytes).parts());
        match unit == of_most {
            true if least == most => format!("{most} {unit}"),
            true => format!("{least} to {most} {unit}"),
            false => format!("{least} {unit} to {most} {of_most}"),
        }
    };
    let rows = diagnosis.ranks.iter().take(MAX_RANKS).map(|group| RankRow {
        ranks: group.ranks.clone(),
        bytes: [range(group.peak_bytes), range(group.reserved_bytes), range(group.kept_bytes)],
        level: group.severity.map(Into::into),
    });
    rows.collect()
}

/// Processes with several dumps. Of many only those that grew are told one by one.
fn processes(all: &[Process], is_complete: bool) -> Vec<String> {
    if is_complete || all.len() <= MAX_PROCESSES {
        return all.iter().map(|process| process.text.clone()).collect();
    }
    let grown = all.iter().filter(|process| process.growth_bytes >= MIN_GROWTH as i64);
    let grown: Vec<&Process> = grown.collect();
    let told: Vec<&Process> = grown.iter().take(MAX_PROCESSES).copied().collect();
    let mut texts: Vec<String> = told.iter().map(|process| process.text.clone()).collect();
    let more = grown.len() - told.len();
    if more > 0 {
        texts.push(format!("and {} more that grew: --all lists them", grouped(more as u64)));
    }
    let rest = grouped((all.len() - grown.len()) as u64);
    match all.len() - grown.len() {
        0 => {}
        _ if grown.is_empty() => {
            texts.push(format!("{rest} ranks or processes have several dumps. None grew."));
        }
        1 => texts.push("1 other did not grow.".to_owned()),
        _ => texts.push(format!("The other {rest} did not grow.")),
    }
    texts
}

/// How fixes were found, and what was not looked for.
fn notes(diagnosis: &Diagnosis) -> Vec<String> {
    let of_findings = diagnosis.findings.iter().flat_map(|entry| &entry.record.fixes);
    let all: Vec<&Lever> = of_findings.chain(&diagnosis.levers).collect();
    let has_levers = !all.is_empty();
    let replayed = if all.iter().any(|lever| lever.covers == Covers::Steps) {
        "each change was replayed over steps like those seen, without an evaluation or longer \
         inputs that the file lacks; ± is its measured error"
    } else if all.iter().any(|lever| lever.basis == LeverBasis::Replayed) {
        "needs: the least memory for PyTorch, replayed over the run; ± is the measured error"
    } else {
        "needs: the peak less what the change saves at most"
    };
    // A dry run records frees as far as its PyTorch can.
    let is_told =
        |spot: &&BlindSpotRecord| diagnosis.dry.is_none() || spot.kind != "no_free_stacks";
    let blind = diagnosis.blind_spots.iter().filter(is_told).map(|spot| spot.text.clone());
    let dry = diagnosis.dry.iter().flat_map(|dry| dry.notes.iter().cloned());
    let gpu = all.iter().find_map(|lever| lever.seconds_gpu.as_deref());
    let notes = has_levers.then(|| replayed.to_owned()).into_iter().chain(gpu.map(time_note));
    notes.chain(dry).chain(blind).collect()
}

/// The commands that lead on: from the worst finding, else from the peak.
fn help(diagnosis: &Diagnosis, paths: &[String]) -> Vec<String> {
    let mut help = Vec::new();
    let worst = diagnosis.findings.iter().find(|entry| entry.record.severity != Severity::Low);
    let record = worst.map(|entry| &entry.record);
    let file = record.map(|record| &record.path).or(diagnosis.peak.as_ref().map(|peak| &peak.path));
    let Some(file) = file else { return help };
    let is_indexed = diagnosis.indexed.contains(file);
    let file = quoted(file);
    let apply = |lever: &Lever| match &lever.conf {
        Some(conf) if lever.recipe.is_empty() => {
            format!("export PYTORCH_CUDA_ALLOC_CONF={}", quoted(conf))
        }
        _ => format!("vramscope what-if {file} --apply {}", quoted(&lever.recipe)),
    };
    let can_apply = |lever: &&Lever| lever.conf.is_some() || !lever.recipe.is_empty();
    match record {
        Some(_) if is_indexed => help.push(format!("vramscope diagnose {file}")),
        Some(record) if record.kind == FindingKind::Oom => {
            let fits = record.fixes.iter().filter(|lever| lever.fits()).find(can_apply);
            help.push(fits.map_or_else(|| format!("vramscope what-if {file}"), apply));
        }
        Some(record) => help.push(format!("vramscope show {} {file}", record.id)),
        // The flag of an engine.
        None if diagnosis.peak.as_ref().is_some_and(|peak| peak.cache.is_some()) => {
            help.push(format!("vramscope what-if {file}"));
        }
        None => {
            let lever = diagnosis.levers.iter().find(can_apply);
            help.push(lever.map_or_else(|| format!("vramscope peak {file}"), apply));
        }
    }
    if let ([path], false) = (paths, diagnosis.ranks.is_empty()) {
        help.push(format!("vramscope ranks {}", quoted(path)));
    }
    help
}

/// A word of a shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_shell_are_quoted() {
        assert_eq!(quoted("runs/42/a.pickle"), "runs/42/a.pickle");
        assert_eq!(quoted("del:a b.py:3"), "'del:a b.py:3'");
        assert_eq!(quoted("it's $HOME"), "'it'\\''s $HOME'");
    }
}
