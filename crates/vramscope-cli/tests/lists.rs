//! Lists of blocks, segments and events in JSON: interned call stacks, `--limit`, pools, changes
//! between two states, and the events that touch an address.

use serde_json::Value;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Output};

const GPT: &str = "recorded/t26/gpt_small.pickle.gz";
const EXPANDABLE: &str = "recorded/t26/expandable_gpt.pickle.gz";

fn vramscope(arguments: &[&str]) -> Output {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../test_data");
    let mut command = Command::new(env!("CARGO_BIN_EXE_vramscope"));
    command.current_dir(root).args(arguments).output().expect("the program runs")
}

fn text(arguments: &[&str]) -> String {
    let output = vramscope(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&text(&[arguments, &["--format", "json"]].concat())).expect("JSON")
}

fn list(value: &Value) -> &Vec<Value> {
    value.as_array().expect("a list")
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is a number"))
}

fn address(value: &Value) -> u64 {
    let text = value.as_str().expect("an address");
    u64::from_str_radix(text.trim_start_matches("0x"), 16).expect("an address")
}

#[test]
fn rows_refer_to_distinct_call_stacks() {
    for (command, keys) in [
        (&["state", GPT, "--at", "peak"][..], &["blocks", "segments"][..]),
        (&["blocks", GPT], &["blocks"]),
        (&["segments", GPT], &["segments"]),
        (&["events", GPT], &["events"]),
    ] {
        let report = json(command);
        let stacks = list(&report["stacks"]);
        for (i, stack) in stacks.iter().enumerate() {
            assert!(!stacks[..i].contains(stack), "{command:?}: stack {i} is there twice");
        }
        let mut used = vec![false; stacks.len()];
        for row in keys.iter().flat_map(|key| list(&report[*key])) {
            let index = number(&row["stack"]) as usize;
            used[index] = true;
            assert!(row.get("frames").is_none());
            let site = row["site"].as_str().expect("a site");
            let names = |frame: &Value| site.ends_with(frame["name"].as_str().expect("a name"));
            let frames = list(&stacks[index]);
            assert!(frames.iter().any(names) || frames.is_empty(), "{site}: {frames:?}");
        }
        assert!(used.iter().all(|&used| used), "{command:?}: every stack has a row");
    }
}

#[test]
fn a_block_takes_at_most_400_bytes() {
    for file in [GPT, "recorded/t29/gpt_small_all.pickle.gz", "recorded/gpt_leak.pickle.gz"] {
        let text = text(&["blocks", file, "--format", "json"]);
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("  {\"addr")).collect();
        let report: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(rows.len(), list(&report["blocks"]).len());
        assert!(rows.iter().all(|row| row.len() <= 400), "{file}");
    }
}

#[test]
fn a_cut_list_says_how_many_rows_are_omitted() {
    for (command, key) in [
        (&["blocks", GPT][..], "blocks"),
        (&["segments", GPT], "segments"),
        (&["state", GPT], "blocks"),
        (&["events", GPT], "events"),
        (&["peak", GPT], "stacks"),
    ] {
        let all = json(command);
        assert_eq!(all["omitted"], 0, "{command:?}");
        let cut = json(&[command, &["--limit", "3"]].concat());
        assert_eq!(list(&cut[key]).len(), 3, "{command:?}");
        assert_eq!(number(&cut["omitted"]) as usize, list(&all[key]).len() - 3, "{command:?}");
        let text = text(&[command, &["--limit", "3"]].concat());
        assert!(text.contains("(--limit N shows more)"), "{command:?}: {text}");
    }
    // The largest blocks stay, by address.
    let (all, cut) = (json(&["state", GPT]), json(&["state", GPT, "--limit", "3"]));
    let mut sizes: Vec<u64> = list(&all["blocks"]).iter().map(|b| number(&b["bytes"])).collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    let mut shown: Vec<u64> = list(&cut["blocks"]).iter().map(|b| number(&b["bytes"])).collect();
    shown.sort_unstable_by(|a, b| b.cmp(a));
    assert_eq!(shown, sizes[..3]);
    assert_eq!(cut["requested_bytes"], all["requested_bytes"]);
    assert_eq!(list(&cut["segments"]).len() as u64, 3);
}

#[test]
fn blocks_have_the_pool_of_their_segment() {
    for file in ["recorded/t26/pools.pickle", "recorded/t29/pools.pickle", GPT] {
        let state = json(&["state", file, "--at", "peak"]);
        let mut places = BTreeMap::new();
        for segment in list(&state["segments"]) {
            for piece in list(&segment["blocks"]) {
                let place = (segment["pool"].clone(), segment["segment_type"].clone());
                places.insert(piece["address"].to_string(), place);
            }
        }
        let place = |block: &Value| (block["pool"].clone(), block["segment_type"].clone());
        for block in list(&state["blocks"]) {
            assert_eq!(places[&block["address"].to_string()], place(block), "{file}");
        }
        // The same blocks in the list of all blocks, by address and alloc.
        let blocks = json(&["blocks", file]);
        let key = |block: &Value| format!("{} {}", block["address"], block["alloc_event"]);
        let by_key: BTreeMap<_, _> =
            list(&blocks["blocks"]).iter().map(|block| (key(block), place(block))).collect();
        for block in list(&state["blocks"]) {
            assert_eq!(by_key[&key(block)], place(block), "{file}");
        }
        if file != GPT {
            let private = list(&blocks["blocks"]).iter().filter(|b| b["pool"] != Value::Null);
            assert!(private.into_iter().any(|b| b["pool"] != serde_json::json!([0, 0])), "{file}");
            let csv = text(&["export", file, "--as", "csv"]);
            assert!(csv.contains(",\"(0, 0)\",") && csv.contains(",small,"), "{file}");
        }
    }
}

#[test]
fn changes_between_two_states_add_up() {
    for (from, to) in [("start", "peak"), ("100", "2500"), ("end", "peak"), ("7", "7")] {
        let change = json(&["state", GPT, "--from", from, "--to", to]);
        let of = |moment: &str| json(&["state", GPT, "--at", moment]);
        let (before, after) = (of(from), of(to));
        for (moment, state) in [(&change["from"], &before), (&change["to"], &after)] {
            for key in [
                "event",
                "time_us",
                "requested_bytes",
                "active_bytes",
                "allocated_bytes",
                "reserved_bytes",
            ] {
                assert_eq!(moment[key], state[key], "{from} to {to}: {key}");
            }
        }
        let bytes = |key: &str| number(&change[key]["bytes"]);
        assert_eq!(bytes("went") + bytes("stayed"), number(&before["requested_bytes"]));
        assert_eq!(bytes("came") + bytes("stayed"), number(&after["requested_bytes"]));
        let key = |block: &Value| (block["address"].clone(), block["alloc_event"].clone());
        let live: Vec<_> = list(&before["blocks"]).iter().map(key).collect();
        let stayed = list(&after["blocks"]).iter().filter(|b| live.contains(&key(b))).count();
        assert_eq!(number(&change["stayed"]["blocks"]) as usize, stayed, "{from} to {to}");
        for part in ["came", "went", "stayed"] {
            for rows in ["categories", "sites"] {
                let sum = |key: &str| -> u64 {
                    list(&change[part][rows]).iter().map(|row| number(&row[key])).sum()
                };
                assert_eq!(sum("bytes"), bytes(part), "{part} by {rows}");
                assert_eq!(sum("blocks"), number(&change[part]["blocks"]), "{part} by {rows}");
            }
        }
        for rows in ["by_category", "by_site"] {
            let rows = list(&change[rows]);
            for part in ["came", "went", "stayed"] {
                let sum =
                    |key: &str| -> u64 { rows.iter().map(|row| number(&row[part][key])).sum() };
                assert_eq!(sum("bytes"), bytes(part), "{from} to {to}");
                assert_eq!(sum("blocks"), number(&change[part]["blocks"]), "{from} to {to}");
            }
            let net = |row: &Value| row["net_bytes"].as_i64().expect("a number");
            for row in rows {
                let (came, went) = (number(&row["came"]["bytes"]), number(&row["went"]["bytes"]));
                assert_eq!(net(row), came as i64 - went as i64, "{row}");
            }
            assert!(rows.is_sorted_by_key(|row| Reverse(net(row).abs())), "{from} to {to}");
        }
        let reserved = |moment: &str| number(&change[moment]["reserved_bytes"]);
        assert_eq!(
            reserved("from") + number(&change["mapped_bytes"]),
            reserved("to") + number(&change["released_bytes"])
        );
    }
    let time = json(&["state", GPT, "--at", "100"])["time_us"].to_string();
    assert_eq!(json(&["state", GPT, "--at", &time])["time_us"].to_string(), time);
    let code = |arguments: &[&str]| vramscope(arguments).status.code();
    assert_eq!(code(&["state", GPT, "--from", "start", "--at", "end"]), Some(64));
    assert_eq!(code(&["state", GPT, "--from", "soon"]), Some(64));
    assert_eq!(code(&["state", GPT, "--from", "99999999"]), Some(64));
}

#[test]
fn separate_peaks_have_their_events_and_their_live_sites() {
    let all = json(&["peak", GPT]);
    let peaks = list(&all["peaks"]);
    assert!(peaks.len() > 2);
    for (index, peak) in peaks.iter().enumerate() {
        let nth = (index + 1).to_string();
        let found = json(&["peak", GPT, "--peak", &nth]);
        assert_eq!(found["event"], peak["event"]);
        assert_eq!(found["total"], peak["bytes"]);
        let state = json(&["state", GPT, "--at", &peak["event"].to_string()]);
        assert_eq!(found["total"], state["requested_bytes"]);
        let next = peaks.get(index + 1).map(|next| number(&peak["bytes"]) - number(&next["bytes"]));
        assert_eq!(peak["next_lower_bytes"].as_u64(), next);
        // The live blocks by category and call site.
        let mut sums: BTreeMap<(String, String), (u64, u64)> = BTreeMap::new();
        for block in list(&state["blocks"]).iter().filter(|block| number(&block["bytes"]) > 0) {
            let key = (block["category"].to_string(), block["site"].to_string());
            let sum = sums.entry(key).or_default();
            *sum = (sum.0 + number(&block["bytes"]), sum.1 + 1);
        }
        let sites = list(&found["sites"]);
        assert!(sites.is_sorted_by_key(|site| Reverse(number(&site["bytes"]))));
        let listed: BTreeMap<(String, String), (u64, u64)> = sites
            .iter()
            .map(|site| {
                let key = (site["category"].to_string(), site["site"].to_string());
                (key, (number(&site["bytes"]), number(&site["blocks"])))
            })
            .collect();
        assert_eq!(listed, sums);
        // Totals follow each other up to the peak and after it.
        let around = list(&found["around"]);
        assert_eq!(around.len(), 60, "peak {nth}");
        for pair in around.windows(2) {
            let total = |of: &Value| of["requested_bytes"].as_i64().expect("a number");
            let change = pair[1]["bytes"].as_i64().expect("a number");
            assert_eq!(total(&pair[0]) + change, total(&pair[1]));
            assert_eq!(change < 0, pair[1]["action"] == "free", "{}", pair[1]);
        }
        let top = around.iter().find(|of| of["event"] == peak["event"]).expect("the peak's event");
        assert_eq!(top["requested_bytes"], peak["bytes"]);
    }
    let code = |arguments: &[&str]| vramscope(arguments).status.code();
    assert_eq!(code(&["peak", GPT, "--peak", "0"]), Some(64));
    assert_eq!(code(&["peak", GPT, "--peak", "99"]), Some(64));
}

#[test]
fn events_that_touch_an_address_are_found() {
    let all = json(&["events", EXPANDABLE]);
    let rows = list(&all["events"]);
    assert_eq!(rows.len() as u64, number(&all["total"]));
    let unmap = rows.iter().find(|e| e["action"] == "segment_map").expect("a mapped range");
    // Some address inside the mapped range.
    let wanted = address(&unmap["address"]) + number(&unmap["size"]) / 2 + 1;
    let found = json(&["events", EXPANDABLE, "--address", &format!("{wanted:#x}")]);
    let touches = |event: &&Value| {
        event["address"] != Value::Null
            && (address(&event["address"])..address(&event["address"]) + number(&event["size"]))
                .contains(&wanted)
    };
    let expected: Vec<&Value> = rows.iter().filter(touches).collect();
    let key = |e: &Value| (e["index"].clone(), e["action"].clone(), e["size"].clone());
    assert_eq!(
        list(&found["events"]).iter().map(key).collect::<Vec<_>>(),
        expected.iter().map(|e| key(e)).collect::<Vec<_>>()
    );
    for action in ["segment_map", "alloc"] {
        assert!(expected.iter().any(|e| e["action"] == action), "{action}");
    }
    let range = json(&["events", EXPANDABLE, "--range", "10..20"]);
    let indices: Vec<u64> = list(&range["events"]).iter().map(|e| number(&e["index"])).collect();
    assert_eq!(indices, (10..20).collect::<Vec<u64>>());
    assert_eq!(list(&json(&["events", EXPANDABLE, "--range", "12"])["events"])[0]["index"], 12);
    let wrong = vramscope(&["events", EXPANDABLE, "--address", "somewhere"]);
    assert_eq!(wrong.status.code(), Some(64));
}

/// PyTorch's viewer lists each annotation with its own stack.
#[test]
fn events_have_annotations_with_their_own_call_stacks() {
    let all = json(&["events", "edge/annotate.pickle"]);
    let notes: Vec<(&str, &str)> = list(&all["events"])
        .iter()
        .filter(|event| event["action"] == "annotate")
        .map(|event| {
            let stack = &all["stacks"][number(&event["stack"]) as usize];
            let text = event["user_metadata"].as_str().expect("a text");
            (text, stack[0]["name"].as_str().expect("a function"))
        })
        .collect();
    let expected =
        ["weights", "{\"layer\":3}", "already freed", "never known"].map(|text| (text, "note_1"));
    assert_eq!(notes, expected);
    assert!(text(&["events", "edge/annotate.pickle"]).contains("already freed"));
    assert!(!text(&["events", GPT]).contains("metadata"), "no column without a text");
}

/// A part is a snapshot: the program reads it as a recording that starts late.
#[test]
fn export_writes_a_part_that_replays_on_its_own() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("part");
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("part.pickle.gz");
    drop(std::fs::remove_file(&path));
    let path = path.to_str().expect("a path");
    let export = ["export", GPT, "--as", "pickle", "-o", path];
    text(&[&export[..], &["--window", "300..900"]].concat());
    let (whole, part) = (json(&["events", GPT]), json(&["events", path]));
    assert_eq!(part["total"], 600);
    for at in [0, 599] {
        for key in ["action", "address", "size", "site", "time_us"] {
            assert_eq!(part["events"][at][key], whole["events"][300 + at][key], "{key}");
        }
    }
    let state = |path: &str, at: &str| {
        let state = json(&["state", path, "--at", at]);
        let blocks =
            list(&state["blocks"]).iter().map(|b| (b["address"].to_string(), number(&b["bytes"])));
        let mut blocks: Vec<_> = blocks.collect();
        blocks.sort();
        blocks
    };
    assert_eq!(state(path, "#599"), state(GPT, "#899"));
    assert_eq!(state(path, "#100"), state(GPT, "#400"));
    let without_output = &export[..4];
    for (arguments, why) in [
        ([without_output, &[]].concat(), "needs --window"),
        ([without_output, &["--window", "0..100000000"]].concat(), "the device has"),
        ([&export[..], &["--window", "0..10"]].concat(), "replace it with --force"),
    ] {
        let output = vramscope(&arguments);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && error.contains(why), "{arguments:?} {error}");
    }
}
