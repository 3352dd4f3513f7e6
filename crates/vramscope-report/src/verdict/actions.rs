//! What to do about the worst findings, each in a few words with its bytes.

use crate::finding_text::{is_about_streams, setting_name};
use crate::findings::{FindingEntry, FindingRecord};
use crate::fixes::Fix;
use crate::loaded_file::SnapshotEntry;
use crate::simulated::{ChangeKind, Simulated};
use crate::what_if::{Outcome, basis};
use serde::{Deserialize, Serialize};
use vramscope_inference::{
    Category, Context, Facts, Finding, FindingId, GrowthKind, HeldTooLong, OomStory, ReservedPeak,
    Verdict,
};
use vramscope_units::Bytes;

/// The maximum number of actions in a verdict.
const MAX_ACTIONS: usize = 3;

/// Something to do, in a few words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct Action {
    /// What to change: `8-bit optimizer state`.
    pub text: String,
    /// What it brings: `serves this request`, `-97.49 MiB`; empty if no number is known.
    pub value: String,
    /// The finding's action in full, or the basis of the value.
    pub detail: String,
    /// The settings to set, in the form of `PYTORCH_CUDA_ALLOC_CONF`; null for other changes.
    pub conf: Option<String>,
    /// Whether the change is enough, or its effect is unknown. False for one that was simulated and
    /// does not suffice.
    pub helps: bool,
    /// Whether a replay of the recording gave the value.
    pub is_simulated: bool,
    /// What was simulated, as a question: `expandable_segments:True,batch:0.9`.
    /// Empty for other actions.
    pub scenario: String,
    /// The id of the finding that it is about.
    pub finding: FindingId,
}

/// The actions of a device's findings above low: those of the worst, then one of each other.
pub(super) fn of_device(
    notable: &[(&Finding, &FindingEntry)],
    worst: Option<(&Finding, &FindingEntry)>,
) -> Vec<Action> {
    let Some((_, worst)) = worst else { return Vec::new() };
    let mut all = worst.actions.clone();
    let others = notable.iter().filter(|(_, other)| other.record.id != worst.record.id);
    all.extend(others.filter_map(|(_, other)| other.actions.first().cloned()));
    all.truncate(MAX_ACTIONS);
    all
}

/// What to do about a finding, most useful first.
pub(crate) fn of_finding(
    entry: &SnapshotEntry,
    finding: &Finding,
    record: &FindingRecord,
) -> Vec<Action> {
    let action = |text: &str, value: String| Action {
        text: text.to_owned(),
        value,
        detail: record.action.clone(),
        conf: None,
        helps: true,
        is_simulated: false,
        scenario: String::new(),
        finding: record.id.clone(),
    };
    let less = |bytes: Bytes| format!("-{bytes}");
    match &finding.facts {
        Facts::Oom(story) => oom(story, record, &action),
        Facts::Growth(growth) => vec![match growth.kind {
            GrowthKind::Replaced => action("Collect the pieces on the CPU", less(growth.total)),
            _ if growth.activations.is_some() => {
                action("Keep loss.item() or output.detach()", less(growth.total))
            }
            _ if growth.is_model_state => {
                action("Drop old gradients or optimizers", less(growth.total))
            }
            GrowthKind::Kept => {
                action("Move to the CPU, or bound, what keeps them", less(growth.total))
            }
        }],
        Facts::Cycle(cycle) => vec![action("Break the reference cycle", less(cycle.at_peak))],
        Facts::GradientsHeld(held) => vec![action(
            if held.is_frozen {
                "requires_grad_(False) for frozen parameters"
            } else {
                "zero_grad(set_to_none=True) after step()"
            },
            if finding.phase.is_some() { less(held.saving) } else { String::new() },
        )],
        Facts::HeldTooLong(held) => vec![match held {
            HeldTooLong::LastStep { of_step: None, saving, .. } => {
                action("Delete last step's results before forward", less(*saving))
            }
            HeldTooLong::LastStep { saving, .. } => {
                action("Drop the results of the earlier step", less(*saving))
            }
            HeldTooLong::Variable { is_direct: true, saving, .. } => {
                action("Update the tensor in place", less(*saving))
            }
            HeldTooLong::Variable { saving, .. } => {
                action("Delete the old result first", less(*saving))
            }
            HeldTooLong::Copies { .. } => action("Make the copy once", less(Bytes(finding.bytes))),
        }],
        Facts::Reserved(peak) => reserved(entry, peak, record, &action),
        _ => first_sentence(&record.action).map(|text| action(text, String::new())).collect(),
    }
}

type Make<'a> = &'a dyn Fn(&str, String) -> Action;

/// Changes of the program that the file shows, settings that serve the request or come closer, then
/// less memory.
fn oom(story: &OomStory, record: &FindingRecord, action: Make<'_>) -> Vec<Action> {
    let mut all: Vec<Action> = Vec::new();
    let is_of_program =
        story.climb.is_some() || story.copies.is_some() || story.context == Context::Capture;
    if is_of_program && story.verdict != Verdict::OtherMemory {
        all.extend(first_sentence(&record.action).map(|text| action(text, String::new())));
        return all;
    }
    all.extend(record.fixes.iter().map(|fix| of_fix(fix, record, action)));
    if let Some((bytes, _)) = story.kept {
        all.insert(0, action("Leave the except block first", format!("-{bytes} afterwards")));
    }
    let is_demand =
        matches!(story.verdict, Verdict::Demand | Verdict::Fragmentation | Verdict::Unknown);
    let largest = story.categories.iter().find(|held| held.0 != Category::Unknown);
    match largest.filter(|_| is_demand) {
        _ if record.fixes.iter().any(|fix| fix.outcome == Outcome::Fits) => {}
        Some(&(of, bytes)) => {
            let words = crate::text::category(of);
            let at = all.iter().position(|one| !one.helps).unwrap_or(all.len());
            let less = action(remedy(of, story.context), format!("{bytes} {words}"));
            all.insert(at.min(MAX_ACTIONS - 1), less);
        }
        None => all.extend(first_sentence(&record.action).map(|text| action(text, String::new()))),
    }
    all
}

/// A change that was replayed over the whole run.
fn of_fix(fix: &Fix, record: &FindingRecord, action: Make<'_>) -> Action {
    let value = match (fix.outcome, fix.short_by) {
        (Outcome::Fits, _) => format!("fits in {}", fix.needs_bytes),
        (Outcome::Short, Some(short)) => format!("{short} short"),
        (Outcome::Short, None) => "short".to_owned(),
        (Outcome::FitsBarely | Outcome::Unknown, _) => "too close to tell".to_owned(),
    };
    let setting = fix.conf.iter().cloned();
    let recipe = Some(fix.recipe.clone()).filter(|recipe| !recipe.is_empty());
    Action {
        detail: format!("recipe: {}", record.action),
        conf: fix.conf.clone(),
        helps: fix.outcome != Outcome::Short,
        is_simulated: true,
        scenario: setting.chain(recipe).collect::<Vec<_>>().join(","),
        ..action(&fix.text, value)
    }
}

/// The settings that reserve less, else the finding's own action.
fn reserved(
    entry: &SnapshotEntry,
    peak: &ReservedPeak,
    record: &FindingRecord,
    action: Make<'_>,
) -> Vec<Action> {
    let less = record
        .simulated
        .iter()
        .filter(|one| one.kind != ChangeKind::AsRecorded && one.reserved_peak < peak.reserved);
    let mut less: Vec<&Simulated> = less.collect();
    less.sort_by_key(|one| one.reserved_peak);
    let all = less.into_iter().map(|one| Action {
        conf: Some(one.conf.clone()),
        is_simulated: true,
        scenario: one.question.clone(),
        detail: format!("{}: {}", basis(one.basis), record.action),
        ..action(&setting_name(one), format!("-{}", Bytes(peak.reserved.0 - one.reserved_peak.0)))
    });
    let mut all: Vec<Action> = all.collect();
    if is_about_streams(peak, &record.simulated) {
        for text in first_sentence(&record.action) {
            all.insert(0, action(text, String::new()));
        }
    }
    // The out-of-memory finding says it.
    if all.is_empty() && !entry.has_simulated(record.device) {
        all.extend(first_sentence(&record.action).map(|text| action(text, String::new())));
    }
    all
}

/// What lowers the memory of a category, in a few words.
fn remedy(of: Category, context: Context) -> &'static str {
    match of {
        Category::Parameter => "Shard the parameters, or a smaller type",
        Category::Gradient => "Gradients to None before forward",
        Category::OptimizerState => "Shard the optimizer, or smaller state",
        Category::Communication => "Smaller buckets of communication",
        Category::Workspace => "Smaller workspaces",
        Category::Buffer => "Free or move buffers",
        Category::Cache => "Fewer or shorter sequences",
        _ if context != Context::Training => "Smaller batch, or chunks",
        _ => "Smaller batch, or checkpointing",
    }
}

/// The first sentence, without its full stop.
fn first_sentence(text: &str) -> impl Iterator<Item = &str> {
    let end = text.find(". ").unwrap_or(text.len());
    Some(text[..end].trim_end_matches('.')).filter(|text| !text.is_empty()).into_iter()
}
