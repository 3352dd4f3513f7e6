//! Routes each dict, list and tuple to its table, by its keys or by the type of its first item.

use crate::ids::StackId;
use crate::keys::{self, bit};
use crate::tables::{LongStack, Tables, ext};
use vramscope_pickle::{ByteOffset, Heap, Kind, Sink, StrId, Value};

impl Sink for Tables {
    fn dict(
        &mut self,
        heap: &mut Heap,
        so_far: Option<Value>,
        pairs: &[Value],
        at: ByteOffset,
    ) -> Option<Value> {
        if let Some(value) = so_far {
            self.more_of_dict(heap, value, pairs, at)?;
            return Some(value);
        }
        // PyTorch writes an event's action first, and most dicts are events.
        if pairs.first().is_some_and(|key| key.kind() == Kind::Str(StrId(keys::ACTION))) {
            return Some(self.new_event(heap, pairs, at));
        }
        self.other_dict(heap, pairs, at)
    }

    fn list(
        &mut self,
        heap: &mut Heap,
        so_far: Option<Value>,
        items: &[Value],
        at: ByteOffset,
    ) -> Option<Value> {
        if let Some(value) = so_far {
            return self.more_of_list(heap, value, items, at);
        }
        match heap.resolve(items[0]).kind() {
            Kind::Ext(ext::FRAME, _) if items.len() >= BATCH_ITEMS => {
                let frames = self.frames_of(heap, items, at);
                self.long_stacks.push(LongStack::Open(frames));
                Some(Value::ext(ext::LONG_STACK, self.long_stacks.len() as u32 - 1))
            }
            Kind::Ext(ext::FRAME, _) => {
                Some(Value::ext(ext::STACK, self.stack_of(heap, items, at).0))
            }
            Kind::Ext(
                kind @ (ext::EVENT | ext::BLOCK | ext::SEGMENT | ext::ANNOTATION | ext::HISTORY),
                _,
            ) => {
                let list = self.row_range_of(heap, None, kind, items, at);
                self.row_ranges.push(list);
                self.filter_list(self.row_ranges.len() - 1);
                Some(Value::ext(ext::ROW_RANGE, self.row_ranges.len() as u32 - 1))
            }
            // A longer list may continue. The heap keeps it.
            Kind::Str(_) if items.len() < BATCH_ITEMS => {
                Some(Value::ext(ext::TEXT, joined(heap, items)?.0))
            }
            _ => None,
        }
    }

    /// A stack's id always means the same frames. Stacks with other items are not cacheable: each
    /// one has to add to a warning's count.
    fn is_cacheable(&self, value: Value) -> bool {
        matches!(value.kind(), Kind::Ext(ext::STACK, _)) && self.only_frames
    }

    fn memory(&self) -> usize {
        self.memory()
    }

    fn reserve_ahead(&mut self, rest: f64) {
        if self.reserve_ahead_filtered(rest) {
            return;
        }
        self.events.reserve_ahead(rest);
    }

    fn tuple(&mut self, heap: &mut Heap, items: &[Value], at: ByteOffset) -> Option<Value> {
        let &[a, b] = items else { return None };
        self.pool_of(heap, a, b, at).map(|pool| Value::ext(ext::POOL, u32::from(pool.0)))
    }
}

/// CPython writes longer lists in batches of this many items.
const BATCH_ITEMS: usize = 1000;

/// The lines of a traceback as one text. `None` if there is something else, or if the text is too
/// long for the heap's budget.
pub(crate) fn joined(heap: &mut Heap, lines: &[Value]) -> Option<StrId> {
    let ids = || {
        lines.iter().map(|line| match line.kind() {
            Kind::Str(id) => Some(id),
            _ => None,
        })
    };
    if lines.len() == 1 {
        return ids().next().flatten();
    }
    let bytes = ids().try_fold(0usize, |sum, id| Some(sum + heap.strings.bytes(id?).len()))?;
    // The lines may be references to one long string.
    if !heap.budget.ask(bytes) {
        return None;
    }
    let mut text = Vec::with_capacity(bytes);
    for id in ids().flatten() {
        text.extend_from_slice(heap.strings.bytes(id));
    }
    Some(heap.strings.intern(&text))
}

impl Tables {
    /// A further batch of a list that was taken. `None` if something has used the list.
    #[inline(never)]
    fn more_of_list(
        &mut self,
        heap: &mut Heap,
        list: Value,
        items: &[Value],
        at: ByteOffset,
    ) -> Option<Value> {
        if let Some(index) = list.as_ext(ext::LONG_STACK) {
            let more = self.frames_of(heap, items, at);
            let LongStack::Open(frames) = &mut self.long_stacks[index as usize] else {
                return None;
            };
            frames.extend_from_slice(&more);
            return Some(list);
        }
        let index = list.as_ext(ext::ROW_RANGE)? as usize;
        let rows = self.row_ranges[index];
        if rows.is_used {
            return None;
        }
        self.row_ranges[index] = self.row_range_of(heap, Some(rows), rows.kind, items, at);
        self.filter_list(index);
        Some(list)
    }

    /// Routes a dict that is not a common event. Out of line: JavaScript engines optimize a small
    /// function sooner.
    #[inline(never)]
    fn other_dict(&mut self, heap: &mut Heap, pairs: &[Value], at: ByteOffset) -> Option<Value> {
        let keys = keys::mask(pairs.chunks_exact(2).filter_map(|pair| match pair[0].kind() {
            Kind::Str(key) => Some(key),
            _ => None,
        }));
        let has = |key: u32| keys & bit(key) != 0;
        if has(keys::ACTION) {
            Some(self.new_event(heap, pairs, at))
        } else if has(keys::FILENAME) && has(keys::NAME) {
            Some(Value::ext(ext::FRAME, self.frame(heap, pairs).0))
        } else if has(keys::BLOCKS) || has(keys::TOTAL_SIZE) {
            Some(Value::ext(ext::SEGMENT, self.segment(heap, pairs, at)))
        } else if has(keys::STATE) && has(keys::SIZE) {
            Some(Value::ext(ext::BLOCK, self.block(heap, pairs, at)))
        } else if has(keys::STAGE) && has(keys::NAME) {
            Some(Value::ext(ext::ANNOTATION, self.annotation(heap, pairs)))
        } else if has(keys::REAL_SIZE) {
            let mut row = (0, StackId::EMPTY);
            for pair in pairs.chunks_exact(2) {
                match pair[0].kind() {
                    Kind::Str(StrId(keys::REAL_SIZE)) => row.0 = self.bytes(heap, pair[1], at),
                    Kind::Str(StrId(keys::FRAMES)) => row.1 = self.stack(heap, pair[1]),
                    _ => {}
                }
            }
            self.history.push(row);
            Some(Value::ext(ext::HISTORY, self.history.len() as u32 - 1))
        } else {
            None
        }
    }
}
