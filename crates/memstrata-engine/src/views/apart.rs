//! What tells call stacks apart that have one call site.

use crate::protocol::views::StackShareRow;
use crate::text;
use memstrata_snapshot::{Frame, Snapshot, StackId};

/// Says of rows which have the site of another row where they part from those: an optimizer has a call stack for each of its
/// states, and all of them are one line of the program. `stacks` are those of the rows.
pub(super) fn tell(snapshot: &Snapshot, rows: &mut [StackShareRow], stacks: &[StackId]) {
    // Outermost first.
    let all: Vec<Vec<Frame>> = stacks.iter().map(|&stack| snapshot.stack(stack).rev().collect()).collect();
    for i in 0..rows.len() {
        let own = &all[i];
        let others = (0..rows.len()).filter(|&j| stacks[j] != stacks[i] && rows[j].site == rows[i].site);
        let shared = others.map(|j| own.iter().zip(&all[j]).take_while(|(a, b)| a == b).count()).max();
        if let Some(&frame) = shared.and_then(|shared| own.get(shared)) {
            rows[i].via = words(snapshot, frame);
        }
    }
}

/// `_init_group adam.py:183`, or the name alone where the file is unknown, as it is of most frames in C++.
fn words(snapshot: &Snapshot, frame: Frame) -> String {
    let name = snapshot.text(frame.name);
    text::place_if_known(snapshot, frame).map_or_else(|| name.clone().into_owned(), |place| format!("{name} {place}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Target;
    use crate::views::moment::{live, stack_rows};
    use crate::views::tests::load;
    use memstrata_analysis::pace::{Pace, at_once};

    #[test]
    fn rows_of_one_site_say_where_they_part_and_others_say_nothing() {
        let file = load("recorded/t26/gpt_small.pickle.gz");
        let at = Target { path: "", part: &file.parts[0], index: 0 };
        let (trace, snapshot) = (at.trace(), at.snapshot());
        let mut told = 0;
        for slot in (0..trace.slots()).step_by(97) {
            let pace = &mut Pace::endless();
            let blocks = at_once(live(trace, slot, pace));
            let rows = at_once(stack_rows(at, &blocks, 12, pace));
            for row in &rows {
                let same: Vec<_> = rows.iter().filter(|other| other.site == row.site).collect();
                assert!(same.len() > 1 || row.via.is_empty(), "{row:?}");
                // A stack that all others go on from has nothing of its own.
                assert!(same.iter().filter(|other| other.via.is_empty()).count() <= 1, "{same:?}");
                if !row.via.is_empty() {
                    let stack = trace.blocks[row.block as usize].stack;
                    assert!(snapshot.stack(stack).any(|frame| words(snapshot, frame) == row.via), "{row:?}");
                    told += 1;
                }
            }
            let mut all: Vec<_> = rows.iter().map(|row| (&row.site, &row.via)).collect();
            all.sort();
            assert!(all.windows(2).all(|pair| pair[0] != pair[1]), "{rows:?}");
        }
        assert!(told > 100, "{told}");
    }
}
