//! Immediate dominators, by the algorithm of Lengauer and Tarjan (1979) with path compression.
//! Its time is in proportion to the edges, times the logarithm of the nodes.

use crate::csr::Csr;
use crate::pace::{Pace, Stopped};

const NONE: u32 = u32::MAX;

/// The dominator tree of what node 0 leads to.
pub(crate) struct Tree {
    /// Of each node the one that is on all ways to it, next to it. `None` for node 0, and for nodes
    /// that it does not lead to.
    pub(crate) parent: Vec<Option<u32>>,
    /// The nodes. Each comes after its parent.
    pub(crate) order: Vec<u32>,
    /// Of each node its place if the tree is walked down. What a node dominates has the places from
    /// its own on.
    enter: Vec<u32>,
    /// Of each node how many it dominates, with itself.
    size: Vec<u32>,
}

impl Tree {
    fn new(parent: Vec<Option<u32>>, order: Vec<u32>) -> Self {
        let mut size = vec![0_u32; parent.len()];
        for &node in order.iter().rev() {
            size[node as usize] += 1;
            if let Some(above) = parent[node as usize] {
                size[above as usize] += size[node as usize];
            }
        }
        // A node that is not reached has no size, so its place says nothing.
        let mut enter = vec![0_u32; parent.len()];
        // The next free place below each node.
        let mut free = vec![1_u32; parent.len()];
        for &node in &order {
            if let Some(above) = parent[node as usize] {
                enter[node as usize] = free[above as usize];
                free[node as usize] = enter[node as usize] + 1;
                free[above as usize] += size[node as usize];
            }
        }
        Self { parent, order, enter, size }
    }

    /// Whether all ways to `below` lead through `above`. Both are reached.
    pub(crate) fn dominates(&self, above: u32, below: u32) -> bool {
        let places = self.enter[below as usize].wrapping_sub(self.enter[above as usize]);
        places < self.size[above as usize]
    }
}

/// A depth-first search from node 0. Nodes get numbers in its order.
struct Search {
    /// The number of each node; `NONE` for one that was not reached.
    number: Vec<u32>,
    order: Vec<u32>,
    /// By number: the number of the node from which it was reached.
    from: Vec<u32>,
}

fn search(nodes: usize, next: &Csr, pace: &mut Pace<'_>) -> Result<Search, Stopped> {
    let mut found = Search { number: vec![NONE; nodes], order: vec![0], from: vec![0] };
    found.number[0] = 0;
    let mut open: Vec<(u32, usize)> = vec![(0, 0)];
    while let Some((node, at)) = open.last_mut() {
        pace.step()?;
        let Some(&to) = next.of(*node).get(*at) else {
            open.pop();
            continue;
        };
        *at += 1;
        if found.number[to as usize] == NONE {
            let from = found.number[*node as usize];
            found.number[to as usize] = u32::try_from(found.order.len()).unwrap_or(NONE);
            found.order.push(to);
            found.from.push(from);
            open.push((to, 0));
        }
    }
    Ok(found)
}

/// The forest of the algorithm, by number.
struct Forest {
    ancestor: Vec<u32>,
    best: Vec<u32>,
    path: Vec<u32>,
}

impl Forest {
    /// The node with the least semidominator on the way from `node` to its root.
    fn eval(&mut self, node: u32, semi: &[u32]) -> u32 {
        let mut at = node;
        while self.ancestor[at as usize] != NONE {
            self.path.push(at);
            at = self.ancestor[at as usize];
        }
        // From the root down: each points to the root then, as the one before it does.
        self.path.pop();
        while let Some(below) = self.path.pop() {
            let above = self.ancestor[below as usize];
            let (ours, theirs) = (self.best[below as usize], self.best[above as usize]);
            if semi[theirs as usize] < semi[ours as usize] {
                self.best[below as usize] = theirs;
            }
            self.ancestor[below as usize] = self.ancestor[above as usize];
        }
        self.best[node as usize]
    }
}

/// The dominators of what node 0 leads to, by `next` and `before`, which has the same edges.
pub(crate) fn dominators(
    nodes: usize,
    next: &Csr,
    before: &Csr,
    pace: &mut Pace<'_>,
) -> Result<Tree, Stopped> {
    let found = search(nodes, next, pace)?;
    let count = found.order.len();
    let numbers = 0..u32::try_from(count).unwrap_or(NONE);
    let mut semi: Vec<u32> = numbers.clone().collect();
    let mut forest = Forest { ancestor: vec![NONE; count], best: semi.clone(), path: Vec::new() };
    let mut dominator = vec![0_u32; count];
    // Lists of nodes by their semidominator.
    let (mut first, mut later) = (vec![NONE; count], vec![NONE; count]);
    for node in numbers.clone().skip(1).rev() {
        for &from in before.of(found.order[node as usize]) {
            pace.step()?;
            let from = found.number[from as usize];
            if from != NONE {
                let best = forest.eval(from, &semi);
                semi[node as usize] = semi[node as usize].min(semi[best as usize]);
            }
        }
        let bucket = &mut first[semi[node as usize] as usize];
        later[node as usize] = std::mem::replace(bucket, node);
        let parent = found.from[node as usize];
        forest.ancestor[node as usize] = parent;
        let mut waiting = std::mem::replace(&mut first[parent as usize], NONE);
        while waiting != NONE {
            pace.step()?;
            let best = forest.eval(waiting, &semi);
            let is_lower = semi[best as usize] < semi[waiting as usize];
            dominator[waiting as usize] = if is_lower { best } else { parent };
            waiting = later[waiting as usize];
        }
    }
    let mut parent = vec![None; nodes];
    for node in numbers.skip(1) {
        let at = node as usize;
        if dominator[at] != semi[at] {
            dominator[at] = dominator[dominator[at] as usize];
        }
        parent[found.order[at] as usize] = Some(found.order[dominator[at] as usize]);
    }
    Ok(Tree::new(parent, found.order))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Whether node 0 reaches each node if one node is left out.
    fn reached(nodes: usize, next: &Csr, without: Option<u32>) -> Vec<bool> {
        let mut seen = vec![false; nodes];
        let mut todo = vec![0_u32];
        while let Some(node) = todo.pop() {
            if Some(node) != without && !std::mem::replace(&mut seen[node as usize], true) {
                todo.extend(next.of(node));
            }
        }
        seen
    }

    fn tree_of(nodes: usize, edges: impl Iterator<Item = (u32, u32)> + Clone) -> Tree {
        let mut pace = Pace::new(&|| true);
        let next = Csr::new(nodes, edges.clone(), &mut pace).unwrap();
        let before = Csr::new(nodes, edges.map(|(from, to)| (to, from)), &mut pace).unwrap();
        dominators(nodes, &next, &before, &mut pace).unwrap()
    }

    proptest! {
        #[test]
        fn dominators_are_what_cuts_off(
            nodes in 1_usize..14,
            pairs in prop::collection::vec((0_u32..14, 0_u32..14), 0..40),
        ) {
            let inside = |&(from, to): &(u32, u32)| from.max(to) < nodes as u32;
            let edges: Vec<(u32, u32)> = pairs.into_iter().filter(inside).collect();
            let tree = tree_of(nodes, edges.iter().copied());
            let next = Csr::new(nodes, edges.iter().copied(), &mut Pace::new(&|| true)).unwrap();
            let all = reached(nodes, &next, None);
            for node in 0..nodes as u32 {
                // All dominators: those without which it is not reached.
                let mut cut: Vec<u32> = (0..nodes as u32)
                    .filter(|&without| without != node && all[node as usize])
                    .filter(|&without| !reached(nodes, &next, Some(without))[node as usize])
                    .collect();
                let mut above = Vec::new();
                let mut at = tree.parent[node as usize];
                while let Some(parent) = at {
                    above.push(parent);
                    at = tree.parent[parent as usize];
                }
                for other in (0..nodes as u32).filter(|&other| all[other as usize]) {
                    let is_above = all[node as usize] && (other == node || above.contains(&other));
                    let told = all[node as usize] && tree.dominates(other, node);
                    prop_assert_eq!(told, is_above, "of {} and {}", other, node);
                }
                above.sort_unstable();
                cut.sort_unstable();
                prop_assert_eq!(above, cut, "of {}", node);
                prop_assert_eq!(tree.order.contains(&node), all[node as usize]);
            }
        }
    }

    #[test]
    fn a_long_chain_is_no_deep_recursion() {
        let nodes = 1_000_000;
        let tree = tree_of(nodes, (0..nodes as u32 - 1).map(|node| (node, node + 1)));
        assert_eq!(tree.parent[nodes - 1], Some(nodes as u32 - 2));
    }
}
