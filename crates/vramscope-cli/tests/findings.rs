//! Runs `vramscope diagnose`, with and without `--all`.

use crate::common::{folder, test_data, vramscope};
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::fs;

fn text(arguments: &[&str], paths: &[&str]) -> String {
    let output = vramscope(arguments, paths);
    assert!(output.status.success(), "{paths:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn json(command: &str, paths: &[&str]) -> Value {
    serde_json::from_str(&text(&[command, "--format", "json"], paths)).expect("JSON")
}

/// The diagnosis with all findings.
fn all(paths: &[&str]) -> Value {
    serde_json::from_str(&text(&["diagnose", "--all", "--format", "json"], paths)).expect("JSON")
}

fn list(value: &Value) -> &Vec<Value> {
    value.as_array().expect("a list")
}

fn kinds(report: &Value) -> Vec<&str> {
    list(&report["blind_spots"]).iter().filter_map(|spot| spot["kind"].as_str()).collect()
}

const LEAK: &str = "recorded/gpt_leak.pickle.gz";
const OOM: &str = "recorded/t26/oom_observer.pickle.gz";
const HEALTHY: &str = "recorded/t26/gpt_small.pickle.gz";
const SKEW: &str = "findings/ranks_fsdp2_skew";

#[test]
fn growth_and_oom_are_found_in_their_files() {
    let found = all(&[LEAK, HEALTHY]);
    assert_eq!(
        (&found["schema"], &found["skipped_files"]),
        (&json!("vramscope.diagnose/1"), &json!(0))
    );
    let growth: Vec<&Value> =
        list(&found["findings"]).iter().filter(|a| a["kind"] == "growth").collect();
    assert_eq!(growth.len(), 1, "{growth:?}");
    assert!(growth[0]["path"].as_str().is_some_and(|p| p.ends_with("gpt_leak.pickle.gz")));
    assert_eq!(growth[0]["sites"][0], "p_gpt.py:31 train_step");
    let ooms = all(&[OOM]);
    let oom = list(&ooms["findings"]).iter().find(|a| a["kind"] == "oom").expect("an OOM finding");
    // The OOM observer of the recorded program reported a segment of 413,138,944 bytes. PyTorch
    // rounds the request up to 2 MiB.
    let requested = oom["bytes"].as_u64().expect("a number");
    assert_eq!(requested.next_multiple_of(2 << 20), 413_138_944);
}

#[test]
fn findings_are_sorted_by_severity_before_bytes() {
    let found = all(&[LEAK, OOM]);
    let sort_key = |a: &Value| {
        let severity =
            ["high", "medium", "low"].iter().position(|s| a["severity"] == *s).expect("a severity");
        // A failure ended the run, and has the first words.
        (a["kind"] != "oom", severity, Reverse(a["bytes"].as_u64().expect("a number")))
    };
    let rows = list(&found["findings"]);
    assert!(rows.iter().map(sort_key).is_sorted(), "{rows:?}");
    // The order by bytes alone differs, so the severity decides.
    assert!(!rows.iter().map(|a| sort_key(a).2).is_sorted(), "{rows:?}");
}

#[test]
fn a_limit_cuts_the_list_and_counts_the_rest() {
    let whole = all(&[LEAK, OOM]);
    let cut: Value = serde_json::from_str(&text(
        &["diagnose", "--all", "--limit", "1", "--format", "json"],
        &[LEAK, OOM],
    ))
    .expect("JSON");
    let count = list(&whole["findings"]).len();
    assert!(count > 1 && whole.get("omitted").is_none(), "{whole}");
    assert_eq!(list(&cut["findings"])[..], list(&whole["findings"])[..1]);
    assert_eq!(cut["omitted"], count - 1);
    let of_text = text(&["diagnose", "--all", "--limit", "1"], &[LEAK, OOM]);
    assert!(of_text.contains(&format!("and {} more", count - 1)), "{of_text}");
}

#[test]
fn findings_of_a_run_say_the_rank() {
    let found = all(&[SKEW, "recorded/ranks_fsdp"]);
    let rows = list(&found["findings"]);
    let skews: Vec<&Value> = rows.iter().filter(|a| a["kind"] == "rank_skew").collect();
    let [skew] = skews[..] else { panic!("one skew, not {skews:?}") };
    assert_eq!((&skew["rank"], &skew["bytes"]), (&json!(2), &json!(200 << 20)));
    assert_eq!(skew["sites"][0], "r_fsdp2.py:40 main");
    for key in ["title", "text", "action"] {
        assert!(
            skew[key].as_str().is_some_and(|t| t.to_lowercase().contains("rank 2")),
            "{key}: {skew}"
        );
    }
    let leak = rows.iter().find(|a| a["kind"] == "growth").expect("a leak");
    for key in ["title", "text"] {
        assert!(leak[key].as_str().is_some_and(|t| t.starts_with("Rank 3: ")), "{key}: {leak}");
    }
    // A single file needs no name.
    let alone = all(&["recorded/ranks_fsdp/rank3_memory_snapshot.pickle.gz"]);
    assert!(!alone["findings"][0]["title"].as_str().is_some_and(|t| t.contains("rank")));
}

/// A sampler that was trained before runs without `no_grad` until memory is full.
#[test]
fn results_that_wait_for_no_backward_are_why_memory_ran_out() {
    let report = json("diagnose", &["causes/no_backward.pickle.gz"]);
    let why = report["findings"][0]["why"].as_str().expect("a reason");
    assert!(why.starts_with("139 results of script.py:16 forward wait since the last"), "{why}");
    assert!(why.ends_with("at most 6 in each pass before"), "{why}");
}

#[test]
fn all_findings_come_with_the_verdict_and_are_not_merged() {
    let (main, whole) = (json("diagnose", &["recorded/ranks_fsdp"]), all(&["recorded/ranks_fsdp"]));
    // The short answer cuts long paths, and how long they are depends on the checkout.
    let without_paths = |value: &Value| {
        let mut value = value.clone();
        let lists = value.as_array_mut().into_iter().flatten();
        lists.filter_map(Value::as_object_mut).for_each(|row| drop(row.remove("path")));
        value.as_object_mut().map(|row| row.remove("path"));
        value
    };
    // It leaves out the last lines as well.
    let lines = |report: &Value| report["peak"]["lines"].as_array().expect("lines").clone();
    assert!(!lines(&main).is_empty() && lines(&whole).starts_with(&lines(&main)));
    let without_lines = |report: &Value| {
        let mut peak = without_paths(&report["peak"]);
        peak.as_object_mut().map(|peak| peak.remove("lines"));
        peak
    };
    assert_eq!(without_lines(&main), without_lines(&whole));
    for key in ["headlines", "memory", "blind_spots"] {
        assert_eq!(without_paths(&main[key]), without_paths(&whole[key]), "{key}");
    }
    let reserved = |report: &Value| {
        list(&report["findings"]).iter().filter(|f| f["kind"] == "reserved").count()
    };
    assert_eq!((reserved(&main), reserved(&whole)), (1, 2));
    let has_proof =
        |report: &Value| list(&report["findings"]).iter().any(|f| !f["proof"].is_null());
    assert_eq!((has_proof(&main), has_proof(&whole)), (false, true));
}

#[test]
fn unrelated_files_are_no_ranks() {
    let found = all(&["recorded/t20", "recorded/t26", "recorded/t29"]);
    assert!(list(&found["findings"]).iter().all(|a| a["kind"] != "rank_skew"));
}

#[test]
fn blind_spots_are_told_once_with_their_files() {
    assert_eq!(kinds(&all(&[LEAK])), Vec::<&str>::new());
    assert_eq!(kinds(&all(&["recorded/gpt_state_only.pickle"])), ["state_only"]);
    assert_eq!(kinds(&all(&["recorded/misc/norecord.pickle"])), ["no_history"]);
    let several = json("diagnose", &[LEAK, HEALTHY, "recorded/gpt_late.pickle.gz"]);
    assert_eq!(kinds(&several), ["late_start", "few_steps"]);
    let of = |index: usize| several["blind_spots"][index]["text"].as_str().expect("a text");
    assert!(of(0).starts_with("gpt_late.pickle.gz: "), "{several}");
    assert!(of(1).ends_with("2 of 3 files in all)"), "{several}");
    let nothing = text(&["diagnose", "--all"], &["recorded/misc/norecord.pickle"]);
    assert!(nothing.contains(" in use at the end: no history was recorded"), "{nothing}");
    assert!(nothing.contains("\nnote: only the end is known"), "{nothing}");
}

/// One table once had rank 0 of one job beside ranks 1 to 3 of another.
#[test]
fn jobs_below_one_folder_are_told_apart() {
    let folder = folder("findings/jobs");
    for (job, from) in [
        ("77", format!("{SKEW}/rank0_memory_snapshot.pickle.gz")),
        ("77", format!("{SKEW}/rank2_memory_snapshot.pickle.gz")),
        ("78", OOM.to_owned()),
    ] {
        let name = if job == "78" { "rank0_oom.pickle.gz" } else { &from[SKEW.len() + 1..] };
        fs::create_dir_all(folder.join(job)).expect("a folder");
        fs::copy(test_data(&from), folder.join(job).join(name)).expect("a copy");
    }
    let path = folder.to_str().expect("UTF-8");
    let found = json("diagnose", &[path]);
    assert_eq!(kinds(&found)[0], "several_runs", "{found}");
    let text = found["blind_spots"][0]["text"].as_str().expect("a text");
    assert!(text.starts_with("Rank 0 is another process in each of 2 folders ("), "{text}");
    assert!(text.ends_with("/jobs/78"), "{text}");
    assert_eq!(found.get("ranks"), None, "job 78 has one rank");
    let one = json("diagnose", &[folder.join("77").to_str().expect("UTF-8")]);
    assert!(!kinds(&one).contains(&"several_runs"), "{one}");
    assert_eq!(list(&one["ranks"]).len(), 2, "{one}");
    // Two dumps of one process, as the recorder names their folders.
    for moment in ["oom_1", "exit"] {
        let moment = folder.join("78").join(moment);
        fs::create_dir(&moment).expect("a folder");
        fs::copy(test_data(OOM), moment.join("rank0_memory_snapshot.pickle.gz")).expect("a copy");
    }
    let one = json("diagnose", &[folder.join("78").to_str().expect("UTF-8")]);
    assert!(!kinds(&one).contains(&"several_runs"), "{one}");
}

#[test]
fn a_diagnosis_names_the_peak_and_merges_ranks() {
    let healthy = json("diagnose", &[HEALTHY]);
    assert_eq!(healthy["schema"], "vramscope.diagnose/1");
    let peak: Value =
        serde_json::from_str(&text(&["peak", "--format", "json"], &[HEALTHY])).expect("JSON");
    assert_eq!(healthy["peak"]["bytes"], peak["total"]);
    for key in ["event", "step", "phase"] {
        assert_eq!(healthy["peak"][key], peak[key], "{key}");
    }
    let by_category = healthy["peak"]["categories"].as_object().expect("an object");
    let sum: u64 = by_category.values().filter_map(Value::as_u64).sum();
    assert_eq!(peak["total"], sum);
    let first =
        |report: &Value| report["headlines"][0]["text"].as_str().expect("a text").to_owned();
    let headline = first(&healthy);
    assert!(
        headline.starts_with("Peak ") && headline.contains("copies of the logits"),
        "{headline}"
    );

    let oom = json("diagnose", &[OOM, LEAK]);
    assert!(first(&oom).starts_with("Out of memory in "), "{oom}");

    let run = json("diagnose", &["recorded/ranks_fsdp"]);
    let shared: Vec<&Value> =
        list(&run["findings"]).iter().filter(|f| f["kind"] == "reserved").collect();
    let [shared] = shared[..] else { panic!("one finding for both ranks, not {shared:?}") };
    assert!(shared["title"].as_str().is_some_and(|t| t.contains("and 1 more rank: ")), "{shared}");
}

/// A training run of 8 steps with a leak at 40 call sites of long names, and 60 failed allocations.
fn worst_case() -> Value {
    let (mut events, mut marks) = (Vec::new(), Vec::new());
    let mut time = 0u64;
    for step in 0..8u64 {
        for site in 0..40u64 {
            time += 10;
            let name = format!("{site}_<&@`*|>\u{1}").repeat(40);
            let frames: Vec<Value> = (0..6)
                .map(|depth| {
                    let file = format!("/{name}.py");
                    json!({"name": format!("{name}{depth}"), "filename": file, "line": site})
                })
                .collect();
            let address = (step * 40 + site + 1) << 32;
            events.push(json!({"action": "alloc", "addr": address, "size": (site + 1) << 22,
                "stream": 0, "time_us": time, "frames": frames}));
            if site % 5 == 0 {
                events
                    .push(json!({"action": "oom", "addr": 0, "device_free": 0, "size": 1u64 << 36,
                    "stream": 0, "time_us": time, "frames": frames}));
            }
        }
        for stage in ["START", "END"] {
            marks.push(json!({"name": "Optimizer.step#SGD.step", "stage": stage, "device": 0,
                "time_us": time + 1}));
        }
    }
    json!({"segments": [], "device_traces": [events], "external_annotations": marks})
}

#[test]
fn a_diagnosis_has_at_most_8_kilobytes() {
    let folder = std::env::temp_dir().join(format!("vramscope-diagnose-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    for rank in 0..3 {
        std::fs::write(folder.join(format!("rank{rank}.json")), worst_case().to_string())
            .expect("a file");
    }
    let worst = folder.to_string_lossy().into_owned();
    for format in ["json", "text", "markdown"] {
        for path in [worst.as_str(), LEAK, OOM, SKEW, "recorded/oom_expandable.pickle.gz"] {
            let report = text(&["diagnose", "--format", format], &[path]);
            assert!(
                !report.is_empty() && report.len() <= 8000,
                "{path} {format}: {}",
                report.len()
            );
        }
    }
    let report = json("diagnose", &[worst.as_str()]);
    let findings = list(&report["findings"]);
    assert!(!findings.is_empty() && findings.len() <= 5, "{report}");
    assert!(findings.iter().any(|f| f["kind"] == "oom"), "{report}");
    std::fs::remove_dir_all(&folder).expect("the folder is removed");
}
