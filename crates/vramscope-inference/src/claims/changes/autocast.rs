//! Forward under autocast.

use super::prelude::*;
use crate::evidence::autocast;

pub(super) static BF16: Change = Change {
    form: "autocast:bf16",
    does: "declined: sizes do not tell what it does",
    error_percent: Some(9.0),
    cost: Cost::Precision,
    is_on: Some(autocast::is_on),
    on: [
        "weights are cast to 16 bits: 60 % of the sizes of large ones, and 15 % of all bytes or a frame \
         of autocast",
        "no weight is, and parameters have 4 bytes an element",
    ],
    proof: |state, words| match state {
        Enabled::On => format!(
            "{} of weights to 16 bits in a pass{}: {}{}",
            words.counted("cast"),
            words.at,
            words.bytes,
            words.by
        ),
        _ => format!("no weight is cast to 16 bits in {}", words.counted("forward pass")),
    },
    compare: |_, a, b| leads(a, b),
    line: Line::Training,
    what: "the forward pass of a training step",
    ..Change::PLAIN
};

pub(super) static OFF: Change = Change {
    form: "autocast:off",
    does: "declined: sizes do not tell what it does",
    error_percent: Some(9.0),
    compare: |_, a, b| leads(b, a),
    line: Line::Training,
    what: "the forward pass of a training step",
    ..Change::PLAIN
};

/// Whether only the second of two runs casts weights.
fn leads(plain: &Features, cast: &Features) -> Compared {
    let is_new = plain.is(&BF16, Enabled::Off) && cast.is(&BF16, Enabled::On);
    if is_new { Compared::Came(Value::None) } else { Compared::Same }
}
