//! Short names of dimensions, so that shapes can be read: `[N, 4h]`.

use serde::Serialize;
use vramscope_inference::Dims;
use vramscope_units::grouped;

/// Widths of more hidden widths have no name: `3h` and `4h` say what they are, `131h` does not.
const MAX_TIMES: u64 = 8;

/// A dimension with a short name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LegendEntry {
    /// `N`, `h`, `4h`.
    pub name: String,
    /// The size.
    pub size: u64,
    /// `4h = 1,536`.
    pub text: String,
}

/// The names of the dimensions of a model.
#[derive(Default)]
pub(super) struct Legend(Vec<LegendEntry>);

impl Legend {
    /// Names tokens, the hidden width, its multiples, and widths that the model's configuration
    /// names. Of other widths, sizes do not tell what they are. Readings with different hidden
    /// widths have no names.
    pub(super) fn new(dims: &Dims) -> Self {
        let [widths, others @ ..] = &dims.widths[..] else { return Self::default() };
        if others.iter().any(|other| (other.hidden, &other.all) != (widths.hidden, &widths.all)) {
            return Self::default();
        }
        let entry = |name: String, size: u64, what: &str| LegendEntry {
            text: format!("{name} = {}{what}", grouped(size)),
            name,
            size,
        };
        let tokens = dims.tokens.map(|tokens| entry("N".to_owned(), tokens, " tokens"));
        let hidden = entry("h".to_owned(), widths.hidden, " (hidden width)");
        let times = |width: u64| {
            let times = width / widths.hidden.max(1);
            let is_named =
                width.is_multiple_of(widths.hidden.max(1)) && (2..=MAX_TIMES).contains(&times);
            is_named.then(|| entry(format!("{times}h"), width, ""))
        };
        let named = |width: u64| {
            let &(_, name, what) = widths.names.iter().find(|of| of.0 == width)?;
            Some(entry(name.to_owned(), width, &format!(" ({what})")))
        };
        let others = widths.all.iter().filter_map(|&width| times(width).or_else(|| named(width)));
        Self(tokens.into_iter().chain([hidden]).chain(others).collect())
    }

    /// The dimensions by their names, or their sizes. Tokens are the first of several only. `None`
    /// without names.
    pub(super) fn symbols(&self, dims: &[u64]) -> Option<String> {
        let name = |(place, &dim): (usize, &u64)| {
            let is_tokens = |entry: &&LegendEntry| entry.name == "N";
            let mut named = self.0.iter().filter(|entry| entry.size == dim);
            let known = named.find(|entry| !is_tokens(entry) || place == 0 && dims.len() > 1);
            known.map_or_else(|| grouped(dim), |entry| entry.name.clone())
        };
        let names: Vec<String> = dims.iter().enumerate().map(name).collect();
        (!self.0.is_empty()).then(|| format!("[{}]", names.join(", ")))
    }

    pub(super) fn into_entries(self) -> Vec<LegendEntry> {
        self.0
    }
}
