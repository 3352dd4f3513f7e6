//! The pickle machine by itself.

use crate::pieces;
use vramscope_pickle::{ByteOffset, Heap, Kind, Parser, Sink, Value};

/// What a byte of input may cost: a container that is memoized takes a memo entry, a slot and a
/// place on the stack, and vectors have room for as much again.
const BYTES_A_BYTE: usize = 128;
const BYTES_AT_ALL: usize = 1 << 20;

/// Sees what every container holds, so that two readings can be compared without building anything.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    containers: u64,
    sum: u64,
    /// Containers that are taken out, as a sink that understands them does.
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

/// The machine reads bytes as one piece and as several: it comes to the same end, and holds no more
/// than in proportion.
///
/// # Panics
/// When something does not hold.
pub fn pickle(data: &[u8]) {
    let Some((size, bytes)) = pieces(data) else { return };
    // Never, sometimes, always: each way other code runs.
    for take_every in [u64::MAX, 3, 1] {
        let whole = read(bytes, bytes.len().max(1), take_every);
        let pieces = read(bytes, size, take_every);
        assert_eq!(
            whole, pieces,
            "in pieces of {size} bytes, with every {take_every}. container taken"
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
            held <= bytes.len() * BYTES_A_BYTE + BYTES_AT_ALL,
            "{held} bytes held for {} read",
            bytes.len()
        );
        fed.map_err(|e| e.to_string())?;
    }
    let parsed = parser.finish().map_err(|e| e.to_string())?;
    Ok(format!("{:?} {:?} {} {}", parsed.sink, parsed.heap.notes(), parsed.trailing, parsed.end))
}
