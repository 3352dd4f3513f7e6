//! One scenario from a model that is kept: what a switch or a slider asks for.

use super::{Options, OtherRecordings, ScenarioRecord, WrongItem, scale};
use crate::target::Target;
use vramscope_inference::{Question, Search, WhatIf, settings_text};
use vramscope_trace::slicing::Budget;
use vramscope_units::Bytes;

/// The first scenario of `options`, with its curve: reserved bytes after each event that changes
/// them.
///
/// It takes one replay, or three where the order of addresses decides. The least memory, which
/// takes a dozen more, is not searched.
///
/// # Errors
///
/// No block is allocated at a call site of the options.
pub async fn scenario(
    target: Target<'_>,
    model: &WhatIf,
    options: &Options,
    budget: &mut Budget,
) -> Result<(ScenarioRecord, Vec<(u32, u64)>), WrongItem> {
    if super::changed::is_wanted(target, options) {
        let mut all = super::changed::scenarios(target, model, options, budget).await;
        return Ok((all.swap_remove(0), Vec::new()));
    }
    let (scale, mut words) = scale(target, options, &OtherRecordings::default(), budget).await?;
    let configuration = options.configurations.first();
    let settings =
        configuration.map_or_else(|| model.settings.clone(), |one| one.settings(&model.settings));
    if settings != model.settings {
        words.push(settings_text(&settings));
    }
    words.extend(options.memory().map(|bytes| format!("device of {}", Bytes(bytes))));
    let question = Question {
        available: options.available(),
        scale,
        least: Search::WhenShort,
        ..Question::as_recorded(&settings)
    };
    let categories = target.entry.categories(target.index);
    let scenario = model.answer(question, target.trace(), categories, budget).await;
    let record = ScenarioRecord::new(words.join(", "), &scenario, target.trace(), options);
    Ok((record, scenario.curve))
}
