//! What tells call stacks apart that have one call site.

use crate::protocol::views::StackShareRow;
use crate::text;
use memstrata_analysis::is_telling;
use memstrata_snapshot::{Frame, Snapshot, StackId};
use rustc_hash::FxHashMap;
use std::hash::Hash;

/// Says of rows which have the site of another row where they part from those: an optimizer has a call stack for each of its
/// states, and all of them are one line of the program. `stacks` are those of the rows.
pub(super) fn tell(snapshot: &Snapshot, rows: &mut [StackShareRow], stacks: &[StackId]) {
    let sites: Vec<&str> = rows.iter().map(|row| row.site.as_str()).collect();
    let key = |frame: Frame| (frame.name, frame.file, frame.line);
    let keys: Vec<Vec<_>> = stacks.iter().map(|&stack| snapshot.stack(stack).rev().map(key).collect()).collect();
    let is_telling = |&(name, file, _): &(_, _, u32)| is_telling(snapshot.strings.bytes(name), &snapshot.text(file));
    for (row, at) in partings(&sites, &keys, is_telling).into_iter().enumerate() {
        if let Some(&(name, file, line)) = at.and_then(|at| keys[row].get(at)) {
            rows[row].via = words(&snapshot.text(name), &snapshot.text(file), line);
        }
    }
}

/// For each of several call stacks, outermost frame first, a frame by which it differs from every other of the same site: `None`
/// where it is the only one, or where all of it is the beginning of another. It is the first one that says something and that no other
/// has, since with stacks of C++ stacks part somewhere in Python's interpreter; or else the one at which they part.
pub(super) fn partings<F: Ord + Hash>(
    sites: &[&str],
    stacks: &[Vec<F>],
    is_telling: impl Fn(&F) -> bool,
) -> Vec<Option<usize>> {
    let mut order: Vec<usize> = (0..stacks.len()).collect();
    order.sort_by_key(|&i| (sites[i], &stacks[i]));
    let mut partings = vec![None; stacks.len()];
    for site in order.chunk_by(|&i, &j| sites[i] == sites[j]) {
        // What shares most with a stack stands beside it then.
        let alike: Vec<&[usize]> = site.chunk_by(|&i, &j| stacks[i] == stacks[j]).collect();
        if alike.len() < 2 {
            continue;
        }
        // How many of these stacks have a frame: stacks that are equal count once, as does what calls itself.
        let mut having: FxHashMap<&F, (usize, usize)> = FxHashMap::default();
        for (k, same) in alike.iter().enumerate() {
            for frame in &stacks[same[0]] {
                let (count, last) = having.entry(frame).or_insert((0, usize::MAX));
                *count += usize::from(*last != k);
                *last = k;
            }
        }
        for (k, same) in alike.iter().enumerate() {
            let own = &stacks[same[0]];
            let beside = [k.checked_sub(1), Some(k + 1)].into_iter().flatten().filter_map(|k| alike.get(k)?.first());
            let shared = beside.map(|&other| own.iter().zip(&stacks[other]).take_while(|(a, b)| a == b).count()).max();
            let parts = shared.filter(|&at| at < own.len());
            let says =
                |at: usize| (at..own.len()).find(|&i| having[&own[i]].0 == 1 && is_telling(&own[i])).unwrap_or(at);
            for &i in *same {
                partings[i] = parts.map(says);
            }
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
    fn a_stack_is_told_by_what_says_something_and_only_it_has() {
        let stack = |frames: &str| frames.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let partings = |stacks: &[&str]| {
            let stacks: Vec<_> = stacks.iter().map(|frames| stack(frames)).collect();
            let found = super::partings(&vec!["model.py"; stacks.len()], &stacks, |frame| frame.contains(".py"));
            let frame = |(at, stack): (Option<usize>, &Vec<String>)| at.map_or("", |at| &stack[at]).to_owned();
            found.into_iter().zip(&stacks).map(frame).collect::<Vec<_>>()
        };
        // Where they part is the interpreter's, and the next frame is one that both have.
        let apart = ["model.py ceval.c:1 module.py linear.py mm", "model.py ceval.c:2 module.py silu.py silu"];
        assert_eq!(partings(&apart), ["linear.py", "silu.py"]);
        // Nothing else says more than where they part; equal ones part from the others alike.
        let silent = ["model.py ceval.c:1 a", "model.py ceval.c:2 b", "model.py ceval.c:1 a"];
        assert_eq!(partings(&silent), ["ceval.c:1", "ceval.c:2", "ceval.c:1"]);
        // What calls itself has its frames twice, and still alone; what all others go on from has nothing of its own.
        assert_eq!(partings(&["model.py", "model.py c walk.py c walk.py"]), ["", "walk.py"]);
        assert_eq!(partings(&["model.py a", "model.py a"]), ["", ""]);
    }

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

    #[test]
    fn rows_with_stacks_of_c_say_what_is_computed() {
        let file = load("recorded/t29/gpt_small_all.pickle.gz");
        let at = Target { path: "", part: &file.parts[0], index: 0 };
        let mut told = Vec::new();
        for slot in (0..at.trace().slots()).step_by(29) {
            let pace = &mut Pace::endless();
            let blocks = at_once(live(at.trace(), slot, pace));
            told.extend(at_once(stack_rows(at, &blocks, 12, pace)).into_iter().map(|row| row.via));
        }
        told.retain(|via| !via.is_empty());
        let says = |what: &str| told.iter().filter(|via| via.contains(what)).count();
        assert!(says("at::_ops::") > 0, "{told:?}");
        assert!(says(".py:") > 0, "{told:?}");
        assert_eq!(says(".c:"), 0, "{told:?}");
    }
}
