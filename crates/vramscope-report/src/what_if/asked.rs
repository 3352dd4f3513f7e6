//! One scenario from a model that is kept: what a control of the page asks for.

use super::{Options, ScenarioRecord};
use crate::target::Target;
use vramscope_inference::{Question, Search, WhatIf, settings_text};
use vramscope_trace::slicing::Budget;
use vramscope_units::Bytes;

/// The first scenario of `options`, with its curve: reserved bytes after each event that changes
/// them.
///
/// It takes one replay, or three where the order of addresses decides. The least memory, which
/// takes a dozen more, is not searched.
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
        least: Search::Always,
        ..Question::as_recorded(&settings)
    };
    let scenario = model.answer(question, budget).await;
    let record = ScenarioRecord::new(words.join(", "), &scenario, target.trace(), options);
    (record, scenario.curve)
}
