//! Memory and work are bounded by the file, for any file. Work is counted in allocations.

use allocation_counter::measure;
use base64::Engine as _;
use flate2::{Compression, write::GzEncoder};
use std::io::Write as _;
use vramscope_pickle::{FREE_MEMORY, MEMORY_PER_BYTE, PickleError};
use vramscope_snapshot::{LoadError, Reader};

/// What reading a file gave and took.
struct Outcome {
    /// The most bytes allocated at one time.
    memory: u64,
    /// Bytes of all allocations. Growing a vector allocates its bytes again.
    allocated: u64,
    /// The number of snapshots.
    result: Result<usize, LoadError>,
}

fn read(reader: Reader, bytes: &[u8]) -> Outcome {
    let mut result = Ok(0);
    let counted = measure(|| result = read_all(reader, bytes));
    Outcome { memory: counted.bytes_max, allocated: counted.bytes_total, result }
}

fn read_all(mut reader: Reader, bytes: &[u8]) -> Result<usize, LoadError> {
    let mut read = 0;
    for chunk in bytes.chunks(1 << 16) {
        reader.feed(chunk)?;
        read += chunk.len() as u64;
        reader.reserve_ahead(read, bytes.len() as u64);
    }
    Ok(reader.finish()?.len())
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("memory takes all bytes");
    encoder.finish().expect("memory takes all bytes")
}

fn text(text: &str) -> Vec<u8> {
    [&b"X"[..], &(text.len() as u32).to_le_bytes(), text.as_bytes()].concat()
}

fn many(count: u32, one: impl Fn(u32) -> Vec<u8>) -> Vec<u8> {
    (0..count).flat_map(one).collect()
}

/// A pickle with these traces. `before` runs first, and leaves nothing on the stack.
fn traces(before: &[u8], traces: &[u8]) -> Vec<u8> {
    [
        b"\x80\x04",
        before,
        b"}(",
        &text("segments"),
        b"]",
        &text("device_traces"),
        b"](",
        traces,
        b"eu.",
    ]
    .concat()
}

/// Puts values into the memo, from entry 0 on.
fn memo(values: &[Vec<u8>]) -> Vec<u8> {
    values.iter().flat_map(|value| [&value[..], b"\x940"].concat()).collect()
}

/// One trace of these events.
fn trace(before: &[u8], events: &[u8]) -> Vec<u8> {
    traces(before, &[b"](", events, b"e"].concat())
}

/// An event with the action, of memo entries 0 and 1, and one more key of entry 2.
fn event(value: &[u8]) -> Vec<u8> {
    [b"}(h\x00h\x01h\x02", value, b"u"].concat()
}

fn keys(third: &str) -> Vec<Vec<u8>> {
    vec![text("action"), text("alloc"), text(third)]
}

/// A pickle that takes much memory or time for its size.
fn pickles() -> Vec<(&'static str, Vec<u8>)> {
    let with = |third: &str, more: &[Vec<u8>]| memo(&[&keys(third), more].concat());
    let put = |step: u32| many(300_000, |i| [&b"r"[..], &(i * step).to_le_bytes()].concat());
    let long = text(&"x".repeat(1 << 20));
    let frame = [b"}(", &text("name")[..], &text("f"), &text("filename"), &text("m.py"), b"u"];
    let lines = |n: usize| [b"](", &b"h\x03".repeat(n)[..], b"e"].concat();
    let values = [b"](", &b"K\x01".repeat(5000)[..], b"e"].concat();
    vec![
        ("sparse memo numbers", [&b"\x80\x04N"[..], &put(4095), b"."].concat()),
        ("a stack of None", [&b"\x80\x04"[..], &vec![b'N'; 1 << 23], b"."].concat()),
        ("empty tuples", [&b"\x80\x04"[..], &vec![b')'; 1 << 22], b"."].concat()),
        ("nested tuples", [&b"\x80\x04N"[..], &vec![0x85; 1 << 22], b"."].concat()),
        (
            "a stack that grows between references",
            trace(
                &with("frames", &[frame.concat(), b"]".to_vec()]),
                &many(100_000, |_| [&b"h\x04(h\x03e0"[..], &event(b"h\x04")].concat()),
            ),
        ),
        (
            "a trace that grows between references",
            traces(&with("x", &[event(b"N"), b"](h\x03h\x03e".to_vec()]), &{
                let one = |_| b"h\x04(h\x03h\x03e".to_vec();
                many(100_000, one)
            }),
        ),
        (
            "metadata of one value",
            trace(
                &with("user_metadata", &[values]),
                &many(100_000, |i| {
                    let i = i.to_le_bytes();
                    event(&[&b"](J"[..], &i, b"h\x03e"].concat())
                }),
            ),
        ),
        (
            "tracebacks of one line",
            trace(
                &with("forward_frames", std::slice::from_ref(&long)),
                &many(20_000, |i| event(&lines(1 + i as usize % 900))),
            ),
        ),
        (
            "tracebacks of many batches",
            trace(
                &with("forward_frames", &[text("a line of text"), lines(5000)]),
                &many(200_000, |_| event(b"h\x04")),
            ),
        ),
        (
            "actions of long names",
            trace(
                &memo(&[text("action"), long.clone()]),
                &many(500_000, |_| b"}(h\x00h\x01u".to_vec()),
            ),
        ),
        (
            "many actions",
            trace(
                &memo(&[text("action")]),
                &many(500_000, |i| [b"}(h\x00", &text(&i.to_string())[..], b"u"].concat()),
            ),
        ),
        (
            "many streams",
            trace(
                &with("stream", &[]),
                &many(400_000, |i| event(&[&b"J"[..], &i.to_le_bytes()].concat())),
            ),
        ),
        (
            "many pools",
            [
                &b"\x80\x04("[..],
                &many(1_000_000, |i| [&b"M"[..], &(i as u16).to_le_bytes(), b"K\x00\x86"].concat()),
                b"1N.",
            ]
            .concat(),
        ),
        (
            "frames with notes",
            [
                &b"\x80\x04"[..],
                &memo(&[text("name"), text("filename"), text("fx_node_op")]),
                b"(",
                &many(200_000, |i| {
                    let name = text(&i.to_string());
                    [b"}(h\x00", &name[..], b"h\x01h\x00h\x02", &name, b"u"].concat()
                }),
                b"1N.",
            ]
            .concat(),
        ),
        (
            "states that are long lists",
            [
                &b"\x80\x04"[..],
                &memo(&[
                    text("state"),
                    text("size"),
                    [b"](", &b"N".repeat(5000)[..], b"e"].concat(),
                ]),
                b"(",
                &many(300_000, |_| b"}(h\x00h\x02h\x01Nu".to_vec()),
                b"1N.",
            ]
            .concat(),
        ),
        (
            "segments without keys",
            [
                &b"\x80\x04"[..],
                &memo(&[text("total_size")]),
                b"](",
                &b"}(h\x00Nu".repeat(600_000)[..],
                b"e.",
            ]
            .concat(),
        ),
        (
            "segments of one list",
            [
                &b"\x80\x04"[..],
                &memo(&[text("blocks"), text("size"), text("state")]),
                &memo(&[[b"](", &b"}(h\x01Nh\x02Nu".repeat(100_000)[..], b"e"].concat()]),
                b"](",
                &b"}(h\x00h\x03u".repeat(100_000)[..],
                b"e.",
            ]
            .concat(),
        ),
        (
            "devices of one mixed list",
            traces(
                &with("x", &[[b"](N", &event(b"N").repeat(50_000)[..], b"e"].concat()]),
                &b"h\x03".repeat(100_000),
            ),
        ),
        (
            "a million devices",
            traces(
                &memo(&keys("x")),
                &many(1_000_000, |_| [b"](", &event(b"N")[..], b"e"].concat()),
            ),
        ),
        (
            "settings of long keys",
            [
                &b"\x80\x04"[..],
                &memo(&[long]),
                b"}(",
                &text("segments"),
                b"]",
                &text("allocator_settings"),
                b"}(",
                &b"h\x00}(h\x00}(h\x00}(h\x00Nuuu".repeat(100_000),
                b"uu.",
            ]
            .concat(),
        ),
    ]
}

/// A file of another form.
fn containers() -> Vec<(&'static str, Vec<u8>)> {
    let json = |inner: &str| format!(r#"{{"segments": [], "device_traces": [[{inner}]]}}"#);
    let small = base64::engine::general_purpose::STANDARD.encode(traces(b"", b""));
    let one = format!("{{\"name\": \"x\", \"base64\": \"{small}\"}},\n");
    vec![
        ("JSON of empty lists", json(&vec!["[]"; 1 << 20].join(",")).into_bytes()),
        ("JSON of numbers", json(&vec!["0.5"; 1 << 20].join(",")).into_bytes()),
        ("a page of 100,000 snapshots", ["<html>", &one.repeat(100_000)].concat().into_bytes()),
        ("a page of names", ["<html>", &"\"name\":".repeat(1 << 20)].concat().into_bytes()),
        ("a page of spaces", ["<html>\"name\":", &" ".repeat(8 << 20)].concat().into_bytes()),
        ("white space", vec![b' '; 8 << 20]),
    ]
}

#[test]
fn memory_and_work_are_bounded_by_the_file() {
    for (what, bytes) in pickles().into_iter().chain(containers()) {
        let mut files = vec![("", bytes.clone())];
        // Packing takes longer than reading.
        if bytes.len() < 1 << 21 {
            files.push((" in gzip", gzip(&bytes)));
        }
        for (packed, file) in files {
            let Outcome { memory, allocated, result } = read(Reader::default(), &file);
            let limit = MEMORY_PER_BYTE * bytes.len() as u64 + FREE_MEMORY;
            assert!(
                memory <= limit,
                "{what}{packed}: {memory} bytes for {}, {result:?}",
                bytes.len()
            );
            assert!(
                allocated <= 2 * limit,
                "{what}{packed}: allocated {allocated} bytes for {}, {result:?}",
                bytes.len()
            );
        }
    }
}

#[test]
fn maximum_memory_ends_packed_files() {
    const MAX: u64 = 8 << 20;
    let string = [&b"\x80\x04X"[..], &(1u32 << 30).to_le_bytes()].concat();
    let bombs = [
        (b"\x80\x04".to_vec(), b'N'),
        (string, b'x'),
        (b"\x80\x04I".to_vec(), b'1'),
        (b"[\"segments".to_vec(), b' '),
    ];
    for (start, filler) in bombs {
        let file = gzip(&[&start[..], &vec![filler; 16 << 20]].concat());
        let Outcome { memory, result, .. } = read(Reader::default().with_max_memory(MAX), &file);
        assert!(memory < 3 * MAX + (4 << 20), "{}: {memory} bytes", start.escape_ascii());
        let found = result.expect_err("too much memory");
        assert!(
            matches!(found, LoadError::Pickle(PickleError::MaxMemory { max: MAX, .. })),
            "{}: {found}",
            start.escape_ascii()
        );
    }
}

#[test]
fn files_inside_themselves_are_an_error() {
    let packed = |times: u32| (0..times).fold(traces(b"", b""), |file, _| gzip(&file));
    assert_eq!(read(Reader::default(), &packed(4)).result, Ok(1));
    assert_eq!(read(Reader::default(), &packed(5)).result, Err(LoadError::Nested { limit: 4 }));
}

#[test]
fn a_segment_of_no_device_is_a_warning() {
    let path =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../test_data/hostile/negative_device.pickle");
    let bytes = std::fs::read(path).expect("a file");
    let mut reader = Reader::default();
    reader.feed(&bytes).expect("a pickle");
    let [named] = &reader.finish().expect("a snapshot")[..] else { panic!("one snapshot") };
    let warnings: Vec<&str> =
        named.snapshot.report.warnings().iter().map(|warning| warning.kind.name()).collect();
    assert_eq!(warnings, ["not_a_number"]);
    assert!(named.snapshot.report.changes_values(), "its numbers are estimates");
}
