//! Pinned host memory: a device of its own, with sizes rounded by its allocator.

use crate::load;
use vramscope_snapshot::{DeviceKind, HOST, Snapshot, WarningKind};
use vramscope_trace::slicing::now;
use vramscope_trace::{Band, Carving, Exactness, Trace};

const MIB: i64 = 1 << 20;

fn host(snapshot: &Snapshot) -> (Trace, Carving) {
    let trace = Trace::all(snapshot).pop().expect("a device");
    assert_eq!((trace.device.device, trace.device.kind), (HOST, DeviceKind::Host));
    let carving = now(async |budget| Carving::new(snapshot, &trace, budget).await);
    (trace, carving)
}

fn figures(band: Band) -> (i64, i64, Option<u32>, i64) {
    (band.start, band.peak, band.peak_event, band.end)
}

/// How many requests the file does not tell.
fn unknown_requests(trace: &Trace) -> u32 {
    let of_requests = trace.warnings.iter().filter(|w| w.kind == WarningKind::HostRequests);
    of_requests.map(|w| w.count).sum()
}

#[test]
fn blocks_take_whole_segments_and_requests_come_from_the_end() {
    let snapshot = load("edge/host_requests.pickle");
    let (trace, carving) = host(&snapshot);
    // Before the window: 8 MiB that are freed in it, and 8 bytes whose free is pending at the end.
    // Then 32 MiB for a request of 21 MiB, and 3 MiB, which is above the rounding threshold.
    let before = 8 * MIB + 8;
    assert_eq!(figures(trace.requested_band), (before, before + 24 * MIB, Some(3), 21 * MIB + 8));
    assert_eq!(figures(carving.active_band), (before, before + 35 * MIB, Some(3), 32 * MIB + 8));
    assert_eq!(figures(carving.allocated_band), (before, before + 35 * MIB, Some(3), 32 * MIB));
    assert_eq!(figures(trace.reserved_band), (before, before + 35 * MIB, Some(2), 40 * MIB + 8));
    // The requests of the two blocks from before the window are unknown. Block sizes are not.
    assert_eq!(unknown_requests(&trace), 2);
    assert_eq!(trace.exactness, Exactness::Estimate);
    assert_eq!((carving.exactness, carving.warnings.len()), (Exactness::Exact, 0));
    assert_eq!(trace.warnings.len(), 1, "{:?}", trace.warnings);
}

#[test]
fn known_requests_are_exact() {
    let snapshot = load("edge/host_only.pickle");
    assert_eq!(snapshot.devices.len(), 1, "the device without data is left out");
    let (trace, carving) = host(&snapshot);
    assert_eq!(figures(trace.requested_band), (0, 21 * MIB, Some(1), 21 * MIB));
    assert_eq!(figures(carving.active_band), (0, 32 * MIB, Some(1), 32 * MIB));
    assert_eq!([trace.exactness, carving.exactness], [Exactness::Exact; 2]);
    assert!(trace.warnings.is_empty());
}

#[test]
fn segments_without_blocks_hold_one_block() {
    let snapshot = load("edge/host.pickle");
    let (trace, carving) = host(&snapshot);
    assert_eq!(snapshot.segments_of(&trace.device).len(), 1);
    assert_eq!((trace.end_live_blocks, carving.active_band.end), (1, MIB));
    assert_eq!(snapshot.devices[0].kind, DeviceKind::Cuda);
    assert_eq!(snapshot.segments_of(&snapshot.devices[0]).len(), 1);
}

#[test]
fn recorded_loader_keeps_every_fourth_batch() {
    let snapshot = load("recorded/t215_pinned_loader.pickle");
    let (trace, carving) = host(&snapshot);
    // 20 batches of 4 MiB. Five are kept, one is current, and one waits for its copy.
    assert_eq!(figures(carving.active_band), (0, 28 * MIB, Some(49), 28 * MIB));
    assert_eq!(figures(carving.allocated_band), (0, 28 * MIB, Some(49), 24 * MIB));
    assert_eq!(figures(trace.reserved_band), (0, 28 * MIB, Some(48), 28 * MIB));
    assert_eq!((carving.exactness, carving.warnings.len()), (Exactness::Exact, 0));
    assert_eq!((trace.exactness, unknown_requests(&trace)), (Exactness::Estimate, 20));
}
