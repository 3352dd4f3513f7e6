//! The optimizer updates one parameter after the other.

use super::prelude::*;
use crate::evidence::optimizer::{self, temporaries};

pub(super) static FOREACH_OFF: Change = Change {
    form: "foreach:off",
    does: "at most two temporaries of the optimizer at once",
    error_percent: Some(1.0),
    tries: |_| vec![Value::None],
    is_usual: true,
    cause: Some("optimizer temporaries: fused=True"),
    apply: |lives, _, _, _| foreach_off(lives),
    is_on: Some(optimizer::is_foreach_off),
    on: ["temporaries of `_single_tensor_...` only", "temporaries of `_multi_tensor_...`"],
    proof: |state, words| match state {
        Enabled::On => format!(
            "{} updates one parameter after the other{}{}",
            words.optimizer, words.at, words.by
        ),
        _ => words.temporaries(),
    },
    snippet: include_str!("snippets/foreach_off.py"),
    called: |_, _| "Set foreach=False in the optimizer".to_owned(),
    ..OF_OPTIMIZER
};

/// At most two temporaries of a parameter's size at once.
fn foreach_off(lives: &mut Lives) -> Result<Applied, Declined> {
    let mut changed = 0;
    for temporaries in temporaries(lives).into_values() {
        for (at, &index) in temporaries.iter().enumerate() {
            if let Some(&next) = temporaries.get(at + 2) {
                let end = lives.all[next].begin - 0.25;
                changed += u32::from(end < lives.all[index].end);
                lives.all[index].end = lives.all[index].end.min(end);
            }
        }
    }
    Applied::of(changed, Declined::HadIt)
}
