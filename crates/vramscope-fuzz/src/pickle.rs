//! Runs the pickle machine alone.

use crate::pieces;
use vramscope_pickle::{ByteOffset, Heap, Kind, Parser, Sink, Value};

/// Memory that one byte of input may take, in bytes: a memoized container takes a memo entry, a
/// slot and a place on the stack, and vectors have twice the capacity.
const MEMORY_PER_BYTE: usize = 128;
/// Memory that an empty input may take, in bytes.
const BASE_MEMORY: usize = 1 << 20;

/// Hashes the content of every container, so that two readings can be compared.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    containers: u64,
    sum: u64,
    /// The sink replaces every n-th container by a value, as a sink that knows its meaning does.
    take_every: u64,
}

impl Seen {
    fn see(&mut self, heap: &Heap, items: &[Value], at: ByteOffset) -> Option<Value> {
        self.containers += 1;
        let mut mix =
            |n: u64| self.sum = (self.sum ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17);
        mix(at);
        for &item in items {
            mix(match heap.resolve(item).kind() {
                Kind::None => 1,
                Kind::Bool(b) => 2 + u64::from(b),
                Kind::Int(i) => 4 ^ i as u64,
                Kind::Str(id) => heap
                    .strings
                    .bytes(id)
                    .iter()
                    .fold(5, |sum, &b| sum * 31 % 1_000_003 + u64::from(b)),
                Kind::Float(_) => heap.float(item).map_or(6, f64::to_bits),
                Kind::Long(_) => heap.int(item).map_or(7, |i| i as u64),
                Kind::Ext(kind, index) => u64::from(kind) << 32 | u64::from(index),
                _ => 8,
            });
        }
        self.containers.is_multiple_of(self.take_every.max(1)).then_some(Value::NONE)
    }
}

impl Sink for Seen {
    fn dict(
        &mut self,
        heap: &mut Heap,
        _: Option<Value>,
        items: &[Value],
        at: ByteOffset,
    ) -> Option<Value> {
        self.see(heap, items, at)
    }
    fn list(
        &mut self,
        heap: &mut Heap,
        _: Option<Value>,
        items: &[Value],
        at: ByteOffset,
    ) -> Option<Value> {
        self.see(heap, items, at)
    }
    fn tuple(&mut self, heap: &mut Heap, items: &[Value], at: ByteOffset) -> Option<Value> {
        self.see(heap, items, at)
    }
}

/// Reads the bytes as one piece and in several. Both must have the same result, and take memory in
/// proportion to the input.
///
/// # Panics
/// When an invariant is broken.
pub fn pickle(data: &[u8]) {
    let Some((size, bytes)) = pieces(data) else { return };
    // Never, at times, always: each runs other code of the machine.
    for take_every in [u64::MAX, 3, 1] {
        let whole = read(bytes, bytes.len().max(1), take_every);
        let pieces = read(bytes, size, take_every);
        assert_eq!(
            whole, pieces,
            "in pieces of {size} bytes, taking one container in {take_every}"
        );
    }
}

fn read(bytes: &[u8], size: usize, take_every: u64) -> Result<String, String> {
    let mut parser =
        Parser::new(Seen { take_every, ..Seen::default() }, &["segments", "device_traces"]);
    for piece in bytes.chunks(size) {
        let fed = parser.feed(piece);
        let held = parser.memory();
        assert!(
            held <= bytes.len() * MEMORY_PER_BYTE + BASE_MEMORY,
            "{held} bytes held for {} read",
            bytes.len()
        );
        fed.map_err(|e| e.to_string())?;
    }
    let parsed = parser.finish().map_err(|e| e.to_string())?;
    Ok(format!("{:?} {:?} {} {}", parsed.sink, parsed.heap.notes(), parsed.trailing, parsed.end))
}
