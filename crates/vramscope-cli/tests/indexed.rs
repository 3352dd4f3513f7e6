//! `vramscope diagnose` on an index: what a folder of the same snapshots says, from their cards.

use crate::common::{folder, test_data, vramscope};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use vramscope_testgen::{Fleet, FleetOptions, Generator, Options};

const OOM: &str = "recorded/oom_expandable.pickle.gz";
const HEALTHY: &str = "recorded/t26/gpt_small.pickle.gz";
const RANKS: &str = "findings/ranks_fsdp2_skew";

fn run(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vramscope"));
    command.args(arguments).current_dir(folder).env("COLUMNS", "100").output().expect("it runs")
}

fn text(folder: &Path, arguments: &[&str]) -> String {
    let output = run(folder, arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn json(folder: &Path, arguments: &[&str]) -> Value {
    let all = [arguments, &["--format", "json"]].concat();
    serde_json::from_str(&text(folder, &all)).expect("JSON")
}

/// A run with one rank that ran out of memory, and its index.
fn run_with_oom(name: &str) -> PathBuf {
    let folder = folder(&format!("indexed/{name}"));
    fs::create_dir(folder.join("run")).expect("a new folder");
    for (rank, of) in [HEALTHY, HEALTHY, OOM, HEALTHY].into_iter().enumerate() {
        let to = folder.join(format!("run/rank{rank}.pickle.gz"));
        fs::copy(test_data(of), to).expect("a copy");
    }
    text(&folder, &["export", "run", "--as", "index", "-o", "run.vramscope"]);
    folder
}

#[test]
fn the_guilty_rank_is_named_with_its_memory_and_its_file() {
    let folder = run_with_oom("oom");
    let said = text(&folder, &["diagnose", "run.vramscope"]);
    assert!(said.starts_with("error[oom]: rank 2: out of memory in backward of step 2"), "{said}");
    for part in [
        "--> rank2.pickle.gz #7,386",
        "= 5.51 GiB for PyTorch  [",
        "[RRRR] asked",
        "2      5.46 GiB  5.51 GiB  4.89 GiB          <- error",
        "0-1,3  2.17 GiB  2.73 GiB  851.1 MiB",
        "help: vramscope diagnose run/rank2.pickle.gz",
        "help: vramscope ranks run.vramscope",
        "note: no change was replayed: an index has no snapshots",
        "note: growth was not looked for: 4 whole steps, 5 are needed",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(said.lines().all(|line| line.chars().count() <= 100), "{said}");
    let markdown = text(&folder, &["diagnose", "run.vramscope", "--format", "markdown"]);
    assert!(markdown.contains("| 2 | 5.46 GiB |"), "{markdown}");
}

#[test]
fn the_answer_is_that_of_the_snapshots_but_for_replays() {
    let folder = run_with_oom("equal");
    let skew = test_data(RANKS).to_string_lossy().into_owned();
    text(&folder, &["export", &skew, "--as", "index", "-o", "skew.vramscope"]);
    for (index, of) in [("run.vramscope", "run"), ("skew.vramscope", skew.as_str())] {
        // All findings, which are not cut to a length.
        let [index, of] = [index, of].map(|path| json(&folder, &["diagnose", "--all", path]));
        let keys = |answer: &Value| -> Vec<String> {
            answer.as_object().expect("an object").keys().cloned().collect()
        };
        assert_eq!(keys(&index), keys(&of));
        for key in ["schema", "ranks", "peak", "headlines_omitted", "errors"] {
            assert_eq!(index[key], of[key], "{key}");
        }
        let findings = |answer: &Value| answer["findings"].as_array().expect("a list").clone();
        assert_eq!(findings(&index).len(), findings(&of).len());
        for (index, of) in findings(&index).iter().zip(&findings(&of)) {
            for key in ["id", "kind", "severity", "path", "bytes", "sites", "step", "why"] {
                assert_eq!(index[key], of[key], "{key}");
            }
            assert_eq!(index["place"]["site"], of["place"]["site"]);
        }
        let spots = index["blind_spots"].as_array().expect("a list");
        assert_eq!(spots[0]["kind"], "index");
        assert_eq!(spots[1..], of["blind_spots"].as_array().expect("a list")[..]);
    }
    let memory = |path: &str| json(&folder, &["diagnose", path])["memory"].clone();
    assert_eq!(memory("run.vramscope"), memory("run"));
    // A healthy run is healthy.
    fs::remove_file(folder.join("run/rank2.pickle.gz")).expect("it is there");
    text(&folder, &["export", "run", "--as", "index", "-o", "run.vramscope"]);
    let headlines = |path: &str| json(&folder, &["diagnose", path])["headlines"].clone();
    assert_eq!(headlines("run.vramscope"), headlines("run"));
    let said = text(&folder, &["diagnose", "run.vramscope"]);
    assert!(said.starts_with("Peak "), "{said}");
}

#[test]
fn conditions_hold_as_for_the_snapshots() {
    let folder = run_with_oom("conditions");
    for condition in [
        "peak>3GiB",
        "requested.start>1MiB",
        "reserved.end>5GiB",
        "active>5GiB",
        "blocks>900",
        "ooms>0",
        "findings>1",
        "findings.high>1",
        "findings.low>0",
        "findings.medium>0",
    ] {
        let [index, of] = ["run.vramscope", "run"].map(|path| {
            run(&folder, &["diagnose", path, "--format", "json", "--fail-on", condition])
        });
        assert_eq!(index.status.code(), of.status.code(), "{condition}");
        assert_eq!(index.stderr, of.stderr, "{condition}");
    }
    let site = run(&folder, &["diagnose", "run.vramscope", "--fail-on", "site:gpt.py>1GiB"]);
    assert_eq!(site.status.code(), Some(64));
    let why = String::from_utf8_lossy(&site.stderr).into_owned();
    assert!(why.contains("an index has no call stacks") && why.contains("snapshots"), "{why}");
    let small =
        text(&folder, &["diagnose", "run.vramscope", "--format", "json", "--max-bytes", "2500"]);
    assert!(small.len() <= 2500, "{}", small.len());
}

#[test]
fn iterations_of_many_ranks_are_one_answer_of_a_page() {
    let folder = folder("indexed/fleet");
    let options = Options { events: 2000, live: 300, seed: 1, frames: 8 };
    let generator = Generator::new(&options).expect("options");
    let of = FleetOptions { ranks: 24, stages: 3, skewed: 1, leaking: 1, seed: 1 };
    let fleet = Fleet::new(of).expect("options");
    for iteration in 0..3 {
        let below = folder.join(format!("job/iteration_{}", iteration * 100));
        fs::create_dir_all(&below).expect("a folder");
        for rank in 0..24 {
            let file = fs::File::create(below.join(format!("rank{rank}.pickle")));
            let file = file.expect("a file");
            generator.write_of(&fleet, rank, iteration, file).expect("a snapshot");
        }
    }
    text(&folder, &["export", "job", "--as", "index", "-o", "job.vramscope"]);
    let [leaking] = fleet.leaking()[..] else { panic!("one rank leaks") };
    let said = text(&folder, &["diagnose", "job.vramscope"]);
    assert!(said.lines().count() <= 40, "{said}");
    assert!(said.lines().all(|line| line.chars().count() <= 100), "{said}");
    assert_eq!(said.matches("warning[growth]").count(), 1, "{said}");
    assert!(said.starts_with(&format!("warning[growth]: rank {leaking}: ")), "{said}");
    assert!(said.contains(&format!("rank {leaking}: 3 iterations: ")), "{said}");
    assert!(said.contains("and 2 more dumps") && said.contains("The other 23 did not grow"));
    let answer = json(&folder, &["diagnose", "job.vramscope"]);
    assert_eq!(answer["processes"][0]["evidence"], "names");
    // A folder of the same snapshots is no longer.
    let said = text(&folder, &["diagnose", "job"]);
    assert!(said.lines().count() <= 40, "{said}");
    assert_eq!(said.matches("warning[growth]").count(), 1, "{said}");
    fs::remove_dir_all(&folder).expect("the folder can be removed");
}

#[test]
fn other_commands_name_those_that_read_an_index() {
    let folder = folder("indexed/others");
    let rank = test_data(&format!("{RANKS}/rank0_memory_snapshot.pickle.gz"));
    let rank = rank.to_str().expect("UTF-8");
    text(&folder, &["export", rank, "--as", "index", "-o", "run.vramscope"]);
    for words in [
        &["peak", "run.vramscope"][..],
        &["steps", "run.vramscope"],
        &["source", "run.vramscope"],
        &["info", "run.vramscope"],
        &["summary", rank, "run.vramscope"],
        &["state", "run.vramscope"],
        &["blocks", "run.vramscope"],
        &["segments", "run.vramscope"],
        &["events", "run.vramscope"],
        &["what-if", "run.vramscope"],
        &["show", "run.vramscope", ">1B"],
        &["show", ">1B", "run.vramscope"],
        &["diff", rank, "run.vramscope"],
        &["export", "run.vramscope", "--as", "csv"],
    ] {
        let refused = run(&folder, words);
        assert_eq!(refused.status.code(), Some(64), "{words:?}");
        let why = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(why.contains("`vramscope diagnose` and `vramscope ranks`"), "{words:?}: {why}");
    }
    let window = run(&folder, &["diagnose", "run.vramscope", "--window", "0..9"]);
    assert_eq!(window.status.code(), Some(64));
}

#[test]
fn damaged_and_older_indexes_are_told() {
    let folder = folder("indexed/older");
    fs::write(folder.join("none.vramscope"), "{}\n").expect("a file");
    let refused = run(&folder, &["diagnose", "none.vramscope"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("its schema is"));
    assert_eq!(run(&folder, &["diagnose", "absent.vramscope"]).status.code(), Some(2));
    // An index of the version before has no part `told`.
    let oom = test_data(OOM);
    let made = ["export", oom.to_str().expect("UTF-8"), "--as", "index", "-o", "a.vramscope"];
    text(&folder, &made);
    let mut lines = crate::index::lines(&folder.join("a.vramscope"));
    lines[1].as_object_mut().expect("a card").remove("told").expect("it is there");
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    fs::write(folder.join("old.vramscope"), lines.join("\n") + "\n").expect("a file");
    let said = text(&folder, &["diagnose", "old.vramscope"]);
    assert!(said.starts_with("error[oom]: out of memory"), "{said}");
    assert!(said.contains("write it again"), "{said}");
    assert_eq!(vramscope(&["ranks"], &[]).status.code(), Some(64));
    text(&folder, &["ranks", "old.vramscope"]);
}
