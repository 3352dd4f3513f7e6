//! The summary of a device, compared with what `vramscope diagnose` says.

use super::harness::{TARGET, ask, load_file, open_session, report_target};
use super::{FILES, number};
use vramscope_report::diagnose::{
    Diagnosis, Listing, MAX_FINDINGS, at_peak, diagnose, with_levers,
};
use vramscope_report::diagnostic::Answer as Said;
use vramscope_report::verdict::{MemoryBar as Memory, memory};
use vramscope_report::{FindingKind, LoadedFile};
use vramscope_session::messages::views::{Answer, MemoryBar, Query, Summary};
use vramscope_trace::slicing::now;

/// The diagnosis of a file, and what `diagnose` says of it.
fn diagnosed(file: &LoadedFile, is_simulated: bool) -> (Diagnosis, Said) {
    let target = report_target(file);
    if is_simulated {
        file.entries[0].simulate(0);
    }
    let of = if is_simulated { with_levers(target) } else { at_peak(target) };
    let diagnosis = diagnose(vec![of], Listing::Main(MAX_FINDINGS), 0);
    let said = Said::new(&diagnosis, &[target.path.to_owned()], false);
    (diagnosis.fitted(), said)
}

/// The page says what the program says, and has its record.
fn check(name: &str, summary: &Summary, (diagnosis, said): &(Diagnosis, Said)) {
    let json = |of: &Diagnosis| serde_json::to_value(of).expect("plain values");
    assert_eq!(json(&summary.record), json(diagnosis), "{name}");
    let view = &summary.view;
    let main = said.main();
    let rows = match main {
        Some(main) => {
            assert_eq!(view.headline, main.headline, "{name}");
            if main.fixes.is_empty() { &said.levers } else { &main.fixes }
        }
        None => {
            let (words, bar) = said.peak.as_ref().expect("one of both");
            assert_eq!(view.headline, *words, "{name}");
            let first = bar.lines.first().map(|line| line.site.as_str());
            assert!(
                view.lines.first().is_some_and(|of| of.contains(first.unwrap_or("-"))),
                "{name}"
            );
            &said.levers
        }
    };
    let shown: Vec<[&str; 5]> =
        view.fixes.iter().map(|f| [&*f.text, &f.needs, &f.verdict, &f.cost, &f.basis]).collect();
    let printed: Vec<[&str; 5]> =
        rows.iter().map(|f| [&*f.text, &f.needs, &f.verdict, &f.cost, &f.basis]).collect();
    assert_eq!(shown, printed, "{name}");
    let shown: Vec<(String, String)> =
        view.findings.iter().map(|f| (f.headline.clone(), f.place.clone())).collect();
    let printed: Vec<(String, String)> =
        said.findings.iter().map(|f| (f.headline.clone(), f.place())).collect();
    assert_eq!(shown, printed, "{name}");
}

fn check_bar(name: &str, bar: &MemoryBar, memory: &Memory) {
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
fn the_summary_says_what_diagnose_says_of_every_file() {
    for name in FILES {
        let (mut session, _) = open_session(name);
        let summary = answer!(session, Query::Summary {}, Summary);
        let file = load_file(name);
        check(name, &summary, &diagnosed(&file, false));
        let memory = now(async |budget| memory(report_target(&file), budget).await);
        match &summary.view.bar {
            Some(bar) => check_bar(name, bar, &memory),
            None => assert_eq!(memory.scale().0, 0, "{name}"),
        }
    }
}

#[test]
fn a_file_without_a_finding_tells_its_levers() {
    let name = "recorded/t26/gpt_small.pickle.gz";
    let (mut session, _) = open_session(name);
    let summary = answer!(session, Query::SimulatedSummary {}, Summary);
    check(name, &summary, &diagnosed(&load_file(name), true));
    assert!(summary.view.headline.starts_with("Peak "), "{}", summary.view.headline);
    let lever = summary.view.fixes.first().expect("a lever");
    assert!(number(&lever.bytes) > 0 && lever.outcome.is_none(), "{lever:?}");
    assert!(summary.view.remedy.starts_with(&lever.text), "{}", summary.view.remedy);
    assert_eq!(summary.view.model, "The model reproduces this recording to the byte.");
}

#[test]
fn a_failed_request_reaches_over_the_capacity() {
    let name = "recorded/t26/oom_observer.pickle.gz";
    let (mut session, _) = open_session(name);
    let first = answer!(session, Query::Summary {}, Summary);
    assert!(first.view.fixes.is_empty() && !first.view.is_simulated);
    let summary = answer!(session, Query::SimulatedSummary {}, Summary);
    check(name, &summary, &diagnosed(&load_file(name), true));
    let bar = summary.view.bar.expect("a bar");
    let (request, capacity) = (bar.request.expect("a request"), bar.capacity.expect("known"));
    assert_eq!(number(&request.bytes), 393 << 20);
    assert!(request.from < capacity.at && capacity.at < request.to, "{request:?} {capacity:?}");
    assert_eq!(request.to, 1.0);
    // The gauges have the limit's scale.
    for fix in &summary.view.fixes {
        let [needs, limit] = fix.gauge.expect("a limit is known");
        assert_eq!(needs <= limit, fix.number.is_some(), "{fix:?}");
        assert!(!fix.question.is_empty(), "{fix:?}");
    }
    // The place of the finding is its step, not the moment alone.
    let oom = summary.record.findings.first().expect("a finding");
    assert_eq!(oom.record.kind, FindingKind::Oom);
    let event = f64::from(oom.record.events[0].0);
    let file = load_file(name);
    let steps = file.entries[0].steps(0).expect("steps");
    let begin = f64::from(steps.begins[2]);
    let span = summary.view.findings[0].view.spans[0];
    assert!(span.x0 == begin && event + 1.0 < span.x1, "{span:?}: {begin} {event}");
}
