//! Compares generated recordings with CPython's pickler, with a recording of PyTorch, and with the
//! numbers that `scripts/oracle.py` reads from them.

mod support;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::generate;
use vramscope_report::summary::{ErrorKind, ErrorSummary, summarize};
use vramscope_session::Loader;
use vramscope_testgen::{Options, warm_up};

/// Writes the files of some ranks into a folder of their own.
fn files(name: &str, ranks: u64, options: &Options) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).expect("the target folder is writable");
    let write = |(rank, bytes): (u64, Vec<u8>)| {
        let path = folder.join(format!("rank{rank}.pickle"));
        std::fs::write(&path, bytes).expect("the target folder is writable");
        path
    };
    (0..).zip(generate(ranks, options)).map(write).collect()
}

/// Runs a Python program, and parses its output as JSON.
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
    let bytes = std::fs::read(path).expect("the file was written");
    let mut loader = Loader::new("file", bytes.len() as u64);
    let result = bytes
        .chunks(1 << 20)
        .try_for_each(|c| loader.feed(c).map(drop))
        .and_then(|()| loader.finish())
        .map_err(|error| ErrorSummary {
            message: error.message,
            hint: error.hint,
            kind: error.file.unwrap_or(ErrorKind::Unreadable),
            byte_offset: None,
        });
    let mut rows = summarize("file", bytes.len() as u64, &result);
    assert_eq!(rows.len(), 1);
    serde_json::to_value(rows.remove(0)).expect("a summary serializes")
}

#[test]
fn summary_is_exact_and_equals_the_oracle() {
    let files = files("exact", 1, &Options { events: 20_000, live: 2000, ..Options::default() });
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
        "the trace ends in the segments"
    );
    let used: Vec<&str> =
        want["actions"].as_object().expect("a table").keys().map(String::as_str).collect();
    assert_eq!(
        used,
        ["alloc", "free_completed", "free_requested", "segment_alloc", "segment_free"]
    );
}

/// Prints facts of each file, among them whether CPython pickles it into the same bytes again.
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
        'keys': [
            keys([d]), keys(segments), keys(blocks), keys(events),
            keys(d['external_annotations']), keys([d['allocator_settings']]),
        ],
        'shared': all(
            b['frames'] is allocs[b['address']] for b in blocks if b['state'] == 'active_allocated'
        ),
        'frames': len({id(f) for e in events for f in e['frames']}),
        'filled': all(s['total_size'] == sum(b['size'] for b in s['blocks']) for s in segments),
    }
print(json.dumps([read(path) for path in sys.argv[1:]]))
";

#[test]
fn file_is_pickled_as_pytorch_does() {
    let files = files("pickled", 1, &Options { events: 8000, live: 500, ..Options::default() });
    let real = repository("test_data/recorded/t29/gpt_small_all.pickle.gz");
    let read = python(&["-c".as_ref(), READ.as_ref(), files[0].as_os_str(), real.as_os_str()]);
    let (ours, real) = (&read[0], &read[1]);
    assert_eq!(
        (&real["same"], &real["shared"]),
        (&true.into(), &true.into()),
        "the recording of PyTorch has both properties"
    );
    assert_eq!(ours["same"], true, "CPython pickles the file into other bytes");
    assert_eq!(ours["shared"], true, "a block and its event share a stack");
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
            "{of:?}: {ours:.2} per event, {real:.2} in the recording of PyTorch"
        );
    }
    let frames = ours["frames"].as_u64().expect("a number");
    assert!((200..5000).contains(&frames), "{frames} frames");
}

#[test]
fn warm_up_is_pickled_as_cpython_does() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("warm_up.pickle");
    std::fs::write(&path, warm_up(200)).expect("the target folder is writable");
    let script = "import json, pickle, sys; raw = open(sys.argv[1], 'rb').read(); \
                  print(json.dumps(pickle.dumps(pickle.loads(raw), 4) == raw))";
    assert_eq!(python(&["-c".as_ref(), script.as_ref(), path.as_os_str()]), Value::Bool(true));
}

#[test]
fn warm_up_has_no_warning() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("warm_up_summary.pickle");
    std::fs::write(&path, warm_up(200)).expect("the target folder is writable");
    let found = summary(&path);
    assert_eq!(found["warnings"], Value::Array(Vec::new()));
    let found = &found["devices"][0];
    assert_eq!((&found["events"], &found["end_live_blocks"]), (&520.into(), &40.into()));
}

#[test]
fn committed_warm_up_is_current() {
    // The packed bytes depend on the version of the packer.
    let is_current = vramscope_session::warm_up::snapshot() == warm_up(200);
    assert!(is_current, "`cargo xtask warm-up` writes the committed file again");
}

#[test]
fn equal_seeds_give_equal_files() {
    let of = |seed| generate(2, &Options { events: 3000, live: 300, frames: 6, seed });
    let first = of(5);
    assert_eq!(first, of(5));
    assert_ne!(first[0], first[1], "ranks differ");
    assert_ne!(first, of(6));
}
