//! Curves of other ranks on one axis.

use super::harness::{TARGET, ask, load_file, open_session};
use super::number;
use vramscope_session::FileSession;
use vramscope_session::messages::AxisKind;
use vramscope_session::messages::views::{Answer, Moments, PINNED_HEIGHT, PinnedLine, Query};

const FILE: &str = "recorded/t26/gpt_small.pickle.gz";
const COLUMNS: u32 = 200;

fn moments(session: &mut FileSession, axis: AxisKind, x: [f64; 2], event: Option<i64>) -> Moments {
    let query = Query::Moments { axis, x0: x[0], x1: x[1], columns: COLUMNS, event };
    *answer!(*session, query, Moments)
}

fn line(session: &mut FileSession, moments: &Moments, top: u64) -> PinnedLine {
    let moments = Box::new(moments.clone());
    *answer!(*session, Query::PinnedLine { moments, top: top as f64 }, PinnedLine)
}

const EDGES: usize = COLUMNS as usize + 1;

/// The bytes of each column in a path of steps.
fn columns(line: &PinnedLine) -> Vec<u64> {
    let top = number(&line.top) as f64;
    let mut tops = Vec::new();
    let (mut y, mut text) = (0.0, line.path.trim_end_matches('Z'));
    text = text.strip_prefix("M0 1000").expect("a filled path");
    while let Some(command) = text.chars().next() {
        let end = text[1..].find(['H', 'V']).map_or(text.len(), |end| end + 1);
        let value: f64 = text[1..end].parse().expect("a number");
        match command {
            'V' => y = f64::from(PINNED_HEIGHT) - value,
            _ => tops.resize(value as usize, (y / f64::from(PINNED_HEIGHT) * top).round() as u64),
        }
        text = &text[end..];
    }
    tops
}

#[test]
fn a_rank_at_its_own_moments_is_its_curve_on_both_axes() {
    let file = load_file(FILE);
    let trace = &file.entries[0].traces[0];
    let (mut session, loaded) = open_session(FILE);
    let peak = trace.requested_band.peak as u64;
    for axis in &loaded.parts[0].devices[0].axes {
        for x in [[0.0, axis.extent], [axis.extent * 0.3, axis.extent * 0.4]] {
            let event = 700;
            let at = moments(&mut session, axis.kind, x, Some(event));
            let found = line(&mut session, &at, peak);
            assert_eq!((found.aligned.as_str(), number(&found.peak)), ("clock", peak));
            let held = found.held.as_ref().map(number);
            assert_eq!(held, Some(trace.requested.at(event as u32 + 1)), "{:?}", axis.kind);
            let tops = columns(&found);
            assert_eq!(tops.len(), COLUMNS as usize);
            // The minimap has the same states in its columns.
            let layout = vramscope_layout::Axis::new(trace, axis.kind).expect("an axis");
            let width = (x[1] - x[0]) / f64::from(COLUMNS);
            for (column, &found) in (0..).zip(&tops) {
                let edge = |column: u32| x[0] + width * f64::from(column);
                let (from, to) = (edge(column), edge(column + 1));
                let slots = from.floor() as u64..(to.ceil() as u64).max(from as u64 + 1);
                let states = layout.states_in(slots);
                // A column of time may begin within a microsecond that the axis draws whole.
                let end = (states.end + 2).min(trace.slots());
                let wide = states.start.saturating_sub(2)..end;
                let most = trace.requested.largest(wide.clone()).map_or(0, |top| top.1);
                let least = trace.requested.values(wide).min().unwrap_or(0);
                let is_outside = to < axis.origin || from > axis.extent - axis.origin;
                let error = peak / u64::from(PINNED_HEIGHT * 10);
                assert!(
                    (least.saturating_sub(error)..=most + error).contains(&found)
                        || (is_outside && found == 0),
                    "{:?} column {column}: {found} is not in {least}..{most}",
                    axis.kind
                );
            }
            if x[0] == 0.0 {
                assert_eq!(tops.iter().max(), Some(&peak), "{:?}", axis.kind);
            }
        }
    }
}

#[test]
fn ranks_are_aligned_by_clock_then_by_step_then_by_event() {
    let (mut session, loaded) = open_session(FILE);
    let axis = loaded.parts[0].devices[0].axes[0];
    let at = moments(&mut session, axis.kind, [0.0, axis.extent], None);
    let lists = [&at.times, &at.steps, &at.states];
    assert_eq!(lists.map(Vec::len), [EDGES; 3]);
    let whole = line(&mut session, &at, 1 << 30);
    assert_eq!((whole.held.as_ref(), whole.aligned.as_str()), (None, "clock"));

    // A clock of another day: the steps remain, and they give the same curve.
    let day = 86_400e6;
    let mut late = at.clone();
    late.window = at.window.map(|window| window.map(|time| time + day));
    let by_step = line(&mut session, &late, 1 << 30);
    assert_eq!(by_step.aligned, "step");
    assert_eq!(columns(&by_step).iter().max(), columns(&whole).iter().max());

    // Without steps.
    late.steps.clear();
    let by_event = line(&mut session, &late, 1 << 30);
    assert_eq!(by_event.aligned, "event");
    assert_eq!(columns(&by_event).iter().max(), columns(&whole).iter().max());

    // Before the recording there is no data.
    let mut before = at;
    before.times.iter_mut().for_each(|time| *time -= day);
    assert_eq!(columns(&line(&mut session, &before, 1 << 30)), vec![0; COLUMNS as usize]);
}

#[test]
fn wrong_moments_give_no_curve() {
    let (mut session, _) = open_session(FILE);
    let empty = moments(&mut session, AxisKind::Weight, [0.0, 5.0], None);
    assert_eq!(empty, Moments::default());
    assert_eq!(line(&mut session, &empty, 0).path, "");
    let odd = vec![f64::NAN, f64::INFINITY, -1e300, 1e300];
    let odd = Moments {
        x0: f64::NAN,
        x1: f64::NAN,
        columns: u32::MAX,
        window: None,
        times: odd.clone(),
        steps: odd.clone(),
        states: odd,
    };
    let all_times = Some([f64::NEG_INFINITY, f64::INFINITY]);
    for odd in [
        odd.clone(),
        Moments { steps: Vec::new(), ..odd.clone() },
        Moments { window: all_times, ..odd.clone() },
        Moments { columns: 2, window: all_times, ..odd },
    ] {
        let path = line(&mut session, &odd, 0).path;
        assert!(path.is_empty() || path.starts_with("M0 "), "{odd:?}: {path}");
    }
}
