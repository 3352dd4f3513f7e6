//! The lane of steps and their phases.

use super::harness::{TARGET, ask, load_file, open_session, report_target};
use std::fmt::Write as _;
use vramscope_report::peak::{BandKind, peak};
use vramscope_session::FileSession;
use vramscope_session::messages::views::{Answer, PhaseItem, Phases, Query};
use vramscope_session::messages::{AxisKind, Response};

const LEAK: &str = "recorded/gpt_leak.pickle.gz";

#[test]
fn items_cover_the_window_on_each_axis_and_name_steps_phases_events_and_peaks() {
    let (mut session, loaded) = open_session(LEAK);
    let file = load_file(LEAK);
    let at = report_target(&file);
    let steps = at.entry.steps(0).expect("steps");
    let highest =
        format!(", peak {}", vramscope_units::Bytes(peak(at, BandKind::Requested, Some(0)).total));
    for axis in &loaded.parts[0].devices[0].axes {
        let query =
            Query::Phases { axis: axis.kind, x0: 0.0, x1: axis.extent, columns: 1_000_000_000 };
        let phases = answer!(session, query, Phases);
        assert_eq!(phases.label, "steps");
        assert!(phases.items.windows(2).all(|pair| pair[0].x1 == pair[1].x0), "no gaps");
        let (first, last) = (&phases.items[0], phases.items.last().expect("items"));
        assert!(first.x0 <= axis.origin && last.x1 < axis.extent, "{first:?} {last:?}");
        let begin: Vec<&str> =
            phases.items.iter().map(|item| &*item.step).filter(|step| !step.is_empty()).collect();
        let all: Vec<String> = (0..steps.whole()).map(|step| step.to_string()).collect();
        assert_eq!(begin, all, "each step begins once");
        for phase in ["forward", "backward", "optimizer"] {
            let item = phases
                .items
                .iter()
                .find(|item| item.phase == phase && item.title.starts_with("step 3, "));
            let title = &item.expect("each step has all phases").title;
            assert!(
                title.starts_with(&format!("step 3, {phase}: events #")) && title.contains(" to #"),
                "{title}"
            );
        }
        assert!(phases.items.iter().any(|item| item.title.ends_with(&highest)), "{highest}");
    }
}

#[test]
fn steps_are_one_item_each_or_share_items_where_they_are_narrow() {
    let (mut session, loaded) = open_session(LEAK);
    let file = load_file(LEAK);
    let steps = report_target(&file).entry.steps(0).expect("steps").clone();
    let extent = loaded.parts[0].devices[0].axes[0].extent;
    let mut ask_for = |x0: f64, x1: f64, columns: u32| {
        answer!(session, Query::Phases { axis: AxisKind::Event, x0, x1, columns }, Phases).steps
    };
    let all = ask_for(0.0, extent, 1_000_000);
    // After the last whole step, the trace has no further pass.
    assert_eq!(all.len(), steps.whole());
    for (number, item) in all.iter().enumerate() {
        assert_eq!(item.name, format!("step {number}"));
        assert_eq!(item.x0, f64::from(steps.begins[number]));
        assert_eq!(item.x1, f64::from(steps.begins[number + 1]).min(extent - 1.0));
        assert_eq!(item.shaded, number % 2 == 1);
        assert!(item.title.starts_with(&format!("step {number}: events #")), "{}", item.title);
    }
    // Of twelve steps in 12 columns, five share an item of 5 columns.
    let few = ask_for(0.0, extent, 12);
    assert!(few.len() < all.len(), "{few:?}");
    assert_eq!((few[0].x0, few.last().map(|i| i.x1)), (all[0].x0, all.last().map(|i| i.x1)));
    assert!(few.windows(2).all(|pair| pair[0].x1 == pair[1].x0), "{few:?}");
    assert!(few[0].title.starts_with("steps 0 to "), "{}", few[0].title);
    // A part of the window has the same items.
    let part = ask_for(all[3].x0 + 1.0, all[4].x0 + 1.0, 1_000_000);
    assert_eq!(part, all[3..5]);
}

#[test]
fn a_step_that_ran_out_of_memory_counts() {
    let name = "recorded/t26/oom_observer.pickle.gz";
    let (mut session, loaded) = open_session(name);
    let file = load_file(name);
    let whole = report_target(&file).entry.steps(0).expect("steps").whole();
    let extent = loaded.parts[0].devices[0].axes[0].extent;
    let query = Query::Phases { axis: AxisKind::Event, x0: 0.0, x1: extent, columns: 1000 };
    let phases = answer!(session, query, Phases);
    assert_eq!(phases.steps.len(), whole + 1);
    let last = phases.steps.last().expect("steps");
    assert_eq!((last.name.as_str(), last.x1), ("step 2", extent - 1.0));
    let title = &phases.items.last().expect("items").title;
    assert!(title.starts_with("step 2, "), "{title}");
}

#[test]
fn narrow_neighbors_are_merged_and_items_are_bounded() {
    let (mut session, loaded) = open_session(LEAK);
    let extent = loaded.parts[0].devices[0].axes[0].extent;
    let mut ask_for = |x0: f64, x1: f64, columns: u32| -> Vec<PhaseItem> {
        answer!(session, Query::Phases { axis: AxisKind::Event, x0, x1, columns }, Phases).items
    };
    let few = ask_for(0.0, extent, 8);
    assert!(few.len() <= 2 * 8 + 1, "{}", few.len());
    assert!(few.windows(2).all(|pair| pair[0].x1 == pair[1].x0), "no gaps");
    let merged: Vec<&PhaseItem> = few.iter().filter(|item| item.phase.is_empty()).collect();
    assert!(!merged.is_empty());
    for item in merged {
        assert!(item.title.starts_with("step"), "{item:?}");
    }
    // A part of the window has the same items as the whole, and those at its edges are whole.
    let whole = ask_for(0.0, extent, 1_000_000_000);
    let middle = ask_for((extent / 3.0).floor(), (extent / 2.0).floor(), 1_000_000_000);
    let at = whole.iter().position(|item| *item == middle[0]).expect("the same item");
    assert_eq!(middle, whole[at..at + middle.len()]);
    assert!(middle.len() < whole.len() / 2);
    assert!(ask_for(f64::NAN, 1.0, 0).is_empty());
}

/// A trace in which ten call stacks allocate one after the other, twelve times.
fn repeated() -> FileSession {
    let mut events = String::new();
    for event in 0..120 {
        let (line, address) = (event % 10, 4096 * (event + 1));
        let frames = format!("[{{\"filename\":\"serve.py\",\"line\":{line},\"name\":\"token\"}}]");
        for action in ["alloc", "free_completed"] {
            let comma = if events.is_empty() { "" } else { "," };
            write!(
                events,
                "{comma}{{\"action\":\"{action}\",\"addr\":{address},\"size\":512,\
                 \"frames\":{frames}}}"
            )
            .expect("writing to a String cannot fail");
        }
    }
    let json = format!("{{\"segments\":[],\"device_traces\":[[{events}]]}}");
    let mut session = FileSession::new("serve.json", json.len() as u64);
    session.feed(json.as_bytes()).expect("a snapshot");
    let response = session.finish();
    assert!(matches!(response, Response::Loaded(_)), "{response:?}");
    session
}

#[test]
fn repetitions_are_not_called_steps_and_files_without_phases_have_no_lane() {
    let whole = Query::Phases { axis: AxisKind::Event, x0: 0.0, x1: 1e9, columns: 1_000_000_000 };
    let mut session = repeated();
    let phases: Phases = answer!(session, whole.clone(), Phases);
    assert_eq!(phases.label, "passes");
    assert!(phases.items.iter().any(|item| item.title.starts_with("pass 0")), "{phases:?}");
    assert!(!phases.items.iter().any(|item| item.title.contains("step")), "{phases:?}");
    let settings = answer!(session, Query::Settings {}, Settings);
    let row = settings.provenance.iter().find(|row| row.key == "steps").expect("a row");
    assert_eq!(row.label, "passes");
    let (mut session, _) = open_session("recorded/misc/norecord.pickle");
    assert!(answer!(session, whole, Phases).items.is_empty());
    // Without a clock there is no time axis.
    let (mut session, _) = open_session("recorded/t20/gpt_small.pickle.gz");
    let timed = Query::Phases { axis: AxisKind::Time, x0: 0.0, x1: 9e9, columns: 9 };
    assert!(answer!(session, timed, Phases).items.is_empty());
}
