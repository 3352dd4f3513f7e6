//! Sentences whose nouns lead somewhere.

use crate::evidence::ranks::CallSite;
use serde::{Deserialize, Serialize};
use std::fmt::Display;

/// A part of a sentence: plain text, a term that filters, or an event.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct Phrase {
    /// The words.
    pub text: String,
    /// The filter that shows what the words name: `category:activation`; null if there is none.
    pub filter: Option<String>,
    /// The event that the words are about; null if there is none.
    pub event: Option<u32>,
}

/// A sentence that is written part by part. Neighboring plain texts are one part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sentence {
    parts: Vec<Phrase>,
}

impl Sentence {
    /// A sentence that begins with plain text.
    pub fn new(text: impl Display) -> Self {
        Self::default().text(text)
    }

    /// Appends plain text.
    #[must_use]
    pub fn text(self, text: impl Display) -> Self {
        self.with(Phrase { text: text.to_string(), ..Phrase::default() })
    }

    /// Appends a noun that filters: `site:model.py:212`, `category:activation`, `phase:backward`,
    /// `step:2`. Without a filter it is plain text.
    #[must_use]
    pub fn filter(self, text: impl Display, filter: impl Into<Option<String>>) -> Self {
        self.with(Phrase { text: text.to_string(), filter: filter.into(), event: None })
    }

    /// Appends a call site. With a frame it filters.
    #[must_use]
    pub fn site(self, label: impl Display, filter: Option<String>) -> Self {
        self.filter(label, filter)
    }

    /// Appends words that lead to an event. Without an event they are plain text.
    #[must_use]
    pub fn event(self, text: impl Display, event: Option<u32>) -> Self {
        self.with(Phrase { text: text.to_string(), filter: None, event })
    }

    /// Appends another sentence.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        other.parts.into_iter().fold(self, Self::with)
    }

    /// The words.
    pub fn plain(&self) -> String {
        plain(&self.parts)
    }

    /// The parts.
    pub fn into_phrases(self) -> Vec<Phrase> {
        self.parts
    }

    fn with(mut self, phrase: Phrase) -> Self {
        let is_plain = |phrase: &Phrase| phrase.filter.is_none() && phrase.event.is_none();
        match self.parts.last_mut() {
            _ if phrase.text.is_empty() => {}
            Some(last) if is_plain(last) && is_plain(&phrase) => last.text.push_str(&phrase.text),
            _ => self.parts.push(phrase),
        }
        self
    }
}

/// The words of a sentence.
pub fn plain(sentence: &[Phrase]) -> String {
    sentence.iter().map(|phrase| phrase.text.as_str()).collect()
}

/// Words where they go on after others. A name with other capitals keeps its first letter:
/// `PyTorch`, `KV`, `NCCL's`.
pub fn lower_first(text: &str) -> String {
    let mut word = text.chars().skip(1).take_while(char::is_ascii_alphabetic);
    if word.any(|letter| letter.is_ascii_uppercase()) {
        return text.to_owned();
    }
    let mut letters = text.chars();
    let first = letters.next().map(|c| c.to_ascii_lowercase());
    first.into_iter().chain(letters).collect()
}

/// The filter of a call site; `None` for memory without a call stack.
pub fn site_filter(site: &CallSite) -> Option<String> {
    site.has_frame.then(|| format!("site:{}", site.name))
}

/// `at train.py:12 step`. Memory without a call stack is named by the reason: `(before recording)`.
pub fn at_or_with(site: &CallSite) -> String {
    format!("{} {}", if site.has_frame { "at" } else { "with" }, site.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_letters() {
        assert_eq!(lower_first("Out of memory at Net.py:3"), "out of memory at Net.py:3");
        assert_eq!(lower_first("PyTorch keeps it"), "PyTorch keeps it");
        assert_eq!(lower_first("KV cache kept"), "KV cache kept");
        assert_eq!(lower_first("49 MiB more"), "49 MiB more");
    }

    #[test]
    fn neighboring_plain_texts_are_one_part() {
        let place = Sentence::new(" in ").filter("forward", "phase:forward".to_owned());
        let sentence = Sentence::new("Out of memory")
            .text("")
            .and(place)
            .text(": asked for ")
            .event("3.0 MiB", Some(7))
            .event(", at ", None)
            .filter("no call stack", None)
            .text(".");
        let plain_text = "Out of memory in forward: asked for 3.0 MiB, at no call stack.";
        assert_eq!(sentence.plain(), plain_text);
        let parts = sentence.into_phrases();
        let parts: Vec<_> = parts
            .iter()
            .map(|part| (part.text.as_str(), part.filter.as_deref(), part.event))
            .collect();
        assert_eq!(
            parts,
            [
                ("Out of memory in ", None, None),
                ("forward", Some("phase:forward"), None),
                (": asked for ", None, None),
                ("3.0 MiB", None, Some(7)),
                (", at no call stack.", None, None),
            ]
        );
    }
}
