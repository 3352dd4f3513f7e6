//! Runs `vramscope what-if`.

use crate::common::{test_data, vramscope};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

const RAN_OUT: &str = "what_if/varlen_tight_default.pickle.gz";
/// What PyTorch could have in [`RAN_OUT`]: 500 MiB of the device belong to the context.
const LIMIT: u64 = (2297 - 500) << 20;

fn text(arguments: &[&str], paths: &[&str]) -> String {
    let all = [&["what-if"], arguments].concat();
    let output = vramscope(&all, paths);
    assert!(output.status.success(), "{paths:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn json(arguments: &[&str], paths: &[&str]) -> Value {
    let all = [arguments, &["--format", "json"]].concat();
    serde_json::from_str(&text(&all, paths)).expect("JSON")
}

fn list(value: &Value) -> &Vec<Value> {
    value.as_array().expect("a list")
}

/// A temporary folder, removed on drop.
struct Folder(PathBuf);

impl Folder {
    /// A folder with copies of files in `test_data`, by their new names.
    fn of(name: &str, files: &[(&str, &str)]) -> Self {
        let path =
            std::env::temp_dir().join(format!("vramscope-what-if-{name}-{}", std::process::id()));
        // A folder of an earlier process with this number may be left.
        drop(fs::remove_dir_all(&path));
        for (to, from) in files {
            let to = path.join(to);
            fs::create_dir_all(to.parent().expect("a folder")).expect("a temporary folder");
            fs::copy(test_data(from), to).expect("a copy");
        }
        Self(path)
    }

    fn text(&self) -> &str {
        self.0.to_str().expect("a path")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

#[test]
fn a_rank_without_a_limit_takes_that_of_its_run() {
    let small = "recorded/t29/pools.pickle";
    let folder = Folder::of(
        "limit",
        &[
            ("a/rank0_memory.pickle.gz", RAN_OUT),
            ("a/rank1_memory.pickle", small),
            // This rank reserved more than the limit of the other.
            ("a/rank2_memory.pickle.gz", "what_if/varlen_roomy_default.pickle.gz"),
            ("b/rank1_memory.pickle", small),
        ],
    );
    let run = json(&["--set", "expandable_segments:True"], &[folder.text()]);
    assert_eq!(run["schema"], "vramscope.what-if-run/1");
    let capacity: Vec<(&Value, &Value, &Value)> = (list(&run["reports"]).iter())
        .map(|report| &report["calibration"]["capacity"])
        .map(|capacity| (&capacity["basis"], &capacity["bytes"], &capacity["rank"]))
        .collect();
    let expected = [
        (json!("exact"), json!(LIMIT), Value::Null),
        (json!("other_rank"), json!(LIMIT), json!(0)),
        (json!("unknown"), Value::Null, Value::Null),
        (json!("unknown"), Value::Null, Value::Null),
    ];
    assert_eq!(capacity, expected.each_ref().map(|(a, b, c)| (a, b, c)));
    let scenario = &run["reports"][1]["scenarios"][0];
    assert_eq!((&scenario["pytorch_memory"], &scenario["fits"]), (&json!(LIMIT), &json!(true)));
    let text = text(&[], &[folder.text()]);
    assert!(text.contains("Rank 0 of the run ran out of memory where PyTorch could have 1.75 GiB"));
}

#[test]
fn the_report_of_a_file_is_that_in_a_run() {
    let alone = json(&[], &[RAN_OUT]);
    let run = json(&[], &[RAN_OUT, "what_if/multiscale_roomy_default.pickle.gz"]);
    assert_eq!(list(&run["reports"]).len(), 2);
    assert_eq!(run["reports"][0], alone);
}

#[test]
fn a_recording_that_began_late_is_an_estimate_under_other_settings() {
    let report = json(&[], &["recorded/gpt_late.pickle.gz"]);
    let basis: Vec<(&Value, &Value)> = (list(&report["scenarios"]).iter())
        .map(|scenario| (&scenario["change"], &scenario["basis"]))
        .collect();
    assert!(basis.len() > 2);
    for (change, basis) in basis {
        let expected = if change == "as recorded" { "simulated" } else { "estimate" };
        assert_eq!(basis, expected, "{change}");
    }
    let text = text(&[], &["recorded/gpt_late.pickle.gz"]);
    assert!(text.contains("expandable_segments:True would reserve about 2.18 GiB."), "{text}");
}

/// The report about a program of one block whose later requests of 900 MiB fail, with these bytes
/// free on the device.
fn failures(name: &str, free: &[Option<u64>]) -> (Value, String) {
    const MIB: u64 = 1 << 20;
    let event = |action: &str, size: u64| {
        let mut event = json!({"action": action, "addr": 4096, "size": size, "stream": 0});
        event["frames"] = json!([]);
        event
    };
    let block = |address: u64, size: u64, state: &str| {
        json!({"address": address, "size": size, "requested_size": size, "state": state,
            "frames": []})
    };
    let mut events = vec![event("segment_alloc", 20 * MIB), event("alloc", 2 * MIB)];
    events.extend(free.iter().map(|free| {
        let mut oom = json!({"action": "oom", "size": 900 * MIB, "stream": 0, "frames": []});
        if let Some(free) = free {
            oom["device_free"] = json!(free);
        }
        oom
    }));
    let snapshot = json!({
        "segments": [{
            "device": 0, "address": 4096, "total_size": 20 * MIB, "allocated_size": 2 * MIB,
            "active_size": 2 * MIB, "requested_size": 2 * MIB, "stream": 0,
            "segment_type": "large", "frames": [],
            "blocks": [
                block(4096, 2 * MIB, "active_allocated"),
                block(4096 + 2 * MIB, 18 * MIB, "inactive"),
            ],
        }],
        "device_traces": [events],
    });
    let folder = Folder::of(name, &[("a.json", RAN_OUT)]);
    let path = folder.0.join("a.json");
    fs::write(&path, snapshot.to_string()).expect("a file");
    let path = path.to_str().expect("a path");
    (json(&[], &[path])["calibration"]["capacity"].clone(), text(&[], &[path]))
}

#[test]
fn a_failed_request_bounds_the_limit_and_free_bytes_make_it_exact() {
    const MIB: u64 = 1 << 20;
    let (capacity, text) = failures("bounded", &[None]);
    assert_eq!(capacity["basis"], "bounded");
    assert_eq!(capacity["low"], 20 * MIB);
    assert_eq!(capacity["high"], 920 * MIB - 1);
    assert!(text.contains("runs out at #2"), "{text}");
    let (capacity, _) = failures("exact", &[Some(100 * MIB)]);
    assert_eq!((&capacity["basis"], &capacity["bytes"]), (&json!("exact"), &json!(120 * MIB)));
    // More is free than the request takes: the program's own limit was in the way.
    let (capacity, _) = failures("fraction", &[Some(5000 * MIB)]);
    assert_eq!(capacity["basis"], "bounded");
}

#[test]
fn failures_that_contradict_each_other_give_no_limit() {
    let (capacity, text) = failures("changing", &[Some(100 << 20), Some(200 << 20)]);
    assert_eq!((&capacity["basis"], &capacity["bytes"]), (&json!("changing"), &Value::Null));
    assert!(text.contains("ran out at #2 in the recording, limit not known"), "{text}");
}

#[test]
fn parts_of_several_pools_are_listed() {
    let text = text(&[], &["recorded/t29/pools.pickle"]);
    assert!(text.contains("The reserved peak by pool and stream"), "{text}");
    assert_eq!(text.lines().filter(|line| line.trim_start().starts_with("default")).count(), 3);
}

/// The line is that of `scripts/twins/models.py` which runs the blocks.
#[test]
fn a_change_is_shown_as_an_edit() {
    let output = vramscope(&["what-if", "--apply", "checkpoint:all"], &["recipes/moe.pickle.gz"]);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let edit = "\ncheckpoint:all at models.py:29: the call of each block (models.py:159 forward).\n\
                \x20   from torch.utils.checkpoint import checkpoint\n    \
                x = checkpoint(block, x, use_reentrant=False)  # instead of block(x)\n";
    assert!(text.ends_with(edit), "{text}");
}

/// The peaks of `host_memory_stats()` are those of `recorded/pinned/expected.json`.
#[test]
fn pinned_host_memory_has_answers_of_its_own() {
    let exact = ["recorded/pinned/threshold_0.pickle.gz"];
    let set = ["--device", "host", "--set", "pinned_max_round_threshold_mb:8"];
    let report = json(&set, &exact);
    assert_eq!(report["calibration"]["equal"], true);
    let [scenario] = &list(&report["scenarios"])[..] else { panic!("one scenario") };
    assert_eq!(
        (&scenario["reserved_peak"], &scenario["basis"]),
        (&json!(238_084_193), &json!("simulated"))
    );
    assert_eq!(scenario["conf"], "pinned_max_round_threshold_mb:8");
    assert_eq!(
        scenario["pinned"],
        json!({"max_round_threshold": 8 << 20, "max_cached_size": null})
    );
    // Block sizes do not tell the requests.
    let rounded = ["recorded/pinned/default.pickle.gz"];
    let report = json(&set, &rounded);
    let why = report["scenarios"][0]["declined"].as_str().expect("a reason");
    assert!(why.contains("PYTORCH_ALLOC_CONF=pinned_max_round_threshold_mb:0"), "{why}");
    // Blocks that are never cached bound the sum. PyTorch pinned 60,000,000 bytes.
    let report = json(&["--device", "host", "--change", "pinned_max_cached_size_mb:4"], &rounded);
    let range = &report["scenarios"][0]["reserved_range"];
    let [low, high] = [0, 1].map(|at| range[at].as_u64().expect("bytes"));
    assert!(low < 60_000_000 && 60_000_000 < high, "{range}");
    // Other devices have no such settings, and the host has no others.
    let other = json(&["--set", "pinned_max_cached_size_mb:4"], &["recorded/t29/pools.pickle"]);
    let why = other["scenarios"][0]["declined"].as_str().expect("a reason");
    assert!(why.contains("--device host"), "{why}");
    let wrong = json(&["--device", "host", "--set", "expandable_segments:True"], &rounded);
    assert!(wrong["scenarios"][0]["declined"].is_string(), "{wrong}");
}

/// A setting without a model is declined by its name, beside those with one.
#[test]
fn settings_without_a_prediction_are_named() {
    let change = |text: &str, more: &[&str]| {
        json(&[&["--change", text], more].concat(), &["recipes/seq2seq.pickle.gz"])["scenarios"][0]
            .clone()
    };
    for (text, why) in [
        ("backend:cudaMallocAsync", "only the native allocator has a model"),
        ("graph_capture_record_stream_reuse:True", "when blocks of a capture become free"),
        ("per_process_memory_fraction:0.5", "give --device-memory"),
        ("pinned_use_background_threads:True", "pinned host memory"),
        ("pinned_max_cached_size_mb:1", "ask with --device host"),
    ] {
        let scenario = change(text, &[]);
        let declined = scenario["declined"].as_str().expect("a reason");
        assert!(declined.contains(why), "{declined}");
        assert_eq!(scenario["change"], text);
    }
    // With the memory of the device, half of it is the limit: the run needs 296 MiB.
    let half = change("per_process_memory_fraction:0.5", &["--device-memory", "600MiB"]);
    assert_eq!((&half["declined"], &half["fits"]), (&Value::Null, &json!(false)));
    let most = half["pytorch_memory"].as_u64().expect("a limit");
    assert!(most <= 300 << 20, "{most}");
}
