//! Compares `summary` with two independent sources: `scripts/oracle.py`, and the allocator's own
//! `memory_stats()`.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use vramscope_report::FileReader;
use vramscope_report::summary::summarize;

fn test_data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test_data")
}

fn expected(folder: &str) -> Value {
    let text = std::fs::read_to_string(test_data().join(folder).join("expected.json"))
        .expect("the expected numbers");
    serde_json::from_str(&text).expect("JSON")
}

/// The summary of a file as JSON, one row per snapshot.
fn summary(path: &Path) -> Vec<Value> {
    let bytes = std::fs::read(path).expect("a file of test_data");
    let mut loader = FileReader::new("file", bytes.len() as u64);
    let result = bytes
        .chunks(10_000)
        .try_for_each(|c| loader.feed(c).map(drop))
        .and_then(|()| loader.finish());
    let rows = summarize("file", bytes.len() as u64, &result);
    rows.iter().map(|row| serde_json::to_value(row).expect("it serializes")).collect()
}

fn assert_equals_oracle(folder: &str) {
    let mut figures = 0;
    for (file, expected) in expected(folder).as_object().expect("a table") {
        let path = [file.clone(), format!("{file}.gz")].map(|f| test_data().join(folder).join(f));
        let path = path.iter().find(|p| p.exists()).unwrap_or_else(|| panic!("{file} is missing"));
        let found = summary(path).remove(0);
        let oracle = &expected["oracle"];
        let devices = oracle["devices"].as_array().unwrap_or_else(|| panic!("{file}: no oracle"));
        assert_eq!(
            found["devices"].as_array().map(Vec::len),
            Some(devices.len()),
            "{file}: devices"
        );
        for (found, want) in found["devices"].as_array().expect("a list").iter().zip(devices) {
            let device = &want["device"];
            let mut assert_equal = |what: &str, found: &Value, want: &Value| {
                assert_eq!(found, want, "{file} device {device}: {what}");
                figures += 1;
            };
            for key in [
                "device",
                "events",
                "segments",
                "allocations_in_window",
                "preexisting_freed",
                "preexisting_live",
                "end_live_blocks",
            ] {
                assert_equal(key, &found[key], &want[key]);
            }
            // The oracle writes an event without an action as Python's `None`.
            let mut actions = want["actions"].clone();
            if let Some(none) = actions.as_object_mut().and_then(|a| a.remove("None")) {
                actions["(no action)"] = none;
            }
            assert_equal("actions", &found["actions"], &actions);
            for (ours, theirs) in [("requested_bytes", "active"), ("reserved_bytes", "reserved")] {
                for (a, b) in [
                    ("start", "start_bytes"),
                    ("peak", "peak_bytes"),
                    ("peak_event", "peak_event"),
                    ("end", "end_bytes"),
                ] {
                    assert_equal(&format!("{ours}.{a}"), &found[ours][a], &want[theirs][b]);
                }
            }
        }
    }
    assert!(figures > 100, "{folder}: only {figures} figures were compared");
}

#[test]
fn summary_of_recordings_equals_oracle() {
    assert_equals_oracle("recorded");
}

#[test]
fn summary_of_edge_cases_equals_oracle() {
    assert_equals_oracle("edge");
}

#[test]
fn summary_of_pickle_protocols_equals_oracle() {
    assert_equals_oracle("protocols");
}

#[test]
fn summary_of_recordings_equals_memory_stats() {
    // test_data/README.md says what each of these files lacks.
    let without_peaks = ["gpt_state_only.pickle", "misc/norecord.pickle"];
    let mut figures = 0;
    for (file, expected) in expected("recorded").as_object().expect("a table") {
        let path =
            [file.clone(), format!("{file}.gz")].map(|f| test_data().join("recorded").join(f));
        let found = summary(path.iter().find(|p| p.exists()).expect("the file")).remove(0);
        for (device, stats) in expected["memory_stats"]["at_dump"].as_object().expect("a table") {
            let found = found["devices"]
                .as_array()
                .expect("a list")
                .iter()
                .find(|d| d["device"].as_u64() == device.parse().ok());
            let Some(found) = found else {
                assert_eq!(stats["reserved_bytes.all.current"], json!(0), "{file} device {device}");
                continue;
            };
            let has_peaks = !without_peaks.contains(&file.as_str()) && found["events"] != json!(0);
            for band in ["requested_bytes", "active_bytes", "allocated_bytes", "reserved_bytes"] {
                assert_eq!(
                    found[band]["end"],
                    stats[format!("{band}.all.current")],
                    "{file} device {device}: {band}.end"
                );
                figures += 1;
                if has_peaks {
                    assert_eq!(
                        found[band]["peak"],
                        stats[format!("{band}.all.peak")],
                        "{file} device {device}: {band}.peak"
                    );
                    figures += 1;
                }
            }
        }
    }
    assert!(figures > 250, "only {figures} figures were compared");
}

#[test]
fn containers_are_detected_and_damage_is_reported() {
    for folder in ["containers", "damaged"] {
        for (file, expected) in expected(folder).as_object().expect("a table") {
            let found = summary(&test_data().join(folder).join(file));
            let failed = |row: &Value| !row["error"].is_null();
            let warned = |row: &Value| row["warnings"].as_array().is_some_and(|w| !w.is_empty());
            match expected["peaks"].as_array() {
                // A truncated file must have an error or a warning.
                None => assert!(
                    found.iter().all(|r| failed(r) || warned(r)),
                    "{folder}/{file}: {found:?}"
                ),
                Some(peaks) if peaks.is_empty() => {
                    assert!(
                        found.iter().all(failed),
                        "{folder}/{file} should be refused: {found:?}"
                    );
                }
                Some(peaks) => {
                    let devices =
                        found.iter().map(|r| r["devices"][0]["requested_bytes"]["peak"].clone());
                    assert_eq!(&devices.collect::<Vec<_>>(), peaks, "{folder}/{file}");
                }
            }
        }
    }
}
