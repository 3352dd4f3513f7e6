//! The words of findings about the program's use of memory.

use super::{Words, interval, main_site, range, subject};
use crate::loaded_file::SnapshotEntry;
use vramscope_analysis::{Finding, Growth};
use vramscope_units::grouped;

pub(super) fn growth(entry: &SnapshotEntry, finding: &Finding, growth: &Growth) -> Words {
    let subject = subject(&main_site(entry, finding));
    match growth {
        Growth::Kept { per_step, every, steps, at_end } => Words {
            title: format!("{subject} grows by {} {}", range(*per_step), interval(*every)),
            text: format!(
                "{subject} grows by {} {} ({} times). None of it is freed: {at_end} at the end.",
                range(*per_step),
                interval(*every),
                grouped(*steps as u64),
            ),
            action: "Check what keeps references to these tensors, such as a list of losses or \
                     outputs."
                .to_owned(),
        },
        Growth::Replaced { per_step, every, steps, in_all } => Words {
            title: format!("{subject} grows by {} {}", range(*per_step), interval(*every)),
            text: format!(
                "{subject} grows by {} {} ({} times), {in_all} in total. Its blocks are replaced \
                 by larger ones.",
                range(*per_step),
                interval(*every),
                grouped(*steps as u64),
            ),
            action: "Check for a tensor that is extended in every step.".to_owned(),
        },
    }
}
