//! Arguments of `vramscope peak`, and what the user knows of the model.

use super::values::moment;
use super::{Band, DeviceInput, FlameWeight, PeakRows, When};
use clap::Args;
use std::path::PathBuf;

/// Dimensions of the model, which the user gives.
#[derive(Args)]
pub(crate) struct Dimensions {
    /// The model's `config.json` of Hugging Face transformers: shapes by its dimensions, instead of
    /// the sizes of parameters
    #[arg(long, value_name = "FILE", conflicts_with = "dims")]
    pub(crate) config: Option<PathBuf>,
    /// The model's widths in elements, the hidden width first: shapes by these dimensions, instead
    /// of the sizes of parameters
    #[arg(long, value_name = "N[,N]", value_delimiter = ',')]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) dims: Vec<u64>,
}

#[derive(Args)]
pub(crate) struct Peak {
    #[command(flatten)]
    pub(crate) input: DeviceInput,
    #[command(flatten)]
    pub(crate) model: Dimensions,
    /// Moment to show, in place of the peak: `end`, `oom`, `step:N` (the highest moment of step N),
    /// `start`, an event (`#1200`), or a time in microseconds since the Unix epoch
    #[arg(long, value_name = "WHEN", value_parser = moment, allow_negative_numbers = true)]
    #[arg(conflicts_with = "number")]
    pub(crate) at: Option<When>,
    /// Rows of the table (default: stack). With `module`, --at adds a column to those of the peak
    #[arg(long, value_enum)]
    pub(crate) by: Option<PeakRows>,
    /// Show call stacks as a tree, outermost frame first
    #[arg(long, conflicts_with_all = ["by", "number", "band", "config", "dims"])]
    pub(crate) tree: bool,
    /// Weight of a block in the tree
    #[arg(long, value_enum, requires = "tree")]
    pub(crate) weight: Option<FlameWeight>,
    /// Hide nodes of the tree below this share of the total in text, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0)]
    pub(crate) min: f64,
    /// Levels of modules in text
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) depth: usize,
    /// Show frames of the interpreter, of PyTorch and of compiled code, too
    #[arg(long)]
    pub(crate) all_frames: bool,
    /// Band whose peak is shown
    #[arg(long, value_enum, default_value_t = Band::Requested)]
    pub(crate) band: Band,
    /// Show the Nth of the separate peaks: 2 is the next lower one
    #[arg(long = "peak", value_name = "N", default_value_t = 1)]
    pub(crate) number: usize,
    /// Show only the first N rows, those with most bytes (default: 20 in text, 6 of each module,
    /// all in JSON)
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
}
