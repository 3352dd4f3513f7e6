//! A finding in one sentence: its title, with the line that it is about. The verdict about a device
//! is the sentence of its worst finding.

use crate::phrase::{Sentence, site_filter};
use vramscope_inference::{CallSite, Category, Finding, Phase};

/// The sentence, with its nouns as links: `49.12 MiB more stay live every step: 589.5 MiB after 12
/// (train.py:31 step)`.
pub(crate) fn headline(title: Sentence, site: Option<&CallSite>) -> Sentence {
    match site {
        Some(site) => title.text(" (").filter(&site.name, site_filter(site)).text(")"),
        None => title,
    }
}

/// ` in backward of step 2`.
pub(super) fn place(finding: &Finding) -> Sentence {
    place_words(finding.phase.map(Phase::name), finding.step)
}

/// ` in backward of step 2`; empty if neither is known.
pub(crate) fn place_words(phase: Option<&str>, step: Option<u32>) -> Sentence {
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
pub(crate) fn category_noun(category: Category, words: &str) -> Sentence {
    Sentence::default().filter(words, format!("category:{}", category.name()))
}
