//! A loop for the most frequent operations.
//!
//! It reports no errors. It stops before anything unusual: an operand cut by the end of the chunk,
//! a missing memo entry, items for a value that takes none. [`Machine::run`] then executes that
//! operation in the general way. So errors have one source, and this loop stays small enough to be
//! fast, above all in WebAssembly.

use crate::error::ByteOffset;
use crate::list_cache;
use crate::machine::{MAX_DEPTH, Machine, SEARCHED_VALUES};
use crate::memo::Memo;
use crate::opcode as op;
use crate::sink::Sink;
use crate::value::{Kind, Value};

/// Bytes of the longest operation with an operand of fixed size: LONG1 with eight bytes.
const WINDOW_BYTES: usize = 10;
/// Maximum keys plus values of a dict that is read beside the stack. Events have up to 28.
pub(crate) const MAX_DICT_ITEMS: usize = 32;
/// Bytes per call of the loop. JavaScript engines switch to a function's optimized code only at its
/// next call.
const BURST_BYTES: usize = 1 << 14;

/// Whether an opcode pushes a memo entry.
fn is_memo_reference(code: u8) -> bool {
    matches!(code, op::LONG_BINGET | op::BINGET)
}

/// The value and the length in bytes of an operation that pushes an integer or a memo entry. `None`
/// for other operations.
#[expect(
    clippy::inline_always,
    reason = "a call would return its result through memory in WebAssembly, several times per dict"
)]
#[inline(always)]
fn simple_value(memo: &Memo, window: &[u8; WINDOW_BYTES]) -> Option<(Value, usize)> {
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
            // Shift to the top and back: drops the bytes after the operand and extends its sign.
            let unused = 64 - 8 * u32::from(n);
            let operand = (u64::from_le_bytes(operand) << unused) as i64 >> unused;
            (Value::small_int(operand)?, 2 + usize::from(n))
        }
        _ => return None,
    })
}

/// Out-of-line [`simple_value`], to limit code size.
#[inline(never)]
fn simple_value_outlined(memo: &Memo, window: &[u8; WINDOW_BYTES]) -> Option<(Value, usize)> {
    simple_value(memo, window)
}

impl<S: Sink> Machine<S> {
    /// Runs frequent operations from index `from` on and returns the index where it stopped.
    /// `bytes` starts at offset `base` of the stream.
    #[inline(never)]
    pub(crate) fn fast_path(&mut self, bytes: &[u8], from: usize, base: ByteOffset) -> usize {
        // The last operation may start before this length is left and end after it.
        let stop_at_len = (bytes.len() - from).saturating_sub(BURST_BYTES);
        let mut rest = &bytes[from..];
        while let Some(window) = rest.first_chunk::<WINDOW_BYTES>()
            && rest.len() > stop_at_len
        {
            // The two most frequent opcodes. A branch of their own is predicted better than the
            // jump of a `match`.
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
            // Operations that push one value yield it here; the others `continue`.
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

    /// Pushes an open container with memo entry `memo` and returns its stack index.
    fn open(&mut self, dict: bool, memo: u32) -> usize {
        let place = self.stack.len();
        self.memo.set(memo, Value::open(dict, place as u32));
        self.stack.push(Value::open(dict, memo));
        place
    }

    /// Reads a dict whose memo entry `memo` is reserved, then the dicts that directly follow.
    /// `bytes` starts after the first MARK, at offset `at` of the stream. Stops after a dict that
    /// is not complete, and starts no dict after `limit` bytes. Returns the number of bytes read.
    #[inline(never)]
    fn dicts(&mut self, mut memo: u32, bytes: &[u8], at: ByteOffset, limit: usize) -> usize {
        let mut done = 0;
        loop {
            let (used, is_closed) = self.dict(memo, &bytes[done..], at + done as u64);
            done += used;
            // The checks made for the first dict still hold: the nesting depth, and a memo without
            // gaps.
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

    /// Reads one dict. A dict of integers, short strings, memo references, pairs and cached lists,
    /// as nearly all events are, is read to its end, and its items bypass the stack. Any other dict
    /// is opened and read up to the first other operation. Returns the number of bytes read, and
    /// whether the dict is complete.
    #[expect(clippy::inline_always, reason = "the body of a loop, with one caller")]
    #[inline(always)]
    fn dict(&mut self, memo: u32, bytes: &[u8], at: ByteOffset) -> (usize, bool) {
        let (mut n, mut rest) = (0, bytes);
        while n < MAX_DICT_ITEMS
            && let Some(window) = rest.first_chunk::<WINDOW_BYTES>()
        {
            let (value, len) = match window[0] {
                op::EMPTY_LIST if window[1] == op::MEMOIZE && window[2] == op::MARK => {
                    // The list nests one level deeper than the dict.
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
                    // The empty frame list of an event without a call stack.
                    let memo = self.memo.reserve_next();
                    let list = self.heap.new_memoized(false, memo);
                    self.memo.set(memo, list);
                    (list, 2)
                }
                op::SETITEMS if n > 0 && n % 2 == 0 && !self.heap.has_pending() => {
                    let used = bytes.len() - rest.len() + 1;
                    let items = &self.dict_items[..n];
                    self.heap.hold(items);
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
                    self.heap.hold(pair);
                    let value = self.sink.tuple(&mut self.heap, pair, at);
                    (value.unwrap_or_else(|| self.heap.make_tuple(pair)), 1)
                }
                _ => {
                    let Some(simple) = simple_value(&self.memo, window) else {
                        let Some(len) = self.container_reference(window, n) else { break };
                        n += 1;
                        rest = &rest[len..];
                        continue;
                    };
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

    /// Reads a reference to a list or dict in the heap, as item `n` of a dict. Returns its length
    /// in bytes. Events without a call stack share their empty lists of frames.
    #[inline(never)]
    fn container_reference(&mut self, window: &[u8; WINDOW_BYTES], n: usize) -> Option<usize> {
        let (index, len) = match *window {
            [op::BINGET, index, ..] => (u32::from(index), 2),
            [op::LONG_BINGET, a, b, c, d, ..] => (u32::from_le_bytes([a, b, c, d]), 5),
            _ => return None,
        };
        let value = self.memo.get(index).filter(|value| value.is_value())?;
        // On the stack, the dict would be below its items.
        let items = &self.dict_items[n.saturating_sub(SEARCHED_VALUES)..n];
        let more = SEARCHED_VALUES.saturating_sub(n + 1).min(self.stack.len());
        let below = &self.stack[self.stack.len() - more..];
        self.heap.share(value, || items.contains(&value) || below.contains(&value));
        self.dict_items[n] = value;
        Some(len)
    }

    /// Stores the top of the stack under memo index `index`, if that is the next index. Returns
    /// false otherwise.
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

    /// Reads a list that consists of memo references and that the sink takes as a whole. `rest`
    /// starts after its MARK, at offset `at` of the stream. Returns the number of bytes read,
    /// APPENDS included. Returns `None`, with nothing changed, if the list has to be read one
    /// operation at a time.
    #[inline(never)]
    fn list_of_references(&mut self, rest: &[u8], at: ByteOffset) -> Option<usize> {
        let floor = self.marks.last().map_or(0, |&m| m as usize);
        let from = self.stack.len();
        let list = *self.stack.last().filter(|_| from > floor)?;
        match (list.as_open(), list.kind()) {
            (Some((false, _)), _) => {}
            (None, Kind::List(id)) if self.heap.is_new(id) => {}
            _ => return None,
        }
        if let Some((value, len)) = self.lists.lookup(rest) {
            self.replace_container(from - 1, value);
            return Some(len);
        }
        let len = list_cache::references_len(rest)?;
        let run = &rest[..len];
        for index in list_cache::memo_indices(run) {
            // The meaning of a container may change.
            let Some(value) = self.memo.get(index).filter(|value| value.is_final()) else {
                self.stack.truncate(from);
                return None;
            };
            self.stack.push(value);
        }
        self.marks.push(from as u32);
        if !self.close(false, at + len as u64) {
            self.marks.pop();
            self.stack.truncate(from);
            return None;
        }
        let value = self.stack[from - 1];
        if matches!(value.kind(), Kind::Ext(..)) && self.sink.is_cacheable(value) {
            self.lists.insert(run, value);
        }
        Some(len)
    }
}
