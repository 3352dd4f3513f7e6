//! Memory by module: the rows of a tree table.

use crate::messages::Quantity;
use serde::{Deserialize, Serialize};

/// The content of the table of modules.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct ModuleSpec {
    /// The event of the time cursor, -1 before the window; null without a cursor.
    #[cfg_attr(test, ts(type = "number | null"))]
    pub event: Option<i64>,
    /// The modules whose children are listed; null for the usual ones.
    pub open: Option<Vec<u32>>,
}

/// A page of the table of modules.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct ModulePage {
    /// The number of listed rows.
    pub total: u32,
    /// Index of the first row.
    pub from: u32,
    /// The rows.
    pub rows: Vec<ModuleRow>,
    /// The modules whose children are listed.
    pub open: Vec<u32>,
    /// How modules are known, one sentence each.
    pub text: Vec<String>,
    /// The names of the phases that the window has, in the order of [`ModuleRow::phases`].
    pub phases: Vec<String>,
    /// The dimensions of the model and its data: `N = 4,096 tokens`. Empty if nothing tells them.
    pub dims: Vec<String>,
    /// Why sizes do not tell shapes; empty if they do.
    pub refused: String,
    /// The shapes with most bytes at the peak.
    pub shapes: Vec<ShapeSum>,
}

/// The blocks of one shape at the peak.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct ShapeSum {
    /// The shape: `[4,096, 8,960] of 4 bytes`.
    pub shape: String,
    /// The shape by the names of dimensions: `[N, f]`; empty without names.
    pub symbols: String,
    /// Bytes.
    pub bytes: Quantity,
    /// The number of blocks.
    pub blocks: Quantity,
    /// Share of the peak, from 0 to 1.
    pub share: f64,
}

/// A module, a layer of it, or what is outside of modules.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct ModuleRow {
    /// Identifies the module.
    pub node: u32,
    /// The number of modules around it.
    pub depth: u32,
    /// The name.
    pub label: String,
    /// The number of layers, and where the module is called or built: `×24 gpt.py:42`. Empty if
    /// neither is known.
    pub note: String,
    /// All that is known of the module, for the tooltip.
    pub title: String,
    /// Whether the children are listed; null without children.
    pub open: Option<bool>,
    /// Bytes at the peak.
    pub total: Quantity,
    /// The same as a percentage of the peak: `43.2 %`.
    pub percent: String,
    /// Bytes at the time cursor; null without a cursor.
    pub cursor: Option<Quantity>,
    /// Shares of categories at the peak, from 0 to 1, most bytes first.
    pub shares: Vec<f64>,
    /// The color words of the shares.
    pub colors: Vec<u32>,
    /// The shares in words: `activations 8.20 GiB, parameters 1.22 GiB`.
    pub categories: String,
    /// Bytes at the highest peak of each phase.
    pub phases: Vec<Quantity>,
    /// Blocks at the peak.
    pub blocks: Quantity,
    /// The terms of a search for the blocks.
    pub terms: Vec<String>,
}
