//! The results of replays for claims: the records that doors show.

use super::changes::Cost;
use super::id::FindingId;
use crate::recipes::{Outcome, Rest};
use crate::what_if::SimulatedBasis;
use serde::{Deserialize, Serialize};
use vramscope_units::Bytes;

/// A change of a run, and what the model says about it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Simulated {
    /// The difference from the recording, in words: `as recorded`, `expandable_segments:True`.
    pub change: String,
    /// The settings in the form of `PYTORCH_CUDA_ALLOC_CONF`. Empty for PyTorch's defaults.
    pub conf: String,
    /// For a failed allocation: whether the run goes through this point. Null for other findings.
    pub fits: Option<bool>,
    /// The bytes that are missing; null for findings that are not about a failed allocation.
    pub short_by: Option<Bytes>,
    /// The peak of `reserved_bytes`; when memory runs out, until then.
    pub reserved_peak: Bytes,
    /// The memory that PyTorch must have for the run to go through; null if it was not searched.
    pub least_device_memory: Option<Bytes>,
    /// How the numbers were obtained.
    pub basis: SimulatedBasis,
    /// The kind of the difference. Only words need it, where the record is made.
    #[serde(skip)]
    pub kind: ChangeKind,
    /// The settings that the change sets. Only words need them, too.
    #[serde(skip)]
    pub with: Vec<String>,
    /// The settings of the recording that the change drops.
    #[serde(skip)]
    pub without: Vec<String>,
}

/// The difference of a [`Simulated`] from the recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChangeKind {
    /// Nothing.
    #[default]
    AsRecorded,
    /// Expandable segments are on.
    Expandable,
    /// Other settings of the allocator.
    Settings,
}

impl Simulated {
    /// The missing bytes.
    pub fn short(&self) -> Option<Bytes> {
        self.short_by.filter(|_| self.fits == Some(false))
    }
}

/// The results of replays for a finding.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Predicted {
    /// The allocator's model of the run as recorded, then of other settings.
    pub simulated: Vec<Simulated>,
    /// Replayed changes: those with which a failed run fits, or those that remove a leak, graphs
    /// without a backward pass, or memory that is never read again.
    pub fixes: Vec<Lever>,
    /// Known causes whose cures do not suffice alone, after a failure.
    pub looks: Vec<Look>,
    /// Of a failure whose step cannot be completed: what PyTorch must have for the part that is in
    /// the file.
    pub at_least: Option<Bytes>,
    /// Of growth: the further steps after which these bytes, all that PyTorch can have, are full.
    pub full_after: Option<(u64, Bytes)>,
}

/// Something to change, and what the run needs then: a change of the program, settings of the
/// allocator, or the cure of a finding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Lever {
    /// Its name among the levers of a device: `expandable_segments:True`, `checkpoint:all`, or the
    /// id of the finding that it cures.
    pub id: String,
    /// The change's name: `checkpoint`. `setting` for settings alone, and the kind of the finding
    /// for a cure that was not replayed.
    pub kind: String,
    /// The change as `vramscope what-if --apply` takes it; empty for settings alone.
    pub recipe: String,
    /// The settings in the form of `PYTORCH_CUDA_ALLOC_CONF`; null if they stay.
    pub conf: Option<String>,
    /// The change as an instruction: `Checkpoint 6 of the 12 blocks`.
    pub text: String,
    /// The file's path.
    pub path: String,
    /// The device's ordinal.
    pub device: u32,
    /// The line to change; null where it is not known.
    pub place: Option<LeverPlace>,
    /// The memory that PyTorch must have for the run to go through without a change.
    pub now_bytes: Bytes,
    /// The memory that PyTorch must have with the change.
    pub needs_bytes: Bytes,
    /// The difference; 0 for a change that needs more.
    pub saving_bytes: Bytes,
    /// The price.
    pub cost: Cost,
    /// How much longer a step takes, in percent: at least and at most. An estimate from the
    /// device's data sheet, which was not measured on a GPU. Absent unless `cost` is `time`, and
    /// where no estimate can be defended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds_percent: Option<[u32; 2]>,
    /// The GPU of that estimate: the one that was asked for, or else that of the recording, or else
    /// an H100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds_gpu: Option<String>,
    /// Whether the run goes through with the memory that PyTorch can have; null if no limit is
    /// known.
    pub outcome: Option<Outcome>,
    /// The bytes that are missing at least; null unless `outcome` is `short`.
    pub short_by: Option<Bytes>,
    /// The part of the run that was replayed.
    pub covers: Covers,
    /// When memory is full again, if something grows from step to step that the change leaves; null
    /// if nothing grows.
    #[serde(default)]
    pub lasts: Option<Lasts>,
    /// How the numbers were obtained.
    pub basis: LeverBasis,
    /// The measured error, in percent; null where nothing but settings changes, and where it was
    /// not measured.
    pub error_percent: Option<f64>,
    /// Between which values `needs_bytes` lies, where the file can be read in two ways; else null.
    pub range: Option<[Bytes; 2]>,
    /// The finding that it cures; null if none.
    pub cures: Option<FindingId>,
    /// The change as an edit of the program; null for settings, and where none was written.
    pub edit: Option<EditRecord>,
    /// The peak of `active_bytes` is lower by this, by the sizes of blocks alone. Only the order of
    /// trials needs it, where the record is made.
    #[serde(skip)]
    pub lowers: Bytes,
}

/// How the numbers of a lever were obtained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum LeverBasis {
    /// A replay of the run with the change through the model of the allocator.
    Replayed,
    /// The peak of the recording without the blocks that the change frees.
    Estimated,
}

/// The line that a lever changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct LeverPlace {
    /// In words: `gpt.py:44`.
    pub site: String,
    /// The recorded path of the file.
    pub file: String,
    /// The line.
    pub line: u32,
}

/// A change as an edit of the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct EditRecord {
    /// The change: `checkpoint:all`.
    pub recipe: String,
    /// The line of the program: `train.py:12`; null if no call stack shows it.
    pub place: Option<String>,
    /// The statement at that line, in words.
    pub what: String,
    /// The change in Python. Names such as `model`, `block`, `hidden` and `lr` are the program's.
    pub snippet: String,
}

impl Lever {
    /// Whether the run goes through, with a margin.
    pub fn fits(&self) -> bool {
        self.outcome == Some(Outcome::Fits)
    }

    /// What a change that costs time saves for each percent by which a step gets longer, in the
    /// middle of its range; 0 for another change, and without an estimate.
    pub fn saving_per_percent(&self) -> Bytes {
        let percent = self.seconds_percent.map(|[low, high]| f64::from(low + high) / 2.0);
        let saving = |percent: f64| self.saving_bytes.0 as f64 / percent.max(0.5);
        Bytes(percent.map_or(0, |percent| saving(percent) as u64))
    }

    /// Whether it does not suffice.
    pub fn is_short(&self) -> bool {
        self.outcome == Some(Outcome::Short)
    }
}

/// How long a run goes on with a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Lasts {
    /// Further steps, after the part that `covers` names.
    pub steps: u64,
    /// The word for this number of them: `steps`, `request` or `passes`.
    pub called: String,
}

/// A known cause of memory that the file shows, and its cure. The cure alone does not suffice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Look {
    /// The cause and its cure: `attention scores: scaled_dot_product_attention`.
    pub text: String,
    /// The peak of `active_bytes` is lower by this, replayed.
    pub bytes: Bytes,
    /// The line: `gpt.py:18`; null where it is not known.
    pub site: Option<String>,
    /// The change as `vramscope what-if --apply` takes it.
    pub recipe: String,
}

/// The part of the run that a replay covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Covers {
    /// The recorded run.
    Run,
    /// The recorded run, and three steps like its last whole one: no evaluation, and no longer
    /// input, that the file lacks.
    Steps,
    /// The rest of the failed step as the file lets one conclude it, and a further step.
    Step,
    /// The failed request: what comes after is not known.
    Request,
}

impl Covers {
    /// The part that a completion of the failed step covers.
    pub fn of(rest: Rest) -> Self {
        match rest {
            Rest::Whole => Self::Run,
            Rest::Repeated => Self::Steps,
            Rest::Optimizer | Rest::Backward | Rest::Forward | Rest::Evaluation | Rest::Like => {
                Self::Step
            }
            Rest::Unknown => Self::Request,
        }
    }
}

impl Predicted {
    /// The first change that fits.
    pub fn best(&self) -> Option<&Lever> {
        self.fixes.iter().find(|lever| lever.fits())
    }
}
