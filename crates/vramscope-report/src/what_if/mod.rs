//! `vramscope what-if`: what other settings, another device or another batch would have reserved.

mod asked;
mod changed;
mod devices;
mod fit;
mod limit;
mod options;
mod pair;
mod question;
mod text;

pub use asked::scenario;
pub(crate) use changed::{editable, least_available, place, why_declined};
pub use devices::{CONTEXT, parse_memory};
pub use fit::FitRecord;
pub use limit::RankLimit;
pub use options::{Configuration, Item, Options, Part, PartOf, WrongItem};
pub use pair::{Growth, PairRecord, Sizes, growth};
pub use question::{Edit, QuestionRecord, ScaledPart};
pub(crate) use text::{basis, error_percent};
pub use text::{
    basis_text, calibration_text, fit_text, limit_text, outcome_text, pair_text, peak_text,
    rest_text, sentence, verdict,
};
pub use vramscope_inference::Outcome;

use crate::derived::Derived;
use crate::rank_of::rank_of;
use crate::target::{Target, event_of, slot_of};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use vramscope_inference::{
    Capacity, Question, Rest, Scale, Scenario, Search, SimulatedBasis, StepPhase, WhatIf,
    settings_text,
};
use vramscope_snapshot::{DeviceKind, StackId};
use vramscope_trace::slicing::{Budget, STRIDE, now};
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
    /// The answer to `--fit`; absent without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fit: Option<FitRecord>,
    /// The second recording of `--and`; absent without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pair: Option<PairRecord>,
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
    /// The settings.
    pub settings: SettingsRecord,
    /// The memory of the device, if it was given.
    pub device_memory: Option<Bytes>,
    /// What PyTorch can have on the device; null if nothing shows a limit.
    pub pytorch_memory: Option<Bytes>,
    /// The factor of tokens.
    pub tokens: f64,
    /// The peak of `reserved_bytes`; when memory runs out, until then.
    pub reserved_peak: Bytes,
    /// The event after which most was reserved, from 0; -1 is the state before the window. Null for
    /// a changed program, which has other events.
    pub reserved_peak_event: Option<PeakEvent>,
    /// The peak of `active_bytes`.
    pub active_peak: Bytes,
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
    /// What each change found: these are its assumptions.
    pub found: Vec<String>,
    /// Why there is no prediction: the fact that a change lacks. Null with one.
    pub declined: Option<String>,
    /// The first event whose request failed in the recording, from 0; null if none did.
    pub recorded_oom_event: Option<EventIndex>,
    /// The bytes that are missing; null if nothing shows a limit.
    pub short_by: Option<Bytes>,
    /// The memory that PyTorch must have for the run to go through; null if it was not searched, as
    /// for most of the usual settings.
    pub least_device_memory: Option<Bytes>,
    /// `simulated`, `scaled`, `paired` (scaled as a second recording shows), `recipe` (a changed
    /// program), or `estimate`.
    pub basis: SimulatedBasis,
    /// The error that was measured for such scaled numbers, in percent of reserved bytes; null for
    /// others.
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

/// What other recordings say about a device.
#[derive(Clone, Debug, Default)]
pub struct OtherRecordings {
    /// Another rank of the run that ran out of memory, and what PyTorch could have there, in bytes.
    pub limit: Option<(u32, u64)>,
    /// How blocks grow with tokens, from a second recording of the program.
    pub growth: Option<Growth>,
}

/// Answers `options` for a device.
///
/// # Errors
///
/// No block is allocated at a call site of the options.
pub async fn what_if(
    target: Target<'_>,
    options: &Options,
    others: &OtherRecordings,
    budget: &mut Budget,
) -> Result<WhatIfReport, WrongItem> {
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
        fit: None,
        pair: None,
    };
    target.entry.derive(Derived::WhatIf, target.index, budget).await;
    let Some(model) = target.entry.what_if(target.index) else {
        report.declined = why_no_model(trace).map(str::to_owned);
        return Ok(report);
    };
    let limited = others.limit.and_then(|(rank, bytes)| model.with_limit_of(rank, bytes));
    let model = limited.as_ref().unwrap_or(model);
    report.calibration = Some(CalibrationRecord::of(model));
    if !model.calibration.is_equal() {
        report.declined = Some(calibration_text(model));
        return Ok(report);
    }
    (report.reserved, report.pools) = parts(target, model, budget).await;
    if changed::is_wanted(target, options) {
        report.scenarios = changed::scenarios(target, model, options, budget).await;
        return Ok(report);
    }
    for (change, question) in questions(target, model, options, others, budget).await? {
        let categories = target.entry.categories(target.index);
        let scenario = model.answer(question, trace, categories, budget).await;
        report.scenarios.push(ScenarioRecord::new(change, &scenario, trace, options));
    }
    if options.fit.is_some() {
        report.fit = fit::fit(target, options, others, budget).await;
    }
    Ok(report)
}

/// The model of a device's run, compared with the recording.
pub fn model(target: Target<'_>) -> WhatIf {
    let evidence = target.entry.evidence(target.index);
    now(async |budget| WhatIf::new(evidence, budget).await)
}

/// The run with expandable segments, without the search for the least memory.
pub fn one_answer(target: Target<'_>, model: &WhatIf) -> Scenario {
    let settings = AllocatorSettings { expandable_segments: true, ..model.settings.clone() };
    let question = Question { least: Search::WhenShort, ..Question::as_recorded(&settings) };
    let categories = target.entry.categories(target.index);
    now(async |budget| model.answer(question, target.trace(), categories, budget).await)
}

/// Why there is no model of a device; `None` if there is one.
pub fn why_no_model(trace: &Trace) -> Option<&'static str> {
    if trace.device.kind == DeviceKind::Host {
        return Some(
            "Pinned host memory has another allocator. The model is of the one for devices.",
        );
    }
    // `_record_memory_history(enabled="state")` records one event.
    (trace.coverage == Coverage::None || trace.device.events.len() == 1)
        .then_some("The file has no events of this device, only its final state.")
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

/// The factors of `options`, and each in words.
///
/// # Errors
///
/// No block is allocated at a call site.
async fn scale(
    target: Target<'_>,
    options: &Options,
    others: &OtherRecordings,
    budget: &mut Budget,
) -> Result<(Scale, Vec<String>), WrongItem> {
    let mut scale =
        Scale { tokens: options.tokens, growth: others.growth.clone(), ..Scale::default() };
    let mut words: Vec<String> = Vec::new();
    words.extend(options.tokens.map(|factor| format!("tokens x{factor}")));
    let scaled = options.parts.iter().filter(|part| part.factor != 0.0);
    words.extend(scaled.map(|part| format!("{} x{}", part.of.name(), part.factor)));
    for part in &options.parts {
        match &part.of {
            PartOf::Category(category) => scale.categories.push((*category, part.factor)),
            PartOf::Site(site) => scale.without.extend(blocks_at(target, site, budget).await?),
        }
        if part.factor == 0.0 {
            words.push(format!("without {}", part.of.name()));
        }
    }
    scale.without.sort_unstable();
    scale.without.dedup();
    Ok((scale, words))
}

/// The questions with what they change, in words.
async fn questions(
    target: Target<'_>,
    model: &WhatIf,
    options: &Options,
    others: &OtherRecordings,
    budget: &mut Budget,
) -> Result<Vec<(String, Question)>, WrongItem> {
    let (scale, words) = scale(target, options, others, budget).await?;
    let base = Question {
        available: options.available(),
        scale,
        ..Question::as_recorded(&model.settings)
    };
    let with = |words: &[String], setting: &str| {
        let parts =
            words.iter().map(String::as_str).chain((!setting.is_empty()).then_some(setting));
        parts.collect::<Vec<_>>().join(", ")
    };
    let mut questions = Vec::new();
    for configuration in &options.configurations {
        let settings = configuration.settings(&model.settings);
        let words = with(&words, configuration.text());
        questions.push((words, Question { settings, ..base.clone() }));
    }
    if !questions.is_empty() {
        return Ok(questions);
    }
    let as_recorded = if words.is_empty() { "as recorded".to_owned() } else { with(&words, "") };
    questions.push((as_recorded, base.clone()));
    let other = if model.settings.expandable_segments { "False" } else { "True" };
    let expandable = format!("expandable_segments:{other}");
    for text in [expandable.as_str(), "max_split_size_mb:128", "roundup_power2_divisions:4"] {
        let settings = Configuration::new(text, false)?.settings(&model.settings);
        if settings != model.settings {
            // A search for the least memory takes many replays: only expandable segments get one.
            let least = if text == expandable { Search::Always } else { Search::WhenShort };
            let question = Question { settings, least, ..base.clone() };
            questions.push((with(&words, text), question));
        }
    }
    if model.calls_empty_cache() {
        let question =
            Question { without_empty_cache: true, least: Search::WhenShort, ..base.clone() };
        questions.push((with(&words, "without empty_cache"), question));
    }
    if model.has_pending_frees() {
        let question = Question { frees_at_once: true, least: Search::WhenShort, ..base };
        questions.push((with(&words, "pending frees at once"), question));
    }
    Ok(questions)
}

/// The blocks whose call site is `place`, as in `train.py:12`.
async fn blocks_at(
    target: Target<'_>,
    place: &str,
    budget: &mut Budget,
) -> Result<Vec<u32>, WrongItem> {
    let mut is_there: FxHashMap<StackId, bool> = FxHashMap::default();
    let mut blocks: Vec<u32> = Vec::new();
    for (i, block) in (0..).zip(&target.trace().blocks) {
        let compare = || crate::frames::site(target.entry, block.stack).contains(place);
        if *is_there.entry(block.stack).or_insert_with(compare) {
            blocks.push(i);
        }
        if i % STRIDE as u32 == 0 {
            budget.charge(2 * STRIDE as u64).await;
        }
    }
    if blocks.is_empty() {
        let text = format!(
            "`{place}` is no category, and no block is allocated there: expected a category, or a \
             call site such as train.py:12"
        );
        return Err(WrongItem { item: place.to_owned(), text });
    }
    Ok(blocks)
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
            device_memory: options.memory().map(Bytes),
            pytorch_memory: scenario.question.available.map(Bytes),
            tokens: options.tokens.unwrap_or(1.0),
            reserved_peak: Bytes(scenario.reserved_peak),
            reserved_peak_event: Some(PeakEvent(event_of(slot_of(scenario.peak_event)))),
            active_peak: Bytes(scenario.active_peak),
            reserved_range: scenario.reserved_range.map(Bytes),
            flushes: Flushes(scenario.flushes),
            ooms: scenario.ooms.iter().copied().map(EventIndex).collect(),
            fits: Some(scenario.fits()),
            outcome: None,
            limited_by: None,
            rest: None,
            found: Vec::new(),
            declined: None,
            recorded_oom_event: trace.ooms.first().map(|oom| oom.event),
            short_by: scenario.short_by().map(Bytes),
            least_device_memory: scenario.least.map(Bytes),
            basis: scenario.basis,
            error_percent: error_percent(scenario.basis),
        }
    }
}
