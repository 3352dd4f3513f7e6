//! The text of every command about every recording of `test_data`: no panic, whatever a file holds,
//! and no line that is wider than the terminal.

use crate::common::test_data;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

/// The commands about one file, without the file.
const COMMANDS: [&[&str]; 29] = [
    &["summary"],
    &["info"],
    &["diagnose"],
    &["diagnose", "--all"],
    &["peak"],
    &["peak", "--by", "site"],
    &["peak", "--by", "line"],
    &["peak", "--by", "shape"],
    &["peak", "--by", "module"],
    &["peak", "--by", "pool"],
    &["peak", "--by", "category"],
    &["peak", "--by", "stream"],
    &["peak", "--limit", "100"],
    &["peak", "--band", "reserved_bytes"],
    &["peak", "--at", "end"],
    &["peak", "--tree"],
    &["peak", "--tree", "--all-frames", "--weight", "churn"],
    &["steps"],
    &["source"],
    &["ranks"],
    &["state", "--at", "peak"],
    &["state", "--from", "start"],
    &["diff", "--from", "start", "--to", "peak"],
    &["blocks", "--limit", "50"],
    &["segments", "--curve", "20"],
    &["events", "--limit", "50"],
    &["what-if"],
    &["show", ">1B"],
    &["show", "--all-frames", ">1B"],
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

/// The variable that tells a child of this test which part of the recordings it takes.
const PART: &str = "VRAMSCOPE_TEST_PART";

/// Begins a line of a child that names the command and the recording of the lines after it.
const MARK: char = '\u{1}';

/// Prints all texts about every `of`-th recording from `part` on, within this process. A panic ends
/// it with the code [`BUG`].
fn print_all(part: usize, of: usize) {
    for path in recordings().into_iter().skip(part).step_by(of) {
        for words in COMMANDS {
            writeln!(io::stdout(), "{MARK}{words:?} {}", path.display()).expect("a line");
            let line = ["vramscope"].iter().chain(words).map(OsString::from);
            let code = vramscope_cli::run(line.chain([path.clone().into_os_string()]));
            assert!(matches!(code, 0 | 2 | 64), "{words:?} {}: {code}", path.display());
        }
    }
}

/// Lines that are wider than the terminal, each with its command. Commands to paste are not broken,
/// nor are words.
fn wide_lines(texts: &str, columns: usize) -> Vec<String> {
    let mut of = "";
    let mut wide = Vec::new();
    for line in texts.lines() {
        if let Some(command) = line.strip_prefix(MARK) {
            of = command;
        // Lines of the test harness begin with `test `.
        } else if line.chars().count() > columns
            && line.split_whitespace().count() > 1
            && !line.starts_with("help: ")
            && !line.starts_with("test ")
        {
            wide.push(format!("{of}: {line}"));
        }
    }
    wide
}

/// The recordings of `test_data`. Inputs of fuzz targets are none, and the fuzz targets read them.
fn recordings() -> Vec<PathBuf> {
    let mut found = Vec::new();
    files(&test_data(""), &mut found);
    found.retain(|path| {
        let path = path.to_string_lossy();
        path.contains(".pickle") && !path.contains("fuzz")
    });
    found.sort();
    found
}

#[test]
fn no_text_panics_or_is_wider_than_the_terminal() {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    if let Ok(part) = std::env::var(PART) {
        return print_all(part.parse().expect("a number"), cores);
    }
    assert!(recordings().len() > 200, "{} recordings", recordings().len());
    let lines_of = |part: usize| {
        let columns = if part.is_multiple_of(2) { 100 } else { 80 };
        let output = Command::new(std::env::current_exe().expect("a program"))
            .args(["--exact", "texts::no_text_panics_or_is_wider_than_the_terminal", "--nocapture"])
            .env(PART, part.to_string())
            .env("COLUMNS", columns.to_string())
            .output()
            .expect("the test runs");
        let errors = String::from_utf8_lossy(&output.stderr);
        let last = errors.lines().rev().take(12).collect::<Vec<_>>();
        assert!(output.status.success(), "{}: {last:#?}", output.status);
        let texts = String::from_utf8(output.stdout).expect("UTF-8");
        assert!(texts.matches(MARK).count() > 50 * COMMANDS.len());
        wide_lines(&texts, columns)
    };
    let wide: Vec<String> = thread::scope(|scope| {
        let parts: Vec<_> = (0..cores).map(|part| scope.spawn(move || lines_of(part))).collect();
        parts.into_iter().flat_map(|part| part.join().expect("no panic")).collect()
    });
    assert!(wide.is_empty(), "{} lines: {:#?}", wide.len(), &wide[..wide.len().min(20)]);
}

#[test]
fn a_panic_is_a_message_and_an_exit_code() {
    if std::env::var(PART).is_ok() {
        vramscope_cli::run(["vramscope", "--version"].map(OsString::from));
        panic!("on purpose");
    }
    let output = Command::new(std::env::current_exe().expect("a program"))
        .args(["--exact", "texts::a_panic_is_a_message_and_an_exit_code", "--nocapture"])
        .env(PART, "0")
        .output()
        .expect("the test runs");
    assert_eq!(output.status.code(), Some(BUG));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        errors.contains("a bug: on purpose at ") && errors.contains("issue of vramscope"),
        "{errors}"
    );
}
