//! Writes the report of files in one HTML file, for other front ends: the Python module.

use crate::Failure;
use crate::arguments::{Arguments, Command};
use crate::commands::export::write_html;
use clap::Parser as _;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

/// A report to write.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Files and folders.
    pub paths: Vec<PathBuf>,
    /// The file to write.
    pub output: PathBuf,
    /// Whether it holds lines of source, and the snapshots as they are.
    pub source: bool,
    /// Whether hashes replace paths and names.
    pub redact: bool,
    /// Whether it replaces a file of another kind.
    pub force: bool,
}

/// Writes a report, as `vramscope export --as html` does. Returns what it holds, in words.
///
/// # Errors
/// `InvalidInput` if the program was built without the page, or a snapshot cannot be copied. Else
/// an input cannot be read, or the output cannot be written.
pub fn html_report(report: &Report) -> io::Result<Vec<String>> {
    let words = ["vramscope", "export", "--as", "html", "--output"].map(OsString::from);
    let mut words: Vec<OsString> = words.into_iter().collect();
    words.push(report.output.clone().into());
    for (option, is_on) in
        [("--source", report.source), ("--redact", report.redact), ("--force", report.force)]
    {
        words.extend(is_on.then(|| OsString::from(option)));
    }
    words.push("--".into());
    words.extend(report.paths.iter().map(OsString::from));
    let wrong = |why: String| io::Error::new(io::ErrorKind::InvalidInput, why);
    let parsed = Arguments::try_parse_from(words).map_err(|error| wrong(error.to_string()))?;
    let Command::Export(arguments) = parsed.command else {
        return Err(wrong("no report".to_owned()));
    };
    let mut held = Vec::new();
    match write_html(&arguments, |contents| held = contents.to_vec()) {
        Ok(()) => Ok(held),
        Err(Failure::Usage(why)) => Err(wrong(why)),
        Err(Failure::Io(error)) => Err(error),
        Err(Failure::NoMemory { path }) => {
            Err(wrong(format!("{path}: no memory was allocated on any device")))
        }
        Err(Failure::Input | Failure::Check) => {
            Err(io::Error::other("a snapshot of the report could not be read"))
        }
    }
}
