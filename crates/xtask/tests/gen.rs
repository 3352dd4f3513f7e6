//! What `cargo xtask gen` writes, held against CPython, against a recording of PyTorch's, and
//! against the numbers that `scripts/oracle.py` reads from it.

use allocation_counter::{AllocationInfo, measure};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use vramscope_analysis::Trace;
use vramscope_session::{Loader, report::summary::summarize};
use vramscope_snapshot::{Reader, Snapshot};

/// Runs the task; its files. Each test has a folder of its own.
fn generate(name: &str, options: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).expect("the last run's files can go");
    }
    let mut xtask = Command::new(env!("CARGO_BIN_EXE_xtask"));
    let status = xtask
        .arg("gen")
        .args(options.split(' '))
        .arg("--out")
        .arg(&folder)
        .stdout(Stdio::null())
        .status();
    assert!(status.expect("it starts").success(), "gen {options}");
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .expect("it was made")
        .map(|f| f.expect("a file").path())
        .collect();
    files.sort();
    files
}

/// What a Python program prints, as JSON.
fn python(arguments: &[&std::ffi::OsStr]) -> Value {
    let ran = Command::new("python3")
        .args(arguments)
        .output()
        .expect("python3 is on the PATH: CONTRIBUTING.md");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    serde_json::from_slice(&ran.stdout).expect("JSON")
}

fn repository(below: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(below)
}

fn summary(path: &Path) -> Value {
    let bytes = std::fs::read(path).expect("it was written");
    let mut loader = Loader::new("file", bytes.len() as u64);
    let result = bytes
        .chunks(1 << 20)
        .try_for_each(|c| loader.feed(c).map(drop))
        .and_then(|()| loader.finish());
    let mut rows = summarize("file", bytes.len() as u64, &result);
    assert_eq!(rows.len(), 1);
    serde_json::to_value(rows.remove(0)).expect("it serializes")
}

#[test]
fn is_exact_and_what_the_oracle_reads() {
    let files = generate("exact", "--events 20000 --ranks 2 --live 2000");
    assert_eq!(files.len(), 2);
    let found = summary(&files[0]);
    assert_eq!(found["warnings"], Value::Array(Vec::new()));
    let found = &found["devices"][0];
    for band in ["requested_bytes", "active_bytes", "allocated_bytes", "reserved_bytes"] {
        assert_eq!(found[band]["exactness"], "exact", "{band}");
    }
    let events = found["events"].as_u64().expect("a number");
    assert!((20_000..20_010).contains(&events), "{events} events");
    let live = found["end_live_blocks"].as_u64().expect("a number");
    assert!((1800..2400).contains(&live), "{live} live blocks");

    let read = python(&[repository("scripts/oracle.py").as_os_str(), files[0].as_os_str()]);
    let want = &read["devices"][0];
    for key in ["events", "actions", "segments", "allocations_in_window", "end_live_blocks"] {
        assert_eq!(found[key], want[key], "{key}");
    }
    assert_eq!((&want["preexisting_freed"], &want["preexisting_live"]), (&0.into(), &0.into()));
    for (ours, theirs) in [("requested_bytes", "active"), ("reserved_bytes", "reserved")] {
        for (a, b) in [
            ("start", "start_bytes"),
            ("peak", "peak_bytes"),
            ("peak_event", "peak_event"),
            ("end", "end_bytes"),
        ] {
            assert_eq!(found[ours][a], want[theirs][b], "{ours}.{a}");
        }
    }
    assert_eq!(
        want["active"]["end_bytes"], want["end_live_requested_bytes"],
        "the trace leads to the segments"
    );
    let used: Vec<&str> =
        want["actions"].as_object().expect("a table").keys().map(String::as_str).collect();
    assert_eq!(
        used,
        ["alloc", "free_completed", "free_requested", "segment_alloc", "segment_free"]
    );
}

/// For each file: whether CPython, having read it, pickles it into the same bytes; opcodes; events;
/// totals of the segments.
const READ: &str = r"
import collections, gzip, json, pickle, pickletools, sys
def read(path):
    raw = open(path, 'rb').read()
    raw = gzip.decompress(raw) if raw[:2] == b'\x1f\x8b' else raw
    d = pickle.loads(raw)
    events, = d['device_traces']
    allocs = {e['addr']: e['frames'] for e in events if e['action'] == 'alloc'}
    segments = d['segments']
    blocks = [b for s in segments for b in s['blocks']]
    keys = lambda of: sorted({' '.join(sorted(x)) for x in of})
    return {
        'same': pickle.dumps(d, 4) == raw,
        'opcodes': collections.Counter(op.name for op, _, _ in pickletools.genops(raw)),
        'events': len(events),
        'keys': [keys([d]), keys(segments), keys(blocks), keys(events), keys(d['external_annotations']), keys([d['allocator_settings']])],
        'shared': all(b['frames'] is allocs[b['address']] for b in blocks if b['state'] == 'active_allocated'),
        'frames': len({id(f) for e in events for f in e['frames']}),
        'filled': all(s['total_size'] == sum(b['size'] for b in s['blocks']) for s in segments),
    }
print(json.dumps([read(path) for path in sys.argv[1:]]))
";

#[test]
fn is_pickled_as_pytorch_does() {
    let files = generate("pickled", "--events 8000 --live 500");
    let real = repository("test_data/recorded/t29/gpt_small_all.pickle.gz");
    let read = python(&["-c".as_ref(), READ.as_ref(), files[0].as_os_str(), real.as_os_str()]);
    let (ours, real) = (&read[0], &read[1]);
    assert_eq!(
        (&real["same"], &real["shared"]),
        (&true.into(), &true.into()),
        "this holds for the real one"
    );
    assert_eq!(ours["same"], true, "CPython pickles it into other bytes");
    assert_eq!(ours["shared"], true, "a block and its alloc share a stack");
    assert_eq!(ours["filled"], true, "segments without gaps");
    assert_eq!(ours["keys"], real["keys"]);
    let opcodes = |of: &Value| {
        of["opcodes"].as_object().expect("a table").keys().cloned().collect::<Vec<_>>()
    };
    let (mut a, mut b) = (opcodes(ours), opcodes(real));
    a.sort();
    b.sort();
    assert_eq!(a, b);
    let per_event = |of: &Value, opcodes: &[&str]| {
        let count: f64 = opcodes.iter().filter_map(|opcode| of["opcodes"][opcode].as_f64()).sum();
        count / of["events"].as_f64().expect("a number")
    };
    for of in [&["BINGET", "LONG_BINGET"][..], &["MEMOIZE"], &["MARK"], &["LONG1"]] {
        let (ours, real) = (per_event(ours, of), per_event(real, of));
        assert!(
            (real / 2.0..real * 2.0).contains(&ours),
            "{of:?}: {ours:.2} an event, {real:.2} in the real one"
        );
    }
    let frames = ours["frames"].as_u64().expect("a number");
    assert!((200..5000).contains(&frames), "{frames} frames");
}

#[test]
fn a_seed_is_a_file() {
    let read = |name: &str, options: &str| -> Vec<Vec<u8>> {
        generate(name, options).iter().map(|f| std::fs::read(f).expect("it was written")).collect()
    };
    let first = read("seed_a", "--events 3000 --ranks 2 --live 300 --frames 6 --seed 5");
    assert_eq!(first, read("seed_b", "--events 3000 --ranks 2 --live 300 --frames 6 --seed 5"));
    assert_ne!(first[0], first[1], "ranks differ");
    assert_ne!(first, read("seed_c", "--events 3000 --ranks 2 --live 300 --frames 6 --seed 6"));
}

/// What reading took, and what is left of it.
struct Taken {
    snapshot: Snapshot,
    parsing: AllocationInfo,
    memo_entries: u64,
    finishing: AllocationInfo,
}

/// Reads a file of which `total` bytes are announced.
fn read_counted(mut reader: Reader, bytes: &[u8], total: usize) -> Taken {
    let parsing = measure(|| {
        let mut read = 0;
        for chunk in bytes.chunks(1 << 18) {
            reader.feed(chunk).expect("a pickle");
            read += chunk.len() as u64;
            reader.foresee(read, total as u64);
        }
    });
    let held = reader.held().expect("a pickle");
    // All are taken; only those on the edge of what is read at a time were objects before.
    assert!(held.objects < bytes.len() / 100, "{} bytes for objects", held.objects);
    let told = reader.memory() as i64;
    assert!(
        (told - parsing.bytes_current).abs() < parsing.bytes_current / 50,
        "{told} of {}",
        parsing.bytes_current
    );
    let mut named = None;
    let finishing = measure(|| named = Some(reader.finish().expect("a snapshot").remove(0)));
    let snapshot = named.expect("it was read").snapshot;
    Taken { snapshot, parsing, memo_entries: held.memo_entries as u64, finishing }
}

#[test]
fn reading_takes_little_memory() {
    let files = generate("memory", "--events 400000 --live 5000 --seed 3");
    let bytes = std::fs::read(&files[0]).expect("it was written");
    let Taken { snapshot, parsing, memo_entries, finishing } =
        read_counted(Reader::default(), &bytes, bytes.len());
    let events = snapshot.events.len() as u64;
    assert!(
        events >= 400_000 && memo_entries > 2 * events,
        "{events} events, {memo_entries} memo entries"
    );

    // 17 bytes an event in columns, 19 with streams, and what is read ahead. The copies of vectors
    // that grow are in it.
    let most = 25 * events + 9 * memo_entries / 2;
    assert!(
        parsing.bytes_max <= most,
        "{} bytes at once while {events} events are read",
        parsing.bytes_max
    );
    // The memo's pages are never copied.
    let pages = memo_entries / (1 << 14) + 1;
    assert!(parsing.count_total < events / 100 + pages, "{} allocations", parsing.count_total);
    let left = parsing.bytes_current + finishing.bytes_current;
    assert!(left <= 22 * events as i64, "{left} bytes are left of {events} events");
    assert!(left <= bytes.len() as i64 * 2 / 10, "{left} bytes are left of {}", bytes.len());
    // The memo is gone before anything else is made.
    assert!(
        finishing.bytes_max < 9 * events,
        "{} bytes to make a snapshot of tables",
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
    assert!(scratch < 2 * events as i64, "{scratch} bytes that are needed for pairing alone");
    assert!(pairing.count_total < 200, "{} allocations", pairing.count_total);
}

#[test]
fn a_part_takes_memory_for_what_stays() {
    let files = generate("part", "--events 600000 --live 5000 --seed 3");
    let bytes = std::fs::read(&files[0]).expect("it was written");
    // Just over a power of two, at which vectors double that do not know how much will come: from
    // the first event on, from the middle, where blocks that ended before it are gone, and to the
    // end.
    for range in [0..135_000, 300_000..435_000, 460_000..600_001] {
        let Taken { snapshot, parsing, memo_entries, .. } =
            read_counted(Reader::of_events(range.clone()), &bytes, bytes.len());
        let stay = snapshot.events.len() as u64;
        assert!((135_000..165_000).contains(&stay), "{range:?}: {stay} events stay");
        let most = 30 * stay + 9 * memo_entries / 2;
        assert!(
            parsing.bytes_max <= most,
            "{range:?}: {} bytes at once, not {most}, for {stay} events",
            parsing.bytes_max
        );
        // The columns have their room early, also for what stays of the events behind the part:
        // where memory never shrinks, copies stay.
        let total = 140 * stay + 9 * memo_entries / 2;
        let all = parsing.bytes_total;
        assert!(all <= total, "{range:?}: {all} bytes one after the other, not {total}");
    }
}

#[test]
fn a_large_chunk_lets_nothing_more_be_copied() {
    let files = generate("chunks", "--events 60000 --live 2000 --seed 4");
    let bytes = std::fs::read(&files[0]).expect("it was written");
    let copied = |chunk: usize| {
        let reading = measure(|| {
            let mut loader = Loader::new("file", bytes.len() as u64);
            bytes.chunks(chunk).try_for_each(|chunk| loader.feed(chunk)).expect("a pickle");
        });
        reading.bytes_total
    };
    // When it was looked once a chunk how many rows will come, columns doubled until there was a
    // second one.
    let (small, large) = (copied(1 << 16), copied(bytes.len()));
    assert!(
        large < small + small / 20,
        "{large} bytes, one after the other, in one chunk, {small} in many"
    );
}

#[test]
fn a_wrong_size_of_the_file_only_takes_memory() {
    let files = generate("foreseen", "--events 60000 --live 2000 --seed 4");
    let bytes = std::fs::read(&files[0]).expect("it was written");
    let right = read_counted(Reader::default(), &bytes, bytes.len());
    let dump = vramscope_snapshot::dump(&right.snapshot);
    // Unknown, much too small, too large, and absurd.
    for total in [0, bytes.len() / 3, 3 * bytes.len(), usize::MAX] {
        let read = read_counted(Reader::default(), &bytes, total);
        assert_eq!(vramscope_snapshot::dump(&read.snapshot), dump, "as if it had {total} bytes");
        assert!(
            read.parsing.bytes_max <= 200 * read.snapshot.events.len() as u64,
            "{total}: {:?}",
            read.parsing
        );
    }
}
