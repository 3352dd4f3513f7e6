//! Where the pickle's content goes.

use crate::error::ByteOffset;
use crate::heap::Heap;
use crate::value::Value;

/// The keys of a dict and their order, by a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keys(pub(crate) u32);

/// Takes dicts, lists and tuples as soon as they are filled, so that no tree of them is ever built.
///
/// The machine pushes: after every batch that fills a container it asks the sink. A sink that
/// answers `Some(value)` (made by [`Value::ext`]) has *taken* the container: its items are dropped,
/// and wherever the container is used afterwards, the sink sees its own value instead. A sink that
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

    /// The same of a new dict that is written as others were: those with the same `keys` have the
    /// same keys in the same order, which a sink then need not look at again.
    fn dict_as_before(
        &mut self,
        heap: &mut Heap,
        pairs: &[Value],
        _keys: Keys,
        at: ByteOffset,
    ) -> Option<Value> {
        self.dict(heap, None, pairs, at)
    }

    /// `items` are the list's, from the end of what was seen of it before.
    fn list(
        &mut self,
        heap: &mut Heap,
        so_far: Option<Value>,
        items: &[Value],
        at: ByteOffset,
    ) -> Option<Value>;

    /// Whether [`Sink::list`], which has just given this value for a new list, or [`Sink::tuple`],
    /// which gave it for a tuple, would give the same again for the same items, and change nothing
    /// that anyone sees by giving it once. Then it is not asked again for a list of nothing but
    /// memo references that was read before, nor for a tuple that is in the same place of a dict
    /// that is written in the same way: the machine puts the value in its place.
    ///
    /// Only values whose meaning never changes are such: the machine may put one in many places,
    /// each of which may come back in `so_far`.
    fn repeats(&self, _value: Value) -> bool {
        false
    }

    /// `rest` times as much of the stream is left as was read since the last time that this was
    /// said: room can be made for it ([`make_room`](crate::make_room)).
    fn foresee(&mut self, _rest: f64) {}

    /// A tuple; it is always whole.
    fn tuple(&mut self, heap: &mut Heap, items: &[Value], at: ByteOffset) -> Option<Value>;
}
