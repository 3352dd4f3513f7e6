//! Runs every command on recordings. Output must add up, and must match numbers from other sources:
//! the allocator's `memory_stats()` and `scripts/oracle.py`.

use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output};

fn test_data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../test_data").join(name)
}

fn vramscope(arguments: &[&str]) -> Output {
    run(arguments, false)
}

/// Runs the program. `colors` are those of a terminal.
fn run(arguments: &[&str], colors: bool) -> Output {
    // An argument that is a path inside test_data becomes that file.
    let resolve = |a: &&str| {
        let path = test_data(a);
        if a.contains('/') && path.exists() { path.into_os_string() } else { (*a).into() }
    };
    let mut command = Command::new(env!("CARGO_BIN_EXE_vramscope"));
    command.env("COLUMNS", "400").args(arguments.iter().map(resolve));
    if colors {
        command.env("CLICOLOR_FORCE", "1");
    }
    command.output().expect("the program runs")
}

fn text(arguments: &[&str]) -> String {
    let output = vramscope(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn json(arguments: &[&str]) -> Value {
    let all = [arguments, &["--format", "json"]].concat();
    serde_json::from_str(&text(&all)).expect("JSON on standard output")
}

fn sum<'a>(rows: impl IntoIterator<Item = &'a Value>, key: &str) -> u64 {
    rows.into_iter().map(|r| r[key].as_u64().expect("a number")).sum()
}

fn list(value: &Value) -> &Vec<Value> {
    value.as_array().expect("a list")
}

/// The frames of a row, by the index of its call stack.
fn stack_of<'a>(report: &'a Value, row: &Value) -> &'a Value {
    let index = row["stack"].as_u64().expect("an index");
    list(&report["stacks"]).get(index as usize).expect("a stack")
}

const GPT: &str = "recorded/t26/gpt_small.pickle.gz";

/// Expected numbers of a recording: `memory_stats()` and the output of `scripts/oracle.py`.
fn expected(name: &str) -> Value {
    let text =
        std::fs::read_to_string(test_data("recorded/expected.json")).expect("the expected numbers");
    let all: Value = serde_json::from_str(&text).expect("JSON");
    all[name].clone()
}

#[test]
fn peak_of_every_band_matches_memory_stats_and_sum_of_stacks() {
    let stats = expected("t26/gpt_small.pickle.gz")["memory_stats"]["at_dump"]["0"].clone();
    for band in ["requested_bytes", "active_bytes", "allocated_bytes", "reserved_bytes"] {
        let peak = json(&["peak", GPT, "--band", band]);
        assert_eq!(peak["schema"], "vramscope.peak/1");
        assert_eq!(peak["total"], stats[format!("{band}.all.peak")], "{band}");
        assert_eq!(
            sum(list(&peak["stacks"]), "bytes"),
            peak["total"].as_u64().expect("a number"),
            "{band}"
        );
        assert_eq!(
            sum(list(&peak["stacks"]), "blocks"),
            peak["blocks"].as_u64().expect("a number"),
            "{band}"
        );
        if band != "reserved_bytes" {
            assert_eq!(
                sum(list(&peak["categories"]), "bytes"),
                peak["total"].as_u64().expect("a number"),
                "{band}"
            );
        }
        assert_eq!(peak["peaks"][0]["bytes"], peak["total"], "{band}");
        // Every recorded stack has one innermost frame. An empty stack has none.
        let with_stack = list(&peak["stacks"]).iter().filter(|s| !list(&s["frames"]).is_empty());
        assert_eq!(sum(list(&peak["frames"]), "exclusive"), sum(with_stack, "bytes"), "{band}");
    }
    let oracle = &expected("t26/gpt_small.pickle.gz")["oracle"]["devices"][0];
    let peak = json(&["peak", GPT]);
    assert_eq!(peak["event"], oracle["active"]["peak_event"]);
    let largest: Vec<&Value> = list(&peak["stacks"]).iter().take(5).map(|s| &s["bytes"]).collect();
    assert_eq!(largest, list(&oracle["peak_top_stack_bytes"]).iter().collect::<Vec<_>>());
    let top = json(&["peak", GPT, "--limit", "3"]);
    assert_eq!(list(&top["stacks"]).len(), 3);
    assert_eq!(top["total"], peak["total"]);
}

#[test]
fn call_stacks_with_equal_site_have_distinct_labels() {
    const ALL: &str = "recorded/t29/gpt_small_all.pickle.gz";
    let sites = |arguments: &[&str]| -> Vec<String> {
        let text = text(arguments);
        let column = |line: &str| line.find("call site");
        let (heading, column) = text
            .lines()
            .enumerate()
            .find_map(|(i, line)| Some((i, column(line)?)))
            .expect("a table");
        let rows = text
            .lines()
            .skip(heading + 1)
            .take_while(|line| !line.is_empty() && !line.starts_with("  and "));
        let site = |line: &str| -> String { line.chars().skip(column).collect() };
        rows.map(|line| site(line).split("  ").next().unwrap_or_default().to_owned()).collect()
    };
    let of_peak = ["peak", ALL, "--limit", "1000"];
    for arguments in [
        &of_peak[..],
        &["peak", GPT, "--limit", "20"],
        &["diff", GPT, ALL],
        &["diff", ALL, GPT, "--band", "allocated_bytes"],
    ] {
        let mut sites = sites(arguments);
        assert!(sites.len() > 10, "{sites:?}");
        assert!(sites.iter().any(|site| site.contains(" > ")), "{sites:?}");
        sites.sort();
        assert!(sites.windows(2).all(|pair| pair[0] != pair[1]), "{arguments:?}: {sites:?}");
    }
    // Several stacks share the site gpt.py:26. The label adds a function that only one of them has.
    let label = "gpt.py:26 forward > activation.py:816 forward".to_owned();
    assert!(sites(&of_peak).contains(&label));
    let markdown = text(&["diff", GPT, ALL, "--format", "markdown"]);
    assert!(markdown.contains(&format!("| `{label}` |")), "{markdown}");
}

#[test]
fn state_at_end_matches_memory_stats() {
    let stats = expected("t26/gpt_small.pickle.gz")["memory_stats"]["at_dump"]["0"].clone();
    let state = json(&["state", GPT, "--at", "end"]);
    assert_eq!(state["schema"], "vramscope.state/1");
    for band in ["requested_bytes", "active_bytes", "allocated_bytes", "reserved_bytes"] {
        assert_eq!(state[band], stats[format!("{band}.all.current")], "{band}");
    }
    assert_eq!(
        list(&state["blocks"]).len() as u64,
        stats["active.all.current"].as_u64().expect("a number")
    );
    assert_eq!(
        sum(list(&state["blocks"]), "bytes"),
        state["requested_bytes"].as_u64().expect("a number")
    );
    assert_eq!(
        sum(list(&state["blocks"]), "block_bytes"),
        state["active_bytes"].as_u64().expect("a number")
    );
    for segment in list(&state["segments"]) {
        assert_eq!(
            sum(list(&segment["blocks"]), "size"),
            segment["total_size"].as_u64().expect("a number")
        );
    }
    let free = sum(list(&state["free"]), "free");
    assert_eq!(
        free,
        state["reserved_bytes"].as_u64().unwrap_or(0) - state["active_bytes"].as_u64().unwrap_or(0)
    );
}

#[test]
fn state_is_selected_by_event_time_or_name() {
    let peak = json(&["peak", GPT]);
    let at_peak = json(&["state", GPT, "--at", "peak"]);
    assert_eq!(at_peak["event"], peak["event"]);
    assert_eq!(at_peak["requested_bytes"], peak["total"]);
    let by_event = json(&["state", GPT, "--at", &peak["event"].to_string()]);
    assert_eq!(by_event, at_peak);
    let by_time = json(&["state", GPT, "--at", &peak["time_us"].to_string()]);
    assert_eq!(by_time["time_us"], peak["time_us"]);
    assert_eq!(json(&["state", GPT, "--at", "-1"])["requested_bytes"], 0);
    let beyond = vramscope(&["state", GPT, "--at", "999999"]);
    assert_eq!(beyond.status.code(), Some(64));
    assert!(String::from_utf8_lossy(&beyond.stderr).contains("999999"));
    let clockless = vramscope(&["state", "edge/no_time.pickle", "--at", "5000000000"]);
    assert_eq!(clockless.status.code(), Some(64));
    assert!(String::from_utf8_lossy(&clockless.stderr).contains("Name an event"));
}

#[test]
fn flame_totals_add_up_at_every_node() {
    for weight in ["bytes", "byte-seconds", "count", "churn"] {
        let flame = json(&["peak", "--tree", GPT, "--weight", weight]);
        assert_eq!(flame["schema"], "vramscope.peak-tree/1");
        let nodes = list(&flame["nodes"]);
        let big = |v: &Value| {
            v.as_number().expect("a number").to_string().parse::<u128>().expect("an integer")
        };
        let mut below = vec![0u128; nodes.len()];
        for node in &nodes[1..] {
            below[node["parent"].as_u64().expect("an index") as usize] += big(&node["total"]);
        }
        for (node, below) in nodes.iter().zip(below) {
            assert_eq!(big(&node["total"]), big(&node["own"]) + below, "{weight}: {node}");
        }
        assert_eq!(nodes[0]["total"], flame["total"]);
    }
    let oracle = &expected("t26/gpt_small.pickle.gz")["oracle"]["devices"][0];
    assert_eq!(json(&["peak", "--tree", GPT])["total"], oracle["active"]["peak_bytes"]);
    assert_eq!(
        json(&["peak", "--tree", GPT, "--weight", "count"])["total"],
        oracle["allocations_in_window"]
    );
}

#[test]
fn blocks_are_sorted_and_segments_count_driver_calls() {
    let blocks = json(&["blocks", GPT, "--sort", "lifetime", "--limit", "50"]);
    let lives: Vec<u64> =
        list(&blocks["blocks"]).iter().map(|b| b["lifetime"].as_u64().unwrap_or(0)).collect();
    assert_eq!(lives.len(), 50);
    assert!(lives.is_sorted_by(|a, b| a >= b), "{lives:?}");
    let oracle = &expected("t26/gpt_small.pickle.gz")["oracle"]["devices"][0];
    assert_eq!(
        blocks["total"], oracle["allocations_in_window"],
        "no block was live before the window"
    );
    let segments = json(&["segments", GPT]);
    assert_eq!(segments["schema"], "vramscope.segments/1");
    assert_eq!(segments["churn"]["segment_allocs"], oracle["actions"]["segment_alloc"]);
    assert_eq!(
        list(&segments["segments"]).len() as u64,
        oracle["segments"].as_u64().expect("a number")
    );
}

#[test]
fn info_shows_settings_steps_and_clock() {
    let info = json(&["info", "recorded/gpt_max_split.pickle.gz", "recorded/t20/pools.pickle"]);
    let settings = list(&info["files"][0]["settings"]);
    assert!(
        settings.iter().any(|s| s[0] == "max_split_size" && s[1] == "134217728"),
        "{settings:?}"
    );
    assert_eq!(info["files"][0]["devices"][0]["steps_by"], "optimizer_step");
    assert_eq!(info["files"][1]["devices"][0]["has_clock"], false);
    assert!(list(&info["files"][1]["settings"]).is_empty());
}

#[test]
fn exports_have_formats_of_other_tools() {
    let total = json(&["peak", GPT])["total"].as_u64().expect("a number");
    let folded = text(&["export", GPT, "--as", "folded"]);
    let weights = folded
        .lines()
        .map(|l| l.rsplit(' ').next().and_then(|w| w.parse::<u64>().ok()).expect("a weight"));
    assert_eq!(weights.sum::<u64>(), total);

    let scope: Value =
        serde_json::from_str(&text(&["export", GPT, "--as", "speedscope"])).expect("JSON");
    assert_eq!(scope["$schema"], "https://www.speedscope.app/file-format-schema.json");
    let profile = &scope["profiles"][0];
    assert_eq!(profile["endValue"], total);
    assert_eq!(list(&profile["samples"]).len(), list(&profile["weights"]).len());
    let frames = list(&scope["shared"]["frames"]).len() as u64;
    let used = list(&profile["samples"]).iter().flat_map(list);
    assert!(used.into_iter().all(|i| i.as_u64().is_some_and(|i| i < frames)));

    let csv = text(&["export", GPT, "--as", "csv"]);
    let blocks = json(&["blocks", GPT])["total"].as_u64().expect("a number");
    assert_eq!(
        csv.split("\r\n").count() as u64,
        blocks + 2,
        "the heading, the blocks, an empty last line"
    );

    let trace: Value =
        serde_json::from_str(&text(&["export", GPT, "--as", "perfetto"])).expect("JSON");
    let events = list(&trace["traceEvents"]);
    let counter = |name: &str| {
        let values = events.iter().filter(|e| e["ph"] == "C" && e["name"] == name);
        values.filter_map(|e| e["args"]["bytes"].as_u64()).max()
    };
    assert_eq!(counter("requested_bytes"), Some(total));
    let stats = expected("t26/gpt_small.pickle.gz")["memory_stats"]["at_dump"]["0"].clone();
    assert_eq!(counter("reserved_bytes"), stats["reserved_bytes.all.peak"].as_u64());
    let largest = events.iter().filter(|e| e["ph"] == "C");
    let largest = largest.filter(|e| e["name"].as_str().is_some_and(|n| n.starts_with("largest")));
    let curve = &json(&["segments", GPT, "--curve", "1"])["curve"]["largest_free"];
    assert_eq!(
        largest.filter_map(|e| e["args"]["bytes"].as_u64()).max(),
        curve[0]["bytes"][0].as_u64()
    );
    let peak = json(&["peak", GPT]);
    for row in list(&peak["categories"]) {
        let name = format!("requested_bytes, {}", row["category"].as_str().expect("a name"));
        assert!(counter(&name) >= row["bytes"].as_u64(), "{name}");
    }
    let phases = json(&["steps", GPT]);
    let of_steps = list(&phases["steps"]).iter().map(|step| list(&step["phases"]).len() + 1);
    let phases = of_steps.sum::<usize>() + list(&phases["outside"]).len();
    let slices = events.iter().filter(|e| e["ph"] == "X").count();
    assert_eq!(
        (slices - phases) as u64 * 2,
        expected("t26/gpt_small.pickle.gz")["oracle"]["annotations"].as_u64().unwrap_or(0)
    );
    let ooms: Value = serde_json::from_str(&text(&[
        "export",
        "recorded/oom_expandable.pickle.gz",
        "--as",
        "perfetto",
    ]))
    .expect("JSON");
    assert_eq!(list(&ooms["traceEvents"]).iter().filter(|e| e["ph"] == "i").count(), 5);
}

#[test]
fn user_rules_override_built_in_rules() {
    let rules = std::env::temp_dir().join(format!("vramscope-rules-{}", std::process::id()));
    std::fs::write(&rules, "# every frame\ncommunication * *\n").expect("a temporary file");
    let path = rules.to_str().expect("a path");
    let peak = json(&["peak", GPT, "--rules", path]);
    let stacks = list(&peak["stacks"]);
    assert!(
        stacks
            .iter()
            .filter(|s| !list(&s["frames"]).is_empty())
            .all(|s| s["category"] == "communication")
    );
    std::fs::write(&rules, "nonsense\n").expect("a temporary file");
    let wrong = vramscope(&["peak", GPT, "--rules", path]);
    std::fs::remove_file(&rules).expect("it can be removed");
    assert_eq!(wrong.status.code(), Some(64));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("line 1"));
}

#[test]
fn unknown_device_or_snapshot_is_wrong_usage() {
    let two = "recorded/t26/two_devices.pickle.gz";
    assert_eq!(json(&["peak", two])["device"], 0, "the device with the highest peak");
    let failed = "findings/g33_oom_on_device_1.pickle.gz";
    assert_eq!(json(&["peak", failed])["device"], 1, "device 0 has more events");
    assert_eq!(json(&["diagnose", failed])["headlines"][0]["device"], 1);
    assert_eq!(json(&["peak", two, "--device", "1"])["device"], 1);
    let none = vramscope(&["peak", two, "--device", "7"]);
    assert_eq!(none.status.code(), Some(64));
    assert!(
        String::from_utf8_lossy(&none.stderr).contains("device 7 has no data (available: 0, 1)")
    );
    let page = vramscope(&["peak", "containers/trace_plot.html", "--snapshot", "no such"]);
    assert_eq!(page.status.code(), Some(64));
    let page_error = String::from_utf8_lossy(&page.stderr);
    assert!(page_error.contains("(available: snapshot.pickle, later.pickle)"), "{page_error}");
    let pickle = vramscope(&["peak", GPT, "--snapshot", "no such"]);
    assert_eq!(pickle.status.code(), Some(64));
    assert!(String::from_utf8_lossy(&pickle.stderr).contains("omit --snapshot"));
}

/// A whole snapshot of a process that allocated nothing.
#[test]
fn a_snapshot_without_memory_is_an_answer() {
    for command in ["peak", "steps", "source", "blocks", "state"] {
        let file = "edge/nothing.pickle";
        let answer = json(&[command, file]);
        assert_eq!(answer["schema"], "vramscope.none/1", "{command}");
        assert!(text(&[command, file]).contains("no memory was allocated"), "{command}");
    }
}

#[test]
fn shapes_take_widths_and_say_what_is_wrong_with_a_config() {
    let file = "recorded/gpt_leak.pickle.gz";
    let own = json(&["peak", "--by", "shape", file]);
    let given = json(&["peak", "--by", "shape", file, "--dims", "384,512,1152,1536,50304"]);
    assert_eq!(own["tokens"], given["tokens"]);
    assert_eq!(given["dims"].as_array().map(Vec::len), Some(2), "both sizes of elements");
    let huge = json(&[
        "peak",
        "--by",
        "shape",
        file,
        "--dims",
        "18446744073709551615,9223372036854775807",
    ]);
    assert_eq!(huge["shaped_bytes"], 0, "products of widths do not wrap");
    let wrong = vramscope(&["peak", "--by", "shape", file, "--config", "recorded/expected.json"]);
    assert_eq!(wrong.status.code(), Some(64));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("no hidden_size"));
}

#[test]
fn text_help_and_completions_are_printed() {
    let commands = ["peak", "steps", "source", "state", "blocks", "segments", "diagnose", "info"];
    for command in commands {
        let text = text(&[command, "recorded/gpt_leak.pickle.gz"]);
        assert!(text.lines().count() > 3, "{command}: {text}");
        assert!(!text.contains('\u{1b}'), "{command}: no colors without a terminal");
    }
    assert!(text(&["help", "--all"]).contains("max_memory_allocated()"));
    assert!(text(&["completions", "bash"]).contains("vramscope"));
    assert_eq!(vramscope(&["peak", "damaged/truncated.pickle"]).status.code(), Some(2));
}

#[test]
fn events_range_keeps_states_of_whole_file() {
    let part = ["summary", GPT, "--window", "2500..3500"];
    let device = &json(&part)["files"][0]["devices"][0];
    let warning = json(&part)["files"][0]["warnings"][0].clone();
    assert_eq!(warning["code"], "part");
    let message = warning["message"].as_str().expect("a message");
    assert!(message.contains("events #2,500 to #3,499 of"), "{message}");
    assert_eq!(device["active_bytes"]["exactness"], "estimate");
    // The message also says which kept event is the first of the range.
    let here = message
        .split("here #")
        .nth(1)
        .and_then(|rest| rest.split(' ').next())
        .expect("the first event here");
    let first: u64 = here.replace(',', "").parse().expect("an index");
    for event in [2500, 2777, 3499] {
        let whole = json(&["state", GPT, "--at", &event.to_string()]);
        let here = (first + event - 2500).to_string();
        let part = json(&["state", GPT, "--window", "2500..3500", "--at", &here]);
        for key in ["requested_bytes", "reserved_bytes"] {
            assert_eq!(part[key], whole[key], "{key} after event {event}");
        }
        let blocks = |state: &Value| -> Vec<(String, u64, String)> {
            let rows = list(&state["blocks"]).iter();
            rows.map(|b| {
                (
                    b["address"].to_string(),
                    b["bytes"].as_u64().unwrap_or(0),
                    stack_of(state, b).to_string(),
                )
            })
            .collect()
        };
        let (mut mine, mut other) = (blocks(&part), blocks(&whole));
        mine.sort();
        other.sort();
        assert_eq!(mine, other, "blocks after event {event}");
    }
    // Every device has its own warning, which names the device.
    for command in ["summary", "info"] {
        let both = text(&[command, "recorded/t26/two_devices.pickle.gz", "--window", "300..400"]);
        for device in ["device 0: a part of", "device 1: a part of"] {
            assert_eq!(both.matches(device).count(), 1, "{both}");
        }
    }
    for wrong in ["20..10", "5", "a..b"] {
        assert_eq!(
            vramscope(&["summary", GPT, "--window", wrong]).status.code(),
            Some(64),
            "{wrong}"
        );
    }
}

#[test]
fn phases_have_the_peaks_of_the_other_commands() {
    for file in [GPT, "recorded/gpt_late.pickle.gz", "truth/resnet18_step.pickle.gz"] {
        let (report, peak) = (json(&["steps", file]), json(&["peak", file]));
        assert_eq!(report["limiting"]["bytes"], peak["total"], "{file}");
        assert_eq!(report["sum"][0]["phase"], peak["phase"], "{file}");
        assert_eq!(report["sum"][0]["step"], peak["step"], "{file}");
        for step in list(&report["steps"]) {
            for phase in list(&step["phases"]) {
                let state = json(&["state", file, "--at", &phase["peak_event"].to_string()]);
                assert_eq!(phase["peak_bytes"], state["requested_bytes"], "{file}: {phase}");
                for row in list(&state["categories"]) {
                    let name = row["category"].as_str().expect("a name");
                    assert_eq!(phase["categories"][name], row["bytes"], "{file}: {name}");
                }
            }
        }
        let cut = json(&["steps", file, "--limit", "1"]);
        assert_eq!(list(&cut["steps"]).len(), 1, "{file}");
        assert_eq!(cut["omitted"], list(&report["steps"]).len() - 1, "{file}");
        assert_eq!((&cut["limiting"], &report["omitted"]), (&report["limiting"], &0.into()));
    }
}

/// A recording whose names would act on a terminal.
fn hostile_names() -> String {
    let name =
        "f\\u001b]52;c;QQ==\\u0007\\u001b[2J\\u001b[35mX\\r\\n 9.9 GiB fake\\u009b31m\\u202e";
    let frames = format!(r#"[{{"name": "{name}", "filename": "{name}.py", "line": 1}}]"#);
    let event = |action: &str, addr: u32, time: u32| {
        format!(
            r#"{{"action": "{action}", "addr": {addr}, "size": 2097152, "stream": 0,
                 "time_us": {time}, "frames": {frames}, "user_metadata": "{name}",
                 "compile_context": "{name}"}}"#
        )
    };
    format!(
        r#"{{"segments": [{{"device": 0, "address": 4096, "total_size": 4194304,
              "stream": 0, "segment_type": "{name}", "frames": {frames}, "blocks": [
              {{"address": 4096, "size": 2097152, "requested_size": 2097152,
                "state": "active_allocated", "frames": {frames}}},
              {{"address": 2101248, "size": 2097152, "requested_size": 0, "state": "{name}"}}]}}],
            "device_traces": [[{}, {}, {}]],
            "external_annotations": [{{"name": "{name}", "stage": "START", "device": 0,
              "time_us": 1}}, {{"name": "{name}", "stage": "END", "device": 0, "time_us": 9}}],
            "allocator_settings": {{"{name}": "{name}"}}}}"#,
        event("segment_alloc", 4096, 2),
        event("alloc", 4096, 3),
        event("\\u001b[31munknown", 4096, 4),
    )
}

#[test]
fn names_never_act_on_the_terminal() {
    let folder = std::env::temp_dir().join(format!("vramscope-names-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    // The file's own name acts too, where the system allows that.
    let path = folder.join("rank0\u{1b}[35m\u{202e}.json");
    std::fs::write(&path, hostile_names()).expect("a file");
    let damaged = folder.join("rank1\u{1b}[35m\u{202e}.json");
    std::fs::write(&damaged, "{").expect("a file");
    let path = path.to_str().expect("a path");
    let damaged = damaged.to_str().expect("a path");
    let acts = |c: char| (c.is_control() && c != '\n') || ('\u{202a}'..='\u{202e}').contains(&c);
    // What a terminal would get, without the program's own styles.
    let shown = |arguments: &[&str]| {
        let output = run(arguments, true);
        let all = String::from_utf8([output.stdout, output.stderr].concat()).expect("UTF-8");
        ["\u{1b}[0m", "\u{1b}[1m", "\u{1b}[2m", "\u{1b}[31m", "\u{1b}[33m"]
            .iter()
            .fold(all, |text, style| text.replace(style, ""))
    };
    for command in [
        "summary", "peak", "steps", "source", "state", "blocks", "segments", "events", "diagnose",
        "what-if", "info", "ranks",
    ] {
        for arguments in [vec![command, path], vec![command, path, "--format", "json"]] {
            let shown = shown(&arguments);
            assert!(!shown.contains(acts), "{arguments:?}: {shown:?}");
            let fake = shown.lines().find(|line| line.starts_with(" 9.9 GiB fake"));
            assert_eq!(fake, None, "{arguments:?}: {shown}");
        }
    }
    for arguments in [vec!["diff", path, path], vec!["summary", damaged], vec!["peak", damaged]] {
        let shown = shown(&arguments);
        assert!(shown.contains("[35m") && !shown.contains(acts), "{arguments:?}: {shown:?}");
    }
    std::fs::remove_dir_all(&folder).expect("the folder is there");
}

#[test]
fn memory_limit_is_an_error_with_a_remedy() {
    let output = vramscope(&["summary", "--max-memory", "100KiB", GPT]);
    let message = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("limit of") && message.contains("--max-memory"), "{message}");
    assert!(vramscope(&["summary", "--max-memory", "1GiB", GPT]).status.success());
}
