//! Private pools: exact numbers of hand-written traces, and recordings against the state of their
//! segments.

use crate::{load, parse, test_data};
use vramscope_snapshot::{PoolId, Snapshot};
use vramscope_trace::slicing::now;
use vramscope_trace::{Carving, LiveSet, PoolEnvelope, Trace, pool_envelope};

/// Analyzes the first device.
fn analyze(snapshot: &Snapshot) -> (Trace, Carving, Option<PoolEnvelope>) {
    let trace = Trace::all(snapshot).remove(0);
    let carving = now(async |budget| Carving::new(snapshot, &trace, budget).await);
    let envelope = now(async |budget| pool_envelope(&trace, &carving, snapshot, budget).await);
    (trace, carving, envelope)
}

/// Name, peak of reserved bytes and peak of active bytes of each pool.
fn peaks(snapshot: &Snapshot, envelope: &PoolEnvelope) -> Vec<(String, u64, u64)> {
    let name = |p| snapshot.pool(p).expect("a pool of the file").to_string();
    envelope.pools.iter().map(|p| (name(p.pool), p.reserved.0, p.active.0)).collect()
}

#[test]
fn envelope_has_the_expected_height_in_every_slot() {
    // Pool (1, 0) is created in the window, and only the final segments name it. Pool (0, 2) is
    // from before the window and full. It is released, and the event of the release names it.
    let snapshot = parse(
        br#"{"device_traces": [[
            {"action": "segment_alloc", "addr": 65536, "size": 4096},
            {"action": "alloc", "addr": 65536, "size": 1000},
            {"action": "alloc", "addr": 66560, "size": 3072},
            {"action": "free_requested", "addr": 66560, "size": 3072},
            {"action": "free_completed", "addr": 66560, "size": 3072},
            {"action": "free_requested", "addr": 131072, "size": 2048},
            {"action": "free_completed", "addr": 131072, "size": 2048},
            {"action": "segment_free", "addr": 131072, "size": 2048, "pool_id": [0, 2]},
            {"action": "alloc", "addr": 5120, "size": 500}]],
          "segments": [
            {"device": 0, "address": 4096, "total_size": 4096,
             "segment_pool_id": [0, 0], "blocks": [
                {"address": 4096, "size": 1024, "requested_size": 1000,
                 "state": "active_allocated"},
                {"address": 5120, "size": 512, "requested_size": 500, "state": "active_allocated"},
                {"address": 5632, "size": 2560, "requested_size": 0, "state": "inactive"}]},
            {"device": 0, "address": 65536, "total_size": 4096,
             "segment_pool_id": [1, 0], "blocks": [
                {"address": 65536, "size": 1024, "requested_size": 1000,
                 "state": "active_allocated"},
                {"address": 66560, "size": 3072, "requested_size": 0, "state": "inactive"}]}]}"#,
    );
    let (trace, carving, envelope) = analyze(&snapshot);
    let envelope = envelope.expect("the device has private pools");
    assert!(
        trace.warnings.is_empty() && carving.warnings.is_empty(),
        "{:?} {:?}",
        trace.warnings,
        carving.warnings
    );
    assert_eq!(
        trace.requested.to_vec(),
        [3048, 3048, 4048, 7120, 7120, 4048, 4048, 2000, 2000, 2500]
    );
    // A free does not change the height. The memory stays in the pool until its segment is
    // released.
    assert_eq!(
        envelope.height.to_vec(),
        [3048, 7144, 7144, 7144, 7144, 7144, 7144, 7144, 5096, 5596]
    );
    assert_eq!(
        envelope.size.to_vec(),
        [2048, 6144, 6144, 6144, 6144, 6144, 6144, 6144, 4096, 4096]
    );
    assert_eq!(
        now(async |budget| trace.reserved(&snapshot, budget).await).to_vec(),
        [6144, 10240, 10240, 10240, 10240, 10240, 10240, 10240, 8192, 8192]
    );
    let mut found = peaks(&snapshot, &envelope);
    found.sort_unstable();
    assert_eq!(found, [("(0, 2)".to_owned(), 2048, 2048), ("(1, 0)".to_owned(), 4096, 4096)]);
}

#[test]
fn a_pool_without_segments_is_as_large_as_its_blocks() {
    let snapshot = parse(
        br#"{"segments": [], "device_traces": [[
            {"action": "alloc", "addr": 4096, "size": 700, "pool_id": [0, 3]},
            {"action": "alloc", "addr": 8192, "size": 100, "pool_id": [0, 0]},
            {"action": "alloc", "addr": 9216, "size": 100},
            {"action": "free_completed", "addr": 4096, "size": 700, "pool_id": [0, 3]}]]}"#,
    );
    let (trace, _, envelope) = analyze(&snapshot);
    let envelope = envelope.expect("the device has a private pool");
    assert_eq!(trace.requested.to_vec(), [0, 700, 800, 900, 200]);
    assert_eq!(envelope.height.to_vec(), [0, 1024, 1124, 1224, 200]);
    assert_eq!(envelope.size.to_vec(), [0, 1024, 1024, 1024, 0]);
    assert_eq!(peaks(&snapshot, &envelope), [("(0, 3)".to_owned(), 0, 1024)]);
}

/// Compares with the segments of [`LiveSet`] in every slot.
#[test]
fn envelope_matches_the_segments_of_every_slot() {
    for (name, count) in [
        ("recorded/t26/pools.pickle", 3),
        ("recorded/t29/pools.pickle", 3),
        ("edge/pools.pickle", 2),
        ("scenarios/f13.pickle", 1),
        ("scenarios/f14.pickle", 1),
    ] {
        let snapshot = load(name);
        let (trace, carving, envelope) = analyze(&snapshot);
        let envelope = envelope.unwrap_or_else(|| panic!("{name} has private pools"));
        assert_eq!(envelope.pools.len(), count, "{name}");
        let reserved = now(async |budget| trace.reserved(&snapshot, budget).await);
        let mut expected_peaks = vec![(0, 0); envelope.pools.len()];
        for slot in 0..trace.slots() {
            let segments =
                now(async |budget| LiveSet::new(&trace, slot, budget).await).segments(&carving);
            let (mut size, mut height) = (0, 0);
            for (pool, peak) in envelope.pools.iter().zip(&mut expected_peaks) {
                let own: Vec<_> = segments.iter().filter(|s| s.pool == pool.pool).collect();
                let reserved: u64 = own.iter().map(|s| s.size.0).sum();
                let active: u64 = own.iter().map(|s| s.active.0).sum();
                *peak = (reserved.max(peak.0), active.max(peak.1));
                size += reserved.max(active);
            }
            for segment in &segments {
                let is_private = snapshot.pool(segment.pool).is_some_and(|p| p != PoolId::DEFAULT);
                height += if is_private { segment.size.0 } else { segment.requested.0 };
            }
            assert_eq!(
                (envelope.size.at(slot), envelope.height.at(slot)),
                (size, height),
                "{name} slot {slot}"
            );
            assert!(
                trace.requested.at(slot) <= height && height <= reserved.at(slot),
                "{name} {slot}"
            );
        }
        let peaks: Vec<_> = envelope.pools.iter().map(|p| (p.reserved.0, p.active.0)).collect();
        assert_eq!(peaks, expected_peaks, "{name}");
        // PyTorch's final segments give the same height.
        let mut end = 0;
        for segment in snapshot.segments_of(&trace.device) {
            let is_private = snapshot.pool(segment.pool).is_some_and(|p| p != PoolId::DEFAULT);
            let active = snapshot.blocks_of(segment).iter().filter(|b| b.state.is_active());
            let requested: u64 = active.map(|b| b.requested_size.0).sum();
            end += if is_private { segment.total_size.0 } else { requested };
        }
        assert_eq!(envelope.height.at(trace.slots() - 1), end, "{name}");
    }
}

#[test]
fn envelope_exists_only_with_private_pools_and_is_never_below_requested() {
    let (mut with, mut without) = (0, 0);
    for folder in [
        "scenarios",
        "edge",
        "recorded",
        "recorded/t20",
        "recorded/t26",
        "recorded/t29",
        "recorded/misc",
    ] {
        for entry in std::fs::read_dir(test_data().join(folder)).expect("the folder exists") {
            let path = entry.expect("the entry is readable").path();
            if !path.extension().is_some_and(|e| e == "pickle" || e == "gz") {
                continue;
            }
            let snapshot = load(&path);
            for trace in Trace::all(&snapshot) {
                let carving = now(async |budget| Carving::new(&snapshot, &trace, budget).await);
                let Some(envelope) =
                    now(async |budget| pool_envelope(&trace, &carving, &snapshot, budget).await)
                else {
                    without += 1;
                    continue;
                };
                with += 1;
                assert!(
                    snapshot.pools.len() > 1 && !envelope.pools.is_empty(),
                    "{}",
                    path.display()
                );
                assert_eq!(
                    (envelope.height.len(), envelope.size.len()),
                    (trace.requested.len(), trace.requested.len())
                );
                let heights = trace.requested.to_vec().into_iter().zip(envelope.height.to_vec());
                assert!(
                    heights.into_iter().all(|(requested, height)| requested <= height),
                    "{}",
                    path.display()
                );
            }
        }
    }
    assert!(with >= 5 && without > 50, "{with} {without}");
}
