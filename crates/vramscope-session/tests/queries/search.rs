//! Searches by word, size, address and event.

use super::events::filter;
use super::harness::{GPT, Opened, number, open, table};
use vramscope_report::{FrameRecord, frames};
use vramscope_session::messages::views::{Answer, Query, SearchResult};

impl Opened {
    fn search(&mut self, text: &str) -> Option<SearchResult> {
        match self.ask(Query::Search { text: text.into() }) {
            Answer::Search(found) => found.map(|found| *found),
            other => panic!("{other:?}"),
        }
    }
}

/// The call stack of a block.
fn stack(opened: &Opened, block: u32) -> Vec<FrameRecord<'_>> {
    let report = opened.report();
    frames(report.snapshot(), report.trace().blocks[block as usize].stack)
}

#[test]
fn words_match_frames_of_the_stack() {
    let mut opened = open(GPT);
    let peak_event =
        opened.report().trace().requested_band.peak_event.expect("a peak in the window");
    let slot = peak_event + 1;
    let mut words: Vec<String> =
        ["forward", "GPT.py", "forward gpt.py", "no such thing"].map(Into::into).to_vec();
    let place =
        opened.rows().iter().flat_map(|&(i, _)| stack(&opened, i)).find(|f| f.line > 9).map(|f| {
            let file = f.file.rsplit('/').next().expect("a name").to_owned();
            format!("{file}:{}", f.line)
        });
    words.push(place.expect("a frame with a line"));
    for text in words {
        let (mut count, mut bytes) = (0i64, 0i64);
        let matches = |frames: &[FrameRecord<'_>]| {
            text.to_lowercase().split(' ').all(|word| {
                let has = |f: &FrameRecord<'_>| {
                    format!("{} {}:{}", f.name, f.file, f.line).to_lowercase().contains(word)
                };
                frames.iter().any(has)
            })
        };
        let trace = opened.report().trace();
        for (i, row) in opened.rows() {
            if matches(&stack(&opened, i)) {
                let block = &trace.blocks[i as usize];
                count += 1;
                bytes += if block.is_live_at(slot) { row.bytes.0 as i64 } else { 0 };
            }
        }
        let found = opened.search(&text).expect("a valid search");
        assert_eq!((number(&found.blocks), number(&found.bytes)), (count, bytes), "{text}");
        assert_eq!(opened.order(&table(&text)).len() as i64, count, "{text}");
        assert!(found.text.starts_with(&found.blocks.exact), "{}", found.text);
        assert_eq!(count == 0, text == "no such thing", "{text}");
    }
}

#[test]
fn sizes_addresses_and_events_match() {
    // A 1000 100; A 1200 200; A 1400 300; F 1200 (two events); A 1200 50 (hexadecimal addresses)
    let mut opened = open("scenarios/f02.pickle");
    for (text, count) in [
        (">100", 2),
        (">=100", 3),
        ("> 0.1KiB", 2),
        ("<0.1 kb", 2),
        ("<=50b", 1),
        ("<50", 0),
        ("<0", 0),
        ("=200", 1),
        ("= 200 bytes", 1),
        ("=0.2KiB", 1),
        ("=0.20KiB", 1),
        ("=0.21KiB", 0),
        (">50 <300", 2),
        (">1GiB", 0),
        ("0x1200", 2),
        ("0x12", 2),
        ("0x1", 4),
        ("0x1205", 2),
        ("0x12c7", 1),
        ("0x12c8", 0),
        ("0X1200_1", 1),
        ("0x1200_2", 0),
        ("0x1200 >100", 1),
        ("#0", 1),
        ("#3", 1),
        ("#4", 1),
        ("#5", 1),
        ("#1,000", 0),
    ] {
        let found = opened.search(text).unwrap_or_else(|| panic!("{text} is valid"));
        assert_eq!(number(&found.blocks), count, "{text}");
    }
    for text in [
        "",
        "  ",
        ">abc",
        ">",
        "> ",
        "=",
        "#x",
        "#",
        "0x",
        "0xzz",
        ">1.2.3",
        ">-1",
        ">99999999999999999999b",
        ">1XiB",
        "foo >",
        "=>3",
    ] {
        assert!(opened.search(text).is_none(), "{text}");
        let page = opened.blocks(&table(text), 0, 10, Some(0));
        let events = opened.events(&filter(&[], text), 0, 10, Some(0));
        if text.trim().is_empty() {
            assert_eq!((page.total, events.total), (4, 6), "an empty search matches all");
            assert_eq!((page.text.as_str(), events.text.as_str()), ("4 blocks, 650 B", "6 events"));
        } else {
            assert_eq!(
                (page.total, page.at, events.total, events.at),
                (0, None, 0, None),
                "{text}"
            );
            assert!(
                page.text.starts_with("Cannot parse ") && page.text == events.text,
                "{}",
                page.text
            );
        }
    }
    assert_eq!(number(&opened.search("<module>").expect("a Python name").blocks), 4);
    assert_eq!(number(&opened.search("<lambda>").expect("a Python name").blocks), 0);
    assert_eq!(opened.search("#3").expect("an event").text, "1 block, 200 B at the peak");
    assert_eq!(opened.search("#77").expect("an event").text, "0 blocks");
}

#[test]
fn words_match_texts_of_the_program_about_blocks() {
    let found = |name: &str, text: &str| {
        let mut opened = open(name);
        opened.search(text).map(|found| found.blocks.value)
    };
    let annotated = "edge/annotate.pickle";
    assert_eq!(found(annotated, "weights"), Some(1));
    // Words may be in the stack and in several texts.
    assert_eq!(found(annotated, "weights Layer alloc_0"), Some(1));
    assert_eq!(found(annotated, "weights alloc_1"), Some(0));
    // No block was live at these addresses.
    assert_eq!(found(annotated, "already"), Some(0));
    assert_eq!(found(annotated, "known"), Some(0));
    assert_eq!(found("edge/metadata.pickle", "plain"), Some(1));
    assert_eq!(found("edge/metadata.pickle", "phase alloc_1 <1KiB"), Some(1));
    let many = "step ".repeat(65);
    assert_eq!(found(annotated, &many), None);
}
