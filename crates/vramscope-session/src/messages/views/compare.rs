//! The comparison of two recordings: queries to the coordinator, and its answers.
//!
//! A is the recording before the change, B the one after it.

use super::{DetailCard, FlameBox, FlameInfo};
use crate::messages::{Quantity, TileKey};
use serde::{Deserialize, Serialize};
use vramscope_report::diff::{BytesDiff, DiffRow, Pair, RecordingRow};
use vramscope_report::side::Align;
use vramscope_units::{Change, CountChange};

/// A query about two devices. Before, each device's worker answers
/// [`Query::Side`](super::Query::Side).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum CompareQuery {
    /// Compares two sides. Later queries are about them.
    Sides {
        /// A, as its worker answered.
        a: String,
        /// B, as its worker answered.
        b: String,
    },
    /// A page of the call stacks, the largest change first.
    Stacks {
        /// A filter: a word in a function, a file or the category; empty for no filter.
        text: String,
        /// The rows of one group, by [`ComparedGroup::key`]; empty for all that changed.
        group: String,
        /// The flame graph of which only the stacks through its root are wanted.
        tree: ComparedTree,
        /// The first row.
        from: u32,
        /// The maximum number of rows.
        count: u32,
    },
    /// The details of one call stack.
    Stack {
        /// [`ComparedStack::row`].
        row: u32,
    },
    /// The comparison as Markdown, for a pull request.
    Markdown,
    /// The figures of the flame graph.
    Tree {
        /// The graph.
        tree: ComparedTree,
    },
    /// The labels of nodes of the flame graph.
    Boxes {
        /// The graph.
        tree: ComparedTree,
        /// Left edge of the visible part, in the graph's units.
        x0: f64,
        /// Right edge of the visible part.
        x1: f64,
        /// The minimum width of a node in the same unit.
        least: f64,
    },
    /// A node of the flame graph.
    Node {
        /// The graph.
        tree: ComparedTree,
        /// The node's index.
        node: u32,
    },
    /// Tiles of the flame graph.
    Tiles {
        /// The graph.
        tree: ComparedTree,
        /// The tiles.
        tiles: Vec<TileKey>,
    },
}

/// The specification of a flame graph of both sides. Equal specifications give equal graphs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct ComparedTree {
    /// True if widths are the bytes of A, false if they are those of B.
    pub of_a: bool,
    /// True if the innermost frame is at the top.
    pub inverted: bool,
    /// Whether frames of PyTorch, Python and compiled code are hidden.
    pub hide_framework: bool,
    /// The path of the node that is shown as root; empty for all.
    pub root: String,
}

/// The answer to a [`CompareQuery`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum CompareAnswer {
    /// The answer to `Sides`; null if a side is invalid.
    Comparison(Option<Box<Comparison>>),
    /// The answer to `Stacks`.
    Stacks(ComparedStacks),
    /// The answer to `Stack`; null if the row does not exist.
    Detail(Option<Box<DetailCard>>),
    /// The answer to `Markdown`: what `vramscope diff --format markdown` prints; null before a
    /// comparison.
    Markdown(#[serde(serialize_with = "vramscope_units::whole")] Option<String>),
    /// The answer to `Tree`; null before a comparison.
    Tree(Option<Box<ComparedFlame>>),
    /// The answer to `Boxes`.
    Boxes(Vec<FlameBox>),
    /// The answer to `Node`; null if the node does not exist.
    Node(Option<Box<ComparedNode>>),
    /// The answer to `Tiles`.
    Tiles(Vec<ComparedTile>),
}

/// The flame graph of both sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct ComparedFlame {
    /// Its figures. The total is that of the side of the widths.
    pub info: FlameInfo,
    /// What the shown root holds in A and in B: `1.20 GiB → 1.50 GiB, +307.2 MiB, +25.0 %`.
    pub text: String,
    /// The bytes of the stacks without a width, with a sentence as text; null if there are none.
    pub missing: Option<Quantity>,
    /// The color words from "only in A" over "equal" to "only in B".
    pub colors: Vec<u32>,
}

/// A node of the flame graph of both sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct ComparedNode {
    /// The node's path, as [`ComparedTree::root`] takes it.
    pub path: String,
    /// The call site: `model.py:212 forward`.
    pub title: String,
    /// What it holds in A and in B: `1.20 GiB → 1.50 GiB, +307.2 MiB, +25.0 %`.
    pub text: String,
    /// The color word.
    pub color: u32,
    /// Both sides and their difference.
    pub card: DetailCard,
}

/// A tile of the flame graph of both sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct ComparedTile {
    /// The tile.
    pub key: TileKey,
    /// Four numbers per strip: left, bottom, right and top, in columns and rows of the tile.
    pub positions: Vec<f32>,
    /// One color word per strip.
    pub colors: Vec<u32>,
    /// The node of each strip.
    pub blocks: Vec<u32>,
}

/// The difference between two devices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Comparison {
    /// The difference, as `vramscope diff` writes it, without call stacks.
    pub record: Pair,
    /// Its words, tables and curves.
    pub view: ComparisonView,
}

/// The words, tables and curves of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct ComparisonView {
    /// The headline:
    /// `requested bytes peak at 2.17 GiB in A, at 2.60 GiB in B: +445.1 MiB, +20.1 %`.
    pub text: String,
    /// The allocator settings that differ, then steps and inputs if they differ.
    pub recording: Vec<RecordingRow>,
    /// Each band at its start (if not zero), peak and end, then blocks, OOMs, findings, steps and
    /// input.
    pub totals: Vec<DiffRow>,
    /// The number of totals that are equal: `5 unchanged`; empty if there are none.
    pub totals_unchanged: String,
    /// Live bytes at the peaks by category, the largest change first.
    pub categories: Vec<DiffRow>,
    /// The number of categories that are equal: `2 unchanged`; empty if there are none.
    pub categories_unchanged: String,
    /// The band over both windows by event, by time and by step.
    pub curves: Vec<ComparedCurves>,
    /// The kinds in words of the findings that only B has, in their order: `Growth`.
    pub new_labels: Vec<String>,
    /// The kinds in words of the findings that only A has.
    pub gone_labels: Vec<String>,
}

/// Both curves along one axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct ComparedCurves {
    /// The axis by which the curves are aligned.
    pub align: Align,
    /// Why there are no curves; empty if there are.
    pub missing: String,
    /// The curve of A as an SVG path in a box of [`COMPARED`], y down.
    pub a: String,
    /// The curve of B.
    pub b: String,
    /// Labels of the x axis, relative to the box from its left edge.
    pub x: Vec<PlaceMark>,
    /// Labels of the y axis, relative to the box from its bottom edge.
    pub y: Vec<PlaceMark>,
    /// What B has more or less than A.
    pub difference: Difference,
}

/// The difference of two curves as areas above and below a line of zero.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct Difference {
    /// Where B has more, as an SVG path in a box of [`COMPARED`], y down.
    pub more: String,
    /// Where B has less.
    pub less: String,
    /// The height of the line of zero from the top, from 0 to 1.
    pub zero: f64,
    /// The largest surplus of B: `+445.1 MiB`; empty if there is none.
    pub most: String,
    /// The largest deficit of B: `-540.4 MiB`; empty if there is none.
    pub least: String,
}

/// Width and height of the box of [`ComparedCurves`]' paths.
pub const COMPARED: [u32; 2] = [1200, 200];

/// A label of an axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct PlaceMark {
    /// The position, from 0 to 1.
    pub at: f64,
    /// The label: `2.00 GiB`.
    pub text: String,
}

/// A page of call stacks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct ComparedStacks {
    /// The number of matching rows.
    pub total: u32,
    /// The number of rows and their change in words: `32 of 34 call stacks, +445.1 MiB`.
    pub text: String,
    /// Index of the first row among all matching rows.
    pub from: u32,
    /// The rows.
    pub rows: Vec<ComparedStack>,
    /// All groups with rows that match the text.
    pub groups: Vec<ComparedGroup>,
}

/// Call stacks that changed in one way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct ComparedGroup {
    /// `new`, `gone`, `grown`, `shrunk` or `unchanged`.
    pub key: String,
    /// The number of rows in words: `3 new`.
    pub text: String,
    /// The number of rows.
    pub count: u32,
    /// The change of all of them.
    pub change: Change,
}

/// A call stack in A and in B.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct ComparedStack {
    /// Index among all call stacks, the largest change first.
    pub row: u32,
    /// The call site.
    pub site: String,
    /// The frame that distinguishes it from other stacks of the site; empty if there is none.
    pub via: String,
    /// The category with most of the bytes.
    pub category: String,
    /// Bytes in A and in B.
    pub bytes: BytesDiff,
    /// The change relative to the largest change, from -1 to 1.
    pub share: f64,
    /// The change in blocks.
    pub blocks: CountChange,
    /// `only in A`, `only in B` or `other lines`; empty for equal frames.
    pub note: String,
}
