//! What could not be looked for, on small recordings.

use crate::{Device, load, parse};
use serde_json::{Value, json};
use vramscope_inference::{BlindSpot, Overrun, blind_spots};
use vramscope_trace::slicing::now;

fn of_json(file: &Value) -> Vec<BlindSpot> {
    now(async |budget| {
        blind_spots(Device::new(parse(file.to_string().as_bytes())).evidence(), budget).await
    })
}

/// An event; line 0 means no call stack.
fn event(action: &str, address: u64, time: u64, line: u32) -> Value {
    let mut event = json!({"action": action, "addr": address, "size": 4096, "stream": 0});
    event["time_us"] = time.into();
    if line > 0 {
        event["frames"] = json!([{"name": "f", "filename": "train.py", "line": line}]);
    }
    event
}

/// Allocations at line 1 and frees at line `free`, from time 1000 on.
fn pairs(count: u64, free: u32) -> Vec<Value> {
    let events = |i: u64| {
        let (address, time) = ((i + 1) << 20, 1000 + 3 * i);
        [
            event("alloc", address, time, 1),
            event("free_requested", address, time + 1, free),
            event("free_completed", address, time + 2, free),
        ]
    };
    (0..count).flat_map(events).collect()
}

/// A segment with one block from before the window.
fn old_segment(line: u32) -> Value {
    let mut block = json!({"address": 1u64 << 40, "size": 4096, "requested_size": 4096});
    block["state"] = "active_allocated".into();
    if line > 0 {
        block["frames"] = json!([{"name": "f", "filename": "train.py", "line": line}]);
    }
    json!({"device": 0, "address": 1u64 << 40, "total_size": 2 << 20, "blocks": [block]})
}

fn range(name: &str, from: u64, to: u64) -> [Value; 2] {
    [("START", from), ("END", to)]
        .map(|(stage, time)| json!({"name": name, "stage": stage, "device": 0, "time_us": time}))
}

/// The blind spot about events before the window.
fn about_the_past(file: &Value) -> Option<BlindSpot> {
    of_json(file)
        .into_iter()
        .find(|spot| matches!(spot, BlindSpot::RingOverrun(_) | BlindSpot::LateStart))
}

#[test]
fn a_file_without_events_has_no_history() {
    let file = json!({"segments": [old_segment(0)], "device_traces": [[]]});
    assert_eq!(of_json(&file), [BlindSpot::NoHistory { is_npu: false }]);
    let file =
        json!({"segments": [old_segment(0)], "device_traces": [[event("alloc", 1 << 30, 1, 1)]]});
    assert_eq!(of_json(&file), [BlindSpot::StateOnly]);
}

#[test]
fn named_ranges_before_the_window_tell_how_much_is_lost() {
    let ranges = |before: &str| -> Vec<Value> {
        [range(before, 0, 900), range("train", 1000, 1300)].into_iter().flatten().collect()
    };
    let mut file = json!({"segments": [old_segment(0)], "device_traces": [pairs(101, 2)]});
    file["external_annotations"] = ranges("train").into();
    // Events last from 1000 to 1302, ranges begin at 0.
    let lost = BlindSpot::RingOverrun(Overrun::Ranges { percent: 76 });
    assert_eq!(about_the_past(&file), Some(lost));
    // A wait for data before the first event shows no lost events.
    file["external_annotations"] = ranges("load").into();
    assert_eq!(about_the_past(&file), Some(BlindSpot::LateStart));
    // Nothing is from before the window, so nothing is lost.
    file["external_annotations"] = ranges("train").into();
    file["segments"] = json!([]);
    assert_eq!(about_the_past(&file), None);
}

#[test]
fn other_signs_of_an_overrun_are_weaker() {
    let file = |pairs_in_window: u64, line: u32| {
        let events = pairs(pairs_in_window, 2);
        json!({"segments": [old_segment(line)], "device_traces": [events]})
    };
    let overrun = |of: &Value| match about_the_past(of) {
        Some(BlindSpot::RingOverrun(overrun)) => Some(overrun),
        _ => None,
    };
    assert_eq!(overrun(&file(5, 7)), Some(Overrun::Stacks { blocks: 1 }));
    assert_eq!(overrun(&file(1000, 0)), Some(Overrun::RoundNumber { events: 3000 }));
    assert_eq!(overrun(&file(5, 0)), None);
    let mut recorded = file(1000, 7);
    for (value, expected) in [("true", Some(Overrun::Recorded)), ("false", None)] {
        let is_full: bool = value.parse().expect("a bool");
        recorded["allocator_settings"] = json!({"trace_alloc_overflowed": is_full});
        assert_eq!(overrun(&recorded), expected);
    }
}

#[test]
fn stacks_of_frees_need_a_context_of_all() {
    let about_stacks = |free: u32| {
        let file = json!({"segments": [], "device_traces": [pairs(9, free)]});
        of_json(&file)
            .into_iter()
            .find(|spot| matches!(spot, BlindSpot::NoStacks | BlindSpot::NoFreeStacks))
    };
    assert_eq!(about_stacks(2), None);
    // Without a stack, and with the stack of the allocation.
    assert_eq!(about_stacks(0), Some(BlindSpot::NoFreeStacks));
    assert_eq!(about_stacks(1), Some(BlindSpot::NoFreeStacks));
    let without: Vec<Value> = (0..9).map(|i| event("alloc", (i + 1) << 20, i, 0)).collect();
    let spots = of_json(&json!({"segments": [], "device_traces": [without]}));
    assert!(spots.contains(&BlindSpot::NoStacks), "{spots:?}");
    assert!(spots.contains(&BlindSpot::NoBackward), "{spots:?}");
}

#[test]
fn recordings_tell_their_steps_and_clock() {
    let spots = |path: &str| {
        now(async |budget| blind_spots(Device::new(load(path)).evidence(), budget).await)
    };
    assert_eq!(spots("recorded/gpt_leak.pickle.gz"), []);
    let few = BlindSpot::FewSteps { whole: 4, needed: 5 };
    assert!(spots("recorded/t26/gpt_small.pickle.gz").contains(&few));
    assert!(spots("edge/no_time.pickle").contains(&BlindSpot::NoClock { is_npu: false }));
}

#[test]
fn memory_of_unknown_use_is_told() {
    let allocs: Vec<Value> = (0..9).map(|i| event("alloc", (i + 1) << 20, i, 0)).collect();
    let file = json!({"segments": [], "device_traces": [allocs]});
    assert!(of_json(&file).contains(&BlindSpot::NoCategories { percent: 100 }));
}
