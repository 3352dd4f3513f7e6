//! One scenario from a model that is kept: what a switch or a slider asks for.

use super::{Options, ScenarioRecord};
use crate::target::Target;
use vramscope_analysis::slicing::Budget;
use vramscope_analysis::{AllocatorSettings, Question, Scale, Search, WhatIf, settings_text};

/// One scenario, with its curve: reserved bytes after each event that changes them. Of the options,
/// memory and tokens count.
///
/// It takes one replay, or three where the order of addresses decides. The least memory, which
/// takes a dozen more, is not searched.
pub async fn scenario_sliced(
    target: Target<'_>,
    model: &WhatIf,
    settings: AllocatorSettings,
    options: &Options,
    budget: &mut Budget,
) -> (ScenarioRecord, Vec<(u32, u64)>) {
    let question = Question {
        available: options.available(),
        scale: Scale { tokens: options.tokens, ..Scale::default() },
        least: Search::WhenShort,
        ..Question::as_recorded(&settings)
    };
    let categories = target.entry.categories(target.index);
    let change = settings_text(&settings);
    let scenario = model.answer(question, target.trace(), categories, budget).await;
    (ScenarioRecord::new(change, &scenario, target.trace(), options), scenario.curve)
}
