//! What happens to segments.

use crate::allocator::Allocator;

/// What the allocator does with a segment, by the names of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentAction {
    /// `segment_alloc`: a segment is allocated.
    Alloc,
    /// `segment_free`: a segment is returned.
    Free,
    /// `segment_map`: an expandable segment grows.
    Map,
    /// `segment_unmap`: pages of an expandable segment are returned.
    Unmap,
}

/// A change of the reserved memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentEvent {
    /// What happens.
    pub action: SegmentAction,
    /// First address.
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// The stream.
    pub stream: u32,
    /// The private pool. 0 for the default pool.
    pub pool: u32,
}

/// Receives the events of segments, in the order of a trace.
pub trait Observer {
    /// Called after each change.
    fn segment(&mut self, event: SegmentEvent);
}

/// Ignores all events.
impl Observer for () {
    fn segment(&mut self, _event: SegmentEvent) {}
}

/// Collects all events.
impl Observer for Vec<SegmentEvent> {
    fn segment(&mut self, event: SegmentEvent) {
        self.push(event);
    }
}

impl Allocator {
    pub(crate) fn notify(
        &self,
        observer: &mut impl Observer,
        action: SegmentAction,
        list: u32,
        address: u64,
        size: u64,
    ) {
        let key = self.blocks.lists[list as usize].key;
        observer.segment(SegmentEvent {
            action,
            address,
            size,
            stream: key.stream,
            pool: key.pool,
        });
    }
}
