//! Time and memory in proportion to the stream, for any stream.

use std::time::{Duration, Instant};
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

/// The largest memory while a stream is read, and its error if any.
fn read(stream: &[u8], chunk: usize) -> (usize, Option<PickleError>) {
    let mut parser = Parser::new(Keep, &[]);
    let mut most = 0;
    for piece in stream.chunks(chunk) {
        let fed = parser.feed(piece);
        most = most.max(parser.memory());
        if let Err(error) = fed {
            return (most, Some(error));
        }
    }
    (most, parser.finish().err())
}

/// A tenth of the length that an optimized build has to read in two seconds.
const OPERAND_BYTES: usize = 1 << 20;

#[test]
fn long_operands_take_linear_time() {
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
            let begin = Instant::now();
            let (most, _) = read(&stream, chunk);
            let took = begin.elapsed();
            let start = stream[..12].escape_ascii();
            assert!(took < Duration::from_secs(2), "{start} in chunks of {chunk}: {took:?}");
            assert!(most < 16 * OPERAND_BYTES, "{start}: {most} bytes");
        }
    }
}

/// Streams whose operations take much memory or time each.
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
fn hostile_streams_take_bounded_memory_and_time() {
    for (what, stream) in hostile() {
        let begin = Instant::now();
        let (most, error) = read(&[&stream[..], b"."].concat(), 1 << 16);
        let (took, limit) = (begin.elapsed(), 64 * stream.len() + (64 << 20));
        assert!(most <= limit, "{what}: {most} bytes for {}", stream.len());
        assert!(took < Duration::from_secs(10), "{what}: {took:?}");
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
