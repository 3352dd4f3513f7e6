//! Answers to queries, compared with the reports of the command line.

/// The answer of a session to a query about the first device, which must be of this kind.
macro_rules! answer {
    ($session:expr, $query:expr, $kind:ident) => {{
        let query: Query = $query;
        match ask(&mut $session, TARGET, query) {
            Answer::$kind(answer) => answer,
            other => panic!("{other:?}"),
        }
    }};
}

mod blocks;
mod cards;
mod code;
mod compare;
mod edge_files;
mod events;
mod exports;
mod fleet;
mod grouped;
mod groups;
#[path = "../harness/mod.rs"]
mod harness;
mod legend;
mod levers;
mod map;
mod matrix;
mod overview;
mod peak_lens;
mod phases;
mod pinned;
mod pools;
mod ranges;
mod record;
mod search;
mod segments;
mod settings;
mod state_at;
mod summary;
mod summary_plot;
mod tracks;
mod what_if;

use harness::{TARGET, ask};
use vramscope_session::FileSession;
use vramscope_session::messages::DetailRow;
use vramscope_session::messages::views::{Answer, Query, SegmentRow, SegmentSpec, SegmentsInfo};

/// Recordings and a scenario with all kinds of segments, clocks and coverage.
const FILES: [&str; 8] = [
    "scenarios/f05.pickle",
    "recorded/t20/gpt_small.pickle.gz",
    "recorded/t26/gpt_small.pickle.gz",
    "recorded/t26/streams.pickle.gz",
    "recorded/t29/expandable_gpt.pickle.gz",
    "recorded/gpt_max_split.pickle.gz",
    "recorded/misc/norecord.pickle",
    "recorded/oom_expandable.pickle.gz",
];

/// All rows of the segments view, page by page from the top.
fn all_rows(session: &mut FileSession, spec: &SegmentSpec) -> (SegmentsInfo, Vec<SegmentRow>) {
    let info = answer!(*session, Query::Segments { rows: spec.clone() }, Segments);
    let (mut rows, mut y1) = (Vec::<SegmentRow>::new(), info.units);
    while y1 > 0.0 {
        rows.extend(answer!(
            *session,
            Query::SegmentRows { rows: spec.clone(), y0: 0.0, y1 },
            SegmentRows
        ));
        y1 = rows.last().expect("rows down to the bottom").y0;
    }
    (info, rows)
}

fn raw(row: &DetailRow) -> i64 {
    row.raw
        .as_deref()
        .and_then(|r| r.parse().ok())
        .unwrap_or_else(|| panic!("{} has an integer", row.key))
}

/// The integer of a row.
fn value(rows: &[DetailRow], key: &str) -> i64 {
    raw(rows.iter().find(|r| r.key == key).unwrap_or_else(|| panic!("a row {key}")))
}

fn number(quantity: &vramscope_session::messages::Quantity) -> u64 {
    quantity.value.try_into().expect("an integer")
}
