//! Tests of the sites of stacks.

use super::*;
use vramscope_snapshot::Reader;

/// A frame, written as `file:line function`.
fn frame(text: &str) -> serde_json::Value {
    let (place, name) = text.split_once(' ').expect("a place and a function");
    let (file, line) = place.rsplit_once(':').expect("a file and a line");
    let line: u32 = line.parse().expect("a line");
    serde_json::json!({"filename": file, "line": line, "name": name})
}

/// A snapshot with one alloc for each stack, and the stacks.
fn snapshot(stacks: &[&[&str]]) -> (Snapshot, Vec<StackId>) {
    let events = stacks.iter().zip(1u64..).map(|(stack, n)| {
        let frames: Vec<_> = stack.iter().map(|text| frame(text)).collect();
        serde_json::json!({"action": "alloc", "addr": 4096 * n, "size": 512, "frames": frames})
    });
    let trace: Vec<_> = events.collect();
    let json = serde_json::json!({"segments": [], "device_traces": [trace]}).to_string();
    let mut reader = Reader::default();
    reader.feed(json.as_bytes()).expect("JSON of a snapshot");
    let snapshot = reader.finish().expect("a whole snapshot").remove(0).snapshot;
    let ids = (0..stacks.len() as u32).map(|row| snapshot.events.stack(row)).collect();
    (snapshot, ids)
}

/// The function of the site of a stack.
fn site(stack: &[&str]) -> String {
    let (snapshot, ids) = snapshot(&[stack]);
    let site = Sites::new(&snapshot).get(ids[0]);
    let frame = site.frame.expect("a frame");
    assert_eq!(site.site_hash, Sites::hash_of(&snapshot, frame));
    snapshot.text(frame.name).into_owned()
}

const LINEAR: &str = "/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py:125 linear";
const MODEL: &str = "/train/model.py:22 forward";
const MAIN: &str = "/train/train.py:40 main";
const CALL_1: &str = "/tmp/torchinductor_user/ab/cab.py:400 call";
const CALL_2: &str = "/tmp/torchinductor_user/ab/cab.py:410 call";
const NODE: &str = "??:0 torch::autograd::generated::BmmBackward0::apply(std::vector<int>&&)";
const OPERATOR: &str = "??:0 at::_ops::bmm::redispatch(c10::DispatchKeySet)";
const EMPTY: &str = "??:0 at::_ops::empty_strided::call()";
const COMPILED: &str = "libtorch_cpu.so:42916537 std::function::operator()";

#[test]
fn the_site_is_the_innermost_frame_of_the_best_kind() {
    assert_eq!(site(&[OPERATOR, LINEAR, MODEL, MAIN]), "forward");
    assert_eq!(site(&[CALL_1, MODEL, MAIN]), "forward");
    assert_eq!(site(&[CALL_1, LINEAR]), "call");
    assert_eq!(site(&[OPERATOR, LINEAR]), "linear");
    let node = "torch::autograd::generated::BmmBackward0::apply(std::vector<int>&&)";
    assert_eq!(site(&[COMPILED, OPERATOR, NODE, COMPILED]), node);
    assert_eq!(site(&[EMPTY, OPERATOR]), "at::_ops::bmm::redispatch(c10::DispatchKeySet)");
    assert_eq!(site(&[EMPTY, COMPILED]), "at::_ops::empty_strided::call()");
    assert_eq!(site(&[COMPILED]), "std::function::operator()");
}

#[test]
fn a_wrapper_is_the_site_only_without_another_user_frame() {
    let wrapper = "/venv/lib/python3.11/site-packages/transformers/utils/generic.py:9 wrapper";
    assert_eq!(site(&[LINEAR, wrapper, MODEL]), "forward");
    assert_eq!(site(&[LINEAR, wrapper]), "wrapper");
    assert_eq!(site(&[LINEAR, "/train/timing.py:3 wrapper", MODEL]), "wrapper");
}

/// A package without modules is a helper. One with modules is a helper in a module's forward; its
/// trainer or model is not.
#[test]
fn the_site_is_the_line_that_calls_a_helper() {
    let package = "/venv/lib/python3.11/site-packages";
    let einops = [
        &format!("{package}/einops/_backends.py:288 einsum")[..],
        &format!("{package}/einops/einops.py:909 einsum")[..],
    ];
    let call = &format!("{package}/torch/nn/modules/module.py:1786 _call_impl")[..];
    assert_eq!(site(&[LINEAR, einops[0], einops[1], MODEL, call, MAIN]), "forward");
    assert_eq!(site(&[LINEAR, einops[0], einops[1], MAIN]), "main", "also outside of modules");
    let deep = [LINEAR, einops[0], einops[1], einops[0], einops[1], einops[0], MODEL, call, MAIN];
    assert_eq!(site(&deep), "forward", "however many frames it has");
    assert_eq!(site(&[LINEAR, einops[0], einops[1]]), "einsum", "nothing of the program");
    let printer = &format!("{package}/icecream/icecream.py:142 argumentToString")[..];
    assert_eq!(site(&[LINEAR, printer, MAIN]), "main");
    let trainer = &format!("{package}/transformers/trainer.py:98 concatenate")[..];
    let (snapshot, ids) = snapshot(&[&[LINEAR, trainer, MAIN], &[LINEAR, call, trainer, MAIN]]);
    let site_of = |id| Sites::new(&snapshot).get(id).frame.expect("a frame");
    let name = |id| snapshot.text(site_of(id).name).into_owned();
    assert_eq!(name(ids[0]), "concatenate", "a package that runs modules elsewhere");
    // With C++ stacks, frames of the interpreter lie between those of Python.
    let eval = "/tmp/Python-3.11.7/Python/ceval.c:4769 _PyEval_EvalFrameDefault";
    let model = &format!("{package}/transformers/models/qwen.py:50 forward_layer")[..];
    assert_eq!(site(&[LINEAR, eval, call, eval, model, eval, MAIN]), "forward_layer");
    assert_eq!(site(&[LINEAR, eval, einops[0], eval, MODEL, eval, call, eval, MAIN]), "forward");
    let optimizer = &format!("{package}/bitsandbytes/optim.py:270 step")[..];
    assert_eq!(site(&[LINEAR, optimizer, trainer, MAIN]), "main", "neither runs modules");
    let layer = &format!("{package}/transformers/models/qwen.py:50 forward_layer")[..];
    assert_eq!(site(&[LINEAR, layer, call, MODEL, call, MAIN]), "forward_layer");
}

#[test]
fn the_site_is_no_frame_that_every_stack_has() {
    let unwind = "??:0 torch::unwind::unwind()";
    let start = "??:0 _start";
    assert_eq!(site(&[unwind, COMPILED, start]), "std::function::operator()");
    assert_eq!(site(&[unwind, LINEAR, MODEL, start]), "forward");
    let (snapshot, ids) = snapshot(&[&[unwind, start]]);
    assert_eq!(Sites::new(&snapshot).get(ids[0]).frame, None);
}

#[test]
fn the_site_is_outside_of_what_intercepts_operations() {
    let ops = "/venv/lib/python3.11/site-packages/torch/_ops.py:841 __call__";
    let logger = "/venv/lib/python3.11/site-packages/torch_snapkit/snapshot.py:211 \
                  __torch_dispatch__";
    assert_eq!(site(&[EMPTY, ops, logger, LINEAR, MODEL, MAIN]), "forward");
    assert_eq!(site(&[EMPTY, ops, logger, LINEAR]), "linear");
    let node = "torch::autograd::generated::BmmBackward0::apply(std::vector<int>&&)";
    assert_eq!(site(&[EMPTY, ops, logger, COMPILED, NODE]), node);
    assert_eq!(site(&[EMPTY, ops, logger]), "__call__");
    // The program's own function inside says more than the line that calls the operation.
    let inner = "/train/quantized.py:7 dequantize";
    let own = "/train/quantized.py:30 __torch_dispatch__";
    assert_eq!(site(&[EMPTY, ops, inner, own, LINEAR, MODEL]), "dequantize");
    assert_eq!(site(&[EMPTY, ops, own, LINEAR, MODEL]), "forward");
}

#[test]
fn windows_paths_have_the_sites_of_other_paths() {
    let windows: Vec<String> = [LINEAR, MODEL, MAIN]
        .iter()
        .map(|frame| format!("D:{}", frame.replace('/', r"\")))
        .collect();
    let windows: Vec<&str> = windows.iter().map(String::as_str).collect();
    assert_eq!(site(&windows), site(&[LINEAR, MODEL, MAIN]));
}

#[test]
fn same_line_joins_stacks_that_differ_in_generated_code() {
    let other = "/train/model.py:23 forward";
    let (snapshot, ids) = snapshot(&[
        &[CALL_1, MODEL, MAIN],
        &[CALL_2, MODEL, MAIN],
        &[CALL_2, other, MAIN],
        &[CALL_1, LINEAR],
        &[CALL_2, LINEAR],
        &[MODEL, MAIN],
    ]);
    let sites = Sites::new(&snapshot);
    let same: Vec<StackId> = ids.iter().map(|&id| sites.same_line(id)).collect();
    // Without a model's line, the line of the generated code is all that is known.
    assert_eq!(same, [ids[0], ids[0], ids[2], ids[3], ids[4], ids[5]]);
}
