//! Dicts that are written as one before was: the same bytes but for their numbers.
//!
//! A recorder writes its dicts by the thousand with the same keys in the same order. Their bytes
//! differ in what an integer or a reference says, and in how many bytes an integer takes. So what
//! stays is compared, many bytes at once, and only what an operand says is looked at. Keys are not
//! looked up again, and texts and tuples that are always the same not made again.
//!
//! Nothing depends on it: a dict that goes on otherwise is read on from there in the way of all
//! others.

mod learn;

use crate::hot::{ITEMS, WINDOW, plain};
use crate::memo::Memo;
use crate::opcode as op;
use crate::sink::Keys;
use crate::value::Value;

/// Bytes that are compared at once.
const WIDE: usize = 32;
/// Layouts that are kept: a snapshot has one or two of events, and some of blocks.
const MOST: usize = 8;
/// Operands and memo entries of one part.
const FEW: usize = 6;
/// Of so many dicts that none fits one is learnt: in files in which nothing repeats that is all it
/// costs.
const RARELY: u32 = 64;

/// The layouts, and which was of use last.
pub(crate) struct Layouts {
    known: Vec<Layout>,
    /// The items of a dict that is being read. Each layout has a place of its own, in which its
    /// keys stay from dict to dict; the last one is for all other dicts.
    items: [[Value; ITEMS]; MOST + 1],
    last: usize,
    /// Dicts that none fitted since one was learnt.
    missed: u32,
    /// Layouts that were learnt so far.
    learnt: u32,
}

impl Default for Layouts {
    fn default() -> Self {
        Self {
            known: Vec::new(),
            items: [[Value::NONE; ITEMS]; MOST + 1],
            last: 0,
            missed: 0,
            learnt: 0,
        }
    }
}

/// How a dict begins.
struct Layout {
    parts: Vec<Part>,
    keys: Keys,
    /// Dicts that were read by it, halved now and then.
    uses: u32,
}

/// Some operations of which all bytes stay the same but for operands, and often an integer of any
/// length after them.
#[derive(Clone, Copy)]
struct Part {
    bytes: [u8; WIDE],
    /// Ones where bytes stay the same.
    same: [u8; WIDE],
    len: usize,
    operands: Few<Operand>,
    /// The values that get memo entries.
    memoized: Few<Value>,
    /// How many items there are after it, less the integer.
    items: usize,
    /// Whether an integer follows.
    open: bool,
}

/// An operation of which only the operand is looked at, since its first bytes stay.
#[derive(Clone, Copy)]
struct Operand {
    /// Where it begins.
    at: u8,
    /// Which item it makes.
    item: u8,
    kind: OperandKind,
}

#[derive(Clone, Copy, PartialEq)]
enum OperandKind {
    /// Of [`op::BINGET`].
    First,
    /// Of [`op::LONG_BINGET`].
    Near,
    /// Of [`op::LONG1`] with at most seven bytes: so many bits less than 64.
    Long(u8),
}

impl Operand {
    /// What it comes to; `None` when that is not plain.
    #[inline]
    fn value(self, memo: &Memo, window: &[u8; WIDE]) -> Option<Value> {
        let [_, a, b, c, d, ..] = *window[usize::from(self.at)..].first_chunk::<WINDOW>()?;
        match self.kind {
            OperandKind::First => memo.first(a),
            OperandKind::Near => memo.near(u32::from_le_bytes([a, b, c, d])),
            OperandKind::Long(unused) => {
                let operand = window[usize::from(self.at) + 2..].first_chunk()?;
                // To the top, so that what comes after the operand falls out and its sign fills
                // what is missing.
                Some(Value::seven_bytes(
                    (u64::from_le_bytes(*operand) << (unused % 64)) as i64 >> (unused % 64),
                ))
            }
        }
    }
}

#[derive(Clone, Copy)]
struct Few<T> {
    all: [T; FEW],
    len: usize,
}

impl<T: Copy> Few<T> {
    fn get(&self) -> &[T] {
        &self.all[..self.len]
    }
}

impl Part {
    #[expect(
        clippy::inline_always,
        reason = "some instructions, several times a dict, of which a call is made otherwise"
    )]
    #[inline(always)]
    fn fits(&self, window: &[u8; WIDE]) -> bool {
        let words = |bytes: &[u8; WIDE]| -> [u64; WIDE / 8] {
            std::array::from_fn(|i| u64::from_le_bytes(std::array::from_fn(|j| bytes[8 * i + j])))
        };
        let (window, bytes, same) = (words(window), words(&self.bytes), words(&self.same));
        (0..WIDE / 8).fold(0, |differ, i| differ | (window[i] ^ bytes[i]) & same[i]) == 0
    }

    /// What its operands come to; false when one is not plain, with no memo entry made.
    #[inline]
    fn read(&self, memo: &mut Memo, window: &[u8; WIDE], items: &mut [Value; ITEMS]) -> bool {
        for operand in self.operands.get() {
            let Some(value) = operand.value(memo, window) else { return false };
            items[usize::from(operand.item) % ITEMS] = value;
        }
        for &value in self.memoized.get() {
            let index = memo.reserve();
            memo.set(index, value);
        }
        true
    }
}

/// How much of a dict was read.
#[derive(Clone, Copy)]
pub(crate) struct Followed {
    /// Where its items are.
    pub(crate) place: usize,
    /// How many.
    pub(crate) items: usize,
    /// Bytes.
    pub(crate) used: usize,
    /// Its keys, while no more than one item comes: where a layout came to its end.
    pub(crate) keys: Option<Keys>,
}

impl Followed {
    const NOTHING: Self = Self { place: MOST, items: 0, used: 0, keys: None };

    /// Whether a layout came to its end.
    pub(crate) fn is_whole(self) -> bool {
        self.keys.is_some()
    }
}

impl Layouts {
    /// Reads the dict at the start of `bytes`, after its MARK, as far as it is as one before.
    #[inline]
    pub(crate) fn follow(&mut self, memo: &mut Memo, bytes: &[u8]) -> Followed {
        let Some(window) = bytes.first_chunk::<WIDE>() else { return Followed::NOTHING };
        if !self.known.get(self.last).is_some_and(|layout| layout.parts[0].fits(window))
            && !self.turn_to(window)
        {
            return Followed::NOTHING;
        }
        let (layout, items) = (&mut self.known[self.last], &mut self.items[self.last]);
        let (mut n, mut rest) = (0, bytes);
        for (i, part) in layout.parts.iter().enumerate() {
            let window = rest.first_chunk::<WIDE>().filter(|window| i == 0 || part.fits(window));
            if !window.is_some_and(|window| part.read(memo, window, items)) {
                return self.partly(n, bytes.len() - rest.len());
            }
            (n, rest) = (part.items, &rest[part.len..]);
            if part.open {
                let open = |window| integer(window).or_else(|| plain(memo, window));
                let Some((value, len)) = rest.first_chunk().and_then(open) else {
                    return self.partly(n, bytes.len() - rest.len());
                };
                items[n % ITEMS] = value;
                (n, rest) = (n + 1, &rest[len..]);
            }
        }
        layout.uses += 1;
        Followed {
            place: self.last,
            items: n,
            used: bytes.len() - rest.len(),
            keys: Some(layout.keys),
        }
    }

    /// Find a layout that begins so.
    #[cold]
    fn turn_to(&mut self, window: &[u8; WIDE]) -> bool {
        let found = self.known.iter().position(|layout| layout.parts[0].fits(window));
        self.last = found.unwrap_or(self.last);
        found.is_some()
    }

    /// The dict goes on in another way.
    #[cold]
    fn partly(&mut self, n: usize, used: usize) -> Followed {
        self.items[MOST] = self.items[self.last];
        Followed { place: MOST, items: n, used, keys: None }
    }

    /// The items that are at this place.
    #[inline]
    pub(crate) fn items(&mut self, place: usize) -> &mut [Value; ITEMS] {
        &mut self.items[place.min(MOST)]
    }

    /// A dict was read to its end, and no layout was all of its beginning; now and then one such is
    /// learnt. `bytes` begin after its MARK; `repeats` says whether a tuple that came to this value
    /// would come to it again.
    #[inline(never)]
    pub(crate) fn missed(
        &mut self,
        so_far: Followed,
        bytes: &[u8],
        n: usize,
        repeats: impl Fn(Value) -> bool,
    ) {
        self.missed += 1;
        if self.missed < RARELY {
            return;
        }
        self.missed = 0;
        let items = self.items[MOST];
        // One that did not go on as it was learnt: some of its integers do not stay, and all are
        // looked at from now on.
        let again = so_far.used > 0;
        let Some(layout) = Layout::of(bytes, &items[..n], Keys(self.learnt), again, repeats) else {
            return;
        };
        self.learnt += 1;
        self.known.iter_mut().for_each(|layout| layout.uses /= 2);
        let least = || (0..MOST).min_by_key(|&place| self.known[place].uses);
        let place = match self.known.len() {
            _ if again => self.last,
            MOST => least().unwrap_or(0),
            free => free,
        };
        self.items[place] = items;
        if place < self.known.len() {
            self.known[place] = layout;
        } else {
            self.known.push(layout);
        }
    }

    /// A memo entry means something else from now on.
    pub(crate) fn forget(&mut self) {
        self.known.clear();
    }

    pub(crate) fn memory(&self) -> usize {
        let parts: usize =
            self.known.iter().map(|layout| layout.parts.capacity() * size_of::<Part>()).sum();
        self.known.capacity() * size_of::<Layout>() + parts
    }
}

/// An integer of four bytes at most, and how long its operation is. Which of the three it is
/// differs from dict to dict without rule, so nothing branches on it.
#[inline]
fn integer(window: &[u8; WINDOW]) -> Option<(Value, usize)> {
    if !matches!(window[0], op::BININT | op::BININT1 | op::BININT2) {
        return None;
    }
    let bytes = (BYTES >> (4 * u32::from(window[0] % 8))) as usize % 8;
    let operand = u32::from_le_bytes([window[1], window[2], window[3], window[4]]);
    // To the top, and back; only that of four bytes has a sign, and it need not go anywhere.
    let unused = (32 - 8 * bytes as u32) % 32;
    let operand = (operand << unused) >> unused;
    Some((Value::int(operand as i32), 1 + bytes))
}

/// Bytes of the operands of BININT, BININT1 and BININT2, each four bits at the place that its code
/// has among eight.
const BYTES: u32 =
    4 << (4 * (op::BININT % 8)) | 1 << (4 * (op::BININT1 % 8)) | 2 << (4 * (op::BININT2 % 8));

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::StrId;

    #[test]
    fn a_zero_is_taken_to_stay_until_it_does_not() {
        let mut memo = Memo::default();
        for text in 0..3 {
            memo.append(text, Value::str(StrId(text)));
        }
        // Two integers, the second of which is mostly 0.
        let dict = |size: u8, stream: u8| {
            let dict = [
                op::BINGET,
                0,
                op::BININT1,
                size,
                op::BINGET,
                1,
                op::BININT1,
                stream,
                op::BINGET,
                2,
                op::BINGET,
                1,
            ];
            [&dict[..], &[op::SETITEMS; 40]].concat()
        };
        let item = |at: usize, bytes: &[u8]| match at {
            1 | 3 => Value::int(bytes[2 * at + 1].into()),
            _ => Value::str(StrId([0, 0, 1, 0, 2, 1][at])),
        };
        let mut layouts = Layouts::default();
        let learn = |layouts: &mut Layouts, memo: &mut Memo, bytes: &[u8]| {
            for _ in 0..RARELY {
                let followed = layouts.follow(memo, bytes);
                let items = layouts.items(MOST);
                (0..6).for_each(|at| items[at] = item(at, bytes));
                layouts.missed(followed, &bytes[..13], 6, |_| false);
            }
        };
        let whole = |layouts: &mut Layouts, memo: &mut Memo, bytes: &[u8]| {
            let followed = layouts.follow(memo, bytes);
            let right =
                (0..followed.items).all(|at| layouts.items(followed.place)[at] == item(at, bytes));
            assert!(right, "{bytes:?}");
            followed.is_whole()
        };
        learn(&mut layouts, &mut memo, &dict(7, 0));
        assert_eq!(
            [dict(200, 0), dict(7, 5)].map(|dict| whole(&mut layouts, &mut memo, &dict)),
            [true, false]
        );
        assert_eq!(layouts.known[0].parts.iter().filter(|part| part.open).count(), 1);
        learn(&mut layouts, &mut memo, &dict(7, 5));
        assert_eq!(
            [dict(200, 0), dict(7, 5)].map(|dict| whole(&mut layouts, &mut memo, &dict)),
            [true, true]
        );
        assert_eq!(
            (layouts.known.len(), layouts.known[0].parts.iter().filter(|part| part.open).count()),
            (1, 2)
        );
    }
}
