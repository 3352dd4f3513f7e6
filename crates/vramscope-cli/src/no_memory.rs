//! The answer about a snapshot without memory, whatever the command.

use crate::Failure;
use crate::arguments::Format;
use crate::output;
use schemars::JsonSchema;
use serde::Serialize;
use vramscope_report::index::NO_DEVICE;

/// `vramscope.none/1`: the answer of a command about one device, if the snapshot is whole and has
/// no memory.
#[derive(Serialize, JsonSchema)]
pub(crate) struct NoMemory {
    /// The schema's name and version.
    schema: &'static str,
    /// The file's path.
    path: String,
    /// The answer in words.
    text: &'static str,
}

/// Prints the answer about the file at `path`.
///
/// # Errors
/// The output cannot be written.
pub(crate) fn print(path: String, format: Format) -> Result<(), Failure> {
    let answer = NoMemory { schema: "vramscope.none/1", path, text: NO_DEVICE };
    output::print(&answer, format, |out, answer| writeln!(out, "{}: {}", answer.path, answer.text))
}
