//! The phases of `vramscope steps`: what each phase of each step needs, and which phase limits.

mod layer;
mod words;

pub use layer::Layer;

use crate::derived::Derived;
use crate::{Target, event_of, rank_of, site};
use serde::Serialize;
use serde::ser::{SerializeMap as _, Serializer};
use vramscope_inference::{
    Basis, Category, CategoryBytes, NextPhase, NextStep, PhasePeak, StepPhase, StepPhases, Steps,
};
use vramscope_trace::slicing::Budget;
use vramscope_units::grouped;

/// The phases of a device.
#[derive(Debug, Serialize)]
pub struct Phases<'a> {
    /// The file's path.
    pub path: &'a str,
    /// The rank in the path; null if there is none.
    pub rank: Option<u32>,
    /// The device's ordinal.
    pub device: u32,
    /// The evidence for steps; null if nothing shows steps.
    pub steps_by: Option<&'static str>,
    /// The words for one step and for several.
    #[serde(skip)]
    pub step_words: [&'static str; 2],
    /// The steps in order.
    pub steps: Vec<StepRecord>,
    /// The number of steps left out by `--limit`; absent if none are.
    #[serde(skip_serializing_if = "is_zero")]
    pub omitted: usize,
    /// The phases before the first step and after the last, in order.
    pub outside: Vec<PhaseRecord>,
    /// The phase with the highest peak, and the next one; null if nothing shows steps or phases.
    pub limiting: Option<Limiting>,
    /// The highest peak of each phase over all steps, as a sum of categories; highest first.
    pub sum: Vec<SumRecord>,
    /// The usual estimate of the peak; null unless a backward pass is in the window.
    pub formula: Option<Formula>,
    /// The peak of the second step, estimated from the first; null if the first does not show it.
    pub next_step: Option<NextStepRecord>,
    /// What follows, in sentences.
    pub text: Vec<String>,
}

/// A step.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StepRecord {
    /// The step, from 0.
    pub step: u32,
    /// False for a step that the window's end cuts off.
    pub whole: bool,
    /// The first event.
    pub begin: u32,
    /// The event after the last.
    pub end: u32,
    /// Its phases in order. A phase can occur several times, as with micro-batches.
    pub phases: Vec<PhaseRecord>,
}

/// A phase of a step.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PhaseRecord {
    /// `forward`, `backward`, `optimizer`, `evaluation`, `generation` or `other`.
    pub phase: &'static str,
    /// The first event.
    pub begin: u32,
    /// The event after the last.
    pub end: u32,
    /// The largest `requested_bytes` after an event of the phase. The first phase of the window
    /// also counts the state before the window.
    pub peak_bytes: u64,
    /// The first event with that many bytes; -1 is the state before the window.
    pub peak_event: i64,
    /// Live blocks at that event.
    pub blocks: u32,
    /// What `reserved_bytes` grew by, in bytes. Negative if memory was given back.
    pub reserved_growth: i64,
    /// Live bytes at the peak by category. They add up to `peak_bytes`.
    pub categories: ByCategory,
    /// The call site that set the peak: that of the last allocation up to `peak_event`. Null if the
    /// window allocated nothing before.
    pub site: Option<String>,
}

/// Bytes by category, in display order. All categories are present in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByCategory(pub CategoryBytes);

impl ByCategory {
    /// The category with the most bytes; `None` without bytes.
    pub fn largest(&self) -> Option<Category> {
        let all = Category::ALL.into_iter().zip(self.0).filter(|(_, bytes)| *bytes > 0);
        all.rev().max_by_key(|(_, bytes)| *bytes).map(|(category, _)| category)
    }
}

impl Serialize for ByCategory {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (category, bytes) in Category::ALL.iter().zip(&self.0) {
            map.serialize_entry(category.name(), bytes)?;
        }
        map.end()
    }
}

/// An object with one number for each category.
#[cfg(feature = "schema")]
impl schemars::JsonSchema for ByCategory {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ByCategory".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let bytes = generator.subschema_for::<u64>();
        let names = Category::ALL.map(Category::name);
        let properties: serde_json::Map<_, _> =
            names.into_iter().map(|name| (name.to_owned(), bytes.clone().into())).collect();
        schemars::json_schema!({
            "type": "object",
            "description": "Bytes by category.",
            "properties": properties,
            "required": names,
            "additionalProperties": false
        })
    }
}

/// The phase that limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Limiting {
    /// The phase.
    pub phase: &'static str,
    /// Its highest peak in bytes: the peak of the window.
    pub bytes: u64,
    /// The phase with the next highest peak; null if there is only one phase.
    pub next_phase: Option<&'static str>,
    /// Its highest peak in bytes.
    pub next_bytes: Option<u64>,
    /// The most bytes in any phase that are known not to be activations: activation checkpointing
    /// cannot lower the peak below it.
    pub without_activations_bytes: u64,
    /// The phase with those bytes.
    pub without_activations_phase: &'static str,
}

/// The highest peak of a phase as a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SumRecord {
    /// The phase.
    pub phase: &'static str,
    /// The step with the highest peak; null outside of steps.
    pub step: Option<u32>,
    /// The first event of the peak; -1 is the state before the window.
    pub peak_event: i64,
    /// Bytes at the peak: the sum of the following fields.
    pub peak_bytes: u64,
    /// Bytes of parameters.
    pub parameter: u64,
    /// Bytes of optimizer state.
    pub optimizer_state: u64,
    /// Bytes of gradients.
    pub gradient: u64,
    /// Bytes of activations.
    pub activation: u64,
    /// Bytes of temporaries.
    pub temporary: u64,
    /// Bytes of all other categories.
    pub other: u64,
}

/// The usual estimate of the peak: P + O + max(G + T, A).
///
/// Each value is the largest in [`Phases::sum`], that of G + T in one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Formula {
    /// P: bytes of parameters.
    pub parameter: u64,
    /// O: bytes of optimizer state.
    pub optimizer_state: u64,
    /// G + T: bytes of gradients and temporaries together.
    pub gradient_and_temporary: u64,
    /// A: bytes of activations.
    pub activation: u64,
    /// The estimate in bytes.
    pub bytes: u64,
    /// The estimate minus the peak, in bytes.
    pub error_bytes: i64,
}

/// The estimated peak of the second step.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NextStepRecord {
    /// How the numbers were obtained: an estimate.
    pub basis: Basis,
    /// The phase with the estimated peak.
    pub phase: &'static str,
    /// The estimated peak in bytes: the largest of `phases`.
    pub peak_bytes: u64,
    /// Bytes of optimizer state that the first step allocated, and that are live after it.
    pub new_state_bytes: u64,
    /// The same of parameters, buffers and workspaces.
    pub other_new_bytes: u64,
    /// What each phase of the first step needed.
    pub phases: Vec<NextPhaseRecord>,
    /// The peak of the second step in bytes, if the window has all of it.
    pub recorded_bytes: Option<u64>,
}

/// A phase of the second step.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NextPhaseRecord {
    /// The phase.
    pub phase: &'static str,
    /// The most bytes of the phase in the first step, without what is new in that step.
    pub without_new_bytes: u64,
    /// Bytes of activations and inputs of the first step that are live after it, and that the
    /// second step replaces in this phase or later.
    pub held_bytes: u64,
    /// The estimate: those bytes, the new state and all else that is new.
    pub bytes: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// The step and the phase that contain the state of a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The step, from 0; `None` outside of steps.
    pub step: Option<u32>,
    /// The phase; `None` if nothing shows steps or phases.
    pub phase: Option<&'static str>,
    /// The number of repetitions and the word for one; `None` for training steps.
    pub repetitions: Option<(u32, &'static str)>,
    /// The layer, if a forward pass has layers and the moment is in one.
    pub layer: Option<Layer>,
}

/// The step and the phase of a slot.
pub async fn place(target: Target<'_>, slot: u32, budget: &mut Budget) -> Place {
    places(target, &[slot], budget).await.pop().unwrap_or_default()
}

/// The step and the phase of each slot.
pub async fn places(target: Target<'_>, slots: &[u32], budget: &mut Budget) -> Vec<Place> {
    let found = find(target, budget).await;
    let repetitions = repetitions(target);
    let mut places = Vec::with_capacity(slots.len());
    for &slot in slots {
        let part = found.at(slot);
        let pass = part.filter(|part| part.phase == StepPhase::Forward);
        places.push(Place {
            step: part.and_then(|part| part.step),
            phase: part.map(|part| part.phase.name()),
            repetitions,
            layer: match pass {
                Some(pass) => layer::layer(target, &found.phases, pass, slot, budget).await,
                None => None,
            },
        });
    }
    places
}

impl Place {
    /// `step 2`, or `request 2`; `None` outside of steps.
    pub fn step_text(&self) -> Option<String> {
        let word = self.repetitions.map_or(Steps::TRAINING[0], |(_, word)| word);
        self.step.map(|step| format!("{word} {}", grouped(step.into())))
    }

    /// `, layer 24 of 24`; empty outside of layers.
    pub fn layer_text(&self) -> String {
        self.layer.map_or(String::new(), |at| format!(", layer {} of {}", at.number, at.of))
    }
}

/// The words for one step of a device and for several.
pub fn step_words(target: Target<'_>) -> [&'static str; 2] {
    target.entry.steps(target.index).map_or(Steps::TRAINING, Steps::words)
}

/// The number of repetitions, with one that the window cuts off, and the word for one; `None` for
/// training steps.
fn repetitions(target: Target<'_>) -> Option<(u32, &'static str)> {
    let steps = target.entry.steps(target.index)?;
    let repetition = steps.repetition?;
    Some((steps.whole() as u32 + u32::from(repetition.is_cut_off), steps.words()[0]))
}

async fn find(target: Target<'_>, budget: &mut Budget) -> StepPhases {
    let (entry, index) = (target.entry, target.index);
    let (categories, steps) = (entry.categories(index), entry.steps(index));
    entry.derive(Derived::Passes, index, budget).await;
    let parts = &entry.passes(index).parts;
    StepPhases::new(target.snapshot(), target.trace(), categories, steps, parts, budget).await
}

/// The slot and the bytes of the highest peak of each phase over all steps.
pub(crate) async fn highest_peaks(
    target: Target<'_>,
    budget: &mut Budget,
) -> Vec<(StepPhase, u32, u64)> {
    let found = find(target, budget).await;
    let highest = highest(&found.phases).into_iter();
    highest.map(|part| (part.phase, part.slot, part.bytes)).collect()
}

/// The phases of each step. `limit` is the largest number of steps to list.
pub async fn phases<'a>(
    target: Target<'a>,
    limit: Option<usize>,
    budget: &mut Budget,
) -> Phases<'a> {
    let found = find(target, budget).await;
    let steps = target.entry.steps(target.index);
    let whole = steps.map_or(0, vramscope_inference::Steps::whole);
    let (mut records, mut outside): (Vec<StepRecord>, Vec<PhaseRecord>) = (Vec::new(), Vec::new());
    for part in &found.phases {
        let record = phase_record(target, part);
        match (part.step, records.last_mut()) {
            (None, _) => outside.push(record),
            (Some(step), Some(last)) if last.step == step => {
                last.end = part.end;
                last.phases.push(record);
            }
            (Some(step), _) => records.push(StepRecord {
                step,
                whole: (step as usize) < whole,
                begin: part.begin,
                end: part.end,
                phases: vec![record],
            }),
        }
    }
    let omitted = records.len().saturating_sub(limit.unwrap_or(usize::MAX));
    records.truncate(records.len() - omitted);
    let sum = sum(&found.phases);
    let mut report = Phases {
        path: target.path,
        rank: rank_of(target.path),
        device: target.device(),
        steps_by: steps.map(|steps| steps.source.name()),
        step_words: step_words(target),
        steps: records,
        omitted,
        outside,
        limiting: limiting(&sum, &found.phases),
        formula: formula(&sum),
        next_step: found.next.as_ref().and_then(|next| next_step(next, &found.phases, whole)),
        sum,
        text: Vec::new(),
    };
    report.text = words::sentences(&report, repetitions(target));
    report
}

fn phase_record(target: Target<'_>, part: &PhasePeak) -> PhaseRecord {
    let set_by = part.set_by.map(|block| target.trace().blocks[block as usize].stack);
    PhaseRecord {
        phase: part.phase.name(),
        begin: part.begin,
        end: part.end,
        peak_bytes: part.bytes,
        peak_event: event_of(part.slot),
        blocks: part.blocks,
        reserved_growth: part.reserved_growth,
        categories: ByCategory(part.categories),
        site: set_by.map(|stack| site(target.entry, stack)),
    }
}

/// The highest peak of each phase, highest first.
fn highest(parts: &[PhasePeak]) -> Vec<&PhasePeak> {
    let mut highest: Vec<&PhasePeak> = Vec::new();
    for part in parts {
        match highest.iter_mut().find(|other| other.phase == part.phase) {
            Some(other) if other.bytes >= part.bytes => {}
            Some(other) => *other = part,
            None => highest.push(part),
        }
    }
    highest.sort_by_key(|part| (std::cmp::Reverse(part.bytes), part.slot));
    highest
}

fn sum(parts: &[PhasePeak]) -> Vec<SumRecord> {
    highest(parts).into_iter().map(sum_record).collect()
}

fn sum_record(part: &PhasePeak) -> SumRecord {
    let of = |category: Category| part.categories[category as usize];
    let mut record = SumRecord {
        phase: part.phase.name(),
        step: part.step,
        peak_event: event_of(part.slot),
        peak_bytes: part.bytes,
        parameter: of(Category::Parameter),
        optimizer_state: of(Category::OptimizerState),
        gradient: of(Category::Gradient),
        activation: of(Category::Activation),
        temporary: of(Category::Temporary),
        other: part.bytes,
    };
    record.other -= record.parameter
        + record.optimizer_state
        + record.gradient
        + record.activation
        + record.temporary;
    record
}

fn limiting(sum: &[SumRecord], parts: &[PhasePeak]) -> Option<Limiting> {
    let (first, next) = (sum.first()?, sum.get(1));
    let floor = parts.iter().rev().max_by_key(|part| part.without_activations)?;
    Some(Limiting {
        phase: first.phase,
        bytes: first.peak_bytes,
        next_phase: next.map(|row| row.phase),
        next_bytes: next.map(|row| row.peak_bytes),
        without_activations_bytes: floor.without_activations,
        without_activations_phase: floor.phase.name(),
    })
}

fn formula(sum: &[SumRecord]) -> Option<Formula> {
    sum.iter().find(|row| row.phase == StepPhase::Backward.name())?;
    let most = |of: fn(&SumRecord) -> u64| sum.iter().map(of).max().unwrap_or(0);
    let parameter = most(|row| row.parameter);
    let optimizer_state = most(|row| row.optimizer_state);
    let gradient_and_temporary = most(|row| row.gradient + row.temporary);
    let activation = most(|row| row.activation);
    let bytes = parameter + optimizer_state + gradient_and_temporary.max(activation);
    let error_bytes = bytes as i64 - most(|row| row.peak_bytes) as i64;
    Some(Formula {
        parameter,
        optimizer_state,
        gradient_and_temporary,
        activation,
        bytes,
        error_bytes,
    })
}

fn next_step(next: &NextStep, parts: &[PhasePeak], whole_steps: usize) -> Option<NextStepRecord> {
    let peak = next.peak()?;
    let second = parts.iter().filter(|part| part.step == Some(1)).map(|part| part.bytes);
    let record = |part: &NextPhase| NextPhaseRecord {
        phase: part.phase.name(),
        without_new_bytes: part.without_new,
        held_bytes: part.held,
        bytes: part.bytes,
    };
    Some(NextStepRecord {
        basis: Basis::Estimate,
        phase: peak.phase.name(),
        peak_bytes: peak.bytes,
        new_state_bytes: next.new_state,
        other_new_bytes: next.other_new,
        phases: next.phases.iter().map(record).collect(),
        recorded_bytes: second.max().filter(|_| whole_steps > 1),
    })
}
