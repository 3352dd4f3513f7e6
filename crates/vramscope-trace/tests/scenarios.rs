//! Scenarios small enough to check by hand: expected bytes before the window and after every event.

use crate::{load, parse, test_data};
use serde_json::Value;
use std::path::PathBuf;
use vramscope_snapshot::{Snapshot, WarningKind};
use vramscope_trace::slicing::now;
use vramscope_trace::{Exactness, LiveSet, Trace};

fn expected() -> Value {
    let text = std::fs::read_to_string(test_data().join("scenarios/expected.json"))
        .expect("the expected numbers");
    serde_json::from_str(&text).expect("JSON")
}

fn numbers(value: &Value) -> Vec<i64> {
    value.as_array().expect("a list").iter().map(|n| n.as_i64().expect("a number")).collect()
}

#[test]
fn all_twenty_scenarios_match_the_hand_computed_numbers() {
    let expected = expected();
    let scenarios = expected.as_object().expect("a table");
    assert_eq!(scenarios.len(), 20);
    for (name, scenario) in scenarios {
        let snapshot = load(format!("scenarios/{name}.pickle"));
        let traces = Trace::all(&snapshot);
        let devices = scenario["devices"].as_array().expect("a list");
        assert_eq!(traces.len(), devices.len(), "{name}");
        for (trace, want) in traces.iter().zip(devices) {
            assert_eq!(
                u64::from(trace.device.device),
                want["device"].as_u64().expect("an ordinal"),
                "{name}"
            );
            let band = &want["requested_bytes"];
            let mut after: Vec<i64> = vec![band["start"].as_i64().expect("a number")];
            after.extend(numbers(&band["after"]));
            let found: Vec<i64> =
                trace.requested.to_vec().into_iter().map(|bytes| bytes as i64).collect();
            assert_eq!(found, after, "{name}");
            for (band, found) in
                [("requested_bytes", trace.requested_band), ("reserved_bytes", trace.reserved_band)]
            {
                let want = &want[band];
                let Some(start) = want["start"].as_i64() else { continue };
                let peak_event = found.peak_event.map_or(-1, i64::from);
                let found = [found.start, found.peak, peak_event, found.end];
                let want = [
                    start,
                    want["peak"].as_i64().expect("a number"),
                    want["peak_event"].as_i64().expect("a number"),
                    want["end"].as_i64().expect("a number"),
                ];
                assert_eq!(found, want, "{name} {band}: start, peak, peak event, end");
            }
        }
    }
}

/// Calls `each` for every trace of the valid snapshots in `test_data`.
fn all_traces(mut each: impl FnMut(&str, &Snapshot, &Trace)) {
    let mut count = 0;
    for folder in [
        "scenarios",
        "edge",
        "protocols",
        "recorded",
        "recorded/t20",
        "recorded/t26",
        "recorded/t29",
        "recorded/misc",
    ] {
        let mut paths: Vec<PathBuf> = std::fs::read_dir(test_data().join(folder))
            .expect("the folder exists")
            .map(|e| e.expect("the entry is readable").path())
            .filter(|p| p.extension().is_some_and(|e| e == "pickle" || e == "gz"))
            .collect();
        paths.sort();
        for path in paths {
            let snapshot = load(&path);
            for trace in Trace::all(&snapshot) {
                count += 1;
                each(
                    &format!("{} device {}", path.display(), trace.device.device),
                    &snapshot,
                    &trace,
                );
            }
        }
    }
    assert!(count > 60, "only {count} traces were found");
}

#[test]
fn live_blocks_add_up_to_requested_bytes_in_every_slot() {
    all_traces(|name, _, trace| {
        let mut sum = 0;
        for slot in 0..trace.slots() {
            for change in trace.changes_at(slot) {
                let bytes = trace.blocks[change.block() as usize].bytes.0;
                sum = if change.enters() { sum + bytes } else { sum - bytes };
            }
            assert_eq!(sum, trace.requested.at(slot), "{name} slot {slot}");
        }
        for slot in (0..trace.slots()).step_by(997).chain([trace.slots() - 1]) {
            let live = now(async |budget| LiveSet::new(trace, slot, budget).await);
            let of_blocks = live.blocks().iter().map(|&i| trace.blocks[i as usize].bytes.0);
            assert_eq!(
                of_blocks.sum::<u64>(),
                trace.requested.at(slot),
                "{name}: the live set of slot {slot}"
            );
        }
        let at_end: u64 =
            trace.blocks.iter().filter(|b| b.leaves == trace.slots()).map(|b| b.bytes.0).sum();
        assert_eq!(at_end as i64, trace.requested_band.end, "{name}");
        let peak = trace.requested.to_vec().into_iter().max().unwrap_or(0);
        assert_eq!(peak as i64, trace.requested_band.peak, "{name}");
    });
}

#[test]
fn blocks_at_an_address_never_overlap_in_time() {
    all_traces(|name, _, trace| {
        let mut lives: Vec<(u64, u32, u32, u32)> =
            trace.blocks.iter().map(|b| (b.address.0, b.enters, b.leaves, b.reuse())).collect();
        lives.sort_unstable();
        for &(address, enters, leaves, _) in &lives {
            assert!(
                enters < leaves && leaves <= trace.slots(),
                "{name}: {address:#x} lives {enters}..{leaves}"
            );
        }
        for pair in lives.windows(2) {
            let ((a, _, ends, use_a), (b, begins, _, use_b)) = (pair[0], pair[1]);
            if a == b {
                assert!(ends <= begins, "{name}: {a:#x} is live twice at {begins}");
                assert_eq!(use_a + 1, use_b, "{name}: uses of {a:#x} are counted");
            }
        }
    });
}

#[test]
fn bands_end_at_the_totals_of_the_final_segments() {
    let lost = ["lost_free", "lost_alloc", "ends_requested"];
    all_traces(|name, snapshot, trace| {
        let active = snapshot.segments_of(&trace.device).iter().flat_map(|s| snapshot.blocks_of(s));
        let live: u64 = active.filter(|b| b.state.is_active()).map(|b| b.requested_size.0).sum();
        let reserved: u64 =
            snapshot.segments_of(&trace.device).iter().map(|s| s.total_size.0).sum();
        assert_eq!(trace.reserved_band.end, reserved as i64, "{name}");
        let odd = trace.warnings.iter().any(|w| lost.contains(&w.kind.name()));
        assert!(
            odd || trace.device.segments.is_empty() || trace.requested_band.end == live as i64,
            "{name}"
        );
        // Recordings of the real allocator have no contradictions.
        if name.contains("/recorded/") {
            assert!(!odd, "{name}: {:?}", trace.warnings);
        }
    });
}

#[test]
fn find_returns_the_block_with_a_stable_name() {
    all_traces(|name, _, trace| {
        for (i, block) in (0..).zip(&trace.blocks).step_by(97) {
            if block.is_preexisting() || block.alloc_event().is_some() {
                assert_eq!(trace.find(block.address.0, block.alloc_event()), Some(i), "{name}");
            }
        }
    });
}

#[test]
fn impossibly_large_sizes_saturate() {
    let json =
        br#"{"device_traces": [[{"action": "alloc", "addr": 4096, "size": 9223372036854775808}]],
            "segments": []}"#;
    let snapshot = parse(json);
    let trace = &Trace::all(&snapshot)[0];
    assert_eq!(trace.requested.to_vec(), [0, 1 << 62]);
    let warning = &snapshot.report.warnings()[0];
    assert_eq!((warning.kind, warning.count), (WarningKind::SizesTooLarge, 1));
    let exactness = [trace.exactness, trace.reserved_exactness()];
    assert_eq!(exactness, [Exactness::Estimate; 2]);
}
