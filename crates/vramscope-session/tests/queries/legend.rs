//! The legend of the plots, reserved bytes, and the device's limit.

use super::harness::{TARGET, ask, load_file, open_session, report_target};
use super::{FILES, number};
use std::collections::BTreeMap;
use vramscope_report::state::state;
use vramscope_session::FileSession;
use vramscope_session::messages::AxisKind;
use vramscope_session::messages::views::{Answer, COUNTER_HEIGHT, ColorBy, Legend, Query};

const ALL: [f64; 2] = [0.0, f64::MAX];

fn legend(
    session: &mut FileSession,
    color: ColorBy,
    event: Option<i64>,
    [x0, x1]: [f64; 2],
) -> Legend {
    let query = Query::Legend { color, event, axis: AxisKind::Event, x0, x1 };
    answer!(*session, query, Legend)
}

#[test]
fn categories_have_the_bytes_of_the_state() {
    for name in FILES {
        let (mut session, _) = open_session(name);
        let file = load_file(name);
        let last = i64::from(file.entries[0].traces[0].slots()) - 2;
        for event in [-1, last / 2, last] {
            let event = event.clamp(-1, last);
            let report = state(report_target(&file), (event + 1) as u32, None);
            let mut wanted: BTreeMap<String, u64> = BTreeMap::new();
            for block in &report.blocks {
                *wanted.entry(format!("category:{}", block.category.name())).or_default() +=
                    block.bytes;
            }
            let found = legend(&mut session, ColorBy::Category, Some(event), ALL);
            let listed: BTreeMap<String, u64> =
                found.entries.iter().map(|e| (e.term.clone(), number(&e.bytes))).collect();
            for (term, bytes) in wanted.into_iter().filter(|(_, bytes)| *bytes > 0) {
                assert_eq!(listed.get(&term), Some(&bytes), "{name} at {event}: {term}");
            }
            let sum: u64 = listed.values().sum();
            assert_eq!(sum, report.requested_bytes, "{name} at {event}");
            // Streams and call sites add up to the same bytes.
            for color in [ColorBy::Stream, ColorBy::Stack] {
                let found = legend(&mut session, color, Some(event), ALL);
                let sum: u64 = found.entries.iter().map(|e| number(&e.bytes)).sum();
                assert_eq!(sum, report.requested_bytes, "{name} at {event}: {color:?}");
            }
        }
    }
}

#[test]
fn the_legend_lists_what_is_in_view_and_not_only_what_is_live() {
    let (mut session, _) = open_session("recorded/t26/gpt_small.pickle.gz");
    let whole = legend(&mut session, ColorBy::Category, Some(0), ALL);
    assert!(whole.entries.iter().any(|e| number(&e.bytes) == 0 && e.label == "gradients"));
    let start = legend(&mut session, ColorBy::Category, Some(0), [0.0, 2.0]);
    assert!(start.entries.len() < whole.entries.len(), "{start:?}");
    // Without an event the bytes are those of the peak.
    let peak = legend(&mut session, ColorBy::Category, None, ALL);
    assert!(peak.at.starts_with("peak, at #"), "{}", peak.at);
    let bytes: Vec<u64> = peak.entries.iter().map(|e| number(&e.bytes)).collect();
    assert!(bytes.windows(2).all(|pair| pair[0] >= pair[1]), "{bytes:?}");
}

#[test]
fn call_sites_are_ten_and_others_and_quantities_have_a_ramp() {
    let (mut session, _) = open_session("recorded/t26/gpt_small.pickle.gz");
    let sites = legend(&mut session, ColorBy::Stack, None, ALL).entries;
    assert_eq!(sites.len(), 11);
    assert_eq!(sites[10].label, "other call sites");
    assert!(sites[..10].iter().all(|e| e.term.starts_with("site:")), "{sites:?}");
    let mut colors: Vec<u32> = sites.iter().map(|e| e.color).collect();
    colors.sort_unstable();
    colors.dedup();
    assert_eq!(colors.len(), 11);
    for color in [ColorBy::Size, ColorBy::Age] {
        let found = legend(&mut session, color, None, ALL);
        let ramp = found.ramp.expect("a ramp");
        assert!(found.entries.is_empty() && ramp.colors.len() == 16 && ramp.low != ramp.high);
    }
    let segments = legend(&mut session, ColorBy::Segment, None, ALL).entries;
    assert!(!segments.is_empty() && segments.iter().all(|e| e.label.starts_with("0x")));
}

#[test]
fn reserved_bytes_are_a_line_up_to_their_peak() {
    for name in FILES {
        let (mut session, loaded) = open_session(name);
        let device = &loaded.parts[0].devices[0];
        let query =
            Query::ReservedLine { axis: AxisKind::Event, x0: -8.0, x1: 4096.0, columns: 64 };
        let line = answer!(session, query, ReservedLine);
        assert_eq!(line.top, device.reserved_peak, "{name}");
        assert!(line.path.starts_with('M'), "{name}: {}", line.path);
        let whole = Query::ReservedLine {
            axis: AxisKind::Event,
            x0: 0.0,
            x1: device.axes[0].extent,
            columns: 500,
        };
        let line = answer!(session, whole, ReservedLine);
        // The peak is at the upper edge.
        let is_peak = line.path.contains("V0") || line.path.starts_with("M0 0");
        assert!(is_peak || number(&line.top) == 0, "{name}: {}", line.path);
        assert_eq!(COUNTER_HEIGHT, 1000);
    }
}

#[test]
fn a_failed_allocation_tells_the_capacity_and_lies_on_the_stack() {
    let name = "recorded/oom_expandable.pickle.gz";
    let (mut session, _) = open_session(name);
    let file = load_file(name);
    let trace = &file.entries[0].traces[0];
    let limit = answer!(session, Query::Limit { axis: AxisKind::Event }, Limit);
    assert_eq!(limit.requests.len(), trace.ooms.len());
    for (request, oom) in limit.requests.iter().zip(&trace.ooms) {
        assert_eq!(request.event, oom.event.0);
        let report = state(report_target(&file), oom.event.0 + 1, None);
        assert_eq!(request.low, report.requested_bytes as f64);
        assert_eq!(request.high - request.low, oom.requested.0 as f64);
        assert_eq!(request.slot, f64::from(oom.event.0 + 1));
        assert_eq!(request.text, format!("asked for {}", oom.requested));
    }
    let first = &trace.ooms[0];
    let report = state(report_target(&file), first.event.0 + 1, None);
    let free = first.device_free.expect("the driver reported it").0;
    assert_eq!(limit.capacity.as_ref().map(number), Some(report.reserved_bytes + free));
    assert!(limit.text.contains("available to PyTorch at #"), "{}", limit.text);
    let (mut session, _) = open_session("recorded/t26/gpt_small.pickle.gz");
    let limit = answer!(session, Query::Limit { axis: AxisKind::Event }, Limit);
    assert!(limit.capacity.is_none() && limit.text.is_empty() && limit.requests.is_empty());
}
