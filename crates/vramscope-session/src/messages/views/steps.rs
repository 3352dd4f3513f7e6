//! Steps over each other on one axis.

use crate::messages::Quantity;
use serde::{Deserialize, Serialize};

/// Width and height of the pictures of folded steps, in the units of their paths.
pub const FOLDED: [u32; 2] = [1000, 400];

/// Steps over each other on one axis: their curves from their start to their end, and what stays
/// after each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct FoldedSteps {
    /// What follows, in sentences.
    pub text: Vec<String>,
    /// The steps in order, at most the last 200.
    pub steps: Vec<FoldedStep>,
    /// The number of earlier steps; empty without any: `12 earlier steps`.
    pub earlier: String,
    /// The area between the least and the most bytes of the listed steps, as an SVG path with the
    /// fill rule `evenodd`.
    pub ribbon: String,
    /// What stays after each listed step, as a staircase: an SVG path.
    pub floors: String,
    /// The texts of ticks of the y axis, from the bottom.
    pub ticks: Vec<String>,
    /// Their heights, in units of the picture from the top.
    pub heights: Vec<f64>,
    /// True if the y axis does not begin at 0.
    pub is_cut: bool,
}

/// A whole step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct FoldedStep {
    /// The step, from 0.
    pub step: u32,
    /// The filter of its blocks: `step:3`.
    pub term: String,
    /// The curve of requested bytes, as an SVG path; empty for all but the last 24 steps.
    pub path: String,
    /// The most requested bytes.
    pub peak: Quantity,
    /// Requested bytes after it.
    pub floor: Quantity,
    /// What they grew by since the step before; null for the first step.
    pub change: Option<Quantity>,
}
