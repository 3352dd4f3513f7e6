//! Adafactor without a first moment.

use super::prelude::*;
use crate::evidence::optimizer::{change_states, state_element};

pub(super) static ADAFACTOR: Change = Change {
    form: "optimizer:adafactor",
    does: "a state for the rows of each matrix and one for its columns",
    cost: Cost::Precision,
    apply: |lives, facts, _, _| adafactor(lives, facts),
    snippet: include_str!("snippets/optimizer_adafactor.py"),
    called: |_, _| "Use Adafactor".to_owned(),
    ..OF_OPTIMIZER
};

/// # Errors
/// There are no states, or no widths are known.
fn adafactor(lives: &mut Lives, facts: &Facts) -> Result<Applied, Declined> {
    if facts.widths.is_empty() {
        return Err(Declined::NoTokens);
    }
    let mut rows = true;
    change_states(lives, |life| {
        let element = state_element(life, facts);
        let elements = life.bytes / element;
        // Rows and columns of the matrix: a width divides its elements.
        let width = facts
            .widths
            .iter()
            .rev()
            .find(|&&width| width > 1 && elements > width && elements.is_multiple_of(width));
        if let Some(&width) = width {
            let of = if rows { width } else { elements / width };
            life.bytes = of * element;
        }
        rows = !rows;
        None
    })
}
