//! Distinguishes call stacks that share a call site.

use crate::messages::views::StackShareRow;
use vramscope_report::disambiguate::first_differing_frames;
use vramscope_report::text;
use vramscope_snapshot::{Frame, Snapshot, StackId};
use vramscope_trace::is_distinctive;

/// Sets `via` of rows that share their call site with another row: the frame that distinguishes
/// them. For example, an optimizer has a call stack for each of its states, all with one call site.
///
/// `stacks` are the stacks of the rows, in the same order.
pub(super) fn add_vias(snapshot: &Snapshot, rows: &mut [StackShareRow], stacks: &[StackId]) {
    let sites: Vec<&str> = rows.iter().map(|row| row.site.as_str()).collect();
    let key = |frame: Frame| (frame.name, frame.file, frame.line);
    let keys: Vec<Vec<_>> =
        stacks.iter().map(|&stack| snapshot.stack(stack).rev().map(key).collect()).collect();
    let is_distinctive =
        |&(name, file, _): &(_, _, u32)| is_distinctive(&snapshot.text(name), &snapshot.text(file));
    for (row, at) in first_differing_frames(&sites, &keys, is_distinctive).into_iter().enumerate() {
        if let Some(&(name, file, line)) = at.and_then(|at| keys[row].get(at)) {
            let via = text::frame_label(&snapshot.text(name), &snapshot.text(file), line);
            rows[row].terms.push(format!("via:{via}"));
            rows[row].via = via;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queries::state_at::{live_blocks, stack_rows};
    use crate::queries::tests::load;
    use vramscope_report::Target;
    use vramscope_trace::slicing::now;

    #[test]
    fn add_vias_distinguishes_rows_that_share_a_site() {
        let file = load("recorded/t26/gpt_small.pickle.gz");
        let at = Target { path: "", entry: &file.entries[0], index: 0 };
        let (trace, snapshot) = (at.trace(), at.snapshot());
        let mut vias = 0;
        for slot in (0..trace.slots()).step_by(97) {
            let blocks = now(async |budget| live_blocks(trace, slot, budget).await);
            let rows = now(async |budget| stack_rows(at, &blocks, 12, budget).await);
            for row in &rows {
                let same: Vec<_> = rows.iter().filter(|other| other.site == row.site).collect();
                assert!(same.len() > 1 || row.via.is_empty(), "{row:?}");
                // A stack that is a prefix of all others has no distinguishing frame.
                assert!(same.iter().filter(|other| other.via.is_empty()).count() <= 1, "{same:?}");
                if !row.via.is_empty() {
                    let stack = trace.blocks[row.block as usize].stack;
                    let is_via = |f: Frame| {
                        text::frame_label(&snapshot.text(f.name), &snapshot.text(f.file), f.line)
                            == row.via
                    };
                    assert!(snapshot.stack(stack).any(is_via), "{row:?}");
                    vias += 1;
                }
            }
            let mut all: Vec<_> = rows.iter().map(|row| (&row.site, &row.via)).collect();
            all.sort();
            assert!(all.windows(2).all(|pair| pair[0] != pair[1]), "{rows:?}");
        }
        assert!(vias > 100, "{vias}");
    }

    #[test]
    fn add_vias_prefers_operators_and_python_to_interpreter_frames() {
        let file = load("recorded/t29/gpt_small_all.pickle.gz");
        let at = Target { path: "", entry: &file.entries[0], index: 0 };
        let mut vias = Vec::new();
        for slot in (0..at.trace().slots()).step_by(29) {
            let blocks = now(async |budget| live_blocks(at.trace(), slot, budget).await);
            vias.extend(
                now(async |budget| stack_rows(at, &blocks, 12, budget).await)
                    .into_iter()
                    .map(|row| row.via),
            );
        }
        vias.retain(|via| !via.is_empty());
        let count = |part: &str| vias.iter().filter(|via| via.contains(part)).count();
        assert!(count("aten::") > 0, "{vias:?}");
        assert!(count(".py:") > 0, "{vias:?}");
        assert_eq!(count(".c:"), 0, "{vias:?}");
    }
}
