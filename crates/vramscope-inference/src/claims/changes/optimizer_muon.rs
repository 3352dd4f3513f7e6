//! Muon for matrices, and `AdamW` for the rest.

use super::prelude::*;
use crate::evidence::optimizer::{MIN_8BIT_ELEMENTS, change_states, state_element};
use std::collections::BTreeMap;

pub(super) static MUON: Change = Change {
    form: "optimizer:muon",
    does: "one state for each matrix, the embedding and the head among them. `AdamW` updates \
           vectors",
    cost: Cost::Precision,
    apply: |lives, facts, _, _| muon(lives, facts),
    snippet: include_str!("snippets/optimizer_muon.py"),
    called: |_, _| "Use Muon".to_owned(),
    ..OF_OPTIMIZER
};

/// # Errors
/// There are no states.
fn muon(lives: &mut Lives, facts: &Facts) -> Result<Applied, Declined> {
    let mut seen: BTreeMap<u64, u32> = BTreeMap::new();
    change_states(lives, |life| {
        let is_vector = life.bytes / state_element(life, facts) < MIN_8BIT_ELEMENTS;
        if is_vector {
            return None;
        }
        // Of the two states of a matrix one stays.
        let count = seen.entry(life.bytes).or_default();
        *count += 1;
        if count.is_multiple_of(2) {
            life.drop();
        }
        None
    })
}
