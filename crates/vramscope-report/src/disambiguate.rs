//! What tells call stacks apart that have one call site.

use crate::FrameRecord;
use rustc_hash::FxHashMap;
use std::hash::Hash;
use vramscope_analysis::is_distinctive;

/// For each of several call stacks, given as its site and its frames, innermost first, the frame by
/// which a reader tells it from the others of that site: an optimizer has a call stack for each of
/// its states, and all of them are one line of the program. `None` where it is the only one, or
/// where another goes on from all of it.
pub fn apart<'a, 'b>(stacks: &[(&str, &'a [FrameRecord<'b>])]) -> Vec<Option<&'a FrameRecord<'b>>> {
    let sites: Vec<&str> = stacks.iter().map(|&(site, _)| site).collect();
    let keys: Vec<Vec<&FrameRecord<'_>>> =
        stacks.iter().map(|(_, frames)| frames.iter().rev().collect()).collect();
    let partings =
        partings(&sites, &keys, |frame| is_distinctive(frame.name.as_bytes(), &frame.file));
    partings.into_iter().zip(keys).map(|(at, frames)| at.map(|at| frames[at])).collect()
}

/// For each of several call stacks, outermost frame first, a frame by which it differs from every
/// other of the same site: `None` where it is the only one, or where all of it is the beginning of
/// another. It is the first one that says something and that no other has, since with stacks of C++
/// stacks part somewhere in Python's interpreter; or else the one at which they part.
pub fn partings<F: Ord + Hash>(
    sites: &[&str],
    stacks: &[Vec<F>],
    is_distinctive: impl Fn(&F) -> bool,
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
        // How many of these stacks have a frame: stacks that are equal count once, as does what
        // calls itself.
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
            let beside = [k.checked_sub(1), Some(k + 1)]
                .into_iter()
                .flatten()
                .filter_map(|k| alike.get(k)?.first());
            let shared = beside
                .map(|&other| own.iter().zip(&stacks[other]).take_while(|(a, b)| a == b).count())
                .max();
            let parts = shared.filter(|&at| at < own.len());
            let says = |at: usize| {
                (at..own.len())
                    .find(|&i| having[&own[i]].0 == 1 && is_distinctive(&own[i]))
                    .unwrap_or(at)
            };
            for &i in *same {
                partings[i] = parts.map(says);
            }
        }
    }
    partings
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_stack_is_told_by_what_says_something_and_only_it_has() {
        let stack = |frames: &str| frames.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let partings = |stacks: &[&str]| {
            let stacks: Vec<_> = stacks.iter().map(|frames| stack(frames)).collect();
            let found = super::partings(&vec!["model.py"; stacks.len()], &stacks, |frame| {
                frame.contains(".py")
            });
            let frame = |(at, stack): (Option<usize>, &Vec<String>)| {
                at.map_or("", |at| &stack[at]).to_owned()
            };
            found.into_iter().zip(&stacks).map(frame).collect::<Vec<_>>()
        };
        // Where they part is the interpreter's, and the next frame is one that both have.
        let apart = [
            "model.py ceval.c:1 module.py linear.py mm",
            "model.py ceval.c:2 module.py silu.py silu",
        ];
        assert_eq!(partings(&apart), ["linear.py", "silu.py"]);
        // Nothing else says more than where they part; equal ones part from the others alike.
        let silent = ["model.py ceval.c:1 a", "model.py ceval.c:2 b", "model.py ceval.c:1 a"];
        assert_eq!(partings(&silent), ["ceval.c:1", "ceval.c:2", "ceval.c:1"]);
        // What calls itself has its frames twice, and still alone; what all others go on from has
        // nothing of its own.
        assert_eq!(partings(&["model.py", "model.py c walk.py c walk.py"]), ["", "walk.py"]);
        assert_eq!(partings(&["model.py a", "model.py a"]), ["", ""]);
    }
}
