//! Predictions, and the cache of scenarios.

use super::lru_cache::LruCache;
use super::subject::Subject;
use super::tiles::layout_axis;
use crate::scheduler::SLICE;
use vramscope_analysis::slicing::Budget;
use vramscope_analysis::{AllocatorSettings, Category, WhatIf};
use vramscope_protocol::views::{
    SIMULATED_HEIGHT, ScaledPart, ScenarioCard, ScenarioRow, ScenarioSpec, SimulatedCurve,
    UsualScenarios, WhatIfCard,
};
use vramscope_protocol::{AxisKind, DeviceRef};
use vramscope_report::what_if::{
    Options, ScenarioRecord, basis_text, calibration_text, outcome_text, parse_memory, peak_text,
    scenario_sliced, sentence, verdict, what_if_sliced, why_no_model,
};
use vramscope_report::{Quantity, Target};
use vramscope_units::svg::outline;
use vramscope_units::{Bytes, grouped};

/// The number of scenarios that are kept. A user who turns a switch back gets the earlier answer at
/// once.
const MAX_SCENARIOS: usize = 4;

/// The largest factor of a part, as the program takes it.
const MAX_FACTOR: f64 = 1000.0;

/// Columns of a curve: more than any screen has.
const MAX_COLUMNS: u32 = 1 << 14;

/// The most recently used scenarios. The slider's answer and its curve share a replay.
pub(crate) struct Scenarios(LruCache<(DeviceRef, ScenarioSpec), Simulated>);

impl Default for Scenarios {
    fn default() -> Self {
        Self(LruCache::new(MAX_SCENARIOS))
    }
}

impl Scenarios {
    /// The scenario of a spec. Runs a slice of computing it; `None` until it is complete.
    pub(crate) fn poll(&mut self, on: &Subject, spec: &ScenarioSpec) -> Option<&Simulated> {
        let simulated = self.0.poll((on.device, key(spec)), |key| simulated(on.clone(), key));
        simulated.map(|simulated| &*simulated)
    }
}

async fn simulated(on: Subject, (_, spec): (DeviceRef, ScenarioSpec)) -> Simulated {
    Simulated::sliced(on.at(), &spec, &mut Budget::of(SLICE)).await
}

/// A spec as a key, which must equal itself: NaN does not.
fn key(spec: &ScenarioSpec) -> ScenarioSpec {
    let finite = |factor: f64| if factor.is_finite() { factor } else { -1.0 };
    let parts = spec
        .parts
        .iter()
        .map(|part| ScaledPart { factor: finite(part.factor), ..part.clone() })
        .collect();
    ScenarioSpec { tokens: finite(spec.tokens), parts, ..spec.clone() }
}

/// A scenario and its curve.
pub(crate) struct Simulated {
    pub(crate) card: ScenarioCard,
    /// Reserved bytes from each of these states on.
    steps: Vec<(u32, u64)>,
    /// The state at which the run ends, because memory runs out; `None` for the window's end.
    end: Option<u32>,
}

impl Simulated {
    pub(crate) async fn sliced(at: Target<'_>, spec: &ScenarioSpec, budget: &mut Budget) -> Self {
        let nothing = |error: Option<String>| Self {
            card: ScenarioCard {
                wrong: error.as_deref().and_then(quoted),
                error,
                ..ScenarioCard::default()
            },
            steps: Vec::new(),
            end: None,
        };
        let Some(model) = at.entry.what_if(at.index).filter(|m| m.calibration.is_equal()) else {
            return nothing(None);
        };
        let (record, curve) = match answer(at, model, spec, budget).await {
            Ok(answer) => answer,
            Err(error) => return nothing(Some(error)),
        };
        let recorded = model.calibration.recorded_reserved_peak;
        let first_failure = record.ooms.first().map(|event| event + 1);
        let steps: Vec<(u32, u64)> =
            curve.into_iter().map(|(event, bytes)| (event + 1, bytes)).collect();
        let top = steps.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0);
        Self {
            card: ScenarioCard {
                error: None,
                wrong: None,
                verdict: verdict(&record, recorded),
                scenario: Some(row(&record, recorded)),
                top: top as f64,
            },
            // The run goes on after a failure that the recording has, too.
            end: first_failure.filter(|&state| steps.last().is_none_or(|step| step.0 <= state)),
            steps,
        }
    }

    /// The curve between two slots, with the largest value in each column.
    pub(crate) fn curve(
        &self,
        at: Target<'_>,
        axis: AxisKind,
        [x0, x1]: [f64; 2],
        columns: u32,
    ) -> SimulatedCurve {
        let columns = columns.clamp(1, MAX_COLUMNS);
        let mut curve = SimulatedCurve { x0, x1, columns, top: self.card.top, path: String::new() };
        let (first, tops) = self.tops(at, axis, [x0, x1], columns);
        if !tops.is_empty() {
            let between = [first * 10, (first + tops.len() as u32) * 10];
            curve.path = outline(&tops, between, SIMULATED_HEIGHT, self.card.top as u64);
        }
        curve
    }

    /// The largest bytes in each of these columns between two slots, and the index of the first
    /// column that has a value. Empty without a prediction.
    pub(crate) fn tops(
        &self,
        at: Target<'_>,
        axis: AxisKind,
        [x0, x1]: [f64; 2],
        columns: u32,
    ) -> (u32, Vec<u64>) {
        let width = (x1 - x0) / f64::from(columns);
        let Some(axis) =
            layout_axis(at.trace(), axis).filter(|_| width > 0.0 && self.card.top > 0.0)
        else {
            return (0, Vec::new());
        };
        let slots = axis.extent();
        let edge = |column: u32| x0 + width * f64::from(column);
        let (mut first, mut tops) = (0, Vec::new());
        for column in 0..columns {
            let (from, to) = (edge(column).max(0.0).floor(), edge(column + 1).ceil());
            if to <= 0.0 || from >= slots as f64 {
                continue;
            }
            let states = axis.states_in(from as u64..(to as u64).min(slots));
            if self.end.is_some_and(|end| states.start > end) {
                break;
            }
            let inside = self.steps.partition_point(|step| step.0 < states.end);
            let begun = self.steps.partition_point(|step| step.0 <= states.start);
            // A column has the bytes at its start, and each change inside it.
            let held = &self.steps[begun.saturating_sub(1).min(inside)..inside];
            let Some(top) = held.iter().map(|(_, bytes)| *bytes).max() else { continue };
            if tops.is_empty() {
                first = column;
            }
            tops.push(top);
        }
        (first, tops)
    }
}

/// The scenario of a spec, with its curve.
async fn answer(
    at: Target<'_>,
    model: &WhatIf,
    spec: &ScenarioSpec,
    budget: &mut Budget,
) -> Result<(ScenarioRecord, Vec<(u32, u64)>), String> {
    scenario_sliced(at, model, settings(model, spec)?, &options(spec)?, budget).await
}

/// The entered text that an error is about. Errors begin with it.
fn quoted(error: &str) -> Option<String> {
    error.strip_prefix('`')?.split_once('`').map(|(text, _)| text.to_owned())
}

/// The settings of a spec.
fn settings(model: &WhatIf, spec: &ScenarioSpec) -> Result<AllocatorSettings, String> {
    let mut settings = model.settings.clone();
    if let Some(is_on) = spec.expandable_segments {
        settings.expandable_segments = is_on;
    }
    match spec.max_split_size_mb {
        None => {}
        Some(0) => settings.max_split_size = u64::MAX,
        Some(mib) if mib > 20 => settings.max_split_size = u64::from(mib) << 20,
        Some(_) => return Err("max_split_size_mb must be more than 20.".to_owned()),
    }
    match spec.roundup_power2_divisions {
        None => {}
        Some(n) if n == 0 || n.is_power_of_two() => {
            settings.roundup_power2_divisions.fill(n.into());
        }
        Some(_) => return Err("roundup_power2_divisions must be a power of two.".to_owned()),
    }
    Ok(settings)
}

/// The options of a spec, without its settings.
fn options(spec: &ScenarioSpec) -> Result<Options, String> {
    if !(spec.tokens > 0.0 && spec.tokens <= 64.0) {
        return Err("The factor of tokens must be above 0 and at most 64.".to_owned());
    }
    let memory = spec.device_memory.trim();
    let device_memory = if memory.is_empty() { None } else { Some(parse_memory(memory)?) };
    let tokens = Some(spec.tokens).filter(|&factor| factor != 1.0);
    let mut options = Options { device_memory, tokens, ..Options::default() };
    for ScaledPart { what, factor } in &spec.parts {
        match Category::parse(what) {
            _ if !(0.0..=MAX_FACTOR).contains(factor) => {
                return Err(format!("The factor of {what} must be from 0 to {MAX_FACTOR}."));
            }
            Some(category) if *factor != 0.0 => options.scale.push((category, *factor)),
            None if *factor != 0.0 => {
                return Err(format!("`{what}` is no category: a call site can only be left out."));
            }
            None if what.is_empty() => return Err("The call site is empty.".to_owned()),
            _ => options.without.push(what.clone()),
        }
    }
    Ok(options)
}

/// Whether there are predictions, and what they differ from.
pub(crate) fn card(at: Target<'_>) -> WhatIfCard {
    let model = at.entry.what_if(at.index);
    let settings = model.map(|model| model.settings.clone()).unwrap_or_default();
    let calibration = model.map(calibration_text).unwrap_or_default();
    let declined = match model {
        None => why_no_model(at.trace()).map(str::to_owned),
        Some(model) => (!model.calibration.is_equal()).then(|| calibration.clone()),
    };
    WhatIfCard {
        calibration,
        declined,
        expandable_segments: settings.expandable_segments,
        max_split_size: match settings.max_split_size {
            u64::MAX => "no limit".to_owned(),
            bytes => Bytes(bytes).to_string(),
        },
        roundup_power2_divisions: match settings.roundup_power2_divisions {
            all if all.iter().any(|n| *n != all[0]) => "by size".to_owned(),
            [0 | 1, ..] => "off".to_owned(),
            [n, ..] => grouped(n),
        },
    }
}

/// The usual scenarios on the device and with the factors of a spec. None where there are no
/// predictions, or if the spec is wrong.
pub(crate) async fn usual(
    at: Target<'_>,
    spec: &ScenarioSpec,
    budget: &mut Budget,
) -> UsualScenarios {
    let answer = match options(spec) {
        Ok(options) => what_if_sliced(at, &options, budget).await,
        Err(error) => Err(error),
    };
    // The answer to the question itself says what is wrong with it.
    let Ok(report) = answer else { return UsualScenarios::default() };
    let recorded = report.calibration.as_ref().map_or(0, |c| c.recorded_reserved_peak);
    UsualScenarios {
        rows: report.scenarios.iter().map(|record| row(record, recorded)).collect(),
        sentence: sentence(&report).unwrap_or_default(),
    }
}

fn row(record: &ScenarioRecord, recorded: u64) -> ScenarioRow {
    let bytes = |bytes: u64| Quantity::bytes(Bytes(bytes));
    let difference = i128::from(record.reserved_peak) - i128::from(recorded);
    ScenarioRow {
        change: record.change.clone(),
        conf: record.conf.clone(),
        reserved_peak: bytes(record.reserved_peak),
        peak_text: peak_text(record),
        difference: record
            .fits
            .then(|| Quantity::change_of_bytes(i64::try_from(difference).unwrap_or(i64::MAX))),
        active_peak: bytes(record.active_peak),
        flushes: Quantity::count(record.flushes, "flush", "flushes"),
        needs: record.least_device_memory.map(bytes),
        fits: record.fits,
        runs_out_at: record.ooms.first().copied(),
        outcome: outcome_text(record),
        basis: basis_text(record),
    }
}
