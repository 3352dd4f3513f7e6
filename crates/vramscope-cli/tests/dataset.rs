//! `export --as parquet`: the program as it is run. `vramscope-dataset/tests` has the contents.

use crate::common::{test_data, vramscope};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

const FILE: &str = "recorded/t26/gpt_small.pickle.gz";

/// A folder of this test that does not exist.
fn dataset(test: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("export").join(test);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).expect("the folder of an earlier run");
    }
    folder
}

fn command(dataset: &Path, paths: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vramscope"));
    command.args(["export", "--as", "parquet", "-o"]).arg(dataset);
    command.args(paths.iter().map(|path| test_data(path)));
    command
}

fn export(dataset: &Path, paths: &[&str]) -> Output {
    command(dataset, paths).output().expect("the program runs")
}

/// The files below a folder with their contents; none if it does not exist.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut rest = vec![folder.to_owned()];
    while let Some(next) = rest.pop() {
        for entry in std::fs::read_dir(next).into_iter().flatten() {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                rest.push(path);
            } else if let Ok(content) = std::fs::read(&path) {
                found.insert(path.strip_prefix(folder).expect("below it").to_owned(), content);
            }
        }
    }
    found
}

/// The number of parts that a dataset has.
fn parts(dataset: &Path) -> usize {
    let is_part = |path: &&PathBuf| path.extension().is_some_and(|end| end == "parquet");
    contents(&dataset.join("ranks")).keys().filter(is_part).count()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_killed_export_continues_where_it_was() {
    let [whole, killed] = [dataset("whole"), dataset("killed")];
    let folders = ["recorded", "findings", "sites", "what_if"];
    let output = export(&whole, &folders);
    assert!(output.status.success(), "{}", said(&output));
    let mut running =
        command(&killed, &folders).stderr(Stdio::null()).spawn().expect("the program runs");
    while parts(&killed) == 0 {
        assert!(running.try_wait().expect("a process").is_none(), "it ends after the first part");
        std::thread::sleep(Duration::from_millis(1));
    }
    running.kill().expect("it can be killed");
    running.wait().expect("it ends");
    let before = parts(&killed);
    assert!(before < parts(&whole), "it was killed in the middle");
    let output = export(&killed, &folders);
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).contains("there"), "{}", said(&output));
    assert!(contents(&killed) == contents(&whole), "the same files as without the kill");
    let output = export(&killed, &folders);
    assert!(said(&output).contains("0 files of 0 B in 0 parts"), "{}", said(&output));
}

#[test]
fn bad_files_are_told_each_time_and_other_files_are_skipped() {
    let dataset = dataset("bad");
    let first = export(&dataset, &["damaged", "run_folder", "README.md"]);
    assert_eq!(first.status.code(), Some(2));
    assert!(said(&first).contains("README.md: "), "{}", said(&first));
    let again = export(&dataset, &["damaged", "run_folder", "README.md"]);
    assert_eq!(again.status.code(), Some(2));
    let told = |output: &Output| {
        let mut lines: Vec<String> =
            said(output).lines().filter(|line| line.contains("test_data")).map(name_on).collect();
        lines.sort_unstable();
        lines
    };
    assert_eq!(told(&first), told(&again));
    let missing = export(&dataset, &["missing.pickle"]);
    assert_eq!(missing.status.code(), Some(2));
}

/// A line from the path in `test_data` on.
fn name_on(line: &str) -> String {
    line.rsplit_once("test_data/").map_or(line, |(_, rest)| rest).to_owned()
}

#[test]
fn options_that_do_not_apply_are_wrong_usage() {
    let output = vramscope(&["export", "--as", "parquet"], &[FILE]);
    assert_eq!(output.status.code(), Some(64));
    assert!(said(&output).contains("-o DATASET"), "{}", said(&output));
    let dataset = dataset("usage");
    let target = dataset.to_str().expect("UTF-8");
    for option in
        [&["--device", "0"][..], &["--window", "0..9"], &["--redact"], &["--data", "reduced"]]
    {
        let arguments = [&["export", "--as", "parquet", "-o", target], option].concat();
        assert_eq!(vramscope(&arguments, &[FILE]).status.code(), Some(64), "{option:?}");
    }
    let output = vramscope(&["export", "--as", "csv", "--run", "a"], &[FILE]);
    assert_eq!(output.status.code(), Some(64));
    assert!(!dataset.exists());
    // Two runs of one folder name need names of their own.
    let output = vramscope(
        &["export", "--as", "parquet", "--run", "a", "-o", target],
        &["recorded/t26/pools.pickle", "recorded/t20/pools.pickle"],
    );
    assert_eq!(output.status.code(), Some(64));
    assert!(said(&output).contains("--run"), "{}", said(&output));
}
