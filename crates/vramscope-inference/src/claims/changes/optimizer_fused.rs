//! The optimizer needs no temporaries.

use super::prelude::*;
use crate::evidence::optimizer::{self, without_temporaries};

pub(super) static FUSED: Change = Change {
    form: "optimizer:fused",
    does: "no temporaries of the optimizer",
    error_percent: Some(1.0),
    tries: |_| vec![Value::None],
    cause: Some("optimizer temporaries: fused=True"),
    apply: |lives, _, _, _| Applied::of(without_temporaries(lives), Declined::HadIt),
    is_on: Some(optimizer::is_fused),
    on: [
        "no temporaries, and a counter of 4 bytes for each parameter on the device",
        "temporaries of `_multi_tensor_...` or `_single_tensor_...`",
    ],
    proof: |state, words| match state {
        Enabled::On => format!(
            "{} makes no temporaries, and keeps {} on the device{}{}",
            words.optimizer,
            words.counted("step counter"),
            words.at,
            words.by
        ),
        _ => words.temporaries(),
    },
    snippet: include_str!("snippets/optimizer_fused.py"),
    called: |_, _| "Set fused=True in the optimizer".to_owned(),
    ..OF_OPTIMIZER
};
