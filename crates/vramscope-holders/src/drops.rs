//! The references that free most.

use crate::csr::Csr;
use crate::dominators::{Tree, dominators};
use crate::graph::{Graph, Kind};
use crate::pace::{Pace, Stopped};
use rustc_hash::FxHashMap;
use std::collections::BinaryHeap;

/// Limits of the rows.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most rows.
    pub rows: usize,
    /// The least bytes of a row.
    pub bytes: u64,
    /// The most references that a row names. What more references hold is no row.
    pub references: usize,
    /// A row within another frees at least the bytes of that row divided by this number.
    pub parts: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { rows: 60, bytes: 1, references: 6, parts: 5 }
    }
}

/// The references that free most, and the row of each block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drops {
    /// The rows. One that lies within another comes after it.
    pub rows: Vec<Row>,
    /// By block: the row that frees it, the innermost one.
    pub of_block: Vec<Option<u32>>,
}

/// References, and the bytes that are freed when all of them are dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The row that frees these bytes too.
    pub within: Option<u32>,
    /// The references as pairs of the node that refers and the node that it refers to.
    pub references: Vec<(u32, u32)>,
    /// The bytes.
    pub bytes: u64,
    /// The number of blocks.
    pub blocks: u32,
}

/// References as pairs of the node that refers and the node that it refers to.
type References = Vec<(u32, u32)>;

/// A node, and the references to it.
type Innermost = (u32, References);

/// The number of variables that have a bit of their own in [`Part::variables_of`].
const TOLD: usize = 63;

/// The part of a graph that leads to blocks. Node 0 refers to the variables.
struct Part {
    /// The nodes of the graph, from number 1 on. Blocks have the numbers behind them.
    nodes: Vec<u32>,
    next: Csr,
    before: Csr,
    tree: Tree,
    /// Whether a node is a variable.
    is_variable: Vec<bool>,
}

const ROOT: u32 = 0;

impl Part {
    fn new(
        graph: &Graph,
        holds: &[(u32, u32)],
        blocks: usize,
        pace: &mut Pace<'_>,
    ) -> Result<Self, Stopped> {
        let leads = graph.leads_to(holds.iter().map(|&(node, _)| node), pace)?;
        let mut number = vec![u32::MAX; leads.len()];
        let mut nodes = Vec::new();
        for (node, _) in (0_u32..).zip(&leads).filter(|&(_, &leads)| leads) {
            nodes.push(node);
            number[node as usize] = u32::try_from(nodes.len()).unwrap_or(u32::MAX);
        }
        let all = 1 + nodes.len() + blocks;
        let first_block = u32::try_from(1 + nodes.len()).unwrap_or(u32::MAX);
        let inside = graph.edges().filter_map(|(from, to)| {
            let (from, to) = (number[from as usize], number[to as usize]);
            (from != u32::MAX && to != u32::MAX).then_some((from, to))
        });
        let held = holds.iter().map(|&(node, block)| (number[node as usize], first_block + block));
        let mut edges: Vec<(u32, u32)> = inside.chain(held).collect();
        let kind = |number: u32| graph.kind(nodes[number as usize - 1]);
        let variables = |wanted: Kind| {
            (1..first_block).filter(move |&number| kind(number) == wanted).collect::<Vec<u32>>()
        };
        // What only passing variables lead to refers to nothing that others lead to.
        let next = Csr::new(all, edges.iter().copied(), pace)?;
        let mut reached = vec![false; all];
        let mut todo = variables(Kind::Variable);
        while let Some(at) = todo.pop() {
            pace.step()?;
            if !std::mem::replace(&mut reached[at as usize], true) {
                todo.extend(next.of(at));
            }
        }
        edges.retain(|&(from, to)| reached[from as usize] || !reached[to as usize]);
        let roots = [variables(Kind::Variable), variables(Kind::Passing)].concat();
        edges.extend(roots.iter().map(|&variable| (ROOT, variable)));
        let next = Csr::new(all, edges.iter().copied(), pace)?;
        let before = Csr::new(all, edges.iter().map(|&(from, to)| (to, from)), pace)?;
        let tree = dominators(all, &next, &before, pace)?;
        let mut is_variable = vec![false; all];
        for variable in roots {
            is_variable[variable as usize] = true;
        }
        Ok(Self { nodes, next, before, tree, is_variable })
    }

    fn node(&self, number: u32) -> u32 {
        self.nodes[number as usize - 1]
    }

    fn is_block(&self, number: u32) -> bool {
        number as usize > self.nodes.len()
    }

    /// Of each node a bit for each variable that leads to it; the last bit for further variables.
    fn variables_of(&self, pace: &mut Pace<'_>) -> Result<(Vec<u64>, Vec<u32>), Stopped> {
        let variables = self.next.of(ROOT);
        let mut bits = vec![0_u64; self.tree.parent.len()];
        let mut todo: Vec<u32> = Vec::new();
        for (place, &variable) in variables.iter().enumerate() {
            bits[variable as usize] |= 1 << place.min(TOLD);
            todo.push(variable);
        }
        while let Some(at) = todo.pop() {
            let ours = bits[at as usize];
            for &to in self.next.of(at) {
                pace.step()?;
                let theirs = &mut bits[to as usize];
                if *theirs | ours != *theirs {
                    *theirs |= ours;
                    todo.push(to);
                }
            }
        }
        Ok((bits, variables.iter().copied().take(TOLD).collect()))
    }

    /// The references to a node, without those from what it dominates.
    fn references_to(
        &self,
        number: u32,
        most: usize,
        pace: &mut Pace<'_>,
    ) -> Result<Option<References>, Stopped> {
        let mut found = Vec::new();
        for &from in self.before.of(number) {
            pace.step()?;
            let is_reached = from == ROOT || self.tree.parent[from as usize].is_some();
            if !is_reached || self.tree.dominates(number, from) {
                continue;
            }
            if from == ROOT {
                return Ok(None);
            }
            let reference = (self.node(from), self.node(number));
            if !found.contains(&reference) {
                if found.len() == most {
                    return Ok(None);
                }
                found.push(reference);
            }
        }
        Ok(Some(found))
    }

    /// The references of variables, by their bits.
    fn references_of(&self, told: &[u32], bits: u64) -> Vec<(u32, u32)> {
        let named = (0..).zip(told).filter(|&(bit, _)| bits >> bit & 1 == 1);
        named
            .map(|(_, &variable)| {
                let to = self.next.of(variable).first().copied().unwrap_or(variable);
                (self.node(variable), self.node(to))
            })
            .collect()
    }

    /// Down from a node to where its bytes part: the last node on this way that may be a row, with
    /// the references to it, and what lies below.
    fn innermost(
        &self,
        sums: &Sums,
        top: u32,
        limits: &Limits,
        shown: &mut impl FnMut(u32) -> bool,
        pace: &mut Pace<'_>,
    ) -> Result<(Option<Innermost>, Vec<u32>), Stopped> {
        let mut way = vec![top];
        let below = loop {
            pace.step()?;
            match sums.below(way[way.len() - 1]) {
                [one] if !self.is_block(*one) => way.push(*one),
                below => break below.to_vec(),
            }
        };
        for at in way.into_iter().rev() {
            pace.step()?;
            if self.is_variable[at as usize] || self.is_block(at) || !shown(self.node(at)) {
                continue;
            }
            let references = self.references_to(at, limits.references, pace)?;
            if let Some(references) = references.filter(|references| !references.is_empty()) {
                return Ok((Some((at, references)), below));
            }
        }
        Ok((None, below))
    }
}

/// What may become a row, by its bytes. The order makes it independent of everything else.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    bytes: u64,
    within: Option<u32>,
    what: What,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Node(u32),
    /// Variables by their bits, and what they hold together.
    Together(u64, Vec<u32>),
}

impl Graph {
    /// What dropping references frees. `holds` has pairs of a node and of a block that it holds;
    /// `bytes` has the size of each block. Only nodes that are `shown` become rows: the others are
    /// parts of an object, such as the dict of its attributes. `goes_on` is asked now and then.
    ///
    /// Linear in the nodes and references, but for a factor below their logarithm.
    ///
    /// # Errors
    /// `goes_on` said no.
    pub fn drops(
        &self,
        holds: &[(u32, u32)],
        bytes: &[u64],
        limits: &Limits,
        mut shown: impl FnMut(u32) -> bool,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<Drops, Stopped> {
        let pace = &mut Pace::new(goes_on);
        let part = Part::new(self, holds, bytes.len(), pace)?;
        let sums = Sums::new(&part, bytes, pace)?;
        let (bits, told) = part.variables_of(pace)?;
        let mut drops = Drops { rows: Vec::new(), of_block: Vec::new() };
        let mut rows: FxHashMap<u32, u32> = FxHashMap::default();
        let mut open = BinaryHeap::new();
        let mut together: Vec<(u64, Vec<u32>)> = Vec::new();
        let mut place: FxHashMap<u64, usize> = FxHashMap::default();
        for &top in sums.below(ROOT) {
            let variables = bits[top as usize];
            let count = variables.count_ones() as usize;
            let few = variables >> TOLD == 0 && count <= limits.references;
            if part.is_variable[top as usize] || !few {
                let bytes = sums.bytes[top as usize];
                open.push(Candidate { bytes, within: None, what: What::Node(top) });
            } else {
                let at = *place.entry(variables).or_insert_with(|| {
                    together.push((variables, Vec::new()));
                    together.len() - 1
                });
                together[at].1.push(top);
            }
        }
        for (variables, tops) in together {
            let bytes = tops.iter().map(|&top| sums.bytes[top as usize]).sum();
            open.push(Candidate { bytes, within: None, what: What::Together(variables, tops) });
        }
        while let Some(Candidate { bytes, within, what }) = open.pop() {
            if drops.rows.len() == limits.rows || bytes < limits.bytes.max(1) {
                break;
            }
            let (tops, variables) = match what {
                What::Node(top) => (vec![top], None),
                What::Together(variables, tops) => (tops, Some(variables)),
            };
            let (row, below) = match tops[..] {
                [top] => part.innermost(&sums, top, limits, &mut shown, pace)?,
                _ => (None, tops.clone()),
            };
            let blocks = tops.iter().map(|&top| sums.blocks[top as usize]).sum();
            let (top, references) = match (row, variables) {
                (Some((at, references)), _) => (vec![at], references),
                (None, Some(bits)) => (tops, part.references_of(&told, bits)),
                (None, None) => (Vec::new(), Vec::new()),
            };
            let inside = if references.is_empty() {
                within
            } else {
                let row = drops.add(Row { within, references, bytes, blocks });
                rows.extend(top.into_iter().map(|top| (top, row)));
                Some(row)
            };
            let least = inside.map_or(0, |row| drops.rows[row as usize].bytes / limits.parts);
            for number in below {
                pace.step()?;
                let own = sums.bytes[number as usize];
                if !part.is_block(number) && own >= least && own < bytes {
                    let what = What::Node(number);
                    open.push(Candidate { bytes: own, within: inside, what });
                }
            }
        }
        // The row of each node is its own, or that of its parent.
        let mut row_of: Vec<Option<u32>> = vec![None; part.tree.parent.len()];
        for &number in &part.tree.order {
            pace.step()?;
            let above = part.tree.parent[number as usize].and_then(|above| row_of[above as usize]);
            row_of[number as usize] = rows.get(&number).copied().or(above);
        }
        drops.of_block = row_of.split_off(part.nodes.len() + 1);
        Ok(drops)
    }
}

impl Drops {
    fn add(&mut self, row: Row) -> u32 {
        self.rows.push(row);
        u32::try_from(self.rows.len() - 1).unwrap_or(u32::MAX)
    }
}

/// Bytes and blocks below each node of the dominator tree.
struct Sums {
    bytes: Vec<u64>,
    blocks: Vec<u32>,
    below: Csr,
}

impl Sums {
    fn new(part: &Part, sizes: &[u64], pace: &mut Pace<'_>) -> Result<Self, Stopped> {
        let all = part.tree.parent.len();
        let (mut bytes, mut blocks) = (vec![0_u64; all], vec![0_u32; all]);
        for (number, &size) in (part.nodes.len() + 1..).zip(sizes) {
            (bytes[number], blocks[number]) = (size, 1);
        }
        for &number in part.tree.order.iter().rev() {
            pace.step()?;
            if let Some(parent) = part.tree.parent[number as usize] {
                bytes[parent as usize] += bytes[number as usize];
                blocks[parent as usize] += blocks[number as usize];
            }
        }
        let pairs = part.tree.order.iter().filter_map(|&number| {
            let holds = bytes[number as usize] > 0;
            part.tree.parent[number as usize].filter(|_| holds).map(|parent| (parent, number))
        });
        let below = Csr::new(all, pairs, pace)?;
        Ok(Self { bytes, blocks, below })
    }

    /// What a node dominates next to it, and that holds bytes.
    fn below(&self, number: u32) -> &[u32] {
        self.below.of(number)
    }
}

#[cfg(test)]
mod tests;
