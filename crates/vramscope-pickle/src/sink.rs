//! Where the pickle's content goes.

use crate::error::ByteOffset;
use crate::heap::Heap;
use crate::value::Value;

/// Takes dicts, lists and tuples as soon as they are filled, so that no tree of them is ever built.
///
/// The machine pushes: after every batch that fills a container it asks the sink. A sink that
/// answers `Some(value)` (made by [`Value::ext`]) has *taken* the container: its items are dropped,
/// and wherever the container is used afterwards, the sink sees its own value replacement. A sink that
/// answers `None` leaves the items with the machine; they can be read through [`Heap::items`].
///
/// CPython writes long containers in batches of 1000. A taken container that gets another batch
/// comes again, with the value that stands for it in `so_far`. A container that is filled one item
/// at a time (as protocol 0 does) is offered once, whole, when it is first put into another.
pub trait Sink {
    /// `pairs` holds keys and values in turn. `at` is where the batch ends.
    fn dict(
        &mut self,
        heap: &mut Heap,
        so_far: Option<Value>,
        pairs: &[Value],
        at: ByteOffset,
    ) -> Option<Value>;

    /// `items` are the list's, from the end of what was seen of it before.
    fn list(
        &mut self,
        heap: &mut Heap,
        so_far: Option<Value>,
        items: &[Value],
        at: ByteOffset,
    ) -> Option<Value>;

    /// Whether `value`, which [`Sink::list`] has just returned for a new list, is cacheable: the
    /// sink would return it again for equal items, without any other effect. The machine caches it
    /// by the list's bytes, and uses it for equal lists of memo references without calling
    /// [`Sink::list`].
    ///
    /// The meaning of a cacheable value must never change: the machine may put it in many places,
    /// and pass it in `so_far` from each.
    fn is_cacheable(&self, _value: Value) -> bool {
        false
    }

    /// `rest` times as much of the stream is left as was read since the last time that this was
    /// said: room can be made for it ([`reserve_for`](crate::reserve_for)).
    fn reserve_ahead(&mut self, _rest: f64) {}

    /// A tuple; it is always whole.
    fn tuple(&mut self, heap: &mut Heap, items: &[Value], at: ByteOffset) -> Option<Value>;
}
