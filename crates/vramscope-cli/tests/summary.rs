//! Runs `vramscope summary`.

use crate::common::vramscope;
use serde_json::Value;
use std::process::Output;

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).expect("JSON on standard output")
}

#[test]
fn json_matches_memory_stats() {
    let output =
        vramscope(&["summary", "--format", "json"], &["recorded/t26/linear_seed_python.pickle"]);
    assert!(output.status.success());
    let summary = json(&output);
    assert_eq!(summary["schema"], "vramscope.summary/1");
    let file = &summary["files"][0];
    assert_eq!((file["rank"].clone(), file["error"].clone()), (Value::Null, Value::Null));
    let device = &file["devices"][0];
    // The allocator's own memory_stats() of this recording, in test_data/recorded/expected.json.
    assert_eq!(device["requested_bytes"]["peak"], 4_434_803_008_u64);
    assert_eq!(device["requested_bytes"]["exactness"], "exact");
    assert_eq!(device["reserved_bytes"]["peak"], 4_439_670_784_u64);
    assert_eq!(device["coverage"], "whole");
}

#[test]
fn unreadable_file_is_reported_and_others_are_read() {
    let output = vramscope(
        &["summary", "--format", "json"],
        &["damaged/truncated.pickle", "scenarios/f01.pickle"],
    );
    assert_eq!(output.status.code(), Some(2));
    let summary = json(&output);
    let error = summary["files"][0]["error"]["message"].as_str().expect("an error");
    assert!(error.contains("it was cut off"), "{error}");
    assert_eq!(summary["files"][1]["devices"][0]["requested_bytes"]["peak"], 1500);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("truncated.pickle: the file ends at offset"), "{stderr}");
}

#[test]
fn text_shows_bands_and_peak() {
    let output = vramscope(&["summary"], &["recorded/t26/linear_seed_python.pickle"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("requested_bytes"), "{text}");
    assert!(text.contains("4.13 GiB"), "{text}");
    assert!(text.contains("peak #17"), "{text}");
}

#[test]
fn folder_is_searched_for_snapshots() {
    let output = vramscope(&["summary", "--format", "json"], &["scenarios"]);
    // The folder also holds expected.json, which is no snapshot.
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(json(&output)["files"].as_array().map(Vec::len), Some(20));
    assert_eq!(json(&output)["skipped_files"], 1);
}

#[test]
fn exit_code_is_64_for_wrong_usage_and_2_for_missing_file() {
    assert_eq!(vramscope(&["summary"], &[]).status.code(), Some(64));
    assert_eq!(vramscope(&["nonsense"], &[]).status.code(), Some(64));
    assert_eq!(vramscope(&["--help"], &[]).status.code(), Some(0));
    let missing = vramscope(&["summary"], &["no_such_file.pickle"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("cannot read the file"));
}

#[test]
fn pinned_host_memory_is_a_device_of_its_own() {
    let path = "recorded/t215_pinned_loader.pickle";
    let summary = json(&vramscope(&["summary", "--format", "json"], &[path]));
    let devices = summary["files"][0]["devices"].as_array().expect("a list");
    let named: Vec<_> = devices.iter().map(|d| (&d["device"], &d["kind"])).collect();
    assert_eq!(named, [(&0.into(), &"gpu".into()), (&128.into(), &"host".into())]);
    assert_eq!(devices[1]["reserved_bytes"]["peak"], 28 << 20);
    let text = String::from_utf8(vramscope(&["summary"], &[path]).stdout).expect("UTF-8");
    assert!(text.contains("\n  host  54 events, "), "{text}");
    assert!(text.contains("28.00 MiB requested, 28.00 MiB pinned at the peak"), "{text}");
    assert!(text.contains("warning: host: a size of pinned memory"), "{text}");
    let info = json(&vramscope(&["info", "--format", "json"], &["edge/host_only.pickle"]));
    let host = &info["files"][0]["devices"][0];
    assert_eq!(
        host["pinned"],
        serde_json::json!({"requested_bytes": 21 << 20, "pinned_bytes": 32 << 20})
    );
    let gpu = json(&vramscope(&["info", "--format", "json"], &["scenarios/f01.pickle"]));
    assert_eq!(gpu["files"][0]["devices"][0]["pinned"], Value::Null);
}

#[test]
fn host_is_the_default_only_without_another_device() {
    let device = |arguments: &[&str], path: &str| {
        let output = vramscope(&[&["peak", "--format", "json"], arguments].concat(), &[path]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        json(&output)["device"].clone()
    };
    // The host has 10 events in this file, the device has 7.
    assert_eq!(device(&[], "edge/host_requests.pickle"), 0);
    assert_eq!(device(&["--device", "host"], "edge/host_requests.pickle"), 128);
    assert_eq!(device(&["--device", "128"], "edge/host_requests.pickle"), 128);
    assert_eq!(device(&[], "edge/host_only.pickle"), 128);
    let output = vramscope(&["peak", "--device", "3"], &["edge/host_requests.pickle"]);
    assert_eq!(output.status.code(), Some(64));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("device 3 has no data (available: 0, host)"), "{error}");
}
