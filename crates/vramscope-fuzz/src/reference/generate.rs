//! Writes pickles of snapshots in legal forms that no recorder writes.
//!
//! Every choice is a byte of the input, so that a fuzzer which changes a byte changes one choice.
//! Where the input ends, each choice is the plain one.

use super::kinds::{CONTAINERS, KINDS, Kind};
use std::collections::BTreeSet;

/// Values of a pickle. The rest is plain.
const MAX_VALUES: usize = 3000;
/// Items of a list in several batches.
const LONG_LIST: usize = 1001;

struct Writer<'a> {
    choices: &'a [u8],
    out: Vec<u8>,
    /// Memo entries that were written.
    written: BTreeSet<u32>,
    next: u32,
    /// Memo entries by the kind of their value.
    known: [Vec<u32>; KINDS],
    values: usize,
    habits: u8,
    depth: usize,
}

/// What a pickle does at all. One with everything would nearly always be an error.
mod habit {
    pub(super) const SHARE: u8 = 1;
    pub(super) const BATCHES: u8 = 2;
    pub(super) const SINGLE: u8 = 4;
    pub(super) const LATE: u8 = 8;
    pub(super) const STRAY: u8 = 16;
    pub(super) const OBJECTS: u8 = 32;
    pub(super) const SPARSE: u8 = 64;
    pub(super) const AGAIN: u8 = 128;
}

/// The pickle that the bytes describe.
pub(super) fn pickle(choices: &[u8]) -> Vec<u8> {
    let mut writer = Writer {
        choices,
        out: Vec::new(),
        written: BTreeSet::new(),
        next: 0,
        known: std::array::from_fn(|_| Vec::new()),
        values: 0,
        habits: 0,
        depth: 0,
    };
    writer.habits = writer.byte();
    let protocol = writer.choice(6);
    if protocol >= 2 {
        writer.out.extend([0x80, protocol]);
    }
    let root = if writer.chance(16) { Kind::Segments } else { Kind::Root };
    writer.value(root);
    writer.out.push(b'.');
    writer.out
}

impl Writer<'_> {
    fn byte(&mut self) -> u8 {
        match self.choices.split_first() {
            Some((&byte, rest)) => {
                self.choices = rest;
                byte
            }
            None => 0,
        }
    }

    /// A choice of `n`.
    fn choice(&mut self, n: usize) -> u8 {
        (usize::from(self.byte()) % n.max(1)) as u8
    }

    /// Yes for this many of 256 bytes, but not for 0.
    fn chance(&mut self, of: u8) -> bool {
        self.byte() > 255 - of
    }

    fn has(&mut self, habit: u8, of: u8) -> bool {
        self.habits & habit != 0 && self.chance(of)
    }

    fn emit(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// Stores the top of the stack as a value of this kind.
    fn put(&mut self, kind: Kind) -> u32 {
        let jump = if self.has(habit::SPARSE, 64) { self.byte() } else { 0 };
        let index = match jump {
            0 => self.next,
            // An entry that has a value already.
            1..=40 => self.next.saturating_sub(u32::from(jump)),
            _ => self.next + u32::from(jump) * if jump > 200 { 300 } else { 1 },
        };
        let form = self.choice(4);
        let count = self.written.len() as u32;
        let index = match form {
            0 => {
                self.emit(b"\x94");
                count
            }
            1 if index < 256 => {
                self.emit(&[b'q', index as u8]);
                index
            }
            2 => {
                self.emit(format!("p{index}\n").as_bytes());
                index
            }
            _ => {
                self.emit(b"r");
                self.emit(&index.to_le_bytes());
                index
            }
        };
        self.written.insert(index);
        self.next = self.next.max(index + 1);
        for known in &mut self.known {
            known.retain(|&other| other != index);
        }
        self.known[kind as usize].push(index);
        index
    }

    fn get(&mut self, index: u32) {
        match self.choice(3) {
            0 if index < 256 => self.emit(&[b'h', index as u8]),
            1 => self.emit(format!("g{index}\n").as_bytes()),
            _ => {
                self.emit(b"j");
                self.emit(&index.to_le_bytes());
            }
        }
    }

    fn known(&mut self, kind: Kind) -> Option<u32> {
        let n = self.known[kind as usize].len();
        (n > 0).then(|| {
            let back = usize::from(self.choice(n.min(256)));
            self.known[kind as usize][n - 1 - back]
        })
    }

    /// Pushes a value.
    fn value(&mut self, kind: Kind) {
        self.values += 1;
        if self.values > MAX_VALUES || self.depth > 12 {
            self.emit(b"N");
            return;
        }
        if self.chance(6) {
            self.noise();
        }
        if self.has(habit::SHARE, 110)
            && let Some(index) = self.known(kind)
        {
            self.get(index);
            return;
        }
        let kind = if self.has(habit::STRAY, 12) { self.any_kind() } else { kind };
        self.depth += 1;
        self.new_value(kind);
        self.depth -= 1;
    }

    fn any_kind(&mut self) -> Kind {
        match self.choice(4) {
            0 => Kind::Anything,
            1 => Kind::Size,
            2 => Kind::Text,
            _ => {
                let i = self.choice(CONTAINERS.len());
                CONTAINERS[usize::from(i)]
            }
        }
    }

    fn new_value(&mut self, kind: Kind) {
        match kind {
            Kind::Size | Kind::Address | Kind::Count => self.number(kind),
            Kind::Pool => {
                self.number(Kind::Count);
                self.number(Kind::Count);
                self.emit(b"\x86");
            }
            Kind::Anything => {
                let form = self.choice(9);
                let forms: [&[u8]; 9] = [
                    b"N",
                    b"\x88",
                    b"\x89",
                    b"]",
                    b"}",
                    b")",
                    b"\x8f",
                    b"C\x01x",
                    b"cos\nsystem\n",
                ];
                self.emit(forms[usize::from(form)]);
            }
            _ if kind.item().is_some() => self.list(kind),
            _ if !kind.fields().is_empty() => self.dict(kind),
            _ => self.text(kind),
        }
        let takes_items = CONTAINERS.contains(&kind);
        if !takes_items && self.chance(40) {
            self.put(kind);
        }
    }

    fn noise(&mut self) {
        let form = self.choice(5);
        let forms: [&[u8]; 5] = [b"N0", b"(NN1", b"K\x0720", b"(0", b"]0"];
        self.emit(forms[usize::from(form)]);
        if form == 2 {
            self.emit(b"0");
        }
    }

    /// An empty container.
    fn begin(&mut self, is_dict: bool) {
        let object = if self.has(habit::OBJECTS, 60) { 1 + self.choice(5) } else { 0 };
        let name: &[u8] = if is_dict { b"collections\nOrderedDict\n" } else { b"builtins\nlist\n" };
        match object {
            0 => self.emit(if is_dict { b"}" } else { b"]" }),
            1 => self.emit(&[b"c", name, b")R"].concat()),
            2 => self.emit(&[b"c", name, b")\x81Nb"].concat()),
            3 => self.emit(&[b"(i", name].concat()),
            4 => self.emit(&[b"(c", name, b"o"].concat()),
            _ => self.emit(if is_dict { b"(d" } else { b"(l" }),
        }
    }

    fn list(&mut self, kind: Kind) {
        let Some(item) = kind.item() else { return };
        let n = match self.choice(20) {
            0 => 1,
            19 if kind == Kind::Stack || kind == Kind::Trace => LONG_LIST,
            n => usize::from(n) % 5,
        };
        if self.chance(20) {
            self.emit(b"(");
            (0..n.min(5)).for_each(|_| self.value(item));
            self.emit(b"l");
            self.put(kind);
            return;
        }
        self.begin(false);
        self.put(kind);
        if n == LONG_LIST {
            self.long_list(item);
            return;
        }
        let items = vec![("", item); n];
        self.fill(&items, false);
    }

    /// More items than CPython writes in a batch, most of them one object.
    fn long_list(&mut self, item: Kind) {
        self.emit(b"(");
        self.value(item);
        let shared = self.put(item);
        for _ in 2..LONG_LIST {
            self.emit(b"j");
            self.emit(&shared.to_le_bytes());
        }
        self.emit(b"e(");
        self.value(item);
        self.emit(b"e");
    }

    fn dict(&mut self, kind: Kind) {
        let all = kind.fields();
        let mut fields: Vec<(&str, Kind)> = all.to_vec();
        // Most have the first keys only.
        let least = if kind == Kind::Root { 2 } else { 3 };
        let more = self.choice(fields.len() + 1);
        fields.truncate(least.max(usize::from(more)));
        if self.chance(40) {
            let turn = self.choice(fields.len());
            fields.rotate_left(usize::from(turn));
        }
        if self.has(habit::AGAIN, 80) {
            let which = fields[usize::from(self.choice(fields.len()))];
            let place = usize::from(self.choice(fields.len()));
            fields.insert(place, which);
        }
        if self.has(habit::STRAY, 30) {
            // A key of another kind of dict.
            let other = self.any_kind().fields();
            if !other.is_empty() {
                let which = other[usize::from(self.choice(other.len()))];
                let place = usize::from(self.choice(fields.len() + 1));
                fields.insert(place, which);
            }
        }
        if self.chance(20) {
            self.emit(b"(");
            for (key, kind) in fields {
                self.key(key);
                self.value(kind);
            }
            self.emit(b"d");
            self.put(kind);
            return;
        }
        self.begin(true);
        if !self.chance(30) {
            self.put(kind);
        }
        self.fill(&fields, true);
    }

    /// Fills the container on top of the stack.
    fn fill(&mut self, items: &[(&str, Kind)], is_dict: bool) {
        let mut rest = items;
        while !rest.is_empty() {
            let is_single = self.has(habit::SINGLE, 120);
            let n = if is_single {
                1
            } else if self.has(habit::BATCHES, 100) {
                1 + usize::from(self.choice(rest.len()))
            } else {
                rest.len()
            };
            let (batch, later) = rest.split_at(n);
            rest = later;
            if !is_single {
                self.emit(b"(");
            }
            for &(key, kind) in batch {
                if is_dict {
                    self.key(key);
                }
                self.value(kind);
            }
            self.emit(match (is_single, is_dict) {
                (true, true) => b"s",
                (true, false) => b"a",
                (false, true) => b"u",
                (false, false) => b"e",
            });
            if self.has(habit::LATE, 40) {
                self.change();
            }
        }
    }

    /// Changes a container that was written before.
    fn change(&mut self) {
        let kind = CONTAINERS[usize::from(self.choice(CONTAINERS.len()))];
        let Some(index) = self.known(kind) else { return };
        self.get(index);
        match kind.item() {
            Some(item) if self.chance(128) => {
                self.value(item);
                self.emit(b"a");
            }
            Some(item) => {
                self.emit(b"(");
                self.value(item);
                self.emit(b"e");
            }
            None => {
                let fields = kind.fields();
                let (key, value) = fields[usize::from(self.choice(fields.len()))];
                self.key(key);
                self.value(value);
                self.emit(b"s");
            }
        }
        self.emit(b"0");
    }

    fn key(&mut self, key: &str) {
        let form = self.choice(8);
        self.string(key, form);
    }

    fn text(&mut self, kind: Kind) {
        let texts = kind.texts();
        let text = texts[usize::from(self.choice(texts.len()))];
        let form = self.choice(8);
        self.string(text, form);
    }

    fn string(&mut self, text: &str, form: u8) {
        let bytes = text.as_bytes();
        let is_plain = text.is_ascii() && !bytes.contains(&b'\\') && !bytes.contains(&b'\'');
        match form {
            1 => {
                self.emit(b"\x8d");
                self.emit(&(bytes.len() as u64).to_le_bytes());
                self.emit(bytes);
            }
            2 => {
                self.emit(b"X");
                self.emit(&(bytes.len() as u32).to_le_bytes());
                self.emit(bytes);
            }
            // As it is: a backslash may begin an escape.
            3 => {
                self.emit(b"V");
                text.chars().for_each(|c| self.out.push(u32::from(c) as u8));
                self.emit(b"\n");
            }
            4 if text.is_ascii() => self.emit(&[b"S'", bytes, b"'\n"].concat()),
            5 if is_plain => {
                self.emit(b"S\"");
                for byte in bytes {
                    self.emit(format!("\\{byte:03o}").as_bytes());
                }
                self.emit(b"\"\n");
            }
            6 if text.is_ascii() => self.emit(&[b"U", &[bytes.len() as u8][..], bytes].concat()),
            7 if text.is_ascii() => {
                self.emit(b"T");
                self.emit(&(bytes.len() as u32).to_le_bytes());
                self.emit(bytes);
            }
            _ => self.emit(&[b"\x8c", &[bytes.len() as u8][..], bytes].concat()),
        }
    }

    fn number(&mut self, kind: Kind) {
        let small = i64::from(self.byte());
        let number = match kind {
            Kind::Size => (small % 16) << 9,
            Kind::Address => 0x7f00_0000_0000 + ((small % 32) << 9),
            _ => small % 4,
        };
        match self.choice(16) {
            0..=5 => {
                self.emit(b"\x8a\x08");
                self.emit(&number.to_le_bytes());
            }
            6 => self.emit(format!("I{number}\n").as_bytes()),
            7 => self.emit(format!("L{number}L\n").as_bytes()),
            8 => self.emit(format!("F{number}.0\n").as_bytes()),
            9 => {
                self.emit(b"G");
                self.emit(&(number as f64).to_be_bytes());
            }
            10 => self.string(&number.to_string(), 0),
            11 => {
                self.emit(b"\x8b\x14\0\0\0");
                self.emit(&i128::from(number).to_le_bytes());
                self.emit(&[0; 4]);
            }
            12 => self.emit(&[b'K', number as u8]),
            13 => {
                self.emit(b"J");
                self.emit(&(number as i32).to_le_bytes());
            }
            14 => {
                let form = self.choice(8);
                let odd: [&[u8]; 8] = [
                    b"I01\n",
                    b"I-7\n",
                    b"N",
                    b"J\xff\xff\xff\xff",
                    b"\x8a\x09\0\0\0\0\0\0\0\x80\0",
                    b"\x8b\x12\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01",
                    b"F0.5\n",
                    b"L00L\n",
                ];
                self.emit(odd[usize::from(form)]);
            }
            _ => {
                self.emit(b"M");
                self.emit(&(number as u16).to_le_bytes());
            }
        }
    }
}
