//! The titles of all recordings, in one file to read aloud.
//!
//! `INSTA_UPDATE=always cargo test -p vramscope-cli --test program titles` rewrites it.

use crate::common::{test_data, vramscope};
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::thread;

/// Folders of files that no program recorded.
const MADE: [&str; 9] = [
    "archives",
    "containers",
    "damaged",
    "edge",
    "fuzz",
    "hostile",
    "odd",
    "protocols",
    "scenarios",
];

/// Words of vramscope that its readers do not use.
const FOREIGN: [&str; 7] = [
    "repetition",
    "churn",
    "flush",
    "reserved again",
    "old results",
    "unneeded",
    "further call stack",
];

/// Recordings below a folder of `test_data`, and folders of ranks, by path.
fn recordings(folder: &str, found: &mut Vec<String>) {
    let entries = fs::read_dir(test_data(folder)).expect("a folder").map(|of| of.expect("a file"));
    for entry in entries {
        let name = entry.file_name().into_string().expect("UTF-8");
        let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
        if entry.path().is_dir() {
            if name.starts_with("ranks") {
                found.push(path.clone());
            }
            if !MADE.contains(&path.as_str()) {
                recordings(&path, found);
            }
        } else if name.ends_with(".pickle") || name.ends_with(".pickle.gz") {
            found.push(path);
        }
    }
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_else(|| panic!("{key} of {value}"))
}

/// The headlines and the titles of a recording, each with its kind. Empty if it is no snapshot.
fn titles(path: &str) -> Vec<(String, String)> {
    let output = vramscope(&["diagnose", "--all", "--format", "json"], &[path]);
    let Ok(answer) = serde_json::from_slice::<Value>(&output.stdout) else { return Vec::new() };
    let [headlines, findings] = ["headlines", "findings"].map(|key| answer[key].as_array());
    let (headlines, findings) = (headlines.expect("a list"), findings.expect("a list"));
    let mut said: Vec<(String, String)> =
        headlines.iter().map(|one| ("says".to_owned(), text(one, "text").to_owned())).collect();
    for one in findings {
        let (kind, title) = (text(one, "kind"), text(one, "title"));
        let line = one["place"]["line"].as_u64().unwrap_or(0);
        let site = one["place"]["site"].as_str().filter(|_| line > 0).unwrap_or_default();
        assert!(title.contains(site), "{path}: `{title}` does not name {site}");
        said.push((kind.to_owned(), title.to_owned()));
    }
    // The worst headline is the title of its finding, and the text begins with it.
    let shown = vramscope(&["diagnose"], &[path]);
    let shown = String::from_utf8(shown.stdout).expect("UTF-8").to_lowercase();
    // Of several devices it names the file, too.
    if let ([only], false) = (&headlines[..], answer["peak"].is_null()) {
        let line = shown.lines().next().unwrap_or_default();
        let text = text(only, "text").to_lowercase();
        assert!(line.contains(&text), "{path}: {line} / {text}");
    }
    said
}

#[test]
fn all_titles_are_as_committed() {
    let mut paths = Vec::new();
    recordings("", &mut paths);
    paths.sort();
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let parts = paths.chunks(paths.len().div_ceil(workers));
    let said: Vec<_> = thread::scope(|scope| {
        let of = |part: &[String]| -> Vec<_> {
            part.iter().map(|path| (path.clone(), titles(path))).collect()
        };
        let running: Vec<_> = parts.map(|part| scope.spawn(move || of(part))).collect();
        running.into_iter().flat_map(|one| one.join().expect("no panic")).collect()
    });
    let mut lines = String::new();
    for (path, kind, title) in
        said.iter().flat_map(|(path, all)| all.iter().map(move |(kind, title)| (path, kind, title)))
    {
        assert!(!title.starts_with(|c: char| c.is_lowercase()), "{path}: {title}");
        assert!(!title.ends_with('.') && !title.contains(".."), "{path}: {title}");
        let foreign = FOREIGN.iter().find(|word| title.to_lowercase().contains(**word));
        assert_eq!(foreign, None, "{path}: {title}");
        writeln!(lines, "{path}: {kind}: {title}").expect("a String takes all text");
    }
    assert_golden!("titles", lines);
}
