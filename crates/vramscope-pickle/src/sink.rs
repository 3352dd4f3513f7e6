//! The trait that receives a pickle's content.

use crate::error::ByteOffset;
use crate::heap::Heap;
use crate::value::Value;

/// Receives dicts, lists and tuples as soon as they are filled, so that no tree is ever built.
///
/// The machine offers a container after every batch that fills it. A sink *takes* the container by
/// returning `Some(value)` (made by [`Value::ext`]). The machine then drops the items, and passes
/// that value wherever the container is used. If the sink returns `None`, the machine keeps the
/// items, and [`Heap::items`] returns them.
///
/// CPython writes long containers in batches of 1000. Each further batch of a taken container is
/// offered again, with the sink's value in `so_far`. The sink has to change what that value means,
/// wherever the value is, and return it. If it cannot, it returns `None`, and reading ends with
/// [`LateItems`](crate::PickleError::LateItems). A container that is filled one item at a time (as
/// in protocol 0), or that the sink did not take at its first batch, is offered whole when it is
/// first put into another one. After that it does not change any more.
///
/// A sink whose memory may grow by more than a small multiple of the stream's bytes has to
/// [`ask`](crate::Budget::ask) the heap's budget first.
pub trait Sink {
    /// A batch of a dict. `pairs` alternates keys and values. `at` is the offset after the batch.
    fn dict(
        &mut self,
        heap: &mut Heap,
        so_far: Option<Value>,
        pairs: &[Value],
        at: ByteOffset,
    ) -> Option<Value>;

    /// A batch of a list, without the items of earlier batches.
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

    /// Reserves capacity for the rest of the stream, with [`reserve_for`](crate::reserve_for).
    /// `rest` is its length, in multiples of the bytes read since the last call.
    fn reserve_ahead(&mut self, _rest: f64) {}

    /// Bytes of memory that the sink holds. Called often, so it must be cheap.
    fn memory(&self) -> usize {
        0
    }

    /// A tuple, always whole.
    fn tuple(&mut self, heap: &mut Heap, items: &[Value], at: ByteOffset) -> Option<Value>;
}
