//! The time axis of a trace with start-up and idle gaps.

use vramscope_layout::{Axis, AxisKind};
use vramscope_snapshot::Reader;
use vramscope_trace::Trace;

/// Bursts of 50 events, 7 microseconds apart, that begin at these times. The first two events
/// allocate little.
fn trace(bursts: &[u64]) -> Trace {
    let times = bursts.iter().flat_map(|&from| (0..50).map(move |i| from + 7 * i));
    let event = |(i, time): (usize, u64)| {
        let size = if i < 2 { 512 } else { 1 << 20 };
        format!(
            r#"{{"action": "alloc", "addr": {}, "size": {size}, "time_us": {}}}"#,
            (i + 1) << 21,
            time + 1_700_000_000_000_000
        )
    };
    let events: Vec<String> = [0, 9000].into_iter().chain(times).enumerate().map(event).collect();
    let json = format!(r#"{{"segments": [], "device_traces": [[{}]]}}"#, events.join(","));
    let mut reader = Reader::default();
    reader.feed(json.as_bytes()).expect("JSON");
    let snapshot = reader.finish().expect("a snapshot").remove(0).snapshot;
    Trace::all(&snapshot).remove(0)
}

#[test]
fn slots_and_states_agree_on_an_axis_with_cuts() {
    let trace = trace(&[20_000, 20_600, 50_000]);
    let axis = Axis::new(&trace, AxisKind::Time).expect("a clock");
    let even = Axis::even(&trace, AxisKind::Time).expect("a clock");
    let cuts: Vec<_> = axis.cuts().iter().map(|cut| (cut.from, cut.to)).collect();
    assert_eq!(cuts, [(0, 20_007), (20_943, 50_000)]);
    assert!(even.cuts().is_empty());
    assert!(axis.extent() < even.extent() / 20, "{} {}", axis.extent(), even.extent());
    let slots: Vec<u64> = (0..trace.slots()).map(|state| axis.slot_of(state)).collect();
    assert!(slots.is_sorted());
    for slot in 0..axis.extent() + 3 {
        let last = slots.partition_point(|&begins| begins <= slot) as u32 - 1;
        assert_eq!(axis.state_at(slot), last, "slot {slot}");
    }
    // Where nothing is cut, a microsecond is a slot.
    for state in [10, 40, 80, 120] {
        let [step, wanted] =
            [&axis, &even].map(|axis| axis.slot_of(state + 1) - axis.slot_of(state));
        assert_eq!(step, wanted, "state {state}");
    }
    // Every state is in the column that it begins in.
    for column in 0..axis.extent() / 16 {
        let states = axis.states_in(16 * column..16 * (column + 1));
        for (state, &begins) in slots.iter().enumerate() {
            if begins / 16 == column {
                assert!(states.contains(&(state as u32)), "state {state} in column {column}");
            }
        }
    }
}
