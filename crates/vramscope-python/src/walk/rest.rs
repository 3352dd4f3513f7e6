//! The objects to which no variable leads, and what refers to each.

use super::Walk;
use pyo3::ffi;
use rustc_hash::FxHashSet;

pub(super) struct Rest {
    first: u32,
    /// By node from `first` on: the nodes that refer to it.
    from: Vec<Vec<u32>>,
    /// By node: how many references Python counts that are among these.
    counted: Vec<isize>,
}

impl Rest {
    pub(super) fn new(walk: &Walk<'_>) -> Self {
        let first = walk.rest;
        let count = walk.graph.len().saturating_sub(first) as usize;
        let mut rest = Self { first, from: vec![Vec::new(); count], counted: vec![0; count] };
        for (from, to) in walk.graph.edges().filter(|&(from, to)| from.min(to) >= first) {
            let at = (to - first) as usize;
            rest.from[at].push(from);
            // PyTorch's own references do not count as Python's.
            rest.counted[at] += isize::from(!walk.labels.contains_key(&(from, to)));
        }
        rest
    }

    /// The number of objects of which a node is only held; 0 if one of them is held by something
    /// else, such as native code or a running expression. The collector decides the same way.
    pub(super) fn cycle_of(&self, walk: &Walk<'_>, node: u32) -> usize {
        let mut seen = FxHashSet::default();
        let mut todo = vec![node];
        while let Some(node) = todo.pop() {
            if node < self.first || !seen.insert(node) {
                continue;
            }
            let at = (node - self.first) as usize;
            // SAFETY: the object is alive.
            let references = unsafe { ffi::Py_REFCNT(walk.objects[node as usize]) };
            let ours = isize::from(walk.made.contains_key(&node));
            if references - ours > self.counted[at] {
                return 0;
            }
            todo.extend(&self.from[at]);
        }
        seen.len()
    }
}
