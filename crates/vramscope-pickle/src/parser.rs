//! The public entry point: [`Parser`] takes bytes in chunks of any size.

use crate::error::{ByteOffset, PickleError};
use crate::heap::Heap;
use crate::machine::Machine;
use crate::operands::UNTIL_NEWLINE;
use crate::sink::Sink;
use crate::strings::Strings;
use crate::value::Value;

/// Reads one pickle from chunks of any size and pushes its content into a [`Sink`].
///
/// Memory: four bytes per memo entry, eight bytes per container that the sink does not take, and at
/// most one operand that the end of a chunk cuts. The parser never holds the file. A
/// [`Budget`](crate::Budget) bounds the memory of parser and sink by the length of the stream.
pub struct Parser<S> {
    machine: Machine<S>,
    /// The start of an operation that the end of the last chunk cut off.
    carry: Vec<u8>,
    /// A lower bound of the bytes that complete the operation in `carry`, or [`UNTIL_NEWLINE`].
    missing: usize,
    /// The stream offset of the next unread byte (the first byte of `carry`, if any).
    at: ByteOffset,
    trailing: u64,
    /// See [`Parser::scanned`].
    scanned: u64,
}

/// The result of reading a whole pickle.
pub struct Parsed<S> {
    /// The pickled object.
    pub root: Value,
    /// The objects that `root` and the sink's values refer to.
    pub heap: Heap,
    /// The sink, with everything it took.
    pub sink: S,
    /// Ignored bytes after STOP.
    pub trailing: u64,
    /// The offset after STOP.
    pub end: ByteOffset,
}

/// A cut operation of at most this many bytes is not measured.
const MAX_SMALL_CARRY: usize = 1 << 16;

/// Memory held by a [`Parser`], by purpose.
#[derive(Clone, Copy, Debug, Default)]
pub struct MemoryUse {
    /// Number of memo entries.
    pub memo_entries: usize,
    /// Bytes of the memo.
    pub memo: usize,
    /// Bytes of containers that have an object slot: the sink did not take them, or something
    /// referred to them before.
    pub objects: usize,
    /// Bytes of interned strings.
    pub strings: usize,
    /// Bytes of everything else: caches, stack, marks, carry.
    pub other: usize,
}

/// How [`Machine::run`] ended.
pub(crate) enum RunOutcome {
    /// The first `used` bytes are done. An operation starts there that needs at least `missing`
    /// more bytes.
    NeedsMore { used: usize, missing: usize },
    /// STOP was read. It ends at `used`.
    Stopped { used: usize },
}

impl<S: Sink> Parser<S> {
    /// Creates a parser whose string table starts with `known`, so that the sink knows the ids of
    /// these strings.
    pub fn new(sink: S, known: &[&str]) -> Self {
        Self {
            machine: Machine::new(sink, Heap::with_strings(Strings::with_known(known))),
            carry: Vec::new(),
            missing: 0,
            at: 0,
            trailing: 0,
            scanned: 0,
        }
    }

    /// Reads the next bytes of the stream.
    ///
    /// # Errors
    /// When the bytes are not a pickle. The parser must not be used after an error.
    pub fn feed(&mut self, mut chunk: &[u8]) -> Result<(), PickleError> {
        while !chunk.is_empty() {
            if self.machine.root.is_some() {
                self.trailing += chunk.len() as u64;
                return Ok(());
            }
            if self.carry.is_empty() {
                let used = self.run(chunk)?;
                chunk = &chunk[used..];
                if self.machine.root.is_none() {
                    return self.carry_on(chunk);
                }
            } else {
                // Complete the cut operation from the start of the chunk, then continue in the
                // chunk itself.
                let end = match self.missing {
                    UNTIL_NEWLINE => memchr::memchr(b'\n', chunk).map(|at| at + 1),
                    missing => (missing <= chunk.len()).then_some(missing),
                };
                // The operation stays cut. Nothing is searched twice.
                let Some(end) = end else {
                    self.missing = self.missing.saturating_sub(chunk.len());
                    return self.carry_on(chunk);
                };
                let (head, rest) = chunk.split_at(end);
                self.carry_on(head)?;
                chunk = rest;
                let carry = std::mem::take(&mut self.carry);
                let used = self.run(&carry)?;
                self.carry = carry;
                self.carry.drain(..used);
                if self.machine.root.is_some() {
                    self.trailing += self.carry.len() as u64;
                }
            }
        }
        Ok(())
    }

    /// Keeps a part of a cut operation.
    fn carry_on(&mut self, bytes: &[u8]) -> Result<(), PickleError> {
        self.carry.extend_from_slice(bytes);
        let read = self.at + self.carry.len() as u64;
        if self.carry.len() > MAX_SMALL_CARRY {
            self.machine.check_memory(read, self.carry.capacity())?;
        }
        Ok(())
    }

    fn run(&mut self, bytes: &[u8]) -> Result<usize, PickleError> {
        self.scanned += bytes.len() as u64;
        let used = match self.machine.run(bytes, self.at)? {
            RunOutcome::NeedsMore { used, missing } => {
                self.missing = missing;
                used
            }
            RunOutcome::Stopped { used } => used,
        };
        self.at += used as u64;
        Ok(used)
    }

    /// The number of bytes of the stream that were parsed.
    pub fn position(&self) -> ByteOffset {
        self.at
    }

    /// The number of bytes that operations were searched in, with repetitions. It measures work: an
    /// operation that the end of a chunk cuts is searched again when more of it has come.
    pub fn scanned(&self) -> u64 {
        self.scanned
    }

    /// The sink, while it fills.
    pub fn sink(&self) -> &S {
        &self.machine.sink
    }

    /// Reserves capacity for the rest of the stream. `rest` is its length, in multiples of the
    /// bytes read since the last call. A hint only: it affects allocation, never the result.
    pub fn reserve_ahead(&mut self, rest: f64) {
        // What is reserved counts as held. A misleading start must not use up the budget.
        if !self.machine.may_hold_times(rest + 1.0, self.at) {
            return;
        }
        self.machine.heap.reserve_ahead(rest);
        self.machine.sink.reserve_ahead(rest);
    }

    /// Limits the bytes of memory that the parser and its sink hold, whatever the stream's length.
    pub fn set_max_memory(&mut self, bytes: u64) {
        self.machine.heap.budget.set_max(bytes);
    }

    /// The sink, mutable.
    pub fn sink_mut(&mut self) -> &mut S {
        &mut self.machine.sink
    }

    /// Bytes of memory that the parser holds, without its sink.
    pub fn memory(&self) -> usize {
        let MemoryUse { memo, objects, strings, other, .. } = self.memory_use();
        memo + objects + strings + other
    }

    /// Memory that the parser holds, by purpose, without its sink.
    pub fn memory_use(&self) -> MemoryUse {
        let held = self.machine.memory_use();
        MemoryUse { other: held.other + self.carry.capacity(), ..held }
    }

    /// Ends the stream and returns the parsed pickle.
    ///
    /// # Errors
    /// When the stream ended before STOP.
    pub fn finish(self) -> Result<Parsed<S>, PickleError> {
        let Some(root) = self.machine.root else {
            let at = self.at + self.carry.len() as u64;
            return Err(match self.carry.first() {
                _ if at == 0 => PickleError::Empty,
                Some(_) => PickleError::UnexpectedEnd { what: "an operand", at },
                None => PickleError::UnexpectedEnd { what: "the pickle, before its STOP", at },
            });
        };
        let root = self.machine.heap.resolve(root);
        let Machine { heap, sink, .. } = self.machine;
        Ok(Parsed { root, heap, sink, trailing: self.trailing, end: self.at })
    }
}
