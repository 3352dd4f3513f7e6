//! The verdict about a device, compared with the report of the command line.

use super::harness::{TARGET, ask, load_file, open_session, report_target};
use super::{FILES, number};
use vramscope_report::verdict::{Verdict, verdict};
use vramscope_report::{FindingKind, plain};
use vramscope_session::messages::views::{Answer, MemoryBar, Query, VerdictCard};
use vramscope_trace::slicing::now;

fn reported(name: &str, is_simulated: bool) -> Verdict {
    let file = load_file(name);
    if is_simulated {
        file.entries[0].simulate(0);
    }
    now(async |budget| verdict(report_target(&file), budget).await)
}

fn check(name: &str, card: &VerdictCard, expected: &Verdict) {
    assert_eq!(plain(&card.headline), plain(&expected.headline), "{name}");
    assert_eq!(card.headline, expected.headline, "{name}");
    assert_eq!((card.severity, &card.finding), (expected.severity, &expected.finding), "{name}");
    let texts = |all: &[(&str, &str)]| format!("{all:?}");
    let shown: Vec<_> = card.actions.iter().map(|a| (&*a.text, &*a.value)).collect();
    let reported: Vec<_> = expected.actions.iter().map(|a| (&*a.text, &*a.value)).collect();
    assert_eq!(texts(&shown), texts(&reported), "{name}");
}

fn check_bar(name: &str, bar: &MemoryBar, expected: &Verdict) {
    let memory = &expected.memory;
    assert_eq!(number(&bar.reserved), memory.reserved.0, "{name}");
    assert_eq!(bar.event.map_or(-1, i64::from), memory.event, "{name}");
    let parts: Vec<_> = bar.parts.iter().map(|p| (&*p.name, number(&p.bytes))).collect();
    let reported: Vec<_> = memory.parts.iter().map(|p| (p.name, p.bytes.0)).collect();
    assert_eq!(parts, reported, "{name}");
    // To scale, without gaps.
    let whole = memory.scale().0 as f64;
    let mut end = 0.0;
    for part in &bar.parts {
        assert_eq!(part.from, end, "{name}: {part:?}");
        let width = number(&part.bytes) as f64 / whole;
        assert!((part.to - part.from - width).abs() < 1e-9, "{name}: {part:?}");
        end = part.to;
    }
    assert!(end <= 1.0 + 1e-9, "{name}: {end}");
}

#[test]
fn the_verdict_equals_the_report_in_every_file() {
    for name in FILES {
        let (mut session, _) = open_session(name);
        let card = answer!(session, Query::Verdict {}, Verdict);
        let expected = reported(name, false);
        check(name, &card, &expected);
        match &card.bar {
            Some(bar) => check_bar(name, bar, &expected),
            None => assert_eq!(expected.memory.scale().0, 0, "{name}"),
        }
    }
}

#[test]
fn a_failed_request_reaches_over_the_capacity() {
    let name = "recorded/t26/oom_observer.pickle.gz";
    let (mut session, _) = open_session(name);
    let card = answer!(session, Query::Verdict {}, Verdict);
    assert!(
        plain(&card.headline).starts_with("Out of memory in backward of step 2: 393.0 MiB asked")
    );
    let simulated = answer!(session, Query::SimulatedVerdict {}, Verdict);
    check(name, &simulated, &reported(name, true));
    assert!(plain(&simulated.headline).contains("326.0 MiB short"));
    assert_ne!(card.headline, simulated.headline, "the model adds what is missing");
    let bar = simulated.bar.expect("a bar");
    let (request, capacity) = (bar.request.expect("a request"), bar.capacity.expect("known"));
    assert_eq!(number(&request.bytes), 393 << 20);
    assert!(request.from < capacity.at && capacity.at < request.to, "{request:?} {capacity:?}");
    assert_eq!(request.to, 1.0);
    // The place of the finding is its step, not the moment alone.
    let rows = answer!(session, Query::Findings {}, Findings).rows;
    let oom = rows.iter().find(|row| row.record.kind == FindingKind::Oom).expect("a finding");
    assert_eq!(Some(&oom.record.id), simulated.finding.as_ref());
    let event = f64::from(oom.record.events[0].0);
    let file = load_file(name);
    let steps = file.entries[0].steps(0).expect("steps");
    let begin = f64::from(steps.begins[2]);
    let span = oom.view.spans[0];
    assert!(span.x0 == begin && event + 1.0 < span.x1, "{span:?}: {begin} {event}");
}
