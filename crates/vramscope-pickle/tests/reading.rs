//! Whole pickles written by CPython (`scripts/gen_pickles.py`), read in chunks of many sizes.

use proptest::prelude::*;
use std::fmt::Write as _;
use vramscope_pickle::{ByteOffset, Heap, Kind, Parser, PickleError, Sink, Value};

/// Takes nothing, so that all values stay in the heap.
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

/// The value as Python-like text.
fn show(heap: &Heap, value: Value, out: &mut String) {
    let value = heap.resolve(value);
    let list = |open: &str, close: &str, out: &mut String| {
        out.push_str(open);
        for &item in heap.items(value) {
            show(heap, item, out);
            out.push(' ');
        }
        out.push_str(close);
    };
    match value.kind() {
        Kind::None => out.push_str("None"),
        Kind::Bool(b) => write!(out, "{b}").expect("a string"),
        Kind::Int(_) | Kind::Long(_) => {
            write!(out, "{}", heap.int(value).expect("an integer")).expect("a string");
        }
        Kind::Float(_) => {
            write!(out, "{:?}", heap.float(value).expect("a float")).expect("a string");
        }
        Kind::Str(id) => {
            write!(out, "'{}'", heap.strings.bytes(id).escape_ascii()).expect("a string");
        }
        Kind::Bytes => out.push_str("bytes"),
        Kind::List(_) => list("[", "]", out),
        Kind::Dict(_) => list("{", "}", out),
        Kind::Tuple(_) => list("(", ")", out),
        Kind::Ext(kind, index) => write!(out, "ext {kind} {index}").expect("a string"),
        Kind::Class(id) => write!(out, "class {}", heap.strings.text(id)).expect("a string"),
        Kind::Opaque(id) => write!(out, "<{}>", heap.strings.text(id)).expect("a string"),
    }
}

fn read(bytes: &[u8], chunk: usize) -> Result<String, PickleError> {
    let mut parser = Parser::new(Keep, &[]);
    for piece in bytes.chunks(chunk) {
        parser.feed(piece)?;
    }
    let parsed = parser.finish()?;
    let mut out = String::new();
    show(&parsed.heap, parsed.root, &mut out);
    if parsed.trailing > 0 {
        write!(out, " trailing {}", parsed.trailing).expect("a string");
    }
    Ok(out)
}

macro_rules! data {
    ($name:literal) => {
        include_bytes!(concat!("data/", $name, ".pickle")).as_slice()
    };
}

const VALUES: [&[u8]; 7] = [
    data!("values_p0"),
    data!("values_p1"),
    data!("values_p2"),
    data!("values_p3"),
    data!("values_p4"),
    data!("values_p5"),
    data!("values_pure4"),
];

const OBJECTS: [&[u8]; 5] = [
    data!("objects_p0"),
    data!("objects_p1"),
    data!("objects_p2"),
    data!("objects_p4"),
    data!("objects_p5"),
];

#[test]
fn all_protocols_give_equal_values() {
    let expected = read(VALUES[4], usize::MAX).expect("a pickle");
    let head = "{'none' None 't' true 'f' false 'ints' [0 1 -1 255 256 65535 65536 2147483647 \
        -2147483648 2147483648 140737488355328 576460752303423488 9223372036854775807 \
        9223372036854775808 18446744073709551615 -9223372036854775808 \
        -170141183460469231731687303715884105728 170141183460469231731687303715884105727 ] \
        'floats' [0.5 -1e300 ] 's' 'plain' 'u' '\\xc3\\xa9\\xf0\\x9f\\x98\\x80' 'sur' \
        'a\\xed\\xb2\\x80b' 'nul' 'a\\x00b\\nc\\\\' ";
    assert_eq!(&expected[..head.len()], head);
    let containers = " 'tuple' (1 (2 3 ) () (4 5 6 7 ) ) 'one' [1 ] 'onekey' {'k' 'v' } 'a' [1 2 \
        ] 'b' [1 \
        2 ] 'empty' [[] {} () ] ";
    assert!(expected.contains(containers));
    assert!(expected.ends_with("2498 2499 ] 'nest' [[[['deep' ] ] ] ] }"));
    for bytes in VALUES {
        assert_eq!(read(bytes, usize::MAX).as_ref(), Ok(&expected));
    }
}

#[test]
fn text_floats_are_parsed() {
    let read = |digits: &str| {
        let mut parser = Parser::new(Keep, &[]);
        parser.feed(format!("F{digits}\n.").as_bytes())?;
        let parsed = parser.finish()?;
        Ok::<_, PickleError>((parsed.heap.float(parsed.root), parsed.heap.int(parsed.root)))
    };
    assert_eq!(read("-2.5"), Ok((Some(-2.5), None)));
    assert_eq!(read("12.0"), Ok((Some(12.0), Some(12))));
    assert_eq!(read("+7"), Ok((Some(7.0), Some(7))));
    assert_eq!(read("1e+16"), Ok((Some(1e16), Some(10_000_000_000_000_000))));
    assert_eq!(read("inf"), Ok((Some(f64::INFINITY), None)));
    for wrong in ["", "-", ".", "abc", "1,5", "1.2.3", "0x10", "infinite", "infinity"] {
        assert!(
            matches!(read(wrong), Err(PickleError::Text { expected: "a number", at: 0 })),
            "{wrong:?}: {:?}",
            read(wrong)
        );
    }
}

#[test]
fn objects_of_classes_stay_closed() {
    for bytes in OBJECTS {
        let text = read(bytes, usize::MAX).expect("a pickle");
        assert!(
            text.starts_with("{'before' 1 'od' {'a' 1 'b' 2 } 'dd' {'x' [1 ] } 'dq' [1 2 ] "),
            "{text}"
        );
        assert!(text.contains("<datetime.date>"), "{text}");
        assert!(text.contains("ValueError>"), "{text}");
        assert!(text.ends_with("'cls' class fractions.Fraction 'after' 2 }"), "{text}");
    }
}

#[test]
fn chunk_size_changes_no_value() {
    for bytes in VALUES.into_iter().chain(OBJECTS) {
        let whole = read(bytes, usize::MAX);
        for chunk in [1, 2, 7, 4096] {
            assert_eq!(read(bytes, chunk), whole, "chunks of {chunk}");
        }
    }
}

#[test]
fn truncation_at_every_byte_is_an_error_with_its_offset() {
    for bytes in VALUES.into_iter().chain(OBJECTS) {
        // The bytes after the first kilobyte repeat the same kinds of values.
        for end in (1..bytes.len().min(1200)).chain((1200..bytes.len()).step_by(7)) {
            match read(&bytes[..end], usize::MAX) {
                Err(PickleError::UnexpectedEnd { at, .. }) => assert_eq!(at, end as u64),
                other => panic!("cut at {end}: {other:?}"),
            }
        }
    }
    assert_eq!(read(b"", 1), Err(PickleError::Empty));
}

#[test]
fn bytes_after_stop_are_counted_and_ignored() {
    let mut bytes = data!("values_p4").to_vec();
    bytes.extend_from_slice(b"\0\0\xff(((");
    for chunk in [1, 3, usize::MAX] {
        assert!(read(&bytes, chunk).expect("a pickle").ends_with(" trailing 6"));
    }
}

#[test]
fn declared_sizes_allocate_nothing() {
    let check = |bytes: &[u8], expected: &str| {
        let error = read(bytes, usize::MAX).expect_err("damage").to_string();
        assert!(error.contains(expected), "{error}");
    };
    check(b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7f", "a string at offset 2 declares");
    check(b"\x80\x04\x8b\xff\xff\xff\x7f", "an integer at offset 2 declares 2147483647");
    check(b"\x80\x04j\xff\xff\xff\xff", "memo entry 4294967295");
    check(b"\x80\x04K\x01r\xff\xff\xff\xffh\x07.", "memo entry 7");
    check(b"\x80\x04u.", "SETITEMS");
    check(b"\x80\x04}(K\x01u.", "a value for every key");
    check(b"\x80\x06.", "protocol 6");
    check(b"\x80\x04\xff", "0xff at offset 2");
    check(b"\x80\x04(.", "STOP");
    check(b"hello", "memo entry 101");
}

#[test]
fn self_referential_containers_are_read() {
    // l = []; l.append(l)
    assert_eq!(read_depth(b"\x80\x04]\x94h\0a."), 1);
    // d = {}; d[1] = d; d[2] = d
    assert_eq!(read_depth(b"\x80\x04}\x94(K\x01h\0K\x02h\0u."), 4);
}

/// The number of items of the root. The items are not followed.
fn read_depth(bytes: &[u8]) -> usize {
    let mut parser = Parser::new(Keep, &[]);
    parser.feed(bytes).expect("a pickle");
    let parsed = parser.finish().expect("a pickle");
    parsed.heap.items(parsed.root).len()
}

proptest! {
    #[test]
    fn random_bytes_never_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..400),
        chunk in 1usize..50,
    ) {
        let whole = outcome(&bytes, usize::MAX);
        prop_assert_eq!(outcome(&bytes, chunk), whole);
    }

    #[test]
    fn damage_never_panics(at in 0usize..2000, byte in any::<u8>(), which in 0usize..12) {
        let file = VALUES.into_iter().chain(OBJECTS).nth(which).expect("one of twelve");
        let mut bytes = file.to_vec();
        let at = at % bytes.len();
        bytes[at] = byte;
        let whole = outcome(&bytes, usize::MAX);
        prop_assert_eq!(outcome(&bytes, 7), whole);
    }
}

/// The outcome of reading. The values are not printed, because damage may make them hold
/// themselves.
fn outcome(bytes: &[u8], chunk: usize) -> Result<(usize, u64), PickleError> {
    let mut parser = Parser::new(Keep, &[]);
    for piece in bytes.chunks(chunk) {
        parser.feed(piece)?;
    }
    let parsed = parser.finish()?;
    Ok((parsed.heap.items(parsed.root).len(), parsed.trailing))
}
