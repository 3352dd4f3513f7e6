//! Whether a run has an optimization, and the proof.

use serde::{Deserialize, Serialize};
use vramscope_snapshot::FrameId;

/// Whether a run has an optimization.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Enabled {
    /// It has.
    On,
    /// It has not.
    Off,
    /// A part of it has.
    Partly,
}

/// Proof that a run has an optimization, or lacks it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Proof {
    /// The line of the program or of a package that shows it.
    pub site: Option<FrameId>,
    /// The function of PyTorch, or of a package, that does it.
    pub by: Option<FrameId>,
    /// The line that does without it.
    pub other: Option<FrameId>,
    /// How often it was seen.
    pub count: u32,
    /// Of how many.
    pub of: u32,
    /// Bytes that show it.
    pub bytes: u64,
    /// Blocks of the model that one checkpointed piece computes again at once; else 0.
    pub at_once: u32,
}
