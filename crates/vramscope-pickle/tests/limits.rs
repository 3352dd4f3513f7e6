//! Work and memory in proportion to the stream, for any stream. Work is counted: the bytes that the
//! parser searches, and the bytes that it allocates.

use allocation_counter::measure;
use vramscope_pickle::{ByteOffset, Heap, Parser, PickleError, Sink, Value};

/// Takes nothing.
struct Keep;

impl Sink for Keep {
    fn dict(
        &mut self,
        _: &mut Heap,
        _: Option<Value>,
        _: &[Value],
        _: ByteOffset,
    ) -> Option<Value> {
        None
    }
    fn list(
        &mut self,
        _: &mut Heap,
        _: Option<Value>,
        _: &[Value],
        _: ByteOffset,
    ) -> Option<Value> {
        None
    }
    fn tuple(&mut self, _: &mut Heap, _: &[Value], _: ByteOffset) -> Option<Value> {
        None
    }
}

/// How a stream was read.
struct Outcome {
    /// The most bytes that the parser held after a chunk.
    most: usize,
    /// Bytes of all allocations. Growing a vector allocates its bytes again.
    allocated: u64,
    /// Bytes in which the parser searched operations.
    scanned: u64,
    error: Option<PickleError>,
}

fn read(stream: &[u8], chunk: usize) -> Outcome {
    let mut outcome = Outcome { most: 0, allocated: 0, scanned: 0, error: None };
    let counted = measure(|| {
        let mut parser = Parser::new(Keep, &[]);
        for piece in stream.chunks(chunk) {
            let fed = parser.feed(piece);
            outcome.most = outcome.most.max(parser.memory());
            outcome.scanned = parser.scanned();
            if let Err(error) = fed {
                outcome.error = Some(error);
                return;
            }
        }
        outcome.error = parser.finish().err();
    });
    outcome.allocated = counted.bytes_total;
    outcome
}

/// How often the bytes of a stream may be searched. A cut operation of two lines is searched when
/// it begins, after its first line and after its second.
const MAX_SEARCHES: u64 = 4;
const OPERAND_BYTES: usize = 1 << 20;

#[test]
fn long_operands_take_linear_work() {
    let digits = vec![b'1'; OPERAND_BYTES];
    let lengths = |code: u8, size: usize| {
        let n = (OPERAND_BYTES as u64).to_le_bytes();
        [&[code][..], &n[..size], &digits, b"."].concat()
    };
    let line = |start: &[u8], end: &[u8]| [start, &digits, end].concat();
    let streams = [
        line(b"I", b"\n."),
        line(b"L", b"L\n."),
        line(b"F", b"\n."),
        line(b"S'", b"'\n."),
        line(b"V", b"\n."),
        line(b"P", b"\n."),
        line(b"c", b"\nname\n."),
        line(b"cmodule\n", b"\n."),
        line(b"(i", b"\nname\n."),
        line(b"Ng", b"\n."),
        line(b"Np", b"\n."),
        lengths(b'X', 4),
        lengths(b'T', 4),
        lengths(b'B', 4),
        lengths(0x8b, 4),
        lengths(0x8d, 8),
        lengths(0x8e, 8),
        lengths(0x96, 8),
    ];
    for stream in streams {
        for chunk in [11, 1 << 16, usize::MAX] {
            let Outcome { most, allocated, scanned, .. } = read(&stream, chunk);
            let what = format!("{} in chunks of {chunk}", stream[..12].escape_ascii());
            assert!(scanned <= MAX_SEARCHES * stream.len() as u64, "{what}: searched {scanned}");
            assert!(allocated < 16 * OPERAND_BYTES as u64, "{what}: allocated {allocated} bytes");
            assert!(most < 16 * OPERAND_BYTES, "{what}: {most} bytes");
        }
    }
}

/// Streams whose operations take much memory or work each.
fn hostile() -> Vec<(&'static str, Vec<u8>)> {
    const COUNT: u32 = 400_000;
    let each = |what: &dyn Fn(u32) -> Vec<u8>| (0..COUNT).flat_map(what).collect::<Vec<u8>>();
    let put = |step: u32| each(&|i| [&b"r"[..], &(i * step).to_le_bytes()].concat());
    let strings = |n: u32| {
        let text = vec![b'x'; 1 << 16];
        let one = |i: u32| {
            let head = [&b"X"[..], &(1u32 << 16).to_le_bytes(), &i.to_le_bytes()].concat();
            [&head[..], &text[4..], b"\x940"].concat()
        };
        (0..n).flat_map(one).collect::<Vec<u8>>()
    };
    let classes =
        (0..COUNT).flat_map(|i| [b"h", &[i as u8][..], b"h", &[(i >> 8) as u8], b"\x930"].concat());
    vec![
        ("memo entries, 4095 apart", [b"N", &put(4095)[..]].concat()),
        ("memo entries, 7 apart", [b"N", &put(7)[..]].concat()),
        ("None", vec![b'N'; 1 << 23]),
        ("empty tuples", vec![b')'; 1 << 22]),
        ("nested tuples", [&b"N"[..], &vec![0x85; 1 << 22]].concat()),
        ("lists of one item", b"]Na".repeat(1 << 20)),
        ("dicts of one item", b"}NNs".repeat(1 << 20)),
        ("marks", vec![b'('; 1 << 22]),
        ("objects of many classes", each(&|i| format!("cm\n{i}\n)R0").into_bytes())),
        ("classes of long names", strings(256).into_iter().chain(classes).collect()),
        (
            "a list that grows and is held",
            [&b"]\x94"[..], &b"Nah\x00\x85h\x00".repeat(COUNT as usize)].concat(),
        ),
    ]
}

#[test]
fn hostile_streams_take_bounded_memory_and_work() {
    for (what, stream) in hostile() {
        let stream = [&stream[..], b"."].concat();
        let Outcome { most, allocated, scanned, error } = read(&stream, 1 << 16);
        let limit = 64 * stream.len() + (64 << 20);
        assert!(most <= limit, "{what}: {most} bytes for {}", stream.len());
        assert!(scanned <= MAX_SEARCHES * stream.len() as u64, "{what}: searched {scanned}");
        assert!(allocated <= 2 * limit as u64, "{what}: allocated {allocated} bytes");
        let is_refused = matches!(
            error,
            Some(
                PickleError::Memory { .. }
                    | PickleError::LateItems { .. }
                    | PickleError::Limit { .. }
            )
        );
        let is_small = most <= 22 * stream.len() + (22 << 20);
        assert!(is_refused || is_small, "{what}: {most} bytes, {error:?}");
    }
}

#[test]
fn maximum_memory_is_an_error() {
    let mut parser = Parser::new(Keep, &[]);
    parser.set_max_memory(1 << 20);
    let error =
        std::iter::repeat_with(|| parser.feed(&[b'N'; 4096])).take(100).find_map(Result::err);
    assert!(matches!(error, Some(PickleError::MaxMemory { max: 0x10_0000, .. })), "{error:?}");
    // A string that never ends.
    let mut parser = Parser::new(Keep, &[]);
    parser.set_max_memory(1 << 20);
    parser.feed(b"X\xff\xff\xff\x3f").expect("a length");
    let error =
        std::iter::repeat_with(|| parser.feed(&[b'N'; 4096])).take(1000).find_map(Result::err);
    assert!(matches!(error, Some(PickleError::MaxMemory { .. })), "{error:?}");
}
