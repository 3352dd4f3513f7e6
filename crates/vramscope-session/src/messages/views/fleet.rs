//! The picture of many ranks: peaks by cluster and by iteration.

use crate::messages::Quantity;
use serde::{Deserialize, Serialize};
use vramscope_units::Iteration;

/// Width and height of the box of [`Fleet::median_path`] and [`Fleet::max_path`].
pub const SERIES: [u32; 2] = [200, 40];

/// The ranks of a run and iteration in one picture.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct Fleet {
    /// Clusters of like ranks, that with the lowest rank first.
    pub clusters: Vec<FleetCluster>,
    /// The distribution of the peaks of requested bytes; empty with few ranks.
    pub bars: Vec<FleetBar>,
    /// Labels of the bytes.
    pub ticks: Vec<FleetTick>,
    /// The number of ranks of the highest bar in words.
    pub most: String,
    /// The memory that PyTorch could have; null if it is not known.
    pub capacity: Option<FleetTick>,
    /// What the sizes of the parallel groups mean, or why they cannot be; empty without sizes.
    pub sizes: String,
    /// Whether the sizes fit the run.
    pub is_sized: bool,
    /// The iterations of the ranks, ascending; empty with fewer than two.
    pub iterations: Vec<FleetIteration>,
    /// The median of the peaks by iteration, as an SVG path in a box of [`SERIES`], y down.
    pub median_path: String,
    /// The highest peak by iteration.
    pub max_path: String,
}

/// A cluster of like ranks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct FleetCluster {
    /// Its ranks in words: `ranks 0-3, 8`.
    pub text: String,
    /// Its place among the parallel groups: `pp 0, tp 0-3`; empty if it is not known.
    pub place: String,
    /// The number of its ranks.
    pub count: Quantity,
    /// The median of the peaks of requested bytes.
    pub median: Quantity,
    /// The highest of these.
    pub max: Quantity,
    /// The filter that shows its ranks.
    pub filter: String,
}

/// A bar of the distribution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct FleetBar {
    /// Its left edge, from 0 to 1.
    pub x0: f64,
    /// Its right edge.
    pub x1: f64,
    /// The upper edges of its parts by cluster, from 0 to 1 of the highest bar.
    pub tops: Vec<f64>,
    /// The number of ranks.
    pub count: u32,
    /// The bar in words: `10.0 GiB to 10.5 GiB: 312 ranks`.
    pub text: String,
    /// The filter that shows its ranks.
    pub filter: String,
}

/// A labeled place along the bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct FleetTick {
    /// The place, from 0 to 1.
    pub at: f64,
    /// The label.
    pub text: String,
}

/// The ranks of one iteration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct FleetIteration {
    /// The iteration.
    pub iteration: Iteration,
    /// The median of the peaks of requested bytes.
    pub median: Quantity,
    /// The highest of these.
    pub max: Quantity,
    /// The place of its point in the paths, from 0 to 1.
    pub at: f64,
}

/// What the lines of an index that were read last have added.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct ReadIndex {
    /// The run's name.
    pub title: String,
    /// The files that no line of the same answer named before.
    pub files: Vec<IndexedFile>,
    /// How many files have their card in words: `Reading 312 of 1,024 ranks`; empty at the end.
    pub progress: String,
    /// The number from which to ask a server for the rest; null for a whole index.
    pub next: Option<f64>,
    /// Whether the last line was read.
    pub is_done: bool,
    /// Why the lines cannot be read; null if they can.
    pub error: Option<String>,
}

/// A file of an index.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct IndexedFile {
    /// The path.
    pub path: String,
    /// The size in bytes.
    pub bytes: f64,
    /// Why the file could not be read; null if it could.
    pub error: Option<String>,
}
