//! Filling containers, and offering them to the sink.

use crate::error::{ByteOffset, PickleError};
use crate::heap::Oddity;
use crate::machine::{Machine, stack};
use crate::sink::Sink;
use crate::value::{Kind, Slot, Value};

impl<S: Sink> Machine<S> {
    pub(crate) fn push_tuple(&mut self, n: usize, at: ByteOffset) -> Result<(), PickleError> {
        let floor = self.marks.last().map_or(0, |&m| m as usize);
        let from = self.stack.len().checked_sub(n).filter(|&from| from >= floor);
        let from = from.ok_or(stack("TUPLE", "as many values as the tuple has", at))?;
        self.offer_pending(from, at);
        let items = &self.stack[from..];
        self.heap.hold(items);
        let value = self.sink.tuple(&mut self.heap, items, at);
        let value = value.unwrap_or_else(|| self.heap.make_tuple(items));
        self.stack.truncate(from);
        self.stack.push(value);
        Ok(())
    }

    /// SETITEMS, APPENDS, DICT, LIST: moves the values above the mark into the container below it.
    pub(crate) fn batch(
        &mut self,
        op: &'static str,
        dict: bool,
        at: ByteOffset,
        end: ByteOffset,
    ) -> Result<(), PickleError> {
        let from = self.pop_mark(op, at)?;
        if from > self.stack.len() {
            return Err(stack(op, "a container below its mark", at));
        }
        self.fill(op, from, Fill { is_dict: dict, is_batch: true }, at, end)
    }

    /// SETITEM, APPEND: moves the top `n` values into the container below them.
    pub(crate) fn single(
        &mut self,
        op: &'static str,
        n: usize,
        at: ByteOffset,
    ) -> Result<(), PickleError> {
        let from = self.stack.len().checked_sub(n).ok_or(stack(
            op,
            "a container and what goes into it",
            at,
        ))?;
        self.fill(op, from, Fill { is_dict: n == 2, is_batch: false }, at, at + 1)
    }

    /// Moves the values from stack index `from` on into the container below them.
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
        if fill.is_dict && (self.stack.len() - from) % 2 == 1 {
            return Err(stack(op, "a value for every key", at));
        }
        self.offer_pending(from, end);
        let container = self.stack[from - 1];
        let items = &self.stack[from..];
        if items.is_empty() {
            return Ok(());
        }
        if let Kind::List(id) | Kind::Dict(id) = container.kind()
            && self.heap.is_held(id)
        {
            return Err(PickleError::LateItems { op, at });
        }
        self.heap.hold(items);
        let (id, slot) = match (container.kind(), fill.is_dict) {
            (Kind::Dict(id), true) | (Kind::List(id), false) => (Some(id), self.heap.slot(id)),
            // A taken container that the memo returned as the sink's value, or a value that takes
            // no items.
            _ => (None, Slot::Taken(container)),
        };
        let so_far = match slot {
            Slot::Taken(replacement) if matches!(replacement.kind(), Kind::Ext(..)) => {
                Some(replacement)
            }
            Slot::Empty(_) if fill.is_batch => None,
            not_offered => {
                match not_offered {
                    Slot::Taken(_) => self.heap.note(Oddity::StrayItems, at),
                    Slot::Stored(_) | Slot::Empty(_) => self.heap.extend_pending(container, items),
                }
                self.stack.truncate(from);
                return Ok(());
            }
        };
        let taken = if fill.is_dict {
            self.sink.dict(&mut self.heap, so_far, items, end)
        } else {
            self.sink.list(&mut self.heap, so_far, items, end)
        };
        match (taken, so_far) {
            (Some(replacement), _) => {
                if let Some(id) = id {
                    self.heap.replace(id, replacement);
                }
                if let Slot::Empty(Some(index)) = slot {
                    self.memo.redirect(index, container, replacement);
                }
                self.stack[from - 1] = replacement;
            }
            (None, None) => self.heap.extend(container, items),
            (None, Some(_)) => return Err(PickleError::LateItems { op, at }),
        }
        self.stack.truncate(from);
        Ok(())
    }

    /// The common case of SETITEMS and APPENDS: the only batch of a new container. `end` is the
    /// offset after the operation. Returns false, with nothing changed, in any other case.
    #[inline]
    pub(crate) fn close(&mut self, dict: bool, end: ByteOffset) -> bool {
        let (floor, from) = match *self.marks.as_slice() {
            [.., floor, from] => (floor as usize, from as usize),
            [from] => (0, from as usize),
            [] => return false,
        };
        if from <= floor || from >= self.stack.len() || self.heap.has_pending() {
            return false;
        }
        let container = self.stack[from - 1];
        let items = &self.stack[from..];
        if dict && !items.len().is_multiple_of(2) {
            return false;
        }
        match (container.as_open(), container.kind()) {
            (Some((is_dict, _)), _) if is_dict == dict => {}
            (None, Kind::Dict(id)) if dict && self.heap.is_new(id) => {}
            (None, Kind::List(id)) if !dict && self.heap.is_new(id) => {}
            _ => return false,
        }
        self.heap.hold(items);
        let taken = if dict {
            self.sink.dict(&mut self.heap, None, items, end)
        } else {
            self.sink.list(&mut self.heap, None, items, end)
        };
        if let Some(replacement) = taken {
            self.replace_container(from - 1, replacement);
        } else {
            let container = self.materialize(from - 1);
            self.heap.extend(container, &self.stack[from..]);
        }
        self.marks.pop();
        self.stack.truncate(from);
        true
    }

    /// Replaces the empty container at stack index `place`, and its memo entry, by the sink's
    /// value.
    #[inline]
    pub(crate) fn replace_container(&mut self, place: usize, replacement: Value) {
        let container = std::mem::replace(&mut self.stack[place], replacement);
        if let Some((dict, memo)) = container.as_open() {
            self.memo.redirect(memo, Value::open(dict, place as u32), replacement);
        } else if let Kind::List(id) | Kind::Dict(id) = container.kind() {
            if let Slot::Empty(Some(memo)) = self.heap.slot(id) {
                self.memo.redirect(memo, container, replacement);
            }
            self.heap.replace(id, replacement);
        }
    }

    /// Offers the sink the containers from stack index `from` on that were filled one item at a
    /// time.
    fn offer_pending(&mut self, from: usize, at: ByteOffset) {
        if !self.heap.has_pending() {
            return;
        }
        for i in from..self.stack.len() {
            let value = self.stack[i];
            if !value.is_container() {
                continue;
            }
            let Some((id, items)) = self.heap.take_pending(value) else {
                self.stack[i] = self.heap.resolve(value);
                continue;
            };
            if let Some(replacement) = self.offer(value, &items, at) {
                self.heap.replace(id, replacement);
                self.stack[i] = replacement;
            } else {
                self.heap.restore_items(id, items);
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

/// How an operation fills a container.
#[derive(Clone, Copy)]
struct Fill {
    /// With keys and values, not with items.
    is_dict: bool,
    /// By a whole batch, which is offered to the sink at once, not by one item.
    is_batch: bool,
}
