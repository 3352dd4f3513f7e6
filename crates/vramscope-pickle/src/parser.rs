//! The way in: bytes in chunks of any size.

use crate::error::{ByteOffset, PickleError};
use crate::heap::Heap;
use crate::machine::Machine;
use crate::sink::Sink;
use crate::strings::Strings;
use crate::value::Value;

/// Reads one pickle from chunks of any size, and pushes what it holds into a [`Sink`].
///
/// Memory: the parser keeps what its sink leaves to it, four bytes a memo entry, eight a container,
/// and at most one operand that is cut by the end of a chunk; never the file.
pub struct Parser<S> {
    machine: Machine<S>,
    /// The start of an operation that the last chunk cut off.
    carry: Vec<u8>,
    /// How many bytes more it needs, as far as is known.
    missing: usize,
    /// Where the next unread byte (the first of `carry`, if any) stands in the stream.
    at: ByteOffset,
    trailing: u64,
}

/// What a whole pickle came to.
pub struct Parsed<S> {
    /// The object that was pickled.
    pub root: Value,
    /// What `root` and the sink's values refer to.
    pub heap: Heap,
    /// The sink.
    pub sink: S,
    /// Bytes after STOP; they were ignored.
    pub trailing: u64,
    /// Where STOP ended.
    pub end: ByteOffset,
}

/// What a [`Parser`] holds.
#[derive(Clone, Copy, Debug, Default)]
pub struct MemoryUse {
    /// Entries of the memo.
    pub memo_entries: usize,
    /// Bytes of the memo.
    pub memo: usize,
    /// Bytes of objects that no sink took, or only after something had referred to them.
    pub objects: usize,
    /// Bytes of strings.
    pub strings: usize,
    /// Bytes of all else.
    pub other: usize,
}

/// How far one run over a piece of the stream came.
pub(crate) enum RunOutcome {
    /// Everything was used up to here; what is left starts an operation that needs at least
    /// `missing` more bytes.
    NeedsMore { used: usize, missing: usize },
    /// STOP was read; `used` is after it.
    Stopped { used: usize },
}

impl<S: Sink> Parser<S> {
    /// A parser whose string table starts with these strings, so that a sink knows their ids
    /// beforehand.
    pub fn new(sink: S, known: &[&str]) -> Self {
        Self {
            machine: Machine::new(sink, Heap::with_strings(Strings::with_known(known))),
            carry: Vec::new(),
            missing: 0,
            at: 0,
            trailing: 0,
        }
    }

    /// Read the next bytes of the stream.
    ///
    /// # Errors
    /// When the bytes are no pickle. The parser is of no use afterwards.
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
                    self.carry.extend_from_slice(chunk);
                    return Ok(());
                }
            } else {
                // Complete the cut operation from the start of the chunk, and read on from the
                // chunk itself.
                let (head, rest) = chunk.split_at(self.missing.clamp(1, chunk.len()));
                self.carry.extend_from_slice(head);
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

    fn run(&mut self, bytes: &[u8]) -> Result<usize, PickleError> {
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

    /// How many bytes of the stream have been understood.
    pub fn position(&self) -> ByteOffset {
        self.at
    }

    /// The sink, to see how far it is.
    pub fn sink(&self) -> &S {
        &self.machine.sink
    }

    /// `rest` times as much of the stream is left as was read since the last time that this was
    /// said: make room for it. It is a matter of memory alone, and need be neither said nor right.
    pub fn reserve_ahead(&mut self, rest: f64) {
        self.machine.heap.reserve_ahead(rest);
        self.machine.sink.reserve_ahead(rest);
    }

    /// The sink, to tell it something.
    pub fn sink_mut(&mut self) -> &mut S {
        &mut self.machine.sink
    }

    /// Bytes of memory that the parser itself holds, its sink not counted.
    pub fn memory(&self) -> usize {
        let MemoryUse { memo, objects, strings, other, .. } = self.memory_use();
        memo + objects + strings + other
    }

    /// What the parser itself holds, by what it is.
    pub fn memory_use(&self) -> MemoryUse {
        let held = self.machine.memory_use();
        MemoryUse { other: held.other + self.carry.capacity(), ..held }
    }

    /// The stream has ended.
    ///
    /// # Errors
    /// When it ended before STOP.
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
