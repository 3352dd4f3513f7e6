//! The stack machine. [`Machine::run`] executes one opcode after the other.

use crate::budget::held_limit;
use crate::error::{ByteOffset, PickleError};
use crate::fast_path::MAX_DICT_ITEMS;
use crate::heap::{Heap, Oddity};
use crate::list_cache::ListCache;
use crate::memo::Memo;
use crate::opcode as op;
use crate::operands::{MissingBytes, Operands};
use crate::parser::{MemoryUse, RunOutcome};
use crate::sink::Sink;
use crate::value::Value;

/// Limit of a declared operand length. Strings of a snapshot are far shorter, so a larger length
/// means damage.
const MAX_OPERAND_BYTES: u64 = 1 << 30;
/// Limit of nested marks, four bytes each. No recorder nests as deeply.
pub(crate) const MAX_DEPTH: u64 = 1 << 20;

/// Values on top of the stack among which a container is searched that may still change. No pickler
/// changes a container through a reference, so few will do. It bounds the time of a reference.
pub(crate) const SEARCHED_VALUES: usize = 8;

/// [`reserve_for`](crate::reserve_for) grows nothing by more than this factor.
const MAX_PROJECTED: f64 = 17.0;

pub(crate) struct Machine<S> {
    pub(crate) sink: S,
    pub(crate) heap: Heap,
    pub(crate) root: Option<Value>,
    pub(crate) stack: Vec<Value>,
    pub(crate) marks: Vec<u32>,
    pub(crate) memo: Memo,
    pub(crate) lists: ListCache,
    /// The items of a dict that [`Machine::dicts`] is reading.
    pub(crate) dict_items: [Value; MAX_DICT_ITEMS],
}

/// Why an operation did not run: bytes are missing, or it is invalid.
pub(crate) enum Halt {
    Missing(MissingBytes),
    Error(PickleError),
}

impl From<MissingBytes> for Halt {
    fn from(missing: MissingBytes) -> Self {
        Self::Missing(missing)
    }
}

impl From<PickleError> for Halt {
    fn from(error: PickleError) -> Self {
        Self::Error(error)
    }
}

impl<S: Sink> Machine<S> {
    pub(crate) fn new(sink: S, heap: Heap) -> Self {
        Self {
            sink,
            heap,
            root: None,
            stack: Vec::new(),
            marks: Vec::new(),
            memo: Memo::default(),
            lists: ListCache::default(),
            dict_items: [Value::NONE; MAX_DICT_ITEMS],
        }
    }

    pub(crate) fn memory_use(&self) -> MemoryUse {
        let strings = self.heap.strings.memory();
        MemoryUse {
            memo_entries: self.memo.len(),
            memo: self.memo.memory(),
            objects: self.heap.memory() - strings,
            strings,
            other: self.lists.memory()
                + self.stack.capacity() * size_of::<Value>()
                + self.marks.capacity() * 4,
        }
    }

    fn held(&self) -> usize {
        let MemoryUse { memo, objects, strings, other, .. } = self.memory_use();
        memo + objects + strings + other + self.sink.memory()
    }

    /// Checks the memory of machine and sink, and `more` bytes, against the budget after `read`
    /// bytes of the stream.
    #[inline(never)]
    pub(crate) fn check_memory(&mut self, read: u64, more: usize) -> Result<(), PickleError> {
        let held = self.held() + more;
        self.heap.budget.check(read, held)
    }

    /// Whether the memory held after `read` bytes may grow by this factor.
    pub(crate) fn may_hold_times(&self, factor: f64, read: u64) -> bool {
        self.held() as f64 * factor.min(MAX_PROJECTED) <= held_limit(read) as f64
    }

    /// Runs all complete operations in `bytes`, which start at offset `base` of the stream.
    pub(crate) fn run(
        &mut self,
        bytes: &[u8],
        base: ByteOffset,
    ) -> Result<RunOutcome, PickleError> {
        let mut operands = Operands::new(bytes);
        while self.root.is_none() {
            operands.pos = self.fast_path(bytes, operands.pos, base);
            let start = operands.pos;
            let at = base + start as u64;
            if self.heap.budget.is_due(at) {
                self.check_memory(at, 0)?;
            }
            let Ok(code) = operands.byte() else {
                return Ok(RunOutcome::NeedsMore { used: start, missing: 1 });
            };
            match self.execute(code, &mut operands, at, base) {
                Ok(()) => {}
                Err(Halt::Missing(MissingBytes(missing))) => {
                    return Ok(RunOutcome::NeedsMore { used: start, missing });
                }
                Err(Halt::Error(error)) => return Err(error),
            }
        }
        self.check_memory(base + operands.pos as u64, 0)?;
        Ok(RunOutcome::Stopped { used: operands.pos })
    }

    /// Runs one operation. It changes nothing until all operands are complete, so that it can be
    /// retried with more bytes.
    fn execute(
        &mut self,
        code: u8,
        operands: &mut Operands<'_>,
        at: ByteOffset,
        base: ByteOffset,
    ) -> Result<(), Halt> {
        match code {
            op::BINGET => {
                let index = operands.byte()?;
                let value = self.recall(u32::from(index), at)?;
                self.stack.push(value);
            }
            op::LONG_BINGET => {
                let index = operands.u32()?;
                let value = self.recall(index, at)?;
                self.stack.push(value);
            }
            op::MEMOIZE => self.memoize(self.memo.next_index(), at)?,
            op::BINPUT => {
                let index = operands.byte()?;
                self.memoize(u32::from(index), at)?;
            }
            op::LONG_BINPUT => {
                let index = operands.u32()?;
                self.memoize(index, at)?;
            }
            op::MARK => {
                limit("nesting", self.marks.len() as u64, MAX_DEPTH, at)?;
                self.marks.push(self.stack.len() as u32);
            }
            op::EMPTY_DICT => {
                let value = self.heap.new_dict();
                self.stack.push(value);
            }
            op::EMPTY_LIST => {
                let value = self.heap.new_list();
                self.stack.push(value);
            }
            op::SETITEMS => self.batch("SETITEMS", true, at, base + operands.pos as u64)?,
            op::APPENDS => self.batch("APPENDS", false, at, base + operands.pos as u64)?,
            op::SETITEM => self.single("SETITEM", 2, at)?,
            op::APPEND => self.single("APPEND", 1, at)?,
            op::BININT => {
                let i = i32::from_le_bytes(operands.array()?);
                self.push_small(i64::from(i));
            }
            op::BININT1 => {
                let i = operands.byte()?;
                self.push_small(i64::from(i));
            }
            op::BININT2 => {
                let i = u16::from_le_bytes(operands.array()?);
                self.push_small(i64::from(i));
            }
            op::LONG1 => {
                let n = operands.byte()?;
                let bytes = operands.take(usize::from(n))?;
                self.push_long(bytes, at);
            }
            op::LONG4 => {
                let n = limit("an integer", u64::from(operands.u32()?), MAX_OPERAND_BYTES, at)?;
                let bytes = operands.take(n)?;
                self.push_long(bytes, at);
            }
            op::SHORT_BINUNICODE | op::SHORT_BINSTRING => {
                let n = operands.byte()?;
                let bytes = operands.take(usize::from(n))?;
                self.push_str(bytes);
            }
            op::BINUNICODE | op::BINSTRING => {
                let n = limit("a string", u64::from(operands.u32()?), MAX_OPERAND_BYTES, at)?;
                let bytes = operands.take(n)?;
                self.push_str(bytes);
            }
            op::BINUNICODE8 => {
                let n = limit(
                    "a string",
                    u64::from_le_bytes(operands.array()?),
                    MAX_OPERAND_BYTES,
                    at,
                )?;
                let bytes = operands.take(n)?;
                self.push_str(bytes);
            }
            op::SHORT_BINBYTES => {
                let n = operands.byte()?;
                operands.take(usize::from(n))?;
                self.stack.push(Value::BYTES);
            }
            op::BINBYTES => {
                let n = limit("bytes", u64::from(operands.u32()?), MAX_OPERAND_BYTES, at)?;
                operands.take(n)?;
                self.stack.push(Value::BYTES);
            }
            op::BINBYTES8 | op::BYTEARRAY8 => {
                let n =
                    limit("bytes", u64::from_le_bytes(operands.array()?), MAX_OPERAND_BYTES, at)?;
                operands.take(n)?;
                self.stack.push(Value::BYTES);
            }
            op::NONE => self.stack.push(Value::NONE),
            op::NEWTRUE => self.stack.push(Value::bool(true)),
            op::NEWFALSE => self.stack.push(Value::bool(false)),
            op::BINFLOAT => {
                let f = f64::from_be_bytes(operands.array()?);
                let value = self.heap.make_float(f);
                self.stack.push(value);
            }
            op::EMPTY_TUPLE => self.push_tuple(0, at)?,
            op::TUPLE1 => self.push_tuple(1, at)?,
            op::TUPLE2 => self.push_tuple(2, at)?,
            op::TUPLE3 => self.push_tuple(3, at)?,
            op::TUPLE => {
                let from = self.pop_mark("TUPLE", at)?;
                self.push_tuple(self.stack.len() - from, at)?;
            }
            op::FRAME => {
                // Frames only help unpicklers that prefetch.
                operands.take(8)?;
            }
            op::PROTO => {
                let version = operands.byte()?;
                if version > 5 {
                    return Err(PickleError::Protocol { version, at }.into());
                }
            }
            op::STOP => self.root = Some(self.pop("STOP", at)?),
            op::POP => self.pop_or_mark(at)?,
            op::POP_MARK => {
                let from = self.pop_mark("POP_MARK", at)?;
                self.stack.truncate(from);
            }
            op::DUP => {
                let top = self.top("DUP", at)?;
                self.heap.share(top, || true);
                self.stack.push(top);
            }
            _ => self.slow_opcode(code, operands, at)?,
        }
        Ok(())
    }

    /// The value of a memo entry. An open container becomes an object first.
    pub(crate) fn recall(&mut self, index: u32, at: ByteOffset) -> Result<Value, PickleError> {
        let value = self.memo.recall(index, at)?;
        if value.is_final() {
            return Ok(value);
        }
        let value = value.as_open().map_or(value, |(_, place)| self.materialize(place as usize));
        // A container that left the stack is in another one, or only in the memo.
        let newest = &self.stack[self.stack.len().saturating_sub(SEARCHED_VALUES)..];
        self.heap.share(value, || newest.contains(&value));
        Ok(value)
    }

    /// Creates the object of the open container at stack index `place`. Needed before something
    /// refers to the container, or before it is filled other than by one batch.
    #[inline(never)]
    pub(crate) fn materialize(&mut self, place: usize) -> Value {
        let container = self.stack[place];
        let Some((dict, memo)) = container.as_open() else { return container };
        let object = self.heap.new_memoized(dict, memo);
        self.memo.redirect(memo, Value::open(dict, place as u32), object);
        self.stack[place] = object;
        object
    }

    pub(crate) fn memoize(&mut self, index: u32, at: ByteOffset) -> Result<(), PickleError> {
        let value = self.top("MEMOIZE", at)?;
        if self.memo.put(index, value) {
            self.lists.forget();
        }
        self.heap.set_memo_index(value, index);
        Ok(())
    }

    pub(crate) fn top(&self, op: &'static str, at: ByteOffset) -> Result<Value, PickleError> {
        match self.stack.last() {
            Some(&value) if self.marks.last().is_none_or(|&m| (m as usize) < self.stack.len()) => {
                Ok(value)
            }
            _ => Err(stack(op, "a value on the stack", at)),
        }
    }

    pub(crate) fn pop(&mut self, op: &'static str, at: ByteOffset) -> Result<Value, PickleError> {
        let value = self.top(op, at)?;
        self.stack.pop();
        Ok(value)
    }

    pub(crate) fn pop_mark(
        &mut self,
        op: &'static str,
        at: ByteOffset,
    ) -> Result<usize, PickleError> {
        let from = self.marks.pop().ok_or(stack(op, "a mark on the stack", at))? as usize;
        if from > 0 && from <= self.stack.len() {
            self.materialize(from - 1);
        }
        Ok(from)
    }

    fn pop_or_mark(&mut self, at: ByteOffset) -> Result<(), PickleError> {
        if self.marks.last().is_some_and(|&m| m as usize == self.stack.len()) {
            return self.pop_mark("POP", at).map(drop);
        }
        self.pop("POP", at).map(drop)
    }

    pub(crate) fn push_int(&mut self, i: i128) {
        let value = self.heap.make_int(i);
        self.stack.push(value);
    }

    fn push_small(&mut self, i: i64) {
        match Value::small_int(i) {
            Some(value) => self.stack.push(value),
            None => self.push_int(i128::from(i)),
        }
    }

    /// Pushes an integer in little-endian two's complement of any length.
    fn push_long(&mut self, bytes: &[u8], at: ByteOffset) {
        let negative = bytes.last().is_some_and(|b| b & 0x80 != 0);
        let fill = if negative { 0xff } else { 0 };
        if bytes.len() <= 8 {
            // Addresses and most sizes. 128-bit arithmetic is slow in WebAssembly.
            let mut narrow = [fill; 8];
            narrow[..bytes.len()].copy_from_slice(bytes);
            self.push_small(i64::from_le_bytes(narrow));
            return;
        }
        if bytes.get(16..).is_some_and(|rest| rest.iter().any(|&b| b != fill)) {
            self.push_huge(at);
            return;
        }
        let mut wide = [fill; 16];
        let n = bytes.len().min(16);
        wide[..n].copy_from_slice(&bytes[..n]);
        self.push_int(i128::from_le_bytes(wide));
    }

    pub(crate) fn push_huge(&mut self, at: ByteOffset) {
        self.heap.note(Oddity::HugeInteger, at);
        self.stack.push(Value::NONE);
    }

    pub(crate) fn push_str(&mut self, bytes: &[u8]) {
        let value = self.heap.make_str(bytes);
        self.stack.push(value);
    }
}

pub(crate) fn stack(op: &'static str, expected: &'static str, at: ByteOffset) -> PickleError {
    PickleError::Stack { op, expected, at }
}

fn limit(what: &'static str, found: u64, limit: u64, at: ByteOffset) -> Result<usize, PickleError> {
    if found > limit {
        Err(PickleError::Limit { what, found, limit, at })
    } else {
        Ok(found as usize)
    }
}
