//! Checkpointing of every other block of the model.

use super::checkpoint::{self, ALL, checkpoint, is_half};
use super::prelude::*;
use crate::recipes::facts::repeated_sites;

pub(super) static HALF: Change = Change {
    form: "checkpoint:half",
    does: "`checkpoint:all` of every other block",
    tries: |_| vec![Value::None],
    apply: |lives, facts, _, _| checkpoint(lives, facts, &repeated_sites(lives, facts)?, 2),
    compare: |_, a, b| match a.state(&ALL) {
        Some(Enabled::Off) if is_half(b) => Compared::Came(Value::None),
        _ => Compared::Same,
    },
    snippet: include_str!("snippets/checkpoint_half.py"),
    called: |value, applied| match applied.found {
        0 => "Checkpoint every other block".to_owned(),
        _ => (checkpoint::PLAIN.called)(value, applied),
    },
    ..checkpoint::PLAIN
};
