//! `export --as perfetto --trace`: a profiler's trace and a snapshot of one run, in one file.

use crate::common::{test_data, vramscope};
use flate2::read::GzDecoder;
use serde_json::{Value, json};
use std::io::Read as _;
use std::path::{Path, PathBuf};

const SNAPSHOT: &str = "profiled/rank0.pickle.gz";
const TRACE: &str = "profiled/rank0.trace.json.gz";

fn gunzip(path: &Path) -> Value {
    let file = std::fs::File::open(path).expect("a file");
    let mut text = String::new();
    GzDecoder::new(file).read_to_string(&mut text).expect("a gzip");
    serde_json::from_str(&text).expect("JSON")
}

fn events(trace: &Value) -> &Vec<Value> {
    trace["traceEvents"].as_array().expect("events")
}

/// A file of this test.
fn temporary(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("vramscope-trace-{}-{name}", std::process::id()))
}

/// Merges the snapshot with this trace. Returns what was written, or the message.
fn merged(snapshot: &str, trace: &Path) -> Result<Value, String> {
    let trace = trace.to_str().expect("a path");
    let output = vramscope(&["export", "--as", "perfetto", "--trace", trace], &[snapshot]);
    if output.status.success() {
        return Ok(serde_json::from_slice(&output.stdout).expect("JSON"));
    }
    assert_eq!(output.status.code(), Some(64));
    Err(String::from_utf8(output.stderr).expect("text"))
}

/// Merges the snapshot with a trace of this text.
fn merged_with(name: &str, trace: &str) -> Result<Value, String> {
    let path = temporary(name);
    std::fs::write(&path, trace).expect("a file");
    let result = merged(SNAPSHOT, &path);
    std::fs::remove_file(path).expect("removed");
    result
}

/// The starts of the ranges with this name.
fn starts(events: &[Value], name: &str) -> Vec<f64> {
    let named = events.iter().filter(|event| event["name"] == name && event["ph"] == "X");
    named.filter_map(|event| event["ts"].as_f64()).collect()
}

#[test]
fn a_trace_keeps_its_events_and_gets_those_of_the_snapshot_on_its_clock() {
    let out = temporary("merged.json.gz");
    let (trace, to) = (test_data(TRACE), out.to_str().expect("a path"));
    let arguments =
        ["export", "--as", "perfetto", "--trace", trace.to_str().expect("a path"), "-o", to];
    let output = vramscope(&arguments, &[SNAPSHOT]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let merged = gunzip(&out);
    std::fs::remove_file(out).expect("removed");

    let trace = gunzip(&trace);
    for (key, value) in trace.as_object().expect("an object") {
        if key != "traceEvents" {
            assert_eq!(&merged[key], value, "{key}");
        }
    }
    let (profiled, all) = (events(&trace), events(&merged));
    let (before, added) = all.split_at(profiled.len());
    assert_eq!(before, profiled);

    // The program named its forward passes: both files have these ranges.
    let (theirs, ours) = (starts(profiled, "forward"), starts(added, "forward"));
    assert_eq!(theirs.len(), 2);
    for start in theirs {
        assert!(ours.iter().any(|our| (our - start).abs() < 100.0), "{start} is not in {ours:?}");
    }
    // The device of the snapshot is a process of its own.
    let pid = &added[0]["pid"];
    assert!(added.iter().all(|event| event["pid"] == *pid));
    assert!(profiled.iter().all(|event| event["pid"] != *pid));

    // But for the clock, these are the events of the export without a trace.
    let alone = vramscope(&["export", "--as", "perfetto"], &[SNAPSHOT]);
    let alone: Value = serde_json::from_slice(&alone.stdout).expect("JSON");
    let base = trace["baseTimeNanoseconds"].as_i64().expect("a time") / 1000;
    let mut shifted = events(&alone).clone();
    for event in &mut shifted {
        event["pid"] = pid.clone();
        if event["ph"] != "M" {
            event["ts"] = json!(event["ts"].as_i64().expect("a time") - base);
        }
    }
    assert_eq!(added, shifted);
}

#[test]
fn times_since_1970_and_used_process_numbers_are_understood() {
    let alone = vramscope(&["export", "--as", "perfetto"], &[SNAPSHOT]);
    let alone: Value = serde_json::from_slice(&alone.stdout).expect("JSON");
    let start = starts(events(&alone), "step 0")[0];
    let event = |pid: u32| json!({"ph": "X", "ts": start, "dur": 10, "pid": pid, "name": "op"});
    // Traces before PyTorch 2.4 have no base. Devices of a trace are processes, too.
    let trace = json!({"traceEvents": [event(0), event(1), event(2)], "schemaVersion": 1});
    let merged = merged_with("absolute.json", &trace.to_string()).expect("merged");
    let (before, added) = events(&merged).split_at(3);
    assert_eq!(before, trace["traceEvents"].as_array().expect("events"));
    assert!(added.iter().all(|event| event["pid"] == 3));
    assert_eq!(starts(added, "step 0"), [start]);
}

#[test]
fn a_trace_of_another_time_is_refused_with_both_ranges() {
    let failure = merged("recorded/gpt_leak.pickle.gz", &test_data(TRACE)).expect_err("refused");
    for range in ["1795231099.099 to 1795231099.933", "1795702821.876 to 1795702821.898"] {
        assert!(failure.contains(range), "{failure}");
    }
}

#[test]
fn what_is_no_trace_is_refused() {
    for (trace, wanted) in [
        ("{\"traceEvents\": [{\"ph\": \"X\"", "EOF while parsing"),
        ("{\"events\": []}", "no traceEvents"),
        ("{\"traceEvents\": []}", "none of its events has a time"),
        ("{\"traceEvents\": 1}", "a list of events"),
        ("{\"traceEvents\": [], \"traceEvents\": []}", "there twice"),
        ("{\"traceEvents\": [], \"baseTimeNanoseconds\": \"x\"}", "expected an integer"),
        ("[]", "an object with traceEvents"),
        ("not JSON", "expected a trace of torch.profiler"),
    ] {
        let failure = merged_with("wrong.json", trace).expect_err(trace);
        assert!(failure.contains(wanted), "{trace}: {failure}");
    }
    let arguments = ["export", "--as", "csv", "--trace", "x.json"];
    let output = vramscope(&arguments, &[SNAPSHOT]);
    assert_eq!(output.status.code(), Some(64));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--as perfetto"));
}
