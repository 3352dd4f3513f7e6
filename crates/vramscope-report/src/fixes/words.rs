//! The words of changes.

use super::candidates::Candidate;
use crate::target::Target;
use crate::what_if::{Outcome, place};
use vramscope_inference::{Applied, Change, Cost, Covers, Fix, PeakPart, Recipe, Value};
use vramscope_snapshot::FrameId;
use vramscope_trace::is_generated_file;
use vramscope_units::Bytes;

/// Settings to change, as the variable that has them.
pub(super) fn of_settings(conf: &str) -> String {
    format!("PYTORCH_CUDA_ALLOC_CONF={conf}")
}

/// What to change beside settings, each in a few words.
pub(super) fn changes(target: Target<'_>, recipes: &[Recipe], applied: &[Applied]) -> Vec<String> {
    // One change of several lines is told once.
    if let [first, _, ..] = recipes
        && recipes
            .iter()
            .all(|recipe| recipe.change == first.change && matches!(recipe.value, Value::Site(_)))
    {
        let sites: Vec<String> = recipes.iter().map(|recipe| recipe.value.to_string()).collect();
        let all = Recipe { change: first.change, value: Value::Site(sites.join(", ")) };
        return vec![all.called(0, "")];
    }
    let of = |(recipe, applied): (&Recipe, &Applied)| called(target, recipe, applied);
    recipes.iter().zip(applied).map(of).collect()
}

fn called(target: Target<'_>, recipe: &Recipe, applied: &Applied) -> String {
    // Without a backward pass the file does not show whether a batch is what makes inputs large.
    let trains = target.entry.passes(target.index).all.iter().any(|pass| pass.backward.is_some());
    if recipe.change.cost == Cost::Batch && !trains {
        return format!("{} x the input (batch, length or size)", recipe.value);
    }
    let at = site(target, applied).map_or_else(String::new, |site| format!(" ({site})"));
    recipe.called(applied.found, &at)
}

/// The cure of a part of the peak, with what the trace shows of it.
pub(super) fn of_peak_part(target: Target<'_>, part: &PeakPart) -> Fix {
    let applied = Applied { site: part.site, ..Applied::default() };
    let text = called(target, &part.cure, &applied);
    Fix {
        short: text.clone(),
        text,
        recipe: part.cure.to_string(),
        conf: None,
        outcome: Outcome::Unknown,
        needs_bytes: Bytes(part.without),
        short_by: None,
        saving_bytes: Bytes(part.saving),
        cost: part.cure.change.cost,
        covers: Covers::Run,
        lasts: None,
        error_percent: None,
        site: site(target, &applied),
    }
}

/// The line that a recipe changes: `gpt.py:44`.
pub(super) fn site(target: Target<'_>, applied: &Applied) -> Option<String> {
    let is_of_program = |frame: &FrameId| {
        let file = target.snapshot().frame(*frame).file;
        !is_generated_file(&target.snapshot().text(file))
    };
    applied.site.filter(is_of_program).map(|frame| place(target, frame))
}

/// The only change of a candidate.
fn only(candidate: &Candidate) -> Option<&'static Change> {
    if let [recipe] = &candidate.recipes[..] { Some(recipe.change) } else { None }
}

/// A known cause of memory, and its cure; `None` for changes without one.
pub(super) fn cause(candidate: &Candidate) -> Option<&'static str> {
    only(candidate)?.cause
}

/// Whether everybody tries it: it is named even if it does not help.
pub(super) fn is_tried(candidate: &Candidate) -> bool {
    candidate.recipes.is_empty() || only(candidate).is_some_and(|change| change.is_usual)
}

/// What to do, and what does not help, in sentences. Empty without changes.
pub(crate) fn sentences(fixes: &[Fix]) -> Vec<String> {
    let mut sentences = Vec::new();
    let of = |outcome: Outcome| fixes.iter().filter(move |fix| fix.outcome == outcome);
    let fitting: Vec<String> =
        of(Outcome::Fits).map(|fix| format!("{} (needs {})", fix.text, fix.needs_bytes)).collect();
    if !fitting.is_empty() {
        sentences.push(format!("It fits with {}.", fitting.join(", or ")));
    }
    let close: Vec<&str> = of(Outcome::FitsBarely).map(|fix| fix.text.as_str()).collect();
    if !close.is_empty() {
        sentences.push(format!("Too close to tell: {}.", close.join(", or ")));
    }
    let short: Vec<String> = of(Outcome::Short)
        .map(|fix| match fix.short_by {
            Some(bytes) => format!("{} ({bytes} short)", fix.text),
            None => fix.text.clone(),
        })
        .collect();
    if !short.is_empty() {
        sentences.push(format!("Not enough: {}.", short.join(", ")));
    }
    sentences
}
