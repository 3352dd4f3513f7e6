//! Allocators that start with memory, and where the driver places segments.

use vramscope_allocator::{
    AddressOrder, Allocator, BlockState, Device, Request, SegmentEvent, Settings, StartBlock,
    StartSegment,
};

const MIB: u64 = 1 << 20;
const AT: u64 = 0x7f << 40;

fn request(mib: u64) -> Request {
    Request { bytes: mib * MIB, stream: 0, pool: 0 }
}

fn block(mib: u64, state: BlockState) -> StartBlock {
    let requested = if state == BlockState::Free { 0 } else { mib * MIB };
    StartBlock { size: mib * MIB, requested, state }
}

fn segment(address: u64, is_expandable: bool, blocks: Vec<StartBlock>) -> StartSegment {
    StartSegment { address, stream: 0, pool: 0, is_small: false, is_expandable, blocks }
}

use BlockState::{Allocated, Free, PendingFree};

#[test]
fn ordinary_segment_serves_and_merges() {
    let mut allocator = Allocator::new(Settings::default(), &Device::default());
    let blocks = vec![block(4, Allocated), block(10, Free), block(6, PendingFree)];
    let ids = allocator.start_with(&segment(AT, false, blocks));
    let stats = allocator.stats();
    assert_eq!((stats.reserved_bytes, stats.active_bytes), (20 * MIB, 10 * MIB));
    assert!(allocator.is_pending(ids[2]));
    let served = allocator.malloc(request(9), &mut ()).unwrap();
    assert_eq!(allocator.address_of(served), AT + 4 * MIB);
    assert_eq!(allocator.size_of(served), 10 * MIB);
    allocator.free(served);
    allocator.free(ids[0]);
    let mut events = Vec::new();
    allocator.empty_cache(&mut events);
    assert_eq!(events.len(), 1);
    assert_eq!((events[0].address, events[0].size), (AT, 20 * MIB));
    assert_eq!(allocator.stats().reserved_bytes, 0);
}

#[test]
fn mapped_ranges_of_one_expandable_segment_belong_together() {
    let settings = Settings { expandable_segments: true, ..Settings::default() };
    let mut allocator = Allocator::new(settings, &Device::default());
    let first = allocator.start_with(&segment(AT, true, vec![block(20, Allocated)]));
    allocator.start_with(&segment(AT + 60 * MIB, true, vec![block(20, Allocated)]));
    let mut events: Vec<SegmentEvent> = Vec::new();
    // 40 MiB fill the gap, and the rest of the segment follows.
    let gap = allocator.malloc(request(40), &mut events).unwrap();
    assert_eq!(allocator.address_of(gap), AT + 20 * MIB);
    let next = allocator.malloc(request(40), &mut events).unwrap();
    assert_eq!(allocator.address_of(next), AT + 80 * MIB);
    allocator.free(first[0]);
    allocator.free(gap);
    events.clear();
    allocator.empty_cache(&mut events);
    assert_eq!((events[0].address, events[0].size), (AT, 60 * MIB));
}

#[test]
fn memory_from_before_counts_against_the_limit() {
    let device = Device { available: 50 * MIB, ..Device::default() };
    let mut allocator = Allocator::new(Settings::default(), &device);
    allocator.start_with(&segment(AT, false, vec![block(20, Allocated)]));
    assert!(allocator.malloc(request(32), &mut ()).is_err());
    assert!(allocator.malloc(request(30), &mut ()).is_ok());
}

/// The addresses of three segments, the middle one freed, and two more.
fn addresses(order: AddressOrder) -> [u64; 5] {
    let device = Device { order, ..Device::default() };
    let mut allocator = Allocator::new(Settings::default(), &device);
    let mut place = |mib| {
        let id = allocator.malloc(request(mib), &mut ()).expect("there is no limit");
        (id, allocator.address_of(id))
    };
    let [a, b, c] = [place(20), place(30), place(20)];
    allocator.free(b.0);
    allocator.empty_cache(&mut ());
    let [d, e] = [10, 12].map(|mib| {
        let id = allocator.malloc(request(mib), &mut ()).expect("there is no limit");
        allocator.address_of(id)
    });
    [a.1, b.1, c.1, d, e].map(|address| address.wrapping_sub(a.1))
}

#[test]
fn driver_places_segments_in_the_order_asked() {
    assert_eq!(addresses(AddressOrder::Ascending), [0, 20, 50, 20, 30].map(|mib| mib * MIB));
    let below = |mib: u64| (mib * MIB).wrapping_neg();
    let descending = [0, below(30), below(50), below(60), below(72)];
    assert_eq!(addresses(AddressOrder::Descending), descending);
    let mixed = addresses(AddressOrder::Mixed);
    assert!(mixed.iter().any(|&at| at > 1 << 63) && mixed.iter().any(|&at| 0 < at && at < 1 << 63));
}

#[test]
fn known_address_is_used_once_and_leaves_no_hole() {
    let mut allocator = Allocator::new(Settings::default(), &Device::default());
    let ids = allocator.start_with(&segment(AT, false, vec![block(40, Allocated)]));
    allocator.free(ids[0]);
    allocator.empty_cache(&mut ());
    allocator.place_next_segment(AT + 10 * MIB, None);
    let hinted = allocator.malloc(request(20), &mut ()).unwrap();
    assert_eq!(allocator.address_of(hinted), AT + 10 * MIB);
    let mut next = || {
        let id = allocator.malloc(request(10), &mut ()).expect("there is no limit");
        allocator.address_of(id)
    };
    assert_eq!([next(), next()], [AT, AT + 30 * MIB]);
    assert!(next() > AT + 40 * MIB);
}
