//! Tests of all commands together: the help, paths in place of a command, folders in place of a
//! file, ids before and after the file, texts that fit the terminal.

use crate::common::{folder, test_data, vramscope};
use serde_json::Value;
use std::fs;
use std::process::{Command, Output, Stdio};

const LEAK: &str = "recorded/gpt_leak.pickle.gz";
const OOM: &str = "recorded/oom_expandable.pickle.gz";
const RANKS: &str = "findings/ranks_fsdp2_skew";

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn json(arguments: &[&str], paths: &[&str]) -> Value {
    let output = vramscope(&[arguments, &["--format", "json"]].concat(), paths);
    serde_json::from_str(&text(&output)).expect("JSON")
}

#[test]
fn help_is_one_screen_and_names_commands_that_exist() {
    let help = text(&vramscope(&["--help"], &[]));
    assert_eq!(help, text(&vramscope(&["-h"], &[])));
    assert_eq!(help, text(&vramscope(&["help"], &[])));
    assert!(help.lines().count() <= 40, "{help}");
    assert!(help.lines().all(|line| line.chars().count() <= 80), "{help}");
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands: Vec<&str> = commands
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(commands.len() >= 13, "{commands:?}");
    let all = text(&vramscope(&["help", "--all"], &[]));
    for command in commands {
        assert!(all.contains(&format!("\n  {command} ")), "{command}");
        let of = text(&vramscope(&["help", command], &[]));
        assert!(of.contains(&format!("Usage: vramscope {command}")), "{of}");
    }
    for plumbing in ["summary", "state", "blocks", "events", "segments", "sql", "schema", "skill"] {
        assert!(!help.contains(&format!("\n  {plumbing} ")), "{plumbing}");
        assert!(all.contains(&format!("\n  {plumbing} ")), "{plumbing}");
    }
    let none = vramscope(&[], &[]);
    assert_eq!((none.status.code(), errors(&none)), (Some(64), help));
    assert_eq!(vramscope(&["help", "flame"], &[]).status.code(), Some(64));
    assert!(text(&vramscope(&["skill"], &[])).contains("vramscope diagnose"));
}

#[test]
fn a_path_in_place_of_a_command_is_diagnosed() {
    assert_eq!(vramscope(&[], &[LEAK]), vramscope(&["diagnose"], &[LEAK]));
    let path = test_data(LEAK).to_string_lossy().into_owned();
    let given = vramscope(&[&path, "--format", "json"], &[]);
    assert_eq!(given, vramscope(&["diagnose", &path, "--format", "json"], &[]));
    let missing = vramscope(&["absent.pickle"], &[]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(errors(&missing).contains("absent.pickle: cannot read the file"));
    let near = vramscope(&["diagnos"], &[]);
    assert_eq!(near.status.code(), Some(64));
    assert!(errors(&near).contains("diagnose"), "{}", errors(&near));
}

#[test]
fn an_id_may_stand_before_or_after_the_file() {
    let path = test_data(LEAK).to_string_lossy().into_owned();
    let before = text(&vramscope(&["show", "site:gpt.py:43", &path], &[]));
    assert_eq!(before, text(&vramscope(&["show", &path, "site:gpt.py:43"], &[])));
    // The ids of rows are ids that `show` takes.
    let peak = text(&vramscope(&["peak", &path, "--limit", "5"], &[]));
    let id = |text: &str, start: &str| -> String {
        let words = text.split_whitespace().find(|word| word.starts_with(start));
        words.unwrap_or_else(|| panic!("no {start}: {text}")).to_owned()
    };
    let stack = id(&peak, "stack:");
    let of_stack = json(&["show", &stack], &[LEAK]);
    let whole = json(&["peak"], &[LEAK]);
    let row = whole["stacks"].as_array().expect("a list").iter();
    let mut row = row.filter(|row| row["id"].as_str().is_some_and(|id| id.starts_with(&stack)));
    assert_eq!(of_stack["at_peak"]["bytes"], row.next().expect("a row")["bytes"]);
    let blocks = text(&vramscope(&["blocks", &path, "--limit", "2"], &[]));
    let block = json(&["show", &id(&blocks, "0:0x")], &[LEAK]);
    assert_eq!((&block["kind"], &block["total"]), (&"block".into(), &1.into()));
}

#[test]
fn a_folder_stands_for_its_likely_file() {
    let folder = folder("command_set/likely");
    let copy = |from: &str, to: &str| fs::copy(test_data(from), folder.join(to)).expect("a copy");
    copy(LEAK, "rank0.pickle.gz");
    let path = folder.to_string_lossy().into_owned();
    let only = vramscope(&["peak", &path], &[]);
    assert!(errors(&only).contains("rank0.pickle.gz"), "{}", errors(&only));
    assert!(text(&only).contains("rank0.pickle.gz"));
    copy("recorded/t26/gpt_small.pickle.gz", "rank1.pickle.gz");
    let highest = vramscope(&["peak", &path], &[]);
    assert!(errors(&highest).contains("rank0.pickle.gz, of 2 snapshots: it has the highest peak"));
    copy(OOM, "rank2.pickle.gz");
    let failed = vramscope(&["steps", &path], &[]);
    assert!(errors(&failed).contains("rank2.pickle.gz, of 3 snapshots: it ran out of memory"));
    let empty = vramscope(&["peak", &folder.join("none").to_string_lossy()], &[]);
    assert_eq!(empty.status.code(), Some(2));
    fs::remove_dir_all(&folder).expect("the folder can be removed");
}

#[test]
fn moments_have_names() {
    let at = |at: &str| json(&["peak", "--at", at], &[OOM]);
    let state = |at: &str| json(&["state", "--at", at], &[OOM]);
    for moment in ["peak", "end", "oom", "#1,200", "1200", "step:1"] {
        assert_eq!(at(moment)["total"], state(moment)["requested_bytes"], "{moment}");
        assert_eq!(at(moment)["event"], state(moment)["event"], "{moment}");
        let tree = json(&["peak", "--tree", "--at", moment], &[OOM]);
        assert_eq!(tree["total"], state(moment)["requested_bytes"], "{moment}");
    }
    assert_eq!(at("#1200"), at("1200"));
    let steps = json(&["steps"], &[OOM]);
    assert_eq!(at("step:1")["event"], steps["steps"][1]["peak_event"]);
    assert_eq!(at("step:1")["total"], steps["steps"][1]["peak_bytes"]);
    let summary = json(&["summary"], &[OOM]);
    let ooms = summary["files"][0]["devices"][0]["ooms"].as_array().expect("a list").clone();
    assert_eq!(at("oom")["event"], ooms.last().expect("an OOM")["event"]);
    for (moment, why) in [("step:999", "there is no step 999"), ("soon", "expected start")] {
        let wrong = vramscope(&["peak", "--at", moment], &[OOM]);
        assert_eq!(wrong.status.code(), Some(64), "{moment}");
        assert!(errors(&wrong).contains(why), "{}", errors(&wrong));
    }
    let none = vramscope(&["state", "--at", "oom"], &[LEAK]);
    assert_eq!(none.status.code(), Some(64));
    assert!(errors(&none).contains("no allocation failed"));
}

#[test]
fn two_moments_are_compared_by_diff_and_by_state() {
    let of_diff = json(&["diff", "--from", "100", "--to", "peak"], &[LEAK]);
    assert_eq!(of_diff, json(&["state", "--from", "100", "--to", "peak"], &[LEAK]));
    assert_eq!(vramscope(&["diff"], &[LEAK]).status.code(), Some(64));
    assert_eq!(vramscope(&["diff", "--from", "1"], &[LEAK, OOM]).status.code(), Some(64));
}

#[test]
fn rows_by_stream_and_pool_add_up() {
    for file in ["recorded/t26/pools.pickle", LEAK, OOM] {
        let peak = json(&["peak"], &[file]);
        let sum = |key: &str, field: &str| -> u64 {
            let rows = peak[key].as_array().expect("a list").iter();
            rows.map(|row| row[field].as_u64().expect("a number")).sum()
        };
        for key in ["streams", "pools", "sites", "categories"] {
            assert_eq!(
                sum(key, "bytes"),
                peak["total"].as_u64().expect("a number"),
                "{file} {key}"
            );
        }
        assert_eq!(sum("pools", "blocks"), sum("streams", "blocks"), "{file}");
    }
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    for arguments in [&["blocks", "--format", "json"][..], &["blocks", "--limit", "5000"]] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_vramscope"))
            .args(arguments)
            .arg(test_data(LEAK))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program runs");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("it ends");
        assert_eq!((output.status.code(), errors(&output)), (Some(0), String::new()));
    }
}

#[test]
fn a_trace_that_is_missing_leaves_no_file() {
    let folder = folder("command_set/trace");
    let to = folder.join("merged.json.gz");
    let to = to.to_str().expect("UTF-8");
    let arguments = ["export", "--as", "perfetto", "--trace", "absent.json", "-o", to];
    let output = vramscope(&arguments, &[LEAK]);
    assert_eq!(output.status.code(), Some(64));
    assert!(errors(&output).contains("--trace absent.json"), "{}", errors(&output));
    assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 0);
    fs::remove_dir_all(&folder).expect("the folder can be removed");
}

#[test]
fn an_index_is_compared() {
    let folder = folder("command_set/index");
    let index = folder.join("run.vramscope");
    let index = index.to_str().expect("UTF-8");
    text(&vramscope(&["export", "--as", "index", "-o", index], &[RANKS]));
    let of_files = json(&["ranks"], &[RANKS]);
    assert_eq!(json(&["ranks", index], &[]), of_files);
    assert_eq!(of_files["ranks"].as_array().map(Vec::len), Some(4));
    assert_eq!(of_files["runs"][0]["columns"].as_array().map(Vec::len), Some(4));
    assert_eq!(
        text(&vramscope(&["ranks", index, "--limit", "2"], &[])),
        text(&vramscope(&["ranks", "--limit", "2"], &[RANKS]))
    );
    for option in [["--window", "0..9"], ["--rules", "absent"]] {
        let refused = vramscope(&[&["ranks", index], &option[..]].concat(), &[]);
        assert_eq!(refused.status.code(), Some(64), "{option:?}");
        assert!(errors(&refused).contains("do not apply"), "{}", errors(&refused));
    }
    fs::remove_dir_all(&folder).expect("the folder can be removed");
}

#[test]
fn record_without_python_says_so() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vramscope"));
    let output = command.args(["record", "-o", "x", "a.py"]).env("PATH", "").output();
    let output = output.expect("the program runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(errors(&output).contains("no `python` or `python3`"), "{}", errors(&output));
}

#[test]
fn a_peak_has_at_most_twenty_lines() {
    for file in [LEAK, OOM, "recorded/t26/gpt_small.pickle.gz"] {
        let path = test_data(file).to_string_lossy().into_owned();
        for by in ["stack", "site", "line"] {
            let text = text(&vramscope(&["peak", &path, "--by", by], &[]));
            assert!(text.lines().count() <= 20, "{by}: {text}");
            assert!(text.lines().take(8).any(|line| line.contains("gpt.py")), "{by}: {text}");
        }
    }
}
