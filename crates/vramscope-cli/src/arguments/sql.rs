//! Arguments of `vramscope sql`.

use clap::{Args, ValueEnum};

/// How `vramscope sql` writes the rows of a query.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RowFormat {
    Text,
    Json,
    Csv,
}

/// A named query, and the dataset that it is about.
#[derive(Args)]
pub(crate) struct Sql {
    /// The query (default: list all of them)
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// The folder of a dataset, which `vramscope export --as parquet` writes, or the address of one
    /// in a store of objects (default: print the query)
    #[arg(value_name = "DATASET")]
    pub(crate) dataset: Option<String>,
    /// Describe the tables of a dataset and their columns, in Markdown
    #[arg(long, conflicts_with_all = ["name", "set", "format"])]
    pub(crate) tables: bool,
    /// Variable of the query: `stages=4`, or `before=a1b2c3` and `after=d4e5f6`. Can be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    pub(crate) set: Vec<(String, String)>,
    /// Output format: text for humans, JSON for scripts, CSV for spreadsheets
    #[arg(long, value_enum, default_value_t = RowFormat::Text)]
    pub(crate) format: RowFormat,
}

fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE, such as stages=4")?;
    Ok((name.to_owned(), value.to_owned()))
}
