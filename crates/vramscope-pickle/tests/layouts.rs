//! Dicts that are written as others before them are read by comparing bytes. Nobody may see the
//! difference: read byte by byte, which is too little for that, every program comes to the same.

use proptest::prelude::*;
use vramscope_pickle::{ByteOffset, Heap, Keys, Kind, Parser, PickleError, Sink, Value};

const DICT: u8 = 0;
const PAIR: u8 = 1;
const LIST: u8 = 2;

/// Takes all dicts, and pairs and lists of texts and numbers, as the places of their contents in
/// lists of texts.
#[derive(Default)]
struct Rows {
    dicts: Vec<String>,
    plain: Vec<String>,
    repeats: bool,
    asked: usize,
    /// Keys by what the parser called them, and how often it did.
    named: Vec<(Keys, Vec<String>)>,
    as_before: usize,
}

impl Rows {
    fn plain(
        &mut self,
        heap: &Heap,
        kind: u8,
        so_far: Option<Value>,
        items: &[Value],
    ) -> Option<Value> {
        if !items.iter().all(|item| matches!(item.kind(), Kind::Str(_) | Kind::Int(_))) {
            return None;
        }
        let content: Vec<String> = items.iter().map(|&item| show(heap, item)).collect();
        let content = format!("{so_far:?} {}", content.join(" "));
        let known =
            self.plain.iter().position(|plain| *plain == content).unwrap_or(self.plain.len());
        if known == self.plain.len() {
            self.plain.push(content);
        }
        Some(Value::ext(kind, known as u32))
    }
}

impl Sink for Rows {
    fn dict(
        &mut self,
        heap: &mut Heap,
        so_far: Option<Value>,
        pairs: &[Value],
        at: ByteOffset,
    ) -> Option<Value> {
        let items: Vec<String> = pairs.iter().map(|&item| show(heap, item)).collect();
        self.dicts.push(format!("{so_far:?} {} to {at}", items.join(" ")));
        Some(Value::ext(DICT, self.dicts.len() as u32 - 1))
    }

    fn dict_as_before(
        &mut self,
        heap: &mut Heap,
        pairs: &[Value],
        keys: Keys,
        at: ByteOffset,
    ) -> Option<Value> {
        let texts: Vec<String> = pairs.iter().step_by(2).map(|&key| show(heap, key)).collect();
        match self.named.iter().find(|named| named.0 == keys) {
            Some((_, known)) => assert_eq!(*known, texts, "{keys:?}"),
            None => self.named.push((keys, texts)),
        }
        self.as_before += 1;
        self.dict(heap, None, pairs, at)
    }

    fn list(
        &mut self,
        heap: &mut Heap,
        so_far: Option<Value>,
        items: &[Value],
        _: ByteOffset,
    ) -> Option<Value> {
        self.plain(heap, LIST, so_far, items)
    }

    fn tuple(&mut self, heap: &mut Heap, items: &[Value], _: ByteOffset) -> Option<Value> {
        self.asked += 1;
        self.plain(heap, PAIR, None, items)
    }

    fn repeats(&self, value: Value) -> bool {
        value.as_ext(LIST).is_some() || self.repeats && value.as_ext(PAIR).is_some()
    }
}

fn show(heap: &Heap, value: Value) -> String {
    let value = heap.resolve(value);
    match value.kind() {
        Kind::Str(text) => heap.strings.text(text).into_owned(),
        // Which object it is depends on how it was read.
        Kind::List(_) | Kind::Tuple(_) => {
            let items: Vec<String> =
                heap.items(value).iter().map(|&item| show(heap, item)).collect();
            format!("({})", items.join(" "))
        }
        Kind::Dict(_) => "{}".to_owned(),
        Kind::Long(_) => format!("{:?}", heap.int(value)),
        other => format!("{other:?}"),
    }
}

/// What the dicts held and the root is, and how often the sink was asked for a tuple.
type Read = (Vec<String>, String, usize);

fn read(pickle: &[u8], piece: usize, repeats: bool) -> Result<Read, PickleError> {
    let (sink, root) = parse(pickle, piece, repeats)?;
    Ok((sink.dicts, root, sink.asked))
}

fn parse(pickle: &[u8], piece: usize, repeats: bool) -> Result<(Rows, String), PickleError> {
    let mut parser = Parser::new(Rows { repeats, ..Rows::default() }, &[]);
    for piece in pickle.chunks(piece) {
        parser.feed(piece)?;
    }
    let parsed = parser.finish()?;
    let root: Vec<String> =
        parsed.heap.items(parsed.root).iter().map(|&item| show(&parsed.heap, item)).collect();
    Ok((parsed.sink, root.join(" ")))
}

/// A value of a dict, by how it is written.
#[derive(Clone, Copy, Debug)]
enum Written {
    /// An integer of so many bytes, in the operations that CPython has for those.
    Integer(u8),
    /// A reference to a text.
    Reference,
    /// One to anything in the memo, in four bytes.
    Far,
    /// A text, memoized or not.
    Text(bool),
    /// A pair of integers, memoized or not.
    Pair(bool),
    /// A pair of an integer and a text that is memoized.
    OddPair,
    /// A pair of a text and a list.
    PairOfList,
    /// A list of references.
    List,
    /// An empty list.
    EmptyList,
    /// Nothing.
    None,
}

/// Texts that are memoized at first, to be keys and values.
const TEXTS: u8 = 8;
/// Behind all, so that what stands before it is not too near to the end for the fast way.
const END: &[u8] = b"N0N0N0N0N0N0N0N0N0N0N0N0N0N0N0N0N0N0e.";

struct Writer {
    program: Vec<u8>,
    memo: u32,
}

impl Writer {
    /// A list of which the items follow, and texts in the memo.
    fn new() -> Self {
        let mut writer = Self { program: b"\x80\x04](".to_vec(), memo: 0 };
        for text in 0..TEXTS {
            writer.text(b'a' + text, true);
            writer.program.push(b'0');
        }
        writer
    }

    fn put(&mut self, bytes: &[u8]) {
        self.program.extend_from_slice(bytes);
    }

    fn memoize(&mut self) {
        self.program.push(0x94);
        self.memo += 1;
    }

    fn text(&mut self, letter: u8, memoized: bool) {
        self.put(&[0x8c, 1, letter]);
        if memoized {
            self.memoize();
        }
    }

    fn value(&mut self, written: Written, number: u64) {
        let bytes = number.to_le_bytes();
        match written {
            Written::Integer(1) => self.put(&[b'K', bytes[0]]),
            Written::Integer(2) => self.put(&[b'M', bytes[0], bytes[1]]),
            Written::Integer(4) => self.put(&[&b"J"[..], &bytes[..4]].concat()),
            Written::Integer(n) => self.put(&[&[0x8a, n], &bytes[..usize::from(n)]].concat()),
            Written::Reference => self.put(&[b'h', bytes[0] % TEXTS]),
            Written::Far => {
                let index = number as u32 % self.memo;
                self.put(&[&b"j"[..], &index.to_le_bytes()].concat());
            }
            Written::Text(memoized) => self.text(b'p' + bytes[0] % 2, memoized),
            Written::Pair(memoized) => {
                self.put(&[b'K', bytes[0] % 2, b'K', 7, 0x86]);
                if memoized {
                    self.memoize();
                }
            }
            Written::OddPair => {
                self.put(&[b'K', 7]);
                self.text(b'p', true);
                self.put(&[0x86]);
            }
            Written::PairOfList => {
                self.text(b'p', false);
                self.value(Written::List, number);
                self.put(&[0x86]);
            }
            Written::List => {
                self.put(b"]");
                self.memoize();
                self.put(&[b'(', b'h', bytes[0] % TEXTS, b'h', 1, b'e']);
            }
            Written::EmptyList => {
                self.put(b"]");
                self.memoize();
            }
            Written::None => self.put(b"N"),
        }
    }

    /// A dict whose values are written so, with numbers that follow from one.
    fn dict(&mut self, values: &[Written], long_keys: bool, mut number: u64) {
        self.put(b"}");
        self.memoize();
        self.put(b"(");
        for (key, &value) in (0..TEXTS).zip(values) {
            self.put(&if long_keys { vec![b'j', key, 0, 0, 0] } else { vec![b'h', key] });
            number = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
            self.value(value, number);
        }
        self.put(b"u");
    }
}

/// What a program comes to at once and byte by byte; how often the sink was asked apart.
fn read_both_ways(
    program: &[u8],
    repeats: bool,
) -> [Result<(Vec<String>, String), PickleError>; 2] {
    let pickle = [program, END].concat();
    [usize::MAX, 1].map(|piece| read(&pickle, piece, repeats).map(|(rows, root, _)| (rows, root)))
}

/// As PyTorch writes an event: action, address, size, stream, time, compile context, pool and
/// frames.
const EVENT: [Written; 8] = {
    use Written::{Integer, List, Pair, Reference, Text};
    [Reference, Integer(6), Integer(4), Integer(1), Integer(7), Text(true), Pair(true), List]
};

#[test]
fn a_pair_that_is_the_same_in_each_dict_is_made_once() {
    for long_keys in [false, true] {
        let mut writer = Writer::new();
        for number in 0..1000 {
            let mut event = EVENT;
            event[2] = Written::Integer([1, 2, 4, 5][number as usize % 4]);
            // Its text and its pair are one of two.
            writer.dict(&event, long_keys, number / 250 % 2);
        }
        let pickle = [&writer.program[..], END].concat();
        let asked = |piece, repeats| read(&pickle, piece, repeats).expect("a list").2;
        assert_eq!([asked(1, true), asked(usize::MAX, false)], [1000; 2]);
        let times = asked(usize::MAX, true);
        assert!(times < 500, "{times} of 1000");
        let [whole, pieces] = read_both_ways(&writer.program, true);
        assert_eq!(whole, pieces);
    }
}

#[test]
fn keys_that_are_as_before_are_said_to_be() {
    let mut writer = Writer::new();
    for number in 0..1000 {
        writer.dict(&EVENT, false, number / 500);
    }
    let (rows, _) = parse(&[&writer.program[..], END].concat(), usize::MAX, true).expect("a list");
    assert!(rows.as_before > 800, "{} of 1000", rows.as_before);
}

#[test]
fn keys_that_are_numbers_are_not_said_to_stay() {
    let mut writer = Writer::new();
    for number in 0..200u8 {
        // A text and a number are keys; the latter is another one each time.
        writer.put(&[
            b'}', 0x94, b'(', b'h', 0, b'K', 7, b'K', number, b'K', 7, b'h', 1, b'h', 2, b'u',
        ]);
    }
    let (rows, _) = parse(&[&writer.program[..], END].concat(), usize::MAX, true).expect("a list");
    assert_eq!((rows.dicts.len(), rows.as_before), (200, 0));
}

#[test]
fn a_key_that_means_something_else_from_now_on() {
    let mut writer = Writer::new();
    for part in 0..3 {
        for number in 0..200 {
            writer.dict(&EVENT, false, number);
        }
        // The memo's first text becomes another one.
        writer.put(&[b'h', part + 1, b'q', 0, b'0']);
    }
    let [whole, pieces] = read_both_ways(&writer.program, true);
    assert_eq!(whole, pieces);
    let rows = whole.expect("a list").0;
    assert_eq!(
        [0, 200, 400].map(|row| rows[row].split(' ').nth(1).expect("a key").to_owned()),
        ["a", "b", "c"]
    );
}

#[test]
fn what_follows_a_beginning_that_is_known_does_not_change_it() {
    let mut writer = Writer::new();
    let known = [Written::Integer(4), Written::List];
    for _ in 0..200 {
        writer.dict(&known, false, 3);
    }
    // The key before the list and an integer are a key together.
    writer.put(b"}\x94(h\x00J\x01\0\0\0h\x01K\x05\x86K\x06u");
    writer.dict(&known, false, 3);
    let [whole, pieces] = read_both_ways(&writer.program, true);
    assert_eq!(whole, pieces);
    let rows = whole.expect("a list").0;
    assert_eq!(rows[199].split(" to").next(), rows[201].split(" to").next());
}

#[test]
fn each_way_of_writing_a_value() {
    use Written::{
        EmptyList, Far, Integer, List, None, OddPair, Pair, PairOfList, Reference, Text,
    };
    let integers = (1..=8).map(Integer);
    let others = [
        Reference,
        Far,
        Text(false),
        Text(true),
        Pair(false),
        Pair(true),
        OddPair,
        PairOfList,
        List,
        EmptyList,
        None,
    ];
    for value in integers.chain(others) {
        for repeats in [false, true] {
            let mut writer = Writer::new();
            for number in 0..300 {
                writer.dict(&[Integer(4), value, Far, List], false, number);
            }
            let [whole, pieces] = read_both_ways(&writer.program, repeats);
            assert_eq!(whole, pieces, "{value:?}");
            assert_eq!(whole.expect("a list").0.len(), 300);
        }
    }
}

#[test]
fn a_pair_of_what_was_filled_one_by_one() {
    let mut program = Writer::new().program;
    program.extend(b"]\x94h\x01a}\x94(h\x00h\x08K\x07\x86u");
    let [whole, pieces] = read_both_ways(&program, false);
    assert_eq!(whole, pieces);
    assert!(whole.expect("a list").0[0].contains("a (Ext(2, 0) Int(7))"));
}

fn written() -> impl Strategy<Value = Written> {
    prop_oneof![
        4 => (1u8..=8).prop_map(Written::Integer),
        2 => prop::sample::select(vec![Written::Reference, Written::Far]),
        1 => any::<bool>().prop_map(Written::Text),
        1 => any::<bool>().prop_map(Written::Pair),
        1 => Just(Written::List),
        1 => prop::sample::select(vec![
            Written::OddPair, Written::PairOfList, Written::EmptyList, Written::None,
        ]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_dict_comes_to_the_same_byte_by_byte(
        kinds in prop::collection::vec((prop::collection::vec(written(), 1..=8), any::<bool>()), 1..4),
        // Which kind, numbers from where on, and a value that is written otherwise.
        dicts in prop::collection::vec((any::<prop::sample::Index>(), any::<u64>(), prop::option::weighted(0.1, (0usize..8, written()))), 300),
        repeats in any::<bool>(),
    ) {
        let mut writer = Writer::new();
        for (kind, number, other) in dicts {
            let (mut values, long_keys) = kind.get(&kinds).clone();
            if let Some((at, other)) = other {
                let at = at % values.len();
                values[at] = other;
            }
            writer.dict(&values, long_keys, number);
        }
        let [whole, pieces] = read_both_ways(&writer.program, repeats);
        prop_assert_eq!(whole, pieces, "{}", writer.program.escape_ascii());
    }
}
