//! Limits of the memory that reading takes, on generated recordings.

mod support;

use allocation_counter::{AllocationInfo, measure};
use support::generate;
use vramscope_session::Loader;
use vramscope_snapshot::{Reader, Snapshot};
use vramscope_testgen::Options;
use vramscope_trace::Trace;

/// One rank's file.
fn file(events: u64, live: u64, seed: u64) -> Vec<u8> {
    generate(1, &Options { events, live, seed, ..Options::default() }).remove(0)
}

/// Memory that reading took, and its result.
struct Usage {
    snapshot: Snapshot,
    parsing: AllocationInfo,
    memo_entries: u64,
    finishing: AllocationInfo,
}

/// Reads a file whose size is announced as `total` bytes.
fn read_counted(mut reader: Reader, bytes: &[u8], total: usize) -> Usage {
    let parsing = measure(|| {
        let mut read = 0;
        for chunk in bytes.chunks(1 << 18) {
            reader.feed(chunk).expect("a pickle");
            read += chunk.len() as u64;
            reader.reserve_ahead(read, total as u64);
        }
    });
    let held = reader.memory_use().expect("a pickle");
    // The sink takes all objects. Only those at the border of two chunks live for a while.
    assert!(held.objects < bytes.len() / 100, "{} bytes for objects", held.objects);
    let reported = reader.memory() as i64;
    assert!(
        (reported - parsing.bytes_current).abs() < parsing.bytes_current / 50,
        "reported {reported} of {}",
        parsing.bytes_current
    );
    let mut named = None;
    let finishing = measure(|| named = Some(reader.finish().expect("a snapshot").remove(0)));
    let snapshot = named.expect("finish was measured").snapshot;
    Usage { snapshot, parsing, memo_entries: held.memo_entries as u64, finishing }
}

#[test]
fn reading_stays_within_memory_budget() {
    let bytes = file(400_000, 5000, 3);
    let Usage { snapshot, parsing, memo_entries, finishing } =
        read_counted(Reader::default(), &bytes, bytes.len());
    let events = snapshot.events.len() as u64;
    assert!(
        events >= 400_000 && memo_entries > 2 * events,
        "{events} events, {memo_entries} memo entries"
    );

    // Columns take 17 bytes per event, 19 with streams. The rest is reserved capacity and copies of
    // growing vectors.
    let most = 25 * events + 9 * memo_entries / 2;
    assert!(parsing.bytes_max <= most, "peak of {} bytes for {events} events", parsing.bytes_max);
    // Pages of the memo are never copied.
    let pages = memo_entries / (1 << 14) + 1;
    assert!(parsing.count_total < events / 100 + pages, "{} allocations", parsing.count_total);
    let left = parsing.bytes_current + finishing.bytes_current;
    assert!(left <= 22 * events as i64, "{left} bytes stay for {events} events");
    assert!(left <= bytes.len() as i64 * 2 / 10, "{left} bytes stay of {}", bytes.len());
    // The memo is dropped before anything else is allocated.
    assert!(
        finishing.bytes_max < 9 * events,
        "{} bytes to build a snapshot from tables",
        finishing.bytes_max
    );
    assert!(
        finishing.bytes_current < -4 * memo_entries as i64,
        "{} bytes",
        finishing.bytes_current
    );

    let mut traces = Vec::new();
    let pairing = measure(|| traces = Trace::all(&snapshot));
    let blocks = traces[0].blocks.len() as u64;
    assert!(
        pairing.bytes_current as u64 <= 6 * events + 49 * blocks,
        "{} bytes",
        pairing.bytes_current
    );
    let scratch = pairing.bytes_max as i64 - pairing.bytes_current;
    assert!(scratch < 2 * events as i64, "{scratch} temporary bytes for pairing");
    assert!(pairing.count_total < 200, "{} allocations", pairing.count_total);
}

#[test]
fn event_range_takes_memory_for_its_events_only() {
    let bytes = file(600_000, 5000, 3);
    // Slightly more events than a power of two, at which a vector without reserved capacity
    // doubles: at the start, in the middle, where blocks that ended earlier are dropped, and at the
    // end.
    for range in [0..135_000, 300_000..435_000, 460_000..600_001] {
        let Usage { snapshot, parsing, memo_entries, .. } =
            read_counted(Reader::for_event_range(range.clone()), &bytes, bytes.len());
        let stay = snapshot.events.len() as u64;
        assert!((135_000..165_000).contains(&stay), "{range:?}: {stay} events stay");
        let most = 30 * stay + 9 * memo_entries / 2;
        assert!(
            parsing.bytes_max <= most,
            "{range:?}: peak of {} bytes, limit {most}, for {stay} events",
            parsing.bytes_max
        );
        // Columns reserve their capacity early, also for events after the range that stay. Memory
        // of wasm never shrinks, so copies would stay.
        let total = 140 * stay + 9 * memo_entries / 2;
        let all = parsing.bytes_total;
        assert!(all <= total, "{range:?}: {all} bytes allocated in total, limit {total}");
    }
}

#[test]
fn large_chunks_cause_no_more_copies() {
    let bytes = file(60_000, 2000, 4);
    let allocated = |chunk: usize| {
        let reading = measure(|| {
            let mut loader = Loader::new("file", bytes.len() as u64);
            bytes.chunks(chunk).try_for_each(|chunk| loader.feed(chunk)).expect("a pickle");
        });
        reading.bytes_total
    };
    // When rows were projected once per chunk, columns doubled until the second chunk.
    let (small, large) = (allocated(1 << 16), allocated(bytes.len()));
    assert!(
        large < small + small / 20,
        "{large} bytes allocated with one chunk, {small} with many"
    );
}

#[test]
fn wrong_announced_size_changes_memory_only() {
    let bytes = file(60_000, 2000, 4);
    let right = read_counted(Reader::default(), &bytes, bytes.len());
    let dump = vramscope_snapshot::dump(&right.snapshot);
    // Unknown, too small, too large, and absurd.
    for total in [0, bytes.len() / 3, 3 * bytes.len(), usize::MAX] {
        let read = read_counted(Reader::default(), &bytes, total);
        assert_eq!(vramscope_snapshot::dump(&read.snapshot), dump, "announced as {total} bytes");
        assert!(
            read.parsing.bytes_max <= 200 * read.snapshot.events.len() as u64,
            "{total}: {:?}",
            read.parsing
        );
    }
}
