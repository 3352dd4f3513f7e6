//! What tells call stacks apart that have one call site.

use vramscope_analysis::is_distinctive;
use vramscope_protocol::views::StackShareRow;
use vramscope_report::disambiguate::first_differing_frames;
use vramscope_report::text;
use vramscope_snapshot::{Frame, Snapshot, StackId};

/// Says of rows which have the site of another row where they part from those: an optimizer has a
/// call stack for each of its states, and all of them are one line of the program. `stacks` are
/// those of the rows.
pub(super) fn tell(snapshot: &Snapshot, rows: &mut [StackShareRow], stacks: &[StackId]) {
    let sites: Vec<&str> = rows.iter().map(|row| row.site.as_str()).collect();
    let key = |frame: Frame| (frame.name, frame.file, frame.line);
    let keys: Vec<Vec<_>> =
        stacks.iter().map(|&stack| snapshot.stack(stack).rev().map(key).collect()).collect();
    let is_distinctive = |&(name, file, _): &(_, _, u32)| {
        is_distinctive(snapshot.strings.bytes(name), &snapshot.text(file))
    };
    for (row, at) in first_differing_frames(&sites, &keys, is_distinctive).into_iter().enumerate() {
        if let Some(&(name, file, line)) = at.and_then(|at| keys[row].get(at)) {
            rows[row].via = text::frame_label(&snapshot.text(name), &snapshot.text(file), line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queries::state_at::{live, stack_rows};
    use crate::queries::tests::load;
    use vramscope_analysis::slicing::{Budget, run_to_completion};
    use vramscope_report::Target;

    #[test]
    fn rows_of_one_site_say_where_they_part_and_others_say_nothing() {
        let file = load("recorded/t26/gpt_small.pickle.gz");
        let at = Target { path: "", entry: &file.entries[0], index: 0 };
        let (trace, snapshot) = (at.trace(), at.snapshot());
        let mut told = 0;
        for slot in (0..trace.slots()).step_by(97) {
            let budget = &mut Budget::unlimited();
            let blocks = run_to_completion(live(trace, slot, budget));
            let rows = run_to_completion(stack_rows(at, &blocks, 12, budget));
            for row in &rows {
                let same: Vec<_> = rows.iter().filter(|other| other.site == row.site).collect();
                assert!(same.len() > 1 || row.via.is_empty(), "{row:?}");
                // A stack that all others go on from has nothing of its own.
                assert!(same.iter().filter(|other| other.via.is_empty()).count() <= 1, "{same:?}");
                if !row.via.is_empty() {
                    let stack = trace.blocks[row.block as usize].stack;
                    let is_it = |f: Frame| {
                        text::frame_label(&snapshot.text(f.name), &snapshot.text(f.file), f.line)
                            == row.via
                    };
                    assert!(snapshot.stack(stack).any(is_it), "{row:?}");
                    told += 1;
                }
            }
            let mut all: Vec<_> = rows.iter().map(|row| (&row.site, &row.via)).collect();
            all.sort();
            assert!(all.windows(2).all(|pair| pair[0] != pair[1]), "{rows:?}");
        }
        assert!(told > 100, "{told}");
    }

    #[test]
    fn rows_with_stacks_of_c_say_what_is_computed() {
        let file = load("recorded/t29/gpt_small_all.pickle.gz");
        let at = Target { path: "", entry: &file.entries[0], index: 0 };
        let mut told = Vec::new();
        for slot in (0..at.trace().slots()).step_by(29) {
            let budget = &mut Budget::unlimited();
            let blocks = run_to_completion(live(at.trace(), slot, budget));
            told.extend(
                run_to_completion(stack_rows(at, &blocks, 12, budget))
                    .into_iter()
                    .map(|row| row.via),
            );
        }
        told.retain(|via| !via.is_empty());
        let says = |what: &str| told.iter().filter(|via| via.contains(what)).count();
        assert!(says("at::_ops::") > 0, "{told:?}");
        assert!(says(".py:") > 0, "{told:?}");
        assert_eq!(says(".c:"), 0, "{told:?}");
    }
}
