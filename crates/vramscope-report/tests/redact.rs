//! A redacted snapshot has the numbers of the original and none of its names.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use vramscope_inference::own_name;
use vramscope_report::diagnose::{Listing, MAX_FINDINGS, at_peak, diagnose};
use vramscope_report::findings::of_device;
use vramscope_report::lines::HoldingLine;
use vramscope_report::phases::phases;
use vramscope_report::redact::Redaction;
use vramscope_report::{FileReader, LoadedFile, SnapshotEntry, Target, sidecar};
use vramscope_snapshot::{Texts as _, write_pickle};
use vramscope_trace::is_framework_file;
use vramscope_trace::slicing::now;

fn test_data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test_data").join(name)
}

fn read(bytes: &[u8]) -> LoadedFile {
    let mut reader = FileReader::new("rank0.pickle", bytes.len() as u64);
    reader.feed(bytes).expect("a snapshot");
    reader.finish().expect("a snapshot")
}

fn read_file(path: &Path) -> LoadedFile {
    let mut file = read(&std::fs::read(path).expect("a file"));
    let beside = sidecar::path_of(&path.to_string_lossy()).expect("a snapshot's name");
    if let Ok(json) = std::fs::read(beside) {
        file.entries[0].set_sidecar(&json);
    }
    file
}

/// The file, written with hashes in place of names, and the bytes of what was written.
fn redacted(entry: &SnapshotEntry) -> (LoadedFile, Vec<u8>) {
    let redaction = Redaction::new(b"a salt of the test");
    let mut pickle = Vec::new();
    write_pickle(&entry.snapshot, &redaction, &mut |piece| pickle.extend_from_slice(piece));
    let mut file = read(&pickle);
    if let Some(sidecar) = entry.sidecar() {
        let json = serde_json::to_vec(&redaction.sidecar(sidecar)).expect("JSON");
        file.entries[0].set_sidecar(&json);
        pickle.extend(json);
    }
    (file, pickle)
}

/// What a file says in numbers.
fn numbers(entry: &SnapshotEntry) -> Vec<String> {
    let mut out = Vec::new();
    for index in 0..entry.traces.len() {
        let target = Target { path: &entry.path, entry, index };
        for finding in of_device(target).into_iter().map(|entry| entry.record) {
            out.push(format!(
                "{} {:?} {} {:?} {:?} blocks {} {:?} {:?}",
                finding.kind.name(),
                finding.severity,
                finding.bytes,
                finding.step,
                finding.phase,
                finding.blocks.0,
                finding.events,
                finding.children.iter().map(|child| child.bytes).collect::<Vec<_>>(),
            ));
        }
        let steps =
            serde_json::to_string(&now(async |budget| phases(target, None, budget).await).steps)
                .expect("JSON");
        // A phase has the site of its peak.
        let sites = steps.split("\"site\":").map(|part| part.split_once('}').map_or(part, |p| p.1));
        out.push(sites.collect());
        for (index, block) in (0..).zip(&target.trace().blocks) {
            let category = entry.categories(target.index).get(index).category;
            out.push(format!("{} {} {}", block.address.0, block.bytes.0, category.name()));
        }
        let one = diagnose(vec![at_peak(target)], Listing::Main(MAX_FINDINGS), 0);
        let lines = |lines: &[HoldingLine]| -> Vec<_> {
            lines.iter().map(|of| (of.bytes, of.percent, of.category, of.before_bytes)).collect()
        };
        let memory = one.memory.map(|of| (of.event, of.reserved, of.parts, lines(&of.lines)));
        out.push(format!("{memory:?}"));
        out.push(format!("{:?}", one.peak.map(|of| (of.categories, lines(&of.lines)))));
        out.extend(one.blind_spots.iter().map(|spot| spot.kind.to_owned()));
    }
    out
}

fn snapshots(folder: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(test_data(folder)).expect("a folder");
    let paths = entries.map(|entry| entry.expect("it can be listed").path());
    let is_snapshot =
        |path: &PathBuf| path.is_file() && sidecar::path_of(&path.to_string_lossy()).is_some();
    let mut paths: Vec<PathBuf> = paths.filter(is_snapshot).collect();
    paths.sort();
    paths
}

#[test]
fn redaction_changes_no_number() {
    let mut paths = vec![test_data("beside/oom_1/rank3_memory_snapshot.pickle")];
    for folder in ["recorded", "recorded/misc", "recorded/t26", "findings", "truth", "profiled"] {
        paths.extend(snapshots(folder));
    }
    assert!(paths.len() > 20, "{paths:?}");
    for path in paths {
        let file = read_file(&path);
        let (again, _) = redacted(&file.entries[0]);
        let (before, after) = (numbers(&file.entries[0]), numbers(&again.entries[0]));
        for (before, after) in before.iter().zip(&after) {
            assert_eq!(before, after, "{}", path.display());
        }
        assert_eq!(before.len(), after.len(), "{}", path.display());
    }
}

#[test]
fn no_name_of_the_program_stays() {
    let path = test_data("beside/oom_1/rank3_memory_snapshot.pickle");
    let file = read_file(&path);
    let entry = &file.entries[0];
    let (_, bytes) = redacted(entry);
    let text = String::from_utf8_lossy(&bytes);
    let snapshot = &entry.snapshot;
    let mut private = BTreeSet::from(["node7".to_owned(), "loss = model(".to_owned()]);
    for device in &snapshot.devices {
        for row in device.events.clone() {
            for frame in snapshot.stack(snapshot.events.stack(row)) {
                let file = snapshot.text(frame.file).into_owned();
                if file.contains(".py") && !file.contains("/torch/") && !file.contains("/lib/") {
                    private.insert(file);
                }
            }
        }
    }
    assert!(private.len() > 2, "{private:?}");
    for name in private {
        assert!(!text.contains(&name), "{name}");
    }
    // Equal names stay equal, and another salt gives other hashes.
    let [one, other] = [b"one".as_slice(), b"other"].map(Redaction::new);
    assert_eq!(one.hash("train"), one.hash("train"));
    assert_ne!(one.hash("train"), other.hash("train"));
    assert_ne!(one.hash("train"), one.hash("test"));
}

#[test]
fn words_of_rules_stay_where_rules_look_for_them() {
    let redaction = Redaction::new(b"a salt of the test");
    let redacted = |function: &str| redaction.frame(function, "/srv/libmine.so").0;
    for (function, in_own_name) in [
        ("std::vector<my::Secret> c10d::gather<my::Secret>(my::Secret)", true),
        ("at::run(std::vector<my::Secret>)::{lambda#1}::c10d::gather(my::Secret)", true),
        ("my::Secret::gather<c10d::Work>(c10d::Work)", false),
        ("at::gather<my::Secret, c10d::Work>(my::Secret, c10d::Work)", false),
    ] {
        let name = redacted(function);
        assert!(!name.contains("Secret"), "{function}: {name}");
        assert_eq!(own_name(&name).contains("c10d::"), in_own_name, "{function}: {name}");
    }
}

/// A word that no public name has.
const CANARY: &str = "CANARY";

/// A recording with the canary in every text that a file can carry.
fn canaries() -> (String, String) {
    let functions = [
        "CANARY",
        "PyCANARY",
        "_PyCANARY_Call",
        "PyramidNetCANARY",
        "THPCANARY",
        "THPVariable_CANARY",
        "at::CANARY",
        "at::native::CANARY(at::Tensor const&)",
        "std::CANARY",
        "torch::CANARY",
        "c10::CANARY<int>",
        "c10d::CANARY::run",
        "void at::CANARY<CANARY>(CANARY)",
        "__CANARY__",
        "<resume in CANARY>",
        "<resume in <resume in CANARY>>",
        "<CANARY>",
        "torch_dynamo_resume_in_CANARY_at_7",
        "forwardCANARY",
        "forward.CANARY",
        "zero_gradCANARY",
        "CANARY::operator()(int)::{lambda(CANARY)#1}",
    ];
    let files = [
        "/srv/CANARY.py",
        "??",
        "",
        "<CANARY>",
        "<ipython-input-CANARY>",
        "/opt/libcustom_CANARY.so",
        "/opt/libtorch_CANARY.so",
        "/opt/libcudaCANARY.so.1",
        "/opt/libc10.so.CANARY",
        "/opt/libnvCANARY.so",
        "/opt/libcudart-CANARY.so.11.0",
        "/opt/libc10.so",
        "<frozen CANARY>",
        "<frozen runpy>CANARY",
        "<frozen runpy> CANARY>",
        "<string>CANARY",
        "<ipython-input-1-CANARY>",
        "/x/site-packages/torch/CANARY.py",
        "/x/site-packages/torch/CANARY/nn/functional.py",
        "/x/site-packages/torch/nn/modules/modeling_CANARY.py",
        "/x/site-packages/transformers/trainer.py/CANARY",
        "/x/dist-packages/torch.CANARY/x.py",
        "/x/site-packages/torch/nn/functional.py",
        "/usr/lib/python3.11/threading.py",
        "/usr/lib/pythonCANARY/threading.py",
        "C:\\Python311\\Lib\\threading.py",
        "/tmp/torchinductor_u/ab/CANARYabcdefghijklmnopqrstuvwxyzabcdefghij.py",
        "/home/u/lib/python/CANARY/x.py",
        "/usr/lib/python3.11/CANARY.py",
        "C:\\CANARY\\Lib\\CANARY.py",
        "/home/u/torch/utils/CANARY/x.py",
        "/tmp/torchinductor_CANARY/ab/CANARY.py",
        "/x/site-packages/CANARY/utils/module.py",
        "/data/checkpoint.CANARY",
        "/CANARY/checkpoint.py",
    ];
    let mut events = Vec::new();
    for (at, (function, file)) in
        functions.iter().flat_map(|name| files.iter().map(move |file| (name, file))).enumerate()
    {
        events.push(serde_json::json!({
            "action": "alloc", "addr": 512 * at, "size": 512, "stream": 0, "time_us": at,
            "frames": [{"name": function, "filename": file, "line": 3}],
            "compile_context": "CANARY", "user_metadata": "Torch-Compiled Region: CANARY",
            "internal_metadata": "CANARY", "category": "CANARY",
        }));
    }
    // A function in a file of PyTorch is PyTorch's.
    for file in
        ["/CANARY/site-packages/torch/nn/functional.py", "/CANARY/torch/nn/modules/linear.py"]
    {
        events.push(serde_json::json!({
            "action": "alloc", "addr": 1 << 30, "size": 512, "stream": 0,
            "frames": [{"name": "forward", "filename": file, "line": 3}],
        }));
    }
    events.push(serde_json::json!({
        "action": "CANARY", "addr": 0, "size": 1, "stream": 0, "frames": [],
    }));
    let ranges = ["CANARY", "ProfilerStep#CANARY", "Optimizer.step#CANARY.step", "forwardCANARY"];
    let marks: Vec<_> = ranges
        .iter()
        .map(|name| serde_json::json!({"name": name, "stage": "START", "device": 0, "time_us": 1}))
        .collect();
    let snapshot = serde_json::json!({
        "segments": [{
            "device": 0, "address": 0, "total_size": 2_097_152, "stream": 0,
            "segment_type": "CANARY", "blocks": [{"size": 2_097_152, "state": "CANARY"}],
        }],
        "device_traces": [events],
        "external_annotations": marks,
        "allocator_settings": {
            "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True,CANARY:1",
            "CANARY": "x", "max_split_size": {"CANARY": 1}, "list": [{"k": "CANARY"}, ["CANARY"]],
            "last_allocator_settings": "CANARY", "CANARY.expandable_segments": true,
        },
        "CANARYroot": {"CANARY": ["CANARY"]},
    });
    let sidecar = serde_json::json!({
        "version": 1, "reason": "CANARY", "host": "CANARY", "torch": "2.9.1+CANARY",
        "backend": "CANARY", "uses": {"names": ["aten.CANARY", "aten.add CANARY"]},
        "cuda": "CANARY", "driver": "12.CANARY", "alloc_conf": "backend:CANARY",
        "devices": [{
            "device": 0, "name": "NVIDIA CANARY", "total_bytes": 1, "free_bytes": 1,
            "reserved_bytes": 1, "other_bytes": 1,
        }],
        "tensors": [{"time_us": 3, "tensors": [{
            "kind": "CANARY", "name": "layers.0.CANARY.weight", "device": 0, "address": 512,
            "shape": [4], "dtype": "floatCANARY",
        }]}],
        "sources": {"/srv/CANARY.py": {"3": "CANARY"}},
        "holders": {
            "links": [
                {
                    "by": "local", "name": "CANARYvar", "type": "CANARYtype", "length": 2,
                    "function": "CANARYfn", "file": "/srv/CANARY.py", "line": 3,
                    "thread": "CANARY-1",
                },
                {"by": "global", "name": "CANARY", "type": "list", "module": "torch.CANARY"},
                {"from": 0, "by": "attribute", "name": "CANARY.weight", "type": "torch.Tensor"},
                {"from": 2, "by": "graph", "type": "CANARYBackward0", "between": 2},
                {"from": 3, "by": "saved", "name": "otherCANARY"},
                {"from": 1, "by": "item", "name": "7CANARY"},
                {"from": 5, "by": "key", "name": "user CANARY"},
                {"from": 6, "by": "closure", "name": "weightCANARY", "function": "CANARY"},
                {"from": 7, "by": "CANARY", "name": "CANARY"},
            ],
            "blocks": [{"device": 0, "address": 512, "link": 4, "drop": 0}],
            "drops": [{"links": [0], "bytes": 1, "blocks": 1}],
        },
    });
    (snapshot.to_string(), sidecar.to_string())
}

#[test]
fn no_text_of_a_file_passes() {
    let (snapshot, sidecar) = canaries();
    let mut file = read(snapshot.as_bytes());
    file.entries[0].set_sidecar(sidecar.as_bytes());
    assert_eq!(file.entries[0].sidecar_fault(), None);
    let (_, bytes) = redacted(&file.entries[0]);
    let text = String::from_utf8_lossy(&bytes);
    let left: Vec<&str> =
        text.split(|c: char| c.is_control()).filter(|word| word.contains(CANARY)).collect();
    assert_eq!(left, Vec::<&str>::new());
    // What PyTorch names stays.
    for name in [
        "expandable_segments",
        "site-packages/torch/nn/functional.py",
        "at::native::",
        "\"type\":\"torch.Tensor\"",
        "\"type\":\"list\"",
        ".weight\"",
    ] {
        assert!(text.contains(name), "{name}");
    }
}

/// Files count as they did, and public names stay.
#[test]
fn files_of_packages_keep_their_place() {
    let redaction = Redaction::new(b"salt");
    for (file, expected) in [
        (
            "/home/u/venv/lib/python3.11/site-packages/torch/nn/functional.py",
            Some("/site-packages/torch/nn/functional.py"),
        ),
        (
            "/v/site-packages/torch/distributed/fsdp/_fully_shard/_fsdp_param.py",
            Some("/site-packages/torch/distributed/fsdp/_fully_shard/_fsdp_param.py"),
        ),
        (
            "/v/site-packages/transformers/models/llama/modeling_llama.py",
            Some("/site-packages/transformers/models/llama/modeling_llama.py"),
        ),
        ("/v/site-packages/torch/secret.py", None),
        ("/usr/lib/python3.11/threading.py", Some("/lib/python3.11/threading.py")),
        (r"C:\Python311\Lib\threading.py", Some("C:/conda/Lib/threading.py")),
        (r"C:\Python311\Lib\secret.py", None),
        ("/home/u/torch/nn/secret.py", None),
        ("/tmp/torchinductor_u/ab/secret.py", None),
        ("/tmp/secret/cab.py", None),
        ("<frozen importlib._bootstrap>", Some("<frozen importlib._bootstrap>")),
        ("<frozen secret>", None),
        ("<string>", Some("<string>")),
        ("/opt/libtorch_cpu.so", Some("libtorch_cpu.so")),
    ] {
        let (_, redacted) = redaction.frame("f", file);
        assert_eq!(is_framework_file(&redacted), is_framework_file(file), "{file}: {redacted}");
        assert!(!redacted.contains("secret"), "{redacted}");
        assert!(expected.is_none_or(|expected| redacted == expected), "{file}: {redacted}");
    }
    let torch = "/v/site-packages/torch/nn/functional.py";
    for (function, is_public) in
        [("linear", true), ("_fsdp_pre_forward", false), ("secret_linear", false)]
    {
        assert_eq!(redaction.frame(function, torch).0 == function, is_public, "{function}");
    }
}

#[test]
fn holders_keep_their_structure_and_lose_their_names() {
    let (path, beside) = ("recorded/gpt_leak.pickle.gz", "holders/gpt_leak.vramscope.json");
    let mut file = read_file(&test_data(path));
    file.entries[0].set_sidecar(&std::fs::read(test_data(beside)).expect("a file"));
    let redaction = Redaction::new(b"salt");
    let sidecar = file.entries[0].sidecar().expect("a sidecar");
    let before = sidecar.holders.clone().expect("holders");
    let after = redaction.sidecar(sidecar).holders.expect("holders");
    assert_eq!(after.links.len(), before.links.len());
    for (before, after) in before.links.iter().zip(&after.links) {
        assert_eq!((before.from, before.by, before.line), (after.from, after.by, after.line));
        assert_eq!((before.length, before.between), (after.length, after.between));
        let is_index = before.by == vramscope_report::sidecar::holders::By::Item;
        assert_eq!(before.name == after.name, is_index || is_state(before.name.as_deref()));
    }
    let text = serde_json::to_string(&after).expect("JSON");
    for private in ["leaked", "\"net\"", "\"opt\"", "p_gpt", "GPT", "parameter 0", "weight0"] {
        assert!(!text.contains(private), "{private}");
    }
}

/// Whether a name is one of an optimizer's state.
fn is_state(name: Option<&str>) -> bool {
    matches!(name, Some("state" | "exp_avg" | "exp_avg_sq" | "layers"))
}
