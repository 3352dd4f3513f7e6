//! The text of every command about every recording of `test_data`: no panic, whatever a file holds.

use crate::common::{test_data, vramscope};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;

/// The commands about one file, without the file.
const COMMANDS: [&[&str]; 17] = [
    &["summary"],
    &["info"],
    &["diagnose"],
    &["diagnose", "--all"],
    &["peak"],
    &["phases"],
    &["steps"],
    &["shapes"],
    &["modules"],
    &["annotate"],
    &["state", "--at", "peak"],
    &["state", "--from", "start"],
    &["flame"],
    &["blocks", "--limit", "50"],
    &["segments"],
    &["events", "--limit", "50"],
    &["what-if"],
];

/// A panic ends the program with this code.
const BUG: i32 = 70;

/// All files below a folder, in no order.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in folder.read_dir().expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

/// Runs commands, as many at a time as there are cores. Returns the command lines that did not end
/// by themselves, or ended as a panic does.
fn panics(lines: Vec<Vec<String>>) -> Vec<String> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let (queue, found) = (Mutex::new(lines.into_iter()), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while let Some(line) = { queue.lock().expect("no panic").next() } {
                    let words: Vec<&str> = line.iter().map(String::as_str).collect();
                    let output = vramscope(&words, &[]);
                    if !output.status.code().is_some_and(|code| code != BUG) {
                        let message = String::from_utf8_lossy(&output.stderr).into_owned();
                        found.lock().expect("no panic").push(format!("{words:?}: {message}"));
                    }
                }
            });
        }
    });
    found.into_inner().expect("no panic")
}

#[test]
fn no_text_panics() {
    let mut recordings = Vec::new();
    files(&test_data(""), &mut recordings);
    // Inputs of fuzz targets are no snapshots, and the fuzz targets read them.
    recordings.retain(|path| {
        let path = path.to_string_lossy();
        path.contains(".pickle") && !path.contains("/fuzz/")
    });
    assert!(recordings.len() > 200, "{} recordings", recordings.len());
    let mut lines = Vec::new();
    for path in &recordings {
        let path = path.to_string_lossy();
        let line = |words: &[&str]| -> Vec<String> {
            words.iter().copied().chain([&*path]).map(str::to_owned).collect()
        };
        lines.extend(COMMANDS.iter().map(|words| line(words)));
        lines.push(line(&["show", ">1B"]));
    }
    assert_eq!(panics(lines), Vec::<String>::new());
}
