//! Predictions, compared with `vramscope what-if`.

use super::FILES;
use super::harness::{TARGET, ask, load_file, open_session, report_target};
use vramscope_report::LoadedFile;
use vramscope_report::what_if::{Edit, Options, ScenarioRecord, WhatIfReport, sentence, what_if};
use vramscope_session::messages::views::{
    Answer, Bands, ColorBy, GroupBy, Layer, Query, ScenarioCard, SimulatedCurve, UsualScenarios,
    WhatIfCard,
};
use vramscope_session::messages::{AxisKind, Request, Response};
use vramscope_session::{FileSession, Slice};
use vramscope_trace::slicing::now;
use vramscope_units::Bytes;

const OOM: &str = "recorded/oom_expandable.pickle.gz";
const SMALL: &str = "recorded/t26/gpt_small.pickle.gz";

/// A device, and three changes of the program.
const PROGRAM: &str = "device_memory:24GiB,batch:0.5,checkpoint:all,optimizer:8bit";

fn usual(session: &mut FileSession, text: &str) -> UsualScenarios {
    answer!(*session, Query::UsualScenarios { text: text.to_owned() }, UsualScenarios)
}

fn scenario(session: &mut FileSession, text: &str) -> ScenarioCard {
    *answer!(*session, Query::Scenario { text: text.to_owned() }, Scenario)
}

fn curve(session: &mut FileSession, text: &str, [x0, x1]: [f64; 2]) -> SimulatedCurve {
    let (text, axis) = (text.to_owned(), AxisKind::Event);
    let query = Query::SimulatedCurve { text, axis, x0, x1, columns: 400 };
    answer!(*session, query, SimulatedCurve)
}

fn question(session: &mut FileSession, text: &str, edits: &[(&str, Option<&str>)]) -> WhatIfCard {
    let edit = |(item, value): &(&str, Option<&str>)| Edit {
        item: (*item).to_owned(),
        value: value.map(str::to_owned),
    };
    let (text, edits) = (text.to_owned(), edits.iter().map(edit).collect());
    *answer!(*session, Query::WhatIf { text, edits }, WhatIf)
}

/// The program's answer to a question.
fn told(file: &LoadedFile, text: &str) -> WhatIfReport {
    let options = Options::parse(text).expect("right options");
    now(async |budget| what_if(report_target(file), &options, None, budget).await)
}

/// The page's scenario has the program's numbers. Only the program searches for the least memory of
/// a scenario that fits, and the page names its settings and its device.
fn assert_equal(found: &ScenarioRecord, expected: &ScenarioRecord) {
    let change = found.change.clone();
    let least_device_memory = expected.least_device_memory;
    let found = ScenarioRecord { least_device_memory, ..found.clone() };
    assert_eq!(found, ScenarioRecord { change, ..expected.clone() });
}

#[test]
fn the_usual_scenarios_are_those_of_the_program() {
    for name in FILES {
        let (mut session, _) = open_session(name);
        let report = told(&load_file(name), "");
        let card = question(&mut session, "", &[]);
        assert_eq!(card.declined, report.declined, "{name}");
        let usual = usual(&mut session, "");
        assert_eq!(usual.sentence, sentence(&report).unwrap_or_default());
        let records: Vec<&ScenarioRecord> = usual.rows.iter().map(|row| &row.record).collect();
        assert_eq!(records, report.scenarios.iter().collect::<Vec<_>>());
        let asked = scenario(&mut session, "");
        assert_eq!(asked.scenario.is_some(), report.declined.is_none(), "{name}");
        if report.declined.is_none() {
            assert_eq!(card.calibration, "The model reproduces this recording to the byte.");
            assert_equal(&asked.scenario.expect("a scenario").record, &report.scenarios[0]);
        }
    }
}

#[test]
fn a_scenario_is_that_of_the_program() {
    let (mut session, _) = open_session(OOM);
    let file = load_file(OOM);
    for text in [
        "expandable_segments:False",
        "max_split_size_mb:128,batch:0.5",
        "roundup_power2_divisions:4,device_memory:H100",
        "expandable_segments:False,max_split_size_mb:64,device_memory:24GiB,optimizer:8bit",
    ] {
        let report = told(&file, text);
        let card = scenario(&mut session, text);
        assert_equal(&card.scenario.expect("a scenario").record, &report.scenarios[0]);
        let starts = match &report.scenarios[0] {
            record if record.fits == Some(false) => "Runs out of memory at #",
            record if record.pytorch_memory.is_some() => "Fits in ",
            _ => "Reserves ",
        };
        assert!(card.verdict.starts_with(starts), "{}", card.verdict);
    }
}

#[test]
fn changed_programs_are_those_of_the_program() {
    let (mut session, _) = open_session(SMALL);
    let file = load_file(SMALL);
    // Each change counts.
    let mut before = scenario(&mut session, "").scenario.expect("a scenario").record.active_peak;
    for text in ["batch:0.5", "batch:0.5,checkpoint:all", PROGRAM] {
        let report = told(&file, text);
        let row = scenario(&mut session, text).scenario.expect("a scenario");
        assert_equal(&row.record, &report.scenarios[0]);
        assert!(row.record.active_peak <= before, "{text} {before}");
        before = row.record.active_peak;
    }
    assert_eq!(scenario(&mut session, "batch:0.5").verdict.split(' ').next(), Some("It"));
}

#[test]
fn the_usual_scenarios_follow_memory_but_no_settings_and_recipes() {
    let (mut session, _) = open_session(SMALL);
    let memory = "device_memory:24GiB";
    let report = told(&load_file(SMALL), memory);
    let table = usual(&mut session, PROGRAM);
    let records: Vec<&ScenarioRecord> = table.rows.iter().map(|row| &row.record).collect();
    assert_eq!(records, report.scenarios.iter().collect::<Vec<_>>());
    let text = format!("max_split_size_mb:64,{PROGRAM}");
    assert_eq!(usual(&mut session, &text), table);
    assert_eq!(question(&mut session, &text, &[]).question.shared, memory);
    assert!(usual(&mut session, "device_memory:many").rows.is_empty());
}

#[test]
fn controls_edit_the_question() {
    let (mut session, _) = open_session(SMALL);
    let text = "batch:2,offload_activations";
    let edits = [
        ("expandable_segments", Some("True")),
        ("device_memory", Some("1,5 GiB")),
        ("batch", Some("0.5")),
        ("offload_activations", None),
        ("optimizer", Some("8bit")),
    ];
    let asked = question(&mut session, text, &edits).question;
    let expected = "expandable_segments:True,device_memory:1%2C5 GiB,batch:0.5,optimizer:8bit";
    assert_eq!(asked.text, expected);
    assert_eq!(asked.expandable_segments, Some(true));
    assert_eq!((&*asked.device_memory, &*asked.apply), ("1,5 GiB", "batch:0.5,optimizer:8bit"));
    // A wrong value stays, beside the others.
    let error = asked.error.expect("no size");
    assert_eq!(error.item, "device_memory");
    assert!(error.text.starts_with("`1,5 GiB` is no size"), "{error}");
    let edits = [("device_memory", None), ("max_split_size_mb", Some("0"))];
    let right = question(&mut session, &asked.text, &edits).question;
    assert_eq!((right.max_split_size_mb, right.error), (Some(0), None));
    assert_eq!(question(&mut session, &right.text, &[]).question.text, right.text);
    // One edit has all changes of the program, right or wrong.
    let edits = [("apply", Some("del:a%2Cb/train.py:12, faster"))];
    let wrong = question(&mut session, &right.text, &edits).question;
    assert_eq!(wrong.apply, "del:a%2Cb/train.py:12,faster");
    assert_eq!(wrong.error.map(|error| error.item).as_deref(), Some("apply"));
    let none = question(&mut session, &right.text, &[("apply", None)]).question;
    assert_eq!((&*none.apply, none.max_split_size_mb), ("", Some(0)));
}

#[test]
fn a_wrong_question_says_what_was_expected() {
    let (mut session, _) = open_session(SMALL);
    for (text, item, expected) in [
        ("device_memory:many", "device_memory", "`many` is no size"),
        ("batch:NaN", "apply", "from 0.001 to 1024"),
        ("batch", "apply", "from 0.001 to 1024"),
        ("max_split_size_mb:19", "max_split_size_mb", "at least 20"),
        ("roundup_power2_divisions:3", "roundup_power2_divisions", "power of two"),
        ("batch:2,gpt.py:44", "apply", "`gpt.py:44` is no change of the program: expected one of"),
        (":0", "apply", "`:0` is no change"),
        ("set:x", "set", "`set:x` has no list"),
    ] {
        let card = scenario(&mut session, text);
        let error = card.error.expect(text);
        assert_eq!(error.item, item);
        assert!(error.text.contains(expected), "{error}");
        assert!(card.scenario.is_none());
        assert!(curve(&mut session, text, [0.0, 9.0]).path.is_empty());
    }
}

/// The places of a path's steps along x, and the least y, which is the highest value.
fn read(path: &str) -> (Vec<f64>, f64) {
    let (mut xs, mut highest) = (Vec::new(), f64::INFINITY);
    let commands = path.replace(['M', 'H', 'V'], " ");
    let kinds: Vec<char> = path.chars().filter(char::is_ascii_alphabetic).collect();
    let mut numbers = commands.split_whitespace().map(|n| n.parse::<f64>().expect("a number"));
    for kind in kinds {
        if kind != 'V' {
            xs.push(numbers.next().expect("x"));
        }
        if kind != 'H' {
            highest = highest.min(numbers.next().expect("y"));
        }
    }
    (xs, highest)
}

#[test]
fn the_curve_reaches_the_peak_and_ends_where_memory_runs_out() {
    let (mut session, loaded) = open_session(SMALL);
    let extent = loaded.parts[0].devices[0].axes[0].extent;
    let whole = curve(&mut session, "", [0.0, extent]);
    let card = scenario(&mut session, "");
    let record = card.scenario.expect("a scenario").record;
    assert_eq!(whole.top as u64, record.reserved_peak.0);
    let (xs, highest) = read(&whole.path);
    assert_eq!((xs.last(), highest), (Some(&400.0), 0.0), "{}", whole.path);
    assert!(xs.is_sorted());
    // Half of the memory is not enough.
    let tight = format!("device_memory:{}", (whole.top / 2.0) as u64 + (512 << 20));
    let record = scenario(&mut session, &tight).scenario.expect("a scenario").record;
    let event = f64::from(record.ooms[0].0);
    let (xs, _) = read(&curve(&mut session, &tight, [0.0, extent]).path);
    let column = extent / 400.0;
    let end = xs.last().expect("an end") * column;
    assert!((end - event).abs() <= 2.0 * column + 1.0, "{end} {event}");
    // Behind the end, outside of the window, and with edges that are no range, there is no line.
    for range in [[end + 2.0, extent], [extent, extent + 9.0], [-9.0, 0.0], [f64::NAN, 1.0]] {
        assert_eq!(curve(&mut session, &tight, range).path, "", "{range:?}");
    }
}

#[test]
fn a_picture_has_the_line_and_its_label() {
    let (mut session, loaded) = open_session(SMALL);
    let x1 = loaded.parts[0].devices[0].axes[0].extent;
    let y1 = 1e10;
    let mut picture = |simulated: Option<&str>, width: u32| {
        let layer = Layer::Timeline {
            group: GroupBy::Block,
            color: ColorBy::Stack,
            bands: Bands::ALL,
            search: String::new(),
        };
        let simulated = simulated.map(str::to_owned);
        let (axis, x0, y0, height, dark) = (AxisKind::Event, 0.0, 0.0, 200, false);
        let query = Query::Picture { layer, axis, x0, x1, y0, y1, width, height, dark, simulated };
        answer!(session, query, Text)
    };
    assert!(!picture(None, 600).contains("simulated"));
    let text = "expandable_segments:True,roundup_power2_divisions:4";
    let svg = picture(Some(text), 600);
    assert!(
        svg.contains(">reserved, simulated: expandable_segments:True,roundup_power2_divisions:4<"),
        "{svg}"
    );
    let line = svg.split("class=\"simulated\"").nth(1).expect("the line");
    let path = line.split("d=\"").nth(1).and_then(|path| path.split('"').next()).expect("a path");
    let (xs, highest) = read(path);
    assert_eq!((xs.first(), xs.last()), (Some(&0.0), Some(&600.0)), "{path}");
    let narrow = picture(Some(text), 300);
    assert!(narrow.contains(">reserved, simulated: expandable_segme\u{2026}<"), "{narrow}");
    // The highest place of the line is the peak: 200 px are 1e10 bytes.
    let record = scenario(&mut session, text).scenario.expect("a scenario").record;
    let expected = 200.0 * (1.0 - record.reserved_peak.0 as f64 / 1e10);
    assert!((highest - expected).abs() < 0.1, "{highest} {expected}");
}

#[test]
fn a_newer_usual_table_cancels_the_older_one_in_the_midst_of_its_work() {
    let (mut session, _) = open_session(SMALL);
    let usual = |id, text: &str| Request::View {
        id,
        target: TARGET,
        query: Query::UsualScenarios { text: text.to_owned() },
    };
    // Block sizes, categories and the model come first.
    scenario(&mut session, "");
    session.post(usual(1, "device_memory:H100"));
    assert!(matches!(session.slice(), Slice::Working));
    session.post(usual(2, "device_memory:H200"));
    let reply = session.step().expect("the newer table");
    let Response::View { id: 2, answer: Answer::UsualScenarios(table) } = reply.response else {
        panic!("{:?}", reply.response)
    };
    assert_eq!(table.rows[0].record.device_memory, Some(Bytes(143_156 << 20)));
    assert!(session.step().is_none());
}
