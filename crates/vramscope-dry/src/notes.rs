//! Lines for the launcher, about the answers of this process: a search for plans, an estimate.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

/// The variable with the path of the file.
const VARIABLE: &str = "VRAMSCOPE_DRY_NOTES";

/// Appends a line to the file that `VRAMSCOPE_DRY_NOTES` names. A process writes each line once.
pub(crate) fn note(line: &str) {
    static WRITTEN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut written = WRITTEN.lock().unwrap_or_else(PoisonError::into_inner);
    if written.contains(line) {
        return;
    }
    written.insert(line.to_owned());
    let Some(path) = std::env::var_os(VARIABLE) else { return };
    if let Err(error) = append(&path, line) {
        report(&path, &error);
    }
}

/// Appends a line in one write, so that processes can share the file.
fn append(path: &OsStr, line: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().append(true).create(true).open(path)?;
    file.write_all(format!("{line}\n").as_bytes())
}

#[expect(clippy::print_stderr, reason = "the file that should get it cannot be written")]
fn report(path: &OsStr, error: &io::Error) {
    eprintln!("vramscope: cannot write {}: {error}", path.display());
}

#[cfg(test)]
mod tests {
    use super::append;

    #[test]
    fn append_keeps_the_lines_of_other_processes() {
        let path = std::env::temp_dir().join(format!("vramscope-notes-{}", std::process::id()));
        std::fs::write(&path, "first\n").expect("the folder for temporary files is writable");
        append(path.as_os_str(), "second").expect("the file was just written");
        let text = std::fs::read_to_string(&path).expect("the file was just written");
        std::fs::remove_file(&path).expect("the file was just read");
        assert_eq!(text, "first\nsecond\n");
    }

    #[test]
    fn append_fails_without_the_folder() {
        assert!(append("/nowhere/notes".as_ref(), "line").is_err());
    }
}
