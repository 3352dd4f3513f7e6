//! `vramscope ranks`, compared with `vramscope peak` of each rank.

use crate::common::{folder, test_data, vramscope};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;

fn json(arguments: &[&str], path: &str) -> Value {
    let output = vramscope(arguments, &[path]);
    assert!(output.status.success(), "{path}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn list(value: &Value) -> &Vec<Value> {
    value.as_array().expect("a list")
}

fn number(value: &Value) -> u64 {
    value.as_u64().expect("a number")
}

/// Bytes at a rank's peak by call site, and the peak.
fn sites(path: &str) -> (BTreeMap<String, u64>, u64) {
    let peak = json(&["peak", "--format", "json"], path);
    let mut sums = BTreeMap::new();
    for stack in list(&peak["stacks"]) {
        let site = stack["site"].as_str().expect("a call site").to_owned();
        *sums.entry(site).or_default() += number(&stack["bytes"]);
    }
    (sums, number(&peak["total"]))
}

#[test]
fn cells_are_the_bytes_at_the_peaks() {
    for folder in ["findings/ranks_fsdp2_skew", "recorded/ranks_fsdp"] {
        let report = json(&["ranks", "--format", "json"], folder);
        assert_eq!(report["schema"], "vramscope.ranks/1");
        let [run] = &list(&report["runs"])[..] else { panic!("one run: {report}") };
        let mut most: BTreeMap<String, u64> = BTreeMap::new();
        for (at, column) in list(&run["columns"]).iter().enumerate() {
            let (sites, total) = sites(column["path"].as_str().expect("a path"));
            assert_eq!(number(&column["peak_bytes"]), total);
            for row in list(&run["rows"]) {
                let site = row["site"].as_str().expect("a call site");
                let bytes = sites.get(site).copied().unwrap_or(0);
                assert_eq!(number(&row["bytes"][at]), bytes, "{folder} {site} {column}");
            }
            for (site, bytes) in sites {
                let known = most.entry(site).or_default();
                *known = bytes.max(*known);
            }
        }
        // All call sites are there, that with the most bytes first.
        let rows = list(&run["rows"]);
        assert!(rows.len() > 5);
        assert_eq!(rows.len(), most.len());
        let maxima: Vec<u64> = rows.iter().map(|row| number(&row["max"])).collect();
        assert!(maxima.is_sorted_by(|a, b| a >= b), "{maxima:?}");
        for row in rows {
            let mut bytes: Vec<u64> = list(&row["bytes"]).iter().map(number).collect();
            bytes.sort_unstable();
            let median = bytes[bytes.len() / 2];
            let deviation = bytes.iter().map(|b| b.abs_diff(median)).max();
            assert_eq!(number(&row["median"]), median);
            assert_eq!(Some(number(&row["deviation"])), deviation);
            assert_eq!(most[row["site"].as_str().expect("a call site")], number(&row["max"]));
        }
    }
}

#[test]
fn the_rank_that_holds_more_is_said() {
    let report = json(&["ranks", "--format", "json", "--limit", "3"], "findings/ranks_fsdp2_skew");
    let run = &report["runs"][0];
    let [outlier] = &list(&run["outliers"])[..] else { panic!("one outlier: {run}") };
    assert_eq!((number(&outlier["rank"]), number(&outlier["bytes"])), (2, 200 << 20));
    assert_eq!((number(&outlier["median"]), number(&outlier["others"])), (0, 3));
    assert_eq!(
        outlier["text"],
        "Rank 2 holds 200.0 MiB at r_fsdp2.py:40 main; the median of the other 3 ranks is 0 B."
    );
    assert_eq!(run["text"][1], outlier["text"]);
    assert_eq!(list(&run["rows"]).len(), 3);
    assert!(number(&run["omitted"]) > 0);
}

#[test]
fn files_without_other_ranks_have_no_matrix() {
    let report = json(&["ranks", "--format", "json"], "recorded/t26");
    assert_eq!(list(&report["runs"]).len(), 0);
    assert!(number(&report["other_files"]) > 5);
}

/// Two processes on one clock. The numbers were counted in the two pickles by CPython.
#[test]
fn processes_of_one_gpu_add_up_on_one_clock() {
    let files = ["one_gpu/trainer.pickle", "one_gpu/engine.pickle"];
    let output = vramscope(&["ranks", "--one-gpu", "--format", "json"], &files);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let record: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(record["schema"], "vramscope.one-gpu/1");
    assert_eq!(
        (number(&record["from_us"]), number(&record["length"])),
        (1_795_892_407_696_090, 1_294_427)
    );
    assert_eq!(
        (number(&record["peak"]), number(&record["peak_after"])),
        (31_140_610_048, 1_294_406)
    );
    let then: Vec<u64> =
        list(&record["processes"]).iter().map(|one| number(&one["reserved"])).collect();
    assert_eq!(then, [25_771_900_928, 5_368_709_120], "the engine and the trainer");
    // The engine gives 20 GiB back.
    let engine = &record["processes"][0];
    assert_eq!(
        (number(&engine["lowest"]), number(&engine["pause"]["reserved"])),
        (4 << 30, 4 << 30)
    );
    let alone = vramscope(&["ranks", "--one-gpu"], &files[..1]);
    let text = String::from_utf8_lossy(&alone.stdout);
    assert!(text.contains("needs the recordings of two processes"), "{text}");
}

/// A launcher that starts a job again in its folder leaves two snapshots of each rank. The text
/// said that the job had twice the ranks.
#[test]
fn a_second_attempt_adds_no_ranks() {
    let attempts = folder("ranks/attempts");
    for rank in [2, 3] {
        let name = format!("rank{rank}_memory_snapshot.pickle.gz");
        let file = test_data("recorded/ranks_fsdp").join(&name);
        fs::copy(&file, attempts.join(&name)).expect("the first attempt");
        fs::copy(&file, attempts.join(format!("pid12{rank}_{name}"))).expect("the second attempt");
    }
    let first_line = |path: &str| {
        let output = vramscope(&["ranks"], &[path]);
        String::from_utf8_lossy(&output.stdout).lines().next().map(str::to_owned)
    };
    let path = attempts.to_str().expect("a text");
    assert_eq!(first_line(path), Some(format!("{path}  4 snapshots of 2 ranks")));
    for rank in [2, 3] {
        fs::remove_file(attempts.join(format!("pid12{rank}_rank{rank}_memory_snapshot.pickle.gz")))
            .expect("a file of the second attempt");
    }
    assert_eq!(first_line(path), Some(format!("{path}  2 ranks")));
}
