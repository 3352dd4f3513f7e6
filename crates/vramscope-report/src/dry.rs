//! Dry runs: recordings of programs that ran without a GPU.
//!
//! The file beside a snapshot says that it is of a dry run, and what was made up in it
//! (SIDECAR.md).

use crate::card::Card;
use crate::findings::FindingRecord;
use crate::peak::BandKind;
use crate::sidecar::Sidecar;
use crate::target::Target;
use crate::text::place_if_known;
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
    /// Whether PyTorch has kernels for the GPU.
    pub has_kernels: Option<bool>,
    /// The process.
    pub pid: u32,
    /// What has ended the program before its own end: `steps`, `limit`, `interrupt`, or the type of
    /// an error. Null if nothing has.
    pub ended: Option<String>,
    /// The line of the program at which it was ended.
    pub at: Option<String>,
}

/// How a program has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// By itself, or after the steps that were asked for.
    Own,
    /// By the time limit.
    Limit,
    /// By the user.
    Interrupt,
    /// By an error that says that memory ran out.
    OutOfMemory,
    /// By another error.
    Error,
}

impl DryRun {
    fn end(&self) -> End {
        match self.ended.as_deref() {
            None | Some("steps") => End::Own,
            Some("limit") => End::Limit,
            Some("interrupt" | "KeyboardInterrupt") => End::Interrupt,
            Some(name) if name.contains("OutOfMemory") => End::OutOfMemory,
            Some(_) => End::Error,
        }
    }
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
    /// The type of the values: `bool`, `float32`.
    pub dtype: String,
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
    /// The program came to its end, or to the steps that were asked for.
    Fits,
    /// Something else ended it before: nothing is known of what would follow.
    Ended,
    /// An allocation failed, and the program did not go on.
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
    /// The process.
    #[serde(skip)]
    #[cfg_attr(feature = "typescript", ts(skip))]
    pid: u32,
    /// Whether the snapshot was written at the end of the process.
    #[serde(skip)]
    #[cfg_attr(feature = "typescript", ts(skip))]
    is_last: bool,
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
        let is_last = sidecar.reason.as_deref() == Some("end");
        let outcome = match dry.end() {
            End::OutOfMemory => DryOutcome::RunsOut,
            _ if failure.is_some() && !is_last => DryOutcome::RunsOut,
            End::Own => DryOutcome::Fits,
            End::Limit | End::Interrupt | End::Error => DryOutcome::Ended,
        };
        let mut summary = Self {
            path: card.path.clone(),
            device: card.device,
            gpu: dry.gpu.clone(),
            memory_bytes: dry.memory_bytes,
            steps: sidecar.steps.len(),
            active_bytes: Bytes(card.peak(BandKind::Active)),
            reserved_bytes: Bytes(card.peak(BandKind::Reserved)),
            outcome,
            read: dry.read.clone(),
            text: String::new(),
            notes: notes(dry, sidecar),
            pid: dry.pid,
            is_last,
        };
        summary.text = summary.words(failure, card.ooms.len(), dry);
        Some(summary)
    }

    /// The one of several ranks and moments that tells most: a failure before others, then the
    /// highest peak.
    pub(crate) fn worst(all: impl IntoIterator<Item = Self>) -> Option<Self> {
        let all: Vec<Self> = all.into_iter().collect();
        // The end of a process tells whether it has survived a failure.
        let ended: Vec<u32> = all.iter().filter(|one| one.is_last).map(|one| one.pid).collect();
        let all = all.into_iter().filter(|one| one.is_last || !ended.contains(&one.pid));
        all.max_by_key(|one| (one.outcome, one.active_bytes, one.steps))
    }

    fn words(&self, failure: Option<&FindingRecord>, failures: usize, dry: &DryRun) -> String {
        let of = match self.device {
            0 => format!("dry run of {} ({})", self.gpu, self.memory_bytes),
            device => format!("dry run of {} ({}), GPU {device}", self.gpu, self.memory_bytes),
        };
        if self.outcome == DryOutcome::RunsOut {
            return format!("{of}: runs out{}", place_of(failure, self.steps, dry.at.as_deref()));
        }
        let so_far = if self.outcome == DryOutcome::Ended { " so far" } else { "" };
        let steps = match self.steps {
            0 => String::new(),
            1 => format!("1 step{so_far}, "),
            steps => format!("{} steps{so_far}, ", grouped(steps as u64)),
        };
        let at = dry.at.as_ref().map(|at| format!(" at {at}")).unwrap_or_default();
        let end = match (dry.end(), failures) {
            (End::Limit, _) => format!("ended by the time limit{at}"),
            (End::Interrupt, _) => format!("interrupted{at}"),
            (End::Error | End::OutOfMemory, _) => {
                format!("then {}{at}", dry.ended.as_deref().unwrap_or_default())
            }
            (End::Own, 0) => "fits".to_owned(),
            (End::Own, 1) => "fits: the program survived a failed allocation".to_owned(),
            (End::Own, _) => format!("fits: the program survived {failures} failed allocations"),
        };
        format!("{of}: {steps}peak {}, {} reserved, {end}", self.active_bytes, self.reserved_bytes)
    }
}

/// Where an allocation failed: ` in backward of step 0 at model.py:88`. Without a place of the
/// finding, the line that ran is told.
fn place_of(failure: Option<&FindingRecord>, steps: usize, ran: Option<&str>) -> String {
    let phase = failure.and_then(|failure| failure.phase);
    let phase = phase.map(|phase| format!(" in {}", phase.name()));
    let step = match (&phase, failure.and_then(|failure| failure.step)) {
        (Some(_), Some(step)) => format!(" of step {step}"),
        (Some(_), None) => format!(" of step {steps}"),
        (None, Some(step)) => format!(" in step {step}"),
        (None, None) => String::new(),
    };
    let place = failure.and_then(|failure| failure.place.as_ref());
    // The function is in the finding below.
    let line = place.and_then(|place| place_if_known(&place.file, place.line));
    let at = line.or(ran.map(str::to_owned)).map(|line| format!(" at {line}"));
    format!("{}{step}{}", phase.unwrap_or_default(), at.unwrap_or_default())
}

fn notes(dry: &DryRun, sidecar: &Sidecar) -> Vec<String> {
    let mut notes = Vec::new();
    let sizes: Vec<&ReadLine> = dry.read.iter().filter(|read| read.decides == "size").collect();
    // Losses are read to be printed: conditions, counts and indices decide.
    let decides = |read: &&ReadLine| read.decides != "size" && !read.dtype.contains("float");
    let branches: Vec<&ReadLine> = dry.read.iter().filter(decides).collect();
    if !sizes.is_empty() {
        notes.push(format!("sizes depend on values that were not computed: {}", listed(&sizes)));
    }
    if !branches.is_empty() {
        notes.push(format!("values that were not computed were read: {}", listed(&branches)));
    }
    if dry.has_kernels == Some(false) {
        notes.push(format!("this PyTorch has no kernels for {}: it would not run there", dry.gpu));
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
