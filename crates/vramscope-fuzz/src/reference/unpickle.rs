//! Reads a pickle as CPython's `pickle.load` does, one object per value, without any shortcut.

use super::text::{ascii, index_line, int_line, long_line, quoted, raw_unicode_escape};
use std::collections::BTreeMap;

/// Why there is nothing to compare with: `pickle.load` raises an exception, or would run code, or
/// the reference gives up.
pub(super) type Unread = &'static str;
pub(super) type Result<T> = std::result::Result<T, Unread>;

/// The place of an object in [`Objects`]. Two places that hold one object hold the same id.
pub(super) type Id = usize;

/// Objects that the reference makes before it gives up.
const MAX_OBJECTS: usize = 1 << 22;
/// Nested tuples of a dict's key, before it gives up.
const MAX_KEY_DEPTH: usize = 16;

#[derive(Debug)]
pub(super) enum Object {
    None,
    Bool(bool),
    Int(i128),
    /// An integer of more than 128 bits, as its digits.
    Huge(Vec<u8>),
    Float(f64),
    Str(Vec<u8>),
    Bytes(Vec<u8>),
    ByteArray,
    Tuple(Vec<Id>),
    List(Vec<Id>),
    Dict(Dict),
    /// A class or function by its dotted name. Never called.
    Class(Vec<u8>),
    /// Something that only Python can build.
    Opaque,
}

/// A dict: keys stay in the order in which they were first set.
#[derive(Debug, Default)]
pub(super) struct Dict {
    pub(super) pairs: Vec<(Id, Id)>,
    places: BTreeMap<Key, usize>,
}

/// What Python compares of a key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    None,
    Int(i128),
    Huge(Vec<u8>),
    Float(u64),
    Str(Vec<u8>),
    Bytes(Vec<u8>),
    Class(Vec<u8>),
    Tuple(Vec<Key>),
}

impl Dict {
    /// The value of a string key.
    pub(super) fn get(&self, key: &str) -> Option<Id> {
        let place = self.places.get(&Key::Str(key.as_bytes().to_vec()))?;
        Some(self.pairs[*place].1)
    }
}

#[derive(Default)]
pub(super) struct Objects(Vec<Object>);

impl Objects {
    pub(super) fn get(&self, id: Id) -> &Object {
        &self.0[id]
    }

    fn key(&self, id: Id, depth: usize) -> Result<Key> {
        if depth > MAX_KEY_DEPTH {
            return Err("a deep key");
        }
        Ok(match self.get(id) {
            Object::None => Key::None,
            Object::Bool(b) => Key::Int(i128::from(*b)),
            Object::Int(i) => Key::Int(*i),
            Object::Huge(digits) => Key::Huge(digits.clone()),
            Object::Float(f) if f.fract() == 0.0 && f.abs() < 1e38 => Key::Int(*f as i128),
            Object::Float(f) if f.is_nan() => return Err("a key that equals nothing"),
            Object::Float(f) => Key::Float(f.to_bits()),
            Object::Str(text) => Key::Str(text.clone()),
            Object::Bytes(bytes) => Key::Bytes(bytes.clone()),
            Object::Class(name) => Key::Class(name.clone()),
            Object::Tuple(items) => {
                let items = items.iter().map(|&item| self.key(item, depth + 1));
                Key::Tuple(items.collect::<Result<_>>()?)
            }
            Object::ByteArray | Object::List(_) | Object::Dict(_) | Object::Opaque => {
                return Err("a key that cannot be hashed");
            }
        })
    }
}

struct Machine<'a> {
    rest: &'a [u8],
    objects: Objects,
    /// The stack. Each MARK begins another one.
    stacks: Vec<Vec<Id>>,
    memo: BTreeMap<u64, Id>,
}

/// The objects of a pickle, and its root.
pub(super) fn unpickle(bytes: &[u8]) -> Result<(Objects, Id)> {
    let mut machine = Machine {
        rest: bytes,
        objects: Objects::default(),
        stacks: vec![Vec::new()],
        memo: BTreeMap::new(),
    };
    loop {
        let code = machine.take(1)?[0];
        if code == b'.' {
            let root = machine.pop()?;
            return Ok((machine.objects, root));
        }
        machine.step(code)?;
        if machine.objects.0.len() > MAX_OBJECTS {
            return Err("too many objects");
        }
    }
}

impl<'a> Machine<'a> {
    fn step(&mut self, code: u8) -> Result<()> {
        match code {
            // Values.
            b'N' => self.push(Object::None),
            0x88 => self.push(Object::Bool(true)),
            0x89 => self.push(Object::Bool(false)),
            b'K' => self.signed(1, false),
            b'M' => self.signed(2, false),
            b'J' => self.signed(4, true),
            0x8a => {
                let n = self.length(1)?;
                self.signed(n, true)
            }
            0x8b => {
                let n = self.length(4)?;
                self.signed(n, true)
            }
            b'I' | b'L' => {
                let line = self.line()?;
                let object = if code == b'I' { int_line(line)? } else { long_line(line)? };
                self.push(object)
            }
            b'F' => {
                let line = std::str::from_utf8(self.line()?).map_err(|_| "not a float")?;
                let digits = line.trim_start_matches(['-', '+']);
                if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
                    return Err("an unusual float");
                }
                self.push(Object::Float(line.parse().map_err(|_| "not a float")?))
            }
            b'G' => {
                let bytes = self.take(8)?.try_into().map_err(|_| "a float")?;
                self.push(Object::Float(f64::from_be_bytes(bytes)))
            }
            0x8c | b'X' | 0x8d => {
                let n =
                    self.length(if code == b'X' { 4 } else { [1, 8][usize::from(code & 1)] })?;
                let text = self.take(n)?.to_vec();
                self.push(Object::Str(text))
            }
            b'U' | b'T' => {
                let n = self.length(if code == b'U' { 1 } else { 4 })?;
                let text = ascii(self.take(n)?.to_vec())?;
                self.push(text)
            }
            b'S' => {
                let text = ascii(quoted(self.line()?)?)?;
                self.push(text)
            }
            b'V' => {
                let text = raw_unicode_escape(self.line()?)?;
                self.push(Object::Str(text))
            }
            b'C' | b'B' | 0x8e => {
                let n = self
                    .length([1, 4, 8][usize::from(code == b'B') + usize::from(code == 0x8e) * 2])?;
                let bytes = self.take(n)?.to_vec();
                self.push(Object::Bytes(bytes))
            }
            0x96 => {
                let n = self.length(8)?;
                self.take(n)?;
                self.push(Object::ByteArray)
            }
            // Containers.
            b']' => self.push(Object::List(Vec::new())),
            b'}' => self.push(Object::Dict(Dict::default())),
            b'l' => {
                let items = self.pop_mark()?;
                self.push(Object::List(items))
            }
            b'd' => {
                let items = self.pop_mark()?;
                self.push(Object::Dict(Dict::default()))?;
                self.set(&items)
            }
            b')' => self.push(Object::Tuple(Vec::new())),
            0x85..=0x87 => {
                let mut items = Vec::new();
                for _ in 0x84..code {
                    items.insert(0, self.pop()?);
                }
                self.push(Object::Tuple(items))
            }
            b't' => {
                let items = self.pop_mark()?;
                self.push(Object::Tuple(items))
            }
            b'a' => {
                let item = self.pop()?;
                self.append(vec![item])
            }
            b'e' => {
                let items = self.pop_mark()?;
                self.append(items)
            }
            b's' => {
                let (value, key) = (self.pop()?, self.pop()?);
                self.set(&[key, value])
            }
            b'u' => {
                let items = self.pop_mark()?;
                self.set(&items)
            }
            // The stack and the memo.
            b'(' => {
                self.stacks.push(Vec::new());
                Ok(())
            }
            b'0' => {
                if self.stacks.len() > 1 && self.stacks.last().is_some_and(Vec::is_empty) {
                    return self.pop_mark().map(drop);
                }
                self.pop().map(drop)
            }
            b'1' => self.pop_mark().map(drop),
            b'2' => {
                let top = self.top()?;
                self.place(top)
            }
            b'g' | b'p' => {
                let index = index_line(self.line()?)?;
                self.memo(code == b'p', index)
            }
            b'h' | b'q' => {
                let index = self.length(1)? as u64;
                self.memo(code == b'q', index)
            }
            b'j' | b'r' => {
                let index = self.length(4)? as u64;
                self.memo(code == b'r', index)
            }
            0x94 => self.memo(true, self.memo.len() as u64),
            // Objects of classes.
            b'c' => {
                let (module, name) = (self.line()?, self.line()?);
                self.push(Object::Class([module, b".", name].concat()))
            }
            0x93 => {
                let (name, module) = (self.pop()?, self.pop()?);
                match (self.objects.get(module), self.objects.get(name)) {
                    (Object::Str(module), Object::Str(name)) => {
                        let dotted = [module, &b"."[..], name].concat();
                        self.push(Object::Class(dotted))
                    }
                    _ => Err("a class without a name"),
                }
            }
            b'R' | 0x81 => {
                let (args, class) = (self.pop()?, self.pop()?);
                let Object::Tuple(args) = self.objects.get(args) else {
                    return Err("a call without arguments");
                };
                let args = args.clone();
                self.call(class, &args)
            }
            0x92 => {
                let (kwargs, args, class) = (self.pop()?, self.pop()?, self.pop()?);
                match (self.objects.get(args), self.objects.get(kwargs)) {
                    (Object::Tuple(args), Object::Dict(_)) => {
                        let args = args.clone();
                        self.call(class, &args)
                    }
                    _ => Err("a call without arguments"),
                }
            }
            b'i' => {
                let (module, name) = (self.line()?, self.line()?);
                let args = self.pop_mark()?;
                self.push(Object::Class([module, b".", name].concat()))?;
                let class = self.pop()?;
                self.call(class, &args)
            }
            b'o' => {
                let items = self.pop_mark()?;
                let (&class, args) = items.split_first().ok_or("OBJ without a class")?;
                self.call(class, args)
            }
            b'b' => {
                let (state, object) = (self.pop()?, self.top()?);
                match (self.objects.get(state), self.objects.get(object)) {
                    (Object::None, _) | (_, Object::Opaque) => Ok(()),
                    _ => Err("a state for a list, a dict or a value"),
                }
            }
            0x8f => self.push(Object::Opaque),
            0x90 => {
                self.pop_mark()?;
                match self.objects.get(self.top()?) {
                    Object::Opaque => Ok(()),
                    _ => Err("ADDITEMS without a set"),
                }
            }
            0x91 => {
                self.pop_mark()?;
                self.push(Object::Opaque)
            }
            // Transport.
            0x80 => match self.take(1)?[0] {
                0..=5 => Ok(()),
                _ => Err("an unknown protocol"),
            },
            0x95 => self.take(8).map(drop),
            // PERSID, EXT1, NEXT_BUFFER and others need what only the program has.
            _ => Err("an opcode that raises"),
        }
    }

    fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(n).ok_or("the end")?;
        self.rest = rest;
        Ok(taken)
    }

    fn line(&mut self) -> Result<&'a [u8]> {
        let n = self.rest.iter().position(|&b| b == b'\n').ok_or("the end")?;
        let line = self.take(n)?;
        self.take(1)?;
        Ok(line)
    }

    /// An unsigned number of `n` bytes.
    fn length(&mut self, n: usize) -> Result<usize> {
        let bytes = self.take(n)?;
        let value = bytes.iter().rev().fold(0u64, |sum, &b| sum << 8 | u64::from(b));
        usize::try_from(value).map_err(|_| "a length")
    }

    /// Pushes an integer of `n` bytes.
    fn signed(&mut self, n: usize, is_signed: bool) -> Result<()> {
        let bytes = self.take(n)?;
        let fill = if is_signed && bytes.last().is_some_and(|b| b & 0x80 != 0) { 0xff } else { 0 };
        let mut digits = bytes.to_vec();
        while digits.len() > 16
            && digits[digits.len() - 1] == fill
            && (digits[digits.len() - 2] ^ fill) < 0x80
        {
            digits.pop();
        }
        if digits.len() > 16 {
            return self.push(Object::Huge(digits));
        }
        digits.resize(16, fill);
        self.push(Object::Int(i128::from_le_bytes(digits.try_into().map_err(|_| "an integer")?)))
    }

    fn push(&mut self, object: Object) -> Result<()> {
        self.objects.0.push(object);
        self.place(self.objects.0.len() - 1)
    }

    fn place(&mut self, id: Id) -> Result<()> {
        self.stacks.last_mut().ok_or("no stack")?.push(id);
        Ok(())
    }

    fn top(&self) -> Result<Id> {
        self.stacks.last().and_then(|stack| stack.last()).copied().ok_or("an empty stack")
    }

    fn pop(&mut self) -> Result<Id> {
        self.stacks.last_mut().and_then(Vec::pop).ok_or("an empty stack")
    }

    fn pop_mark(&mut self) -> Result<Vec<Id>> {
        if self.stacks.len() < 2 {
            return Err("no mark");
        }
        self.stacks.pop().ok_or("no mark")
    }

    fn memo(&mut self, is_put: bool, index: u64) -> Result<()> {
        if is_put {
            let top = self.top()?;
            self.memo.insert(index, top);
            return Ok(());
        }
        let id = *self.memo.get(&index).ok_or("a missing memo entry")?;
        self.place(id)
    }

    fn append(&mut self, items: Vec<Id>) -> Result<()> {
        let top = self.top()?;
        match &mut self.objects.0[top] {
            Object::List(list) => list.extend(items),
            Object::Opaque => {}
            _ if items.is_empty() => {}
            _ => return Err("items for something else than a list"),
        }
        Ok(())
    }

    fn set(&mut self, items: &[Id]) -> Result<()> {
        if !items.len().is_multiple_of(2) {
            return Err("a key without a value");
        }
        let top = self.top()?;
        for pair in items.chunks_exact(2) {
            if matches!(self.objects.get(top), Object::Opaque) {
                continue;
            }
            let key = self.objects.key(pair[0], 0)?;
            let Object::Dict(dict) = &mut self.objects.0[top] else {
                return Err("items for something else than a dict");
            };
            match dict.places.get(&key) {
                // The first key stays, with the new value.
                Some(&place) => dict.pairs[place].1 = pair[1],
                None => {
                    dict.places.insert(key, dict.pairs.len());
                    dict.pairs.push((pair[0], pair[1]));
                }
            }
        }
        Ok(())
    }

    /// A call. Only empty containers of the standard library are made.
    fn call(&mut self, class: Id, args: &[Id]) -> Result<()> {
        let Object::Class(name) = self.objects.get(class) else {
            return match self.objects.get(class) {
                Object::Opaque => self.push(Object::Opaque),
                _ => Err("a call of something other than a class"),
            };
        };
        let is_empty = args.iter().all(|&arg| match self.objects.get(arg) {
            Object::List(items) | Object::Tuple(items) => items.is_empty(),
            Object::Dict(dict) => dict.pairs.is_empty(),
            Object::None | Object::Class(_) => true,
            _ => false,
        });
        match &name[..] {
            b"collections.OrderedDict" | b"collections.defaultdict" | b"builtins.dict"
                if is_empty =>
            {
                self.push(Object::Dict(Dict::default()))
            }
            b"collections.deque" | b"builtins.list" if is_empty => {
                self.push(Object::List(Vec::new()))
            }
            b"torch.jit._pickle.restore_type_tag" if args.len() == 2 => self.place(args[0]),
            _ => self.push(Object::Opaque),
        }
    }
}
