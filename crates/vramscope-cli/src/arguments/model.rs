//! Arguments of the commands about the model: its modules, and the shapes of its tensors.

use super::DeviceInput;
use clap::Args;
use std::path::PathBuf;

/// What the user knows of the model.
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
pub(crate) struct Shapes {
    #[command(flatten)]
    pub(crate) input: DeviceInput,
    #[command(flatten)]
    pub(crate) model: Dimensions,
    /// Show only the N rows with most bytes (default: 20 in text, all in JSON)
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
}

#[derive(Args)]
pub(crate) struct Modules {
    #[command(flatten)]
    pub(crate) input: DeviceInput,
    /// Also show what each module holds after this event. Events count from 0; -1 is before the
    /// first
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) event: Option<i64>,
    /// Levels of modules in text
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) depth: usize,
    /// Show only the N largest modules of each module (default: 6 in text, all in JSON)
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
}
