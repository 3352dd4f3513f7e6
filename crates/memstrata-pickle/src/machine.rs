//! The stack machine: one opcode after the other.

use crate::error::{ByteOffset, PickleError};
use crate::heap::{Heap, Oddity};
use crate::memo::Memo;
use crate::opcode as op;
use crate::parser::Ran;
use crate::reader::{Missing, Reader};
use crate::sink::Sink;
use crate::text;
use crate::value::{Kind, Slot, StrId, Value};

/// No string of a snapshot comes near this; a declared length beyond it is damage.
const MAX_BYTES: u64 = 1 << 30;
/// Deeper nesting than any recorder writes, at four bytes each.
const MAX_DEPTH: u64 = 1 << 20;
/// The opcode and its operand.
const LONG_BINGET_LEN: usize = 5;

pub(crate) struct Machine<S> {
    pub(crate) sink: S,
    pub(crate) heap: Heap,
    pub(crate) root: Option<Value>,
    stack: Vec<Value>,
    marks: Vec<u32>,
    memo: Memo,
}

/// Why an operation did not happen: it is not all there yet, or it is wrong.
enum Halt {
    Missing(Missing),
    Error(PickleError),
}

impl From<Missing> for Halt {
    fn from(missing: Missing) -> Self {
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
        Self { sink, heap, root: None, stack: Vec::new(), marks: Vec::new(), memo: Memo::default() }
    }

    pub(crate) fn memory(&self) -> usize {
        self.heap.memory() + self.memo.memory() + self.stack.capacity() * size_of::<Value>() + self.marks.capacity() * 4
    }

    /// Run over `bytes`, which stand at `base` in the stream, as far as whole operations go.
    pub(crate) fn run(&mut self, bytes: &[u8], base: ByteOffset) -> Result<Ran, PickleError> {
        let mut reader = Reader::new(bytes);
        while self.root.is_none() {
            let start = reader.pos;
            // Three quarters of a snapshot's bytes are references to shared frames: a loop of its own for them.
            let rest = &bytes[start..];
            let run = rest.chunks_exact(LONG_BINGET_LEN).take_while(|c| c[0] == op::LONG_BINGET).count();
            if run > 0 {
                self.memo.recall_run(&rest[..run * LONG_BINGET_LEN], &mut self.stack, base + start as u64)?;
                reader.pos += run * LONG_BINGET_LEN;
                continue;
            }
            let Ok(code) = reader.byte() else {
                return Ok(Ran::Needs { used: start, missing: 1 });
            };
            match self.execute(code, &mut reader, base + start as u64, base) {
                Ok(()) => {}
                Err(Halt::Missing(Missing(missing))) => return Ok(Ran::Needs { used: start, missing }),
                Err(Halt::Error(error)) => return Err(error),
            }
        }
        Ok(Ran::Stopped { used: reader.pos })
    }

    /// One operation. Nothing is changed before all its operands are there, so that it can be tried again.
    #[inline]
    fn execute(&mut self, code: u8, reader: &mut Reader<'_>, at: ByteOffset, base: ByteOffset) -> Result<(), Halt> {
        match code {
            op::BINGET => {
                let index = reader.byte()?;
                let value = self.memo.recall(u32::from(index), at)?;
                self.stack.push(value);
            }
            op::LONG_BINGET => {
                // Only one that the end of the piece cut comes here, to say so.
                let index = reader.u32()?;
                let value = self.memo.recall(index, at)?;
                self.stack.push(value);
            }
            op::MEMOIZE => self.memoize(self.memo.next(), at)?,
            op::BINPUT => {
                let index = reader.byte()?;
                self.memoize(u32::from(index), at)?;
            }
            op::LONG_BINPUT => {
                let index = reader.u32()?;
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
            op::SETITEMS => self.batch("SETITEMS", true, at, base + reader.pos as u64)?,
            op::APPENDS => self.batch("APPENDS", false, at, base + reader.pos as u64)?,
            op::SETITEM => self.single("SETITEM", 2, at)?,
            op::APPEND => self.single("APPEND", 1, at)?,
            op::BININT => {
                let i = i32::from_le_bytes(reader.array()?);
                self.push_small(i64::from(i));
            }
            op::BININT1 => {
                let i = reader.byte()?;
                self.push_small(i64::from(i));
            }
            op::BININT2 => {
                let i = u16::from_le_bytes(reader.array()?);
                self.push_small(i64::from(i));
            }
            op::LONG1 => {
                let n = reader.byte()?;
                let bytes = reader.take(usize::from(n))?;
                self.push_long(bytes, at);
            }
            op::LONG4 => {
                let n = limit("an integer", u64::from(reader.u32()?), MAX_BYTES, at)?;
                let bytes = reader.take(n)?;
                self.push_long(bytes, at);
            }
            op::SHORT_BINUNICODE | op::SHORT_BINSTRING => {
                let n = reader.byte()?;
                let bytes = reader.take(usize::from(n))?;
                self.push_str(bytes);
            }
            op::BINUNICODE | op::BINSTRING => {
                let n = limit("a string", u64::from(reader.u32()?), MAX_BYTES, at)?;
                let bytes = reader.take(n)?;
                self.push_str(bytes);
            }
            op::BINUNICODE8 => {
                let n = limit("a string", u64::from_le_bytes(reader.array()?), MAX_BYTES, at)?;
                let bytes = reader.take(n)?;
                self.push_str(bytes);
            }
            op::SHORT_BINBYTES => {
                let n = reader.byte()?;
                reader.take(usize::from(n))?;
                self.stack.push(Value::BYTES);
            }
            op::BINBYTES => {
                let n = limit("bytes", u64::from(reader.u32()?), MAX_BYTES, at)?;
                reader.take(n)?;
                self.stack.push(Value::BYTES);
            }
            op::BINBYTES8 | op::BYTEARRAY8 => {
                let n = limit("bytes", u64::from_le_bytes(reader.array()?), MAX_BYTES, at)?;
                reader.take(n)?;
                self.stack.push(Value::BYTES);
            }
            op::NONE => self.stack.push(Value::NONE),
            op::NEWTRUE => self.stack.push(Value::bool(true)),
            op::NEWFALSE => self.stack.push(Value::bool(false)),
            op::BINFLOAT => {
                let f = f64::from_be_bytes(reader.array()?);
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
                // Frames only help readers that prefetch.
                reader.take(8)?;
            }
            op::PROTO => {
                let version = reader.byte()?;
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
                self.stack.push(top);
            }
            _ => self.rare(code, reader, at)?,
        }
        Ok(())
    }

    /// Protocols 0 and 1, and everything that only Python could build.
    #[cold]
    #[inline(never)]
    fn rare(&mut self, code: u8, reader: &mut Reader<'_>, at: ByteOffset) -> Result<(), Halt> {
        match code {
            op::INT => match reader.line()? {
                b"00" => self.stack.push(Value::bool(false)),
                b"01" => self.stack.push(Value::bool(true)),
                line => {
                    let i = text::decimal(line, at)?;
                    self.push_text_int(i, at);
                }
            },
            op::LONG => {
                let line = reader.line()?;
                let i = text::decimal(line.strip_suffix(b"L").unwrap_or(line), at)?;
                self.push_text_int(i, at);
            }
            op::FLOAT => {
                let f = text::float(reader.line()?, at)?;
                let value = self.heap.make_float(f);
                self.stack.push(value);
            }
            op::STRING => {
                let s = text::quoted(reader.line()?, at)?;
                self.push_str(&s);
            }
            op::UNICODE => {
                let s = text::raw_unicode_escape(reader.line()?, at)?;
                self.push_str(&s);
            }
            op::GET => {
                let index = text::index(reader.line()?, at)?;
                let value = self.memo.recall(index, at)?;
                self.stack.push(value);
            }
            op::PUT => {
                let index = text::index(reader.line()?, at)?;
                self.memoize(index, at)?;
            }
            op::DICT | op::LIST => {
                let from = self.pop_mark("DICT or LIST", at)?;
                let container = if code == op::DICT { self.heap.new_dict() } else { self.heap.new_list() };
                self.stack.insert(from, container);
                self.marks.push(from as u32 + 1);
                self.batch("DICT or LIST", code == op::DICT, at, at + 1)?;
            }
            op::GLOBAL => {
                let module = reader.line()?;
                let name = reader.line()?;
                self.push_class(module, name);
            }
            op::STACK_GLOBAL => {
                let [module, name] = self.pop_strings("STACK_GLOBAL", at)?;
                let (module, name) = (self.heap.strings.bytes(module).to_vec(), self.heap.strings.bytes(name).to_vec());
                self.push_class(&module, &name);
            }
            op::REDUCE | op::NEWOBJ => {
                let args = self.pop("REDUCE", at)?;
                let class = self.pop("REDUCE", at)?;
                self.call(class, args, at);
            }
            op::NEWOBJ_EX => {
                self.pop("NEWOBJ_EX", at)?;
                let args = self.pop("NEWOBJ_EX", at)?;
                let class = self.pop("NEWOBJ_EX", at)?;
                self.call(class, args, at);
            }
            op::BUILD => {
                // The state is dropped: the object stays closed.
                self.pop("BUILD", at)?;
                self.top("BUILD", at)?;
            }
            op::INST => {
                let module = reader.line()?;
                let name = reader.line()?;
                let from = self.pop_mark("INST", at)?;
                self.stack.truncate(from);
                self.push_class(module, name);
                let class = self.pop("INST", at)?;
                self.call(class, Value::NONE, at);
            }
            op::OBJ => {
                let from = self.pop_mark("OBJ", at)?;
                let class = *self.stack.get(from).ok_or(stack("OBJ", "a class after its mark", at))?;
                self.stack.truncate(from);
                self.call(class, Value::NONE, at);
            }
            op::EMPTY_SET => self.push_opaque("set", at),
            op::FROZENSET => {
                let from = self.pop_mark("FROZENSET", at)?;
                self.stack.truncate(from);
                self.push_opaque("frozenset", at);
            }
            op::ADDITEMS => {
                let from = self.pop_mark("ADDITEMS", at)?;
                self.stack.truncate(from);
                self.top("ADDITEMS", at)?;
            }
            op::PERSID => {
                reader.line()?;
                self.push_opaque("persistent id", at);
            }
            op::BINPERSID => {
                self.pop("BINPERSID", at)?;
                self.push_opaque("persistent id", at);
            }
            op::EXT1 | op::EXT2 | op::EXT4 => {
                reader.take([1, 2, 4][usize::from(code - op::EXT1)])?;
                self.push_opaque("extension", at);
            }
            op::NEXT_BUFFER => self.push_opaque("buffer", at),
            op::READONLY_BUFFER => {
                self.top("READONLY_BUFFER", at)?;
            }
            code => return Err(PickleError::UnknownOpcode { code, at }.into()),
        }
        Ok(())
    }

    fn memoize(&mut self, index: u32, at: ByteOffset) -> Result<(), PickleError> {
        let value = self.top("MEMOIZE", at)?;
        self.memo.put(index, value);
        self.heap.memoized(value, index);
        Ok(())
    }

    fn top(&self, op: &'static str, at: ByteOffset) -> Result<Value, PickleError> {
        match self.stack.last() {
            Some(&value) if self.marks.last().is_none_or(|&m| (m as usize) < self.stack.len()) => Ok(value),
            _ => Err(stack(op, "a value on the stack", at)),
        }
    }

    fn pop(&mut self, op: &'static str, at: ByteOffset) -> Result<Value, PickleError> {
        let value = self.top(op, at)?;
        self.stack.pop();
        Ok(value)
    }

    fn pop_mark(&mut self, op: &'static str, at: ByteOffset) -> Result<usize, PickleError> {
        self.marks.pop().map(|m| m as usize).ok_or(stack(op, "a mark on the stack", at))
    }

    fn pop_or_mark(&mut self, at: ByteOffset) -> Result<(), PickleError> {
        if self.marks.last().is_some_and(|&m| m as usize == self.stack.len()) {
            self.marks.pop();
            return Ok(());
        }
        self.pop("POP", at).map(drop)
    }

    fn pop_strings(&mut self, op: &'static str, at: ByteOffset) -> Result<[StrId; 2], PickleError> {
        let (second, first) = (self.pop(op, at)?, self.pop(op, at)?);
        match (first.kind(), second.kind()) {
            (Kind::Str(first), Kind::Str(second)) => Ok([first, second]),
            _ => Err(stack(op, "two strings", at)),
        }
    }

    fn push_int(&mut self, i: i128) {
        let value = self.heap.make_int(i);
        self.stack.push(value);
    }

    fn push_small(&mut self, i: i64) {
        match Value::small_int(i) {
            Some(value) => self.stack.push(value),
            None => self.push_int(i128::from(i)),
        }
    }

    /// Little-endian two's complement of any length.
    fn push_long(&mut self, bytes: &[u8], at: ByteOffset) {
        let negative = bytes.last().is_some_and(|b| b & 0x80 != 0);
        let fill = if negative { 0xff } else { 0 };
        if bytes.len() <= 8 {
            // Every address and most sizes; 128 bits at a time are slow on wasm.
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

    fn push_text_int(&mut self, i: Option<i128>, at: ByteOffset) {
        match i {
            Some(i) => self.push_int(i),
            None => self.push_huge(at),
        }
    }

    fn push_huge(&mut self, at: ByteOffset) {
        self.heap.note(Oddity::HugeInteger, at);
        self.stack.push(Value::NONE);
    }

    fn push_str(&mut self, bytes: &[u8]) {
        let value = self.heap.make_str(bytes);
        self.stack.push(value);
    }

    fn push_class(&mut self, module: &[u8], name: &[u8]) {
        let dotted = [module, b".", name].concat();
        let id = self.heap.strings.intern(&dotted);
        self.stack.push(Value::class(id));
    }

    fn push_opaque(&mut self, what: &str, at: ByteOffset) {
        let name = self.heap.strings.intern(what.as_bytes());
        self.heap.note(Oddity::Opaque(name), at);
        self.stack.push(Value::opaque(name));
    }

    /// What a call would make. Nothing is called: containers that are dicts and lists by another name become those,
    /// TorchScript's type tags are unwrapped, everything else stays closed.
    fn call(&mut self, class: Value, args: Value, at: ByteOffset) {
        let name = match class.kind() {
            Kind::Class(name) | Kind::Opaque(name) => name,
            _ => self.heap.strings.intern(b"an object that is no class"),
        };
        let args = self.heap.items(args);
        let value = match self.heap.strings.bytes(name) {
            b"collections.OrderedDict" | b"collections.defaultdict" | b"builtins.dict" => self.heap.new_dict(),
            b"collections.deque" | b"builtins.list" => self.heap.new_list(),
            b"torch.jit._pickle.restore_type_tag" if !args.is_empty() => args[0],
            _ => {
                self.heap.note(Oddity::Opaque(name), at);
                Value::opaque(name)
            }
        };
        self.stack.push(value);
    }

    fn push_tuple(&mut self, n: usize, at: ByteOffset) -> Result<(), PickleError> {
        let floor = self.marks.last().map_or(0, |&m| m as usize);
        let from = self.stack.len().checked_sub(n).filter(|&from| from >= floor);
        let from = from.ok_or(stack("TUPLE", "as many values as the tuple has", at))?;
        self.settle(from, at);
        let items = &self.stack[from..];
        let value = self.sink.tuple(&mut self.heap, items, at);
        let value = value.unwrap_or_else(|| self.heap.make_tuple(items));
        self.stack.truncate(from);
        self.stack.push(value);
        Ok(())
    }

    /// SETITEMS, APPENDS, DICT, LIST: what stands above the mark goes into the container below it.
    fn batch(&mut self, op: &'static str, dict: bool, at: ByteOffset, end: ByteOffset) -> Result<(), PickleError> {
        let from = self.pop_mark(op, at)?;
        if from > self.stack.len() {
            return Err(stack(op, "a container below its mark", at));
        }
        self.fill(op, from, Fill { dict, whole: true }, at, end)
    }

    /// SETITEM, APPEND: `n` values go into the container below them.
    fn single(&mut self, op: &'static str, n: usize, at: ByteOffset) -> Result<(), PickleError> {
        let from = self.stack.len().checked_sub(n).ok_or(stack(op, "a container and what goes into it", at))?;
        self.fill(op, from, Fill { dict: n == 2, whole: false }, at, at + 1)
    }

    /// The values from `from` on go into the container below them.
    fn fill(
        &mut self,
        op: &'static str,
        from: usize,
        fill: Fill,
        at: ByteOffset,
        end: ByteOffset,
    ) -> Result<(), PickleError> {
        if from <= self.marks.last().map_or(0, |&m| m as usize) {
            return Err(stack(op, "a container below its items", at));
        }
        if fill.dict && (self.stack.len() - from) % 2 == 1 {
            return Err(stack(op, "a value for every key", at));
        }
        self.settle(from, end);
        let container = self.stack[from - 1];
        let items = &self.stack[from..];
        let (id, slot) = match (container.kind(), fill.dict) {
            (Kind::Dict(id), true) | (Kind::List(id), false) => (Some(id), self.heap.slot(id)),
            // A container that was taken, and came back from the memo as what stands for it; or one that is closed.
            _ => (None, Slot::Taken(container)),
        };
        let so_far = match slot {
            Slot::Taken(instead) if matches!(instead.kind(), Kind::Ext(..)) => Some(instead),
            Slot::Empty(_) if fill.whole => None,
            not_offered => {
                match not_offered {
                    Slot::Taken(_) => self.heap.note(Oddity::StrayItems, at),
                    Slot::Stored(_) if fill.whole => self.heap.extend(container, items),
                    Slot::Stored(_) | Slot::Empty(_) => self.heap.extend_unsettled(container, items),
                }
                self.stack.truncate(from);
                return Ok(());
            }
        };
        let taken = if items.is_empty() {
            so_far
        } else if fill.dict {
            self.sink.dict(&mut self.heap, so_far, items, end)
        } else {
            self.sink.list(&mut self.heap, so_far, items, end)
        };
        match (taken, so_far) {
            (Some(instead), _) => {
                if let Some(id) = id {
                    self.heap.take(id, instead);
                }
                if let Slot::Empty(Some(index)) = slot {
                    self.memo.redirect(index, container, instead);
                }
                self.stack[from - 1] = instead;
            }
            (None, None) => self.heap.extend(container, items),
            (None, Some(_)) => self.heap.note(Oddity::StrayItems, at),
        }
        self.stack.truncate(from);
        Ok(())
    }

    /// Offer the sink those values from `from` on that were filled one by one and are used now for the first time.
    fn settle(&mut self, from: usize, at: ByteOffset) {
        if !self.heap.any_unsettled() {
            return;
        }
        for i in from..self.stack.len() {
            let value = self.stack[i];
            let Some((id, items)) = self.heap.lend_unsettled(value) else {
                self.stack[i] = self.heap.resolve(value);
                continue;
            };
            if let Some(instead) = self.offer(value, &items, at) {
                self.heap.take(id, instead);
                self.stack[i] = instead;
            } else {
                self.heap.give_back(id, items);
            }
        }
    }

    fn offer(&mut self, value: Value, items: &[Value], at: ByteOffset) -> Option<Value> {
        match value.kind() {
            Kind::List(_) => self.sink.list(&mut self.heap, None, items, at),
            _ => self.sink.dict(&mut self.heap, None, items, at),
        }
    }
}

/// How a container is being filled.
#[derive(Clone, Copy)]
struct Fill {
    /// Keys and values, or items.
    dict: bool,
    /// By a batch, after which the sink is asked at once; or one by one.
    whole: bool,
}

fn stack(op: &'static str, expected: &'static str, at: ByteOffset) -> PickleError {
    PickleError::Stack { op, expected, at }
}

fn limit(what: &'static str, found: u64, limit: u64, at: ByteOffset) -> Result<usize, PickleError> {
    if found > limit { Err(PickleError::Limit { what, found, limit, at }) } else { Ok(found as usize) }
}
