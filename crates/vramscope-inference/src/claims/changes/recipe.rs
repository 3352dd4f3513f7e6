//! A change with its value, as users write it: `batch:0.5`.

use super::{CHANGES, Change, Group};
use crate::evidence::Evidence;
use crate::recipes::facts::Facts;
use crate::recipes::lives::Lives;
use crate::recipes::{Applied, Declined};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// A change of the program, with its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Recipe {
    /// The change.
    pub change: &'static Change,
    /// Its value.
    pub value: Value,
}

/// What a recipe has in place of the capital letters of its form.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing: `eval:no_grad`.
    None,
    /// How many times as much: `batch:0.5`.
    Factor(f64),
    /// In how many parts: `accumulate:4`.
    Parts(u32),
    /// A line of the program: `del:train.py:12`.
    Site(String),
    /// A reference, and the events that made the blocks which dropping it frees, ascending.
    Held {
        /// The reference in words.
        name: String,
        /// The events.
        births: Arc<[u32]>,
    },
}

impl Value {
    /// The factor; 1 without one, which changes nothing.
    pub(super) fn factor(&self) -> f64 {
        if let Self::Factor(factor) = self { *factor } else { 1.0 }
    }

    /// The number of parts; 1 without one, which changes nothing.
    pub(super) fn parts(&self) -> u32 {
        if let Self::Parts(parts) = self { *parts } else { 1 }
    }

    /// The line; empty without one, which no file has.
    pub(super) fn site(&self) -> &str {
        if let Self::Site(site) = self { site } else { "" }
    }

    /// Reads what a recipe has in place of `symbol`.
    fn parse(text: &str, symbol: &str) -> Option<Self> {
        match symbol {
            "K" => {
                let factor = text.parse().ok()?;
                FACTORS.contains(&factor).then_some(Self::Factor(factor))
            }
            "N" => {
                let parts = text.parse().ok()?;
                PARTS.contains(&parts).then_some(Self::Parts(parts))
            }
            "FILE:LINE" => {
                let (file, line) = text.rsplit_once(':')?;
                line.parse::<u32>().ok()?;
                (!file.is_empty()).then(|| Self::Site(text.to_owned()))
            }
            _ => (text == symbol).then_some(Self::None),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => Ok(()),
            Self::Factor(factor) => write!(f, "{factor}"),
            Self::Parts(parts) => write!(f, "{parts}"),
            Self::Site(name) | Self::Held { name, .. } => f.write_str(name),
        }
    }
}

/// Factors of a batch or of a length.
const FACTORS: std::ops::RangeInclusive<f64> = 0.001..=1024.0;

/// Numbers of parts and of ranks.
const PARTS: std::ops::RangeInclusive<u32> = 2..=1024;

/// A text that is no recipe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecipeError {
    /// The text.
    pub text: String,
    /// The forms that the recipe may have; the names of all recipes if there is no such one.
    pub expected: String,
}

impl fmt::Display for RecipeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is no change of the program: expected {}", self.text, self.expected)
    }
}

impl Recipe {
    /// `batch:K`.
    pub fn batch(factor: f64) -> Self {
        super::batch::BATCH.with(Value::Factor(factor))
    }

    /// `foreach:off`.
    pub fn foreach_off() -> Self {
        super::foreach_off::FOREACH_OFF.with(Value::None)
    }

    /// `autocast_cache:off`.
    pub fn autocast_cache_off() -> Self {
        super::autocast_cache::AUTOCAST_CACHE_OFF.with(Value::None)
    }

    /// `chunked_loss:N`.
    pub fn chunked_loss(parts: u32) -> Self {
        super::chunked_loss::CHUNKED_LOSS.with(Value::Parts(parts))
    }

    /// `attention:flash`.
    pub fn attention_flash() -> Self {
        super::attention_flash::FLASH.with(Value::None)
    }

    /// `eval:no_grad`.
    pub fn eval_no_grad() -> Self {
        super::eval_no_grad::EVAL_NO_GRAD.with(Value::None)
    }

    /// `del:FILE:LINE`.
    pub fn del(site: String) -> Self {
        super::del::DEL.with(Value::Site(site))
    }

    /// What a reference holds is dropped before the failed request.
    pub fn drop_held(name: String, births: Arc<[u32]>) -> Self {
        super::drop_held::DROP_HELD.with(Value::Held { name, births })
    }

    /// `last_use:FILE:LINE`.
    pub fn last_use(site: String) -> Self {
        super::last_use::LAST_USE.with(Value::Site(site))
    }

    /// Reads recipes with commas between them.
    ///
    /// # Errors
    /// A part is no recipe.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, RecipeError> {
        text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::parse).collect()
    }

    /// The largest measured error of several; `None` without any, and if one was not measured.
    pub fn error_percent(recipes: &[Self]) -> Option<f64> {
        let errors: Option<Vec<f64>> = recipes.iter().map(|of| of.change.error_percent).collect();
        errors?.into_iter().reduce(f64::max)
    }

    /// Whether another recipe is a form of the same change: two of them do not combine.
    pub fn is_same_kind(&self, other: &Self) -> bool {
        let groups = (self.change.group, other.change.group);
        match groups {
            (Group::Line, Group::Line) => self.value == other.value,
            _ if self.change.name() == other.change.name() => true,
            (one, other) => one == other && one != Group::Name,
        }
    }

    /// Edits the list of blocks.
    ///
    /// # Errors
    /// A fact is missing, or nothing would change.
    pub(crate) fn apply(
        &self,
        lives: &mut Lives,
        facts: &Facts,
        cx: Evidence<'_>,
    ) -> Result<Applied, Declined> {
        (self.change.apply)(lives, facts, &self.value, cx)
    }

    /// What to write at the line; `None` for a change without a prediction.
    pub fn snippet(&self, is_of_transformers: bool) -> Option<String> {
        let of_package = self.change.snippet_of_transformers.filter(|_| is_of_transformers);
        let text = of_package.unwrap_or(self.change.snippet).trim_end();
        let value = self.value.to_string();
        let text = match self.value {
            Value::Factor(_) => text.replace("FACTOR", &value),
            Value::Parts(_) => text.replace("PARTS", &value),
            Value::None | Value::Site(_) | Value::Held { .. } => text.to_owned(),
        };
        (!text.is_empty()).then_some(text)
    }

    /// What it is called in a list. `changed` counts the blocks or passes, and `at` is the line.
    pub fn called(&self, changed: u32, at: &str) -> String {
        match (self.change.called)(&self.value, changed, at) {
            text if text.is_empty() => self.to_string(),
            text => text,
        }
    }
}

impl Change {
    /// The recipe of this change with a value.
    pub(super) fn with(&'static self, value: Value) -> Recipe {
        Recipe { change: self, value }
    }

    /// What stands for the value in the form, and what of the form is before it.
    fn symbol(&self) -> (&'static str, &'static str) {
        self.form.split_once(':').unwrap_or((self.form, ""))
    }

    /// The form, with the values that it takes.
    fn expected(&self) -> String {
        match self.symbol().1 {
            "K" => format!("{} with K from {} to {}", self.form, FACTORS.start(), FACTORS.end()),
            "N" => format!("{} with N from {} to {}", self.form, PARTS.start(), PARTS.end()),
            _ => self.form.to_owned(),
        }
    }
}

impl FromStr for Recipe {
    type Err = RecipeError;

    fn from_str(text: &str) -> Result<Self, RecipeError> {
        let (name, value) = text.split_once(':').unwrap_or((text, ""));
        let forms = || CHANGES.iter().filter(|change| change.name() == name);
        let mut found = forms().filter_map(|change| {
            let value = Value::parse(value, change.symbol().1)?;
            Some(change.with(value))
        });
        found.next().ok_or_else(|| {
            let forms: Vec<String> = forms().map(|change| change.expected()).collect();
            let expected = match &forms[..] {
                [] => {
                    let mut names: Vec<&str> = CHANGES.iter().map(|change| change.name()).collect();
                    names.sort_unstable();
                    names.dedup();
                    format!("one of {}", names.join(", "))
                }
                [one] => one.clone(),
                [all @ .., last] => format!("{} or {last}", all.join(", ")),
            };
            RecipeError { text: text.to_owned(), expected }
        })
    }
}

impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Value::None => f.write_str(self.change.form),
            value => write!(f, "{}:{value}", self.change.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recipe_is_what_its_text_says() {
        for change in CHANGES {
            let (name, symbol) = change.symbol();
            let text = match symbol {
                "K" => format!("{name}:0.5"),
                "N" => format!("{name}:4"),
                "FILE:LINE" => format!("{name}:src/train.py:133"),
                _ => change.form.to_owned(),
            };
            let recipe: Recipe = text.parse().expect("a right recipe");
            assert_eq!((recipe.change.form, recipe.to_string()), (change.form, text));
        }
    }

    #[test]
    fn a_change_has_all_of_its_parts() {
        for change in CHANGES {
            assert!(!change.does.is_empty() && !change.what.is_empty(), "{change:?}");
            assert_eq!(change.is_on.is_some(), !change.on[0].is_empty(), "{change:?}");
        }
    }

    #[test]
    fn wrong_values_name_the_right_ones() {
        for text in ["batch:0", "batch:x", "accumulate:1", "optimizer:lion", "del:train.py"] {
            let error = text.parse::<Recipe>().expect_err(text);
            assert!(!error.expected.starts_with("one of "), "{text}");
        }
        let error = "bigger".parse::<Recipe>().expect_err("no recipe");
        assert!(error.expected.starts_with("one of accumulate, attention, "), "{error}");
        let error = "zero_grad:now".parse::<Recipe>().expect_err("no recipe");
        assert_eq!(error.expected, "zero_grad:early or zero_grad:late");
    }
}
