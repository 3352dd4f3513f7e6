//! One scenario from a model that is kept: what a control of the page asks for.

use super::{Options, ScenarioRecord};
use crate::target::Target;
use vramscope_inference::{Question, Search, WhatIf, settings_text};
use vramscope_trace::AllocatorSettings;
use vramscope_trace::slicing::Budget;
use vramscope_units::Bytes;

/// The least memory with which the recorded run goes through under settings.
pub(crate) async fn recorded_least(
    model: &WhatIf,
    settings: &AllocatorSettings,
    budget: &mut Budget,
) -> Option<u64> {
    let question = Question { least: Search::Always, ..Question::as_recorded(settings) };
    model.answer(question, budget).await.least
}

/// The first scenario of `options`, with its curve: reserved bytes after each event that changes
/// them.
///
/// It takes one replay, or three where the order of addresses decides, and a dozen more for the
/// least memory. That does not depend on the device, so that a change has one number on all.
pub async fn scenario(
    target: Target<'_>,
    model: &WhatIf,
    options: &Options,
    budget: &mut Budget,
) -> (ScenarioRecord, Vec<(u32, u64)>) {
    if super::changed::is_wanted(target, options) {
        let mut all = super::changed::scenarios(target, model, options, budget).await;
        return (all.swap_remove(0), Vec::new());
    }
    let mut words: Vec<String> = Vec::new();
    let configuration = options.configurations.first();
    let total = options.memory().or_else(|| model.total());
    let settings = match configuration.map(|one| (one, one.settings(&model.settings, total))) {
        None => model.settings.clone(),
        Some((_, Ok(settings))) => settings,
        Some((one, Err(why))) => {
            let record = super::changed::declined(target, model, options, one, why);
            return (record, Vec::new());
        }
    };
    if settings != model.settings {
        words.push(settings_text(&settings));
    }
    words.extend(options.memory().map(|bytes| format!("device of {}", Bytes(bytes))));
    let question = Question {
        available: options.available(),
        total: options.memory(),
        least: Search::Never,
        ..Question::as_recorded(&settings)
    };
    let mut scenario = model.answer(question, budget).await;
    scenario.least = recorded_least(model, &settings, budget).await;
    let record = ScenarioRecord::new(words.join(", "), &scenario, target.trace(), options);
    (record, scenario.curve)
}
