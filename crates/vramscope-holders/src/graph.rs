//! Objects and what they refer to.

use crate::csr::Csr;
use crate::pace::{Pace, Stopped};

/// A graph of references. Nodes are numbered in the order in which they are added.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    kinds: Vec<Kind>,
    /// Of each node the first of its references in `targets`, and their number.
    spans: Vec<(u32, u32)>,
    targets: Vec<u32>,
    /// References that were added one by one.
    single: Vec<(u32, u32)>,
}

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Object,
    /// A variable of the program.
    Variable,
    /// A local variable of a library's function, which ends with the call that the program makes.
    Passing,
}

impl Graph {
    /// Adds an object.
    pub fn add(&mut self) -> u32 {
        self.add_kind(Kind::Object)
    }

    /// Adds a variable. One of a library's function is `passing`: it goes away with the call, so
    /// what other variables lead to is not held by it.
    pub fn add_variable(&mut self, passing: bool) -> u32 {
        self.add_kind(if passing { Kind::Passing } else { Kind::Variable })
    }

    fn add_kind(&mut self, kind: Kind) -> u32 {
        let node = self.len();
        self.kinds.push(kind);
        self.spans.push((0, 0));
        node
    }

    /// The number of nodes.
    pub fn len(&self) -> u32 {
        // A node has 4 bytes here and more elsewhere: memory ends before the numbers do.
        u32::try_from(self.kinds.len()).unwrap_or(u32::MAX)
    }

    /// Whether there is no node.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// The number of references.
    pub fn references(&self) -> usize {
        self.targets.len() + self.single.len()
    }

    /// Adds a reference.
    pub fn refer(&mut self, from: u32, to: u32) {
        self.single.push((from, to));
    }

    /// Adds all references of an object at once. A later call for the same object replaces them.
    pub fn refer_all(&mut self, from: u32, to: impl IntoIterator<Item = u32>) {
        let first = self.targets.len();
        self.targets.extend(to);
        let count = self.targets.len() - first;
        if let (Ok(first), Ok(count), Some(span)) =
            (u32::try_from(first), u32::try_from(count), self.spans.get_mut(from as usize))
        {
            *span = (first, count);
        }
    }

    pub(crate) fn kind(&self, node: u32) -> Kind {
        self.kinds[node as usize]
    }

    /// All references: the node that refers, and that which it refers to.
    pub fn edges(&self) -> impl Iterator<Item = (u32, u32)> + Clone {
        let spans = (0_u32..).zip(&self.spans).flat_map(|(from, &(first, count))| {
            let first = first as usize;
            self.targets[first..first + count as usize].iter().map(move |&to| (from, to))
        });
        spans.chain(self.single.iter().copied())
    }

    /// References among the nodes from `first` on, backward. `goes_on` is asked now and then.
    ///
    /// # Errors
    /// `goes_on` said no.
    pub fn referrers(&self, first: u32, goes_on: &dyn Fn() -> bool) -> Result<Referrers, Stopped> {
        let inside = self.edges().filter(|&(from, to)| from.min(to) >= first);
        let back = inside.map(|(from, to)| (to - first, from));
        let nodes = self.len().saturating_sub(first) as usize;
        Ok(Referrers { first, back: Csr::new(nodes, back, &mut Pace::new(goes_on))? })
    }

    /// Whether each node leads to one of `ends`.
    pub(crate) fn leads_to(
        &self,
        ends: impl IntoIterator<Item = u32>,
        pace: &mut Pace<'_>,
    ) -> Result<Vec<bool>, Stopped> {
        let back = Csr::new(self.kinds.len(), self.edges().map(|(from, to)| (to, from)), pace)?;
        let mut leads = vec![false; self.kinds.len()];
        let mut todo: Vec<u32> = Vec::new();
        let mark = |node: u32, todo: &mut Vec<u32>, leads: &mut Vec<bool>| {
            if !std::mem::replace(&mut leads[node as usize], true) {
                todo.push(node);
            }
        };
        for end in ends {
            mark(end, &mut todo, &mut leads);
        }
        while let Some(node) = todo.pop() {
            for &from in back.of(node) {
                pace.step()?;
                mark(from, &mut todo, &mut leads);
            }
        }
        Ok(leads)
    }
}

/// The referring nodes of each node.
pub struct Referrers {
    first: u32,
    back: Csr,
}

impl Referrers {
    /// The nodes that refer to a node, once for each reference. None for a node before the first.
    pub fn of(&self, node: u32) -> impl Iterator<Item = u32> + Clone + '_ {
        let known = node.checked_sub(self.first).map(|node| self.back.of(node));
        known.unwrap_or_default().iter().copied()
    }
}
