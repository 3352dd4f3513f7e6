//! Memory by place in the code: a table of modules, files and lines, and what calls a line.

use super::StackShareRow;
use crate::messages::Quantity;
use serde::{Deserialize, Serialize};

/// The content and order of the table of the code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct CodeSpec {
    /// A search as in [`Query::Search`](super::Query::Search); empty for all blocks.
    pub text: String,
    /// The event of the time cursor, -1 before the window; null without a cursor.
    #[cfg_attr(test, ts(type = "number | null"))]
    pub event: Option<i64>,
    /// True to leave out frames of PyTorch, Python and C++.
    pub hide_framework: bool,
    /// The column to sort by.
    pub sort: CodeSort,
    /// True for the largest first.
    pub descending: bool,
    /// The keys of rows whose children are listed.
    pub open: Vec<String>,
}

/// A column of the table of the code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub enum CodeSort {
    /// Bytes at the peak, with all that is called.
    #[default]
    Total,
    /// Bytes at the peak, without what is called.
    Own,
    /// Bytes at the time cursor.
    Cursor,
    /// What the bytes at the ends of steps grow by.
    Growth,
    /// The number of blocks.
    Blocks,
    /// The largest block.
    Largest,
    /// The name.
    Name,
}

/// A page of the table of the code.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct CodePage {
    /// The number of listed rows.
    pub total: u32,
    /// Index of the first row.
    pub from: u32,
    /// The rows.
    pub rows: Vec<CodeRow>,
}

/// A module, a file or a line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct CodeRow {
    /// The number of the row among all places.
    pub place: u32,
    /// A stable key.
    pub key: String,
    /// 0 for a module, 1 for a file, 2 for a line.
    pub depth: u32,
    /// The module, the file's name, or the line with its function.
    pub label: String,
    /// The path of the module or file, or the line's function with its place.
    pub title: String,
    /// Whether the children are listed; null for a line, which has none.
    pub open: Option<bool>,
    /// Bytes at the peak of blocks whose call stack goes through the place.
    pub total: Quantity,
    /// The same as a percentage of the peak: `43.2 %`.
    pub percent: String,
    /// Bytes at the peak of blocks that the place allocates itself.
    pub own: Quantity,
    /// Bytes at the time cursor; null without a cursor.
    pub cursor: Option<Quantity>,
    /// What the bytes at the ends of steps grow by, per step; null without two steps.
    pub growth: Option<Quantity>,
    /// The number of blocks in the window.
    pub blocks: Quantity,
    /// The largest block.
    pub largest: Quantity,
    /// The category with most bytes at the peak; empty if there are none.
    pub category: String,
    /// The color word of the category.
    pub color: u32,
    /// The terms of a search for the blocks.
    pub terms: Vec<String>,
    /// The frame for `Sandwich`; null for modules and files.
    pub frame: Option<u32>,
}

/// What calls a line, and what it calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct Sandwich {
    /// The line with its function: `gpt.py:43 forward`.
    pub title: String,
    /// Bytes at the peak of blocks whose call stack goes through the line.
    pub total: Quantity,
    /// Bytes at the peak of blocks that the line allocates itself.
    pub own: Quantity,
    /// The frames that call the line, most bytes first.
    pub callers: Vec<StackShareRow>,
    /// The frames that the line calls, most bytes first.
    pub callees: Vec<StackShareRow>,
}

/// What the source view lists.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct SourceSpec {
    /// A search as in [`Query::Search`](super::Query::Search); empty for all blocks.
    pub text: String,
    /// The event of the time cursor, -1 before the window; null without a cursor.
    #[cfg_attr(test, ts(type = "number | null"))]
    pub event: Option<i64>,
    /// True to leave out lines of PyTorch, Python and C++.
    pub hide_framework: bool,
    /// The path of the file whose lines are listed; empty for the one that allocates most itself.
    pub file: String,
    /// True for what each line allocates itself, false for all that goes through it.
    pub own: bool,
}

/// Source files with their memory, and the functions and lines of one of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct SourcePage {
    /// The path of the file whose functions and lines are listed; empty without any.
    pub file: String,
    /// Files and functions with most bytes first, and lines in the order of the file.
    pub rows: Vec<SourceRow>,
    /// The text of the file, if it was recorded as a whole.
    pub text: Option<String>,
    /// What no line has, in sentences.
    pub notes: Vec<String>,
}

/// A source file, a function or a line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct SourceRow {
    /// 0 for a file, 1 for a function, 2 for a line.
    pub depth: u32,
    /// The file's path, the function, or the functions of the line.
    pub label: String,
    /// The functions of the line, or the function; empty for a file.
    pub functions: Vec<String>,
    /// The line, or the first line of the function; 0 for a file.
    pub line: u32,
    /// The recorded text of the line; empty if it is unknown.
    pub source: String,
    /// Bytes at the peak.
    pub peak: Quantity,
    /// Bytes at the time cursor; null without a cursor.
    pub cursor: Option<Quantity>,
    /// What the bytes at the ends of steps grow by, per step; null without two steps.
    pub growth: Option<Quantity>,
    /// Blocks in the window.
    pub blocks: Quantity,
    /// The bytes at the peak, at the cursor and per step in parts of the largest of all lines, or
    /// of all functions or files.
    pub shares: Vec<f64>,
    /// The terms of a search for the blocks; empty without any.
    pub terms: Vec<String>,
}
