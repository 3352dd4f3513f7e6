//! Two recordings beside each other: what the coordinator is asked, and what it answers.

use super::DetailCard;
use crate::Quantity;
use serde::{Deserialize, Serialize};
use vramscope_report::side::Align;

/// What is asked of two devices. Both answered [`Query::Side`](super::Query::Side) before, each in
/// its own worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum CompareQuery {
    /// Lay these beside each other; the other questions are about them from now on.
    Sides {
        /// The one before, as its worker answered.
        a: String,
        /// The one after.
        b: String,
    },
    /// A page of the call stacks, the largest change first.
    Stacks {
        /// Only those with this word in a function, a file or the category; empty for all.
        text: String,
        /// The first row.
        from: u32,
        /// How many.
        count: u32,
    },
    /// One of them, for the details.
    Stack {
        /// [`ComparedStack::row`].
        row: u32,
    },
}

/// The answer to a [`CompareQuery`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum CompareAnswer {
    /// Of `Sides`: null when one of them is none.
    Comparison(Option<Box<Comparison>>),
    /// Of `Stacks`.
    Stacks(ComparedStacks),
    /// Of `Stack`: null when there is no such row.
    Detail(Option<Box<DetailCard>>),
}

/// Two devices beside each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct Comparison {
    /// `requested bytes peak at 2.17 GiB in A, at 2.60 GiB in B: +445.1 MiB, +20.1 %`.
    pub text: String,
    /// Where the band peaks in each: `#1,234`.
    pub peaks: [String; 2],
    /// Each band at its start where there was any, its peak and its end; blocks, OOMs and findings.
    pub totals: Vec<ComparedRow>,
    /// What is live at the peaks, by category, the largest change first.
    pub categories: Vec<ComparedRow>,
    /// The band over both windows, by event, by time and by step.
    pub curves: Vec<ComparedCurves>,
    /// Findings that are only in one of them.
    pub findings: Vec<ComparedFinding>,
}

/// A number before and after.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct ComparedRow {
    /// `requested_bytes.peak`, `ooms`, `parameter`.
    pub key: String,
    /// `requested peak`.
    pub label: String,
    /// Before.
    pub a: Quantity,
    /// After.
    pub b: Quantity,
    /// The change, with its sign.
    pub change: Quantity,
    /// The same in percent of what was before.
    pub percent: String,
}

/// Both curves along one axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct ComparedCurves {
    /// What they are laid over each other by.
    pub align: Align,
    /// Why there are none; empty when there are.
    pub missing: String,
    /// The one before as an SVG path in a box of [`COMPARED`], y down.
    pub a: String,
    /// The one after.
    pub b: String,
    /// Round places along x, as parts of the box from its left.
    pub x: Vec<PlaceMark>,
    /// Round places along y, from its bottom.
    pub y: Vec<PlaceMark>,
}

/// Width and height of [`ComparedCurves`]' paths.
pub const COMPARED: [u32; 2] = [1200, 200];

/// A label of an axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct PlaceMark {
    /// 0 to 1.
    pub at: f64,
    /// `2.00 GiB`.
    pub text: String,
}

/// A finding of one of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct ComparedFinding {
    /// Whether it came with B; else it went with A.
    pub is_new: bool,
    /// `Growth`.
    pub label: String,
    /// A sentence or two.
    pub text: String,
    /// How much memory it is about.
    pub bytes: Quantity,
}

/// A page of call stacks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct ComparedStacks {
    /// How many match.
    pub total: u32,
    /// `32 of 34 call stacks, +445.1 MiB`.
    pub text: String,
    /// The first row's place among those that match.
    pub from: u32,
    /// The rows.
    pub rows: Vec<ComparedStack>,
}

/// A call stack before and after.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct ComparedStack {
    /// Its place among all, the largest change first.
    pub row: u32,
    /// The call site.
    pub site: String,
    /// Where it parts from others of that site; empty where there is none.
    pub via: String,
    /// What most of it is.
    pub category: String,
    /// Bytes before.
    pub a: Quantity,
    /// Bytes after.
    pub b: Quantity,
    /// The change, with its sign.
    pub change: Quantity,
    /// The change as a part of the largest, -1 to 1.
    pub share: f64,
    /// The change in blocks, with its sign.
    pub blocks: Quantity,
    /// `only in A`, `only in B`, `other lines`; empty where its frames are the same.
    pub note: String,
}
