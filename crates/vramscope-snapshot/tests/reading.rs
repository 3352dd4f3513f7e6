//! Reading files in chunks, cut off, damaged, and in other protocols and containers.

use std::path::{Path, PathBuf};
use vramscope_snapshot::{LoadError, Reader, Snapshot, WarningKind, dump};

fn test_data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test_data")
}

fn read(bytes: &[u8], chunk: usize) -> Result<Vec<String>, LoadError> {
    let mut reader = Reader::default();
    for piece in bytes.chunks(chunk.min(bytes.len().max(1))) {
        reader.feed(piece)?;
    }
    Ok(reader.finish()?.iter().map(|n| format!("{}\n{}", n.name, dump(&n.snapshot))).collect())
}

/// The files of a folder of `test_data`, sorted, without the expected numbers.
fn files(folder: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(test_data().join(folder))
        .expect("the folder is there")
        .map(|entry| entry.expect("it can be listed").path())
        .filter(|path| path.is_file() && !path.ends_with("expected.json"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{folder} holds no files");
    files
}

fn bytes_of(path: &Path) -> Vec<u8> {
    std::fs::read(path).expect("a file of test_data")
}

#[test]
fn chunk_size_changes_no_table() {
    for folder in ["scenarios", "edge", "containers", "damaged"] {
        for path in files(folder) {
            let bytes = bytes_of(&path);
            let whole = read(&bytes, usize::MAX);
            for chunk in [1, 7, 4096] {
                assert_eq!(read(&bytes, chunk), whole, "{} in chunks of {chunk}", path.display());
            }
        }
    }
}

/// A snapshot with nested values in its settings and in the metadata of an event. Each value holds
/// the one below it ten times.
fn exponential_snapshot(level: impl Fn(u8) -> Vec<u8>) -> Vec<u8> {
    let mut pickle = b"\x80\x04K\x01\x940".to_vec();
    for below in 0..16 {
        // MEMOIZE, then POP.
        pickle.extend([level(below), b"\x940".to_vec()].concat());
    }
    pickle.extend_from_slice(
        b"}(\x8c\x08segments]\x8c\x0ddevice_traces]](}(\x8c\x06actionX\x05\0\0\0alloc\
        \x8c\x04addrM\0\x02\x8c\x04sizeM\0\x02\
        \x8c\x0duser_metadatah\x10uea\x8c\x12allocator_settings}\x8c\x01xh\x10su.",
    );
    pickle
}

#[test]
fn exponentially_nested_values_are_truncated() {
    let many = |one: &dyn Fn(u8) -> Vec<u8>| (0..10).flat_map(one).collect::<Vec<u8>>();
    let list = |below: u8| [b"](", &*many(&|_| vec![b'h', below]), b"e"].concat();
    let dict = |below: u8| [b"}(", &*many(&|i| vec![b'K', i, b'h', below]), b"u"].concat();
    let keys =
        |below: u8| [b"}(", &*many(&|i| vec![b'K', i, b'h', below, b'\x86', b'N']), b"u"].concat();
    for pickle in
        [exponential_snapshot(list), exponential_snapshot(dict), exponential_snapshot(keys)]
    {
        let mut reader = Reader::default();
        reader.feed(&pickle).expect("a pickle");
        let snapshot = reader.finish().expect("a snapshot").remove(0).snapshot;
        assert_eq!(snapshot.events.len(), 1);
        let words: usize =
            snapshot.settings.iter().map(|(key, value)| key.len() + value.len()).sum();
        let metadata =
            snapshot.events.user_metadata.iter().map(|(_, id)| snapshot.text(*id).len()).max();
        assert!(words > 0 && words < 100 << 20, "{words} bytes of settings");
        assert!(
            (1..64 << 10).contains(&metadata.expect("there is some")),
            "{metadata:?} bytes of metadata"
        );
    }
}

#[test]
fn truncation_at_every_byte_is_an_error_or_a_warning() {
    for name in [
        "scenarios/f13.pickle",
        "edge/metadata.pickle",
        "containers/snapshot.json",
        "containers/snapshot.pickle.gz",
    ] {
        let bytes = bytes_of(&test_data().join(name));
        for end in 0..bytes.len() {
            if let Ok(snapshots) = read(&bytes[..end], usize::MAX) {
                // The last bytes of text formats may be white space.
                let rest = &bytes[end..];
                let all_warn = snapshots.iter().all(|s| s.contains("\nwarning "));
                assert!(
                    rest.iter().all(u8::is_ascii_whitespace) || all_warn,
                    "{name} cut at {end}"
                );
            }
        }
    }
}

#[test]
fn flipped_bits_never_panic() {
    for name in ["scenarios/f13.pickle", "edge/cpp_style.pickle", "edge/protocol0.pickle"] {
        let bytes = bytes_of(&test_data().join(name));
        for at in 0..bytes.len() {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1 << (at % 8);
            // The outcome must not depend on chunking.
            let whole = read(&bytes, usize::MAX);
            assert_eq!(read(&bytes, 61), whole, "{name} with byte {at} changed");
        }
    }
}

#[test]
fn all_protocols_give_equal_snapshots() {
    let expected = read(&bytes_of(&test_data().join("recorded/misc/unicode.pickle")), usize::MAX)
        .expect("a snapshot");
    for protocol in ["p0", "p1", "p2", "p3", "p5", "purepython_p4"] {
        let path = test_data().join(format!("protocols/unicode_{protocol}.pickle"));
        assert_eq!(read(&bytes_of(&path), usize::MAX).as_ref(), Ok(&expected), "{protocol}");
    }
    let expected = read(&bytes_of(&test_data().join("recorded/t26/gpt_small.pickle.gz")), 4096)
        .expect("a snapshot");
    for protocol in ["p0", "p2", "p5"] {
        let path = test_data().join(format!("protocols/gpt_small_{protocol}.pickle.gz"));
        assert!(read(&bytes_of(&path), 4096).as_ref() == Ok(&expected), "{protocol}");
    }
}

#[test]
fn files_without_a_snapshot_are_rejected() {
    let check = |name: &str, words: &str| {
        let error =
            read(&bytes_of(&test_data().join(name)), usize::MAX).expect_err(name).to_string();
        assert!(error.contains(words), "{name}: {error}");
    };
    check("containers/archive.zip", "zip archive");
    check("containers/checkpoint.pt", "torch.save checkpoint");
    check("containers/checkpoint_legacy.pt", "torch.save");
    check("containers/page.html", "holds no snapshot");
    check("damaged/empty.pickle", "the file is empty");
    check("damaged/truncated.pickle", "it was cut off");
    check("damaged/calls.pickle", "an object that os.system would build");
    check("damaged/text.pickle", "this is not a snapshot: it starts with");
    check("damaged/other.pickle", "not a memory snapshot: its root is");
    let picture = read(b"\x89PNG\r\n\x1a\n\0\0", usize::MAX).expect_err("no snapshot").to_string();
    assert!(picture.contains("starts with the bytes 89 50 4e 47 0d 0a 1a 0a"), "{picture}");
}

#[test]
fn tables_match_committed_dumps() {
    let bytes = bytes_of(&test_data().join("recorded/t26/linear_seed_python.pickle"));
    let text = read(&bytes, usize::MAX).expect("a snapshot").remove(0);
    insta::assert_snapshot!("linear_seed_python", text);
    let odd = bytes_of(&test_data().join("edge/metadata.pickle"));
    insta::assert_snapshot!("metadata", read(&odd, usize::MAX).expect("a snapshot").remove(0));
}

#[test]
fn every_odd_stack_is_counted() {
    // Some events have the same list of references to a frame and to a string. The others have only
    // frames.
    let event =
        |frames: &[u8]| [b"}(\x8c\x06action\x8c\x05alloc\x8c\x06frames](", frames, b"eu"].concat();
    let (odd, plain) = (event(b"h\x00h\x01h\x00"), event(b"h\x00h\x00"));
    let frame =
        b"}\x94(\x8c\x04name\x8c\x01f\x8c\x08filename\x8c\x04m.py\x8c\x04lineK\x07u0\x8c\x01x\x940";
    let pickle = [
        &b"\x80\x04"[..],
        frame,
        b"}(\x8c\x08segments]\x8c\x0ddevice_traces](](",
        &odd,
        &plain,
        &odd,
        &plain,
        &plain,
        b"eeu.",
    ]
    .concat();
    for chunk in [1, 7, usize::MAX] {
        let mut reader = Reader::default();
        for piece in pickle.chunks(chunk) {
            reader.feed(piece).expect("a pickle");
        }
        let snapshot = reader.finish().expect("a snapshot").remove(0).snapshot;
        let warning = &snapshot.report.warnings()[0];
        assert_eq!((warning.kind, warning.count), (WarningKind::NotAFrame, 2));
        let stacks = snapshot.devices[0]
            .events
            .clone()
            .map(|row| snapshot.stack(snapshot.events.stack(row)).count());
        assert_eq!(stacks.collect::<Vec<_>>(), [2; 5]);
    }
}

/// References must be right however far back they lead: the parser forgets no memo entry.
#[test]
fn references_far_back_are_resolved() {
    const EVENTS: u32 = 30_000;
    let text = |text: &str| [&[0x8c, text.len() as u8], text.as_bytes()].concat();
    let mut pickle = [
        &b"\x80\x04}\x94("[..],
        &text("segments"),
        b"]\x94",
        &text("device_traces"),
        b"]\x94(]\x94(",
    ]
    .concat();
    // The root and three lists are memo entries 0 to 3. Then each event takes two: itself and its
    // frames.
    for event in 0..EVENTS {
        let addr = (4096 * (event + 1)).to_le_bytes();
        let fields =
            [&text("addr"), &b"J"[..], &addr, &text("frames"), b"]\x94", &text("size"), b"K\x07u"]
                .concat();
        pickle.extend([&b"}\x94("[..], &text("action"), &text("alloc"), &fields].concat());
    }
    pickle.extend(b"e]\x94(");
    let again = [0, 1, 14_999, EVENTS - 1];
    for event in again {
        pickle.extend([&b"j"[..], &(4 + 2 * event).to_le_bytes()].concat());
    }
    pickle.extend(b"eeu.");
    for chunk in [1000, pickle.len()] {
        let mut reader = Reader::default();
        for (i, piece) in (1..).zip(pickle.chunks(chunk)) {
            reader.feed(piece).expect("a pickle");
            reader.reserve_ahead((i * chunk) as u64, pickle.len() as u64);
        }
        let snapshot = reader.finish().expect("a snapshot").remove(0).snapshot;
        let addresses = |device: usize| -> Vec<u64> {
            snapshot.devices[device]
                .events
                .clone()
                .map(|row| snapshot.events.addr(row).0 / 4096 - 1)
                .collect()
        };
        assert_eq!(addresses(0), (0..u64::from(EVENTS)).collect::<Vec<_>>());
        assert_eq!(addresses(1), again.map(u64::from));
        assert!(snapshot.report.warnings().is_empty(), "{:?}", snapshot.report.warnings());
    }
}

#[test]
fn event_range_cannot_resolve_events_shared_by_two_lists() {
    let event = b"}\x94(\x8c\x06action\x8c\x05alloc\x8c\x04addrK\x40\x8c\x04sizeK\x08u";
    let head = b"\x80\x04}(\x8c\x08segments]\x8c\x0ddevice_traces](";
    let pickle = [&head[..], b"](", event, b"h\x00e](h\x00h\x00eeu."].concat();
    let read = |mut reader: Reader| {
        reader.feed(&pickle).expect("a pickle");
        reader.finish().expect("a snapshot").remove(0).snapshot
    };
    let sizes = |snapshot: &Snapshot| -> Vec<u64> {
        let rows = snapshot.devices.iter().flat_map(|device| device.events.clone());
        rows.map(|row| snapshot.events.size(row).0).collect()
    };
    let (whole, part) = (read(Reader::default()), read(Reader::for_event_range(0..2)));
    assert_eq!(sizes(&whole), [8; 4]);
    assert!(whole.report.warnings().is_empty());
    // The events' rows stay, without data, and a warning counts them.
    assert_eq!(sizes(&part), [8, 8, 0, 0]);
    let warning = &part.report.warnings()[0];
    assert_eq!((warning.kind, warning.count), (WarningKind::StrayItem, 2));
}
