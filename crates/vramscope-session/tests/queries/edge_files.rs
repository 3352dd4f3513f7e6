//! Queries about every edge case file: no panic, and valid exports.

use super::events::filter;
use super::exports::read_csv;
use super::harness::{all_files, ask, open, open_session, table, test_data};
use serde_json::Value;
use vramscope_session::messages::views::{
    Answer, Looked, MarkedRange, Query, SegmentSort, SegmentSpec, Table, TextForm,
};
use vramscope_session::messages::{AxisKind, DeviceRef};

#[test]
fn views_of_edge_files_are_answered() {
    let mut queried = 0;
    for folder in ["edge", "scenarios", "recorded/misc"] {
        for entry in std::fs::read_dir(test_data().join(folder)).expect("a folder") {
            let name =
                format!("{folder}/{}", entry.expect("an entry").file_name().to_string_lossy());
            if name.contains(".json") {
                continue;
            }
            let (mut session, loaded) = open_session(&name);
            let devices = loaded
                .parts
                .iter()
                .zip(0..)
                .flat_map(|(p, part)| p.devices.iter().map(move |d| (part, d)));
            for (part, device) in devices {
                let target = DeviceRef { part, device: device.device };
                let extent = device.axes[0].extent;
                let mut queries = vec![Query::Card {}, Query::Summary {}, Query::Settings {}];
                for axis in [AxisKind::Event, AxisKind::Time] {
                    queries.push(Query::Minimap { axis });
                    for x1 in [0.0, extent, f64::INFINITY, f64::NAN] {
                        queries.push(Query::Tracks { axis, x0: -1.0, x1, columns: 7 });
                        queries.push(Query::EventAt { axis, slot: x1 });
                    }
                }
                for event in [i64::MIN, -1, 0, 3, i64::MAX] {
                    queries.push(Query::StateAt { event });
                    queries.push(Query::Segment { segment: 0, event });
                    let rows = SegmentSpec { sort: SegmentSort::Occupancy, event, grown: Some(99) };
                    let high = [-1.0, 5e4, f64::INFINITY, f64::NAN];
                    queries.extend(high.map(|y1| Query::SegmentRows {
                        rows: rows.clone(),
                        y0: 0.0,
                        y1,
                    }));
                    queries.push(Query::Segments { rows });
                }
                queries.push(Query::SegmentOf { block: 0 });
                for query in queries {
                    ask(&mut session, target, query);
                    queried += 1;
                }
            }
        }
    }
    assert!(queried > 1000, "{queried}");
}

#[test]
fn tables_and_exports_of_edge_files_are_answered() {
    for name in all_files() {
        let mut opened = open(&name);
        for device in opened.loaded.parts[0].devices.clone() {
            let target = DeviceRef { part: 0, device: device.device };
            for text in ["", "a", ">0", "0x1", "#0", "no such thing"] {
                let filter = filter(&[], text);
                let queries = [
                    Query::Search { text: text.into() },
                    Query::Events {
                        filter: filter.clone(),
                        from: 0,
                        count: u32::MAX,
                        near: Some(u32::MAX),
                    },
                    Query::Events {
                        filter: filter.clone(),
                        from: u32::MAX,
                        count: u32::MAX,
                        near: Some(0),
                    },
                    Query::Blocks { table: table(text), from: 0, count: 9, near: Some(0) },
                    Query::Blocks {
                        table: table(text),
                        from: u32::MAX,
                        count: 9,
                        near: Some(u32::MAX),
                    },
                    Query::Next {
                        of: Looked::Search { text: text.into() },
                        event: i64::MIN,
                        block: None,
                        backwards: true,
                    },
                    Query::Next {
                        of: Looked::Search { text: text.into() },
                        event: i64::MAX,
                        block: None,
                        backwards: false,
                    },
                    Query::Next {
                        of: Looked::Stack { block: 0 },
                        event: 5,
                        block: None,
                        backwards: true,
                    },
                    Query::Hit { block: 0 },
                    Query::Frame { name: text.into(), file: String::new(), line: 0 },
                    Query::Range(MarkedRange { axis: AxisKind::Time, x0: -5.0, x1: 1e12 }),
                    Query::Export {
                        what: Table::Events { filter: filter.clone() },
                        form: TextForm::Json,
                    },
                ];
                for query in queries {
                    opened.ask_of(target, query);
                }
                for what in [
                    Table::Blocks { table: table(text) },
                    Table::Events { filter },
                    Table::Segments { event: 3 },
                ] {
                    let Answer::Text(csv) = opened
                        .ask_of(target, Query::Export { what: what.clone(), form: TextForm::Csv })
                    else {
                        panic!("a text")
                    };
                    read_csv(&csv);
                    let Answer::Text(json) =
                        opened.ask_of(target, Query::Export { what, form: TextForm::Json })
                    else {
                        panic!("a text")
                    };
                    serde_json::from_str::<Value>(&json).expect("JSON");
                }
            }
        }
    }
}
