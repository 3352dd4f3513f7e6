//! An optimizer without states.

use super::prelude::*;
use crate::evidence::optimizer::{self, with_states};

pub(super) static SGD: Change = Change {
    form: "optimizer:sgd",
    does: "neither states nor temporaries of the optimizer",
    error_percent: Some(1.0),
    cost: Cost::Precision,
    apply: |lives, _, _, _| {
        with_states(lives, |life| {
            life.drop();
            None
        })
    },
    is_on: Some(optimizer::has_no_states),
    on: ["no states", "states as large as parameters"],
    proof: |state, words| match state {
        Enabled::On => {
            format!("{} keeps no states for {}", words.optimizer, words.counted("gradient"))
        }
        _ => words.states(),
    },
    snippet: include_str!("snippets/optimizer_sgd.py"),
    called: |_, _| "Use SGD without momentum".to_owned(),
    ..OF_OPTIMIZER
};
