//! The record of a change of the program, and the optimizations of a run.

use super::value::Value;
use super::words::ProofWords;
use crate::evidence::proof::{Enabled, Proof};
use crate::evidence::traits::Traits;
use crate::evidence::{Evidence, Run};
use crate::recipes::facts::Facts;
use crate::recipes::lives::Lives;
use crate::recipes::{Applied, Declined, Editable};
use crate::step_phases::CategoryBytes;
use serde::{Deserialize, Serialize};
use std::fmt;
use vramscope_snapshot::FrameId;
use vramscope_units::named;

named! {
    /// The price of a change, least first.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    #[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
    #[serde(rename_all = "snake_case")]
    pub enum Cost {
        /// Nothing: an environment variable.
        None = "none",
        /// A line of the program, without a loss.
        Edit = "edit",
        /// Computing time.
        Time = "time",
        /// Precision of numbers.
        Precision = "precision",
        /// A smaller batch: other results, or more steps.
        Batch = "batch",
    }
}

/// What makes a step longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slows {
    /// Nothing.
    Not,
    /// Something that no file shows.
    Unknown,
    /// Backward computes the new blocks again.
    Recomputes,
    /// Backward computes the logits and the loss again.
    Loss,
    /// The new blocks cross the link to the host twice.
    Crosses,
    /// Forward and backward run as many times as it has parts.
    Repeats,
    /// The optimizer runs once for each parameter.
    Updates,
}

/// Changes of one group are forms of one change: two of them do not combine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    /// Of one name: `checkpoint:all` and `checkpoint:half`.
    Name,
    /// They say how the optimizer updates.
    Optimizer,
    /// They say when the graph's blocks die.
    Graph,
    /// They say when the results of a line die: of equal lines.
    Line,
}

/// Which line of the program a change edits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// None, or the line of its recipe.
    None,
    /// The call of the model's blocks.
    Blocks,
    /// The call of the loss.
    Loss,
    /// The softmax of attention.
    Maps,
    /// The call of the optimizer's step.
    Optimizer,
    /// The call of the model in a pass with a backward pass.
    Training,
    /// The call of the model in an evaluation.
    Evaluation,
    /// Where the parameters are made.
    Parameters,
}

/// The run for which changes are tried.
pub struct Offer<'a> {
    /// The run.
    pub run: &'a Editable,
    /// Its recording.
    pub cx: Evidence<'a>,
    /// Its call sites whose results outlive their use, and the bytes, most first.
    pub held: Vec<(FrameId, u64)>,
    /// The inputs of the largest step before the one that failed, as a part of its own.
    pub earlier_batch: Option<f64>,
}

/// Tells whether a run has a change, with proof; `None` if the recording does not tell.
type Detector = fn(Run<'_>) -> Option<(Enabled, Proof)>;

/// A change of the program.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact that one reader asks for")]
pub struct Change {
    /// The form of its recipe. `K` is a factor, `N` a number of parts, `FILE:LINE` a line.
    pub form: &'static str,
    /// Its edit of the list of blocks in words, as `vramscope explain` prints it.
    pub does: &'static str,
    /// The error of the active peak that was measured over programs that were really changed: 95 of
    /// 100 are within it, in percent. `None` where too few were measured.
    pub error_percent: Option<f64>,
    /// The price.
    pub cost: Cost,
    /// What makes a step longer.
    pub(crate) slows: Slows,
    /// The values with which it is tried after a failure and as a saving.
    pub tries: fn(&Offer<'_>) -> Vec<Value>,
    /// Its saving counts so much beside those of others, in percent.
    pub worth_percent: u64,
    /// The batch, or a part of it, gets smaller.
    pub is_smaller_batch: bool,
    /// All that grows with the inputs changes.
    pub scales_passes: bool,
    /// Everybody tries it: it is named even if it does not help.
    pub is_usual: bool,
    /// It is about the request that failed: it counts if that goes through, whatever follows.
    pub is_of_request: bool,
    /// The known cause that it cures, and its cure.
    pub cause: Option<&'static str>,
    /// Blocks move in time, so that the order of requests changes.
    pub moves_blocks: bool,
    pub(super) group: Group,
    /// Edits the list of blocks.
    pub(super) apply: fn(&mut Lives, &Facts, &Value, Evidence<'_>) -> Result<Applied, Declined>,
    /// Whether a run has it already; `None` if no recording tells.
    pub(super) is_on: Option<Detector>,
    /// The name under which a run has it, if that is not the form.
    pub(super) listed_as: &'static str,
    /// When a run counts as one that has it and has it not, as `vramscope explain` prints it.
    pub on: [&'static str; 2],
    /// The proof that a run has it, or has it not, without capital and point.
    pub(super) proof: fn(Enabled, &ProofWords) -> String,
    /// Whether it leads from one run to another.
    pub(super) compare: fn(&'static Change, &Features, &Features) -> Compared,
    /// The second run of a comparison must show that it still has it.
    pub(super) must_stay: bool,
    pub(super) line: Line,
    /// The statement at its line, in words.
    pub what: &'static str,
    /// The code to write there; empty for a change without a prediction.
    pub(super) snippet: &'static str,
    /// The code for a model of transformers.
    pub(super) snippet_of_transformers: Option<&'static str>,
    /// The change as an instruction, for its value and the blocks that it found.
    pub(super) called: fn(&Value, &Applied) -> String,
    /// The blocks or passes that it found in words, for their number and the line.
    pub(super) found: Option<fn(u32, &str) -> String>,
}

impl Change {
    /// A change that is never offered, never found in a run, and has no line.
    pub(super) const PLAIN: Self = Self {
        form: "",
        does: "",
        error_percent: None,
        cost: Cost::Edit,
        slows: Slows::Not,
        tries: |_| Vec::new(),
        worth_percent: 100,
        is_smaller_batch: false,
        scales_passes: false,
        is_usual: false,
        is_of_request: false,
        cause: None,
        moves_blocks: false,
        group: Group::Name,
        apply: |_, _, _, _| Err(Declined::NotPredicted),
        is_on: None,
        listed_as: "",
        on: [""; 2],
        proof: |_, _| String::new(),
        compare: came_or_went,
        must_stay: false,
        line: Line::None,
        what: "",
        snippet: "",
        snippet_of_transformers: None,
        called: |_, _| String::new(),
        found: None,
    };

    /// The name of the optimization that a run has: `checkpoint`, `eval:no_grad`.
    pub fn listed(&self) -> &'static str {
        if self.listed_as.is_empty() { self.form } else { self.listed_as }
    }

    /// Whether its effect is predicted.
    pub fn is_predicted(&self) -> bool {
        !self.snippet.is_empty()
    }

    /// The name before the colon: `checkpoint`.
    pub fn name(&self) -> &'static str {
        self.form.split(':').next().unwrap_or(self.form)
    }

    pub(super) fn compared(&'static self, a: &Features, b: &Features) -> Compared {
        (self.compare)(self, a, b)
    }
}

impl fmt::Debug for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.form)
    }
}

impl PartialEq for Change {
    fn eq(&self, other: &Self) -> bool {
        self.form == other.form
    }
}

/// How a second run differs from the first, for one change.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Compared {
    /// Nothing of this change.
    Same,
    /// The change.
    Came(Value),
    /// The change, unless another one came or went.
    CameAlone(Value),
    /// As well as another change.
    Or(Value),
    /// The second run is without it.
    Went,
    /// Something that has no name.
    Unnamed,
}

/// A change that was off came, and one that was on went.
pub(super) fn came_or_went(change: &'static Change, a: &Features, b: &Features) -> Compared {
    match (a.state(change), b.state(change)) {
        (Some(Enabled::Off), Some(Enabled::On)) => Compared::Came(Value::None),
        (Some(Enabled::On), Some(Enabled::Off)) => Compared::Went,
        _ => Compared::Same,
    }
}

/// As [`came_or_went`], where only what comes tells.
pub(super) fn came(change: &'static Change, a: &Features, b: &Features) -> Compared {
    match came_or_went(change, a, b) {
        Compared::Went => Compared::Same,
        compared => compared,
    }
}

/// A change that a run has, or has not.
#[derive(Clone, Copy, Debug)]
pub struct Optimization {
    /// Which.
    pub change: &'static Change,
    /// Whether the run has it.
    pub state: Enabled,
    /// The proof of the state.
    pub proof: Proof,
}

/// How a run was made: its memory optimizations, and sizes to compare with another run.
#[derive(Clone, Debug)]
pub struct Features {
    /// The optimizations that the recording tells about.
    pub optimizations: Vec<Optimization>,
    /// The optimizer's classes, as PyTorch names the ranges of their steps.
    pub optimizers: Vec<String>,
    /// Requested bytes by category where they are most.
    pub at_peak: CategoryBytes,
    /// Lines of PyTorch's call of a module: they differ between releases.
    pub torch_lines: Vec<u32>,
    pub(super) traits: Traits,
}

impl Features {
    /// The state of a change; `None` if the recording does not tell.
    pub fn of(&self, change: &Change) -> Option<&Optimization> {
        self.optimizations.iter().find(|of| of.change == change)
    }

    pub(super) fn state(&self, change: &Change) -> Option<Enabled> {
        self.of(change).map(|of| of.state)
    }

    pub(super) fn is(&self, change: &Change, state: Enabled) -> bool {
        self.state(change) == Some(state)
    }
}
