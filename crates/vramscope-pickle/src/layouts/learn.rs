//! How the dicts that come after this one will probably be written: what of its bytes stays.

use super::{FEW, Few, Layout, Operand, OperandKind, Part, WIDE};
use crate::hot::WINDOW;
use crate::opcode as op;
use crate::sink::Keys;
use crate::value::{Kind, Value};

/// The shortest LONG1 that is taken to be as long in the next dict: addresses and times are, sizes
/// are not.
const STEADY: u8 = 6;

impl<T: Copy> Few<T> {
    const fn of(nothing: T) -> Self {
        Self { all: [nothing; FEW], len: 0 }
    }

    fn push(&mut self, item: T) {
        self.all[self.len] = item;
        self.len += 1;
    }
}

impl Part {
    const EMPTY: Self = Self {
        bytes: [0; WIDE],
        same: [0; WIDE],
        len: 0,
        operands: Few::of(Operand { at: 0, item: 0, kind: OperandKind::First }),
        memoized: Few::of(Value::NONE),
        items: 0,
        open: false,
    };

    /// Whether there is room for one operation more.
    fn has_room(&self, len: usize) -> bool {
        self.len + len <= WIDE && self.operands.len < FEW && self.memoized.len < FEW
    }
}

/// An operation of a dict that is being learnt.
struct Op {
    at: usize,
    len: usize,
    kind: OpKind,
    /// How many items there are after it.
    items: usize,
}

#[derive(Clone, Copy, PartialEq)]
enum OpKind {
    /// All its bytes stay.
    Same,
    /// Its first bytes stay; the others tell what it comes to.
    Operand(OperandKind),
    /// An integer of any length.
    Open,
    /// What was made last gets a memo entry.
    Memoize,
}

impl Layout {
    /// How the dict of these bytes begins; `None` when it is not plain, or nothing would be won.
    /// `again` when a layout was learnt of such dicts before, from which this one differed.
    pub(super) fn of(
        bytes: &[u8],
        items: &[Value],
        keys: Keys,
        again: bool,
        repeats: impl Fn(Value) -> bool,
    ) -> Option<Self> {
        // One that does not begin with a key would fit dicts of all kinds, and its keys have to
        // stay: the items with even numbers.
        let stays = |op: &Op| matches!(op.kind, OpKind::Same | OpKind::Memoize);
        let is_worth_it = |ops: &Vec<Op>| {
            ops.len() > 2
                && ops[0].kind == OpKind::Same
                && ops.iter().all(|op| op.items % 2 == 0 || stays(op))
        };
        let ops = ops(bytes, items, again, repeats).filter(is_worth_it)?;
        let (mut parts, mut part) = (Vec::new(), Part::EMPTY);
        for op in &ops {
            if op.kind == OpKind::Open {
                parts.push(Part { open: true, ..part });
                part = Part { items: op.items, ..Part::EMPTY };
                continue;
            }
            // Of an operation with an operand as many bytes are looked at as it could have at most.
            let len = if let OpKind::Operand(_) = op.kind { WINDOW } else { op.len };
            if !part.has_room(len) {
                parts.push(part);
                part = Part { items: part.items, ..Part::EMPTY };
            }
            let to = part.len..part.len + op.len;
            part.bytes[to.clone()].copy_from_slice(&bytes[op.at..][..op.len]);
            part.same[to.clone()].fill(u8::MAX);
            match op.kind {
                OpKind::Operand(kind) => {
                    part.same[to][kind.head()..].fill(0);
                    part.operands.push(Operand {
                        at: part.len as u8,
                        item: op.items as u8 - 1,
                        kind,
                    });
                }
                OpKind::Memoize => part.memoized.push(items[op.items - 1]),
                OpKind::Same | OpKind::Open => {}
            }
            part.len += op.len;
            part.items = op.items;
        }
        if part.len > 0 {
            parts.push(part);
        }
        Some(Self { parts, keys, uses: 1 })
    }
}

impl OperandKind {
    /// How many of the operation's bytes stay.
    fn head(self) -> usize {
        if let Self::Long(_) = self { 2 } else { 1 }
    }
}

/// The operations with which the dict of these bytes begins, up to a list or its last item.
fn ops(
    bytes: &[u8],
    items: &[Value],
    again: bool,
    repeats: impl Fn(Value) -> bool,
) -> Option<Vec<Op>> {
    let is_text =
        |item: usize| items.get(item).is_some_and(|value| matches!(value.kind(), Kind::Str(_)));
    let mut ops: Vec<Op> = Vec::new();
    let (mut at, mut n) = (0, 0);
    loop {
        let (mut start, mut len, mut kind) = (at, 1, OpKind::Same);
        match bytes[at..] {
            [code @ (op::BINGET | op::LONG_BINGET), ..] => {
                let operand;
                (len, operand) = if code == op::BINGET {
                    (2, OperandKind::First)
                } else {
                    (5, OperandKind::Near)
                };
                // Keys stay what they are.
                if n % 2 == 1 {
                    kind = OpKind::Operand(operand);
                } else if !is_text(n) {
                    return None;
                }
                n += 1;
            }
            // Nearly always the stream, which is the default one in most recordings.
            [op::BININT1, 0, ..] if !again => (len, n) = (2, n + 1),
            [op::BININT1, ..] => (len, kind, n) = (2, OpKind::Open, n + 1),
            [op::BININT2, ..] => (len, kind, n) = (3, OpKind::Open, n + 1),
            [op::BININT, ..] => (len, kind, n) = (5, OpKind::Open, n + 1),
            [op::LONG1, bytes, ..] => {
                kind = match bytes {
                    STEADY..8 => OpKind::Operand(OperandKind::Long(64 - 8 * bytes)),
                    _ => OpKind::Open,
                };
                (len, n) = (2 + usize::from(bytes), n + 1);
            }
            [op::SHORT_BINUNICODE, bytes, ..] if is_text(n) => {
                (len, n) = (2 + usize::from(bytes), n + 1)
            }
            [op::MEMOIZE, ..] if n > 0 && n <= items.len() => kind = OpKind::Memoize,
            [op::TUPLE2, ..] => {
                // One operation of three; the sink is not asked for it again.
                let (second, first) = (ops.pop()?, ops.pop()?);
                if second.kind == OpKind::Memoize || first.kind == OpKind::Memoize {
                    return None;
                }
                (start, len, n) = (first.at, at + 1 - first.at, n - 1);
                if !items.get(n - 1).is_some_and(|&tuple| repeats(tuple)) {
                    return None;
                }
            }
            [op::EMPTY_LIST, ..] => return Some(ops),
            [op::SETITEMS, ..] => {
                // The last item is a list as often as a reference to one: it is left to the way of
                // all others.
                ops.pop_if(|last| matches!(last.kind, OpKind::Operand(_)));
                return Some(ops);
            }
            _ => return None,
        }
        at = start + len;
        if len > WIDE {
            return None;
        }
        ops.push(Op { at: start, len, kind, items: n });
    }
}
