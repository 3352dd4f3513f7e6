//! What tells call stacks apart that have one call site.

use crate::protocol::views::StackShareRow;
use crate::text;
use memstrata_snapshot::{Frame, Snapshot, StackId};

/// Says of rows which have the site of another row where they part from those: an optimizer has a call stack for each of its
/// states, and all of them are one line of the program. `stacks` are those of the rows.
pub(super) fn tell(snapshot: &Snapshot, rows: &mut [StackShareRow], stacks: &[StackId]) {
    let sites: Vec<&str> = rows.iter().map(|row| row.site.as_str()).collect();
    let key = |frame: Frame| (frame.name, frame.file, frame.line);
    let keys: Vec<Vec<_>> = stacks.iter().map(|&stack| snapshot.stack(stack).rev().map(key).collect()).collect();
    for (row, at) in partings(&sites, &keys).into_iter().enumerate() {
        if let Some(frame) = at.and_then(|at| snapshot.stack(stacks[row]).rev().nth(at)) {
            let file = snapshot.text(frame.file);
            rows[row].via = words(&snapshot.text(frame.name), &file, frame.line);
        }
    }
}

/// For each of several call stacks, outermost frame first, the first frame by which it differs from every other of the same site: `None`
/// where it is the only one, or where all of it is the beginning of another.
pub(super) fn partings<F: Ord>(sites: &[&str], stacks: &[Vec<F>]) -> Vec<Option<usize>> {
    let mut order: Vec<usize> = (0..stacks.len()).collect();
    order.sort_by_key(|&i| (sites[i], &stacks[i]));
    // What shares most with a stack stands beside it then.
    let alike: Vec<&[usize]> = order.chunk_by(|&i, &j| (sites[i], &stacks[i]) == (sites[j], &stacks[j])).collect();
    let mut partings = vec![None; stacks.len()];
    for (k, same) in alike.iter().enumerate() {
        let Some(&first) = same.first() else { continue };
        let own = &stacks[first];
        let beside = [k.checked_sub(1), Some(k + 1)].into_iter().flatten().filter_map(|k| alike.get(k)?.first());
        let shared = beside
            .filter(|&&other| sites[other] == sites[first])
            .map(|&other| own.iter().zip(&stacks[other]).take_while(|(a, b)| a == b).count())
            .max();
        for &i in *same {
            partings[i] = shared.filter(|&at| at < own.len());
        }
    }
    partings
}

/// `_init_group adam.py:183`, or the name alone where the file is unknown, as it is of most frames in C++.
pub(super) fn words(name: &str, file: &str, line: u32) -> String {
    text::place_if_known(file, line).map_or_else(|| name.to_owned(), |place| format!("{name} {place}"))
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
                    let is_it = |f: Frame| words(&snapshot.text(f.name), &snapshot.text(f.file), f.line) == row.via;
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
}
