//! The objects to which no variable leads, and what refers to each.

use super::{PIECE, Walk};
use pyo3::ffi;
use rustc_hash::FxHashSet;
use std::time::Instant;
use vramscope_holders::{Referrers, Stopped};

pub(super) struct Rest {
    first: u32,
    from: Referrers,
    until: Instant,
    steps: usize,
}

impl Rest {
    pub(super) fn new(walk: &Walk<'_>) -> Result<Self, Stopped> {
        let (first, until) = (walk.rest, walk.clock.following);
        let from = walk.nodes.graph.referrers(first, &|| Instant::now() < until)?;
        Ok(Self { first, from, until, steps: 0 })
    }

    /// The number of objects of which a node is only held; 0 if one of them is held by something
    /// else, such as native code or a running expression. The collector decides the same way.
    pub(super) fn cycle_of(&mut self, walk: &Walk<'_>, node: u32) -> Result<usize, Stopped> {
        let mut seen = FxHashSet::default();
        let mut todo = vec![node];
        while let Some(node) = todo.pop() {
            self.steps += 1;
            if self.steps.is_multiple_of(PIECE) && Instant::now() > self.until {
                return Err(Stopped);
            }
            if node < self.first || !seen.insert(node) {
                continue;
            }
            let from = self.from.of(node);
            // PyTorch's own references do not count as Python's.
            let counted = from.clone().filter(|&from| !walk.labels.contains_key(&(from, node)));
            // SAFETY: the node has a reference of ours.
            let references = unsafe { ffi::Py_REFCNT(walk.nodes.object(node)) };
            if references - 1 > counted.count() as isize {
                return Ok(0);
            }
            todo.extend(from);
        }
        Ok(seen.len())
    }
}
