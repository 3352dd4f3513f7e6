//! The call sites of rows: lines of the model on every system and in compiled code, nodes of
//! backward with their forward lines, reasons for missing stacks.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use vramscope_report::diff::stacks;
use vramscope_report::peak::{BandKind, StackRecord, peak};
use vramscope_report::side::Side;
use vramscope_report::{FileReader, LoadedFile, blocks, flame, state};
use vramscope_trace::slicing::now;

fn load(bytes: &[u8]) -> LoadedFile {
    let mut reader = FileReader::new("file", bytes.len() as u64);
    reader.feed(bytes).expect("a snapshot");
    reader.finish().expect("a whole snapshot")
}

fn recording(name: &str) -> LoadedFile {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test_data").join(name);
    load(&std::fs::read(path).expect("a file of test_data"))
}

/// The rows of `peak`.
fn rows(file: &LoadedFile) -> Vec<StackRecord<'_>> {
    let target = file.target(0, 0).expect("device 0");
    peak(target, BandKind::Requested, None).stacks
}

/// Bytes and blocks by the site of a row.
fn by_site(file: &LoadedFile) -> BTreeMap<String, (u64, u32)> {
    let mut sums: BTreeMap<String, (u64, u32)> = BTreeMap::new();
    for row in rows(file) {
        let sum = sums.entry(row.site).or_default();
        *sum = (sum.0 + row.bytes, sum.1 + row.blocks);
    }
    sums
}

const MIB: u64 = 1 << 20;

#[test]
fn a_recording_from_windows_has_the_lines_of_the_model() {
    let file = recording("sites/win_hf_gpt2.pickle.gz");
    let sites = by_site(&file);
    // The bytes of the same recording with other separators.
    for (site, bytes, blocks) in [
        ("modeling_gpt2.py:1084 forward", 823_410_688, 1),
        ("modeling_gpt2.py:689 __init__", 154_389_504, 1),
        ("sdpa_attention.py:54 sdpa_attention_forward", 153_354_240, 24),
    ] {
        assert_eq!(sites.get(site), Some(&(bytes, blocks)), "{site}");
    }
    for row in rows(&file).iter().filter(|row| row.no_stack.is_none()) {
        let own = row.frames.iter().find(|frame| !frame.is_framework()).expect("a user's frame");
        assert!(!own.file.contains(r"site-packages\torch\"), "{}", own.file);
        assert_eq!(row.site, own.label());
    }
}

#[test]
fn compiled_code_has_one_row_for_each_line_of_the_model() {
    let sites = by_site(&recording("sites/c11_inductor.pickle"));
    assert_eq!(
        sites.into_iter().collect::<Vec<_>>(),
        [
            ("model.py:22 forward".to_owned(), (900 * MIB, 30)),
            ("model.py:5 __init__".to_owned(), (240 * MIB, 12)),
        ]
    );
    let file = recording("sites/compile_inductor_forward.pickle.gz");
    let all = rows(&file);
    assert_eq!(all.iter().map(|row| row.bytes).sum::<u64>(), 326_325_772);
    let generated: Vec<_> = all.iter().filter(|row| row.site.ends_with(" call")).collect();
    assert!(generated.is_empty(), "{:?}", generated[0].site);
    let forward = all.iter().filter(|row| row.site.starts_with("gpt.py:")).count();
    assert!(forward > 10, "{forward}");
}

/// An alloc in a trace. Frames are `file:line function`, innermost first.
fn alloc(address: u64, bytes: u64, frames: &[&str]) -> Value {
    let frame = |text: &&str| {
        let (place, name) = text.split_once(' ').expect("a place and a function");
        let (file, line) = place.rsplit_once(':').expect("a file and a line");
        json!({"filename": file, "line": line.parse::<u32>().expect("a line"), "name": name})
    };
    let frames: Vec<Value> = frames.iter().map(frame).collect();
    json!({"action": "alloc", "addr": address, "size": bytes, "frames": frames})
}

fn window(events: &[Value]) -> LoadedFile {
    load(json!({"segments": [], "device_traces": [events]}).to_string().as_bytes())
}

const MAIN: &str = "/train/train.py:9 <module>";
const ENGINE: &str = "libtorch_cpu.so:123456 torch::autograd::Engine::thread_main(int)";
const NODE: &str = "libtorch_cpu.so:42916537 \
                    torch::autograd::generated::LogSoftmaxBackward0::apply(std::vector<int>&&)";
const REDISPATCH: &str = "libtorch_cpu.so:42916537 \
                          at::_ops::_log_softmax_backward_data::redispatch(at::Tensor const&)";
const FORWARD_OPERATOR: &str = "libtorch_cpu.so:9 at::_ops::_log_softmax::call(at::Tensor const&)";

#[test]
fn a_row_of_backward_has_its_node_and_forward_line() {
    let file = window(&[
        alloc(1 << 30, 4 * MIB, &[FORWARD_OPERATOR, "/train/gpt.py:44 forward", MAIN]),
        alloc(2 << 30, 4 * MIB, &["/train/gpt.py:45 forward", MAIN]),
        alloc(3 << 30, 4 * MIB, &[REDISPATCH, NODE, ENGINE]),
        alloc(4 << 30, 3 * MIB, &[]),
        alloc(5 << 30, MIB, &["libtorch_cpu.so:42916537 run(int)"]),
    ]);
    let all = rows(&file);
    let node = all.iter().find(|row| row.site.starts_with("LogSoftmax")).expect("a row");
    assert_eq!(node.site, "LogSoftmaxBackward0 (backward of gpt.py:44 forward)");
    assert_eq!(
        serde_json::to_value(&node.backward).expect("it serializes"),
        json!([{"node": "LogSoftmaxBackward0", "forward": "gpt.py:44 forward",
            "basis": "equal_bytes", "bytes": 4 * MIB, "blocks": 1}])
    );
    // An offset in a library is no line, and a size that only resembles another is a guess.
    assert!(all.iter().any(|row| row.site == "libtorch_cpu.so run"));
    let unknown = all.iter().find(|row| row.no_stack.is_some()).expect("a row");
    assert_eq!(unknown.site, "(backward, no Python frames)");
    let target = file.target(0, 0).expect("device 0");
    let listed = serde_json::to_value(blocks::blocks(target, blocks::BlockSort::Size, None));
    let listed = listed.expect("it serializes");
    let by_bytes = |bytes: u64, site: &str| {
        let blocks = listed["blocks"].as_array().expect("a list");
        let block = blocks.iter().find(|b| b["bytes"] == bytes && b["site"] == site);
        let block = block.unwrap_or_else(|| panic!("no block at {site}"));
        block["backward"].as_u64().map_or(Value::Null, |at| listed["backward"][at as usize].clone())
    };
    assert_eq!(by_bytes(4 * MIB, "LogSoftmaxBackward0")["basis"], "equal_bytes");
    assert_eq!(by_bytes(3 * MIB, "(backward, no Python frames)")["basis"], "nearest_size");
    assert_eq!(by_bytes(4 * MIB, "gpt.py:44 forward"), Value::Null);
}

#[test]
fn missing_stacks_have_a_row_for_each_reason() {
    let before = recording("recorded/gpt_late.pickle.gz");
    let sites = by_site(&before);
    let start = before.target(0, 0).expect("device 0").trace().requested_band.start;
    // None of those blocks is freed before the peak.
    assert_eq!(sites["(before recording)"], (start as u64, 236));
    assert!(sites.contains_key("(backward, no Python frames)"));
    assert!(!sites.contains_key("(no call stack)"));
    // The flame graph has a node for each.
    let target = before.target(0, 0).expect("device 0");
    let slot = vramscope_report::slot_of(target.trace().requested_band.peak_event);
    let tree = flame::flame(target, flame::Weight::Bytes(slot));
    for (site, &(bytes, _)) in sites.iter().filter(|(site, _)| site.starts_with('(')) {
        let node = tree.nodes.iter().find(|node| node.name == *site).expect("a node");
        assert_eq!(node.total, u128::from(bytes), "{site}");
    }
    // Without any stack in the window, nothing is known.
    let none = window(&[alloc(1 << 30, MIB, &[]), alloc(2 << 30, MIB, &[])]);
    assert_eq!(by_site(&none), BTreeMap::from([("(no call stack)".to_owned(), (2 * MIB, 2))]));
}

#[test]
fn diff_compares_eager_with_compiled_code_by_line() {
    let eager = window(&[
        alloc(
            1 << 30,
            4 * MIB,
            &[
                "/venv/site-packages/torch/nn/functional.py:1 gelu",
                "/train/model.py:22 forward",
                "/train/model.py:98 forward",
                MAIN,
            ],
        ),
        alloc(
            2 << 30,
            2 * MIB,
            &[
                "/venv/site-packages/torch/nn/modules/linear.py:2 forward",
                "/train/model.py:22 forward",
                "/train/model.py:98 forward",
                MAIN,
            ],
        ),
        alloc(3 << 30, MIB, &["/train/data.py:3 load", MAIN]),
    ]);
    let call = |line: u32| format!("/tmp/torchinductor_user/ab/cab.py:{line} call");
    let wrapper = "/venv/site-packages/torch/_inductor/utils.py:3 run";
    let compiled = window(&[
        alloc(1 << 30, 3 * MIB, &[&call(1), "/train/model.py:22 forward", wrapper, MAIN]),
        alloc(2 << 30, 2 * MIB, &[&call(2), "/train/model.py:22 forward", wrapper, MAIN]),
        alloc(3 << 30, MIB, &["/train/data.py:3 load", MAIN]),
    ]);
    let side = |file: &LoadedFile| {
        now(async |budget| {
            Side::new(file.target(0, 0).expect("device 0"), BandKind::Requested, budget).await
        })
    };
    let found: Vec<(String, i64, i64, i64)> = stacks(&side(&eager), &side(&compiled))
        .into_iter()
        .map(|s| (s.site, s.bytes.a.0, s.bytes.b.0, s.blocks.b.0))
        .collect();
    let mib = MIB as i64;
    assert_eq!(
        found,
        [
            ("model.py:22 forward".to_owned(), 6 * mib, 5 * mib, 2),
            ("data.py:3 load".to_owned(), mib, mib, 1),
        ]
    );
}

#[test]
fn blocks_and_state_have_the_texts_of_the_program() {
    let texts = |name: &str| {
        let file = recording(name);
        let target = file.target(0, 0).expect("device 0");
        let blocks = serde_json::to_value(blocks::blocks(target, blocks::BlockSort::Size, None));
        let state = serde_json::to_value(state::state(target, target.trace().slots() - 1, None));
        let [blocks, state] = [blocks, state].map(|report| {
            let report = report.expect("it serializes");
            let list = report["blocks"].as_array().expect("a list").clone();
            list.into_iter()
                .map(|b| json!([b["bytes"], b["user_metadata"], b["annotations"]]))
                .collect::<Vec<_>>()
        });
        (blocks, state)
    };
    let (blocks, state) = texts("edge/annotate.pickle");
    let weights = json!([1000, null, ["weights", "{\"layer\":3}"]]);
    // The block at the other address was free when a text came for it.
    assert_eq!(blocks, [weights.clone(), json!([500, null, null])]);
    assert_eq!(state, [weights]);
    let (blocks, state) = texts("edge/metadata.pickle");
    let plain = json!([1000, "a plain text", null]);
    let step = json!([500, "{\"step\":3,\"phase\":\"forward\"}", null]);
    assert_eq!(blocks, [plain.clone(), step, json!([20, null, null])]);
    assert_eq!(state, [plain]);
}
