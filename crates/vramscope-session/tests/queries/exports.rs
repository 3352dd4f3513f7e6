//! Exports of tables, compared with reports.

use super::events::filter;
use super::harness::{GPT, Opened, TARGET, open, table};
use serde_json::Value;
use vramscope_report::blocks::blocks;
use vramscope_report::card::Card;
use vramscope_report::segments::segments;
use vramscope_session::FileSession;
use vramscope_session::messages::views::{
    Answer, BlockSort, BlockTable, EventFilter, Query, Table, TextForm,
};
use vramscope_session::messages::{Request, Response};
use vramscope_trace::slicing::now;
use vramscope_units::EventIndex;

impl Opened {
    fn export(&mut self, what: Table, form: TextForm) -> String {
        match self.ask(Query::Export { what, form }) {
            Answer::Text(text) => text,
            other => panic!("{other:?}"),
        }
    }
}

/// A value as the command line prints it.
fn printed_json(value: &impl serde::Serialize) -> Value {
    serde_json::from_str(&serde_json::to_string(value).expect("JSON")).expect("JSON")
}

/// Parses CSV as RFC 4180 defines it: the fields of every row.
pub(crate) fn read_csv(text: &str) -> Vec<Vec<String>> {
    let mut rows = vec![vec![String::new()]];
    let mut quoted = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let row = rows.last_mut().expect("a row");
        let field = row.last_mut().expect("a field");
        match c {
            '"' if quoted && chars.next_if_eq(&'"').is_some() => field.push('"'),
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(String::new()),
            '\r' if !quoted => {
                assert_eq!(chars.next(), Some('\n'), "RFC 4180 line ends");
                rows.push(vec![String::new()]);
            }
            c => field.push(c),
        }
    }
    assert!(!quoted && rows.pop() == Some(vec![String::new()]), "the last line ends too");
    let width = rows[0].len();
    assert!(rows.iter().all(|r| r.len() == width), "every line has {width} fields");
    rows
}

#[test]
fn block_exports_have_all_rows_in_order() {
    let mut opened = open(GPT);
    let spec = BlockTable { sort: BlockSort::ByteSeconds, ..table("forward") };
    let order = opened.order(&spec);
    let csv = read_csv(&opened.export(Table::Blocks { table: spec.clone() }, TextForm::Csv));
    assert_eq!(
        csv[0].join(","),
        "device,reference,address,reuse,requested_bytes,block_bytes,category,alloc_event,\
         free_requested_event,free_completed_event,lifetime,preexisting,live_at_end,\
         stream,pool,segment_type,stack_of_free,site"
    );
    assert_eq!(csv.len(), order.len() + 1);
    let json: Value =
        serde_json::from_str(&opened.export(Table::Blocks { table: spec }, TextForm::Json))
            .expect("JSON");
    assert!(json.get("schema").is_none() && json.get("path").is_none());
    let printed = printed_json(&blocks(opened.report(), BlockSort::Size, None));
    for key in ["device", "total", "lifetime_unit"] {
        assert_eq!(json[key], printed[key], "{key}");
    }
    let rows = opened.rows();
    for (at, &block) in order.iter().enumerate() {
        let (_, row) = rows.iter().find(|(i, _)| *i == block).expect("a block");
        let mut exported = json["blocks"][at].clone();
        let fields = exported.as_object_mut().expect("an object");
        let stack = fields.insert("stack".into(), row.stack.into()).expect("an index");
        let shape = row.shape.map(|shape| {
            let own = fields.insert("shape".into(), shape.into()).expect("an index");
            [own.as_u64().expect("a number") as usize, shape as usize]
        });
        assert_eq!(exported, printed_json(row));
        if let Some([own, of_row]) = shape {
            assert_eq!(json["shapes"][own], printed["shapes"][of_row]);
        }
        let stack = &json["stacks"][stack.as_u64().expect("an index") as usize];
        assert_eq!(*stack, printed["stacks"][row.stack as usize]);
        let fields = &csv[at + 1];
        let event = |e: Option<EventIndex>| e.map(|e| e.0.to_string()).unwrap_or_default();
        assert_eq!(
            fields[2..],
            [
                row.address.to_string(),
                row.reuse.to_string(),
                row.bytes.0.to_string(),
                row.block_bytes.0.to_string(),
                row.category.name().to_owned(),
                event(row.alloc_event),
                event(row.free_requested_event),
                event(row.free_completed_event),
                row.lifetime.raw().to_string(),
                row.preexisting.to_string(),
                row.live_at_end.to_string(),
                row.stream.to_string(),
                row.pool.map(|[a, b]| format!("({a}, {b})")).unwrap_or_default(),
                row.segment_type.to_owned(),
                row.of_free.to_string(),
                row.site.to_string(),
            ]
        );
    }
    // The exported reference finds the block.
    let reference = csv[1][1].clone();
    opened.session.post(Request::Find { id: 1, part: 0, reference });
    let found = opened.session.step().expect("an answer").response;
    assert!(
        matches!(found, Response::Block { detail: Some(ref d), .. } if d.block == order[0]),
        "{found:?}"
    );
}

#[test]
fn exports_of_events_findings_and_segments_equal_reports() {
    let mut opened = open("recorded/gpt_leak.pickle.gz");
    let what = Table::Events { filter: filter(&["alloc"], "") };
    let csv = read_csv(&opened.export(what.clone(), TextForm::Csv));
    let json: Value = serde_json::from_str(&opened.export(what, TextForm::Json)).expect("JSON");
    let allocs = opened.report().trace().allocations_in_window as usize;
    assert_eq!((csv.len() - 1, json["events"].as_array().map(Vec::len)), (allocs, Some(allocs)));
    for (line, row) in csv[1..].iter().zip(json["events"].as_array().expect("a list")) {
        for (field, value) in csv[0].iter().zip(line) {
            let written = match &row[field] {
                Value::String(text) => text.clone(),
                Value::Null => String::new(),
                number => number.to_string(),
            };
            assert_eq!(*value, written, "{field}");
        }
    }
    let card = now(async |budget| Card::new(opened.report(), budget).await);
    let printed = printed_json(&vramscope_report::findings::across(vec![card]));
    assert!(printed.as_array().is_some_and(|a| !a.is_empty()), "a leak");
    let json: Value =
        serde_json::from_str(&opened.export(Table::Findings {}, TextForm::Json)).expect("JSON");
    assert_eq!(json["findings"], printed);
    let csv = read_csv(&opened.export(Table::Findings {}, TextForm::Csv));
    assert_eq!(csv.len() - 1, printed.as_array().map_or(0, Vec::len));
    for event in [-1, 100, i64::MAX] {
        let slot =
            event.saturating_add(1).min(i64::from(opened.report().trace().slots()) - 1) as u32;
        let json: Value =
            serde_json::from_str(&opened.export(Table::Segments { event }, TextForm::Json))
                .expect("JSON");
        let mut printed =
            printed_json(&now(async |budget| segments(opened.report(), slot, None, budget).await));
        let object = printed.as_object_mut().expect("an object");
        object.retain(|key, _| !["schema", "path", "omitted"].contains(&key.as_str()));
        assert_eq!(json, printed, "{event}");
        let csv = read_csv(&opened.export(Table::Segments { event }, TextForm::Csv));
        assert_eq!(csv.len() - 1, printed["segments"].as_array().map_or(0, Vec::len));
    }
    let unclear = opened.export(Table::Blocks { table: table(">abc") }, TextForm::Csv);
    assert_eq!(read_csv(&unclear).len(), 1, "an invalid search has no rows");
}

#[test]
fn csv_escapes_texts_that_look_like_formulas() {
    let json = br#"{"segments": [], "device_traces": [[
        {"action": "alloc", "addr": 4096, "size": 10,
         "frames": [{"name": "f", "filename": "=cmd()\",\".py", "line": 3}]},
        {"action": "=now()", "addr": 0, "size": 0},
        {"action": "alloc", "addr": 8192, "size": 20, "stream": -1,
         "frames": [{"name": "@g\n", "filename": "", "line": 0}]}
    ]]}"#;
    let mut session = FileSession::new("=x.json", json.len() as u64);
    session.feed(json).expect("JSON of a snapshot");
    assert!(matches!(session.finish(), Response::Loaded(_)));
    let mut text = |what: Table| {
        session.post(Request::View {
            id: 3,
            target: TARGET,
            query: Query::Export { what, form: TextForm::Csv },
        });
        match session.step().expect("an answer").response {
            Response::View { answer: Answer::Text(text), .. } => read_csv(&text),
            other => panic!("{other:?}"),
        }
    };
    let blocks = text(Table::Blocks { table: BlockTable { descending: false, ..table("") } });
    let (stream, site) = (13, 17);
    assert_eq!((blocks[0][stream].as_str(), blocks[0][site].as_str()), ("stream", "site"));
    assert_eq!(blocks[1][site], "'=cmd()\",\".py:3 f");
    assert_eq!((blocks[2][stream].as_str(), blocks[2][site].as_str()), ("-1", "'@g\\n"));
    let events = text(Table::Events { filter: EventFilter::default() });
    assert_eq!((events[2][2].as_str(), events[2][3].as_str()), ("'=now()", ""));
}
