//! One scenario from a model that is kept: what a switch or a slider asks for.

use super::{Options, ScenarioRecord, scale};
use crate::target::Target;
use vramscope_analysis::slicing::Budget;
use vramscope_analysis::{AllocatorSettings, Question, Search, WhatIf, settings_text};
use vramscope_units::Bytes;

/// One scenario, with its curve: reserved bytes after each event that changes them. `settings`
/// stands for the options `set` and `change`.
///
/// It takes one replay, or three where the order of addresses decides. The least memory, which
/// takes a dozen more, is not searched.
///
/// # Errors
///
/// A name in `options.without` is wrong.
pub async fn scenario_sliced(
    target: Target<'_>,
    model: &WhatIf,
    settings: AllocatorSettings,
    options: &Options,
    budget: &mut Budget,
) -> Result<(ScenarioRecord, Vec<(u32, u64)>), String> {
    let (scale, mut words) = scale(target, options, budget).await?;
    if settings != model.settings {
        words.push(settings_text(&settings));
    }
    words.extend(options.device_memory.map(|bytes| format!("device of {}", Bytes(bytes))));
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
