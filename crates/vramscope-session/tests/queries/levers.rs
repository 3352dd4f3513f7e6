//! What can be changed: one change has one number, in the table, in `diagnose`, and as a question.

use super::harness::{TARGET, ask, load_file, open_session, report_target};
use super::{FILES, number};
use vramscope_report::diagnose::{Listing, MAX_FINDINGS, diagnose, with_levers};
use vramscope_report::findings::of_device;
use vramscope_report::what_if::{Options, Outcome, what_if};
use vramscope_report::{FindingKind, Lever};
use vramscope_session::FileSession;
use vramscope_session::messages::views::{
    Answer, LeverItem, LeverSetting, Levers, Query, ScenarioCard,
};
use vramscope_trace::slicing::now;

const HEALTHY: &str = "recorded/t26/gpt_small.pickle.gz";
const FAILED: &str = "recorded/t26/oom_observer.pickle.gz";
/// One whose replays are short.
const FAILED_SMALL: &str = "recipes/oom_vit_2.pickle.gz";
/// Settings that waste memory, under a limit that the file shows.
const WASTEFUL: &str = "recorded/gpt_max_split.pickle.gz";

/// Recordings in which a list of blocks, a limit, an order of addresses or an estimate could give a
/// change a second number.
const HARD: [&str; 8] = [
    "causes/sparse_table.pickle.gz",
    "findings/leak_every.pickle.gz",
    "findings/oom_other_process.pickle.gz",
    "findings/real_oom_gpt_flash.pickle.gz",
    "findings/varlen_tight_roundup.pickle.gz",
    "kinds/dpo_reference.pickle.gz",
    FAILED_SMALL,
    "what_if/mempool_no_split.pickle.gz",
];

fn levers(session: &mut FileSession, bytes: Option<u64>, all: bool) -> Levers {
    let bytes = bytes.map(|bytes| bytes as f64);
    *answer!(*session, Query::Levers { bytes, all }, Levers)
}

fn scenario(session: &mut FileSession, text: &str) -> ScenarioCard {
    *answer!(*session, Query::Scenario { text: text.to_owned() }, Scenario)
}

fn needs(table: &Levers) -> u64 {
    number(&table.now.as_ref().expect("a replay").needs)
}

/// The rows of levers that both have, by name.
fn same<'a>(rows: &'a [LeverItem], levers: &'a [Lever]) -> Vec<(&'a LeverItem, &'a Lever)> {
    let lever = |row: &'a LeverItem| Some((row, levers.iter().find(|one| one.id == row.id)?));
    rows.iter().filter_map(lever).collect()
}

#[test]
fn a_healthy_run_has_the_levers_of_diagnose_by_cost() {
    for name in [HEALTHY, WASTEFUL, "recorded/t29/expandable_gpt.pickle.gz"] {
        let (mut session, _) = open_session(name);
        let table = levers(&mut session, None, false);
        let file = load_file(name);
        file.entries[0].simulate(0);
        let told =
            diagnose(vec![with_levers(report_target(&file))], Listing::Main(MAX_FINDINGS), 0)
                .levers;
        let both = same(&table.rows, &told);
        assert!(both.len() >= told.len().min(3), "{name}: {table:?}");
        for (row, lever) in both {
            assert_eq!(number(&row.needs), lever.needs_bytes.0, "{name}: {}", row.text);
            assert_eq!(needs(&table), lever.now_bytes.0, "{name}: {}", row.text);
        }
        assert_eq!(table.rows[0].id, told[0].id, "{name}");
        assert!(table.rows.len() <= 8 && table.others.is_empty(), "{name}");
        let gauges = table.rows.iter().map(|row| row.gauge).chain(table.limit);
        assert!(gauges.into_iter().all(|gauge| (0.0..=1.0).contains(&gauge)), "{name}");
        // After the first, what saves at least 3 % comes by cost, and the rest by cost.
        let least = needs(&table) / 100 * 3;
        let rank =
            |row: &LeverItem| (needs(&table).saturating_sub(number(&row.needs)) < least, row.cost);
        assert!(table.rows[1..].is_sorted_by_key(rank), "{name}: {table:?}");
    }
}

#[test]
fn a_failed_run_has_the_fixes_of_its_finding() {
    let (mut session, _) = open_session(FAILED);
    let file = load_file(FAILED);
    file.entries[0].simulate(0);
    let found = of_device(report_target(&file));
    let oom = found.iter().find(|entry| entry.record.kind == FindingKind::Oom).expect("a finding");
    let fixes = &oom.record.fixes;
    let table = levers(&mut session, None, false);
    // The page leaves out some of what does not help.
    let shown = fixes.iter().filter(|fix| table.rows.iter().any(|row| row.id == fix.id));
    let ids: Vec<&String> = table.rows.iter().map(|row| &row.id).collect();
    assert_eq!(ids, shown.clone().map(|fix| &fix.id).collect::<Vec<_>>());
    assert!(fixes.iter().filter(|fix| !fix.is_short()).all(|fix| ids.contains(&&fix.id)));
    for (table, count) in [(&table, ids.len()), (&levers(&mut session, None, true), fixes.len())] {
        let both = same(&table.rows, fixes);
        assert_eq!(both.len(), count);
        for (row, fix) in both {
            assert_eq!(number(&row.needs), fix.needs_bytes.0, "{}", row.text);
            assert_eq!(row.outcome, fix.outcome, "{}", row.text);
            assert_eq!(row.verdict == "fits", row.outcome == Some(Outcome::Fits), "{row:?}");
        }
        let now = table.now.as_ref().expect("a replay");
        assert_eq!(
            (now.outcome, &*now.text),
            (Some(Outcome::Short), "as recorded, the step run to its end")
        );
        assert!(now.verdict.ends_with(" short") && table.chosen.is_some(), "{now:?}");
    }
    // On a device on which it goes through, nothing has to be chosen.
    let roomy = levers(&mut session, Some(64 << 30), false);
    assert_eq!(roomy.now.expect("a replay").outcome, Some(Outcome::Fits));
    assert_eq!(roomy.chosen, None);
}

#[test]
fn on_a_small_device_each_row_has_an_outcome_and_the_rest_a_reason() {
    for name in [HEALTHY, FAILED, "findings/leak_every.pickle.gz", "causes/sparse_table.pickle.gz"]
    {
        let (mut session, _) = open_session(name);
        let bytes = needs(&levers(&mut session, None, false)) / 10 * 8;
        let table = levers(&mut session, Some(bytes), true);
        assert_eq!(table.now.as_ref().and_then(|now| now.outcome), Some(Outcome::Short), "{name}");
        let limit = table.limit.expect("a limit");
        for row in &table.rows {
            let fits = number(&row.needs) <= bytes;
            assert_eq!(row.gauge <= limit, fits, "{name}: {row:?}");
            match row.outcome.expect("a limit") {
                Outcome::Fits => assert!(fits && row.verdict == "fits", "{name}: {row:?}"),
                Outcome::Short => {
                    assert!(!fits && row.verdict.ends_with(" short"), "{name}: {row:?}");
                }
                Outcome::FitsBarely => assert_eq!(row.verdict, "fits, barely", "{name}"),
                Outcome::Unknown => panic!("{name}: {row:?}"),
            }
        }
        let reasons: Vec<&str> = table.others.iter().map(|of| of.why.as_str()).collect();
        assert_eq!(reasons, ["on already", "under 1 %", "not possible"], "{name}");
        let mut changes: Vec<String> =
            table.others.iter().flat_map(|of| of.changes.clone()).collect();
        changes.extend(table.rows.iter().map(|row| vramscope_inference::lower_first(&row.text)));
        let count = changes.len();
        changes.sort();
        changes.dedup();
        assert_eq!(changes.len(), count, "{name}: {changes:?}");
    }
}

#[test]
fn one_change_has_one_number() {
    let mut compared = 0;
    for name in FILES.into_iter().chain(HARD) {
        let (mut session, _) = open_session(name);
        let now = levers(&mut session, None, false).now.map(|now| number(&now.needs));
        let Some(now) = now else { continue };
        for (bytes, all) in
            [(None, true), (Some(now / 100 * 85), true), (Some(now / 10 * 6), false)]
        {
            let table = levers(&mut session, bytes, all);
            assert_eq!(needs(&table), now, "{name}");
            for row in table.rows.iter().filter(|row| !row.question.is_empty()) {
                let device =
                    bytes.map_or(String::new(), |bytes| format!(",pytorch_memory:{bytes}"));
                let card = scenario(&mut session, &format!("{}{device}", row.question));
                let asked = card.needs.as_ref().map(number);
                assert_eq!(asked, Some(number(&row.needs)), "{name} {bytes:?}: {row:?} {card:?}");
                assert_eq!(card.outcome, row.outcome, "{name} {bytes:?}: {row:?} {card:?}");
                compared += 1;
            }
        }
    }
    assert!(compared > 250, "{compared}");
}

#[test]
fn two_rows_together_are_replayed_together() {
    for name in [HEALTHY, FAILED_SMALL, WASTEFUL] {
        let (mut session, _) = open_session(name);
        let rows = levers(&mut session, None, false).rows;
        let file = load_file(name);
        let pairs =
            rows.iter().enumerate().flat_map(|(i, a)| rows[i + 1..].iter().map(move |b| (a, b)));
        for (a, b) in pairs.filter(|(a, b)| a.kind != b.kind) {
            let text = format!("{},{}", a.question, b.question);
            let options = Options::parse(&text).expect("a question");
            let told =
                now(async |budget| what_if(report_target(&file), &options, None, budget).await);
            let card = scenario(&mut session, &text);
            let expected = told.scenarios[0].least_device_memory;
            assert_eq!(
                card.needs.as_ref().map(number),
                expected.map(|bytes| bytes.0),
                "{name} {text}"
            );
        }
    }
    // Each half of the memory's use ends with its own change.
    let (mut session, _) = open_session(HEALTHY);
    let [one, other, both] = ["checkpoint:all", "chunked_loss:8", "checkpoint:all,chunked_loss:8"]
        .map(|text| number(&scenario(&mut session, text).needs.expect("a prediction")));
    assert!(both < one.min(other), "{one} {other} {both}");
}

#[test]
fn settings_need_what_the_table_and_the_question_say() {
    for (name, is_expandable) in [
        (HEALTHY, false),
        (WASTEFUL, false),
        ("recorded/t29/expandable_gpt.pickle.gz", true),
        (FAILED, false),
    ] {
        let (mut session, _) = open_session(name);
        let rows: Vec<LeverSetting> = answer!(session, Query::LeverSettings {}, LeverSettings);
        let recorded = rows[0].needs[usize::from(is_expandable)].as_ref().expect("a replay");
        assert_eq!(number(recorded), needs(&levers(&mut session, None, false)), "{name}");
        for (i, row) in rows.iter().enumerate() {
            assert!(rows[..i].iter().all(|one| one.setting != row.setting), "{name}: {rows:?}");
            let setting = if row.setting == "the defaults" { "" } else { &row.setting };
            for (needs, expandable) in row.needs.iter().zip(["False", "True"]) {
                let text = format!("set:[{setting},expandable_segments:{expandable}]");
                let card = scenario(&mut session, &text);
                let [needs, asked] = [needs, &card.needs].map(|of| of.as_ref().map(number));
                assert_eq!(needs, asked, "{name}: {text}");
            }
        }
    }
}

#[test]
fn a_file_without_a_replay_says_why_it_has_no_levers() {
    for (name, why) in [
        ("recorded/misc/norecord.pickle", "only its final state"),
        ("recorded/gpt_late.pickle.gz", "begins when memory was in use"),
    ] {
        let (mut session, _) = open_session(name);
        let table = levers(&mut session, None, true);
        assert!(table.rows.is_empty() && table.others.is_empty(), "{name}: {table:?}");
        assert!(table.note.contains(why), "{name}: {}", table.note);
    }
}
