//! Arguments of the commands about a whole run: its index, and its iterations.

use super::{Files, Reading};
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
    #[command(flatten)]
    pub(crate) reading: Reading,
}

#[derive(Args)]
pub(crate) struct Series {
    #[command(flatten)]
    pub(crate) files: Files,
    /// Show only the N ranks with most growth (default: 20 in text, all in JSON)
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
}
