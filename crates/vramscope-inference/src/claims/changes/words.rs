//! The words of proofs.

use super::value::Value;
use crate::claims::words::capitalized;
use vramscope_units::{Bytes, grouped};

/// A proof, with its frames in words.
#[derive(Clone, Debug, Default)]
pub struct ProofWords {
    /// ` at models.py:63`; empty if the line is not known.
    pub at: String,
    /// ` (checkpoint.py:1555 recompute_fn)`; empty if the function is not known.
    pub by: String,
    /// The line that does without it.
    pub other: Option<String>,
    /// How often it was seen.
    pub count: u32,
    /// Of how many.
    pub of: u32,
    /// Bytes that show it.
    pub bytes: Bytes,
    /// Blocks of the model that one checkpointed piece computes again at once; else 0.
    pub at_once: u32,
    /// `AdamW`, or `the optimizer`.
    pub optimizer: String,
}

impl ProofWords {
    /// `1 cast`, `12 casts`.
    pub(super) fn counted(&self, what: &str) -> String {
        plural(self.count, what)
    }

    /// The temporaries of an optimizer.
    pub(super) fn temporaries(&self) -> String {
        let Self { optimizer, at, by, .. } = self;
        format!("{} of {optimizer} in a step{at}{by}", self.counted("temporary"))
    }

    /// The states of an optimizer.
    pub(super) fn states(&self) -> String {
        let Self { optimizer, at, bytes, .. } = self;
        format!("{} of {optimizer}{at}: {bytes}", self.counted("state"))
    }
}

/// A smaller batch or length: `Half the batch`, `Batch at 84 %`.
pub(super) fn part_of(value: &Value, noun: &str) -> String {
    let factor = value.factor();
    match (factor * 100.0).round() {
        50.0 => format!("Half the {noun}"),
        75.0 => format!("Three quarters of the {noun}"),
        percent => capitalized(&format!("{noun} at {percent} %")),
    }
}

/// `1 pass`, `12 passes`.
pub(super) fn plural(count: u32, what: &str) -> String {
    let words = match count {
        1 => what.to_owned(),
        _ if what.ends_with('s') => format!("{what}es"),
        _ if what.ends_with('y') => format!("{}ies", &what[..what.len() - 1]),
        _ => format!("{what}s"),
    };
    format!("{} {words}", grouped(count.into()))
}
