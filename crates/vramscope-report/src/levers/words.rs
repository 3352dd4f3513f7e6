//! The words of levers.

use super::candidates::Candidate;
use crate::holders;
use crate::target::Target;
use crate::what_if::{Configuration, Options, Outcome};
use vramscope_inference::{
    Applied, Change, Cost, Lever, LeverBasis, Recipe, Value, recorded_settings, settings_text,
    split_outside_brackets,
};
use vramscope_trace::AllocatorSettings;

/// What to change, in a few words.
pub(super) fn text(
    target: Target<'_>,
    candidate: &Candidate,
    settings: &AllocatorSettings,
    applied: &[Applied],
) -> String {
    let own = &candidate.settings;
    let settings = own.is_some().then(|| of_settings(target, settings));
    let all: Vec<String> =
        settings.into_iter().chain(changes(target, &candidate.recipes, applied)).collect();
    all.join(" + ")
}

/// Settings to change: the whole value of `PYTORCH_CUDA_ALLOC_CONF`. What the recording has beside
/// them goes.
fn of_settings(target: Target<'_>, settings: &AllocatorSettings) -> String {
    let text = settings_text(settings);
    match (is_less(target, &text), text.is_empty()) {
        (_, true) => "Unset PYTORCH_CUDA_ALLOC_CONF".to_owned(),
        (true, false) => format!("Set only {text}"),
        (false, false) => text,
    }
}

/// Whether settings lack one of the recording.
fn is_less(target: Target<'_>, text: &str) -> bool {
    let recorded = settings_text(&recorded_settings(target.snapshot(), &target.trace().device));
    let has = |item: &str| split_outside_brackets(text).any(|own| own == item);
    split_outside_brackets(&recorded).any(|item| !item.is_empty() && !has(item))
}

/// The question to the model that a lever answers; empty for an estimate, which a replay would
/// contradict, and for a change that no text names.
pub fn lever_question(target: Target<'_>, lever: &Lever) -> String {
    if lever.basis != LeverBasis::Replayed {
        return String::new();
    }
    let own = |conf: &String| Configuration::new(conf, is_less(target, conf));
    let Ok(recipes) = Recipe::parse_list(&lever.recipe) else { return String::new() };
    let Ok(configurations) = lever.conf.iter().map(own).collect() else { return String::new() };
    Options { configurations, recipes, ..Options::default() }.to_string()
}

/// What to change beside settings, each in a few words.
fn changes(target: Target<'_>, recipes: &[Recipe], applied: &[Applied]) -> Vec<String> {
    // One change of several lines is told once.
    if let [first, _, ..] = recipes
        && recipes
            .iter()
            .all(|recipe| recipe.change == first.change && matches!(recipe.value, Value::Site(_)))
    {
        let sites: Vec<String> = recipes.iter().map(|recipe| recipe.value.to_string()).collect();
        let all = Recipe { change: first.change, value: Value::Site(sites.join(", ")) };
        return vec![all.called(&Applied::default())];
    }
    // Without a backward pass the file does not show whether a batch is what makes inputs large.
    let trains = target.entry.passes(target.index).all.iter().any(|pass| pass.backward.is_some());
    let of = |(recipe, applied): (&Recipe, &Applied)| match recipe.change.cost {
        Cost::Batch if !trains => {
            recipe.called(applied).replace("batch", "input (batch, length or size)")
        }
        _ => dropped(target, recipe).unwrap_or_else(|| recipe.called(applied)),
    };
    recipes.iter().zip(applied).map(of).collect()
}

/// `Drop "losses" after each step`: what holds the results of a line, if that is known.
fn dropped(target: Target<'_>, recipe: &Recipe) -> Option<String> {
    let Value::Site(site) = &recipe.value else { return None };
    let name = (recipe.change.name() == "del").then(|| holders::name_of_line(target, site));
    Some(format!("Drop {} after each step", name.flatten()?))
}

/// What to do, before the run was replayed with it.
pub(super) fn called(target: Target<'_>, recipe: &Recipe) -> String {
    changes(target, std::slice::from_ref(recipe), &[Applied::default()]).concat()
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

/// What to do, and what does not help, in sentences. Empty without levers.
pub(crate) fn sentences(levers: &[Lever]) -> Vec<String> {
    let mut sentences = Vec::new();
    let mut push = |begin: &str, outcome: Outcome, of: &dyn Fn(&Lever) -> String| {
        let levers = levers.iter().filter(|lever| lever.outcome == Some(outcome));
        let texts: Vec<String> = levers.map(of).collect();
        if !texts.is_empty() {
            sentences.push(format!("{begin}: {}.", texts.join("; ")));
        }
    };
    push("It fits with one of these", Outcome::Fits, &|lever| {
        format!("{} (needs {})", lever.text, lever.needs_bytes)
    });
    push("Too close to tell", Outcome::FitsBarely, &|lever| lever.text.clone());
    push("Not enough", Outcome::Short, &|lever| match lever.short_by {
        Some(bytes) => format!("{} ({bytes} short)", lever.text),
        None => lever.text.clone(),
    });
    sentences
}
