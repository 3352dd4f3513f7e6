//! Reads bytes as the index of a run.

use crate::pieces;
use vramscope_report::card::{Card, Names};
use vramscope_report::findings;
use vramscope_report::index::{Entry, Reader, Writer, parse_entry};
use vramscope_report::matrix::matrices;
use vramscope_report::series::Collector;
use vramscope_session::Coordinator;
use vramscope_session::messages::views::{ListQuery, MatrixQuery, RankSort, ReadIndex, RunQuery};
use vramscope_session::messages::{FileEntry, RunRequest, RunResponse};

/// Reads the bytes as an index, whole and in pieces, and asks all that the program and the page
/// ask about its cards. The index that is written of the cards is read as it was written.
///
/// # Panics
/// When an invariant is broken.
pub fn index(data: &[u8]) {
    let Some((size, bytes)) = pieces(data) else { return };
    let (entries, error) = read(bytes, bytes.len().max(1));
    let (in_pieces, other) = read(bytes, size);
    assert_eq!(error, other, "in pieces of {size} bytes");
    // What precedes an error in a piece is not returned.
    if error.is_none() {
        assert_eq!(entries, in_pieces, "in pieces of {size} bytes");
    }
    let cards: Vec<Card> =
        entries.iter().filter_map(|of| Some(*of.as_ref().ok()?.clone())).collect();
    let text = written(entries.clone());
    let (again, none) = read(text.as_bytes(), usize::MAX);
    assert_eq!((none, again.len()), (None, entries.len()));
    assert_eq!(written(again), text);
    for card in &cards {
        let parsed = parse_entry(card.to_json().as_bytes()).expect("a card");
        assert_eq!(*parsed.expect("a card that was read"), *card);
    }
    let mut collector = Collector::default();
    for entry in &entries {
        collector.add(entry, entry.as_ref().map_or(&Names::default(), |card| &card.names));
    }
    drop(collector.report(10).map(|report| print(&report)));
    print(&matrices(&cards, 10));
    print(&findings::across(cards));
    ask(bytes, size);
}

/// The entries of an index in pieces of `size` bytes, each with the names of its own card, and the
/// error that ends it.
fn read(bytes: &[u8], size: usize) -> (Vec<Entry>, Option<String>) {
    let (mut reader, mut all) = (Reader::default(), Vec::new());
    for piece in bytes.chunks(size) {
        match reader.feed(piece) {
            Ok(entries) => all.extend(entries),
            Err(why) => return (named(all, &reader), Some(why)),
        }
    }
    (named(all, &reader), None)
}

fn named(entries: Vec<Entry>, reader: &Reader) -> Vec<Entry> {
    let own = |card: Box<Card>| Box::new(card.naming_its_own(reader.names()));
    entries.into_iter().map(|entry| entry.map(own)).collect()
}

/// The index of these entries.
fn written(entries: Vec<Entry>) -> String {
    let mut text = Writer::header("title", entries.len()) + "\n";
    let mut writer = Writer::default();
    for entry in entries {
        text.push_str(&writer.line(entry).expect("the card names its own"));
        text.push('\n');
    }
    text + &Writer::done(0) + "\n"
}

fn print(report: &impl serde::Serialize) {
    drop(serde_json::to_string(report).expect("a report serializes"));
}

/// Sends every request that the page sends about a run.
fn ask(bytes: &[u8], size: usize) {
    let mut run = Coordinator::default();
    let mut files: Vec<FileEntry> = Vec::new();
    let mut is_first = true;
    for piece in bytes.chunks(size.max(64)) {
        let RunResponse::Indexed { read, .. } = run.read_index(1, piece, is_first) else {
            panic!("an index is answered as one")
        };
        print(&read);
        is_first = false;
        let ReadIndex { files: found, error, .. } = read;
        files.extend(found.into_iter().map(|of| FileEntry {
            path: of.path,
            bytes: of.bytes,
            skipped: false,
            closed: false,
        }));
        if error.is_some() {
            break;
        }
    }
    let list = ListQuery {
        sort: RankSort::Findings,
        descending: true,
        filter: "rank:0 >1MiB a".to_owned(),
        iteration: Some("100".to_owned()),
    };
    for request in [
        RunRequest::Plan { id: 2, files },
        RunRequest::View { id: 3, query: RunQuery::Cards { cards: Vec::new() } },
        RunRequest::List { id: 4, query: ListQuery::default() },
        RunRequest::List { id: 5, query: list },
        RunRequest::Rows { id: 6, keys: vec![0, 8, 16, u32::MAX] },
        RunRequest::Fleet { id: 7, key: None, sizes: "2/2/2".to_owned(), capacity: Some(1e9) },
        RunRequest::Fleet { id: 8, key: Some(0), sizes: String::new(), capacity: None },
        RunRequest::Matrix { id: 9, query: MatrixQuery::Show { key: None, by_step: true } },
        RunRequest::Matrix { id: 10, query: MatrixQuery::Show { key: None, by_step: false } },
        RunRequest::Matrix { id: 11, query: MatrixQuery::Cell { row: 0, column: 0 } },
        RunRequest::Matrix { id: 12, query: MatrixQuery::Cell { row: u32::MAX, column: 1 } },
        RunRequest::View { id: 13, query: RunQuery::Clear {} },
    ] {
        print(&run.handle(&request));
    }
}
