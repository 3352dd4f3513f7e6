//! Finds the frames that distinguish call stacks of one call site.

use crate::FrameRecord;
use rustc_hash::FxHashMap;
use std::hash::Hash;
use vramscope_trace::is_distinctive;

/// For each call stack, the frame that distinguishes it from the other stacks of its call site.
///
/// A stack is given as its call site and its frames, innermost first. An optimizer, for example,
/// has one call stack per state, and all of them have one line of the program as their call site.
/// The result is `None` for the only stack of a site, and for a stack that is a prefix of another
/// one.
pub fn distinguishing_frames<'a, 'b>(
    stacks: &[(&str, &'a [FrameRecord<'b>])],
) -> Vec<Option<&'a FrameRecord<'b>>> {
    let sites: Vec<&str> = stacks.iter().map(|&(site, _)| site).collect();
    let keys: Vec<Vec<&FrameRecord<'_>>> =
        stacks.iter().map(|(_, frames)| frames.iter().rev().collect()).collect();
    let indices =
        first_differing_frames(&sites, &keys, |frame| is_distinctive(&frame.name, &frame.file));
    indices.into_iter().zip(keys).map(|(at, frames)| at.map(|at| frames[at])).collect()
}

/// A call site, marked where it is the call site of the block's free.
pub fn site_label(site: &str, of_free: bool) -> String {
    if of_free { format!("{site} (of its free)") } else { site.to_owned() }
}

/// The labels of a table's call stacks. Each stack is given by its call site, its frames, and
/// whether it is the stack of a free.
///
/// Where several rows have one site, each label adds a distinguishing frame:
/// `model.py:59 forward > linear.py:125 forward`.
pub fn site_labels(stacks: &[(&str, &[FrameRecord<'_>], bool)]) -> Vec<String> {
    let named: Vec<_> = stacks.iter().map(|&(site, frames, _)| (site, frames)).collect();
    let labels = stacks.iter().zip(distinguishing_frames(&named)).map(
        |(&(site, _, of_free), via)| match via {
            Some(via) => site_label(&format!("{site} > {}", via.label()), of_free),
            None => site_label(site, of_free),
        },
    );
    labels.collect()
}

/// For each call stack, outermost frame first, the index of a frame by which it differs from all
/// other stacks of its call site.
///
/// The frame is the first one that is distinctive and that no other stack of the site has. Without
/// such a frame it is the first one that differs: with C++ stacks, that one is often inside
/// Python's interpreter. The result is `None` for the only stack of a site, and for a stack that is
/// a prefix of another one.
pub fn first_differing_frames<F: Ord + Hash>(
    sites: &[&str],
    stacks: &[Vec<F>],
    is_distinctive: impl Fn(&F) -> bool,
) -> Vec<Option<usize>> {
    let mut order: Vec<usize> = (0..stacks.len()).collect();
    order.sort_by_key(|&i| (sites[i], &stacks[i]));
    let mut found = vec![None; stacks.len()];
    for site in order.chunk_by(|&i, &j| sites[i] == sites[j]) {
        // In sorted order, the stack with the longest common prefix is a neighbor.
        let distinct: Vec<&[usize]> = site.chunk_by(|&i, &j| stacks[i] == stacks[j]).collect();
        if distinct.len() < 2 {
            continue;
        }
        // The number of distinct stacks with each frame, and the last such stack. A recursive
        // function counts once per stack.
        let mut stacks_with: FxHashMap<&F, (usize, usize)> = FxHashMap::default();
        for (k, equal) in distinct.iter().enumerate() {
            for frame in &stacks[equal[0]] {
                let (count, last) = stacks_with.entry(frame).or_insert((0, usize::MAX));
                *count += usize::from(*last != k);
                *last = k;
            }
        }
        for (k, equal) in distinct.iter().enumerate() {
            let own = &stacks[equal[0]];
            let neighbors = [k.checked_sub(1), Some(k + 1)]
                .into_iter()
                .flatten()
                .filter_map(|k| distinct.get(k)?.first());
            let common_prefix = neighbors
                .map(|&other| own.iter().zip(&stacks[other]).take_while(|(a, b)| a == b).count())
                .max();
            let differs_at = common_prefix.filter(|&at| at < own.len());
            let distinctive = |at: usize| {
                (at..own.len())
                    .find(|&i| stacks_with[&own[i]].0 == 1 && is_distinctive(&own[i]))
                    .unwrap_or(at)
            };
            for &i in *equal {
                found[i] = differs_at.map(distinctive);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    #[test]
    fn first_differing_frames_prefers_distinctive_frames_of_one_stack() {
        let stack = |frames: &str| frames.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let found = |stacks: &[&str]| {
            let stacks: Vec<_> = stacks.iter().map(|frames| stack(frames)).collect();
            let found =
                super::first_differing_frames(&vec!["model.py"; stacks.len()], &stacks, |frame| {
                    frame.contains(".py")
                });
            let frame = |(at, stack): (Option<usize>, &Vec<String>)| {
                at.map_or("", |at| &stack[at]).to_owned()
            };
            found.into_iter().zip(&stacks).map(frame).collect::<Vec<_>>()
        };
        // The first difference is in the interpreter, and both stacks have the next frame.
        let interpreter = [
            "model.py ceval.c:1 module.py linear.py mm",
            "model.py ceval.c:2 module.py silu.py silu",
        ];
        assert_eq!(found(&interpreter), ["linear.py", "silu.py"]);
        // No distinctive frame follows the first difference. Equal stacks have equal results.
        let indistinct = ["model.py ceval.c:1 a", "model.py ceval.c:2 b", "model.py ceval.c:1 a"];
        assert_eq!(found(&indistinct), ["ceval.c:1", "ceval.c:2", "ceval.c:1"]);
        // A recursive frame counts once per stack. A prefix of another stack has no own frame.
        assert_eq!(found(&["model.py", "model.py c walk.py c walk.py"]), ["", "walk.py"]);
        assert_eq!(found(&["model.py a", "model.py a"]), ["", ""]);
    }
}
