//! Cards of recordings: what ranks are compared by is the same with and without the snapshots.

use std::path::{Path, PathBuf};
use vramscope_report::card::{Card, CardFinding, MAX_FINDINGS, SiteBytes};
use vramscope_report::findings::FindingRecord;
use vramscope_report::index::{Entry, FailedFile, Reader, SCHEMA, Writer, parse_entry};
use vramscope_report::matrix::matrices;
use vramscope_report::peak::{BandKind, peak};
use vramscope_report::state::state;
use vramscope_report::steps::floors;
use vramscope_report::{FileReader, LoadedFile, Severity, Target, slot_of};
use vramscope_trace::Fragmentation;
use vramscope_trace::slicing::now;
use vramscope_units::{Bytes, Iteration};

fn test_data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test_data")
}

/// The snapshot files in a folder of the test data, at any depth.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        folder.read_dir().expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            files(&path, found);
        } else if path.to_string_lossy().contains(".pickle") {
            found.push(path);
        }
    }
}

fn load(path: &Path) -> LoadedFile {
    let bytes = std::fs::read(path).expect("a file of test_data");
    let name = path.strip_prefix(test_data()).expect("below test_data").to_string_lossy();
    let mut reader = FileReader::new(&name, bytes.len() as u64);
    reader.feed(&bytes).expect("a snapshot");
    reader.finish().expect("a whole snapshot")
}

/// Calls `work` with each device of the recordings in these folders.
fn each_device(folders: &[&str], mut work: impl FnMut(Target<'_>)) {
    let mut found = Vec::new();
    for folder in folders {
        files(&test_data().join(folder), &mut found);
    }
    assert!(!found.is_empty());
    for path in found {
        let file = load(&path);
        for entry in &file.entries {
            for index in 0..entry.traces.len() {
                work(Target { path: &entry.path, entry, index });
            }
        }
    }
}

/// The text of an index of these cards.
fn index_of(cards: &[Card]) -> String {
    let mut writer = Writer::default();
    let mut text = Writer::header("run", cards.len());
    text.push('\n');
    for card in cards {
        text.push_str(&writer.line(Ok(Box::new(card.clone()))).expect("a whole card"));
        text.push('\n');
    }
    text.push_str(&Writer::done(0));
    text.push('\n');
    text
}

#[test]
fn facts_of_an_index_are_those_of_the_snapshots() {
    let (mut cards, mut findings) = (Vec::new(), 0);
    each_device(&["recorded", "findings", "beside"], |target| {
        let card = now(async |budget| Card::new(target, budget).await);
        assert_eq!(card.bytes.0, target.entry.file_bytes);
        findings += card.findings.len();
        cards.push(card);
    });
    assert!(cards.len() > 30 && findings > 10, "{} {findings}", cards.len());
    let text = index_of(&cards);
    // Cut anywhere, the cards are equal.
    for piece in [1 << 20, 977] {
        let mut reader = Reader::default();
        let mut read = Vec::new();
        for part in text.as_bytes().chunks(piece) {
            read.extend(reader.feed(part).expect("an index"));
        }
        assert!(reader.is_done());
        assert_eq!((reader.title(), reader.files()), ("run", cards.len() as u64));
        assert_eq!(read.len(), cards.len());
        for (entry, source) in read.into_iter().zip(&cards) {
            let card = *entry.expect("a card");
            let (found, mut expected) = (card.facts(reader.names()), source.facts(&source.names));
            if source.findings.len() > MAX_FINDINGS {
                // The order of a short card is another one.
                expected.findings.clone_from(&found.findings);
            }
            assert_eq!(found, expected, "{}", card.path);
            // All else is as it was made.
            let source = Card::parse(source.clone().short().to_json().as_bytes()).expect("a card");
            let found = Card {
                sites: source.sites.clone(),
                kept_sites: source.kept_sites.clone(),
                stacks: source.stacks.clone(),
                names: source.names.clone(),
                ..card
            };
            assert_eq!(found, source);
        }
    }
    // A name is written once.
    let site = "\"p_linear.py:8 <module>\"";
    assert_eq!(text.matches(site).count(), 1);
}

#[test]
fn a_short_card_has_the_worst_findings_and_the_bytes_of_all() {
    let mut whole = None;
    each_device(&["findings"], |target| {
        let card = now(async |budget| Card::new(target, budget).await);
        if whole.as_ref().is_none_or(|of: &Card| of.findings.len() < card.findings.len()) {
            whole = Some(card);
        }
    });
    let mut whole = whole.expect("a card");
    let one = whole.findings.first().cloned().expect("a finding");
    for bytes in (0..20).map(Bytes) {
        let record = FindingRecord { bytes, severity: Severity::Low, ..one.record.clone() };
        whole.findings.push(CardFinding { record, ..one.clone() });
    }
    let sum = |card: &Card| -> u64 {
        card.facts(&card.names).findings.iter().map(|(_, bytes)| bytes).sum()
    };
    let (count, bytes) = (whole.findings.len(), sum(&whole));
    let short = whole.short();
    assert_eq!(short.findings.len(), MAX_FINDINGS);
    assert_eq!(short.other_findings.len(), count - MAX_FINDINGS);
    assert_eq!(sum(&short), bytes);
    assert!(short.findings.contains(&one), "it is worse than the others");
}

#[test]
fn clusters_and_outliers_of_an_index_are_those_of_the_snapshots() {
    let mut cards = Vec::new();
    each_device(&["findings/ranks_fsdp2_skew"], |target| {
        cards.push(now(async |budget| Card::new(target, budget).await));
    });
    let mut reader = Reader::default();
    let read = reader.feed(index_of(&cards).as_bytes()).expect("an index");
    let facts_of = |entry: &Entry| entry.as_ref().ok().map(|card| card.facts(reader.names()));
    let facts: Vec<_> = read.iter().filter_map(facts_of).collect();
    let skews = vramscope_inference::rank_skew(&facts);
    let of_snapshots: Vec<_> = cards.iter().map(|card| card.facts(&card.names)).collect();
    assert_eq!(skews, vramscope_inference::rank_skew(&of_snapshots));
    assert_eq!(skews.len(), 1);
    assert_eq!(matrices(&cards, 10).runs[0].outliers.len(), 1);
}

#[test]
fn figures_of_cards_are_those_of_the_commands() {
    each_device(&["recorded"], |target| {
        let card = now(async |budget| Card::new(target, budget).await);
        for (at, band) in BandKind::ALL.into_iter().enumerate() {
            let of_band = band.of(target).0;
            assert_eq!(card.bands[at].peak.0, of_band.peak, "{}", card.path);
            let event = of_band.peak_event.map_or(-1, i64::from);
            assert_eq!(card.bands[at].peak_event.0, event);
        }
        let trace = target.trace();
        let cached = now(async |budget| {
            let carving = target.entry.carving(target.index);
            Fragmentation::new(target.snapshot(), trace, carving, budget).await
        });
        let peak_slot = slot_of(trace.reserved_band.peak_event);
        for (free, slot) in [(card.free, peak_slot), (card.end_free, trace.slots() - 1)] {
            let expected = [cached.free.at(slot), cached.largest.at(slot)];
            assert_eq!([free.bytes.0, free.largest.0], expected, "{}", card.path);
        }
        let whole = now(async |budget| floors(target, budget).await).steps;
        let last = &whole[whole.len().saturating_sub(64)..];
        let peaks: Vec<u64> = last.iter().map(|step| step.peak_bytes).collect();
        assert_eq!(card.steps.iter().map(|step| step.peak.0).collect::<Vec<_>>(), peaks);
        assert_eq!(card.first_step, last.first().map_or(0, |step| step.step));
        // What is kept is what is live after the last step, or event.
        let kept = whole.last().map_or(i64::from(trace.slots()) - 2, |step| step.end - 1);
        assert_eq!(card.kept_event.0, kept);
        let state = state(target, (kept + 1) as u32, None);
        assert_eq!(card.kept.0, state.requested_bytes);
        if card.kept_sites.len() < 128 {
            let sum: u64 = card.kept_sites.iter().map(|of| of.bytes.0).sum();
            assert_eq!(sum, card.kept.0, "{}", card.path);
        }
        // The curve has the peak in the column of its event.
        let height = card.bands[0].peak.0.max(card.bands[3].peak.0).max(1) as u128;
        let most = card.curve.iter().copied().max();
        assert_eq!(most.map(u128::from), Some(card.bands[0].peak.0.max(0) as u128 * 1000 / height));
        assert_eq!(card.curve.len(), 100);
        // Sites and stacks hold what `peak` lists.
        let total: u64 =
            peak(target, BandKind::Requested, None).stacks.iter().map(|s| s.bytes).sum();
        if card.stacks.len() < 200 {
            let sum: u64 = card.stacks.iter().map(|of| of.bytes.0).sum();
            assert_eq!(sum, total, "{}", card.path);
        }
    });
}

/// A real card, and its line.
fn sample() -> (Card, String) {
    let file = load(&test_data().join("recorded/gpt_leak.pickle.gz"));
    let card = now(async |budget| Card::new(file.target(0, 0).expect("a device"), budget).await);
    let line = card.clone().short().to_json();
    (card, line)
}

/// The entries of an index with these lines after the first.
fn read(lines: &[&str]) -> Result<Vec<Entry>, String> {
    let text = format!("{}\n{}\n", Writer::header("run", lines.len()), lines.join("\n"));
    Reader::default().feed(text.as_bytes())
}

#[test]
fn a_text_that_is_no_index_is_refused() {
    let feed = |text: &str| Reader::default().feed(text.as_bytes()).map(|entries| entries.len());
    assert_eq!(feed(&format!("{}\n", Writer::header("run", 1))), Ok(0));
    let other = format!("its schema is `vramscope.index/2`, expected {SCHEMA}");
    let later = Writer::header("run", 1).replace("index/1", "index/2");
    assert_eq!(feed(&format!("{later}\n")), Err(other));
    let (_, line) = sample();
    for (text, why) in [
        (&*line, "its schema is ``, expected vramscope.index/1"),
        ("{\"schema\":\"vramscope.index/1\",\"title\":\"run\"}", "line 1: missing field `files`"),
        ("{", "line 1: EOF while parsing an object"),
    ] {
        let found = feed(&format!("{text}\n")).expect_err(text);
        assert!(found.starts_with(why), "{found}");
    }
    let long = vec![b' '; 9 << 20];
    assert_eq!(Reader::default().feed(&long), Err("line 1 is too long".to_owned()));
}

#[test]
fn a_line_that_names_no_file_ends_the_index() {
    let (_, line) = sample();
    for (other, why) in [
        ("null", "line 3: invalid type: null, expected struct Card"),
        ("{", "line 3: EOF while parsing an object"),
        ("{\"done\":true}", "line 3: missing field `path`"),
        // Without its names, the cards after it would have other call sites.
        ("{\"path\":\"a\",\"bytes\":1}", "line 3: missing field"),
    ] {
        let found = read(&[&line, other, &line]).expect_err(other);
        assert!(found.starts_with(why), "{found}");
    }
    let deep = "[".repeat(100_000);
    assert!(read(&[&line, &deep]).is_err());
}

#[test]
fn a_card_with_a_fault_is_a_file_with_the_reason() {
    let (card, line) = sample();
    assert!(line.contains("\"kind\":\"growth\"") && line.contains("\"severity\":\"high\""));
    let peak = format!("\"peak\":{}", card.bands[0].peak.0);
    let site = format!("\"sites\":[{{\"site\":{}", card.sites[0].site);
    for (from, to, why) in [
        (
            "\"kind\":\"growth\"",
            "\"kind\":\"leak\"",
            "unknown variant `leak`, expected one of `oom`",
        ),
        (
            "\"severity\":\"high\"",
            "\"severity\":\"dire\"",
            "unknown variant `dire`, expected one of `high`, `medium`, `low`",
        ),
        ("\"category\":\"", "\"category\":\"other-", "unknown variant `other-"),
        ("\"bands\":", "\"peaks\":", "missing field `bands`"),
        (&peak, "\"most\":7", "missing field `peak`"),
        (&peak, "\"peak\":1.5", "invalid type: floating point `1.5`, expected i64"),
        ("\"kept\":", "\"kept\":-", "invalid value: integer `-"),
        ("\"events\":", "\"count\":", "missing field `events`"),
        ("\"device\":0", "\"device\":null", "invalid type: null, expected u32"),
        (&site, "\"sites\":[{\"site\":4000", "it refers to call site 4000, and "),
    ] {
        assert!(line.contains(from), "{from}");
        let broken = line.replacen(from, to, 1);
        let entries = read(&[&broken, &line]).expect("an index");
        let [Err(FailedFile { path, bytes, error, .. }), Ok(_)] = &entries[..] else {
            panic!("{entries:?}")
        };
        assert_eq!((path, bytes), (&card.path, &card.bytes));
        let expected = format!("its card in line 2 is unusable: {why}");
        assert!(error.starts_with(&expected), "{error}");
        // A dataset has cards one by one.
        let Ok(Err(file)) = parse_entry(broken.as_bytes()) else { panic!("{from}") };
        assert!(file.error.starts_with(&format!("its card is unusable: {why}")), "{}", file.error);
    }
    // A number that may be missing is unknown, never 0.
    let without = line.replacen("\"capacity\":", "\"limit\":", 1);
    let Ok(Ok(read)) = parse_entry(without.as_bytes()) else { panic!("a card") };
    assert_eq!(read.capacity, None);
    assert!(parse_entry(b"{\"device\":0}").is_err());
}

#[test]
fn a_faulty_card_keeps_the_names_of_the_cards_after_it() {
    let (card, _) = sample();
    let mut writer = Writer::default();
    let mut line = || writer.line(Ok(Box::new(card.clone()))).expect("a card");
    let (first, second) = (line(), line());
    let broken = first.replacen("\"events\":", "\"count\":", 1);
    let mut reader = Reader::default();
    let text = format!("{}\n{broken}\n{second}\n", Writer::header("run", 2));
    let entries = reader.feed(text.as_bytes()).expect("an index");
    let [Err(_), Ok(read)] = &entries[..] else { panic!("{entries:?}") };
    assert_eq!(read.facts(reader.names()).by_site, card.facts(&card.names).by_site);
}

#[test]
fn a_file_without_cards_is_written_and_read() {
    let path = "run/iteration_7/rank3.pickle";
    let file = FailedFile::new(path, Bytes(12), "it is cut off");
    assert_eq!((file.rank, file.iteration), (Some(3), Some(Iteration(7))));
    let line = Writer::default().line(Err(file.clone())).expect("a line");
    assert_eq!(read(&[&line]), Ok(vec![Err(file.clone())]));
    assert_eq!(parse_entry(line.as_bytes()), Ok(Err(file)));
}

#[test]
fn a_card_that_lacks_a_name_is_not_written() {
    let (mut card, _) = sample();
    let site = card.names.sites.len() as u32;
    card.sites.push(SiteBytes { site, bytes: Bytes(1) });
    let why = Writer::default().line(Ok(Box::new(card))).expect_err("no such call site");
    assert_eq!(why, format!("it refers to call site {site}, and {site} are named so far"));
}
