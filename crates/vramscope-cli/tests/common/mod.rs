//! Runs the program on files of `test_data`.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

/// The path of a file or folder in `test_data`. An absolute path stays as it is.
pub(crate) fn test_data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../test_data").join(name)
}

/// Runs the program with these arguments and these paths in `test_data`.
pub(crate) fn vramscope(arguments: &[&str], paths: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vramscope"));
    // So wide that no word is cut.
    command.env("COLUMNS", "400").args(arguments).args(paths.iter().map(|p| test_data(p)));
    command.output().expect("the program runs")
}

/// An empty folder of a test, such as `sql/rows`.
pub(crate) fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).expect("the folder of an earlier run");
    }
    fs::create_dir_all(&folder).expect("a new folder");
    folder
}
