//! The value of a recipe: `0.5` of `batch:0.5`.

use std::fmt;
use std::sync::Arc;

/// The part of a recipe that replaces the capital letters of its form.
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
    pub(crate) fn parts(&self) -> u32 {
        if let Self::Parts(parts) = self { *parts } else { 1 }
    }

    /// The line; empty without one, which no file has.
    pub(super) fn site(&self) -> &str {
        if let Self::Site(site) = self { site } else { "" }
    }

    /// Reads what a recipe has in place of `symbol`.
    pub(super) fn parse(text: &str, symbol: &str) -> Option<Self> {
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
pub(super) const FACTORS: std::ops::RangeInclusive<f64> = 0.001..=1024.0;

/// Numbers of parts and of ranks.
pub(super) const PARTS: std::ops::RangeInclusive<u32> = 2..=1024;
