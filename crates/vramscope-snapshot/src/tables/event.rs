//! Turns the dict of an event into a row.

use super::{Tables, ext};
use crate::events::{Action, Event, NO_TIME, SparseColumn};
use crate::ids::PoolIndex;
use crate::json_text::{MAX_SHOWN_BYTES, cut, json_text};
use crate::keys;
use crate::report::WarningKind;
use crate::sink::joined;
use vramscope_pickle::{ByteOffset, Heap, Kind, StrId, Value};
use vramscope_units::Bytes;

impl Tables {
    /// Applies the fields in `pairs` to the event in row `row`.
    pub(crate) fn event(
        &mut self,
        heap: &mut Heap,
        row: u32,
        mut event: Event,
        pairs: &[Value],
        at: ByteOffset,
    ) -> Event {
        for pair in pairs.chunks_exact(2) {
            self.field(heap, row, &mut event, [pair[0], pair[1]], at);
        }
        event
    }

    /// Applies one field.
    #[inline(never)]
    fn field(
        &mut self,
        heap: &mut Heap,
        row: u32,
        event: &mut Event,
        [key, value]: [Value; 2],
        at: ByteOffset,
    ) {
        let Kind::Str(key) = key.kind() else { return };
        match key.0 {
            keys::ACTION => event.action = self.action(heap, value, at),
            keys::ADDR => event.addr = self.address(heap, value, at),
            keys::SIZE => event.size = self.bytes(heap, value, at),
            keys::TIME_US => event.time = heap.small_int(value).unwrap_or(NO_TIME),
            keys::STREAM => event.stream = self.stream(heap, value, at),
            keys::FRAMES => event.stack = self.stack(heap, value),
            keys::POOL_ID | keys::SEGMENT_POOL_ID => event.pool = self.pool(heap, value, at),
            keys::DEVICE_FREE => {
                let free = Bytes(self.bytes(heap, value, at));
                set_sparse(&mut self.events.device_free, row, Some(free));
            }
            keys::COMPILE_CONTEXT
            | keys::USER_METADATA
            | keys::INTERNAL_METADATA
            | keys::CATEGORY => {
                let text = metadata_text(heap, value);
                let column = match key.0 {
                    keys::COMPILE_CONTEXT => &mut self.events.compile_context,
                    keys::USER_METADATA => &mut self.events.user_metadata,
                    keys::INTERNAL_METADATA => &mut self.events.internal_metadata,
                    _ => &mut self.events.category,
                };
                set_sparse(column, row, text);
            }
            keys::FORWARD_FRAMES => {
                let text = forward_traceback(heap, value);
                set_sparse(&mut self.events.forward_frames, row, text);
            }
            _ => {}
        }
    }

    pub(crate) fn new_event(&mut self, heap: &mut Heap, pairs: &[Value], at: ByteOffset) -> Value {
        if self.key_order.matches(pairs) {
            return self.event_in_key_order(heap, pairs, at);
        }
        self.key_order.learn(pairs);
        let mut event = self.event(heap, self.events.len() as u32, Event::UNKNOWN, pairs, at);
        self.mark_made_up(&mut event);
        Value::ext(ext::EVENT, self.remap.number(self.events.push_outlined(event)))
    }

    /// Adds an event with the keys of the last one.
    #[inline(never)]
    pub(crate) fn event_in_key_order(
        &mut self,
        heap: &mut Heap,
        pairs: &[Value],
        at: ByteOffset,
    ) -> Value {
        let [action, addr, size, stream, time, frames] = self.key_order.common_values(pairs);
        let mut event = Event {
            action: self.action(heap, action, at),
            addr: self.address(heap, addr, at),
            size: self.bytes(heap, size, at),
            stream: self.stream(heap, stream, at),
            time: heap.small_int(time).unwrap_or(NO_TIME),
            stack: self.stack(heap, frames),
            pool: PoolIndex::UNKNOWN,
        };
        let row = self.events.len() as u32;
        for i in 0..self.key_order.other_positions().len() {
            let place = self.key_order.other_positions()[i];
            self.field(heap, row, &mut event, [pairs[place - 1], pairs[place]], at);
        }
        self.mark_made_up(&mut event);
        Value::ext(ext::EVENT, self.remap.number(self.events.push(event)))
    }

    /// Marks the events of `torch_npu`'s workspace allocator, which are no history.
    #[inline]
    fn mark_made_up(&mut self, event: &mut Event) {
        if self.made_up > 0 || event.action == Action::WORKSPACE_SNAPSHOT {
            self.workspace_event(event);
        }
    }

    /// `get_trace` in `NPUWorkspaceAllocator.cpp` writes three events for each block, with one
    /// address and size.
    #[cold]
    fn workspace_event(&mut self, event: &mut Event) {
        let block = (event.addr, event.size);
        let made_up = match (event.action, self.made_up) {
            (Action::SEGMENT_ALLOC, 2) => Action::WORKSPACE_SEGMENT,
            (Action::ALLOC, 1) => Action::WORKSPACE_ALLOC,
            (Action::WORKSPACE_SNAPSHOT, _) => {
                self.workspaces.push(block);
                self.made_up = 2;
                return;
            }
            _ => {
                self.made_up = 0;
                return;
            }
        };
        if self.workspaces.last() == Some(&block) {
            event.action = made_up;
            self.made_up -= 1;
        } else {
            self.made_up = 0;
        }
    }

    #[inline]
    fn action(&mut self, heap: &mut Heap, value: Value, at: ByteOffset) -> Action {
        let name = match value.kind() {
            Kind::Str(name) if (keys::ALLOC..=keys::FREE).contains(&name.0) => {
                return Action((name.0 - keys::ALLOC) as u8);
            }
            Kind::Str(name) => name,
            _ => heap.strings.intern(b"(no action)"),
        };
        self.other_action(heap, name, at)
    }

    /// An action that PyTorch does not define, or `torch_npu` does.
    #[cold]
    fn other_action(&mut self, heap: &Heap, name: StrId, at: ByteOffset) -> Action {
        if name.0 == keys::WORKSPACE_SNAPSHOT {
            return Action::WORKSPACE_SNAPSHOT;
        }
        let known = self.actions.iter().position(|&a| a == name);
        let index = known.unwrap_or(self.actions.len());
        if known.is_none() && u8::try_from(index).is_ok() {
            self.actions.push(name);
        }
        self.report.warn(WarningKind::UnknownAction, Some(at), || {
            let text = cut(&heap.strings.text(name), MAX_SHOWN_BYTES);
            format!("events with the unknown action {text:?} are listed, but have no effect")
        });
        // The first 256 names have an index of their own. All later names share one.
        Action(u8::try_from(index).unwrap_or(u8::MAX - 1))
    }
}

/// `forward_frames`: a list of lines, joined as PyTorch's viewer does, or one string.
fn forward_traceback(heap: &mut Heap, value: Value) -> Option<StrId> {
    let value = heap.resolve(value);
    match value.kind() {
        Kind::Ext(ext::TEXT, text) => Some(StrId(text)),
        Kind::Str(text) if !heap.strings.bytes(text).is_empty() => Some(text),
        // A list of several batches.
        Kind::List(_) if !heap.items(value).is_empty() => {
            let lines = heap.items(value).to_vec();
            joined(heap, &lines)
        }
        _ => None,
    }
}

/// Sets the value of the newest row. A key that is in a dict twice has its last value.
#[inline]
fn set_sparse<T>(column: &mut SparseColumn<T>, row: u32, value: Option<T>) {
    if column.last().is_some_and(|last| last.0 == row) {
        column.pop();
    }
    column.extend(value.map(|value| (row, value)));
}

/// A metadata string. `None` if it says nothing: None, empty, or PyTorch's "N/A". A dict becomes
/// JSON text.
fn metadata_text(heap: &mut Heap, value: Value) -> Option<StrId> {
    match heap.resolve(value).kind() {
        Kind::Str(StrId(keys::EMPTY | keys::NOT_APPLICABLE)) | Kind::None => None,
        Kind::Str(text) => Some(text),
        _ => {
            let text = json_text(heap, value);
            if !heap.budget.ask(text.len()) {
                return None;
            }
            Some(heap.strings.intern(text.as_bytes()))
        }
    }
}
