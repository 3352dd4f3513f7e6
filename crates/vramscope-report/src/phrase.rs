//! Sentences whose nouns lead somewhere.

use crate::text::NO_STACK;
use serde::{Deserialize, Serialize};

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

/// Where a noun of a sentence leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Link {
    /// A filter: `site:model.py:212`, `category:activation`, `phase:backward`, `step:2`.
    Filter(String),
    /// An event.
    Event(u32),
}

/// Divides a sentence at its nouns. Each noun is looked for once, outside of the nouns before it in
/// the list. Nouns that the sentence lacks are left out.
pub fn phrases(sentence: &str, nouns: &[(String, Link)]) -> Vec<Phrase> {
    let mut found: Vec<(usize, usize, &Link)> = Vec::new();
    for (noun, link) in nouns.iter().filter(|(noun, _)| !noun.is_empty()) {
        let free = |&(at, _): &(usize, &str)| {
            found.iter().all(|&(from, to, _)| at + noun.len() <= from || to <= at)
        };
        let at = sentence.match_indices(noun.as_str()).find(free).map(|(at, _)| at);
        found.extend(at.map(|at| (at, at + noun.len(), link)));
    }
    found.sort_by_key(|noun| noun.0);
    let plain = |text: &str| Phrase { text: text.to_owned(), ..Phrase::default() };
    let (mut all, mut end) = (Vec::new(), 0);
    for (from, to, link) in found {
        if end < from {
            all.push(plain(&sentence[end..from]));
        }
        let mut phrase = plain(&sentence[from..to]);
        match link {
            Link::Filter(filter) => phrase.filter = Some(filter.clone()),
            Link::Event(event) => phrase.event = Some(*event),
        }
        all.push(phrase);
        end = to;
    }
    if end < sentence.len() {
        all.push(plain(&sentence[end..]));
    }
    all
}

/// The words of a sentence.
pub fn plain(sentence: &[Phrase]) -> String {
    sentence.iter().map(|phrase| phrase.text.as_str()).collect()
}

/// The filter of a call site: `site:model.py:212` for `model.py:212 forward`. `None` for memory
/// without a call stack.
pub fn site_filter(site: &str) -> Option<String> {
    if site.is_empty() || site == NO_STACK || site.starts_with('(') {
        return None;
    }
    // The function follows the line. Names of files may have spaces, too.
    let after_line = site.char_indices().find(|&(at, letter)| {
        letter == ' ' && site[..at].ends_with(|letter: char| letter.is_ascii_digit())
    });
    let place = after_line.map_or(site, |(at, _)| &site[..at]);
    Some(format!("site:{place}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nouns_become_links_in_the_order_of_the_sentence() {
        let filter = |text: &str| Link::Filter(text.to_owned());
        let sentence = "gpt.py:4 forward fails in forward of step 2: asked for 3.0 MiB";
        let all = phrases(
            sentence,
            &[
                ("gpt.py:4 forward".to_owned(), filter("site:gpt.py:4")),
                ("forward".to_owned(), filter("phase:forward")),
                ("step 2".to_owned(), filter("step:2")),
                ("3.0 MiB".to_owned(), Link::Event(7)),
                ("backward".to_owned(), filter("phase:backward")),
            ],
        );
        assert_eq!(plain(&all), sentence);
        let links: Vec<_> = all
            .iter()
            .filter(|phrase| phrase.filter.is_some() || phrase.event.is_some())
            .map(|phrase| (phrase.text.as_str(), phrase.filter.as_deref(), phrase.event))
            .collect();
        assert_eq!(
            links,
            [
                ("gpt.py:4 forward", Some("site:gpt.py:4"), None),
                ("forward", Some("phase:forward"), None),
                ("step 2", Some("step:2"), None),
                ("3.0 MiB", None, Some(7)),
            ]
        );
        assert_eq!(all[1].text, " fails in ", "the site keeps its function");
    }

    #[test]
    fn a_sentence_without_nouns_stays_whole() {
        assert_eq!(phrases("Nothing.", &[(String::new(), Link::Event(1))]).len(), 1);
        assert!(phrases("", &[]).is_empty());
    }

    #[test]
    fn a_site_filters_by_file_and_line() {
        assert_eq!(site_filter("model.py:212 forward").as_deref(), Some("site:model.py:212"));
        assert_eq!(site_filter("my file.py:3 <module>").as_deref(), Some("site:my file.py:3"));
        assert_eq!(site_filter("libtorch.so").as_deref(), Some("site:libtorch.so"));
        assert_eq!(site_filter(NO_STACK), None);
        assert_eq!(site_filter("(before recording)"), None);
    }
}
