//! What holds blocks: by a file beside a recording, whose links are made for its live blocks.

use serde_json::{Value, json};
use std::path::Path;
use vramscope_inference::FindingKind;
use vramscope_report::diagnostic::{Answer, plain_text};
use vramscope_report::findings::{FindingRecord, of_device};
use vramscope_report::holders::{Holder, HolderKind, holders_at, of_block};
use vramscope_report::{FileReader, LoadedFile, Target};

const LEAK: &str = "recorded/gpt_leak.pickle.gz";

fn data(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test_data").join(name);
    std::fs::read(path).expect("test data")
}

fn read(name: &str) -> LoadedFile {
    let bytes = data(name);
    let mut reader = FileReader::new(name, bytes.len() as u64);
    reader.feed(&bytes).expect("a snapshot");
    reader.finish().expect("a snapshot")
}

fn target(file: &LoadedFile) -> Target<'_> {
    Target { path: &file.path, entry: &file.entries[0], index: 0 }
}

/// A recording and its live blocks at the end, the largest first: index and address.
fn live(name: &str) -> (LoadedFile, Vec<(u32, u64)>) {
    let file = read(name);
    let trace = &file.entries[0].traces[0];
    let at_end = (0..).zip(&trace.blocks).filter(|(_, block)| block.leaves == trace.slots());
    let mut blocks: Vec<_> = at_end.map(|(i, b)| (b.bytes.0, i, b.address.0)).collect();
    blocks.sort_by_key(|&(bytes, index, _)| (std::cmp::Reverse(bytes), index));
    let blocks = blocks.into_iter().map(|(_, index, address)| (index, address)).collect();
    (file, blocks)
}

fn set(file: &mut LoadedFile, holders: &Value) {
    let json = json!({"version": 1, "holders": holders});
    file.entries[0].set_sidecar(json.to_string().as_bytes());
    assert_eq!(file.entries[0].sidecar_fault(), None);
}

/// What holds the largest live block that has these links, and further fields.
fn held(complete: bool, links: &Value, block: &Value, drops: &Value) -> Holder {
    let (mut file, blocks) = live(LEAK);
    let (index, address) = blocks[0];
    let mut entry = json!({"device": 0, "address": address});
    let fields = block.as_object().expect("an object").clone();
    entry.as_object_mut().expect("an object").extend(fields);
    let holders = json!({
        "complete": complete, "graph": complete, "links": links, "blocks": [entry], "drops": drops,
    });
    set(&mut file, &holders);
    of_block(target(&file), index).expect("a holder")
}

fn losses() -> Value {
    json!([
        {"by": "local", "name": "losses", "type": "list", "length": 12, "function": "train",
         "file": "/a/train.py", "line": 42},
        {"from": 0, "by": "item", "name": "0", "type": "Tensor"},
        {"from": 1, "by": "graph", "type": "AddBackward0"},
        {"from": 2, "by": "graph", "type": "MulBackward0", "between": 1},
        {"from": 3, "by": "saved", "name": "other"},
        {"by": "global", "name": "CACHE", "type": "dict", "length": 3, "module": "m",
         "file": "/a/m.py"},
    ])
}

#[test]
fn a_chain_has_its_root_its_way_and_what_a_drop_frees() {
    let drops = json!([
        {"within": null, "links": [0], "bytes": 3_414_163_456u64, "blocks": 12},
        {"within": 0, "links": [1], "bytes": 1 << 20, "blocks": 1},
        {"within": null, "links": [0, 5], "bytes": 1u64 << 31, "blocks": 1},
    ]);
    let holder = held(true, &losses(), &json!({"link": 4, "drop": 0}), &drops);
    assert_eq!(holder.kind, HolderKind::Reference);
    assert_eq!(holder.text, "local \"losses\" (list of 12) of train(), train.py:42");
    assert_eq!(
        holder.path,
        "losses[0] -> Tensor -> its autograd graph (AddBackward0 ... MulBackward0) saves it as \
         \"other\""
    );
    assert_eq!(holder.drop, "dropping \"losses\" frees 3.18 GiB");
    assert_eq!(holder.frees_bytes.map(|bytes| bytes.0), Some(3_414_163_456));
    let item = held(true, &losses(), &json!({"link": 4, "drop": 1}), &drops);
    assert_eq!(item.drop, "dropping losses[0] frees 1.00 MiB; dropping \"losses\" frees 3.18 GiB");
    let both = held(true, &losses(), &json!({"link": 4, "drop": 2}), &drops);
    assert_eq!(
        both.drop,
        "dropping local \"losses\" of train() and global \"CACHE\" of m.py together frees 2.00 GiB"
    );
    // A walk that was cut may have missed another holder.
    let cut = held(false, &losses(), &json!({"link": 4, "drop": 0}), &drops);
    assert_eq!(cut.drop, "dropping \"losses\" frees at most 3.18 GiB");
    assert!(cut.is_upper_bound && !holder.is_upper_bound);
}

#[test]
fn each_kind_of_reference_has_words() {
    let root = json!({"by": "local", "name": "m", "type": "Net", "function": "f", "file": "a.py"});
    let way = |rest: &[Value]| {
        let mut links = vec![root.clone()];
        for link in rest {
            let mut link = link.clone();
            link["from"] = json!(links.len() - 1);
            links.push(link);
        }
        let last = links.len() - 1;
        held(true, &json!(links), &json!({"link": last}), &json!([])).path
    };
    let attribute = json!({"by": "attribute", "name": "head"});
    let cases: [(&[Value], &str); 12] = [
        (&[], ""),
        (&[attribute.clone(), json!({"by": "gradient"})], "m.head.grad"),
        (&[attribute.clone(), json!({"by": "key", "name": "x\"y"})], "m.head[\"xy\"]"),
        (&[attribute.clone(), json!({"by": "base"})], "m.head._base"),
        (
            &[json!({
                "by": "closure", "name": "maps", "function": "hook", "file": "b.py", "line": 3,
            })],
            "m -> closure variable \"maps\" of hook(), b.py:3",
        ),
        (
            &[
                json!({"by": "default", "name": "cache", "function": "g"}),
                json!({"by": "item", "name": "2"}),
            ],
            "m -> default argument \"cache\"[2] of g()",
        ),
        (
            &[json!({
                "by": "frame_local", "name": "y", "function": "step", "file": "b.py", "line": 9,
            })],
            "m -> local \"y\" of step(), b.py:9",
        ),
        (
            &[json!({"by": "cache", "function": "rope", "file": "b.py", "line": 9})],
            "m -> a result in the lru_cache of rope(), b.py:9",
        ),
        (
            &[
                json!({"by": "graph", "type": "ExpBackward0"}),
                json!({"by": "packed", "name": "result"}),
            ],
            "m -> its autograd graph (ExpBackward0) has what a hook packed as \"result\"",
        ),
        (
            &[json!({"by": "graph", "type": "AccumulateGrad"}), json!({"by": "accumulates"})],
            "m -> its autograd graph (AccumulateGrad) adds to its gradient",
        ),
        (&[json!({"by": "reference", "type": "Holder", "between": 3})], "m -> 3 more -> Holder"),
        (&[json!({"by": "of the future", "name": "n", "type": "T"})], "m -> \"n\" T"),
    ];
    for (rest, wanted) in cases {
        assert_eq!(way(rest), wanted);
    }
    let text = |root: &Value| held(true, &json!([root]), &json!({"link": 0}), &json!([])).text;
    let roots = [
        (
            json!({"by": "context", "name": "c", "type": "Tensor"}),
            "context variable \"c\" (Tensor)",
        ),
        (
            json!({"by": "handled", "type": "RuntimeError"}),
            "the exception that is handled now (RuntimeError)",
        ),
        (json!({"by": "expression"}), "a container in a running expression or native code"),
        (
            json!({
                "by": "local", "name": "x", "function": "<module>", "file": "a.py",
                "thread": "loader",
            }),
            "local \"x\" of <module>, a.py, thread loader",
        ),
        (json!({"by": "global", "name": "G", "module": "pkg.m"}), "global \"G\" of module pkg.m"),
    ];
    for (root, wanted) in roots {
        assert_eq!(text(&root), wanted);
    }
}

#[test]
fn what_no_reference_holds_is_said_only_after_a_whole_walk() {
    let cycle = json!([{"by": "cycle", "type": "Trace", "length": 2}]);
    let of = |complete, links: &Value, block: Value| held(complete, links, &block, &json!([]));
    let seen = of(true, &cycle, json!({"link": 0}));
    assert_eq!(seen.kind, HolderKind::Cycle);
    assert_eq!(seen.text, "only a cycle of 2 objects (Trace) holds it, gc.collect() frees it");
    let cut = of(false, &cycle, json!({"link": 0}));
    assert_eq!(cut.kind, HolderKind::Unread);
    assert!(!cut.text.contains("cycle"), "{}", cut.text);
    assert_eq!(
        cut.note,
        "autograd graphs and gradients were not read: another thread or a profiler was in the way; \
         the walk through the references was cut"
    );
    let below = of(true, &json!([]), json!({"none": "below_python"}));
    assert_eq!(
        below.text,
        "held below Python (a running expression, autograd, a CUDA graph or a library)"
    );
    assert_eq!(of(false, &json!([]), json!({"none": "below_python"})).kind, HolderKind::Unread);
    let unread = of(true, &json!([]), json!({"none": "unread"}));
    assert_eq!((unread.kind, unread.note.as_str()), (HolderKind::Unread, ""));
    let slice = of(true, &losses(), json!({"link": 1, "view_bytes": 4096}));
    assert_eq!(slice.note, "a slice of 4.00 KiB keeps 73.69 MiB");
}

#[test]
fn only_blocks_that_are_live_at_the_end_match() {
    let (mut file, _) = live(LEAK);
    let trace = &file.entries[0].traces[0];
    let freed = trace.blocks.iter().position(|block| block.leaves < trace.slots()).expect("one");
    let address = trace.blocks[freed].address.0;
    let links = json!([{"by": "local", "name": "x"}]);
    let entry = json!({"device": 0, "address": address, "link": 0});
    let other = json!({"device": 1, "address": address, "link": 0});
    set(&mut file, &json!({"links": links, "blocks": [other, entry]}));
    let at = target(&file);
    assert_eq!(of_block(at, freed as u32), None);
    let trace = at.trace();
    for (index, block) in (0..).zip(&trace.blocks) {
        let is_it = block.leaves == trace.slots() && block.address.0 == address;
        assert_eq!(of_block(at, index).is_some(), is_it);
    }
}

fn with_beside(recording: &str, beside: &str) -> LoadedFile {
    let mut file = read(recording);
    file.entries[0].set_sidecar(&data(beside));
    assert_eq!(file.entries[0].sidecar_fault(), None);
    file
}

fn finding(file: &LoadedFile, kind: FindingKind) -> FindingRecord {
    let all = of_device(target(file)).into_iter().map(|entry| entry.record);
    all.into_iter().find(|record| record.kind == kind).expect("a finding")
}

#[test]
fn a_leak_names_the_list_that_grows() {
    let file = with_beside(LEAK, "holders/gpt_leak.vramscope.json");
    let found = finding(&file, FindingKind::Growth);
    let [holder] = &found.holders[..] else { panic!("{:?}", found.holders) };
    assert_eq!(holder.text, "local \"leaked\" (list of 12) of main(), p_gpt.py:40");
    assert_eq!(holder.path, "leaked[0..11]");
    // 12 blocks of 51,511,296 bytes.
    assert_eq!((holder.bytes.0, holder.blocks.0), (618_135_552, 12));
    assert_eq!(holder.frees_bytes, Some(holder.bytes));
    assert!(found.action.starts_with("Dropping \"leaked\" frees all of it. "), "{}", found.action);
    assert!(!found.action.contains("Find what keeps"), "{}", found.action);
    // Without the file, it has to be found.
    let found = finding(&read(LEAK), FindingKind::Growth);
    assert!(found.holders.is_empty() && found.action.starts_with("Find what keeps"));
}

#[test]
fn one_root_is_named_if_it_holds_most_and_two_otherwise() {
    let (mut file, blocks) = live(LEAK);
    // The 12 leaked blocks are of one size, between the largest parameter and its states.
    let leaked: Vec<u64> = {
        let trace = &file.entries[0].traces[0];
        let is_leaked = |block: &&vramscope_trace::Block| {
            block.bytes.0 == 51_511_296 && block.leaves == trace.slots()
        };
        trace.blocks.iter().filter(is_leaked).map(|block| block.address.0).collect()
    };
    assert_eq!((leaked.len(), blocks.len()), (12, 248));
    let links = json!([
        {"by": "local", "name": "a", "function": "f"},
        {"by": "local", "name": "b", "function": "f"},
        {"by": "local", "name": "c", "function": "f"},
    ]);
    let mut of = |roots: [usize; 12]| {
        let entry =
            |(address, root): (&u64, usize)| json!({"device": 0, "address": address, "link": root});
        let entries: Vec<Value> = leaked.iter().zip(roots).map(entry).collect();
        set(&mut file, &json!({"complete": true, "links": links, "blocks": entries}));
        let found = finding(&file, FindingKind::Growth);
        found.holders.iter().map(|holder| holder.text.clone()).collect::<Vec<_>>()
    };
    assert_eq!(of([0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2]), ["local \"a\" of f()"]);
    let two = ["local \"a\" of f()", "local \"b\" of f()"];
    assert_eq!(of([0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2]), two);
}

#[test]
fn cycles_that_the_recorder_saw_are_said() {
    let (mut file, _) = live(LEAK);
    let trace = &file.entries[0].traces[0];
    let leaked = trace
        .blocks
        .iter()
        .filter(|block| block.bytes.0 == 51_511_296 && block.leaves == trace.slots());
    let entries: Vec<Value> = leaked
        .zip(0..)
        .map(|(block, at)| json!({"device": 0, "address": block.address.0, "link": at % 3}))
        .collect();
    let cycle = json!({"by": "cycle", "type": "Trace", "length": 2});
    let links = json!([cycle, cycle, cycle]);
    set(&mut file, &json!({"complete": true, "links": links, "blocks": entries}));
    let found = finding(&file, FindingKind::Growth);
    let [holder] = &found.holders[..] else { panic!("{:?}", found.holders) };
    assert_eq!(holder.text, "only 3 cycles of objects (Trace) hold it, gc.collect() frees it");
    assert_eq!((holder.kind, holder.blocks.0), (HolderKind::Cycle, 12));
    let entries: Vec<_> = of_device(target(&file));
    let shown = plain_text(&Answer::of_finding(&entries[0]), 100);
    assert!(shown.contains("= holder: only 3 cycles of objects (Trace) hold it"), "{shown}");
    // What the walk did not see may hold it.
    set(&mut file, &json!({"complete": false, "links": links, "blocks": []}));
    assert!(finding(&file, FindingKind::Growth).holders.is_empty());
}

/// A file that ends with its program: what is said of the leak. `end` and `noted` are the links of
/// the blocks that leaked: all of them are live at the end, and four when the note was taken.
fn of_ended(links: &Value, end: Option<u32>, noted: Option<u32>) -> Vec<Holder> {
    let (mut file, _) = live(LEAK);
    let trace = &file.entries[0].traces[0];
    let mut leaked: Vec<_> =
        trace.blocks.iter().filter(|block| block.bytes.0 == 51_511_296).collect();
    leaked.retain(|block| block.leaves == trace.slots());
    leaked.sort_by_key(|block| block.enters);
    let clock = trace.clock.as_ref().expect("a clock");
    let time = clock.start.0 + clock.offset(leaked[3].enters) as i64;
    let mut entries: Vec<Value> = Vec::new();
    for (at, block) in leaked.iter().enumerate() {
        let place = json!({"device": 0, "address": block.address.0});
        let entry = |link: u32, is_noted: bool| {
            let mut entry = place.clone();
            entry["link"] = json!(link);
            entry["noted"] = json!(is_noted);
            entry
        };
        entries.extend(end.map(|link| entry(link, false)));
        entries.extend(noted.filter(|_| at < 4).map(|link| entry(link, true)));
    }
    let holders = json!({
        "complete": true, "links": links, "blocks": entries,
        "noted": {"time_us": time, "step": 4},
    });
    let json = json!({"version": 1, "reason": "end", "holders": holders});
    file.entries[0].set_sidecar(json.to_string().as_bytes());
    assert_eq!(file.entries[0].sidecar_fault(), None);
    finding(&file, FindingKind::Growth).holders
}

#[test]
fn what_was_noted_names_the_variable_of_a_function_that_has_ended() {
    let links = json!([
        {"by": "cycle", "type": "Trace", "length": 2},
        {"by": "local", "name": "kept", "type": "list", "length": 4, "function": "train",
         "file": "/a/train.py", "line": 42},
        {"by": "global", "name": "KEPT", "type": "list", "length": 12, "module": "m"},
    ]);
    let text = |end, noted| {
        let holders = of_ended(&links, end, noted);
        let [holder] = &holders[..] else { panic!("{holders:?}") };
        (holder.kind, holder.blocks.0, holder.text.clone())
    };
    let noted = "local \"kept\" (list of 4) of train(), train.py:42, after step 4".to_owned();
    assert_eq!(text(None, Some(1)), (HolderKind::Reference, 4, noted.clone()));
    // At the end a cycle of the function that has ended holds them.
    assert_eq!(text(Some(0), Some(1)), (HolderKind::Reference, 4, noted));
    // What holds them at the end says more.
    let global = "global \"KEPT\" (list of 12) of module m".to_owned();
    assert_eq!(text(Some(2), Some(1)), (HolderKind::Reference, 12, global));
}

#[test]
fn the_collector_is_advised_only_where_functions_still_run() {
    let links = json!([{"by": "cycle", "type": "Trace", "length": 2}]);
    let text = |end, noted| of_ended(&links, end, noted)[0].text.clone();
    assert_eq!(
        text(Some(0), None),
        "only a cycle of 2 objects (Trace) holds it at the end; a function that has ended may have \
         held it"
    );
    assert!(text(None, Some(0)).contains("gc.collect() frees it"));
}

#[test]
fn a_failed_allocation_lists_what_is_not_the_model() {
    let file =
        with_beside("recorded/oom_expandable.pickle.gz", "holders/oom_expandable.vramscope.json");
    let found = finding(&file, FindingKind::Oom);
    let texts: Vec<&str> = found.holders.iter().map(|holder| holder.text.as_str()).collect();
    assert_eq!(texts, ["global \"loss\" (Tensor) of p_oom.py"]);
    let sidecar: Value =
        serde_json::from_slice(&data("holders/oom_expandable.vramscope.json")).expect("JSON");
    let freed = sidecar["holders"]["drops"][0]["bytes"].as_u64();
    assert_eq!(found.holders[0].frees_bytes.map(|bytes| bytes.0), freed);
}

#[test]
fn the_rows_of_a_moment_add_up() {
    let file = with_beside(LEAK, "holders/gpt_leak.vramscope.json");
    let at = target(&file);
    let end = at.trace().slots() - 1;
    for slot in [end, vramscope_report::slot_of(at.trace().requested_band.peak_event)] {
        let report = holders_at(at, slot, None);
        let roots = report.rows.iter().filter(|row| row.depth == 0);
        let sum: u64 = roots.clone().map(|row| row.bytes).sum();
        assert_eq!((sum, report.bytes), (at.trace().requested.at(slot), sum));
        let kinds: Vec<&str> = roots.map(|row| row.kind).collect();
        let held = ["reference", "reference", "reference", "below_python"];
        let rest = if slot == end { &["not_listed"][..] } else { &["freed", "not_listed"] };
        assert_eq!(kinds, [&held[..], rest].concat());
    }
    let report = holders_at(at, end, None);
    assert_eq!(report.rows[0].bytes, report.drops[0].bytes);
    assert_eq!(report.rows[0].search.as_deref(), Some("holder:leaked of main()"));
    // Its items are all of it, so that they have no row.
    assert!(report.drops.iter().all(|row| row.depth == 0), "{:?}", report.drops);
}

#[test]
fn hostile_holders_take_little_time() {
    let (mut file, blocks) = live(LEAK);
    // Chains and drops as deep as the limits allow, and long texts.
    let mut links = vec![json!({"by": "local", "name": "x".repeat(1 << 20)})];
    let deep = (0..65_000).map(|from| json!({"by": "attribute", "name": "a", "from": from}));
    links.extend(deep);
    let drops: Vec<Value> = (0..4096)
        .map(|row| {
            let within = (row > 0).then(|| row - 1);
            json!({"within": within, "links": [row], "bytes": u64::MAX, "blocks": u64::MAX})
        })
        .collect();
    let entries: Vec<Value> = blocks
        .iter()
        .map(|(_, address)| {
            json!({"device": 0, "address": address, "link": 65_000, "drop": 4095, "view_bytes": 0})
        })
        .collect();
    set(&mut file, &json!({"complete": true, "links": links, "blocks": entries, "drops": drops}));
    let at = target(&file);
    let report = holders_at(at, at.trace().slots() - 1, None);
    assert!(serde_json::to_string(&report).expect("JSON").len() < 40_000);
    let holder = of_block(at, blocks[0].0).expect("a holder");
    assert!(holder.text.chars().count() < 100 && holder.path.chars().count() < 200);
    for found in of_device(at) {
        let text = serde_json::to_string(&found.record.holders).expect("JSON");
        assert!(text.len() < 2_000, "{text}");
    }
}
