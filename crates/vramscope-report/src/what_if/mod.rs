//! `vramscope what-if`: what other settings, another device or a changed program would reserve.

mod asked;
mod changed;
mod devices;
mod edits;
mod host;
mod limit;
mod options;
mod text;

pub(crate) use asked::recorded_least;
pub use asked::scenario;
pub(crate) use changed::{REST_UNKNOWN, editable, most_available, settled};
pub use changed::{USUAL, least_available};
pub use devices::{CONTEXT, Gpu, gpu_names, parse_gpu, parse_memory};
pub use edits::edit_text;
pub(crate) use edits::{edit, lever_place};
pub use host::PinnedSettingsRecord;
pub use limit::RankLimit;
pub use options::{Configuration, Item, Options, WrongItem};
pub use text::{
    basis_text, batch_text, calibration_text, limit_text, outcome_text, plan_text, range_text,
    rest_text, sentence, time_text,
};
pub use vramscope_inference::{EditRecord, Outcome};

use crate::derived::Derived;
use crate::levers::PlanRecord;
use crate::rank_of::rank_of;
use crate::serving::{self, ServingRecord};
use crate::target::{Target, event_of, slot_of};
use serde::{Deserialize, Serialize};
use vramscope_inference::Covers;
use vramscope_inference::{
    Capacity, Question, Rest, Scenario, Search, SimulatedBasis, StepPhase, WhatIf, parse_settings,
    recorded_text, settings_text, unmodeled_settings,
};
use vramscope_snapshot::DeviceKind;
use vramscope_trace::slicing::{Budget, now};
use vramscope_trace::{AllocatorSettings, Coverage, Trace};
use vramscope_units::{Bytes, EventIndex, Flushes, PeakEvent};

/// `vramscope.what-if/1`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WhatIfReport {
    /// The schema's name and version.
    pub schema: &'static str,
    /// The file's path.
    pub path: String,
    /// The rank in the path; null if there is none.
    pub rank: Option<u32>,
    /// The device's ordinal.
    pub device: u32,
    /// Why there is no prediction; null if there are predictions.
    pub declined: Option<String>,
    /// The comparison of the model with the recording; null without a trace.
    pub calibration: Option<CalibrationRecord>,
    /// The answers, in the order asked.
    pub scenarios: Vec<ScenarioRecord>,
    /// What the recorded reserved peak was used for. The parts add up to it.
    pub reserved: Option<PartsRecord>,
    /// The same by private pool and stream.
    pub pools: Vec<PoolPartsRecord>,
    /// The answer to `--plan`; absent without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanRecord>,
    /// The KV cache that an inference engine can have; absent for other runs, and where nothing
    /// says on which GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serving: Option<ServingRecord>,
}

/// The comparison of the model with the recording, under the recording's settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CalibrationRecord {
    /// The recorded peak of `reserved_bytes`.
    pub recorded_reserved_peak: Bytes,
    /// The simulated peak of `reserved_bytes`.
    pub simulated_reserved_peak: Bytes,
    /// Whether reserved bytes are equal after every event.
    pub equal: bool,
    /// The first event after which they differ, from 0.
    pub first_difference_event: Option<EventIndex>,
    /// What PyTorch can have on the device.
    pub capacity: CapacityRecord,
}

/// What PyTorch can have on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CapacityRecord {
    /// The bytes; null if the recording does not show them.
    pub bytes: Option<Bytes>,
    /// `exact` (from an allocation that failed), `bounded` (between `low` and `high`, from
    /// reservations that the driver refused), `measured` (when the snapshot was written, from the
    /// file beside it), `other_rank` (from an allocation that failed in
    /// another rank of the run), `changing`, or `unknown`.
    pub basis: &'static str,
    /// The rank with basis `other_rank`; else null.
    pub rank: Option<u32>,
    /// The lower bound; null unless bounded.
    pub low: Option<Bytes>,
    /// The upper bound; null unless bounded.
    pub high: Option<Bytes>,
}

/// The settings of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct SettingsRecord {
    /// `expandable_segments`.
    pub expandable_segments: bool,
    /// `max_split_size_mb` in bytes; null without a limit.
    pub max_split_size: Option<Bytes>,
    /// `roundup_power2_divisions` by interval, from 1 MiB on.
    #[cfg_attr(feature = "typescript", ts(type = "number[]"))]
    pub roundup_power2_divisions: Vec<u64>,
    /// `large_segment_size_mb` in bytes.
    pub large_segment_size: Bytes,
    /// `garbage_collection_threshold`; 0 means off.
    pub garbage_collection_threshold: f64,
}

/// One scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct ScenarioRecord {
    /// What differs from the recording, in words.
    pub change: String,
    /// The changes of the program, as they were asked for: `checkpoint:all`, `batch:0.5`.
    pub recipes: Vec<String>,
    /// The settings in the form of `PYTORCH_CUDA_ALLOC_CONF`. Empty for PyTorch's defaults.
    pub conf: String,
    /// The settings of the allocator for devices.
    pub settings: SettingsRecord,
    /// The settings of the allocator for pinned host memory; absent on other devices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<PinnedSettingsRecord>,
    /// The memory of the device, if it was given.
    pub device_memory: Option<Bytes>,
    /// What PyTorch can have on the device; null if nothing shows a limit.
    pub pytorch_memory: Option<Bytes>,
    /// The peak of `reserved_bytes`; when memory runs out, until then.
    pub reserved_peak: Bytes,
    /// The event after which most was reserved, from 0; -1 is the state before the window. Null for
    /// a changed program, which has other events.
    pub reserved_peak_event: Option<PeakEvent>,
    /// The peak of `active_bytes`.
    pub active_peak: Bytes,
    /// The same less and plus the measured error.
    pub active_range: [Bytes; 2],
    /// The lowest and highest reserved peak over three orders of addresses.
    pub reserved_range: [Bytes; 2],
    /// How often all free memory was returned.
    pub flushes: Flushes,
    /// The events whose request fails, from 0.
    pub ooms: Vec<EventIndex>,
    /// Whether no request fails; null where it is too close to tell or not known.
    pub fits: Option<bool>,
    /// The same with its margin; null without a limit, and where no program is changed.
    pub outcome: Option<Outcome>,
    /// Where the peak lies, or where the request is that fails; null where no program is changed.
    pub limited_by: Option<PlaceRecord>,
    /// How the step that failed was completed; null where no program is changed.
    pub rest: Option<Rest>,
    /// The part of the run that was replayed; null without a prediction.
    pub covers: Option<Covers>,
    /// What each change found: these are its assumptions.
    pub found: Vec<String>,
    /// How much longer a step takes, in percent: at least and at most. An estimate, as of levers.
    /// Null where no change costs time, and where no estimate can be defended.
    #[serde(default)]
    pub seconds_percent: Option<[u32; 2]>,
    /// The GPU of that estimate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds_gpu: Option<String>,
    /// The changes as edits of the program; empty for what was not asked for, and without a
    /// prediction.
    pub edits: Vec<EditRecord>,
    /// Why there is no prediction: the fact that a change lacks. Null with one.
    pub declined: Option<String>,
    /// The first event whose request failed in the recording, from 0; null if none did.
    pub recorded_oom_event: Option<EventIndex>,
    /// The bytes that are missing; null if nothing shows a limit.
    pub short_by: Option<Bytes>,
    /// The memory that PyTorch must have for the run to go through; null if it was not searched, as
    /// for most of the usual settings.
    pub least_device_memory: Option<Bytes>,
    /// `simulated`, `recipe` (a changed program), or `estimate`.
    pub basis: SimulatedBasis,
    /// Active bytes in the course of the changed run: the highest of each of at most 128 equal
    /// parts of its calls. Empty unless the change was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub curve: Vec<Bytes>,
    /// The error that was measured for such changes of a program, in percent of active bytes; null
    /// for others.
    pub error_percent: Option<f64>,
}

/// A phase of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct PlaceRecord {
    /// The phase: `forward`, `backward`, `optimizer`, `evaluation`.
    pub phase: StepPhase,
    /// The step, from 0.
    pub step: u32,
}

/// Reserved memory by use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PartsRecord {
    /// Requested bytes of blocks in use.
    pub in_use: Bytes,
    /// Bytes of these blocks beyond the requests.
    pub rounding: Bytes,
    /// Free segments that PyTorch returns when memory is short.
    pub idle: Bytes,
    /// Free parts of segments in use.
    pub stuck: Bytes,
    /// Free parts of segments in use in the small pool.
    pub small: Bytes,
}

/// [`PartsRecord`] of a private pool and stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PoolPartsRecord {
    /// The pool's id; null for the default pool.
    pub pool: Option<[u64; 2]>,
    /// The stream.
    pub stream: i64,
    /// The parts.
    #[serde(flatten)]
    pub parts: PartsRecord,
}

/// Answers `options` for a device. The limit is that of another rank of the run that ran out of
/// memory: its number, and what PyTorch could have there, in bytes.
pub async fn what_if(
    target: Target<'_>,
    options: &Options,
    limit: Option<(u32, u64)>,
    budget: &mut Budget,
) -> WhatIfReport {
    let trace = target.trace();
    let mut report = WhatIfReport {
        schema: "vramscope.what-if/1",
        path: target.path.to_owned(),
        rank: rank_of(target.path),
        device: target.device(),
        declined: None,
        calibration: None,
        scenarios: Vec::new(),
        reserved: None,
        pools: Vec::new(),
        plan: None,
        serving: None,
    };
    if trace.device.kind == DeviceKind::Host && !trace.device.events.is_empty() {
        host::answer(target, options, &mut report, budget).await;
        return report;
    }
    target.entry.derive(Derived::WhatIf, target.index, budget).await;
    let Some(model) = target.entry.what_if(target.index) else {
        report.declined = why_no_model(trace).map(str::to_owned);
        return report;
    };
    let limited = limit.and_then(|(rank, bytes)| model.with_limit_of(rank, bytes));
    let model = limited.as_ref().unwrap_or(model);
    report.calibration = Some(CalibrationRecord::of(model));
    if !model.calibration.is_equal() {
        // A setting without a model is the likelier reason.
        let unmodeled = unmodeled_settings(recorded_text(target.snapshot()));
        let why = unmodeled.first().map(|(name, why)| {
            format!("`{name}` cannot be predicted: {why}. {}", calibration_text(model))
        });
        report.declined = Some(why.unwrap_or_else(|| calibration_text(model)));
        return report;
    }
    (report.reserved, report.pools) = parts(target, model, budget).await;
    report.serving = serving::record(target, options, budget).await;
    if let Some(bytes) = options.available().filter(|_| options.plan.is_some()) {
        report.plan = crate::levers::of_device(target, model, bytes, budget).await;
    }
    if changed::is_wanted(target, options) {
        report.scenarios = changed::scenarios(target, model, options, budget).await;
        return report;
    }
    for (change, question) in questions(target, model, options) {
        let record = match question {
            Ok(question) => {
                let scenario = model.answer(question, budget).await;
                ScenarioRecord::new(change, &scenario, trace, options)
            }
            Err(declined) => *declined,
        };
        report.scenarios.push(record);
    }
    if !options.has_question() {
        report.scenarios.extend(changed::of_levers(target, model, options, budget).await);
    }
    report
}

/// The model of a device's run, compared with the recording.
pub fn model(target: Target<'_>) -> WhatIf {
    let evidence = target.entry.evidence(target.index);
    now(async |budget| WhatIf::new(evidence, budget).await)
}

/// The run with expandable segments, without the search for the least memory.
pub fn one_answer(model: &WhatIf) -> Scenario {
    let settings = AllocatorSettings { expandable_segments: true, ..model.settings.clone() };
    let question = Question { least: Search::WhenShort, ..Question::as_recorded(&settings) };
    now(async |budget| model.answer(question, budget).await)
}

/// Why there is no model of a device; `None` if there is one.
pub fn why_no_model(trace: &Trace) -> Option<&'static str> {
    let other = match trace.device.kind {
        DeviceKind::Cuda | DeviceKind::Rocm => None,
        DeviceKind::Host => Some(
            "Pinned host memory has another allocator: `vramscope what-if --device host` asks \
                 its model.",
        ),
        DeviceKind::Npu => {
            Some("Ascend NPUs have another allocator, torch_npu's. The model is of CUDA's.")
        }
        DeviceKind::Xpu => Some("Intel GPUs have another allocator. The model is of CUDA's."),
        DeviceKind::Mtia => Some("MTIA devices have another allocator. The model is of CUDA's."),
    };
    if other.is_some() {
        return other;
    }
    // `_record_memory_history(enabled="state")` records one event.
    (trace.coverage == Coverage::None || trace.device.events.len() == 1)
        .then_some("The file has no events of this device, only its final state.")
}

/// What the recorded reserved peak was used for: the peak, its parts, and these by pool. `None`
/// where the model does not reproduce the recording.
pub async fn reserved(
    target: Target<'_>,
    budget: &mut Budget,
) -> Option<(Bytes, PartsRecord, Vec<PoolPartsRecord>)> {
    target.entry.derive(Derived::WhatIf, target.index, budget).await;
    let model = target.entry.what_if(target.index).filter(|model| model.calibration.is_equal())?;
    let (sum, pools) = parts(target, model, budget).await;
    Some((Bytes(model.calibration.recorded_reserved_peak), sum?, pools))
}

impl PartsRecord {
    /// The parts with their names and what they are, in the order of the bar.
    pub fn rows(&self) -> [(&'static str, Bytes, &'static str); 5] {
        [
            ("in use", self.in_use, "live blocks, as requested"),
            ("rounding", self.rounding, "blocks are rounded up"),
            ("cached", self.idle, "whole free segments; returned when memory is short"),
            ("fragmented", self.stuck, "free pieces of segments in use"),
            ("small-block pool, free", self.small, "free pieces of segments for small blocks"),
        ]
    }
}

async fn parts(
    target: Target<'_>,
    model: &WhatIf,
    budget: &mut Budget,
) -> (Option<PartsRecord>, Vec<PoolPartsRecord>) {
    let mut sum = PartsRecord::default();
    let mut pools = Vec::new();
    for (pool, stream, parts) in model.parts_at_peak(budget).await {
        let parts = PartsRecord {
            in_use: Bytes(parts.in_use),
            rounding: Bytes(parts.rounding),
            idle: Bytes(parts.idle),
            stuck: Bytes(parts.stuck),
            small: Bytes(parts.small),
        };
        sum.in_use.0 += parts.in_use.0;
        sum.rounding.0 += parts.rounding.0;
        sum.idle.0 += parts.idle.0;
        sum.stuck.0 += parts.stuck.0;
        sum.small.0 += parts.small.0;
        let pool = pool.and_then(|pool| target.snapshot().pool(pool)).map(|id| [id.0, id.1]);
        pools.push(PoolPartsRecord { pool, stream: target.snapshot().stream(stream), parts });
    }
    (Some(sum), pools)
}

/// The questions with what they change, in words; those without a prediction as their answer.
fn questions(
    target: Target<'_>,
    model: &WhatIf,
    options: &Options,
) -> Vec<(String, Result<Question, Box<ScenarioRecord>>)> {
    let own = &model.settings;
    let total = options.memory();
    let base = Question { available: options.available(), total, ..Question::as_recorded(own) };
    let total = total.or_else(|| model.total());
    if !options.configurations.is_empty() {
        let question = |configuration: &Configuration| {
            let question = match configuration.settings(own, total) {
                Ok(settings) => Ok(Question { settings, ..base.clone() }),
                Err(why) => {
                    Err(Box::new(changed::declined(target, model, options, configuration, why)))
                }
            };
            (configuration.text().to_owned(), question)
        };
        return options.configurations.iter().map(question).collect();
    }
    let mut questions = vec![("as recorded".to_owned(), Ok(base.clone()))];
    if options.plan.is_some() {
        return questions;
    }
    let other = if own.expandable_segments { "False" } else { "True" };
    let expandable = format!("expandable_segments:{other}");
    for text in [expandable.as_str(), "max_split_size_mb:128", "roundup_power2_divisions:4"] {
        let settings = parse_settings(text, own).expect("usual settings");
        if settings != *own {
            questions.push((text.to_owned(), Ok(Question { settings, ..base.clone() })));
        }
    }
    if model.calls_empty_cache() {
        let question = Question { without_empty_cache: true, ..base.clone() };
        questions.push(("without empty_cache".to_owned(), Ok(question)));
    }
    if model.has_pending_frees() {
        let question = Question { frees_at_once: true, ..base };
        questions.push(("pending frees at once".to_owned(), Ok(question)));
    }
    questions
}

impl CalibrationRecord {
    fn of(model: &WhatIf) -> Self {
        let calibration = &model.calibration;
        let plain = CapacityRecord {
            bytes: calibration.capacity.known().map(Bytes),
            basis: "unknown",
            rank: None,
            low: None,
            high: None,
        };
        let capacity = match calibration.capacity {
            Capacity::Exact { .. } => CapacityRecord { basis: "exact", ..plain },
            Capacity::Bounded { at_least, below } => CapacityRecord {
                basis: "bounded",
                low: Some(Bytes(at_least)),
                high: Some(Bytes(below - 1)),
                ..plain
            },
            Capacity::Measured { .. } => CapacityRecord { basis: "measured", ..plain },
            Capacity::OtherRank { rank, .. } => {
                CapacityRecord { basis: "other_rank", rank: Some(rank), ..plain }
            }
            Capacity::Changing => CapacityRecord { basis: "changing", ..plain },
            Capacity::Unlimited => plain,
        };
        Self {
            recorded_reserved_peak: Bytes(calibration.recorded_reserved_peak),
            simulated_reserved_peak: Bytes(calibration.simulated_reserved_peak),
            equal: calibration.is_equal(),
            first_difference_event: calibration
                .first_difference
                .map(|(event, ..)| EventIndex(event)),
            capacity,
        }
    }
}

impl SettingsRecord {
    fn of(settings: &AllocatorSettings) -> Self {
        Self {
            expandable_segments: settings.expandable_segments,
            max_split_size: Some(Bytes(settings.max_split_size))
                .filter(|&size| size != Bytes(u64::MAX)),
            roundup_power2_divisions: settings.roundup_power2_divisions.to_vec(),
            large_segment_size: Bytes(settings.large_segment_size),
            garbage_collection_threshold: settings.garbage_collection_threshold,
        }
    }
}

impl ScenarioRecord {
    fn new(change: String, scenario: &Scenario, trace: &Trace, options: &Options) -> Self {
        let settings = &scenario.question.settings;
        Self {
            change,
            recipes: Vec::new(),
            conf: settings_text(settings),
            settings: SettingsRecord::of(settings),
            pinned: None,
            device_memory: options.memory().map(Bytes),
            pytorch_memory: scenario.question.available.map(Bytes),
            reserved_peak: Bytes(scenario.reserved_peak),
            reserved_peak_event: Some(PeakEvent(event_of(slot_of(scenario.peak_event)))),
            active_peak: Bytes(scenario.active_peak),
            active_range: [Bytes(scenario.active_peak); 2],
            reserved_range: scenario.reserved_range.map(Bytes),
            flushes: Flushes(scenario.flushes),
            ooms: scenario.ooms.iter().copied().map(EventIndex).collect(),
            fits: Some(scenario.fits()),
            outcome: None,
            limited_by: None,
            rest: None,
            covers: Some(Covers::Run),
            curve: Vec::new(),
            found: Vec::new(),
            seconds_percent: None,
            seconds_gpu: None,
            edits: Vec::new(),
            declined: None,
            recorded_oom_event: trace.ooms.first().map(|oom| oom.event),
            short_by: scenario.short_by().map(Bytes),
            least_device_memory: scenario.least.map(Bytes),
            basis: scenario.basis,
            error_percent: None,
        }
    }
}
