//! Searches, tables and exports, asked for as the page does, against what the program prints.

mod asking;

use asking::{GPT, Opened, TARGET, all_files, hit, number, open, table, test_data};
use serde_json::Value;
use vramscope_protocol::views::{
    Answer, BlockSort, BlockTable, EventFilter, EventPage, Looked, MarkedRange, Query,
    SearchResult, Table, TextForm,
};
use vramscope_protocol::{AxisKind, DeviceRef, Request, Response};
use vramscope_report::FrameRecord;
use vramscope_report::blocks::{BlockRecord, Sort, blocks};
use vramscope_report::peak::{BandKind, peak};
use vramscope_report::segments::segments;
use vramscope_report::state::state;
use vramscope_session::FileSession;

impl Opened {
    /// The program's rows, by the index of the block.
    fn rows(&self) -> Vec<(u32, BlockRecord<'_>)> {
        let trace = self.report().trace();
        let rows = blocks(self.report(), Sort::Size, None).blocks.into_iter().map(|row| {
            let is_it = |b: &vramscope_analysis::Block| {
                b.address.plain() == row.address && b.reuse() == row.reuse && b.bytes.0 == row.bytes
            };
            (trace.blocks.iter().position(is_it).expect("a block of the trace") as u32, row)
        });
        rows.collect()
    }

    fn search(&mut self, text: &str) -> Option<SearchResult> {
        match self.ask(Query::Search { text: text.into() }) {
            Answer::Search(found) => found,
            other => panic!("{other:?}"),
        }
    }

    fn events(
        &mut self,
        filter: &EventFilter,
        from: u32,
        count: u32,
        near: Option<u32>,
    ) -> EventPage {
        match self.ask(Query::Events { filter: filter.clone(), from, count, near }) {
            Answer::Events(page) => page,
            other => panic!("{other:?}"),
        }
    }

    fn export(&mut self, what: Table, form: TextForm) -> String {
        match self.ask(Query::Export { what, form }) {
            Answer::Text(text) => text,
            other => panic!("{other:?}"),
        }
    }
}

fn filter(actions: &[&str], text: &str) -> EventFilter {
    EventFilter { actions: actions.iter().map(|&a| a.to_owned()).collect(), text: text.into() }
}

/// As the program prints it. (A value made directly would have a confidence of more digits.)
fn printed_json(value: &impl serde::Serialize) -> Value {
    serde_json::from_str(&serde_json::to_string(value).expect("JSON")).expect("JSON")
}

#[test]
fn words_are_looked_for_in_the_frames_of_stacks() {
    let mut opened = open(GPT);
    let peak_event =
        opened.report().trace().requested_band.peak_event.expect("a peak in the window");
    let slot = peak_event + 1;
    let mut words: Vec<String> =
        ["forward", "GPT.py", "forward gpt.py", "no such thing"].map(Into::into).to_vec();
    let place =
        opened.rows().iter().flat_map(|(_, row)| row.frames.clone()).find(|f| f.line > 9).map(
            |f| {
                let file = f.file.rsplit('/').next().expect("a name").to_owned();
                format!("{file}:{}", f.line)
            },
        );
    words.push(place.expect("a frame with a line"));
    for text in words {
        let (mut count, mut bytes) = (0i64, 0i64);
        let matches = |frames: &[FrameRecord<'_>]| {
            text.to_lowercase().split(' ').all(|word| {
                let has = |f: &FrameRecord<'_>| {
                    format!("{} {}:{}", f.name, f.file, f.line).to_lowercase().contains(word)
                };
                frames.iter().any(has)
            })
        };
        let trace = opened.report().trace();
        for (i, row) in opened.rows() {
            if matches(&row.frames) {
                let block = &trace.blocks[i as usize];
                count += 1;
                bytes +=
                    if block.enters <= slot && slot < block.leaves { row.bytes as i64 } else { 0 };
            }
        }
        let found = opened.search(&text).expect("it is understood");
        assert_eq!((number(&found.blocks), number(&found.bytes)), (count, bytes), "{text}");
        assert_eq!(opened.order(&table(&text)).len() as i64, count, "{text}");
        assert!(found.text.starts_with(&found.blocks.exact), "{}", found.text);
        assert_eq!(count == 0, text == "no such thing", "{text}");
    }
}

#[test]
fn sizes_addresses_and_events_are_looked_for() {
    // A 1000 100; A 1200 200; A 1400 300; F 1200 (two events); A 1200 50 (hexadecimal addresses)
    let mut opened = open("scenarios/f02.pickle");
    for (text, count) in [
        (">100", 2),
        (">=100", 3),
        ("> 0.1KiB", 2),
        ("<0.1 kb", 2),
        ("<=50b", 1),
        ("<50", 0),
        ("<0", 0),
        ("=200", 1),
        ("= 200 bytes", 1),
        ("=0.2KiB", 1),
        ("=0.20KiB", 1),
        ("=0.21KiB", 0),
        (">50 <300", 2),
        (">1GiB", 0),
        ("0x1200", 2),
        ("0x12", 2),
        ("0x1", 4),
        ("0x1205", 2),
        ("0x12c7", 1),
        ("0x12c8", 0),
        ("0X1200_1", 1),
        ("0x1200_2", 0),
        ("0x1200 >100", 1),
        ("#0", 1),
        ("#3", 1),
        ("#4", 1),
        ("#5", 1),
        ("#1,000", 0),
    ] {
        let found = opened.search(text).unwrap_or_else(|| panic!("{text} is understood"));
        assert_eq!(number(&found.blocks), count, "{text}");
    }
    for text in [
        "",
        "  ",
        ">abc",
        ">",
        "> ",
        "=",
        "#x",
        "#",
        "0x",
        "0xzz",
        ">1.2.3",
        ">-1",
        ">99999999999999999999b",
        ">1XiB",
        "foo >",
        "=>3",
    ] {
        assert!(opened.search(text).is_none(), "{text}");
        let page = opened.blocks(&table(text), 0, 10, Some(0));
        let events = opened.events(&filter(&[], text), 0, 10, Some(0));
        if text.trim().is_empty() {
            assert_eq!((page.total, events.total), (4, 6), "an empty search leaves all");
            assert_eq!((page.text.as_str(), events.text.as_str()), ("4 blocks, 650 B", "6 events"));
        } else {
            assert_eq!(
                (page.total, page.at, events.total, events.at),
                (0, None, 0, None),
                "{text}"
            );
            assert!(
                page.text.contains("is not understood") && page.text == events.text,
                "{}",
                page.text
            );
        }
    }
    assert_eq!(number(&opened.search("<module>").expect("a name of Python's").blocks), 4);
    assert_eq!(number(&opened.search("<lambda>").expect("another").blocks), 0);
    assert_eq!(opened.search("#3").expect("an event").text, "1 block, 200 B of it at the peak");
    assert_eq!(opened.search("#77").expect("an event").text, "0 blocks");
}

#[test]
fn events_are_listed_with_what_they_did() {
    let mut opened = open(GPT);
    let total = opened.report().trace().device.events.len() as u32;
    let all = filter(&[], " ");
    let mut seen = 0;
    let mut times = Vec::new();
    while seen < total {
        let page = opened.events(&all, seen, u32::MAX, None);
        assert_eq!((page.total, page.from), (total, seen));
        let trace = opened.report().trace();
        assert!(!page.rows.is_empty() && page.rows.len() <= 500, "a page is bounded");
        for row in &page.rows {
            assert_eq!(row.event, seen);
            assert_eq!(number(&row.live), trace.requested.at(seen + 1) as i64);
            let block = row.block.map(|i| &trace.blocks[i as usize]);
            if ["alloc", "free_requested", "free_completed"].contains(&row.action.as_str()) {
                let block = block.expect("allocs and frees are about a block");
                let event = match row.action.as_str() {
                    "alloc" => block.alloc_event(),
                    "free_requested" => block.free_requested(),
                    _ => block.free_completed(),
                };
                assert_eq!(event.map(|e| e.0), Some(seen));
                assert_eq!(number(&row.bytes), block.bytes.0 as i64);
                assert!(row.address.starts_with(&block.address.to_string()));
            } else {
                assert!(block.is_none(), "{}", row.action);
            }
            times.push(row.time.clone());
            seen += 1;
        }
    }
    assert!(times.iter().all(|t| t.starts_with('+')));
    let page = opened.events(&all, total + 5, 10, Some(total + 9));
    assert_eq!((page.from, page.rows.len(), page.at), (total, 0, Some(total - 1)));
    assert!(page.text.ends_with(" events") && !page.text.contains(" of "), "{}", page.text);

    // Actions are all listed whatever is left, and add up.
    let frees = opened.events(&filter(&["free_completed", "nonsense"], ""), 0, 3, Some(100));
    let count = |name: &str| {
        let row = frees.actions.iter().find(|r| r.key == name).expect("an action");
        row.raw.as_deref().expect("a number").parse::<u32>().expect("digits")
    };
    assert_eq!(frees.actions.iter().map(|r| count(&r.key)).sum::<u32>(), total);
    assert_eq!(frees.total, count("free_completed"));
    assert_eq!(frees.text.replace(',', ""), format!("{} of {total} events", frees.total));
    // `near` is the last row at or before the event.
    let at = frees.at.expect("some are freed by then");
    let around = opened.events(&filter(&["free_completed", "nonsense"], ""), at, 2, None);
    assert!(around.rows[0].event <= 100 && around.rows[1].event > 100);
    assert_eq!(opened.events(&filter(&["nonsense"], ""), 0, 3, Some(100)).total, 0);

    // Each block's events, by its text.
    let big = opened.events(&filter(&["alloc"], ">=1MiB"), 0, 500, None);
    assert!(
        big.total > 0
            && big.rows.iter().all(|r| number(&r.bytes) >= 1 << 20 && r.action == "alloc")
    );
    let expected =
        opened.rows().iter().filter(|(_, r)| r.alloc_event.is_some() && r.bytes >= 1 << 20).count();
    assert_eq!(big.total as usize, expected);
    assert_eq!(opened.events(&filter(&[], "#7"), 0, 9, None).rows[0].event, 7);
}

#[test]
fn odd_events_say_their_sizes() {
    let mut opened = open("recorded/oom_expandable.pickle.gz");
    let ooms = opened.events(&filter(&["oom"], ""), 0, 100, None);
    let trace = opened.report().trace();
    assert_eq!(ooms.total as usize, trace.ooms.len());
    for (row, oom) in ooms.rows.iter().zip(&trace.ooms) {
        assert_eq!(
            (row.event, number(&row.bytes), row.block),
            (oom.event.0, oom.requested.0 as i64, None)
        );
    }
    let maps = opened.events(&filter(&["segment_map"], ""), 0, 500, None);
    let churn = segments(opened.report(), 0).churn;
    assert_eq!(maps.total, churn.segment_maps);
    assert_eq!(
        maps.rows.iter().map(|r| number(&r.bytes)).sum::<i64>(),
        churn.segment_map_bytes as i64
    );
    // Without a clock there is no time.
    let mut opened = open("edge/no_time.pickle");
    assert!(
        opened.events(&EventFilter::default(), 0, 9, None).rows.iter().all(|r| r.time.is_empty())
    );
}

/// What a row is sorted by: a number, then a text.
type Key = Box<dyn Fn(&BlockRecord<'_>, u32) -> (u128, String)>;

#[test]
fn blocks_are_sorted_by_every_column() {
    for name in [
        GPT,
        "recorded/t20/streams.pickle.gz",
        "edge/lost_alloc.pickle",
        "recorded/gpt_late.pickle.gz",
    ] {
        let name =
            if test_data().join(name).exists() { name.to_owned() } else { name.replace(".gz", "") };
        let mut opened = open(&name);
        let slots = opened.report().trace().slots();
        let spans: Vec<(u32, u32)> =
            opened.report().trace().blocks.iter().map(|b| (b.enters, b.leaves)).collect();
        let sites: Vec<String> = {
            let blocks = opened.report().trace().blocks.len() as u32;
            (0..blocks).map(|b| hit(&mut opened, b).expect("a block").site).collect()
        };
        let by = |key: fn(&BlockRecord<'_>) -> u128| -> Key {
            Box::new(move |r, _| (key(r), String::new()))
        };
        let (enters, leaves) = (spans.clone(), spans);
        let columns: Vec<(BlockSort, Key)> = vec![
            (BlockSort::Size, by(|r| r.bytes.into())),
            (BlockSort::BlockSize, by(|r| r.block_bytes.into())),
            (BlockSort::Category, Box::new(|r, _| (0, r.category.name().to_owned()))),
            (
                BlockSort::Allocated,
                Box::new(move |_, i| (enters[i as usize].0.into(), String::new())),
            ),
            (
                BlockSort::Freed,
                Box::new(move |r, i| {
                    let leaves = leaves[i as usize].1;
                    let is_live = leaves == slots && r.free_requested_event.is_none();
                    ((u128::from(leaves) * 2) + u128::from(is_live), String::new())
                }),
            ),
            (BlockSort::Lifetime, by(|r| r.lifetime.into())),
            (BlockSort::ByteSeconds, by(|r| u128::from(r.bytes) * u128::from(r.lifetime))),
            (
                BlockSort::Address,
                by(|r| u64::from_str_radix(&r.address[2..], 16).expect("hexadecimal").into()),
            ),
            (BlockSort::Stream, by(|r| (i128::from(r.stream) + (1 << 64)) as u128)),
            (BlockSort::Site, Box::new(move |_, i| (0, sites[i as usize].clone()))),
        ];
        for (sort, key) in columns {
            for descending in [false, true] {
                let found = opened.order(&BlockTable { sort, descending, ..table("") });
                let mut expected: Vec<_> =
                    opened.rows().iter().map(|(i, row)| (key(row, *i), *i)).collect();
                expected.sort_by(|a, b| {
                    let keys = if descending { b.0.cmp(&a.0) } else { a.0.cmp(&b.0) };
                    keys.then(a.1.cmp(&b.1))
                });
                let expected: Vec<u32> = expected.into_iter().map(|(_, i)| i).collect();
                assert!(found == expected, "{name}: {sort:?}, descending {descending}");
            }
        }
    }
}

#[test]
fn blocks_are_filtered_and_add_up() {
    let mut opened = open("truth/gpt_step.pickle.gz");
    let report = peak(opened.report(), BandKind::Requested, None);
    let (event, total, categories) = (report.event, report.total, report.categories.clone());
    let live = BlockTable { live_at: Some(event), ..table("") };
    let page = opened.blocks(&live, 0, 1, None);
    assert_eq!(page.total, peak(opened.report(), BandKind::Requested, None).blocks);
    let mut sum = 0;
    for share in &categories {
        let of = BlockTable { category: share.category.name().into(), ..live.clone() };
        let order = opened.order(&of);
        let trace = opened.report().trace();
        let bytes: u64 = order.iter().map(|&i| trace.blocks[i as usize].bytes.0).sum();
        assert_eq!(
            (order.len() as u32, bytes),
            (share.blocks, share.bytes),
            "{:?}",
            share.category
        );
        sum += bytes;
    }
    assert_eq!(sum, total);
    assert_eq!(
        opened.blocks(&BlockTable { category: "nonsense".into(), ..live }, 0, 9, None).total,
        0
    );
    // What is live at any event is what the state there lists.
    for event in [-9, -1, 0, 50, 700, i64::MAX] {
        let slots = opened.report().trace().slots();
        let slot = event.saturating_add(1).clamp(0, i64::from(slots) - 1) as u32;
        let (blocks, bytes) = {
            let state = state(opened.report(), slot);
            (state.blocks.len(), state.requested_bytes)
        };
        let order = opened.order(&BlockTable { live_at: Some(event), ..table("") });
        let trace = opened.report().trace();
        assert_eq!(order.len(), blocks, "{event}");
        assert_eq!(
            order.iter().map(|&i| trace.blocks[i as usize].bytes.0).sum::<u64>(),
            bytes,
            "{event}"
        );
    }
    // A row says what the program says of the block, and `near` finds it.
    let rows = opened.order(&table(""));
    for &block in rows.iter().step_by(97) {
        let at = opened.blocks(&table(""), 0, 0, Some(block)).at.expect("it is there");
        let page = opened.blocks(&table(""), at, 1, None);
        let line = &page.rows[0];
        let all = opened.rows();
        let (_, row) = all.iter().find(|(i, _)| *i == block).expect("a block");
        assert_eq!((line.block, line.category.as_str()), (block, row.category.name()));
        assert_eq!(
            (number(&line.bytes), number(&line.block_bytes)),
            (row.bytes as i64, row.block_bytes as i64)
        );
        assert_eq!(line.allocated == "before window", row.alloc_event.is_none());
        assert_eq!(
            line.freed.starts_with('#'),
            row.free_completed_event.is_some(),
            "{}",
            line.freed
        );
        assert_eq!(
            (number(&line.lifetime), number(&line.stream)),
            (row.lifetime as i64, row.stream)
        );
        assert!(
            line.lifetime.exact.ends_with(&format!(", {}", line.lifetime.text)),
            "{:?}",
            line.lifetime
        );
    }
    let few = opened.blocks(&table(">1MiB"), 0, 1, None);
    let all = opened.report().trace().blocks.len();
    assert!(
        few.text.replace(',', "").starts_with(&format!("{} of {all} blocks ", few.total)),
        "{}",
        few.text
    );
}

#[test]
fn words_of_blocks_are_those_of_their_lives() {
    let words = |name: &str| {
        let mut opened = open(name);
        if opened.loaded.parts[0].devices.is_empty() {
            return Vec::new();
        }
        let mut rows =
            opened.blocks(&BlockTable { sort: BlockSort::Freed, ..table("") }, 0, 500, None).rows;
        rows.sort_by(|a, b| a.reference.cmp(&b.reference));
        rows.into_iter()
            .map(|r| format!("{} {} {}", r.reference, r.allocated, r.freed))
            .collect::<Vec<_>>()
    };
    assert!(
        words("scenarios/f04.pickle").contains(&"0:0x1000@pre before window #2".to_owned()),
        "{:?}",
        words("scenarios/f04.pickle")
    );
    let all: Vec<String> = all_files().iter().flat_map(|f| words(f)).collect();
    for part in [" not recorded ", " pending", " live at end", " before #"] {
        assert!(all.iter().any(|w| w.contains(part)), "no file has a block that is {part}");
    }
}

/// Fields of RFC 4180, row by row.
fn read_csv(text: &str) -> Vec<Vec<String>> {
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
                assert_eq!(chars.next(), Some('\n'), "lines end as RFC 4180 says");
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
fn tables_are_exported_whole_and_in_order() {
    let mut opened = open(GPT);
    let spec = BlockTable { sort: BlockSort::ByteSeconds, ..table("forward") };
    let order = opened.order(&spec);
    let csv = read_csv(&opened.export(Table::Blocks { table: spec.clone() }, TextForm::Csv));
    assert_eq!(
        csv[0].join(","),
        "device,reference,address,reuse,requested_bytes,block_bytes,category,confidence,alloc_event,\
         free_requested_event,free_completed_event,lifetime,preexisting,live_at_end,stream,\
         stack_of_free,site,stack"
    );
    assert_eq!(csv.len(), order.len() + 1);
    let json: Value =
        serde_json::from_str(&opened.export(Table::Blocks { table: spec }, TextForm::Json))
            .expect("JSON");
    assert!(json.get("schema").is_none() && json.get("path").is_none());
    let printed = printed_json(&blocks(opened.report(), Sort::Size, None));
    for key in ["device", "total", "lifetime_unit"] {
        assert_eq!(json[key], printed[key], "{key}");
    }
    let rows = opened.rows();
    for (at, &block) in order.iter().enumerate() {
        let (_, row) = rows.iter().find(|(i, _)| *i == block).expect("a block");
        assert_eq!(json["blocks"][at], printed_json(row));
        let fields = &csv[at + 1];
        let event = |e: Option<u32>| e.map(|e| e.to_string()).unwrap_or_default();
        let stack: Vec<String> = row.frames.iter().map(FrameRecord::label).collect();
        assert_eq!(
            fields[2..],
            [
                row.address.clone(),
                row.reuse.to_string(),
                row.bytes.to_string(),
                row.block_bytes.to_string(),
                row.category.name().to_owned(),
                row.confidence.to_string(),
                event(row.alloc_event),
                event(row.free_requested_event),
                event(row.free_completed_event),
                row.lifetime.to_string(),
                row.preexisting.to_string(),
                row.live_at_end.to_string(),
                row.stream.to_string(),
                row.of_free.to_string(),
                row.site.clone(),
                stack.join("; "),
            ]
        );
    }
    // The reference finds the block.
    let reference = csv[1][1].clone();
    opened.engine.post(Request::Find { id: 1, part: 0, reference });
    let found = opened.engine.step().expect("an answer").response;
    assert!(
        matches!(found, Response::Block { detail: Some(ref d), .. } if d.block == order[0]),
        "{found:?}"
    );
}

#[test]
fn events_findings_and_segments_are_exported() {
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
    let printed =
        vramscope_report::findings::across(vec![vramscope_report::rank::RankSummary::new(
            opened.report(),
        )]);
    let printed = printed_json(&printed.anomalies);
    assert!(printed.as_array().is_some_and(|a| !a.is_empty()), "it leaks");
    let json: Value =
        serde_json::from_str(&opened.export(Table::Findings {}, TextForm::Json)).expect("JSON");
    assert_eq!(json["anomalies"], printed);
    let csv = read_csv(&opened.export(Table::Findings {}, TextForm::Csv));
    assert_eq!(csv.len() - 1, printed.as_array().map_or(0, Vec::len));
    for event in [-1, 100, i64::MAX] {
        let slot =
            event.saturating_add(1).min(i64::from(opened.report().trace().slots()) - 1) as u32;
        let json: Value =
            serde_json::from_str(&opened.export(Table::Segments { event }, TextForm::Json))
                .expect("JSON");
        let mut printed = printed_json(&segments(opened.report(), slot));
        let object = printed.as_object_mut().expect("an object");
        object.retain(|key, _| key != "schema" && key != "path");
        assert_eq!(json, printed, "{event}");
        let csv = read_csv(&opened.export(Table::Segments { event }, TextForm::Csv));
        assert_eq!(csv.len() - 1, printed["segments"].as_array().map_or(0, Vec::len));
    }
    let unclear = opened.export(Table::Blocks { table: table(">abc") }, TextForm::Csv);
    assert_eq!(read_csv(&unclear).len(), 1, "a search that is not understood finds nothing");
}

#[test]
fn texts_that_look_like_formulas_are_made_harmless() {
    let json = br#"{"segments": [], "device_traces": [[
        {"action": "alloc", "addr": 4096, "size": 10, "frames": [{"name": "f", "filename": "=cmd()\",\".py", "line": 3}]},
        {"action": "=now()", "addr": 0, "size": 0},
        {"action": "alloc", "addr": 8192, "size": 20, "stream": -1, "frames": [{"name": "@g\n", "filename": "", "line": 0}]}
    ]]}"#;
    let mut engine = FileSession::new("=x.json", json.len() as u64);
    engine.feed(json).expect("JSON of a snapshot");
    assert!(matches!(engine.finish(), Response::Loaded(_)));
    let mut text = |what: Table| {
        engine.post(Request::View {
            id: 3,
            target: TARGET,
            query: Query::Export { what, form: TextForm::Csv },
        });
        match engine.step().expect("an answer").response {
            Response::View { answer: Answer::Text(text), .. } => read_csv(&text),
            other => panic!("{other:?}"),
        }
    };
    let blocks = text(Table::Blocks { table: BlockTable { descending: false, ..table("") } });
    let (stream, site) = (14, 16);
    assert_eq!((blocks[0][stream].as_str(), blocks[0][site].as_str()), ("stream", "site"));
    assert_eq!(blocks[1][site], "'=cmd()\",\".py:3 f");
    assert_eq!((blocks[2][stream].as_str(), blocks[2][site].as_str()), ("-1", "'@g\n"));
    let events = text(Table::Events { filter: EventFilter::default() });
    assert_eq!((events[2][2].as_str(), events[2][3].as_str()), ("'=now()", ""));
}

#[test]
fn odd_files_are_answered_too() {
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

#[test]
fn pages_of_two_devices_do_not_mix() {
    let mut opened = open("edge/two_devices.pickle");
    let devices = opened.loaded.parts[0].devices.clone();
    assert!(devices.len() > 1);
    for _ in 0..2 {
        for device in &devices {
            let target = DeviceRef { part: 0, device: device.device };
            let query =
                Query::Events { filter: EventFilter::default(), from: 0, count: 500, near: None };
            let Answer::Events(page) = opened.ask_of(target, query) else { panic!("a page") };
            assert_eq!(i64::from(page.total), number(&device.events));
            let query = Query::Blocks { table: table(""), from: 0, count: 500, near: None };
            let Answer::Blocks(page) = opened.ask_of(target, query) else { panic!("a page") };
            assert_eq!(i64::from(page.total), number(&device.blocks));
            assert!(
                page.rows.iter().all(|r| r.reference.starts_with(&format!("{}:", device.device)))
            );
        }
    }
}
