//! Arguments about the source of the recorded program.

use super::values::moment;
use super::{DeviceInput, When};
use clap::Args;
use std::path::PathBuf;

/// Where the source is.
#[derive(Args, Default)]
pub(crate) struct SourceArguments {
    /// Folder with the source of the program. A file belongs to the path of a call stack by the
    /// longest common end of both. Can be repeated
    #[arg(long = "source", value_name = "DIR")]
    pub(crate) folders: Vec<PathBuf>,
    /// Folder in place of the start of recorded paths: `/train=./src`. Can be repeated
    #[arg(long = "source-map", value_name = "PREFIX=DIR", value_parser = source_map)]
    pub(crate) maps: Vec<(String, PathBuf)>,
}

#[derive(Args)]
pub(crate) struct Source {
    #[command(flatten)]
    pub(crate) input: DeviceInput,
    #[command(flatten)]
    pub(crate) code: SourceArguments,
    /// File to show, by the end of its recorded path (default: the file that allocates most bytes
    /// at the peak)
    #[arg(long = "file", value_name = "NAME")]
    pub(crate) file: Option<String>,
    /// Show only lines of this function
    #[arg(long, value_name = "NAME")]
    pub(crate) function: Option<String>,
    /// Show all lines of the file, not only those with blocks and the lines around them
    #[arg(long)]
    pub(crate) all: bool,
    /// Also count lines of PyTorch and of Python's library
    #[arg(long)]
    pub(crate) framework: bool,
    /// Also show what each line holds at this moment: `end`, `oom`, `step:N` or an event (`#1200`)
    #[arg(long, value_name = "WHEN", value_parser = moment, allow_negative_numbers = true)]
    pub(crate) at: Option<When>,
    /// Show only the first N files and functions, those with most bytes (default: 8 in text, all in
    /// JSON)
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
}

/// Parses `PREFIX=DIR`.
fn source_map(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((prefix, folder)) if !prefix.is_empty() && !folder.is_empty() => {
            Ok((prefix.to_owned(), folder.into()))
        }
        _ => Err("expected PREFIX=DIR, such as /train=./src".to_owned()),
    }
}
