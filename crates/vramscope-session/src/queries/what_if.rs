//! Predictions, and the cache of scenarios.

use super::levers::{brief, verdict_words};
use super::lru_cache::LruCache;
use super::subject::Subject;
use crate::messages::views::{
    CaptureRow, GraphsCard, ReservedPart, ReservedUse, SIMULATED_HEIGHT, ScenarioCard,
    SimulatedCurve,
};
use crate::messages::{AxisKind, DeviceRef};
use crate::scheduler::SLICE;
use vramscope_layout::Axis;
use vramscope_report::ledger::{self, LedgerRecord};
use vramscope_report::what_if::{Options, Outcome, ScenarioRecord, WrongItem, reserved, scenario};
use vramscope_report::{Target, known_limits};
use vramscope_trace::slicing::Budget;
use vramscope_units::svg::outline;
use vramscope_units::{Bytes, EventIndex, grouped};

/// The number of scenarios that are kept. A user who turns a switch back gets the earlier answer at
/// once.
const MAX_SCENARIOS: usize = 4;

/// Columns of a curve: more than any screen has.
const MAX_COLUMNS: u32 = 1 << 14;

/// The most recently used scenarios. An answer and its curve share a replay.
pub(crate) struct Scenarios(LruCache<(DeviceRef, String), AnsweredScenario>);

impl Default for Scenarios {
    fn default() -> Self {
        Self(LruCache::new(MAX_SCENARIOS))
    }
}

impl Scenarios {
    /// The answer to a question. Runs a slice of computing it; `None` until it is complete.
    pub(crate) fn poll(&mut self, on: &Subject, text: &str) -> Option<&AnsweredScenario> {
        let wanted = (on.device, text.to_owned());
        let answer = self.0.poll(wanted, |key| answered(on.clone(), key));
        answer.map(|answer| &*answer)
    }
}

async fn answered(on: Subject, (_, text): (DeviceRef, String)) -> AnsweredScenario {
    AnsweredScenario::new(on.at(), &text, &mut Budget::of(SLICE)).await
}

/// The answer to a question, with its curve.
pub(crate) struct AnsweredScenario {
    pub(crate) card: ScenarioCard,
    /// Reserved bytes from each of these states on.
    steps: Vec<(u32, u64)>,
    /// The state at which the run ends, because memory runs out; `None` for the window's end.
    end: Option<u32>,
}

impl AnsweredScenario {
    /// Answers the question of a text. Of several configurations the first counts.
    pub(crate) async fn new(at: Target<'_>, text: &str, budget: &mut Budget) -> Self {
        let nothing = |error: Option<WrongItem>| Self {
            card: ScenarioCard { error, ..ScenarioCard::default() },
            steps: Vec::new(),
            end: None,
        };
        let Some(model) = at.entry.what_if(at.index).filter(|m| m.calibration.is_equal()) else {
            return nothing(None);
        };
        let options = match Options::parse(text) {
            Ok(options) => options,
            Err(error) => return nothing(Some(error)),
        };
        let (record, curve) = scenario(at, model, &options, budget).await;
        let limits = known_limits(at, model, options.available()).map(|of| of.map(Bytes));
        let first_failure = record.ooms.first().map(|event| event.0 + 1);
        let steps: Vec<(u32, u64)> =
            curve.into_iter().map(|(event, bytes)| (event + 1, bytes)).collect();
        let top = steps.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0);
        Self {
            card: ScenarioCard { top: top as f64, ..words(&record, limits) },
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
        let Some(axis) = Axis::new(at.trace(), axis).filter(|_| width > 0.0 && self.card.top > 0.0)
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

/// What the recorded reserved peak was used for. `None` where the model does not reproduce the
/// recording.
pub(crate) async fn reserved_use(at: Target<'_>, budget: &mut Budget) -> Option<ReservedUse> {
    let (peak, parts, _) = reserved(at, budget).await?;
    let rows: Vec<_> = parts.rows().into_iter().filter(|(_, bytes, _)| bytes.0 > 0).collect();
    // The largest of what is not in use.
    let mut free: Vec<_> = rows.iter().filter(|(name, ..)| *name != "in use").collect();
    free.sort_by_key(|(_, bytes, _)| std::cmp::Reverse(*bytes));
    let said: Vec<_> = free.iter().take(2).map(|(name, b, _)| format!("{b} {name}")).collect();
    let rest = if said.is_empty() { String::new() } else { format!(": {}", said.join(", ")) };
    Some(ReservedUse {
        peak,
        text: format!("Reserved {peak} at most, for {} in use{rest}.", parts.in_use),
        parts: rows
            .into_iter()
            .map(|(name, bytes, text)| ReservedPart {
                name: name.to_owned(),
                bytes,
                share: bytes.0 as f64 / peak.0.max(1) as f64,
                text: text.to_owned(),
            })
            .collect(),
        graphs: ledger::record(at, Some(CAPTURES), budget).await.map(graphs),
    })
}

/// Captures that the card lists.
const CAPTURES: usize = 12;

/// The card of a ledger.
fn graphs(ledger: LedgerRecord) -> GraphsCard {
    let uses = ledger.sums.first().map_or_else(Vec::new, |sum| {
        let parts = sum.rows().into_iter().filter(|&(_, bytes)| bytes.0 > 0);
        let mut parts: Vec<ReservedPart> = parts
            .map(|(name, bytes)| ReservedPart {
                name: name.to_owned(),
                bytes,
                share: bytes.0 as f64 / sum.reserved.0.max(1) as f64,
                text: String::new(),
            })
            .collect();
        // The last is the sum.
        parts.pop();
        parts
    });
    GraphsCard {
        text: ledger.text,
        more: match ledger.captures_omitted {
            0 => String::new(),
            omitted => format!("{} more captures", grouped(omitted as u64)),
        },
        captures: ledger
            .captures
            .into_iter()
            .map(|capture| CaptureRow {
                event: EventIndex(u32::try_from(capture.begin).unwrap_or(0)),
                pool: capture.pool.map_or_else(String::new, |[a, b]| format!("({a}, {b})")),
                site: capture.site.unwrap_or_default(),
                added: capture.added,
                reused: capture.reused,
                kept: capture.kept,
            })
            .collect(),
        uses,
    }
}

/// A scenario in words, with what PyTorch can have at least and at most.
fn words(record: &ScenarioRecord, [available, at_most]: [Option<Bytes>; 2]) -> ScenarioCard {
    if let Some(why) = &record.declined {
        return ScenarioCard {
            verdict: format!("no prediction: {why}"),
            ..ScenarioCard::default()
        };
    }
    let needs = record.least_device_memory.unwrap_or(record.reserved_peak);
    let outcome = match (available, record.outcome) {
        (None, _) => None,
        (_, Some(outcome)) => Some(outcome),
        (Some(available), None) if needs <= available => Some(Outcome::Fits),
        (_, None) if at_most.is_some_and(|most| needs <= most) => Some(Outcome::FitsBarely),
        _ => Some(Outcome::Short),
    };
    ScenarioCard {
        error: None,
        change: record.change.clone(),
        needs: Some(brief(needs)),
        outcome,
        verdict: verdict_words(outcome, needs, available),
        basis: match record.error_percent {
            Some(percent) => format!("replayed \u{b1}{:.0} %", percent.ceil()),
            None => "replayed".to_owned(),
        },
        top: 0.0,
    }
}
