//! The operations of which nearly all of a pickle consists, in a loop of their own.
//!
//! It knows no errors. What is not plain (an operand cut by the end of the piece, an entry that is
//! not there, items for something odd) it leaves alone, and [`Machine::run`] does that one
//! operation the general way. So there is one place that says what is wrong, and this one stays
//! small stop_at_len to be fast, above all in WebAssembly.

use crate::error::ByteOffset;
use crate::list_cache;
use crate::machine::{MAX_DEPTH, Machine};
use crate::memo::Memo;
use crate::opcode as op;
use crate::sink::Sink;
use crate::value::{Kind, Slot, Value};

/// The longest operation with an operand of fixed size: LONG1 with eight bytes.
pub(crate) const WINDOW_BYTES: usize = 10;
/// Keys and values of the largest dict that is done at once; events have up to 28.
pub(crate) const MAX_DICT_ITEMS: usize = 32;
/// Bytes after which the loop returns: engines replace a function by an optimized one only when it
/// is called again.
const BURST_BYTES: usize = 1 << 14;

/// Whether an operation is a reference to the memo.
fn is_memo_reference(code: u8) -> bool {
    matches!(code, op::LONG_BINGET | op::BINGET)
}

/// The number, or the memo's value, that an operation comes to, and how long the operation is;
/// `None` for all others.
#[expect(
    clippy::inline_always,
    reason = "what it gives would go through memory, in WebAssembly, several times a dict"
)]
#[inline(always)]
pub(crate) fn simple_value(memo: &Memo, window: &[u8; WINDOW_BYTES]) -> Option<(Value, usize)> {
    let four = [window[1], window[2], window[3], window[4]];
    Some(match window[0] {
        op::BINGET => (memo.get_direct(window[1])?, 2),
        op::LONG_BINGET => (memo.get_paged(u32::from_le_bytes(four))?, 5),
        op::BININT1 => (Value::int(i32::from(window[1])), 2),
        op::BININT2 => (Value::int(i32::from(u16::from_le_bytes([window[1], window[2]]))), 3),
        op::BININT => (Value::int(i32::from_le_bytes(four)), 5),
        op::LONG1 => {
            let n = window[1];
            let [_, _, operand @ ..] = *window;
            if !(1..=8).contains(&n) {
                return None;
            }
            // To the top, so that what comes after the operand falls out and its sign fills what is
            // missing.
            let unused = 64 - 8 * u32::from(n);
            let operand = (u64::from_le_bytes(operand) << unused) as i64 >> unused;
            (Value::small_int(operand)?, 2 + usize::from(n))
        }
        _ => return None,
    })
}

/// The same, for where it is not worth a copy of all that.
#[inline(never)]
fn simple_value_outlined(memo: &Memo, window: &[u8; WINDOW_BYTES]) -> Option<(Value, usize)> {
    simple_value(memo, window)
}

impl<S: Sink> Machine<S> {
    /// Do what is common from `from` on, and say where it stopped; `bytes` stand at `base` in the
    /// stream.
    #[inline(never)]
    pub(crate) fn fast_path(&mut self, bytes: &[u8], from: usize, base: ByteOffset) -> usize {
        // What has begun within it may end behind it.
        let stop_at_len = (bytes.len() - from).saturating_sub(BURST_BYTES);
        let mut rest = &bytes[from..];
        while let Some(window) = rest.first_chunk::<WINDOW_BYTES>()
            && rest.len() > stop_at_len
        {
            // Most operations are one of these. A branch of its own is guessed better than the jump
            // of a `match`.
            if window[0] == op::BINGET {
                let Some(value) = self.memo.get_direct(window[1]) else { break };
                self.stack.push(value);
                rest = &rest[2..];
                continue;
            }
            if window[0] == op::LONG_BINGET {
                let index = u32::from_le_bytes([window[1], window[2], window[3], window[4]]);
                let Some(value) = self.memo.get_paged(index) else { break };
                self.stack.push(value);
                rest = &rest[5..];
                continue;
            }
            // What limit operations come to is one value on the stack; the others go on by
            // themselves.
            let (value, len) = match window[0] {
                op::BININT1 | op::BININT2 | op::BININT | op::LONG1 => {
                    let Some(simple) = simple_value_outlined(&self.memo, window) else { break };
                    simple
                }
                op::SHORT_BINUNICODE => {
                    let end = 2 + usize::from(window[1]);
                    let Some(text) = rest.get(2..end) else { break };
                    (self.heap.make_str(text), end)
                }
                op::NONE => (Value::NONE, 1),
                op::NEWTRUE | op::NEWFALSE => (Value::bool(window[0] == op::NEWTRUE), 1),
                code @ (op::EMPTY_DICT | op::EMPTY_LIST) => {
                    let fits = self.marks.len() as u64 <= MAX_DEPTH && self.memo.is_dense();
                    if fits && window[1] == op::MEMOIZE && window[2] == op::MARK {
                        let memo = self.memo.reserve_next();
                        rest = &rest[3..];
                        let at = base + (bytes.len() - rest.len()) as u64;
                        if code == op::EMPTY_DICT {
                            let limit = rest.len().saturating_sub(stop_at_len);
                            rest = &rest[self.dicts(memo, rest, at, limit)..];
                            continue;
                        }
                        self.open(false, memo);
                        if is_memo_reference(window[3])
                            && let Some(len) = self.list_of_references(rest, at)
                        {
                            rest = &rest[len..];
                        } else {
                            self.marks.push(self.stack.len() as u32);
                        }
                        continue;
                    }
                    let value = if code == op::EMPTY_DICT {
                        self.heap.new_dict()
                    } else {
                        self.heap.new_list()
                    };
                    (value, 1)
                }
                code @ (op::MEMOIZE | op::BINPUT | op::LONG_BINPUT) => {
                    let (index, len) = match code {
                        op::MEMOIZE => (self.memo.next_index(), 1),
                        op::BINPUT => (u32::from(window[1]), 2),
                        _ => (u32::from_le_bytes([window[1], window[2], window[3], window[4]]), 5),
                    };
                    if !self.append_memo(index) {
                        break;
                    }
                    rest = &rest[len..];
                    continue;
                }
                op::MARK => {
                    if self.marks.len() as u64 > MAX_DEPTH {
                        break;
                    }
                    rest = &rest[1..];
                    let at = base + (bytes.len() - rest.len()) as u64;
                    if is_memo_reference(window[1])
                        && let Some(len) = self.list_of_references(rest, at)
                    {
                        rest = &rest[len..];
                    } else {
                        self.marks.push(self.stack.len() as u32);
                    }
                    continue;
                }
                code @ (op::SETITEMS | op::APPENDS) => {
                    let end = base + (bytes.len() - rest.len()) as u64 + 1;
                    if !self.close(code == op::SETITEMS, end) {
                        break;
                    }
                    rest = &rest[1..];
                    continue;
                }
                _ => break,
            };
            self.stack.push(value);
            rest = &rest[len..];
        }
        bytes.len() - rest.len()
    }

    /// Puts a container that is open on the stack, with this memo entry. Tells its place.
    fn open(&mut self, dict: bool, memo: u32) -> usize {
        let place = self.stack.len();
        self.memo.set(memo, Value::open(dict, place as u32));
        self.stack.push(Value::open(dict, memo));
        place
    }

    /// A dict, for which this memo entry is reserved, and those that follow it while they are done
    /// to their ends, of which none begins after `limit` bytes: `bytes` begin after its MARK, and
    /// stand at `at` in the stream. Tells how many bytes were done.
    #[inline(never)]
    fn dicts(&mut self, mut memo: u32, bytes: &[u8], at: ByteOffset, limit: usize) -> usize {
        let mut done = 0;
        loop {
            let (used, is_closed) = self.dict(memo, &bytes[done..], at + done as u64);
            done += used;
            // Nothing that was checked for the first has changed: how deep it is, and that memo
            // entries follow each other.
            if !(is_closed
                && done < limit
                && bytes[done..].starts_with(&[op::EMPTY_DICT, op::MEMOIZE, op::MARK]))
            {
                return done;
            }
            memo = self.memo.reserve_next();
            done += 3;
        }
    }

    /// One of nothing but plain values, short texts, pairs of those and lists that were there
    /// before, as nearly all events are, is done to its end, and its items never come to the stack.
    /// Others are opened, and done up to what is not plain. Tells how many bytes were done, and
    /// whether that was to its end.
    #[expect(clippy::inline_always, reason = "it is the body of a loop, and called nowhere else")]
    #[inline(always)]
    fn dict(&mut self, memo: u32, bytes: &[u8], at: ByteOffset) -> (usize, bool) {
        let (mut n, mut rest) = (0, bytes);
        while n < MAX_DICT_ITEMS
            && let Some(window) = rest.first_chunk::<WINDOW_BYTES>()
        {
            let (value, len) = match window[0] {
                op::EMPTY_LIST if window[1] == op::MEMOIZE && window[2] == op::MARK => {
                    // It is one deeper than the dict is.
                    let fits = (self.marks.len() as u64) < MAX_DEPTH;
                    let Some((value, len)) = fits.then(|| self.lists.lookup(&rest[3..])).flatten()
                    else {
                        break;
                    };
                    let memo = self.memo.reserve_next();
                    self.memo.set(memo, value);
                    (value, 3 + len)
                }
                op::EMPTY_LIST if window[1] == op::MEMOIZE && window[2] == op::SETITEMS => {
                    // The frames of an event without a call stack.
                    let memo = self.memo.reserve_next();
                    let list = self.heap.new_memoized(false, memo);
                    self.memo.set(memo, list);
                    (list, 2)
                }
                op::SETITEMS if n > 0 && n % 2 == 0 && !self.heap.has_pending() => {
                    let used = bytes.len() - rest.len() + 1;
                    let items = &self.dict_items[..n];
                    if let Some(replacement) =
                        self.sink.dict(&mut self.heap, None, items, at + used as u64)
                    {
                        self.memo.set(memo, replacement);
                        self.stack.push(replacement);
                    } else {
                        let below = self.open(true, memo);
                        let dict = self.materialize(below);
                        self.heap.extend(dict, &self.dict_items[..n]);
                    }
                    return (used, true);
                }
                op::SHORT_BINUNICODE => {
                    let end = 2 + usize::from(window[1]);
                    let Some(text) = rest.get(2..end) else { break };
                    (self.heap.make_str(text), end)
                }
                op::MEMOIZE if n > 0 => {
                    let memo = self.memo.reserve_next();
                    self.memo.set(memo, self.dict_items[n - 1]);
                    rest = &rest[1..];
                    continue;
                }
                op::TUPLE2 if n >= 2 && !self.heap.has_pending() => {
                    let at = at + (bytes.len() - rest.len()) as u64;
                    n -= 2;
                    let pair = &self.dict_items[n..n + 2];
                    let value = self.sink.tuple(&mut self.heap, pair, at);
                    (value.unwrap_or_else(|| self.heap.make_tuple(pair)), 1)
                }
                _ => {
                    let Some(simple) = simple_value(&self.memo, window) else { break };
                    simple
                }
            };
            self.dict_items[n] = value;
            n += 1;
            rest = &rest[len..];
        }
        self.open(true, memo);
        self.marks.push(self.stack.len() as u32);
        self.stack.extend_from_slice(&self.dict_items[..n]);
        (bytes.len() - rest.len(), false)
    }

    /// Give the top of the stack the memo number that follows all others; false when it is another
    /// number.
    #[inline]
    fn append_memo(&mut self, index: u32) -> bool {
        let floor = self.marks.last().map_or(0, |&m| m as usize);
        let Some(&value) = self.stack.last().filter(|_| self.stack.len() > floor) else {
            return false;
        };
        if !self.memo.append(index, value) {
            return false;
        }
        self.heap.set_memo_index(value, index);
        true
    }

    /// A list that only memo references fill, and that is taken as a whole: `rest` begins with the
    /// first of them, after the MARK, and stands at `at` in the stream. Tells how many bytes were
    /// done, APPENDS included; `None`, with nothing changed, when it has to be read one operation
    /// after the other.
    #[inline(never)]
    fn list_of_references(&mut self, rest: &[u8], at: ByteOffset) -> Option<usize> {
        let floor = self.marks.last().map_or(0, |&m| m as usize);
        let from = self.stack.len();
        let list = *self.stack.last().filter(|_| from > floor)?;
        match (list.as_open(), list.kind()) {
            (Some((false, _)), _) => {}
            (None, Kind::List(id)) if matches!(self.heap.slot(id), Slot::Empty(_)) => {}
            _ => return None,
        }
        if let Some((value, len)) = self.lists.lookup(rest) {
            self.replace_container(from - 1, value);
            return Some(len);
        }
        let len = list_cache::references_len(rest)?;
        let run = &rest[..len];
        // What a container among them means may change while it is filled.
        let mut settled = true;
        for index in list_cache::memo_indices(run) {
            let Some(value) = self.memo.get(index).filter(|value| value.is_value()) else {
                self.stack.truncate(from);
                return None;
            };
            settled &= !value.is_container();
            self.stack.push(value);
        }
        self.marks.push(from as u32);
        if !self.close(false, at + len as u64) {
            self.marks.pop();
            self.stack.truncate(from);
            return None;
        }
        let value = self.stack[from - 1];
        if settled && matches!(value.kind(), Kind::Ext(..)) && self.sink.is_cacheable(value) {
            self.lists.insert(run, value);
        }
        Some(len)
    }
}
