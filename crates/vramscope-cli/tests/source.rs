//! `vramscope source`: the numbers of lines, and which source is shown beside them.

use crate::common::{test_data, vramscope};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, UNIX_EPOCH};

const LEAK: &str = "recorded/gpt_leak.pickle.gz";
const OOM: &str = "beside/oom_1/rank3_memory_snapshot.pickle";

fn report(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn annotate(arguments: &[&str], path: &str) -> Value {
    report(&vramscope(&[&["source", "--format", "json"], arguments].concat(), &[path]))
}

fn list<'a>(report: &'a Value, field: &str) -> &'a Vec<Value> {
    report[field].as_array().unwrap_or_else(|| panic!("{field} is a list"))
}

fn texts(report: &Value) -> String {
    list(report, "text").iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n")
}

/// A folder with source files, which is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder =
            std::env::temp_dir().join(format!("vramscope-annotate-{name}-{}", std::process::id()));
        if folder.is_dir() {
            std::fs::remove_dir_all(&folder).expect("the folder can be emptied");
        }
        std::fs::create_dir_all(&folder).expect("a folder");
        Self(folder)
    }

    fn put(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(&path, text).expect("a file");
        path
    }

    fn path(&self) -> String {
        self.0.to_string_lossy().into_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).expect("the folder can be removed");
    }
}

fn set_modified(path: &Path, seconds: u64) {
    let file = std::fs::File::options().append(true).open(path).expect("the file is there");
    file.set_modified(UNIX_EPOCH + Duration::from_secs(seconds)).expect("times can be set");
}

/// A model whose lines have the functions of the recording.
fn model() -> String {
    let mut text = String::from("class Block:\n");
    for (lines, function) in [(3, "__init__"), (100, "forward")] {
        text.extend(["    def ", function, "(self):\n"]);
        text += &"        pass\n".repeat(lines);
    }
    text
}

#[test]
fn lines_have_the_bytes_of_the_stacks_through_them() {
    let blocks = report(&vramscope(&["blocks", "--format", "json"], &[LEAK]));
    let told = annotate(&["--file", "gpt.py", "--at", "1000"], LEAK);
    let peak = told["peak_event"].as_i64().expect("an event");
    let stacks = list(&blocks, "stacks");
    let mut own_of_all = 0;
    for line in list(&told, "lines") {
        let is_here =
            |frame: &Value| frame["file"] == "/train/gpt.py" && frame["line"] == line["line"];
        let sum = |event: i64, is_own: bool| -> u64 {
            let is_live = |block: &&Value| {
                let freed = block["free_completed_event"].as_i64();
                block["alloc_event"].as_i64().unwrap_or(-1) <= event
                    && (block["live_at_end"] == true || freed.is_some_and(|freed| event < freed))
            };
            let live = list(&blocks, "blocks").iter().filter(is_live);
            let of_line = live.filter(|block| {
                let stack = &stacks[block["stack"].as_u64().expect("an index") as usize];
                let frames = stack.as_array().expect("frames");
                let functions = list(line, "functions");
                let is_site = || {
                    functions.iter().any(|function| {
                        let function = function.as_str().expect("a name");
                        let site = format!("gpt.py:{} {function}", line["line"]);
                        block["site"].as_str() == Some(&*site)
                    })
                };
                block["of_free"] == false && frames.iter().any(is_here) && (!is_own || is_site())
            });
            of_line.filter_map(|block| block["bytes"].as_u64()).sum()
        };
        assert_eq!(line["bytes"], sum(peak, false), "{line}");
        assert_eq!(line["own_bytes"], sum(peak, true), "{line}");
        assert_eq!(line["event_bytes"], sum(1000, false), "{line}");
        assert_eq!(line["own_event_bytes"], sum(1000, true), "{line}");
        own_of_all += line["own_bytes"].as_u64().expect("a number");
        // The id finds exactly these blocks.
        let id = line["id"].as_str().expect("an id");
        let shown = report(&vramscope(&["show", "--format", "json", id], &[LEAK]));
        assert_eq!(shown["at_peak"]["bytes"], line["bytes"], "{id}");
    }
    let file = &list(&told, "files")[0];
    assert_eq!((&file["file"], &file["own_bytes"]), (&"/train/gpt.py".into(), &own_of_all.into()));
    // Own bytes and those without a line are all.
    let own = list(&told, "files").iter().filter_map(|file| file["own_bytes"].as_u64());
    let without = told["without_line"].as_object().expect("an object");
    let without: u64 = without.values().filter_map(Value::as_u64).sum();
    assert_eq!(own.sum::<u64>() + without, told["peak_bytes"].as_u64().expect("a number"));
}

#[test]
fn a_block_counts_once_in_a_recursion() {
    let folder = Folder::new("recursion");
    let frame = |line: u32, name: &str| json!({"name": name, "filename": "/r/m.py", "line": line});
    let frames = [frame(3, "f"), frame(4, "f"), frame(3, "f"), frame(4, "f"), frame(9, "<module>")];
    let events: Vec<Value> = (1..=2)
        .map(|n| json!({"action": "alloc", "addr": n * 4096, "size": 100, "frames": frames}))
        .collect();
    let source = "def f(n):\n    if n:\n        x = new()\n    f(n - 1)\n\n\n\n\nf(2)\n";
    let snapshot = json!({
        "segments": [], "device_traces": [events], "source_code": {"/r/m.py": source},
    });
    let path = folder.put("rank0.json", &snapshot.to_string()).to_string_lossy().into_owned();
    let told = annotate(&[], &path);
    assert_eq!(told["file"]["basis"], "snapshot");
    let lines: Vec<_> = list(&told, "lines")
        .iter()
        .map(|line| {
            let text = line["text"].as_str().expect("a text");
            let number = |field: &str| line[field].as_u64().expect("a number");
            (number("line"), text, number("bytes"), number("own_bytes"), number("blocks"))
        })
        .collect();
    assert_eq!(
        lines,
        [
            (3, "        x = new()", 200, 200, 2),
            (4, "    f(n - 1)", 200, 0, 2),
            (9, "f(2)", 200, 0, 2)
        ]
    );
    let functions: Vec<_> = list(&told, "functions")
        .iter()
        .map(|one| (&one["function"], &one["bytes"], &one["own_bytes"]))
        .collect();
    assert_eq!(
        functions,
        [(&"f".into(), &200.into(), &200.into()), (&"<module>".into(), &200.into(), &0.into())]
    );
    // What the snapshot has wins over a folder.
    folder.put("m.py", "other\n");
    assert_eq!(annotate(&["--source", &folder.path()], &path)["file"]["basis"], "snapshot");
    // The lines are beside the stacks of other reports, too.
    let peak = report(&vramscope(&["peak", "--format", "json"], &[&path]));
    assert_eq!(peak["stacks"][0]["source"], "x = new()");
}

#[test]
fn source_from_a_folder_says_when_it_was_changed() {
    let folder = Folder::new("states");
    let file = folder.put("gpt.py", &model());
    set_modified(&file, 1_000_000_000);
    let source = folder.path();
    let states = |told: &Value| -> BTreeSet<String> {
        let of = list(told, "lines").iter().filter_map(|line| line["state"].as_str());
        of.map(str::to_owned).collect()
    };
    let old = annotate(&["--source", &source], LEAK);
    assert_eq!(old["file"]["changed_after"], false);
    assert_eq!(old["file"]["basis"], "folder");
    // Lines 2 to 5 are in `__init__`, the others in `forward`.
    for line in list(&old, "lines") {
        let (number, functions) = (line["line"].as_u64().expect("a line"), &line["functions"]);
        let own = if number < 6 { "__init__" } else { "forward" };
        let fits = list(line, "functions")
            .iter()
            .any(|name| name == own || name.as_str().is_some_and(|name| name.starts_with('<')));
        let state = if fits { "found" } else { "missing" };
        assert_eq!(line["state"], state, "{number} {functions}");
        assert_eq!(line["text"].is_null(), !fits, "{line}");
    }
    assert!(texts(&old).contains("is not the file that ran: lines "), "{}", texts(&old));

    set_modified(&file, 4_000_000_000);
    let new = annotate(&["--source", &source], LEAK);
    assert!(states(&new).contains("unsure"));
    assert!(texts(&new).contains("was changed after the recording"), "{}", texts(&new));

    folder.put("gpt.py", "def forward():\n    pass\n");
    let short = annotate(&["--source", &source], LEAK);
    assert!(texts(&short).contains("has 2 lines, but the recording names line 44."));
    assert_eq!(states(&short), BTreeSet::from(["missing".to_owned()]));

    folder.put("other/gpt.py", &model());
    let map = format!("/train={source}/other");
    let mapped = annotate(&["--source-map", &map], LEAK);
    let found = mapped["file"]["found"].as_str().expect("a path");
    assert!(
        found.ends_with("gpt.py")
            && Path::new(found).parent().is_some_and(|p| p.ends_with("other"))
    );
}

#[test]
fn a_recorded_line_wins_over_the_line_of_a_file() {
    let folder = Folder::new("recorded");
    let told = annotate(&[], OOM);
    assert_eq!(told["file"]["basis"], "sidecar");
    let last = list(&told, "lines").last().expect("lines")["line"].as_u64().expect("a line");
    let mut lines = vec![String::from("# other"); last as usize];
    for line in list(&told, "lines") {
        assert_eq!(line["state"], "recorded");
        let number = line["line"].as_u64().expect("a line");
        let text = line["text"].as_str().expect("a text");
        lines[number as usize - 1] = format!("    {text}");
    }
    folder.put("train.py", &lines.join("\n"));
    let same = annotate(&["--source", &folder.path()], OOM);
    assert!(list(&same, "lines").iter().all(|line| line["state"] == "recorded"));
    let shown = list(&same, "lines")[0]["text"].as_str().expect("a text").to_owned();
    assert!(shown.starts_with("    "), "with its indentation: {shown}");

    lines.insert(0, String::new());
    folder.put("train.py", &lines.join("\n"));
    let moved = annotate(&["--source", &folder.path()], OOM);
    for (line, recorded) in list(&moved, "lines").iter().zip(list(&told, "lines")) {
        assert_eq!(line["state"], "differs", "{line}");
        assert_eq!(line["text"], recorded["text"]);
    }
    assert!(texts(&moved).contains("The recorded one is shown."), "{}", texts(&moved));
    let text = vramscope(&["source", "--source", &folder.path()], &[OOM]);
    let text = String::from_utf8(text.stdout).expect("text");
    assert!(text.contains("! the file has another line here"), "{text}");
}

#[test]
fn text_shows_the_lines_around_and_all_on_request() {
    let folder = Folder::new("around");
    let file = folder.put("gpt.py", &model());
    set_modified(&file, 1_000_000_000);
    let source = folder.path();
    let text = |more: &[&str]| {
        let arguments = [&["source", "--source", &source, "--function", "forward"], more].concat();
        let output = vramscope(&arguments, &[LEAK]);
        assert!(output.status.success());
        String::from_utf8(output.stdout).expect("text")
    };
    let numbers = |text: &str| -> Vec<u32> {
        let lines = text.lines().filter(|line| line.ends_with("pass"));
        let last = |line: &str| line.split_whitespace().rev().nth(1).and_then(|n| n.parse().ok());
        lines.filter_map(last).collect()
    };
    let around = numbers(&text(&[]));
    // Line 44 is the last with blocks.
    assert_eq!(around.last(), Some(&46));
    assert!(around.len() < 40, "{around:?}");
    let all = numbers(&text(&["--all"]));
    assert_eq!((all.len(), all.last()), (103, Some(&106)));
}

#[test]
fn wrong_names_and_folders_are_wrong_usage() {
    let fails = |arguments: &[&str], why: &str| {
        let output = vramscope(&[&["source"], arguments].concat(), &[LEAK]);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(64), "{errors}");
        assert!(errors.contains(why), "{errors}");
    };
    fails(&["--file", "absent.py"], "no call stack has a line of absent.py");
    fails(&["--file", "t.py"], "no call stack has a line of t.py");
    fails(&["--function", "absent"], "no call stack has a function absent");
    fails(&["--source", "/absent/folder"], "/absent/folder");
    fails(&["--source-map", "/train"], "expected PREFIX=DIR");
    let path = test_data(LEAK);
    let both = vramscope(&["source", "--framework", "--file", "module.py"], &[LEAK]);
    assert!(both.status.success(), "{}", path.display());
}
