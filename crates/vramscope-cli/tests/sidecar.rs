//! The file beside a snapshot, `NAME.vramscope.json`, in the program's reports.

use crate::common::{test_data, vramscope};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Output;

const OOM: &str = "beside/oom_1/rank3_memory_snapshot.pickle";

fn report(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn told(command: &str, path: &str) -> Value {
    let words: Vec<&str> = command.split(' ').collect();
    report(&vramscope(&[&words[..], &["--format", "json"]].concat(), &[path]))
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).expect("a file")).expect("JSON")
}

/// A folder with a recording that meets no limit, and this file beside it.
fn with_beside(name: &str, json: &str) -> PathBuf {
    beside_of("recorded/gpt_leak.pickle.gz", name, json)
}

/// A folder with this recording, and this file beside it.
fn beside_of(recording: &str, name: &str, json: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("vramscope-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::copy(test_data(recording), folder.join("rank0.pickle.gz")).expect("a copy");
    std::fs::write(folder.join("rank0.vramscope.json"), json).expect("a file");
    folder
}

#[test]
fn info_states_where_and_with_what_the_process_ran() {
    let process = &told("info", OOM)["files"][0]["process"];
    let wanted = json!({
        "reason": "oom", "rank": 3, "world_size": 8, "host": "node7", "torch": "2.9.1+cu128",
        "cuda": "12.8", "driver": null, "alloc_conf": null, "last_step": 3,
    });
    for (field, value) in wanted.as_object().expect("an object") {
        assert_eq!(&process[field], value, "{field}");
    }
    assert_eq!(process["devices"][0]["other_bytes"], 500 << 20);
    assert!(told("info", "recorded/gpt_leak.pickle.gz")["files"][0].get("process").is_none());
}

#[test]
fn blocks_have_the_names_and_shapes_of_their_tensors() {
    let beside = read(&test_data("beside/oom_1/rank3_memory_snapshot.vramscope.json"));
    let last = beside["tensors"].as_array().expect("steps").last().expect("a step");
    let report = told("blocks", OOM);
    let blocks = report["blocks"].as_array().expect("blocks");
    let tensors = last["tensors"].as_array().expect("tensors");
    // Six parameters with their gradients, and two states of each. The counters of steps are on the
    // host.
    assert_eq!(tensors.len(), 24);
    for tensor in tensors {
        let address = format!("{:#x}", tensor["address"].as_u64().expect("an address"));
        let named = blocks.iter().filter(|block| block["address"] == address.as_str());
        let named: Vec<&Value> = named.filter_map(|block| block.get("tensor")).collect();
        let found = named.iter().any(|found| {
            ["kind", "name", "shape", "dtype"].iter().all(|field| found[*field] == tensor[*field])
        });
        assert!(found, "{tensor} is not among {named:?}");
    }
    let output = vramscope(&["blocks", "--limit", "200"], &[OOM]);
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(text.contains("  optimizer state 0.weight.exp_avg, float32 [1024, 1024]\n"), "{text}");
}

/// The category of a block in a report about blocks.
fn category_of<'a>(report: &'a Value, block: &Value) -> &'a Value {
    let blocks = report["blocks"].as_array().expect("blocks");
    let is_same = |b: &&Value| ["address", "alloc_event"].iter().all(|key| b[*key] == block[*key]);
    &blocks.iter().find(is_same).expect("the block")["category"]
}

#[test]
fn a_file_beside_another_recording_is_a_warning() {
    let stale = "hostile/stale_sidecar.pickle";
    let categories = &told("peak", stale)["categories"];
    assert!(
        categories.as_array().is_some_and(|all| all.iter().all(|c| c["category"] != "parameter"))
    );
    let warnings = &told("summary", stale)["files"][0]["warnings"];
    assert_eq!(warnings[0]["code"], "sidecar", "{warnings}");
    assert!(warnings[0]["message"].as_str().is_some_and(|text| text.contains("another recording")));
}

#[test]
fn what_was_recorded_of_a_tensor_is_the_category_of_its_block() {
    let plain = told("blocks", "recorded/gpt_leak.pickle.gz");
    let blocks = plain["blocks"].as_array().expect("blocks");
    let is_kept = |b: &&Value| b["category"] == "activation" && b["live_at_end"] == true;
    let mut live = blocks.iter().filter(is_kept);
    let (named, other) = (live.next().expect("a block"), live.next().expect("another"));
    let hex = named["address"].as_str().expect("an address").trim_start_matches("0x");
    let tensor = json!({
        "kind": "buffer", "name": "cache", "device": 0, "shape": [2], "dtype": "int8",
        "address": u64::from_str_radix(hex, 16).expect("hexadecimal digits"),
    });
    let start = told("events", "recorded/gpt_leak.pickle.gz")["start_us"].as_i64();
    // The recording has one second.
    let end = start.expect("a clock") + 1_000_000;
    let at_end = json!([{"time_us": end, "tensors": [tensor]}]);
    let folder = with_beside("kinds", &json!({"version": 1, "tensors": at_end}).to_string());
    let path = folder.join("rank0.pickle.gz").to_string_lossy().into_owned();
    let with_kinds = told("blocks", &path);
    assert_eq!(category_of(&with_kinds, named), "buffer");
    assert_eq!(category_of(&with_kinds, other), "activation");
    // A rule of the user is no guess.
    let rules = folder.join("rules.txt");
    std::fs::write(&rules, "input * *\n").expect("a file");
    let rules = rules.to_string_lossy().into_owned();
    let arguments = ["blocks", "--format", "json", "--rules", &rules];
    let ruled = report(&vramscope(&arguments, &[&path]));
    assert_eq!(category_of(&ruled, named), "input");
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn recorded_shapes_win_over_inferred_ones() {
    let report = told("peak --by shape", OOM);
    // Sizes tell nothing here.
    assert!(report["refused"].is_string());
    let rows = report["rows"].as_array().expect("rows");
    let recorded: Vec<&Value> = rows.iter().filter(|row| row["source"] == "sidecar").collect();
    let sum = |field: &str| -> u64 { recorded.iter().filter_map(|row| row[field].as_u64()).sum() };
    // Six parameters with their gradients and two states of each.
    assert_eq!(sum("blocks"), 24);
    assert_eq!(report["recorded_bytes"], sum("bytes"));
    assert_eq!(report["shaped_bytes"], report["recorded_bytes"]);
    for row in recorded {
        let dims = row["shapes"][0]["dims"].as_array().expect("dims");
        let elements: u64 = dims.iter().filter_map(Value::as_u64).product();
        assert_eq!(4 * elements * row["blocks"].as_u64().expect("blocks"), row["bytes"]);
    }
}

/// The line of the failed request.
const LINE: &str = "loss = model(torch.randn(rows, 1024, device=\"cuda\")).square().mean()";

#[test]
fn call_sites_have_their_source_line() {
    let report = told("peak", OOM);
    let stacks = report["stacks"].as_array().expect("stacks");
    assert!(stacks.iter().any(|stack| stack["source"] == LINE), "{stacks:?}");
    let text = String::from_utf8(vramscope(&["peak"], &[OOM]).stdout).expect("text");
    assert!(text.contains(LINE), "{text}");
}

#[test]
fn a_failed_allocation_names_what_is_outside_of_pytorch() {
    let report = report(&vramscope(&["diagnose", "--all", "--format", "json"], &[OOM]));
    let text = report["findings"][0]["text"].as_str().expect("a text");
    let outside = "The device has 2.93 GiB: 500.0 MiB are outside of PyTorch";
    assert!(text.contains(outside), "{text}");
    let short = told("diagnose", OOM);
    let text = short["findings"][0]["text"].as_str().expect("a text");
    assert!(text.contains(outside), "{text}");
    assert_eq!(report["findings"][0]["place"]["source"], LINE);
}

#[test]
fn measured_memory_is_the_limit_where_the_recording_meets_none() {
    let device = json!({
        "device": 0, "name": "A", "total_bytes": 80_u64 << 30, "free_bytes": 70_u64 << 30,
        "reserved_bytes": 512 << 20, "other_bytes": 512 << 20,
    });
    let folder = with_beside("measured", &json!({"version": 1, "devices": [device]}).to_string());
    let path = folder.to_string_lossy().into_owned();
    let run = report(&vramscope(&["what-if", "--format", "json"], &[&path]));
    let capacity = &run["reports"][0]["calibration"]["capacity"];
    let recorded = told("what-if", "recorded/gpt_leak.pickle.gz");
    assert_eq!(recorded["calibration"]["capacity"]["basis"], "unknown");
    assert_eq!(capacity["basis"], "measured");
    assert_eq!(capacity["bytes"], (70_u64 << 30) + (512 << 20));
    let scenarios = run["reports"][0]["scenarios"].as_array().expect("scenarios");
    assert!(scenarios.iter().all(|one| one["pytorch_memory"] == capacity["bytes"]));
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn the_limit_of_the_process_bounds_what_pytorch_can_have() {
    let json = |limit: u64| {
        let device = json!({
            "device": 0, "name": "A", "total_bytes": 80_u64 << 30, "free_bytes": 60_u64 << 30,
            "reserved_bytes": 1 << 30, "other_bytes": 0, "limit_bytes": limit,
        });
        json!({"version": 1, "devices": [device]}).to_string()
    };
    let recording = "findings/real_conv3d_1970.pickle.gz";
    let folder = beside_of(recording, "limit", &json(1950 << 20));
    let path = folder.to_string_lossy().into_owned();
    let all = report(&vramscope(&["diagnose", "--all", "--format", "json"], &[&path]));
    let text = all["findings"][0]["text"].as_str().expect("a text");
    assert!(text.contains("set_per_process_memory_fraction of 1.90 GiB"), "{text}");
    std::fs::remove_dir_all(folder).expect("removed");
    let folder = with_beside("limited", &json(8 << 30));
    let path = folder.to_string_lossy().into_owned();
    let run = report(&vramscope(&["what-if", "--format", "json"], &[&path]));
    assert_eq!(run["reports"][0]["calibration"]["capacity"]["bytes"], 8_u64 << 30);
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn a_failed_allocation_does_not_hide_the_limit_of_the_process() {
    // The request exceeds what the device has free, too. That is more than the process may have.
    let json = |limit: Option<u64>| {
        let device = json!({
            "device": 0, "name": "A", "total_bytes": 3_u64 << 30, "free_bytes": 1 << 30,
            "reserved_bytes": 80 << 20, "other_bytes": 500 << 20, "limit_bytes": limit,
        });
        json!({"version": 1, "devices": [device]}).to_string()
    };
    let recording = "beside/oom_1/rank3_memory_snapshot.pickle";
    let capacity = |name: &str, limit: Option<u64>| {
        let folder = std::env::temp_dir().join(format!("vramscope-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::copy(test_data(recording), folder.join("rank0.pickle")).expect("a copy");
        std::fs::write(folder.join("rank0.vramscope.json"), json(limit)).expect("a file");
        let path = folder.to_string_lossy().into_owned();
        let run = report(&vramscope(&["what-if", "--format", "json"], &[&path]));
        let all = report(&vramscope(&["diagnose", "--all", "--format", "json"], &[&path]));
        std::fs::remove_dir_all(folder).expect("removed");
        let text = all["findings"][0]["text"].as_str().expect("a text").to_owned();
        (run["reports"][0]["calibration"]["capacity"].clone(), text)
    };
    let (shown, _) = capacity("unlimited", None);
    assert_eq!(shown["basis"], "exact");
    let (limited, text) = capacity("below", Some(2400 << 20));
    assert_eq!(
        (&limited["basis"], &limited["bytes"]),
        (&json!("measured"), &json!(2_516_582_400_u64))
    );
    assert!(text.contains("PyTorch can have 2.34 GiB in this process"), "{text}");
    // A limit above what is free changes nothing.
    assert_eq!(capacity("above", Some(3 << 30)).0, shown);
}

#[test]
fn a_broken_file_beside_a_snapshot_is_a_warning() {
    for (name, json, reason) in [
        ("broken", "{\"version\": 1, \"devices\": [{", "EOF while parsing"),
        ("later", "{\"version\": 9}", "its version is 9, expected 1"),
        ("odd", "{\"version\": 1, \"tensors\": \"none\"}", "invalid type"),
    ] {
        let folder = with_beside(name, json);
        let path = folder.to_string_lossy().into_owned();
        let summary = report(&vramscope(&["summary", "--format", "json"], &[&path]));
        // It belongs to the snapshot, and is no file that was skipped.
        assert_eq!(summary["skipped_files"], 0);
        let warnings = summary["files"][0]["warnings"].as_array().expect("warnings");
        let warning = warnings.iter().find(|w| w["code"] == "sidecar").expect("a warning");
        let message = warning["message"].as_str().expect("a message");
        assert!(message.contains(reason), "{message}");
        std::fs::remove_dir_all(folder).expect("removed");
    }
}

#[test]
fn a_program_that_drops_at_the_last_use_has_the_predicted_peak() {
    const KEPT: &str = "beside/uses_kept/rank0_memory_snapshot.pickle.gz";
    const DROPPED: &str = "beside/uses_dropped/rank0_memory_snapshot.pickle.gz";
    let uses = told("peak --by use", KEPT);
    let dead: Vec<(&str, u64)> = uses["rows"]
        .as_array()
        .expect("rows")
        .iter()
        .filter(|row| row["group"] == "dead" && row["bytes"].as_u64() > Some(1 << 20))
        .map(|row| (row["site"].as_str().expect("a site"), row["bytes"].as_u64().expect("bytes")))
        .collect();
    // 1,024 tokens and 8,192 words: logits of 2 bytes, and two copies of 4.
    let mib = 1 << 20;
    let planted = [
        ("uses.py:65 train", 32 * mib),
        ("uses.py:66 train", 32 * mib),
        ("uses.py:41 forward", 16 * mib),
    ];
    assert_eq!(dead, planted);
    let recipes: Vec<String> = dead
        .iter()
        .map(|(site, _)| format!("last_use:{}", site.split(' ').next().expect("a line")))
        .collect();
    let words = ["what-if", "--format", "json", "--apply", &recipes.join(",")];
    let run = report(&vramscope(&words, &[KEPT]));
    let measured = told("peak --band active", DROPPED)["total"].clone();
    assert_eq!(run["scenarios"][0]["active_peak"], measured);
    // The program still holds two losses of four bytes.
    let dropped = told("peak", DROPPED)["total"].as_u64().expect("bytes");
    assert_eq!(uses["floor"], dropped - 8);
}

#[test]
fn uses_of_other_memory_say_nothing() {
    let kept = read(&test_data("beside/uses_kept/rank0_memory_snapshot.vramscope.json"));
    let refused = |name: &str, change: &dyn Fn(&mut Value)| {
        let mut json = kept.clone();
        change(&mut json["uses"]);
        let recording = "beside/uses_kept/rank0_memory_snapshot.pickle.gz";
        let folder = beside_of(recording, name, &json.to_string());
        let path = folder.to_string_lossy().into_owned();
        let run = report(&vramscope(&["peak", "--by", "use", "--format", "json"], &[&path]));
        std::fs::remove_dir_all(folder).expect("removed");
        run["refused"].as_str().expect("a reason").to_owned()
    };
    let cut = refused("uses-cut", &|uses| uses["complete"] = json!(false));
    assert!(cut.contains("a limit cut it, or the step did not end"), "{cut}");
    let later = refused("uses-later", &|uses| {
        for time in ["begin_us", "end_us"] {
            uses[time] = json!(uses[time].as_i64().expect("a time") + 3_600_000_000);
        }
    });
    assert!(later.contains("not in the history"), "{later}");
    let moved = refused("uses-moved", &|uses| {
        for address in
            uses["storages"].as_array_mut().expect("storages").iter_mut().skip(1).step_by(2)
        {
            *address = json!(address.as_u64().expect("an address") + 512);
        }
    });
    assert!(moved.contains("other memory"), "{moved}");
    // A list that does not fit makes the file unreadable, as any other field would.
    let short = refused("uses-short", &|uses| uses["uses"] = json!([1]));
    assert!(short.contains("no step was traced"), "{short}");
}
