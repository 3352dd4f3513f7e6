//! The card, the findings and the minimap of a device, compared with reports.

use super::FILES;
use super::harness::{TARGET, ask, load_file, open_session, report_target};
use vramscope_report::card::Card;
use vramscope_report::findings::of_device;
use vramscope_report::peak::{BandKind, peak};
use vramscope_report::{FindingKind, Severity};
use vramscope_session::FileSession;
use vramscope_session::messages::views::{Answer, FindingRow, MarkKind, Query};
use vramscope_session::messages::{AxisKind, FrameRow, Request, Response};
use vramscope_trace::slicing::now;

#[test]
fn the_worker_sends_the_card_of_the_report() {
    for name in FILES {
        let (mut session, _) = open_session(name);
        let sent = answer!(session, Query::Card {}, Card);
        let file = load_file(name);
        let made = now(async |budget| Card::new(report_target(&file), budget).await);
        assert_eq!(sent.card, made.to_json(), "{name}");
        assert!(sent.card.len() < 1 << 20, "{name}: {} bytes", sent.card.len());
        // Categories add up to the peak.
        let whole: u64 = made.categories.iter().map(|c| c.bytes.0).sum();
        assert_eq!(i128::from(whole), i128::from(made.bands[0].peak.0), "{name}");
        // The page finds a finding by its index in the card.
        let found: Vec<_> = sent.findings.iter().map(|f| &f.record.id).collect();
        let expected: Vec<_> = made.findings.iter().map(|f| &f.record.id).collect();
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn finding_has_an_example_block_and_a_position() {
    let name = "recorded/gpt_leak.pickle.gz";
    let (mut session, loaded) = open_session(name);
    let extents: Vec<f64> = loaded.parts[0].devices[0].axes.iter().map(|a| a.extent).collect();
    let findings = answer!(session, Query::Card {}, Card).findings;
    let FindingRow { record: growth, view } = findings.first().expect("a leak");
    assert_eq!(
        (growth.kind, &*view.label, growth.severity),
        (FindingKind::Growth, "Growth", Severity::High)
    );
    assert!(!growth.title.is_empty() && !growth.action.is_empty(), "{growth:?}");
    let event = growth.events.first().expect("a first event").0;
    assert_eq!(view.spans.len(), 2);
    assert_eq!((view.spans[0].kind, view.spans[0].x0), (AxisKind::Event, f64::from(event + 1)));
    for (span, extent) in view.spans.iter().zip(extents) {
        assert!(span.x0 < span.x1 && span.x1 <= extent, "{span:?}");
    }
    let reference = view.reference.clone().expect("an example block");
    session.post(Request::Find { id: 1, part: 0, reference });
    let Some(Response::Block { detail: Some(block), .. }) = session.step().map(|r| r.response)
    else {
        panic!("the example block")
    };
    let record = &of_device(report_target(&load_file(name)))[0];
    let names = |all: &[FrameRow]| all.iter().map(|f| f.name.clone()).collect::<Vec<_>>();
    let expected: Vec<_> = record.frames.iter().map(|f| f.name.to_string()).collect();
    assert_eq!(names(&block.stack.frames), expected);
    assert!(block.rows.iter().any(|r| r.text == "not freed"));
}

#[test]
fn findings_are_sorted_by_severity_then_bytes() {
    for name in [
        "recorded/oom_expandable.pickle.gz",
        "recorded/gpt_max_split.pickle.gz",
        "recorded/t26/streams.pickle.gz",
    ] {
        let (mut session, _) = open_session(name);
        let findings = answer!(session, Query::Card {}, Card).findings;
        assert!(!findings.is_empty(), "{name}");
        let key = |f: &FindingRow| (f.record.severity, std::cmp::Reverse(f.record.bytes));
        let keys: Vec<_> = findings.iter().map(key).collect();
        assert!(keys.is_sorted(), "{name}: {keys:?}");
        for FindingRow { record, view } in &findings {
            assert!(
                record.kind != FindingKind::Oom || record.severity == Severity::High,
                "{record:?}"
            );
            assert_eq!(record.events.is_empty(), view.spans.is_empty(), "{record:?}");
        }
    }
}

/// The smallest y of a path, in units of its view box.
fn top(path: &str) -> f64 {
    let parts = path
        .split(|c: char| c.is_ascii_alphabetic())
        .skip(2)
        .zip(path.matches(|c: char| c.is_ascii_alphabetic()).skip(1));
    let start =
        path[3..].split(|c: char| c.is_ascii_alphabetic()).next().and_then(|y| y.parse().ok());
    let tops = parts
        .filter(|(_, command)| *command == "V")
        .map(|(y, _)| y.parse::<f64>().expect("a number"));
    tops.chain(start).fold(f64::INFINITY, f64::min)
}

#[test]
fn minimap_reaches_the_peaks_and_has_all_marks() {
    for name in FILES {
        let (mut session, loaded) = open_session(name);
        let file = load_file(name);
        let trace = &file.entries[0].traces[0];
        let scale = trace.reserved_band.peak.max(trace.requested_band.peak) as f64;
        for axis in &loaded.parts[0].devices[0].axes {
            let minimap = answer!(session, Query::Minimap { axis: axis.kind }, Minimap);
            for (path, peak) in [
                (&minimap.requested, trace.requested_band.peak),
                (&minimap.reserved, trace.reserved_band.peak),
            ] {
                let y = 100.0 * (1.0 - peak as f64 / scale);
                assert!((top(path) - y).abs() <= 0.051, "{name}: {} instead of {y}", top(path));
                assert!(
                    path.split(|c: char| !c.is_ascii_digit() && c != '.')
                        .all(|n| n.split('.').nth(1).is_none_or(|d| d.len() == 1)),
                    "{path}"
                );
            }
            let kinds = |kind: MarkKind| {
                minimap.marks.iter().filter(|m| m.kind == kind).collect::<Vec<_>>()
            };
            assert_eq!(kinds(MarkKind::Oom).len(), trace.ooms.len(), "{name}");
            let peaks = peak(report_target(&file), BandKind::Requested, Some(0)).peaks;
            let marked: Vec<i64> = kinds(MarkKind::Peak).iter().map(|m| m.event).collect();
            assert_eq!(marked, peaks.iter().map(|p| p.event).collect::<Vec<_>>(), "{name}");
            assert!(kinds(MarkKind::Peak).first().is_none_or(|m| m.slot == axis.peak), "{name}");
            for mark in &minimap.marks {
                assert!((0.0..axis.extent).contains(&mark.slot), "{name}: {mark:?}");
            }
        }
    }
    let (mut session, _) = open_session("recorded/t26/oom_observer.pickle.gz");
    let minimap = answer!(session, Query::Minimap { axis: AxisKind::Event }, Minimap);
    let oom = minimap.marks.iter().find(|m| m.kind == MarkKind::Oom).expect("an OOM");
    assert!(
        oom.text.starts_with("out of memory at #")
            && oom.text.contains(" requested, ")
            && oom.text.ends_with(" free on the device"),
        "{}",
        oom.text
    );
    assert!(oom.id.starts_with("oom-0-"), "{}", oom.id);
    // Without a clock there is no time axis.
    let (mut session, _) = open_session("recorded/t20/gpt_small.pickle.gz");
    let minimap = answer!(session, Query::Minimap { axis: AxisKind::Time }, Minimap);
    assert!(minimap.requested.is_empty() && minimap.marks.is_empty());
}

#[test]
fn of_a_thousand_failed_allocations_the_first_and_the_last_are_marked() {
    let failed = |time: u32| {
        serde_json::json!({
            "action": "oom", "addr": 0, "size": 1 << 30, "device_free": 0, "stream": 0,
            "time_us": time, "frames": [],
        })
    };
    let events: Vec<_> = (0..1000).map(failed).collect();
    let json = serde_json::json!({"segments": [], "device_traces": [events]}).to_string();
    let mut session = FileSession::new("ooms.json", json.len() as u64);
    session.feed(json.as_bytes()).expect("a snapshot");
    let Response::Loaded(_) = session.finish() else { panic!("a snapshot") };
    let marked: Vec<i64> = std::iter::once(0).chain(901..1000).collect();
    let minimap = answer!(session, Query::Minimap { axis: AxisKind::Event }, Minimap);
    let ooms = minimap.marks.iter().filter(|m| m.kind == MarkKind::Oom);
    assert_eq!(ooms.map(|m| m.event).collect::<Vec<_>>(), marked);
    let limit = answer!(session, Query::Limit { axis: AxisKind::Event }, Limit);
    assert_eq!(limit.requests.iter().map(|r| i64::from(r.event)).collect::<Vec<_>>(), marked);
}
