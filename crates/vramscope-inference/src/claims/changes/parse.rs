//! Recipes by their texts, and those that other claims name.

use super::change::Change;
use super::recipe::Recipe;
use super::value::{FACTORS, PARTS, Value};
use super::{
    CHANGES, attention_flash, autocast_cache, batch, chunked_loss, del, drop_held, eval_no_grad,
    foreach_off, last_use, zero_grad,
};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

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
        batch::BATCH.with(Value::Factor(factor))
    }

    /// `foreach:off`.
    pub fn foreach_off() -> Self {
        foreach_off::FOREACH_OFF.with(Value::None)
    }

    /// `autocast_cache:off`.
    pub fn autocast_cache_off() -> Self {
        autocast_cache::AUTOCAST_CACHE_OFF.with(Value::None)
    }

    /// `chunked_loss:N`.
    pub fn chunked_loss(parts: u32) -> Self {
        chunked_loss::CHUNKED_LOSS.with(Value::Parts(parts))
    }

    /// `attention:flash`.
    pub fn attention_flash() -> Self {
        attention_flash::FLASH.with(Value::None)
    }

    /// `eval:no_grad`.
    pub fn eval_no_grad() -> Self {
        eval_no_grad::EVAL_NO_GRAD.with(Value::None)
    }

    /// `zero_grad:early`.
    pub fn zero_grad_early() -> Self {
        zero_grad::EARLY.with(Value::None)
    }

    /// `del:FILE:LINE`.
    pub fn del(site: String) -> Self {
        del::DEL.with(Value::Site(site))
    }

    /// A reference is dropped at the end of each pass.
    pub fn drop_held(name: String, births: Arc<[u32]>) -> Self {
        drop_held::DROP_HELD.with(Value::Held { name, births })
    }

    /// `last_use:FILE:LINE`.
    pub fn last_use(site: String) -> Self {
        last_use::LAST_USE.with(Value::Site(site))
    }

    /// Reads recipes with commas between them.
    ///
    /// # Errors
    /// A part is no recipe.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, RecipeError> {
        text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::parse).collect()
    }
}

impl Change {
    /// The two parts of the form: the name, and the symbol of the value.
    pub fn symbol(&self) -> (&'static str, &'static str) {
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
