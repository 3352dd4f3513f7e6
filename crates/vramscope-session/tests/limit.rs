//! Files that need more memory than there is: said before it runs out, with the curve of all events
//! and a part that fits.

use vramscope_protocol::{Loaded, Response, TooLarge};
use vramscope_session::{FileSession, Loader};

const EVENTS: u32 = 40_000;
const TOP: u32 = 30_000;

/// A text of a pickle.
fn text(words: &str) -> Vec<u8> {
    [&[0x8c, words.len() as u8], words.as_bytes()].concat()
}

fn int(value: u64) -> Vec<u8> {
    [&[0x8a, 8][..], &value.to_le_bytes()].concat()
}

/// The bytes of every event in turn: all are freed right after their alloc, but some around the
/// top.
fn size(pair: u32) -> u64 {
    512 * u64::from(1 + pair % 7) + if pair == TOP / 2 { 1 << 30 } else { 0 }
}

/// A pickle of a segment, as real ones begin, and two traces, in lists of a thousand as CPython
/// writes them.
fn pickle() -> Vec<u8> {
    let event = |event: u32| {
        let (pair, action) =
            (event / 2, if event.is_multiple_of(2) { "alloc" } else { "free_completed" });
        let addr = int(0x7000_0000_0000 + u64::from(pair % 900) * (1 << 31));
        dict(&[("action", text(action)), ("addr", addr), ("size", int(size(pair)))])
    };
    let trace = |events: u32| {
        let batches = (0..events)
            .step_by(1000)
            .map(|first| list((first..events.min(first + 1000)).map(event)));
        [b"]".to_vec(), batches.flatten().collect()].concat()
    };
    let block =
        dict(&[("address", int(1 << 40)), ("size", int(2 << 20)), ("state", text("inactive"))]);
    let blocks = [&b"]"[..], &list([block])].concat();
    let segment =
        dict(&[("address", int(1 << 40)), ("total_size", int(2 << 20)), ("blocks", blocks)]);
    let segments = [&b"]"[..], &list([segment])].concat();
    let traces = [&b"]"[..], &list([trace(EVENTS), trace(EVENTS / 40)])].concat();
    [&b"\x80\x04"[..], &dict(&[("segments", segments), ("device_traces", traces)]), b"."].concat()
}

fn dict(fields: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let fields = fields.iter().flat_map(|(key, value)| [text(key), value.clone()].concat());
    [b"}(".to_vec(), fields.collect(), b"u".to_vec()].concat()
}

/// What is appended to the list on the stack.
fn list(values: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
    [b"(".to_vec(), values.into_iter().flatten().collect(), b"e".to_vec()].concat()
}

fn read(bytes: &[u8], loader: Loader) -> Response {
    read_in(bytes, loader, 10_000)
}

fn read_in(bytes: &[u8], loader: Loader, chunk: usize) -> Response {
    let mut engine = FileSession::with_loader(loader);
    let mut read = 0;
    for chunk in bytes.chunks(chunk) {
        read += chunk.len() as u64;
        if let Err(failure) = engine.feed_unpacked(chunk, read) {
            return Response::Failed(failure);
        }
    }
    engine.finish()
}

fn loader(bytes: &[u8]) -> Loader {
    Loader::new("rank0.pickle", bytes.len() as u64)
}

fn loaded(response: Response) -> Loaded {
    match response {
        Response::Loaded(loaded) => loaded,
        other => panic!("{other:?}"),
    }
}

fn too_large(response: Response) -> TooLarge {
    match response {
        Response::TooLarge(too_large) => too_large,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_fits_is_read() {
    let bytes = pickle();
    let whole = loaded(read(&bytes, loader(&bytes)));
    let bounded = loaded(read(&bytes, loader(&bytes).within(1 << 30)));
    let peak = |loaded: &Loaded| loaded.parts[0].devices[0].peak_text.clone();
    assert_eq!(peak(&bounded), peak(&whole));
    assert_eq!(peak(&whole), "peak 1.00 GiB at #30,000");
    assert!(bounded.parts[0].warnings.is_empty(), "{:?}", bounded.parts[0].warnings);
}

#[test]
fn a_file_that_is_too_large_offers_a_part_around_its_top() {
    let bytes = pickle();
    let limit = 5 << 19;
    let TooLarge { failure, choice } = too_large(read(&bytes, loader(&bytes).within(limit)));
    assert!(failure.message.starts_with("This snapshot needs about "), "{}", failure.message);
    assert!(failure.message.contains("there are 2.50 MiB"), "{}", failure.message);
    assert!(failure.hint.is_some_and(|hint| hint.contains("vramscope summary rank0.pickle")));
    let choice = choice.expect("a part fits");
    assert_eq!((choice.events.value, choice.curve.text.as_str()), (40_000, "40,000 events"));
    assert_eq!((choice.edges[0], choice.edges.last()), (0, Some(&EVENTS)));
    assert!(choice.edges.is_sorted(), "columns follow each other");
    assert!(
        choice.first <= TOP && TOP <= choice.last && choice.last < EVENTS,
        "{} {}",
        choice.first,
        choice.last
    );
    assert!(choice.last - choice.first > 1000, "2.5 MiB hold more than that");
    assert!(
        choice.text.starts_with("About ")
            && choice.text.ends_with(" events can be opened at once.")
    );

    // What was offered can be opened within the same limit, and shows the top.
    let part = loader(&bytes).of_events(choice.first..choice.last + 1).within(limit);
    let part = loaded(read(&bytes, part)).parts.remove(0);
    assert_eq!(part.peak.map(|peak| peak.value), Some(size(TOP / 2).into()));
    assert_eq!(part.warnings[0].code, "part");
    assert!(part.warnings[0].message.contains("of 40,000"), "{}", part.warnings[0].message);
}

#[test]
fn the_curve_is_the_same_however_the_bytes_come() {
    let bytes = pickle();
    let curve = |chunk: usize| {
        let offered = too_large(read_in(&bytes, loader(&bytes).within(5 << 19), chunk))
            .choice
            .expect("a part fits");
        (offered.curve.text, offered.edges, offered.curve.path)
    };
    let (text, edges, path) = curve(100);
    assert_eq!((text.as_str(), edges.last()), ("40,000 events", Some(&EVENTS)));
    // The block at the top is in one column.
    assert_eq!(path.matches("V0").count(), 1);
    for chunk in (1_000..500_000).step_by(7_919) {
        assert!(
            curve(chunk) == (text.clone(), edges.clone(), path.clone()),
            "in chunks of {chunk} bytes"
        );
    }
}

#[test]
fn a_part_that_is_too_large_is_told_like_a_file() {
    let bytes = pickle();
    let all_but_one = loader(&bytes).of_events(1..EVENTS).within(5 << 19);
    let TooLarge { failure, choice } = too_large(read(&bytes, all_but_one));
    assert!(
        failure.message.starts_with("This part of the snapshot needs about "),
        "{}",
        failure.message
    );
    let choice = choice.expect("a smaller part fits");
    assert_eq!((choice.events.value, choice.curve.text.as_str()), (40_000, "40,000 events"));
    assert!(choice.first <= TOP && TOP <= choice.last);
}

#[test]
fn where_no_part_fits_none_is_offered() {
    let bytes = pickle();
    match read(&bytes, loader(&bytes).within(1 << 10)) {
        Response::Failed(failure) => {
            assert!(failure.hint.is_some_and(|hint| hint.starts_with("Use the program")));
        }
        other => panic!("{other:?}"),
    }
}
