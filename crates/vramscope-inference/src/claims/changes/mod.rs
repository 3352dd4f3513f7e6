//! Changes of the program, one file each: whether a run has it, what it does to the run's memory,
//! its line and its words.
//!
//! A new change is a file with a [`Change`], its name in the list below, and a twin: a program that
//! was really changed (`scripts/twins`). Names, errors, JSON, documents and fixes come from there.

mod accumulate;
mod attention_flash;
mod autocast;
mod autocast_cache;
mod batch;
mod checkpoint;
mod checkpoint_half;
mod chunked_loss;
mod compare;
mod del;
mod drop_held;
mod edit_at;
mod eval_batch;
mod eval_no_grad;
mod features;
mod foreach_off;
mod freeze;
mod growth;
mod in_parts;
mod last_use;
mod offload_activations;
mod optimizer_8bit;
mod optimizer_adafactor;
mod optimizer_fused;
mod optimizer_in_backward;
mod optimizer_muon;
mod optimizer_sgd;
mod params_bf16;
mod prelude;
mod recipe;
mod sequence;
mod shard;
mod upcast_off;
mod words;
mod zero_grad;

pub use compare::Changes;
pub use edit_at::EditAt;
pub use features::{Enabled, Features, Optimization, Proof};
pub use recipe::{Recipe, RecipeError, Value};
pub use words::ProofWords;

use crate::evidence::Evidence;
use crate::evidence::Run;
use crate::recipes::facts::Facts;
use crate::recipes::lives::Lives;
use crate::recipes::{Applied, Declined, Editable};
use compare::{Compared, came_or_went};
use edit_at::Line;
use serde::{Deserialize, Serialize};
use std::fmt;
use vramscope_snapshot::FrameId;
use vramscope_units::named;

/// All changes. Those of one cost are in the order in which they are tried after a failure: the
/// least first.
pub static CHANGES: &[&Change] = &[
    &del::DEL,
    &last_use::LAST_USE,
    &in_parts::IN_PARTS,
    &zero_grad::EARLY,
    &zero_grad::LATE,
    &eval_no_grad::EVAL_NO_GRAD,
    &foreach_off::FOREACH_OFF,
    &optimizer_fused::FUSED,
    &attention_flash::FLASH,
    &eval_batch::EVAL_BATCH,
    &upcast_off::UPCAST_OFF,
    &autocast_cache::AUTOCAST_CACHE_OFF,
    &accumulate::ACCUMULATE,
    &checkpoint_half::HALF,
    &chunked_loss::CHUNKED_LOSS,
    &checkpoint::ALL,
    &checkpoint::SITE,
    &optimizer_in_backward::IN_BACKWARD,
    &offload_activations::OFFLOAD,
    &optimizer_8bit::EIGHT_BIT,
    &optimizer_sgd::SGD,
    &optimizer_adafactor::ADAFACTOR,
    &optimizer_muon::MUON,
    &params_bf16::PARAMS_BF16,
    &autocast::BF16,
    &autocast::OFF,
    &freeze::EMBEDDING,
    &freeze::LOWER,
    &shard::SHARD,
    &batch::BATCH,
    &sequence::SEQUENCE,
];

named! {
    /// What a change costs, least first.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    #[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
    #[serde(rename_all = "snake_case")]
    pub enum Cost {
        /// An environment variable.
        Setting = "setting",
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

/// Changes of one group are forms of one change: two of them do not combine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Group {
    /// Of one name: `checkpoint:all` and `checkpoint:half`.
    Name,
    /// They say how the optimizer updates.
    Optimizer,
    /// They say when the graph's blocks die.
    Graph,
    /// They say when the results of a line die: of equal lines.
    Line,
}

/// What a change is offered for.
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
    /// What it does to the list of blocks, for docs/what-if.md.
    pub does: &'static str,
    /// The error of the active peak that was measured over programs that were really changed: 95 of
    /// 100 are within it, in percent. `None` where too few were measured.
    pub error_percent: Option<f64>,
    /// What it costs.
    pub cost: Cost,
    /// The values with which it is tried after a failure and as a saving.
    pub tries: fn(&Offer<'_>) -> Vec<Value>,
    /// Its saving counts so much beside those of others, in percent.
    pub worth_percent: u64,
    /// The batch, or a part of it, gets smaller.
    pub is_smaller_batch: bool,
    /// Everybody tries it: it is named even if it does not help.
    pub is_usual: bool,
    /// It is about the request that failed: it counts if that goes through, whatever follows.
    pub is_of_request: bool,
    /// The known cause that it cures, and its cure.
    pub cause: Option<&'static str>,
    /// Blocks move in time, so that the order of requests changes.
    pub moves_blocks: bool,
    group: Group,
    /// Edits the list of blocks.
    apply: fn(&mut Lives, &Facts, &Value, Evidence<'_>) -> Result<Applied, Declined>,
    /// Whether a run has it already; `None` if no recording tells.
    is_on: Option<Detector>,
    /// The name under which a run has it, if that is not the form.
    listed_as: &'static str,
    /// When a run counts as one that has it and has it not, for docs/what-if.md.
    pub on: [&'static str; 2],
    /// The proof that a run has it, or has it not, without capital and point.
    proof: fn(Enabled, &ProofWords) -> String,
    /// What leads from one run to another.
    compare: fn(&'static Change, &Features, &Features) -> Compared,
    /// The second run of a comparison must show that it still has it.
    must_stay: bool,
    line: Line,
    /// What stands at its line.
    pub what: &'static str,
    /// What to write there; empty for a change without a prediction.
    snippet: &'static str,
    /// What to write for a model of transformers.
    snippet_of_transformers: Option<&'static str>,
    /// What it is called in a list, for a value, the blocks or passes that it changed, and the
    /// line: ` (gpt.py:44)`.
    called: fn(&Value, u32, &str) -> String,
    /// What it found, for the same.
    found: Option<fn(u32, &str) -> String>,
}

impl Change {
    /// A change that is never offered, never found in a run, and has no line.
    const PLAIN: Self = Self {
        form: "",
        does: "",
        error_percent: None,
        cost: Cost::Edit,
        tries: |_| Vec::new(),
        worth_percent: 100,
        is_smaller_batch: false,
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
        called: |_, _, _| String::new(),
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
