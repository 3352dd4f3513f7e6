//! What names in answers mean: findings, warnings about files, blind spots, changes of the program.
//! `vramscope explain NAME` prints one, and the reference of the site has all of them.

use serde::Serialize;
use vramscope_inference::{BlindSpot, CHANGES, Change, FindingKind, Recipe};
use vramscope_snapshot::{AffectedCurve, WarningKind};

/// The list that a name is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum NameKind {
    /// A kind of finding.
    Finding,
    /// A gap in a recording that hides findings.
    BlindSpot,
    /// A defect of a file that reading worked around.
    Warning,
    /// A change of the program, which `what-if --apply` predicts.
    Change,
}

/// `vramscope.explain/1` of a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Meaning {
    /// The schema's name and version.
    pub schema: &'static str,
    /// The list that it is from.
    pub kind: NameKind,
    /// The name in answers.
    pub name: &'static str,
    /// The name on the page, or the name in words; of a change, the name.
    pub title: String,
    /// When it is said, what it does not cover, and what helps: Markdown.
    pub text: String,
}

impl Meaning {
    fn new(kind: NameKind, name: &'static str, title: &str, text: &str) -> Self {
        let (title, text) = (title.to_owned(), text.trim_end().to_owned());
        Self { schema: "vramscope.explain/1", kind, name, title, text }
    }
}

/// All names of a list, in its order.
pub fn meanings(kind: NameKind) -> Vec<Meaning> {
    let new = |name, title: &str, text: &str| Meaning::new(kind, name, title, text);
    match kind {
        NameKind::Finding => {
            let all = FindingKind::ALL.iter();
            all.map(|of| new(of.name(), of.label(), of.page())).collect()
        }
        NameKind::BlindSpot => {
            let all = BlindSpot::ALL.iter().map(|of| (of.name(), of.meaning()));
            all.chain(OF_RUNS).map(|(name, text)| new(name, &words(name), text)).collect()
        }
        NameKind::Warning => {
            let all = WarningKind::ALL.iter();
            all.map(|&of| new(of.name(), &words(of.name()), &warning(of))).collect()
        }
        NameKind::Change => CHANGES.iter().map(|of| new(of.form, of.form, &change(of))).collect(),
    }
}

/// What a name means; `None` for any other text. A change has its form as name (`batch:K`), or is a
/// recipe of it (`batch:0.5`).
pub fn meaning(name: &str) -> Option<Meaning> {
    let form = name.parse::<Recipe>().map_or(name, |recipe| recipe.change.form);
    let lists = [NameKind::Finding, NameKind::BlindSpot, NameKind::Warning, NameKind::Change];
    lists.into_iter().flat_map(meanings).find(|of| of.name == form)
}

/// Blind spots of several files.
const OF_RUNS: [(&str, &str); 2] = [
    (
        "several_runs",
        "A rank has processes in several folders: their files have all events, and first events of \
         different times. A table of ranks is of one folder.",
    ),
    (
        "index",
        "The answer is from the cards of an index: no change was replayed; lesser findings beyond \
         eight of a file are left out.",
    ),
];

/// A name in words: `Lost free` for `lost_free`.
fn words(name: &str) -> String {
    let mut words = name.replace('_', " ");
    if let Some(first) = words.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    words
}

fn warning(of: WarningKind) -> String {
    let estimate = match of.affects() {
        _ if of.changes_values() => " All bytes of such a file are estimates.",
        Some(AffectedCurve::RequestedBytes) => " `requested_bytes` is an estimate.",
        Some(AffectedCurve::ReservedBytes) => " `reserved_bytes` is an estimate.",
        None => "",
    };
    format!("{}{estimate}", of.meaning())
}

fn change(of: &Change) -> String {
    let error = match of.error_percent {
        _ if !of.is_predicted() => String::new(),
        Some(error) => format!(" The measured error of the active peak is {error} %."),
        None => " Its error is not measured.".to_owned(),
    };
    let [on, off] = of.on;
    let listed = match [on, off] {
        ["", _] => String::new(),
        [on, ""] => format!("\n\nA recording has it where {on}."),
        [on, off] => format!("\n\nA recording has it where {on}, and lacks it where {off}."),
    };
    format!("In the list of blocks: {}.{error}{listed}", of.does)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_and_messages_are_none() {
        assert_eq!(meaning("growth").map(|of| of.kind), Some(NameKind::Finding));
        assert_eq!(meaning("lost_free").map(|of| of.kind), Some(NameKind::Warning));
        assert_eq!(meaning("few_steps").map(|of| of.kind), Some(NameKind::BlindSpot));
        assert_eq!(meaning("checkpoint:all").map(|of| of.name), Some("checkpoint:all"));
        assert_eq!(meaning("batch:0.5").map(|of| of.name), Some("batch:K"));
        assert_eq!(meaning("autocast:maybe"), None);
        for text in ["", "CUDA out of memory. Tried to allocate 2.00 GiB", "oom.py", "of:N"] {
            assert_eq!(meaning(text), None, "{text}");
        }
    }

    #[test]
    fn every_name_is_of_one_list_and_has_a_text() {
        let lists = [NameKind::Finding, NameKind::BlindSpot, NameKind::Warning, NameKind::Change];
        let all: Vec<Meaning> = lists.into_iter().flat_map(meanings).collect();
        for (at, of) in all.iter().enumerate() {
            assert!(of.text.ends_with(['.', '|', '`', ')']), "{}: {}", of.name, of.text);
            assert!(all[..at].iter().all(|other| other.name != of.name), "{}", of.name);
        }
    }
}
