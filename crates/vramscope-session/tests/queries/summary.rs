//! The summary of a device, compared with what `vramscope diagnose` says.

use super::harness::{TARGET, all_files, ask, load_file, open_session, report_target};
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

/// The page says what the program says, and has its findings. Levers have an answer of their own.
fn check(name: &str, summary: &Summary, (diagnosis, said): &(Diagnosis, Said)) {
    let findings = |of: &Diagnosis| serde_json::to_value(&of.findings).expect("plain values");
    assert_eq!(findings(&summary.record), findings(diagnosis), "{name}");
    let view = &summary.view;
    match (said.main(), &said.peak) {
        (Some(main), _) => assert_eq!(view.headline, main.headline, "{name}"),
        // The page has a list of lines with their bytes.
        (None, peak) => {
            let words = &peak.as_ref().expect("one of both").0;
            let rest = words.strip_prefix(&view.headline).expect(words);
            assert!(rest.is_empty() || rest.starts_with(", "), "{name}: {words}");
        }
    }
    let shown: Vec<_> = view.findings.iter().map(|row| &row.record.id).collect();
    let printed: Vec<_> = said.findings.iter().filter_map(|one| one.id.as_ref()).collect();
    assert_eq!(shown, printed, "{name}");
    // A main finding has a line of its own for the peak.
    if let (Some(_), Some((peak, _))) = (said.main(), &said.peak) {
        assert!(view.lines.iter().any(|line| line.contains(peak)), "{name}: {view:?}");
    }
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

/// The page makes a link of the place in the headline.
#[test]
fn a_headline_has_the_words_of_its_place() {
    let recorded = recordings();
    let mut places = 0;
    for name in all_files().iter().chain(&recorded) {
        let (mut session, loaded) = open_session(name);
        if loaded.parts[0].devices.first().is_none_or(|device| device.device != 0) {
            continue;
        }
        let view = answer!(session, Query::Summary {}, Summary).view;
        let Some(place) = view.place else { continue };
        assert!(view.headline.contains(&place.site), "{name}: {} {place:?}", view.headline);
        assert!(!place.site.is_empty() && !place.file.is_empty(), "{name}: {place:?}");
        places += 1;
    }
    assert!(places * 3 > recorded.len(), "{places}");
}

/// Recordings of programs with findings and without.
fn recordings() -> Vec<String> {
    let of = |folder: &str| {
        let files = std::fs::read_dir(super::harness::test_data().join(folder));
        let names = files.expect("a folder").map(|file| file.expect("an entry").file_name());
        let names = names.map(|name| name.into_string().expect("a name"));
        let names = names.filter(|name| name.ends_with(".pickle.gz"));
        names.map(|name| format!("{folder}/{name}")).collect::<Vec<_>>()
    };
    ["recorded", "recorded/t26", "findings", "causes", "cases", "kinds"].map(of).concat()
}

#[test]
fn a_file_without_a_finding_tells_its_peak() {
    let name = "recorded/t26/gpt_small.pickle.gz";
    let (mut session, _) = open_session(name);
    let summary = answer!(session, Query::SimulatedSummary {}, Summary);
    check(name, &summary, &diagnosed(&load_file(name), true));
    let view = &summary.view;
    assert!(view.headline.starts_with("Peak ") && view.remedy.is_empty(), "{view:?}");
    assert!(view.facts[0].starts_with("Whole run: "), "{:?}", view.facts);
    assert!(view.facts.contains(&"Simulation matches this file exactly".to_owned()));
}

#[test]
fn a_failed_request_reaches_over_the_capacity() {
    let name = "recorded/t26/oom_observer.pickle.gz";
    let (mut session, _) = open_session(name);
    let first = answer!(session, Query::Summary {}, Summary);
    assert!(!first.view.is_simulated);
    let summary = answer!(session, Query::SimulatedSummary {}, Summary);
    assert!(summary.view.is_simulated);
    check(name, &summary, &diagnosed(&load_file(name), true));
    let bar = summary.view.bar.expect("a bar");
    let (request, capacity) = (bar.request.expect("a request"), bar.capacity.expect("known"));
    assert_eq!(number(&request.bytes), 393 << 20);
    assert!(request.from < capacity.at && capacity.at < request.to, "{request:?} {capacity:?}");
    assert_eq!(request.to, 1.0);
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
