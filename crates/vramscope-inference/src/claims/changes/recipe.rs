//! A change with its value, as users write it: `batch:0.5`.

use super::change::{Change, Group};
use super::value::Value;
use crate::evidence::Evidence;
use crate::recipes::facts::Facts;
use crate::recipes::lives::Lives;
use crate::recipes::{Applied, Declined};
use std::fmt;

/// A change of the program, with its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Recipe {
    /// The change.
    pub change: &'static Change,
    /// Its value.
    pub value: Value,
}

impl Recipe {
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

    /// Whether all that grows with the inputs gets another size.
    pub(crate) fn scales_passes(&self) -> bool {
        self.change.scales_passes && (self.value.factor() - 1.0).abs() > 0.05
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

    /// The code to write at the line; `None` for a change without a prediction.
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

    /// The change as an instruction: `Checkpoint all 12 blocks`.
    pub fn called(&self, applied: &Applied) -> String {
        match (self.change.called)(&self.value, applied) {
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

    /// The blocks of the model, maps or passes with logits that it found, in words.
    pub fn found_text(&self, count: u32, site: &str) -> Option<String> {
        self.found.map(|of| of(count, site)).filter(|text| !text.is_empty())
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
