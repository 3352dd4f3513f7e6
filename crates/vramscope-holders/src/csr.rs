//! Neighbors of nodes in one array.

use crate::pace::{Pace, Stopped};

/// The neighbors of each node.
pub(crate) struct Csr {
    starts: Vec<u32>,
    targets: Vec<u32>,
}

impl Csr {
    /// Sorts edges by the node that they come from. They keep their order for each node.
    pub(crate) fn new(
        nodes: usize,
        edges: impl Iterator<Item = (u32, u32)> + Clone,
        pace: &mut Pace<'_>,
    ) -> Result<Self, Stopped> {
        let mut starts = vec![0_u32; nodes + 1];
        for (from, _) in edges.clone() {
            pace.step()?;
            starts[from as usize + 1] += 1;
        }
        for node in 0..nodes {
            starts[node + 1] += starts[node];
        }
        let mut next = starts.clone();
        let mut targets = vec![0_u32; starts[nodes] as usize];
        for (from, to) in edges {
            pace.step()?;
            let at = &mut next[from as usize];
            targets[*at as usize] = to;
            *at += 1;
        }
        Ok(Self { starts, targets })
    }

    /// The neighbors of a node.
    pub(crate) fn of(&self, node: u32) -> &[u32] {
        let node = node as usize;
        &self.targets[self.starts[node] as usize..self.starts[node + 1] as usize]
    }
}
