//! Cards of recordings: what ranks are compared by is the same with and without the snapshots.

use std::path::{Path, PathBuf};
use vramscope_analysis::slicing::now;
use vramscope_report::index::{Card, Reader, SCHEMA, Writer};
use vramscope_report::matrix::matrices;
use vramscope_report::peak::{BandKind, peak};
use vramscope_report::rank::RankSummary;
use vramscope_report::state::state;
use vramscope_report::steps::steps;
use vramscope_report::{FileReader, LoadedFile, Target, segments, slot_of};

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
fn each_device(folders: &[&str], mut work: impl FnMut(Target<'_>, u64)) {
    let mut found = Vec::new();
    for folder in folders {
        files(&test_data().join(folder), &mut found);
    }
    assert!(!found.is_empty());
    for path in found {
        let file = load(&path);
        for entry in &file.entries {
            for index in 0..entry.traces.len() {
                work(Target { path: &entry.path, entry, index }, file.bytes);
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
        text.push_str(&writer.card(card.clone()).expect("a whole card"));
        text.push('\n');
    }
    text.push_str(&Writer::done(0));
    text.push('\n');
    text
}

#[test]
fn facts_of_cards_are_those_of_the_snapshots() {
    let (mut cards, mut facts, mut findings) = (Vec::new(), Vec::new(), 0);
    each_device(&["recorded", "findings", "beside"], |target, bytes| {
        let summary = now(async |budget| RankSummary::new(target, budget).await);
        let card = Card::of(&summary, target, bytes);
        findings += card.findings.len();
        facts.push(summary.facts());
        cards.push(card);
    });
    assert!(facts.len() > 30 && findings > 10, "{} {findings}", facts.len());
    let text = index_of(&cards);
    // Cut anywhere, the cards are the same.
    for piece in [1 << 20, 977] {
        let mut reader = Reader::default();
        let mut read = Vec::new();
        for part in text.as_bytes().chunks(piece) {
            read.extend(reader.feed(part).expect("an index"));
        }
        assert!(reader.is_done());
        assert_eq!((reader.title(), reader.files()), ("run", cards.len() as u64));
        assert_eq!(read.len(), cards.len());
        for ((card, source), facts) in read.iter().zip(&cards).zip(&facts) {
            assert_eq!(reader.facts(card), *facts, "{}", card.path);
            // All else is as it was made.
            let found = Card {
                sites: source.sites.clone(),
                kept_sites: source.kept_sites.clone(),
                stacks: source.stacks.clone(),
                new_sites: source.new_sites.clone(),
                new_stacks: source.new_stacks.clone(),
                new_stack_sites: source.new_stack_sites.clone(),
                ..card.clone()
            };
            assert_eq!(found, *source);
        }
    }
    for card in &cards {
        assert_eq!(Card::parse(card.to_json().as_bytes()).as_ref(), Ok(card));
    }
    // A name is written once.
    let site = "\"p_linear.py:8 <module>\"";
    assert_eq!(text.matches(site).count(), 1);
}

#[test]
fn clusters_and_outliers_of_cards_are_those_of_the_snapshots() {
    let (mut summaries, mut cards) = (Vec::new(), Vec::new());
    each_device(&["findings/ranks_fsdp2_skew"], |target, bytes| {
        summaries.push(now(async |budget| RankSummary::new(target, budget).await));
        cards.push(Card::new(target, bytes));
    });
    let mut reader = Reader::default();
    let read = reader.feed(index_of(&cards).as_bytes()).expect("an index");
    let facts: Vec<_> = read.iter().map(|card| reader.facts(card)).collect();
    let skews = vramscope_analysis::rank_skew(&facts);
    let of_snapshots: Vec<_> = summaries.iter().map(RankSummary::facts).collect();
    assert_eq!(skews, vramscope_analysis::rank_skew(&of_snapshots));
    assert_eq!(skews.len(), 1);
    assert_eq!(matrices(&summaries, 0, 10).runs[0].outliers.len(), 1);
}

#[test]
fn figures_of_cards_are_those_of_the_commands() {
    each_device(&["recorded"], |target, bytes| {
        let card = Card::new(target, bytes);
        for (at, band) in BandKind::ALL.into_iter().enumerate() {
            let of_band = band.of(target).0;
            assert_eq!(card.peaks[at], of_band.peak, "{}", card.path);
            let event = of_band.peak_event.map_or(-1, i64::from);
            assert_eq!(card.peak_events[at], event);
        }
        let trace = target.trace();
        let free = |slot| {
            now(async |budget| segments::segments(target, slot, Some(0), budget).await)
                .fragmentation
        };
        let at_peak = free(slot_of(trace.reserved_band.peak_event));
        assert_eq!([card.free, card.largest_free], [at_peak.free, at_peak.largest_free]);
        let at_end = free(trace.slots() - 1);
        assert_eq!([card.end_free, card.end_largest_free], [at_end.free, at_end.largest_free]);
        let whole = now(async |budget| steps(target, None, budget).await).steps;
        let last = &whole[whole.len().saturating_sub(64)..];
        let peaks: Vec<u64> = last.iter().map(|step| step.peak_bytes).collect();
        assert_eq!(card.step_peaks, peaks);
        assert_eq!(card.first_step, last.first().map_or(0, |step| step.step.into()));
        // What is kept is what is live after the last step, or event.
        let kept = whole.last().map_or(i64::from(trace.slots()) - 2, |step| step.end - 1);
        assert_eq!(card.kept_event, kept);
        let state = state(target, (kept + 1) as u32, None);
        assert_eq!(card.kept, state.requested_bytes);
        if card.kept_sites.len() < 128 {
            assert_eq!(card.kept_site_bytes.iter().sum::<u64>(), card.kept, "{}", card.path);
        }
        // The curve has the peak in the column of its event.
        let height = card.peaks[0].max(card.peaks[3]).max(1) as u128;
        let most = card.curve.iter().copied().max();
        assert_eq!(most.map(u128::from), Some(card.peaks[0].max(0) as u128 * 1000 / height));
        assert_eq!(card.curve.len(), 64);
        // Sites and stacks hold what `peak` lists.
        let total: u64 =
            peak(target, BandKind::Requested, None).stacks.iter().map(|s| s.bytes).sum();
        if card.stacks.len() < 200 {
            assert_eq!(card.stack_bytes.iter().sum::<u64>(), total, "{}", card.path);
        }
    });
}

#[test]
fn what_is_no_index_is_refused() {
    let header = Writer::header("run", 1);
    let card = r#"{"path":"a","new_sites":["a"],"sites":[0],"site_bytes":[1]}"#;
    let read = |lines: &[&str]| {
        let mut reader = Reader::default();
        reader.feed(format!("{}\n", lines.join("\n")).as_bytes()).map(|cards| cards.len())
    };
    assert_eq!(read(&[&header, card]), Ok(1));
    assert_eq!(read(&[card]), Err(format!("its schema is ``, expected {SCHEMA}")));
    let later = header.replace("index/1", "index/2");
    let why = format!("its schema is `vramscope.index/2`, expected {SCHEMA}");
    assert_eq!(read(&[&later]), Err(why));
    for (line, why) in [
        (r#"{"sites":[1]}"#, "line 3: it refers to a call site of no line"),
        (r#"{"stacks":[0]}"#, "line 3: it refers to a call site of no line"),
        (
            r#"{"new_stacks":[5],"new_stack_sites":[7]}"#,
            "line 3: it refers to a call site of no line",
        ),
        ("{", "line 3: EOF while parsing an object at line 1 column 1"),
    ] {
        assert_eq!(read(&[&header, card, line]), Err(why.to_owned()), "{line}");
    }
    // What a card lacks is empty, and kinds of JSON that it should not have count as absent.
    assert_eq!(read(&[&header, r#"{"path":7,"peaks":{"a":1.5},"told":"x"}"#]), Ok(1));
    // No card at all is refused: it would be a rank without memory that nobody recorded.
    let why = read(&[&header, card, "null"]).expect_err("a line without a card");
    assert!(why.starts_with("line 3: invalid type: null"), "{why}");
    let deep = "[".repeat(100_000);
    assert!(read(&[&header, &deep]).is_err());
    let mut reader = Reader::default();
    let long = vec![b' '; 9 << 20];
    assert_eq!(reader.feed(&long), Err("line 1 is too long".to_owned()));
    assert!(Writer::default().card(Card { sites: vec![3], ..Card::default() }).is_err());
}
