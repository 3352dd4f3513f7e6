//! Arguments of the commands about a whole run: its index, and its iterations.

use super::{Common, Files, Format, parse_memory};
use clap::Args;
use std::path::PathBuf;

#[derive(Args)]
pub(crate) struct Index {
    /// Snapshot files, folders to search, and datasets of `export --as parquet`
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Output file: `run.vramscope`
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Replace a file of another kind
    #[arg(long)]
    pub(crate) force: bool,
    /// Category rules that override the built-in ones. Each line is `category confidence file
    /// function`
    #[arg(long, value_name = "FILE")]
    pub(crate) rules: Option<PathBuf>,
    /// Memory that reading files may take, such as 12GiB (default: 80 % of the machine's memory). A
    /// file that would take more is an error
    #[arg(long, value_name = "SIZE", value_parser = parse_memory)]
    pub(crate) max_memory: Option<u64>,
}

#[derive(Args)]
pub(crate) struct Series {
    #[command(flatten)]
    pub(crate) files: Files,
    /// Show only the N ranks with most growth (default: 20 in text, all in JSON)
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
}

impl Index {
    /// How the files are read.
    pub(crate) fn common(&self) -> Common {
        Common {
            format: Format::Text,
            rules: self.rules.clone(),
            events: None,
            max_memory: self.max_memory,
        }
    }
}
