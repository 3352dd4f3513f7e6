//! Words that several claims share.

use super::phrase::Sentence;
use crate::category::Category;
use vramscope_snapshot::PoolId;
use vramscope_trace::NO_STACK;
use vramscope_units::{Bytes, grouped};

/// The setting that lets free pieces of one segment grow together. Shown where it is off.
pub(crate) const EXPANDABLE: &str = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True";

/// ` in backward of step 2`; empty if neither is known.
pub fn place_words(phase: Option<&str>, step: Option<u32>) -> Sentence {
    let sentence = match phase {
        Some(phase) => Sentence::new(" in ").filter(phase, format!("phase:{phase}")),
        None => Sentence::default(),
    };
    match step {
        Some(step) => sentence
            .text(if phase.is_some() { " of " } else { " in " })
            .filter(format_args!("step {step}"), format!("step:{step}")),
        None => sentence,
    }
}

/// A category as a noun.
pub fn category_noun(category: Category, words: &str) -> Sentence {
    Sentence::default().filter(words, format!("category:{}", category.name()))
}

/// `1 block`, `12 blocks`.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    format!("{} {noun}{}", grouped(count as u64), if count == 1 { "" } else { "s" })
}

/// `once`, `12 times`.
pub(crate) fn times(count: usize) -> String {
    if count == 1 { "once".to_owned() } else { counted(count, "time") }
}

/// The share of a part, in percent.
pub(crate) fn percent(part: Bytes, whole: Bytes) -> u64 {
    part.0.saturating_mul(100) / whole.0.max(1)
}

/// A range in a title: `49.1 MiB`, or `49.1 to 67.6 MiB`.
pub(crate) fn brief_range(least: Bytes, most: Bytes) -> String {
    let [from, to] = [least, most].map(Bytes::brief);
    match (from.split_once(' '), to.split_once(' ')) {
        _ if from == to => to,
        (Some((number, unit)), Some((_, other))) if unit == other => format!("{number} to {to}"),
        _ => format!("{from} to {to}"),
    }
}

/// A ratio with one decimal: `2.0`.
pub(crate) fn ratio(part: Bytes, whole: Bytes) -> String {
    let tenths = (u128::from(part.0) * 10 + u128::from(whole.0) / 2) / u128::from(whole.0.max(1));
    format!("{}.{}", tenths / 10, tenths % 10)
}

/// `a`, `a and b`, `a, b and c`.
pub(crate) fn list(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// A text that begins with a capital letter.
pub fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|c| c.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// A call site as the subject of a sentence.
pub(crate) fn subject(site: &str) -> String {
    if site == NO_STACK { format!("Memory with {NO_STACK}") } else { site.to_owned() }
}

/// A call site as a place: ` at model.py:3 f`; empty without a call stack.
pub(crate) fn at_site(site: &str) -> String {
    if site == NO_STACK { String::new() } else { format!(" at {site}") }
}

/// A caller: `called from model.py:3 f`; empty without a call stack.
pub(crate) fn called_from(site: &str) -> String {
    if site == NO_STACK { String::new() } else { format!("called from {site}") }
}

/// `the default pool`, or `pool (0, 1)`.
pub(crate) fn pool(pool: Option<PoolId>) -> String {
    match pool {
        None | Some(PoolId::DEFAULT) => "the default pool".to_owned(),
        Some(pool) => format!("pool {pool}"),
    }
}

/// A category in a sentence: `optimizer state`.
pub(crate) fn category(category: Category) -> String {
    category.name().replace('_', " ")
}

/// The label of a category: what its blocks hold.
pub fn category_label(category: Category) -> &'static str {
    match category {
        Category::Parameter => "parameters",
        Category::Gradient => "gradients",
        Category::OptimizerState => "optimizer state",
        Category::Buffer => "buffers",
        Category::Input => "inputs",
        Category::Activation => "activations",
        Category::Temporary => "temporaries",
        Category::Workspace => "workspaces",
        Category::Communication => "communication",
        Category::Cache => "caches",
        Category::Unknown => "unknown",
    }
}
