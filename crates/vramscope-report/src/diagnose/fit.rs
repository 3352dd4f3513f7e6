//! Cuts a diagnosis until its JSON is small enough, whatever the file.

use super::Diagnosis;
use crate::diagnostic::cut_middle;
use crate::lines::HoldingLine;
use vramscope_inference::{Lever, Severity};

/// The maximum size of a diagnosis as indented JSON, in bytes.
pub(super) const MAX_BYTES: usize = 8000;

/// The lengths of lists and of texts (in characters) that are tried in turn.
const LIMITS: [(usize, usize); 8] =
    [(20, 1200), (8, 1200), (4, 1200), (2, 800), (1, 400), (1, 200), (1, 120), (1, 60)];

/// The limits from which findings of low severity are given up before texts are cut further.
const KEEPS_LOW: usize = 3;

/// Cuts lists, then drops minor findings, then cuts texts, then drops findings. `found` is the
/// number of all findings, `max_bytes` the size of the indented JSON.
pub(super) fn fit(diagnosis: &mut Diagnosis, found: usize, max_bytes: usize) {
    // Texts of any length are cut once, so that the attempts are cheap.
    let (list, text) = LIMITS[0];
    cut(diagnosis, list, text);
    let whole = diagnosis.clone();
    let counts = |limit: usize| {
        let all = whole.findings.len();
        let serious = whole.findings.iter().filter(|f| f.record.severity != Severity::Low).count();
        let least = match limit {
            0..KEEPS_LOW => all,
            _ if limit + 1 < LIMITS.len() => serious,
            _ => 0,
        };
        (least..=all).rev()
    };
    for (at, &(list, text)) in LIMITS.iter().enumerate() {
        for count in counts(at) {
            *diagnosis = whole.clone();
            diagnosis.findings.truncate(count);
            diagnosis.omitted = Some(found - count).filter(|&omitted| omitted > 0);
            cut(diagnosis, list, text);
            if size(diagnosis) <= max_bytes {
                return;
            }
        }
    }
}

/// The size of a diagnosis as indented JSON, with what Markdown adds to escape its characters.
fn size(diagnosis: &Diagnosis) -> usize {
    let escaped = |byte: u8| match byte {
        b'&' | b'@' => 4,
        b'\\' | b'`' | b'*' | b'_' | b'[' | b']' | b'<' | b'>' | b'|' | b'#' | b'~' => 1,
        _ => 0,
    };
    let json = serde_json::to_vec_pretty(diagnosis).unwrap_or_default();
    json.len() + json.iter().map(|&byte| escaped(byte)).sum::<usize>()
}

fn cut(diagnosis: &mut Diagnosis, list: usize, text: usize) {
    // There are ten kinds of blind spots.
    diagnosis.blind_spots.truncate(list.max(3));
    for spot in &mut diagnosis.blind_spots {
        shorten(&mut spot.text, text);
    }
    let all = diagnosis.headlines.len();
    diagnosis.headlines.truncate(match list {
        0..8 if text < 400 => 0,
        0..8 => 1,
        _ => list,
    });
    let omitted = diagnosis.headlines_omitted.unwrap_or(0) + all - diagnosis.headlines.len();
    diagnosis.headlines_omitted = Some(omitted).filter(|&omitted| omitted > 0);
    // The first finding says it, too.
    if text < 200 {
        diagnosis.sentence.clear();
    }
    shorten(&mut diagnosis.sentence, text.min(200));
    for headline in &mut diagnosis.headlines {
        cut_path(&mut headline.path, text);
        shorten(&mut headline.text, 200);
    }
    // The long numbers of many parts go before the words.
    // Findings come before the last levers.
    diagnosis.levers.truncate(if list < 8 { 3 } else { list });
    for lever in &mut diagnosis.levers {
        fit_lever(lever, list, text);
    }
    if text < 400 {
        diagnosis.levers.clear();
        diagnosis.memory = None;
    }
    diagnosis.processes.truncate(if text < 400 { 0 } else { list.min(4) });
    for process in &mut diagnosis.processes {
        shorten(&mut process.text, text);
        let all = process.moments.len();
        process.moments.truncate(list);
        let omitted = process.moments_omitted.unwrap_or(0) + all - process.moments.len();
        process.moments_omitted = Some(omitted).filter(|&omitted| omitted > 0);
        process.moments.iter_mut().for_each(|moment| cut_path(&mut moment.path, text));
        process.sites.truncate(list);
        process.sites.iter_mut().for_each(|site| shorten(&mut site.site, text.min(200)));
        if text < 400 {
            process.categories.clear();
        }
    }
    let mut lines: Vec<&mut Vec<HoldingLine>> = Vec::new();
    lines.extend(diagnosis.memory.as_mut().map(|memory| &mut memory.lines));
    if let Some(peak) = &mut diagnosis.peak {
        cut_path(&mut peak.path, text);
        lines.push(&mut peak.lines);
    }
    for lines in lines {
        lines.truncate(if text < 400 { 0 } else { list / 2 });
        for line in lines {
            shorten(&mut line.site, text.min(200));
            line.called_from.iter_mut().for_each(|site| shorten(site, text.min(200)));
            line.text.iter_mut().for_each(|words| shorten(words, text.min(200)));
        }
    }
    diagnosis.ranks.truncate(if text < 400 { 0 } else { list });
    diagnosis.ranks.iter_mut().for_each(|group| shorten(&mut group.ranks, text.min(120)));
    for finding in diagnosis.findings.iter_mut().map(|entry| &mut entry.record) {
        shorten(&mut finding.why, text);
        if let Some(place) = &mut finding.place {
            cut_path(&mut place.file, text);
            for words in [&mut place.site, &mut place.note, &mut place.what] {
                shorten(words, text.min(200));
            }
            place.source.iter_mut().for_each(|source| shorten(source, text.min(120)));
        }
        // What a place says in short comes before its parts.
        if text < 200 {
            finding.place = None;
        }
        finding.look.truncate(if text < 400 { 0 } else { list });
        finding.holders.truncate(if text < 200 { 0 } else { list });
        for holder in &mut finding.holders {
            for words in [&mut holder.text, &mut holder.path, &mut holder.drop, &mut holder.note] {
                shorten(words, text.min(200));
            }
        }
        cut_path(&mut finding.path, text);
        shorten(&mut finding.title, text);
        shorten(&mut finding.text, text);
        shorten(&mut finding.action, text);
        finding.events.truncate(list);
        finding.children.truncate(list);
        finding.sites.truncate(list);
        finding.simulated.truncate(list);
        let of_simulated = finding.simulated.iter_mut();
        of_simulated.for_each(|one| shorten(&mut one.change, text));
        finding.fixes.truncate(if text < 400 { 0 } else { list });
        finding.fixes.iter_mut().for_each(|lever| fit_lever(lever, list, text));
        finding.called_from.truncate(list.min(4));
        let of_children = finding.children.iter_mut().map(|child| &mut child.site);
        for site in of_children.chain(&mut finding.sites).chain(&mut finding.called_from) {
            shorten(site, text.min(200));
        }
    }
}

/// Cuts the texts of a lever. The edit is the first that goes: `what-if` prints it.
fn fit_lever(lever: &mut Lever, list: usize, text: usize) {
    lever.edit = lever.edit.take().filter(|_| list >= LIMITS[0].0);
    // The cost in words stays.
    if text < LIMITS[0].1 {
        (lever.seconds_percent, lever.seconds_gpu) = (None, None);
    }
    for words in [&mut lever.text, &mut lever.id, &mut lever.recipe] {
        shorten(words, text);
    }
    cut_path(&mut lever.path, text);
    if let Some(place) = &mut lever.place {
        shorten(&mut place.site, text.min(200));
        cut_path(&mut place.file, text);
    }
}

/// Keeps the first characters of a text, and marks the cut.
fn shorten(text: &mut String, limit: usize) {
    if let Some((end, _)) = text.char_indices().nth(limit) {
        text.truncate(end);
        text.push('…');
    }
}

/// Keeps a path whole, as it is asked about. Only one that takes most of an answer is cut.
fn cut_path(path: &mut String, limit: usize) {
    *path = cut_middle(path, 2 * limit);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::RankGroup;
    use crate::diagnose::{Headline, MAX_HEADLINES, MemorySummary, PeakSummary};
    use crate::findings::{
        BlindSpotRecord, FindingChild, FindingEntry, FindingPlace, FindingRecord,
    };
    use crate::holders::{Holder, HolderKind};
    use crate::levers::MAX_TOLD;
    use crate::lines::MAX_LINES;
    use crate::moments::{Evidence, Moment, Process, SiteGrowth, When};
    use crate::serving::CacheShare;
    use crate::sidecar::launch::MAX_DIGITS;
    use crate::what_if::Outcome;
    use vramscope_inference::{Basis, Category, FindingId, FindingKind, Phase};
    use vramscope_inference::{
        Cost, Covers, EditRecord, Lasts, Lever, LeverBasis, LeverPlace, Look,
    };
    use vramscope_units::{Blocks, Bytes, EventIndex};

    fn id() -> FindingId {
        "growth-0-0123456789abcdef".parse().expect("an id")
    }

    fn lever(text: &str) -> Lever {
        let (bytes, recipe) = (Bytes(u64::MAX), text.to_owned());
        Lever {
            id: recipe.clone(),
            kind: "checkpoint".to_owned(),
            edit: Some(EditRecord {
                recipe: recipe.clone(),
                place: Some(text.to_owned()),
                what: text.to_owned(),
                snippet: text.to_owned(),
            }),
            recipe,
            conf: Some("expandable_segments:True".to_owned()),
            text: text.to_owned(),
            path: text.to_owned(),
            device: u32::MAX,
            place: Some(LeverPlace {
                site: text.to_owned(),
                file: text.to_owned(),
                line: u32::MAX,
            }),
            now_bytes: bytes,
            needs_bytes: bytes,
            saving_bytes: bytes,
            cost: Cost::Precision,
            seconds_percent: Some([u32::MAX; 2]),
            seconds_gpu: Some("RTX5090".to_owned()),
            outcome: Some(Outcome::FitsBarely),
            short_by: Some(bytes),
            covers: Covers::Request,
            lasts: Some(Lasts { steps: u64::MAX, called: "requests".to_owned() }),
            basis: LeverBasis::Replayed,
            error_percent: Some(6.0),
            range: Some([bytes; 2]),
            cures: Some(id()),
            lowers: bytes,
        }
    }

    fn lines(text: &str, list: usize) -> Vec<HoldingLine> {
        let line = HoldingLine {
            site: text.to_owned(),
            called_from: Some(text.to_owned()),
            bytes: Bytes(u64::MAX),
            percent: 100,
            category: Category::OptimizerState,
            does: Some("dequantized weights".into()),
            before_bytes: Some(Bytes(u64::MAX)),
            text: Some(text.to_owned()),
            place: None,
            is_of_backward: false,
            was: None,
        };
        vec![line; list.min(MAX_LINES)]
    }

    fn finding(severity: Severity, text: &str, list: usize) -> FindingEntry {
        let (bytes, blocks) = (Bytes(u64::MAX), Blocks(u32::MAX.into()));
        let record = FindingRecord {
            id: id(),
            kind: FindingKind::Growth,
            severity,
            path: text.to_owned(),
            rank: Some(u32::MAX),
            device: u32::MAX,
            title: text.to_owned(),
            text: text.to_owned(),
            action: text.to_owned(),
            place: Some(FindingPlace {
                site: text.to_owned(),
                note: text.to_owned(),
                file: text.to_owned(),
                line: u32::MAX,
                source: Some(text.to_owned()),
                what: text.to_owned(),
            }),
            why: text.to_owned(),
            bytes,
            saving_bytes: Some(bytes),
            step: Some(u32::MAX),
            phase: Some(Phase::Optimizer),
            basis: Basis::Estimate,
            events: vec![EventIndex(u32::MAX); list],
            sites: vec![text.to_owned(); list],
            called_from: vec![text.to_owned(); list],
            blocks,
            children: vec![FindingChild { site: text.to_owned(), bytes, blocks }; list],
            simulated: Vec::new(),
            fixes: Vec::new(),
            look: vec![
                Look {
                    text: "attention scores".to_owned(),
                    bytes,
                    site: Some("model.py:3".to_owned()),
                    recipe: "attention:flash".to_owned(),
                };
                list.min(3)
            ],
            holders: vec![
                Holder {
                    kind: HolderKind::Reference,
                    text: text.to_owned(),
                    path: text.to_owned(),
                    drop: text.to_owned(),
                    note: text.to_owned(),
                    bytes,
                    blocks,
                    frees_bytes: Some(bytes),
                    is_upper_bound: true,
                };
                list.min(3)
            ],
            proof: None,
        };
        FindingEntry {
            record,
            owner: String::new(),
            title: Vec::new(),
            leads: true,
            advice: String::new(),
            other_moments: 0,
            frames: Vec::new(),
            stack: None,
        }
    }

    fn process(text: &str, list: usize) -> Process {
        let moment = Moment { path: text.to_owned(), time_us: Some(i64::MAX), bytes: u64::MAX };
        Process {
            text: text.to_owned(),
            rank: Some(u32::MAX),
            device: u32::MAX,
            evidence: Evidence::Events,
            when: When::LastStep,
            moments: vec![moment; list],
            moments_omitted: None,
            growth_bytes: i64::MIN,
            categories: Category::ALL.iter().map(|c| (c.name(), i64::MIN)).collect(),
            sites: vec![SiteGrowth { site: text.to_owned(), bytes: u64::MAX }; list.min(5)],
        }
    }

    fn diagnosis(severities: &[Severity], text: &str, list: usize) -> Diagnosis {
        let findings = severities.iter().map(|&severity| finding(severity, text, list));
        let peak = PeakSummary {
            path: text.to_owned(),
            rank: Some(u32::MAX),
            device: u32::MAX,
            bytes: Bytes(u64::MAX),
            event: i64::MAX,
            step: Some(u32::MAX),
            phase: Some("optimizer"),
            place: String::new(),
            is_end: false,
            categories: Category::ALL.iter().map(|c| (c.name(), Bytes(u64::MAX))).collect(),
            lines: lines(text, list),
            cache: Some(CacheShare {
                bytes: Bytes(u64::MAX),
                device_memory: Bytes(u64::MAX),
                flag: Some(format!("--gpu-memory-utilization {}", "9".repeat(MAX_DIGITS))),
            }),
        };
        Diagnosis {
            schema: "vramscope.diagnose/1",
            sentence: text.to_owned(),
            headlines: vec![
                Headline {
                    path: text.to_owned(),
                    rank: Some(u32::MAX),
                    device: u32::MAX,
                    severity: Some(Severity::Medium),
                    finding: Some(id()),
                    text: text.to_owned(),
                };
                MAX_HEADLINES.min(list + 1)
            ],
            headlines_omitted: None,
            dry: None,
            memory: Some(MemorySummary {
                event: i64::MAX,
                reserved: Bytes(u64::MAX),
                capacity: Some(Bytes(u64::MAX)),
                request: Some(Bytes(u64::MAX)),
                parts: Category::ALL.iter().map(|c| (c.name(), Bytes(u64::MAX))).collect(),
                lines: lines(text, list),
            }),
            ranks: vec![
                RankGroup {
                    ranks: text.to_owned(),
                    peak_bytes: [u64::MAX; 2],
                    reserved_bytes: [u64::MAX; 2],
                    kept_bytes: [u64::MAX; 2],
                    severity: Some(Severity::High),
                    finding: Some(id()),
                };
                list
            ],
            findings: findings.collect(),
            omitted: None,
            peak: Some(peak),
            levers: vec![lever(text); list.min(MAX_TOLD)],
            processes: vec![process(text, list); list.min(4)],
            blind_spots: vec![BlindSpotRecord { kind: "no_categories", text: text.to_owned() }; 10],
            skipped_files: usize::MAX,
            indexed: [text.to_owned()].into_iter().collect(),
        }
    }

    #[test]
    fn any_diagnosis_fits() {
        // Names from files have any length and any characters: escaped in JSON, in Markdown, long
        // in UTF-8.
        for unit in ["x", "_", "&", "\u{1}", "\u{10ffff}", "\"\\", "é@"] {
            for list in [0, 1, 20, 50] {
                let mut one = diagnosis(&[Severity::High; 5], &unit.repeat(10_000), list);
                fit(&mut one, 1000, MAX_BYTES);
                let json = serde_json::to_string_pretty(&one).expect("JSON");
                assert!(json.len() <= MAX_BYTES, "{unit:?} {list}: {}", json.len());
                assert_eq!(one.findings.len() + one.omitted.unwrap_or(0), 1000);
                assert!(!one.findings.is_empty(), "{unit:?} {list}");
            }
        }
    }

    #[test]
    fn changes_are_cut() {
        for (unit, list) in [("x", 7), ("é@", 50)] {
            let mut one = diagnosis(&[Severity::High], &unit.repeat(100), 1);
            one.findings[0].record.fixes = vec![lever(&unit.repeat(10_000)); list];
            fit(&mut one, 1, MAX_BYTES);
            let json = serde_json::to_string_pretty(&one).expect("JSON");
            assert!(json.len() <= MAX_BYTES, "{unit:?} {list}: {}", json.len());
            assert_eq!(one.findings.len(), 1, "{unit:?} {list}");
        }
    }

    #[test]
    fn a_short_diagnosis_stays_whole() {
        let mut one = diagnosis(&[Severity::High], "model.py:3 forward", 1);
        let whole = format!("{one:?}");
        fit(&mut one, 1, MAX_BYTES);
        assert_eq!(format!("{one:?}"), whole);
    }

    #[test]
    fn minor_findings_go_before_texts_are_cut_short() {
        let text = "word ".repeat(58);
        let mut severities = [Severity::Low; 5];
        severities[0] = Severity::High;
        let mut one = diagnosis(&severities, &text, 1);
        one.processes.clear();
        one.levers.clear();
        if let Some(peak) = &mut one.peak {
            peak.cache = None;
        }
        one.sentence.clear();
        for finding in &mut one.findings {
            finding.record.place = None;
            finding.record.why.clear();
        }
        fit(&mut one, 5, MAX_BYTES);
        assert_eq!(one.findings[0].record.text, text);
        assert!(one.findings.len() < 5 && one.omitted == Some(5 - one.findings.len()), "{one:?}");
    }

    #[test]
    fn paths_stay_whole() {
        let path = format!("{}/rank3.pickle", "folder/".repeat(25));
        let mut one = diagnosis(&[Severity::High; 5], "text", 20);
        let paths = |one: &Diagnosis| -> Vec<String> {
            let headlines = one.headlines.iter().map(|headline| &headline.path);
            let findings = one.findings.iter().map(|entry| &entry.record.path);
            let moments = one.processes.iter().flat_map(|of| &of.moments).map(|of| &of.path);
            let all = headlines.chain(findings).chain(moments).cloned();
            all.chain(one.peak.as_ref().map(|peak| peak.path.clone())).collect()
        };
        one.headlines.iter_mut().for_each(|headline| headline.path.clone_from(&path));
        one.findings.iter_mut().for_each(|entry| entry.record.path.clone_from(&path));
        let moments = one.processes.iter_mut().flat_map(|of| &mut of.moments);
        moments.for_each(|moment| moment.path.clone_from(&path));
        one.peak.iter_mut().for_each(|peak| peak.path.clone_from(&path));
        fit(&mut one, 5, MAX_BYTES);
        assert!(paths(&one).len() > 2 && paths(&one).iter().all(|of| *of == path), "{one:?}");
    }
}
