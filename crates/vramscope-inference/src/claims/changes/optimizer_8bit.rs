//! States of the optimizer in 8 bits, as bitsandbytes keeps them.

use super::prelude::*;
use crate::evidence::optimizer::{
    self, ELEMENTS_PER_SCALE, MIN_8BIT_ELEMENTS, state_element, with_states,
};

pub(super) static EIGHT_BIT: Change = Change {
    form: "optimizer:8bit",
    does: "states of one byte with a scale for 256 elements, and no temporaries. States of fewer \
           than 4,096 elements stay",
    error_percent: Some(1.0),
    cost: Cost::Precision,
    tries: |_| vec![Value::None],
    apply: |lives, facts, _, _| {
        with_states(lives, |life| {
            let elements = life.bytes / state_element(life, facts);
            if elements < MIN_8BIT_ELEMENTS {
                return None;
            }
            // Whether shards have 16 bits, too, the file does not tell.
            life.other = if facts.has_gathered && facts.element == 2 { 2.0 } else { 1.0 };
            life.bytes = elements;
            let bytes = elements.div_ceil(ELEMENTS_PER_SCALE) * 4;
            Some(Life { begin: life.begin + 0.25, bytes, ..*life })
        })
    },
    is_on: Some(optimizer::has_8bit_states),
    on: ["80 % of the states have a byte an element, with scales", "states as large as parameters"],
    proof: |state, words| match state {
        Enabled::On => format!(
            "{} of {}{} have 1 byte an element: {}",
            words.counted("state"),
            words.optimizer,
            words.at,
            words.bytes
        ),
        _ => words.states(),
    },
    snippet: include_str!("snippets/optimizer_8bit.py"),
    called: |_, _| "Use 8-bit optimizer states".to_owned(),
    ..OF_OPTIMIZER
};
