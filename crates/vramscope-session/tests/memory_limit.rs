//! The memory limit of a load: the message, the curve of all events, and an event range that fits.

use vramscope_session::messages::{Loaded, Response, TooLarge};
use vramscope_session::{FileSession, Loader};

const EVENTS: u32 = 40_000;
/// The event of the highest peak.
const PEAK: u32 = 30_000;
/// A limit that the file exceeds, and half of its events do not.
const LIMIT: u64 = 5 << 19;

/// A string as a pickle has it.
fn text(value: &str) -> Vec<u8> {
    [&[0x8c, value.len() as u8], value.as_bytes()].concat()
}

/// An integer as a pickle has it.
fn int(value: u64) -> Vec<u8> {
    [&[0x8a, 8][..], &value.to_le_bytes()].concat()
}

/// The size of the block of a pair of events. Every block is freed right after its alloc. The block
/// at the peak is the largest.
fn size(pair: u32) -> u64 {
    512 * u64::from(1 + pair % 7) + if pair == PEAK / 2 { 1 << 30 } else { 0 }
}

/// A pickle of a segment and two traces. Lists have batches of 1,000 items, as CPython writes them.
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

/// A dict as a pickle has it.
fn dict(fields: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let fields = fields.iter().flat_map(|(key, value)| [text(key), value.clone()].concat());
    [b"}(".to_vec(), fields.collect(), b"u".to_vec()].concat()
}

/// Appends values to the list on the stack.
fn list(values: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
    [b"(".to_vec(), values.into_iter().flatten().collect(), b"e".to_vec()].concat()
}

/// Loads a file in chunks of 10,000 bytes.
fn read(bytes: &[u8], loader: Loader) -> Response {
    read_in(bytes, loader, 10_000)
}

fn read_in(bytes: &[u8], loader: Loader, chunk: usize) -> Response {
    let mut session = FileSession::with_loader(loader);
    let mut read = 0;
    for chunk in bytes.chunks(chunk) {
        read += chunk.len() as u64;
        if let Err(failure) = session.feed_unpacked(chunk, read) {
            return Response::Failed(failure);
        }
    }
    session.finish()
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
fn file_within_the_limit_loads_unchanged() {
    let bytes = pickle();
    let whole = loaded(read(&bytes, loader(&bytes)));
    let bounded = loaded(read(&bytes, loader(&bytes).within(1 << 30)));
    let peak = |loaded: &Loaded| loaded.parts[0].devices[0].peak_text.clone();
    assert_eq!(peak(&bounded), peak(&whole));
    assert_eq!(peak(&whole), "peak 1.00 GiB at #30,000");
    assert!(bounded.parts[0].warnings.is_empty(), "{:?}", bounded.parts[0].warnings);
}

#[test]
fn too_large_file_offers_a_range_around_the_peak() {
    let bytes = pickle();
    let TooLarge { failure, choice } = too_large(read(&bytes, loader(&bytes).within(LIMIT)));
    assert!(failure.message.starts_with("This snapshot needs about "), "{}", failure.message);
    assert!(
        failure.message.contains("at most 2.50 MiB are available in a browser tab"),
        "{}",
        failure.message
    );
    assert!(failure.hint.is_some_and(|hint| hint.contains("vramscope summary rank0.pickle")));
    let choice = choice.expect("an event range fits");
    assert_eq!((choice.events.value, choice.curve.text.as_str()), (40_000, "40,000 events"));
    assert_eq!((choice.edges[0], choice.edges.last()), (0, Some(&EVENTS)));
    assert!(choice.edges.is_sorted(), "columns are in order");
    assert!(
        choice.first <= PEAK && PEAK <= choice.last && choice.last < EVENTS,
        "{} {}",
        choice.first,
        choice.last
    );
    assert!(choice.last - choice.first > 1000, "2.5 MiB are enough for more than 1,000 events");
    assert!(
        choice.text.starts_with("About ")
            && choice.text.ends_with(" events can be opened at once.")
    );

    // The offered range loads within the limit, and contains the peak.
    let part = loader(&bytes).of_events(choice.first..choice.last + 1).within(LIMIT);
    let part = loaded(read(&bytes, part)).parts.remove(0);
    assert_eq!(part.peak.map(|peak| peak.value), Some(size(PEAK / 2).into()));
    assert_eq!(part.warnings[0].code, "part");
    assert!(part.warnings[0].message.contains("of 40,000"), "{}", part.warnings[0].message);
}

#[test]
fn curve_does_not_depend_on_the_chunk_size() {
    let bytes = pickle();
    let curve = |chunk: usize| {
        let choice = too_large(read_in(&bytes, loader(&bytes).within(LIMIT), chunk))
            .choice
            .expect("an event range fits");
        (choice.curve.text, choice.edges, choice.curve.path)
    };
    let (text, edges, path) = curve(100);
    assert_eq!((text.as_str(), edges.last()), ("40,000 events", Some(&EVENTS)));
    // The block at the peak is in one column.
    assert_eq!(path.matches("V0").count(), 1);
    for chunk in (1_000..500_000).step_by(7_919) {
        assert!(
            curve(chunk) == (text.clone(), edges.clone(), path.clone()),
            "in chunks of {chunk} bytes"
        );
    }
}

#[test]
fn too_large_range_offers_a_smaller_range() {
    let bytes = pickle();
    let all_but_one = loader(&bytes).of_events(1..EVENTS).within(LIMIT);
    let TooLarge { failure, choice } = too_large(read(&bytes, all_but_one));
    assert!(
        failure.message.starts_with("This part of the snapshot needs about "),
        "{}",
        failure.message
    );
    let choice = choice.expect("a smaller range fits");
    assert_eq!((choice.events.value, choice.curve.text.as_str()), (40_000, "40,000 events"));
    assert!(choice.first <= PEAK && PEAK <= choice.last);
}

#[test]
fn no_range_is_offered_when_none_fits() {
    let bytes = pickle();
    match read(&bytes, loader(&bytes).within(1 << 10)) {
        Response::Failed(failure) => {
            assert!(failure.hint.is_some_and(|hint| hint.starts_with("Use the command line")));
        }
        other => panic!("{other:?}"),
    }
}
