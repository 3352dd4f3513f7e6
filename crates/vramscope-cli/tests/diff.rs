//! Runs `vramscope diff`: changes match each file's own totals, stacks match across checkouts, and
//! exit codes reflect `--fail-on`.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const GPT: &str = "recorded/t26/gpt_small.pickle.gz";
const AMP: &str = "recorded/gpt_amp.pickle.gz";
const LEAK: &str = "recorded/gpt_leak.pickle.gz";
const BANDS: [&str; 4] = ["requested_bytes", "active_bytes", "allocated_bytes", "reserved_bytes"];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../test_data")
}

/// Runs the program in `test_data`.
fn vramscope(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vramscope"));
    command.current_dir(root()).args(arguments).output().expect("the program runs")
}

fn json_of(arguments: &[&str]) -> Value {
    let output = vramscope(&[arguments, &["--format", "json"]].concat());
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON on standard output")
}

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or_else(|| panic!("{value} is a number"))
}

fn list(value: &Value) -> &Vec<Value> {
    value.as_array().expect("a list")
}

fn sum(rows: &Value, key: &str) -> i64 {
    list(rows).iter().map(|r| number(&r[key])).sum()
}

fn expected(name: &str) -> Value {
    let text = std::fs::read_to_string(root().join("recorded/expected.json"))
        .expect("the expected numbers");
    let all: Value = serde_json::from_str(&text).expect("JSON");
    all[name]["memory_stats"]["at_dump"]["0"].clone()
}

/// A request that failed once was left out of the prediction.
#[test]
fn other_settings_are_predicted_with_the_requests_that_failed() {
    let files =
        ["default", "expandable"].map(|name| format!("what_if/varlen_tight_{name}.pickle.gz"));
    let program = &json_of(&["diff", &files[0], &files[1]])["pairs"][0]["changes"];
    for band in ["active", "reserved"] {
        let predicted = number(&program[format!("predicted_{band}_peak")]);
        assert_eq!(predicted, number(&program[format!("{band}_peak")]), "{band}");
    }
}

/// A call site with activations and a workspace in A was one of activations.
#[test]
fn a_row_with_several_categories_is_mixed() {
    let files =
        ["gpt_flash", "gpt_flash_checkpoint_half"].map(|name| format!("twins/{name}.pickle.gz"));
    let pair = &json_of(&["diff", &files[0], &files[1]])["pairs"][0];
    let row = &pair["stacks"][0];
    assert_eq!((&row["category"], number(&row["change"])), (&json!("mixed"), -60 << 20), "{row}");
}

#[test]
fn the_tree_adds_up_to_the_peaks_and_the_stacks() {
    let pair = &json_of(&["diff", GPT, LEAK, "--limit", "3"])["pairs"][0];
    let all = &json_of(&["diff", GPT, LEAK])["pairs"][0];
    assert_eq!(pair["tree"], all["tree"], "the limit is for stacks");
    let nodes = list(&all["tree"]);
    let stacks = list(&all["stacks"]);
    // The frames of each node, the outermost first.
    let mut paths: Vec<Vec<Value>> = Vec::new();
    for (index, node) in nodes.iter().enumerate() {
        let mut path = match index {
            0 => Vec::new(),
            _ => paths[number(&node["parent"]) as usize].clone(),
        };
        assert_eq!(number(&node["change"]), number(&node["b"]) - number(&node["a"]));
        if node["file"] != "" {
            path.push(json!([node["name"], node["file"], node["line"]]));
        } else if index > 0 {
            path.push(json!(node["name"]));
        }
        for side in ["a", "b"] {
            let through = |stack: &&Value| {
                let mut frames: Vec<Value> = list(&stack["frames"])
                    .iter()
                    .rev()
                    .map(|f| json!([f["name"], f["file"], f["line"]]))
                    .collect();
                if frames.is_empty() {
                    frames.push(stack["site"].clone());
                }
                stack["of_free"] == node["of_free"] && frames.starts_with(&path) || index == 0
            };
            let of = stacks.iter().filter(through);
            assert_eq!(number(&node[side]), of.map(|s| number(&s[side])).sum::<i64>(), "{path:?}");
        }
        paths.push(path);
    }
    for side in ["a", "b"] {
        assert_eq!(nodes[0][side], all["requested_bytes"]["peak"][side]);
    }
    assert!(nodes.len() > 30, "{} nodes", nodes.len());
}

/// A temporary folder, removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("vramscope-diff-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary folder");
        Self(path)
    }

    fn text(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("a path").to_owned()
    }

    fn put(&self, name: &str, from: &str) {
        let to = self.0.join(name);
        std::fs::create_dir_all(to.parent().expect("a folder")).expect("a folder");
        std::fs::copy(root().join(from), to).expect("a copy");
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).expect("it can be removed");
    }
}

#[test]
fn diff_of_equal_files_has_no_changes() {
    for band in BANDS {
        let diff = json_of(&["diff", GPT, GPT, "--band", band]);
        let pair = &diff["pairs"][0];
        for name in BANDS {
            for when in ["start", "peak", "end"] {
                assert_eq!(pair[name][when]["change"], 0, "{name} {when}");
            }
        }
        for stack in list(&pair["stacks"]) {
            assert_eq!(
                (&stack["change"], &stack["matched"]),
                (&json!(0), &json!("same")),
                "{stack}"
            );
        }
        assert!(!list(&pair["stacks"]).is_empty());
        assert_eq!((&pair["findings"]["new"], &pair["findings"]["gone"]), (&json!([]), &json!([])));
    }
    let expressions =
        ["peak>+0%", "peak<-0%", "ooms>0", "findings>+0", "blocks>+0", "reserved.end>+0"];
    let checks: Vec<&str> = expressions.iter().flat_map(|e| ["--fail-on", e]).collect();
    assert_eq!(
        vramscope(&[&["diff", GPT, GPT], checks.as_slice()].concat()).status.code(),
        Some(0)
    );
}

#[test]
fn totals_match_memory_stats_and_stacks_add_up() {
    for b in [AMP, LEAK] {
        let stats =
            [expected("t26/gpt_small.pickle.gz"), expected(b.trim_start_matches("recorded/"))];
        for band in BANDS {
            let diff = json_of(&["diff", GPT, b, "--band", band]);
            assert_eq!(
                (&diff["schema"], &diff["band"]),
                (&json!("vramscope.diff/1"), &json!(band))
            );
            let pair = &diff["pairs"][0];
            let stat = |side: usize, when: &str| number(&stats[side][format!("{band}.all.{when}")]);
            for (when, name) in [("peak", "peak"), ("end", "current")] {
                let (before, after) = (stat(0, name), stat(1, name));
                assert_eq!(
                    pair[band][when],
                    json!({"a": before, "b": after, "change": after - before}),
                    "{b} {band}"
                );
            }
            let change = &pair[band]["peak"];
            for side in ["a", "b", "change"] {
                assert_eq!(sum(&pair["stacks"], side), number(&change[side]), "{b} {band}: stacks");
                if band != "reserved_bytes" {
                    assert_eq!(
                        sum(&pair["categories"], side),
                        number(&change[side]),
                        "{b} {band}: categories"
                    );
                }
                let blocks =
                    list(&pair["stacks"]).iter().map(|s| number(&s["blocks"][side])).sum::<i64>();
                assert_eq!(blocks, number(&pair["blocks"][side]), "{b} {band}: blocks");
            }
            let sizes: Vec<i64> =
                list(&pair["stacks"]).iter().map(|s| number(&s["change"]).abs()).collect();
            assert!(sizes.is_sorted_by(|x, y| x >= y), "the largest change is first");
        }
    }
    // Swapped inputs give the opposite sign.
    let (there, back) = (json_of(&["diff", GPT, LEAK]), json_of(&["diff", LEAK, GPT]));
    let change = |diff: &Value| number(&diff["pairs"][0]["requested_bytes"]["peak"]["change"]);
    assert_eq!(change(&there), -change(&back));
    assert_eq!(there["pairs"][0]["findings"]["new"], back["pairs"][0]["findings"]["gone"]);
}

#[test]
fn leaking_call_stack_is_the_largest_change() {
    let diff = json_of(&["diff", GPT, LEAK, "--limit", "1"]);
    let pair = &diff["pairs"][0];
    let most = &pair["stacks"][0];
    // The leaking program keeps its outputs at this line. The other program does not have the line.
    assert_eq!(
        (&most["site"], &most["a"], &most["matched"]),
        (&json!("p_gpt.py:31 train_step"), &json!(0), &json!("only_b"))
    );
    assert_eq!(list(&pair["stacks"]).len(), 1);
    assert!(number(&pair["stacks_left_out"]) > 10);
    assert_eq!(pair["findings"]["new"][0]["kind"], "growth");
}

#[test]
fn allocator_settings_are_named_as_the_cause() {
    let diff = json_of(&["diff", GPT, "recorded/gpt_max_split.pickle.gz"]);
    let pair = &diff["pairs"][0];
    // Both run the same program. `memory_stats()` says that only the reserved memory differs.
    let stats = [GPT, "recorded/gpt_max_split.pickle.gz"]
        .map(|path| expected(path.trim_start_matches("recorded/")));
    let peak = |side: usize, band: &str| number(&stats[side][format!("{band}.all.peak")]);
    assert_eq!(peak(0, "requested_bytes"), peak(1, "requested_bytes"));
    let reserved = peak(1, "reserved_bytes") - peak(0, "reserved_bytes");
    assert_eq!(reserved, 706 << 20);
    let causes = list(&pair["causes"]);
    assert_eq!(causes.len(), 1, "{causes:?}");
    let cause = causes[0].as_str().expect("a sentence");
    assert!(cause.contains("+706.0 MiB at the peak of reserved_bytes"), "{cause}");
    let keys = ["max_split_size", "garbage_collection_threshold", "roundup_power2_divisions"];
    assert!(keys.iter().all(|key| cause.contains(key)), "{cause}");
    let row = |key: &str, a: &str, b: &str| json!({"key": key, "a": a, "b": b});
    assert_eq!(
        list(&pair["settings"])[1..],
        [row(keys[0], "-1", "134217728"), row(keys[1], "0", "0.6"), row(keys[2], "0", "4")]
    );
    assert_eq!(pair["settings"][0]["key"], "PYTORCH_CUDA_ALLOC_CONF");
    // The programs ran 4 and 6 steps.
    assert_eq!(pair["steps"], json!({"a": 4, "b": 6, "change": 2}));
    // Each step of A reads two blocks, of 13,376, 14,016, 15,744 or 16,384 bytes.
    assert_eq!(pair["tokens"]["input_bytes_per_step"]["a"], 2 * 15_744);
    // Without different settings there is no cause.
    let same = json_of(&["diff", GPT, AMP]);
    assert_eq!(
        (&same["pairs"][0]["settings"], &same["pairs"][0]["causes"]),
        (&json!([]), &json!([]))
    );
}

#[test]
fn expressions_of_a_call_stack_are_checked_at_the_peak_of_b() {
    // The leaking line keeps one block per step, and only in the second program.
    let diff = json_of(&["diff", GPT, LEAK, "--limit", "1"]);
    let most = &diff["pairs"][0]["stacks"][0];
    assert_eq!(most["site"], "p_gpt.py:31 train_step");
    let (blocks, bytes) = (number(&most["blocks"]["b"]), number(&most["b"]));
    let code = |expression: String| {
        vramscope(&["diff", GPT, LEAK, "--fail-on", &expression]).status.code()
    };
    for (expression, expected) in [
        (format!("site:p_gpt.py:31 train_step blocks>{blocks}"), 0),
        (format!("site:p_gpt.py:31 train_step blocks>={blocks}"), 1),
        (format!("site:p_gpt.py:31 bytes>{bytes}"), 0),
        (format!("site:p_gpt.py:31 bytes>{}B", bytes - 1), 1),
        ("site:p_gpt.py:31 bytes>+1GiB".to_owned(), 0),
        ("site:p_gpt.py:31 bytes>+1MiB".to_owned(), 1),
        // A frame that is not the call site.
        ("site:<module> blocks>2".to_owned(), 1),
        ("site:<module> bytes<-1%".to_owned(), 0),
        ("site:nothing blocks>0".to_owned(), 0),
    ] {
        assert_eq!(code(expression.clone()), Some(expected), "{expression}");
    }
    let output = vramscope(&["diff", GPT, LEAK, "--fail-on", "site:nothing blocks>0"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("no call stack contains this text"));
    let two = ["diff", GPT, LEAK, "--fail-on", "site:p_gpt.py:31 blocks>0"];
    let text = String::from_utf8_lossy(&vramscope(&two).stdout).into_owned();
    let held = format!(
        "blocks of call stacks with \"p_gpt.py:31\" at the peak: 0 to {blocks} (+{blocks}, new)"
    );
    assert!(text.contains(&held), "{text}");
}

/// A snapshot with one allocation per stack, of the stack's bytes.
fn snapshot_of(stacks: &[Value], frame: impl Fn(&Value) -> Value) -> Value {
    let mut address = 0x1000;
    let allocs = stacks.iter().map(|stack| {
        let size = stack["bytes"].as_u64().expect("a number");
        let frames: Vec<Value> = list(&stack["frames"]).iter().map(&frame).collect();
        let mut event = json!({"action": "alloc", "addr": address, "size": size, "stream": 0});
        event["frames"] = frames.into();
        address += size.next_multiple_of(512);
        event
    });
    json!({"segments": [], "device_traces": [allocs.collect::<Vec<Value>>()]})
}

#[test]
fn stacks_match_after_lines_and_folders_change() {
    let peak = json_of(&["peak", GPT]);
    let moved = snapshot_of(list(&peak["stacks"]), |f| {
        let (file, line) =
            (f["file"].as_str().expect("a file"), f["line"].as_u64().expect("a line"));
        let file = file.replace("/opt/venv/lib/python3.11/", "/home/me/env/lib/python3.12/");
        let file = file.replace("/train/", "/home/me/checkout/train/");
        // Simulates seven lines inserted at the top of every file.
        json!({"name": f["name"], "filename": file, "line": if line == 0 { 0 } else { line + 7 }})
    });
    let folder = Folder::new("moved");
    let path = folder.text("moved.json");
    std::fs::write(&path, moved.to_string()).expect("a file");
    let diff = json_of(&["diff", GPT, &path]);
    let pair = &diff["pairs"][0];
    assert_eq!(pair["requested_bytes"]["peak"]["change"], 0);
    let stacks = list(&pair["stacks"]);
    assert_eq!(stacks.len(), list(&peak["stacks"]).len());
    let mut sites = Vec::new();
    for stack in stacks {
        assert_eq!(stack["change"], 0, "{stack}");
        let lines = list(&stack["frames"]).iter().any(|f| number(&f["line"]) > 0);
        assert_eq!(stack["matched"], if lines { "moved" } else { "same" }, "{stack}");
        sites.push(stack["site"].as_str().expect("a site"));
    }
    assert!(sites.iter().any(|s| s.starts_with("gpt.py:") && s.ends_with(" forward")), "{sites:?}");
}

#[test]
fn exit_code_reflects_expression_usage_and_input() {
    let code = |arguments: &[&str]| vramscope(&[&["diff"], arguments].concat()).status.code();
    // The leak's peak is between 20 and 21 % higher.
    assert_eq!(code(&[GPT, LEAK, "--fail-on", "peak>+20%"]), Some(1));
    assert_eq!(code(&[GPT, LEAK, "--fail-on", "peak>+21%"]), Some(0));
    assert_eq!(
        code(&[GPT, LEAK, "--fail-on", "peak>+21%", "--fail-on", "requested.end>+500MiB"]),
        Some(1)
    );
    assert_eq!(code(&[GPT, AMP, "--fail-on", "peak<-19%"]), Some(1));
    assert_eq!(code(&[GPT, AMP, "--fail-on", "reserved>2GiB"]), Some(1));
    assert_eq!(code(&[GPT, AMP, "--fail-on", "reserved>3GiB"]), Some(0));
    assert_eq!(code(&[GPT, "recorded/oom_expandable.pickle.gz", "--fail-on", "ooms>4"]), Some(1));
    assert_eq!(code(&[GPT, "recorded/oom_expandable.pickle.gz", "--fail-on", "ooms>5"]), Some(0));
    assert_eq!(code(&[GPT, LEAK, "--fail-on", "findings>+0"]), Some(1));
    for wrong in ["peak", "peek>1", "peak>2%", "peak>+1GB"] {
        let output = vramscope(&["diff", GPT, AMP, "--fail-on", wrong]);
        assert_eq!(output.status.code(), Some(64), "{wrong}");
        assert!(output.stdout.is_empty(), "no file is read");
        assert!(String::from_utf8_lossy(&output.stderr).contains(wrong));
    }
    assert_eq!(code(&[GPT, "damaged/truncated.pickle"]), Some(2));
    assert_eq!(code(&[GPT, "no/such.pickle"]), Some(2));
    assert_eq!(code(&[GPT]), Some(64));
    assert_eq!(code(&[GPT, AMP, "--device", "7"]), Some(64));
}

#[test]
fn failed_check_is_reported_with_values() {
    let output = vramscope(&[
        "diff",
        GPT,
        LEAK,
        "--fail-on",
        "peak>+2%",
        "--fail-on",
        "ooms>0",
        "--format",
        "json",
    ]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        stderr.contains("peak>+2% holds: allocated_bytes peak: 2.17 GiB to 2.61 GiB"),
        "{stderr}"
    );
    assert!(!stderr.contains("ooms"));
    let diff: Value =
        serde_json::from_slice(&output.stdout).expect("JSON in spite of a failed check");
    let holds: Vec<&Value> = list(&diff["checks"]).iter().map(|c| &c["holds"]).collect();
    assert_eq!(holds, [true, false]);
    let markdown = vramscope(&[
        "diff",
        GPT,
        LEAK,
        "--fail-on",
        "ooms>0",
        "--fail-on",
        "peak>+2%",
        "--format",
        "markdown",
    ]);
    let text = String::from_utf8(markdown.stdout).expect("UTF-8");
    let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part} in {text}"));
    assert!(
        at(":x: `peak>+2%`") < at("`ooms>0`") && at("`ooms>0`") < at("**requested_bytes peak**"),
        "failed first"
    );
    // Every row of a table has as many cells as the heading.
    for table in text.split("\n\n").filter(|t| t.starts_with('|')) {
        let cells: Vec<usize> = table.lines().map(|l| l.matches('|').count()).collect();
        assert!(cells.iter().all(|&n| n == cells[0]), "{table}");
    }
}

#[test]
fn folders_are_paired_by_name_then_by_rank() {
    let (before, after) = (Folder::new("before"), Folder::new("after"));
    before.put("iteration_1/rank3_memory_snapshot.pickle.gz", GPT);
    before.put("iteration_1/rank2_memory_snapshot.pickle.gz", GPT);
    before.put("iteration_1/rank7_memory_snapshot.pickle.gz", GPT);
    after.put("other/dump_rank2.pickle.gz", GPT);
    after.put("other/dump_rank3.pickle.gz", LEAK);
    let (a, b) = (before.0.to_str().expect("a path"), after.0.to_str().expect("a path"));
    let diff = json_of(&["diff", a, b]);
    let ranks: Vec<i64> = list(&diff["pairs"]).iter().map(|p| number(&p["rank"])).collect();
    assert_eq!(ranks, [2, 3]);
    assert!(
        diff["pairs"][0]["stacks"].is_null() && diff["pairs"][1]["stacks"].is_array(),
        "stacks only for the pair that changes most"
    );
    assert_eq!(diff["pairs"][0]["allocated_bytes"]["peak"]["change"], 0);
    let alone: Vec<&Value> = list(&diff["only_a"]).iter().collect();
    assert!(
        alone.len() == 1
            && alone[0].as_str().is_some_and(
                |p| Path::new(p).ends_with("iteration_1/rank7_memory_snapshot.pickle.gz")
            )
    );
    assert_eq!(diff["only_b"], json!([]));
    let failed = vramscope(&["diff", a, b, "--fail-on", "peak>+2%"]);
    assert_eq!(failed.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&failed.stderr).contains("rank 3: allocated_bytes peak"));
    let text = String::from_utf8(failed.stdout).expect("UTF-8");
    assert!(text.contains("rank 2 ") && text.contains("is only in"), "{text}");
    // Files with equal names are paired first.
    let same = json_of(&["diff", a, a]);
    assert_eq!((list(&same["pairs"]).len(), &same["only_a"]), (3, &json!([])));
    // With an unreadable file, the other pairs are still compared.
    after.put("dump_rank9.pickle", "damaged/truncated.pickle");
    let output = vramscope(&["diff", a, b, "--format", "json"]);
    assert_eq!(output.status.code(), Some(2));
    let diff: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(list(&diff["pairs"]).len(), 2);
}
