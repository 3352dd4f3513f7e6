//! Dry runs: recordings of programs that ran without a GPU.
//!
//! The file beside a snapshot says that it is of a dry run, and what was made up in it
//! (docs/sidecar.md).

use crate::card::Card;
use crate::findings::FindingRecord;
use crate::peak::BandKind;
use crate::sidecar::Sidecar;
use crate::target::Target;
use serde::{Deserialize, Serialize};
use vramscope_inference::FindingKind;
use vramscope_snapshot::HOST;
use vramscope_units::{Bytes, grouped};

/// The most lines of the program that a note names.
const MAX_LINES: usize = 3;

/// The field `dry` of the file beside a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DryRun {
    /// The GPU, as the user named it.
    pub gpu: String,
    /// The memory of the device in bytes.
    pub memory_bytes: Bytes,
    /// Which tensors had true values: `off`, `small` or `full`.
    pub values: String,
    /// Lines of the program that read values which were not computed.
    pub read: Vec<ReadLine>,
    /// The version of cuDNN that planned, or `model`; null if nothing asked cuDNN.
    pub cudnn: Option<String>,
    /// Whether cuDNN searched for its fastest plans, which takes memory once.
    pub is_searching: bool,
    /// Functions of Nvidia's libraries that were called and are not there.
    pub unknown: Vec<String>,
    /// Loaded files with a CUDA runtime of their own, which a dry run does not reach.
    pub own_runtimes: Vec<String>,
    /// `steps` if the program was ended after a number of steps.
    pub ended: Option<String>,
    /// The line of the program that ran when it was ended from outside.
    pub at: Option<String>,
}

/// A line of the program that read values which were not computed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct ReadLine {
    /// File and line: `train.py:77`.
    pub line: String,
    /// The operator that read.
    pub operator: String,
    /// How often.
    #[cfg_attr(feature = "typescript", ts(type = "number"))]
    pub count: u64,
    /// `size` if a size depends on it, else `branch`.
    pub decides: String,
}

/// Whether a program fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub enum DryOutcome {
    /// No allocation failed.
    Fits,
    /// An allocation failed.
    RunsOut,
}

/// A dry run in a diagnosis.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct DrySummary {
    /// The file's path.
    pub path: String,
    /// The device's ordinal.
    pub device: u32,
    /// The GPU, as the user named it.
    pub gpu: String,
    /// The memory of the device.
    pub memory_bytes: Bytes,
    /// Steps of the optimizer that were run.
    pub steps: usize,
    /// The peak of `active_bytes`.
    pub active_bytes: Bytes,
    /// The peak of `reserved_bytes`.
    pub reserved_bytes: Bytes,
    /// Whether the program fits.
    pub outcome: DryOutcome,
    /// Lines of the program that read values which were not computed.
    pub read: Vec<ReadLine>,
    /// All of this in a line.
    pub text: String,
    /// What is estimated, or was not computed: a sentence each.
    pub notes: Vec<String>,
}

impl DrySummary {
    /// What is said about a device of a dry run; `None` for another recording.
    pub(crate) fn of(target: Target<'_>, card: &Card) -> Option<Self> {
        let sidecar = target.entry.sidecar()?;
        let dry = sidecar.dry.as_deref()?;
        if card.device == HOST {
            return None;
        }
        let failure = card.entries.iter().map(|entry| &entry.record);
        let failure = failure.into_iter().find(|record| record.kind == FindingKind::Oom);
        let mut summary = Self {
            path: card.path.clone(),
            device: card.device,
            gpu: dry.gpu.clone(),
            memory_bytes: dry.memory_bytes,
            steps: sidecar.steps.len(),
            active_bytes: Bytes(card.peak(BandKind::Active)),
            reserved_bytes: Bytes(card.peak(BandKind::Reserved)),
            outcome: if failure.is_some() { DryOutcome::RunsOut } else { DryOutcome::Fits },
            read: dry.read.clone(),
            text: String::new(),
            notes: notes(dry, sidecar),
        };
        summary.text = summary.words(failure, dry);
        Some(summary)
    }

    /// The one of several ranks and moments that tells most: a failure before others, then the
    /// highest peak.
    pub(crate) fn worst(all: impl IntoIterator<Item = Self>) -> Option<Self> {
        all.into_iter().max_by_key(|one| (one.outcome, one.active_bytes, one.steps))
    }

    fn words(&self, failure: Option<&FindingRecord>, dry: &DryRun) -> String {
        let of = format!("dry run of {} ({})", self.gpu, self.memory_bytes);
        if let Some(failure) = failure {
            return format!("{of}: runs out{}", place_of(failure, self.steps));
        }
        let so_far = if dry.at.is_some() { " so far" } else { "" };
        let steps = match self.steps {
            0 => String::new(),
            1 => format!("1 step{so_far}, "),
            steps => format!("{} steps{so_far}, ", grouped(steps as u64)),
        };
        let end = match &dry.at {
            Some(at) => format!("ended at {at}"),
            None => "fits".to_owned(),
        };
        format!("{of}: {steps}peak {}, {} reserved, {end}", self.active_bytes, self.reserved_bytes)
    }
}

/// Where an allocation failed: ` in backward of step 0 at model.py:88`.
fn place_of(failure: &FindingRecord, steps: usize) -> String {
    let phase = failure.phase.map(|phase| format!(" in {}", phase.name()));
    let step = match failure.step {
        Some(step) => format!(" of step {step}"),
        None if phase.is_some() => format!(" of step {steps}"),
        None => String::new(),
    };
    let site = failure.place.as_ref().map(|place| place.site.as_str()).unwrap_or_default();
    // The function is in the finding below.
    let at = site.split(' ').next().filter(|line| !line.is_empty());
    let at = at.map(|line| format!(" at {line}"));
    format!("{}{step}{}", phase.unwrap_or_default(), at.unwrap_or_default())
}

fn notes(dry: &DryRun, sidecar: &Sidecar) -> Vec<String> {
    let mut notes = Vec::new();
    let sizes: Vec<&ReadLine> = dry.read.iter().filter(|read| read.decides == "size").collect();
    let branches: Vec<&ReadLine> = dry.read.iter().filter(|read| read.decides != "size").collect();
    if !sizes.is_empty() {
        notes.push(format!("sizes depend on values that were not computed: {}", listed(&sizes)));
    }
    if !branches.is_empty() {
        notes.push(format!("values that were not computed were read: {}", listed(&branches)));
    }
    if dry.values == "off" {
        let torch = sidecar.torch.as_deref().unwrap_or("this PyTorch");
        notes
            .push(format!("no values were computed ({torch}): whatever depends on one may differ"));
    }
    if dry.cudnn.as_deref() == Some("model") {
        notes.push(
            "workspaces of cuDNN are estimated: no cuDNN 9.8 or later beside this PyTorch".into(),
        );
    }
    if dry.is_searching {
        notes.push(
            "cudnn.benchmark tries plans in the first pass of each shape, which takes memory"
                .into(),
        );
    }
    if !dry.own_runtimes.is_empty() {
        notes.push(format!(
            "has a CUDA runtime of its own, which a dry run does not reach: {}",
            dry.own_runtimes.join(", ")
        ));
    }
    // Others only do work, which a dry run leaves out.
    let asks = |name: &&String| {
        ["Get", "Size", "Query", "Workspace"].iter().any(|part| name.contains(part))
    };
    let unknown: Vec<&String> = dry.unknown.iter().filter(asks).collect();
    if !unknown.is_empty() {
        let shown: Vec<&str> = unknown.iter().take(MAX_LINES).map(|name| name.as_str()).collect();
        let more = unknown.len() - shown.len();
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        notes.push(format!("questions that a dry run cannot answer: {}{more}", shown.join(", ")));
    }
    notes
}

fn listed(lines: &[&ReadLine]) -> String {
    let shown = lines.iter().take(MAX_LINES).map(|read| {
        let times = if read.count == 1 { String::new() } else { format!(", {} times", read.count) };
        let operator = match read.operator.as_str() {
            // PyTorch's name of `item()`, `float()`, `bool()`.
            "_local_scalar_dense" => "item",
            operator => operator,
        };
        format!("{} ({operator}{times})", read.line)
    });
    let shown: Vec<String> = shown.collect();
    match lines.len() - shown.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
