//! Predictions, compared with `vramscope what-if`.

use super::harness::{TARGET, ask, load_file, open_session, report_target};
use super::{FILES, number};
use vramscope_analysis::Category;
use vramscope_protocol::views::{
    Answer, Bands, ColorBy, GroupBy, Layer, Query, ScaledPart, ScenarioCard, ScenarioRow,
    ScenarioSpec, SimulatedCurve, UsualScenarios, WhatIfCard,
};
use vramscope_protocol::{AxisKind, Request, Response};
use vramscope_report::what_if::{Options, ScenarioRecord, sentence, what_if};
use vramscope_session::{FileSession, Slice};

const OOM: &str = "recorded/oom_expandable.pickle.gz";
const SMALL: &str = "recorded/t26/gpt_small.pickle.gz";

fn as_recorded() -> ScenarioSpec {
    ScenarioSpec {
        expandable_segments: None,
        max_split_size_mb: None,
        roundup_power2_divisions: None,
        device_memory: String::new(),
        tokens: 1.0,
        parts: Vec::new(),
    }
}

fn part(what: &str, factor: f64) -> ScaledPart {
    ScaledPart { what: what.to_owned(), factor }
}

fn usual(session: &mut FileSession, spec: &ScenarioSpec) -> UsualScenarios {
    answer!(*session, Query::UsualScenarios { spec: spec.clone() }, UsualScenarios)
}

fn scenario(session: &mut FileSession, spec: &ScenarioSpec) -> ScenarioCard {
    *answer!(*session, Query::Scenario { spec: spec.clone() }, Scenario)
}

fn curve(session: &mut FileSession, spec: &ScenarioSpec, [x0, x1]: [f64; 2]) -> SimulatedCurve {
    let (spec, axis) = (spec.clone(), AxisKind::Event);
    let query = Query::SimulatedCurve { spec, axis, x0, x1, columns: 400 };
    answer!(*session, query, SimulatedCurve)
}

fn assert_equal(row: &ScenarioRow, record: &ScenarioRecord) {
    assert_eq!(number(&row.reserved_peak), record.reserved_peak, "{}", record.change);
    assert_eq!(number(&row.active_peak), record.active_peak);
    assert_eq!(number(&row.flushes), record.flushes);
    assert_eq!(row.runs_out_at, record.ooms.first().copied());
    assert_eq!((row.fits, &row.conf), (record.fits, &record.conf));
}

#[test]
fn the_usual_scenarios_are_those_of_the_program() {
    for name in FILES {
        let (mut session, _) = open_session(name);
        let file = load_file(name);
        let report = what_if(report_target(&file), &Options::default()).expect("no options");
        let card: WhatIfCard = *answer!(session, Query::WhatIf {}, WhatIf);
        assert_eq!(card.declined, report.declined, "{name}");
        let usual = usual(&mut session, &as_recorded());
        assert_eq!(usual.sentence, sentence(&report).unwrap_or_default());
        assert_eq!(usual.rows.len(), report.scenarios.len());
        for (row, record) in usual.rows.iter().zip(&report.scenarios) {
            assert_equal(row, record);
            assert_eq!(row.change, record.change);
            assert_eq!(row.needs.as_ref().map(number), record.least_device_memory);
        }
        let asked = scenario(&mut session, &as_recorded());
        assert_eq!(asked.scenario.is_some(), report.declined.is_none(), "{name}");
        if report.declined.is_none() {
            assert_eq!(card.calibration, "The model reproduces this recording to the byte.");
            assert_equal(&asked.scenario.expect("a scenario"), &report.scenarios[0]);
        }
    }
}

#[test]
fn a_scenario_is_that_of_the_program() {
    let (mut session, _) = open_session(OOM);
    let file = load_file(OOM);
    let asks = [
        ("expandable_segments:False", None, 1.0),
        ("max_split_size_mb:128", None, 0.5),
        ("roundup_power2_divisions:4", Some("H100"), 2.0),
        ("expandable_segments:False,max_split_size_mb:64", Some("24GiB"), 1.5),
    ];
    for (change, memory, tokens) in asks {
        let value = |key: &str| change.split(',').find_map(|part| part.strip_prefix(key));
        let spec = ScenarioSpec {
            expandable_segments: value("expandable_segments:").map(|value| value == "True"),
            max_split_size_mb: value("max_split_size_mb:").and_then(|n| n.parse().ok()),
            roundup_power2_divisions: value("roundup_power2_divisions:")
                .and_then(|n| n.parse().ok()),
            device_memory: memory.unwrap_or_default().to_owned(),
            tokens,
            parts: Vec::new(),
        };
        let device_memory =
            memory.map(|text| vramscope_report::what_if::parse_memory(text).expect("a size"));
        let options = Options {
            change: vec![change.to_owned()],
            device_memory,
            tokens: Some(tokens),
            ..Options::default()
        };
        let report = what_if(report_target(&file), &options).expect("right options");
        let card = scenario(&mut session, &spec);
        assert_equal(&card.scenario.expect("a scenario"), &report.scenarios[0]);
        let starts = match &report.scenarios[0] {
            record if !record.fits => "Runs out of memory at #",
            record if record.pytorch_memory.is_some() => "Fits in ",
            _ => "Reserves ",
        };
        assert!(card.verdict.starts_with(starts), "{}", card.verdict);
    }
}

/// Two parts of a program: a category with a factor, a category and a call site without.
fn with_parts() -> (ScenarioSpec, Options) {
    let spec = ScenarioSpec {
        device_memory: "24GiB".to_owned(),
        tokens: 2.0,
        parts: vec![part("optimizer_state", 0.25), part("temporary", 0.0), part("gpt.py:44", 0.0)],
        ..as_recorded()
    };
    let options = Options {
        device_memory: Some(24 << 30),
        tokens: Some(2.0),
        scale: vec![(Category::OptimizerState, 0.25)],
        without: vec!["temporary".to_owned(), "gpt.py:44".to_owned()],
        ..Options::default()
    };
    (spec, options)
}

#[test]
fn scaled_parts_are_those_of_the_program() {
    let (mut session, _) = open_session(SMALL);
    let file = load_file(SMALL);
    let plain = scenario(&mut session, &as_recorded()).scenario.expect("a scenario");
    let (spec, mut options) = with_parts();
    // Each part counts.
    let mut before = number(&plain.active_peak);
    for parts in 1..=spec.parts.len() {
        let parts = spec.parts[..parts].to_vec();
        let some = ScenarioSpec { parts, tokens: 1.0, ..spec.clone() };
        let active = number(&scenario(&mut session, &some).scenario.expect("one").active_peak);
        assert!(active < before, "{active} {before}");
        before = active;
    }
    options.change = vec!["expandable_segments:True".to_owned()];
    let report = what_if(report_target(&file), &options).expect("right options");
    let changed = ScenarioSpec { expandable_segments: Some(true), ..spec };
    let row = scenario(&mut session, &changed).scenario.expect("a scenario");
    assert_equal(&row, &report.scenarios[0]);
    assert_eq!(row.change, format!("{}, device of 24.00 GiB", report.scenarios[0].change));
}

#[test]
fn the_usual_scenarios_follow_memory_and_factors_but_no_settings() {
    let (mut session, _) = open_session(SMALL);
    let file = load_file(SMALL);
    let (spec, options) = with_parts();
    let report = what_if(report_target(&file), &options).expect("right options");
    let table = usual(&mut session, &spec);
    assert_eq!(table.rows.len(), report.scenarios.len());
    for (row, record) in table.rows.iter().zip(&report.scenarios) {
        assert_equal(row, record);
        assert_eq!((&row.change, row.fits), (&record.change, record.fits));
        assert_eq!(row.needs.as_ref().map(number), record.least_device_memory);
    }
    let settings = ScenarioSpec { max_split_size_mb: Some(64), ..spec };
    assert_eq!(usual(&mut session, &settings), table);
    let wrong = ScenarioSpec { device_memory: "many".into(), ..as_recorded() };
    assert!(usual(&mut session, &wrong).rows.is_empty());
}

#[test]
fn a_wrong_question_says_what_was_expected() {
    let (mut session, _) = open_session(SMALL);
    let parts = |parts: &[(&str, f64)]| ScenarioSpec {
        parts: parts.iter().map(|(what, factor)| part(what, *factor)).collect(),
        ..as_recorded()
    };
    for (spec, expected) in [
        (ScenarioSpec { device_memory: "many".into(), ..as_recorded() }, "`many` is no size"),
        (ScenarioSpec { tokens: f64::NAN, ..as_recorded() }, "tokens must be above 0"),
        (ScenarioSpec { tokens: -1.0, ..as_recorded() }, "tokens must be above 0"),
        (ScenarioSpec { max_split_size_mb: Some(20), ..as_recorded() }, "more than 20"),
        (ScenarioSpec { roundup_power2_divisions: Some(3), ..as_recorded() }, "power of two"),
        (parts(&[("gradient", 2.0), ("no.py:1", 0.0)]), "`no.py:1` is no category, and no block"),
        (parts(&[("gpt.py:44", 0.5)]), "can only be left out"),
        (parts(&[("gradient", f64::NAN)]), "from 0 to 1000"),
        (parts(&[("", 0.0)]), "call site is empty"),
    ] {
        let card = scenario(&mut session, &spec);
        let quoted = expected.split('`').nth(1);
        assert!(quoted.is_none() || card.wrong.as_deref() == quoted, "{:?}", card.wrong);
        assert!(card.error.is_some_and(|error| error.contains(expected)), "{expected}");
        assert!(card.scenario.is_none());
        assert!(curve(&mut session, &spec, [0.0, 9.0]).path.is_empty());
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
    let whole = curve(&mut session, &as_recorded(), [0.0, extent]);
    let card = scenario(&mut session, &as_recorded());
    assert_eq!(whole.top as u64, number(&card.scenario.expect("a scenario").reserved_peak));
    let (xs, highest) = read(&whole.path);
    assert_eq!((xs.last(), highest), (Some(&400.0), 0.0), "{}", whole.path);
    assert!(xs.is_sorted());
    // Half of the memory is not enough.
    let tight = ScenarioSpec {
        device_memory: ((whole.top / 2.0) as u64 + (512 << 20)).to_string(),
        ..as_recorded()
    };
    let row = scenario(&mut session, &tight).scenario.expect("a scenario");
    let event = f64::from(row.runs_out_at.expect("it does not fit"));
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
    let mut picture = |simulated: Option<ScenarioSpec>, width: u32| {
        let layer = Layer::Timeline {
            group: GroupBy::Block,
            color: ColorBy::Stack,
            bands: Bands::ALL,
            search: String::new(),
        };
        let (axis, x0, y0, height, dark) = (AxisKind::Event, 0.0, 0.0, 200, false);
        let query = Query::Picture { layer, axis, x0, x1, y0, y1, width, height, dark, simulated };
        answer!(session, query, Text)
    };
    assert!(!picture(None, 600).contains("simulated"));
    let spec = ScenarioSpec { expandable_segments: Some(true), tokens: 2.0, ..as_recorded() };
    let svg = picture(Some(spec.clone()), 600);
    assert!(svg.contains(">reserved, simulated: tokens x2, expandable_segments:True<"), "{svg}");
    let line = svg.split("class=\"simulated\"").nth(1).expect("the line");
    let path = line.split("d=\"").nth(1).and_then(|path| path.split('"').next()).expect("a path");
    let (xs, highest) = read(path);
    assert_eq!((xs.first(), xs.last()), (Some(&0.0), Some(&600.0)), "{path}");
    let narrow = picture(Some(spec.clone()), 300);
    assert!(narrow.contains(">reserved, simulated: tokens x2, expan\u{2026}<"), "{narrow}");
    // The highest place of the line is the peak: 200 px are 1e10 bytes.
    let row = scenario(&mut session, &spec).scenario.expect("a scenario");
    let expected = 200.0 * (1.0 - number(&row.reserved_peak) as f64 / 1e10);
    assert!((highest - expected).abs() < 0.1, "{highest} {expected}");
}

#[test]
fn a_newer_usual_table_cancels_the_older_one_in_the_midst_of_its_work() {
    let (mut session, _) = open_session(SMALL);
    let usual = |id, tokens| Request::View {
        id,
        target: TARGET,
        query: Query::UsualScenarios { spec: ScenarioSpec { tokens, ..as_recorded() } },
    };
    // Block sizes, categories and the model come first.
    scenario(&mut session, &as_recorded());
    session.post(usual(1, 2.0));
    assert!(matches!(session.slice(), Slice::Working));
    session.post(usual(2, 3.0));
    let reply = session.step().expect("the newer table");
    let Response::View { id: 2, answer: Answer::UsualScenarios(table) } = reply.response else {
        panic!("{:?}", reply.response)
    };
    assert_eq!(table.rows[0].change, "tokens x3");
    assert!(session.step().is_none());
}
