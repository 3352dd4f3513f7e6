//! Lists of memo references, which the parser caches by their bytes.

use proptest::prelude::*;
use vramscope_pickle::{ByteOffset, Heap, Kind, Parser, PickleError, Sink, Value};

const ITEM: u8 = 0;
const LIST: u8 = 1;

/// Takes a dict as a number made of its values, and a list of such dicts as the index of its
/// content.
#[derive(Default)]
struct Lists {
    contents: Vec<Vec<u32>>,
    repeats: bool,
    asked: usize,
}

impl Sink for Lists {
    fn dict(
        &mut self,
        heap: &mut Heap,
        so_far: Option<Value>,
        pairs: &[Value],
        _: ByteOffset,
    ) -> Option<Value> {
        let said = pairs.iter().skip(1).step_by(2).try_fold(0u32, |said, &value| {
            let number = value
                .as_ext(LIST)
                .map(|list| list + 100)
                .or_else(|| u32::try_from(heap.small_int(value)?).ok())?;
            Some(said.wrapping_mul(1000).wrapping_add(number))
        });
        so_far.or_else(|| Some(Value::ext(ITEM, said?)))
    }

    fn list(
        &mut self,
        heap: &mut Heap,
        so_far: Option<Value>,
        items: &[Value],
        _: ByteOffset,
    ) -> Option<Value> {
        self.asked += 1;
        let before = so_far.and_then(|list| list.as_ext(LIST));
        let mut content = before.map_or(Vec::new(), |list| self.contents[list as usize].clone());
        for &item in items {
            content.push(heap.resolve(item).as_ext(ITEM)?);
        }
        let known = self.contents.iter().position(|c| *c == content);
        let index = known.unwrap_or_else(|| {
            self.contents.push(content);
            self.contents.len() - 1
        });
        Some(Value::ext(LIST, index as u32))
    }

    fn is_cacheable(&self, value: Value) -> bool {
        self.repeats && value.as_ext(LIST).is_some()
    }

    fn tuple(&mut self, _: &mut Heap, _: &[Value], _: ByteOffset) -> Option<Value> {
        None
    }
}

/// The lists in the root, and the number of calls of [`Sink::list`].
type Read = (Vec<Vec<u32>>, usize);

fn read(pickle: &[u8], chunk: usize, repeats: bool) -> Result<Read, PickleError> {
    let mut parser = Parser::new(Lists { repeats, ..Lists::default() }, &[]);
    for piece in pickle.chunks(chunk) {
        parser.feed(piece)?;
    }
    let parsed = parser.finish()?;
    let lists = parsed.heap.items(parsed.root).iter().map(|&item| {
        match parsed.heap.resolve(item).as_ext(LIST) {
            Some(list) => parsed.sink.contents[list as usize].clone(),
            None if item.as_ext(ITEM).is_some() => item.as_ext(ITEM).into_iter().collect(),
            // A list that the sink did not take: a placeholder per item.
            None => vec![u32::MAX; parsed.heap.items(item).len()],
        }
    });
    Ok((lists.collect(), parsed.sink.asked))
}

/// Writes pickles, in each form that picklers use.
struct Writer {
    bytes: Vec<u8>,
    /// Whether to write MEMOIZE, as in protocol 4, or explicit indices.
    memoize: bool,
    next: u32,
}

impl Writer {
    /// Starts a list. Its items follow.
    fn new(memoize: bool) -> Self {
        let mut writer = Self { bytes: b"\x80\x04]".to_vec(), memoize, next: 0 };
        writer.put(0);
        writer.bytes.push(b'(');
        writer
    }

    fn put(&mut self, index: u32) {
        // MEMOIZE assigns the number of entries, which is not the next index after a gap.
        self.memoize &= index <= self.next;
        if self.memoize && index == self.next {
            self.bytes.push(0x94);
        } else if let Ok(index) = u8::try_from(index) {
            self.bytes.extend([b'q', index]);
        } else {
            self.bytes.push(b'r');
            self.bytes.extend(index.to_le_bytes());
        }
        self.next = self.next.max(index + 1);
    }

    fn get(&mut self, index: u32, long: bool) {
        match u8::try_from(index) {
            Ok(index) if !long => self.bytes.extend([b'h', index]),
            _ => {
                self.bytes.push(b'j');
                self.bytes.extend(index.to_le_bytes());
            }
        }
    }

    /// Adds a dict that the sink takes as `value`, stores it under memo index `index`, and pops it.
    fn item(&mut self, index: u32, value: u8) {
        self.bytes.push(b'}');
        self.put(index);
        self.bytes.extend([b'(', b'K', 0, b'K', value, b'u', b'0']);
    }

    /// Adds a dict of `numbers` integer pairs, a list of references, and one more integer pair.
    fn dict(&mut self, numbers: u8, indices: &[u32], long: bool) {
        self.bytes.push(b'}');
        self.put(self.next);
        self.bytes.push(b'(');
        (0..numbers).for_each(|n| self.bytes.extend([b'K', n, b'K', n]));
        self.bytes.extend([b'K', 200]);
        self.list(indices, long);
        self.bytes.extend([b'K', 201, b'K', 7, b'u']);
    }

    /// Adds a list of references, in batches as CPython writes them.
    fn list(&mut self, indices: &[u32], long: bool) {
        self.bytes.push(b']');
        self.put(self.next);
        for batch in indices.chunks(1000) {
            self.bytes.push(b'(');
            for &index in batch {
                self.get(index, long);
            }
            self.bytes.push(b'e');
        }
    }

    fn finish(mut self) -> Vec<u8> {
        // The parser reads the last bytes of a pickle one operation at a time.
        self.bytes.extend(b"N0N0N0N0N0N0e.");
        self.bytes
    }
}

/// Checks the lists with and without the cache, in chunks of many sizes, and cut at every byte.
/// `asked` is the expected number of calls of [`Sink::list`] with the cache.
fn check(pickle: &[u8], lists: &[Vec<u32>], asked: usize) {
    assert_eq!(read(pickle, usize::MAX, true), Ok((lists.to_vec(), asked)));
    let every_time = read(pickle, usize::MAX, false).expect("a pickle");
    assert_eq!(every_time.0, lists);
    for chunk in 1..64 {
        assert_eq!(read(pickle, chunk, true).expect("a pickle").0, lists, "chunks of {chunk}");
    }
    for cut in 0..pickle.len() {
        let (head, tail) = pickle.split_at(cut);
        match read(head, usize::MAX, true) {
            Err(PickleError::UnexpectedEnd { at, .. }) => assert_eq!(at, cut as u64),
            other => assert!(cut == 0 && other == Err(PickleError::Empty), "cut at {cut}"),
        }
        let mut parser = Parser::new(Lists { repeats: true, ..Lists::default() }, &[]);
        parser.feed(head).and_then(|()| parser.feed(tail)).expect("a pickle");
        let parsed = parser.finish().expect("a pickle");
        let found = parsed.heap.items(parsed.root).iter().map(|&item| {
            let list = parsed.heap.resolve(item).as_ext(LIST).expect("taken");
            parsed.sink.contents[list as usize].clone()
        });
        assert_eq!(found.collect::<Vec<_>>(), lists, "cut at {cut}");
    }
}

#[test]
fn list_cache_hit_skips_the_sink() {
    for memoize in [true, false] {
        for long in [true, false] {
            let mut w = Writer::new(memoize);
            (1..=3).for_each(|i| w.item(i, 10 * i as u8));
            for _ in 0..5 {
                w.list(&[1, 2, 3, 2], long);
                w.list(&[3], long);
            }
            let lists: Vec<Vec<u32>> =
                (0..10).map(|i| if i % 2 == 0 { vec![10, 20, 30, 20] } else { vec![30] }).collect();
            // Both lists, and the root.
            check(&w.finish(), &lists, 3);
        }
    }
}

#[test]
fn overwritten_memo_entry_clears_the_list_cache() {
    for memoize in [true, false] {
        let mut w = Writer::new(memoize);
        (1..=3).for_each(|i| w.item(i, i as u8));
        w.list(&[1, 2, 3], true);
        w.list(&[1, 2, 3], true);
        w.item(2, 7);
        w.list(&[1, 2, 3], true);
        w.list(&[1, 2, 3], true);
        let lists = [vec![1, 2, 3], vec![1, 2, 3], vec![1, 7, 3], vec![1, 7, 3]];
        check(&w.finish(), &lists, 3);
    }
}

#[test]
fn lists_with_a_common_prefix_are_distinct() {
    let mut w = Writer::new(true);
    (1..=40).for_each(|i| w.item(i, i as u8));
    let all: Vec<u32> = (1..=40).collect();
    let mut lists = Vec::new();
    for n in [40, 39, 40, 1, 40, 39, 2, 1] {
        w.list(&all[..n], n % 2 == 0);
        lists.push(all[..n].to_vec());
    }
    // An index whose bytes are opcodes.
    let odd = u32::from_le_bytes(*b"eeej") & 0xfff;
    w.item(odd, 99);
    for _ in 0..2 {
        w.list(&[odd, 1, odd], true);
        lists.push(vec![99, 1, 99]);
    }
    check(&w.finish(), &lists, 6);
}

#[test]
fn lists_of_several_batches_are_joined() {
    let mut w = Writer::new(true);
    (1..=3).for_each(|i| w.item(i, i as u8));
    let long: Vec<u32> = (0..2500).map(|i| 1 + i % 3).collect();
    w.list(&long, false);
    w.list(&long[..1000], false);
    w.list(&long, false);
    let lists = [long.clone(), long[..1000].to_vec(), long];
    let pickle = w.finish();
    for chunk in [1, 7, 999, 4096, usize::MAX] {
        assert_eq!(read(&pickle, chunk, true).expect("a pickle").0, lists);
    }
}

#[test]
fn filling_a_container_that_a_list_holds_is_an_error() {
    // d = {}; [d], then d gets an item.
    let pickle = b"\x80\x04]\x94(}\x94](h\x01e\x8c\x01xh\x01(K\x00K\x05u0](h\x01e](h\x01ee.";
    for chunk in [1, 5, usize::MAX] {
        for repeats in [true, false] {
            assert_eq!(
                read(pickle, chunk, repeats),
                Err(PickleError::LateItems { op: "SETITEMS", at: 22 })
            );
        }
    }
}

#[test]
fn errors_inside_a_list_have_their_offset() {
    let mut w = Writer::new(true);
    w.item(1, 1);
    w.list(&[1, 1, 1, 1, 1, 1, 1, 1], true);
    w.list(&[1, 1, 1, 1, 1, 1, 1, 1], true);
    w.bytes.extend(b"](");
    w.get(1, true);
    let at = w.bytes.len() as u64;
    w.get(77, true);
    w.bytes.extend(b"e");
    let pickle = w.finish();
    for chunk in [1, 7, usize::MAX] {
        assert_eq!(read(&pickle, chunk, true), Err(PickleError::Memo { index: 77, at }));
    }
    // The container below the mark is missing.
    for pickle in [
        &b"\x80\x04}\x94(K\x00K\x01u0(h\x00eNNNNNNNNNN."[..],
        b"\x80\x04](}\x94(K\x00K\x01u0(h\x00eNNNNNNNNNN.",
    ] {
        let error = read(pickle, usize::MAX, true).expect_err("damage");
        assert_eq!(Err(error), read(pickle, 1, true));
    }
}

#[test]
fn cached_lists_count_as_nesting() {
    let mut w = Writer::new(true);
    w.item(1, 1);
    w.list(&[1, 1, 1, 1], true);
    let known = w.bytes.len();
    // The deepest allowed nesting: the root's mark counts, and the limit itself is allowed.
    w.bytes.resize(known + (1 << 20), b'(');
    w.list(&[1, 1, 1, 1], true);
    let at = w.bytes.len() as u64 - 22;
    let pickle = w.finish();
    let error = PickleError::Limit { what: "nesting", found: (1 << 20) + 1, limit: 1 << 20, at };
    for chunk in [7, 4096, usize::MAX] {
        assert_eq!(read(&pickle, chunk, true), Err(error.clone()));
    }
    // Inside a dict the list nests one level deeper.
    let mut w = Writer::new(true);
    w.item(1, 1);
    w.list(&[1, 1, 1, 1], true);
    w.bytes.resize(known + (1 << 20) - 1, b'(');
    w.dict(0, &[1, 1, 1, 1], true);
    let at = w.bytes.len() as u64 - 27;
    let pickle = w.finish();
    let error = PickleError::Limit { what: "nesting", found: (1 << 20) + 1, limit: 1 << 20, at };
    for chunk in [7, 4096, usize::MAX] {
        assert_eq!(read(&pickle, chunk, true), Err(error.clone()));
    }
}

#[test]
fn dicts_of_every_size_are_read_alike() {
    // Sizes around the limit up to which a dict is read beside the stack.
    for numbers in 0..40 {
        let mut w = Writer::new(true);
        w.item(1, 1);
        w.item(2, 2);
        // A None item, so that the sink does not take the root.
        w.bytes.push(b'N');
        for _ in 0..3 {
            w.dict(numbers, &[1, 2, 1], false);
        }
        let pickle = w.finish();
        let said = (0..numbers).map(u32::from).chain([100, 7]);
        let said = said.fold(0u32, |said, number| said.wrapping_mul(1000).wrapping_add(number));
        let (whole, asked) = read(&pickle, usize::MAX, true).expect("a pickle");
        // One call for the list, which is cached afterwards, and one for the root.
        assert_eq!((&whole[1..], asked), (&[[said]; 3].map(Vec::from)[..], 2), "{numbers}");
        assert_eq!(read(&pickle, 1, true).expect("a pickle").0, whole, "{numbers}");
    }
}

proptest! {
    /// The cache changes no result, whatever entries are overwritten and however the bytes are
    /// chunked.
    #[test]
    fn list_cache_changes_no_result(
        memoize in any::<bool>(),
        steps in proptest::collection::vec(
            (0u8..6, 1u32..6, 0u8..3, any::<bool>(), 0u8..20),
            1..60,
        ),
        chunk in 1usize..200,
    ) {
        let mut w = Writer::new(memoize);
        (1..=6).for_each(|i| w.item(i, i as u8));
        let patterns: [&[u32]; 3] = [&[1, 2, 3, 4, 5, 6], &[6, 5, 4, 3, 2, 1, 1, 1], &[3]];
        for (what, index, which, long, numbers) in steps {
            match what {
                0 => w.item(index, 50 + which),
                1 | 2 => w.dict(numbers, patterns[which as usize], long),
                _ => w.list(patterns[which as usize], long),
            }
        }
        let pickle = w.finish();
        let expected = read(&pickle, usize::MAX, false).expect("a pickle").0;
        prop_assert_eq!(&read(&pickle, usize::MAX, true).expect("a pickle").0, &expected);
        prop_assert_eq!(&read(&pickle, chunk, true).expect("a pickle").0, &expected);
    }
}

#[test]
fn strings_of_every_length_are_distinct() {
    // The sink does not take lists of strings, so the strings stay readable.
    let texts =
        ["", "N", "N/", "N/A", "\0", "\0\0", "\u{1}", "N/A    ", "N/A     ", "N/A", "", "\0"];
    let mut pickle = b"\x80\x04]\x94(".to_vec();
    for text in texts {
        pickle.extend([0x8c, text.len() as u8]);
        pickle.extend(text.as_bytes());
        pickle.push(0x94);
    }
    pickle.extend(b"e.");
    let mut parser = Parser::new(Lists::default(), &[]);
    parser.feed(&pickle).expect("a pickle");
    let parsed = parser.finish().expect("a pickle");
    let found = parsed.heap.items(parsed.root).iter().map(|item| match item.kind() {
        Kind::Str(id) => parsed.heap.strings.text(id).into_owned(),
        other => panic!("{other:?}"),
    });
    assert_eq!(found.collect::<Vec<_>>(), texts);
    assert_eq!(parsed.heap.strings.len(), 9);
}
