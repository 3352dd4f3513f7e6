//! Ids of answers lead to what they stand for, with the same numbers.

use crate::common::vramscope;
use serde_json::Value;

const LEAK: &str = "recorded/gpt_leak.pickle.gz";
const DEVICES: &str = "recorded/t26/two_devices.pickle.gz";
const FILES: [&str; 3] = [LEAK, "recorded/t26/gpt_small.pickle.gz", "truth/gpt_step.pickle.gz"];

/// The answer of a command in JSON.
fn json(arguments: &[&str]) -> Value {
    let is_path = |argument: &&str| FILES.contains(argument) || *argument == DEVICES;
    let (paths, others): (Vec<&str>, Vec<&str>) = arguments.iter().copied().partition(is_path);
    let output = vramscope(&[&others[..], &["--format", "json"]].concat(), &paths);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    serde_json::from_slice(&output.stdout).expect("JSON on standard output")
}

fn list(value: &Value) -> &Vec<Value> {
    value.as_array().expect("a list")
}

fn id(row: &Value) -> &str {
    row["id"].as_str().expect("an id")
}

/// The id of a block, as the documentation has it.
fn reference(report: &Value, block: &Value) -> String {
    let address = block["address"].as_str().expect("an address");
    match block["alloc_event"].as_u64() {
        Some(event) => format!("{}:{address}@{event}", report["device"]),
        None => format!("{}:{address}@pre", report["device"]),
    }
}

#[test]
fn a_call_stack_has_its_bytes_of_the_peak() {
    for file in FILES {
        let peak = json(&["peak", file]);
        for row in list(&peak["stacks"]) {
            let shown = json(&["show", id(row), file, "--limit", "1"]);
            assert_eq!(shown["at_peak"]["bytes"], row["bytes"], "{file}: {}", id(row));
            assert_eq!(shown["at_peak"]["blocks"], row["blocks"], "{file}: {}", id(row));
        }
    }
}

#[test]
fn a_block_is_shown_by_its_id() {
    for file in FILES {
        let blocks = json(&["blocks", file, "--limit", "40"]);
        for row in list(&blocks["blocks"]).iter().step_by(7) {
            let shown = json(&["show", &reference(&blocks, row), file]);
            assert_eq!(shown["kind"], "block");
            let [found] = list(&shown["blocks"]).as_slice() else { panic!("one block") };
            for key in ["address", "bytes", "alloc_event", "site", "lifetime"] {
                assert_eq!(found[key], row[key], "{file}: {key}");
            }
        }
    }
}

#[test]
fn a_finding_is_shown_with_its_blocks() {
    let diagnosis = json(&["diagnose", "--all", LEAK]);
    let growth = &diagnosis["findings"][0];
    let shown = json(&["show", id(growth), LEAK]);
    assert_eq!((&shown["kind"], &shown["finding"]), (&"finding".into(), growth));
    assert_eq!(shown["at_end"]["bytes"], growth["bytes"]);
    assert_eq!(shown["at_end"]["blocks"], growth["blocks"]);
    let events: Vec<&Value> =
        list(&shown["blocks"]).iter().map(|block| &block["alloc_event"]).collect();
    assert_eq!(events, list(&growth["events"]).iter().collect::<Vec<_>>());
    // A finding about memory that no block holds.
    let reserved = &diagnosis["findings"][1];
    assert_eq!(reserved["kind"], "reserved");
    assert_eq!(json(&["show", id(reserved), LEAK])["total"], 0);
}

#[test]
fn a_search_has_the_categories_of_the_peak() {
    let peak = json(&["peak", LEAK]);
    for row in list(&peak["categories"]) {
        let search = format!("category:{} live@peak", row["category"].as_str().expect("a name"));
        let shown = json(&["show", &search, LEAK]);
        assert_eq!(shown["at_peak"]["bytes"], row["bytes"], "{search}");
        assert_eq!(shown["total"], row["blocks"], "{search}");
        let omitted = shown["omitted"].as_u64().expect("a number") as usize;
        assert_eq!(shown["total"], list(&shown["blocks"]).len() + omitted);
    }
}

#[test]
fn the_device_is_that_of_the_id() {
    let file = DEVICES;
    for device in ["0", "1"] {
        let blocks = json(&["blocks", file, "--device", device, "--limit", "1"]);
        let shown = json(&["show", &reference(&blocks, &blocks["blocks"][0]), file]);
        assert_eq!(shown["device"].to_string(), device);
    }
}

#[test]
fn an_unknown_id_is_wrong_usage() {
    let output = vramscope(&["show", "growth-0-0000000000000000"], &[LEAK]);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(64));
    assert!(message.contains("is no finding, block or call stack"), "{message}");
}
