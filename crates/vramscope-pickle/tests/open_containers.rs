//! Containers that are begun, memoized and filled by one batch, as CPython writes them, get no
//! object of their own. The result must equal that of the general path, which chunks of one byte
//! force.

use proptest::prelude::*;
use vramscope_pickle::{ByteOffset, Heap, Kind, Parser, PickleError, Sink, Value};

/// Takes containers that start with an integer. The value is the index of the content as text.
#[derive(Default)]
struct Numbers(Vec<String>);

impl Numbers {
    fn take(&mut self, heap: &Heap, so_far: Option<Value>, items: &[Value]) -> Option<Value> {
        if so_far.is_none() && !matches!(items.first()?.kind(), Kind::Int(_)) {
            return None;
        }
        let before =
            so_far.and_then(|value| value.as_ext(0)).map_or("", |row| &self.0[row as usize]);
        let text = items
            .iter()
            .fold(before.to_owned(), |text, &item| text + " " + &show(heap, &self.0, item, 3));
        self.0.push(text);
        Some(Value::ext(0, self.0.len() as u32 - 1))
    }
}

impl Sink for Numbers {
    fn dict(
        &mut self,
        heap: &mut Heap,
        so_far: Option<Value>,
        pairs: &[Value],
        _: ByteOffset,
    ) -> Option<Value> {
        self.take(heap, so_far, pairs)
    }

    fn list(
        &mut self,
        heap: &mut Heap,
        so_far: Option<Value>,
        items: &[Value],
        _: ByteOffset,
    ) -> Option<Value> {
        self.take(heap, so_far, items)
    }

    fn tuple(&mut self, _: &mut Heap, _: &[Value], _: ByteOffset) -> Option<Value> {
        None
    }
}

/// A value with its content as text. Containers may hold themselves.
fn show(heap: &Heap, taken: &[String], value: Value, depth: usize) -> String {
    let value = heap.resolve(value);
    let (open, close) = match value.kind() {
        Kind::Ext(0, row) => return format!("<{}>", taken[row as usize]),
        Kind::List(_) => ('[', ']'),
        Kind::Dict(_) => ('{', '}'),
        Kind::Tuple(_) => ('(', ')'),
        other => return format!("{other:?}"),
    };
    if depth == 0 {
        return "...".to_owned();
    }
    let items: Vec<String> =
        heap.items(value).iter().map(|&item| show(heap, taken, item, depth - 1)).collect();
    format!("{open}{}{close}", items.join(" "))
}

/// The root and the notes as text, and the bytes held for objects.
fn read(pickle: &[u8], chunk: usize) -> Result<(String, usize), PickleError> {
    let mut parser = Parser::new(Numbers::default(), &[]);
    for chunk in pickle.chunks(chunk) {
        parser.feed(chunk)?;
    }
    let objects = parser.memory_use().objects;
    let parsed = parser.finish()?;
    let root = show(&parsed.heap, &parsed.sink.0, parsed.root, 6);
    Ok((format!("{root} {:?}", parsed.heap.notes()), objects))
}

/// Padding, because the last bytes of a pickle bypass the fast path.
const END: &[u8] = b"N0N0N0N0N0.";

/// The results of a program in one chunk and in chunks of one byte.
fn read_both_ways(program: &[u8]) -> [Result<String, PickleError>; 2] {
    let pickle = [program, END].concat();
    [usize::MAX, 1].map(|chunk| read(&pickle, chunk).map(|read| read.0))
}

fn both(program: &[u8]) -> Result<String, PickleError> {
    let [whole, chunks] = read_both_ways(program);
    assert_eq!(whole, chunks, "{}", program.escape_ascii());
    whole
}

#[test]
fn references_to_open_containers_are_redirected() {
    // A list that holds itself, not taken and taken.
    assert_eq!(
        both(b"]\x94(Nh\x00e").expect("a list"),
        "[None [None [None [None [None [None ...]]]]]] []"
    );
    assert_eq!(
        both(b"(]\x94(K\x07h\x00eh\x00t").expect("a tuple"),
        "(< Int(7) []> < Int(7) []>) []"
    );
    // The memo entry is overwritten before the container closes.
    assert_eq!(both(b"(]\x94(K\x05q\x00eh\x00t").expect("a tuple"), "(< Int(5)> Int(5)) []");
    // POP_MARK leaves the container empty. It is filled later.
    assert_eq!(both(b"]\x94(NN1h\x00(K\x02e0h\x00").expect("a list"), "< Int(2)> []");
    assert_eq!(both(b"]\x94(0(Ne").expect("a list"), "[None] []");
}

#[test]
fn container_changes_only_until_another_one_holds_it() {
    let late = |program: &[u8]| match both(program) {
        Err(PickleError::LateItems { op, .. }) => op,
        other => panic!("{}: {other:?}", program.escape_ascii()),
    };
    // An open dict inside a list inside itself.
    assert_eq!(late(b"}\x94(N]\x94(h\x00eh\x01Nu"), "SETITEMS");
    // In a list, a dict, a tuple; whether it was empty, stored or pending.
    assert_eq!(late(b"]\x94]\x94h\x00a0h\x00(NNe"), "APPENDS");
    assert_eq!(late(b"]\x94(Ne}\x94(Nh\x00u0h\x00Na"), "APPEND");
    assert_eq!(late(b"}\x94NNsh\x00\x850h\x00NNs"), "SETITEM");
    // On the stack alone it may.
    assert_eq!(both(b"]\x94(NNe(NNeh\x00Na").expect("a list"), "[None None None None None] []");
    // Once it has left the stack, nothing tells whether another container holds it.
    assert_eq!(late(b"]\x94(NNe0h\x00Na"), "APPEND");
    assert_eq!(both(b"]\x94(e(NeNa").expect("a list"), "[None None] []");
}

#[test]
fn container_of_several_batches_is_offered_whole_if_not_taken_at_first() {
    /// The numbers of items that were offered. Takes nothing.
    #[derive(Default)]
    struct Offers(Vec<usize>);

    impl Sink for Offers {
        fn dict(
            &mut self,
            _: &mut Heap,
            _: Option<Value>,
            pairs: &[Value],
            _: ByteOffset,
        ) -> Option<Value> {
            self.0.push(pairs.len());
            None
        }
        fn list(
            &mut self,
            _: &mut Heap,
            _: Option<Value>,
            items: &[Value],
            _: ByteOffset,
        ) -> Option<Value> {
            self.0.push(items.len());
            None
        }
        fn tuple(&mut self, _: &mut Heap, _: &[Value], _: ByteOffset) -> Option<Value> {
            None
        }
    }

    for (program, offers) in [
        (&b"(](Ne(K\x01K\x02et"[..], vec![1, 3]),
        (b"(}(NNu(K\x01Nut", vec![2, 4]),
        (b"(}NNs(K\x01NuNNst", vec![6]),
        (b"(](Net", vec![1]),
    ] {
        for chunk in [1, usize::MAX] {
            let mut parser = Parser::new(Offers::default(), &[]);
            for piece in [program, END].concat().chunks(chunk) {
                parser.feed(piece).expect("a pickle");
            }
            assert_eq!(parser.finish().expect("a pickle").sink.0, offers);
        }
    }
}

#[test]
fn containers_taken_at_close_use_no_memory() {
    // A taken list of 10,000 taken dicts, each with a taken list.
    let mut program = b"]\x94(K\x00".to_vec();
    for _ in 0..10_000 {
        program.extend_from_slice(b"}\x94(K\x01]\x94(K\x02Neu");
    }
    program.push(b'e');
    let pickle = [&program[..], END].concat();
    let (root, objects) = read(&pickle, usize::MAX).expect("a list");
    assert_eq!(root.matches("Int(2)").count(), 10_000);
    assert!(objects < 1000, "{objects} bytes");
}

/// Operations and short sequences of them.
const OPERATIONS: &[&[u8]] = &[
    b"]\x94(",
    b"}\x94(",
    b"]\x94(",
    b"}\x94(",
    b"]\x94",
    b"]",
    b"(",
    b"e",
    b"e",
    b"u",
    b"u",
    b"0",
    b"1",
    b"2",
    b"t",
    b"d",
    b"l",
    b"a",
    b"s",
    b"\x8c\x01a",
    b"h\x00",
    b"h\x01",
    b"h\x02",
    b"q\x00",
    b"q\x01",
    b"K\x01",
    b"K\x02",
    b"N",
    b"\x94",
    b"\x85",
    b"\x86",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn chunk_size_changes_no_result_of_random_programs(
        operations in prop::collection::vec(prop::sample::select(OPERATIONS), 0..40),
    ) {
        // Most random programs fail early. Values below the program let it run longer.
        let program = [&b"]\x94(NN"[..], &operations.concat()].concat();
        let [whole, chunks] = read_both_ways(&program);
        prop_assert_eq!(whole, chunks, "{}", program.escape_ascii());
    }
}
