//! An optimizer without states, under another name.

use super::prelude::*;
use crate::evidence::optimizer::{self, with_states};

pub(super) static LEAN: Change = Change {
    form: "optimizer:lean",
    does: "no states of the optimizer at all",
    error_percent: Some(1.0),
    cost: Cost::Precision,
    group: Group::Optimizer,
    apply: |lives, _, _, _| {
        with_states(lives, |life| {
            life.drop();
            None
        })
    },
    line: Line::Optimizer,
    what: optimizer::WHAT,
    snippet: "optimizer = Lean(model.parameters(), lr=lr)",
    called: |_, _, _| "a lean optimizer".to_owned(),
    ..Change::PLAIN
};
