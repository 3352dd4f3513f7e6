//! Predictions, compared with `vramscope what-if`.

use super::harness::{TARGET, ask, load_file, open_session, report_target};
use super::{FILES, number};
use vramscope_report::LoadedFile;
use vramscope_report::what_if::{Options, Outcome, ScenarioRecord, WhatIfReport, what_if};
use vramscope_session::messages::views::{
    Answer, Bands, ColorBy, GroupBy, Layer, Query, ScenarioCard, SimulatedCurve,
};
use vramscope_session::messages::{AxisKind, Request, Response};
use vramscope_session::{FileSession, Slice};
use vramscope_trace::slicing::now;

const OOM: &str = "recorded/oom_expandable.pickle.gz";
const SMALL: &str = "recorded/t26/gpt_small.pickle.gz";

fn scenario(session: &mut FileSession, text: &str) -> ScenarioCard {
    *answer!(*session, Query::Scenario { text: text.to_owned() }, Scenario)
}

fn curve(session: &mut FileSession, text: &str, [x0, x1]: [f64; 2]) -> SimulatedCurve {
    let (text, axis) = (text.to_owned(), AxisKind::Event);
    let query = Query::SimulatedCurve { text, axis, x0, x1, columns: 400 };
    answer!(*session, query, SimulatedCurve)
}

/// The program's answer to a question.
fn told(file: &LoadedFile, text: &str) -> WhatIfReport {
    let options = Options::parse(text).expect("right options");
    now(async |budget| what_if(report_target(file), &options, None, budget).await)
}

/// The page's scenario has the program's number and outcome.
fn assert_equal(card: &ScenarioCard, told: &ScenarioRecord) {
    assert_eq!(
        card.needs.as_ref().map(number),
        told.least_device_memory.map(|of| of.0),
        "{told:?}"
    );
    let of_settings = told.pytorch_memory.and(told.fits);
    let of_settings = of_settings.map(|fits| if fits { Outcome::Fits } else { Outcome::Short });
    assert_eq!(card.outcome, told.outcome.or(of_settings), "{told:?}");
    let ends = match card.outcome {
        None => "",
        Some(Outcome::Fits) => " to spare",
        Some(Outcome::FitsBarely) => "barely",
        Some(Outcome::Short) => " short",
        Some(Outcome::Unknown) => "known",
    };
    assert!(card.verdict.ends_with(ends), "{card:?}");
    let percent = told.error_percent.map(|percent| format!(" \u{b1}{:.0} %", percent.ceil()));
    assert_eq!(card.basis, format!("replayed{}", percent.unwrap_or_default()));
}

#[test]
fn the_run_as_recorded_is_that_of_the_program() {
    for name in FILES {
        let (mut session, _) = open_session(name);
        let report = told(&load_file(name), "");
        let card = scenario(&mut session, "");
        assert_eq!(card.needs.is_some(), report.declined.is_none(), "{name}");
        if report.declined.is_none() {
            assert_equal(&card, &report.scenarios[0]);
        }
    }
}

#[test]
fn a_scenario_is_that_of_the_program() {
    let (oom, small) = ([OOM, OOM, OOM, OOM], [SMALL, SMALL, SMALL]);
    let questions = [
        "expandable_segments:False",
        "max_split_size_mb:128,batch:0.5",
        "roundup_power2_divisions:4,device_memory:H100",
        "expandable_segments:False,max_split_size_mb:64,device_memory:24GiB,optimizer:8bit",
        "batch:0.5",
        "set:[max_split_size_mb:128],device_memory:2.5GiB",
        "device_memory:24GiB,batch:0.5,checkpoint:all,optimizer:8bit",
    ];
    for (name, text) in oom.into_iter().chain(small).zip(questions) {
        let (mut session, _) = open_session(name);
        assert_equal(&scenario(&mut session, text), &told(&load_file(name), text).scenarios[0]);
    }
    // What lacks a fact has no number.
    let (mut session, _) = open_session(SMALL);
    let card = scenario(&mut session, "eval_batch:0.5");
    assert_eq!(card.verdict, "no prediction: no evaluation was found");
    assert!(card.needs.is_none() && card.outcome.is_none(), "{card:?}");
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
        assert!(card.needs.is_none());
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
    let file = load_file(SMALL);
    assert_eq!(whole.top as u64, told(&file, "").scenarios[0].reserved_peak.0);
    assert_eq!(whole.top, scenario(&mut session, "").top);
    let (xs, highest) = read(&whole.path);
    assert_eq!((xs.last(), highest), (Some(&400.0), 0.0), "{}", whole.path);
    assert!(xs.is_sorted());
    // Half of the memory is not enough.
    let tight = format!("device_memory:{}", (whole.top / 2.0) as u64 + (512 << 20));
    let event = f64::from(told(&file, &tight).scenarios[0].ooms[0].0);
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
    let expected = 200.0 * (1.0 - scenario(&mut session, text).top / 1e10);
    assert!((highest - expected).abs() < 0.1, "{highest} {expected}");
}

#[test]
fn newer_levers_cancel_the_older_ones_in_the_midst_of_their_work() {
    let (mut session, _) = open_session(SMALL);
    let levers = |id, gib: u64| {
        let query = Query::Levers { bytes: Some((gib << 30) as f64), all: false };
        Request::View { id, target: TARGET, query }
    };
    // Block sizes, categories and the model come first.
    scenario(&mut session, "");
    session.post(levers(1, 1));
    assert!(matches!(session.slice(), Slice::Working));
    session.post(levers(2, 80));
    let reply = session.step().expect("the newer levers");
    let Response::View { id: 2, answer: Answer::Levers(table) } = reply.response else {
        panic!("{:?}", reply.response)
    };
    assert_eq!(table.limit, Some(1.0));
    assert!(session.step().is_none());
}
