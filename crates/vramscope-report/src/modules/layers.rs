//! Splits modules that are called once for each layer into their layers, by the order of
//! allocations.
//!
//! A module that is called several times in a call of the module around it has several visits. They
//! are layers if each call around it has as many, and if that call is proven to be one call: some
//! stack in it, outside of the layers, allocates once.

use super::nesting::{Entry, ROOT};
use super::visits::{outermost_visits, visits};
use crate::Target;
use rustc_hash::FxHashMap;
use vramscope_inference::Category;
use vramscope_trace::Block;
use vramscope_trace::slicing::{Budget, filled};

/// A module or a layer on the path to a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// An entry of [`super::nesting::Nesting`].
    Entry(u32),
    /// A layer of the entry above.
    Layer(u32),
}

/// Why an entry has no layers, although it is called several times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotSplit {
    /// The calls around it do not all have as many visits.
    Counts,
    /// Nothing proves that the call around it is one call.
    Around,
}

/// What is known of the layers of an entry.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Layers {
    /// The number of layers, if it is split.
    pub(super) count: Option<u32>,
    /// Why it is not.
    pub(super) not_split: Option<NotSplit>,
}

/// The modules and layers of blocks.
pub(super) struct Split {
    /// The node above, and what a node is. Node 0 is the root.
    pub(super) nodes: Vec<(u32, Key)>,
    /// The node of each block; 0 outside of modules.
    pub(super) of_block: Vec<u32>,
    /// The layers of each entry.
    pub(super) layers: Vec<Layers>,
    known: FxHashMap<(u32, Key), u32>,
    /// Whether the window begins within a run.
    is_late: bool,
}

/// More layers than any model has: something else repeats.
const MAX_LAYERS: usize = 512;

/// Blocks that were allocated in one visit of an entry, in order.
struct Visit {
    /// The node of the visit.
    node: u32,
    blocks: Vec<u32>,
    /// Whether it is known to be one call.
    is_one: bool,
    /// Whether it is known to be several.
    is_many: bool,
}

impl Visit {
    fn new(node: u32, blocks: Vec<u32>, is_one: bool) -> Self {
        Self { node, blocks, is_one, is_many: false }
    }
}

/// Part of a visit that lies in one entry below.
#[derive(Default)]
struct Below {
    /// Index of the visit around.
    around: usize,
    blocks: Vec<u32>,
    /// The number of call stacks that allocate once.
    once: u32,
}

impl Split {
    /// Splits the entries, whose blocks allocate in order. `entry_of` has the entry of each
    /// block.
    pub(super) async fn new(
        target: Target<'_>,
        entries: &[Entry],
        entry_of: &[u32],
        budget: &mut Budget,
    ) -> Self {
        let trace = target.trace();
        let root = (ROOT, Key::Entry(ROOT));
        let mut split = Self {
            nodes: vec![root],
            of_block: filled(0, trace.blocks.len(), budget).await,
            layers: vec![Layers::default(); entries.len()],
            known: FxHashMap::default(),
            is_late: trace.blocks.iter().any(Block::is_preexisting),
        };
        // An entry without blocks of its own that leads to one other: a container.
        let mut children: Vec<Vec<u32>> = vec![Vec::new(); entries.len()];
        for (entry, row) in (1..).zip(&entries[1..]) {
            children[row.parent as usize].push(entry);
        }
        let mut has_own = vec![false; entries.len()];
        for &entry in entry_of {
            has_own[entry as usize] = true;
        }
        let is_chain: Vec<bool> =
            (0..entries.len()).map(|at| !has_own[at] && children[at].len() == 1).collect();
        // A training step is not one call, but it separates calls. Other repetitions are layers.
        let steps = target.entry.steps(target.index).filter(|steps| steps.are_training());
        let begins = steps.map_or(&[][..], |steps| &steps.begins);
        let mut steps: Vec<Visit> = Vec::new();
        let (mut part, mut unordered) = (usize::MAX, Vec::new());
        for (block, row) in (0..).zip(&trace.blocks) {
            if entry_of[block as usize] == ROOT {
                continue;
            }
            if row.alloc_event().is_none() {
                unordered.push(block);
                continue;
            }
            let step = begins.partition_point(|&begin| begin < row.enters);
            if step != part {
                part = step;
                steps.push(Visit::new(0, Vec::new(), false));
            }
            steps.last_mut().expect("it was added").blocks.push(block);
        }
        budget.charge(2 * trace.blocks.len() as u64).await;
        let mut work = vec![(ROOT, steps)];
        while let Some((entry, visits)) = work.pop() {
            let count: usize = visits.iter().map(|visit| visit.blocks.len()).sum();
            budget.charge(8 * count as u64).await;
            let below = split.partition(target, entries, entry_of, entry, &visits);
            let (depth, is_container) = (entries[entry as usize].depth, is_chain[entry as usize]);
            for (child, parts) in below {
                let chain = is_chain[child as usize];
                let inner = if depth == 0 {
                    split.of_outermost(target, child, parts)
                } else {
                    split.of_inner(target, (child, chain), &visits, parts, is_container)
                };
                work.push((child, inner));
            }
        }
        for block in unordered {
            split.of_block[block as usize] = split.plain(entries, entry_of[block as usize]);
        }
        split
    }

    /// The node of this key below a node.
    pub(super) fn node(&mut self, above: u32, key: Key) -> u32 {
        let nodes = &mut self.nodes;
        *self.known.entry((above, key)).or_insert_with(|| {
            nodes.push((above, key));
            (nodes.len() - 1) as u32
        })
    }

    /// The node of an entry without layers.
    fn plain(&mut self, entries: &[Entry], entry: u32) -> u32 {
        if entry == ROOT {
            return 0;
        }
        let above = self.plain(entries, entries[entry as usize].parent);
        self.node(above, Key::Entry(entry))
    }

    /// Parts of the visits of an entry by the entries below it. Blocks of the entry itself get
    /// their node.
    fn partition(
        &mut self,
        target: Target<'_>,
        entries: &[Entry],
        entry_of: &[u32],
        entry: u32,
        visits: &[Visit],
    ) -> Vec<(u32, Vec<Below>)> {
        let depth = entries[entry as usize].depth;
        let mut below: Vec<(u32, Vec<Below>)> = Vec::new();
        let mut places: FxHashMap<u32, usize> = FxHashMap::default();
        for (around, visit) in visits.iter().enumerate() {
            // How often each stack allocates, and in which entry.
            let mut counts: FxHashMap<u32, (u32, u32)> = FxHashMap::default();
            for &block in &visit.blocks {
                let mut child = entry_of[block as usize];
                while entries[child as usize].depth > depth + 1 {
                    child = entries[child as usize].parent;
                }
                let stack = target.trace().blocks[block as usize].stack.0;
                counts.entry(stack).or_insert((child, 0)).1 += 1;
                if child == entry {
                    self.of_block[block as usize] = visit.node;
                    continue;
                }
                let place = *places.entry(child).or_insert_with(|| {
                    below.push((child, Vec::new()));
                    below.len() - 1
                });
                let parts = &mut below[place].1;
                if parts.last().is_none_or(|part| part.around != around) {
                    parts.push(Below { around, ..Below::default() });
                }
                parts.last_mut().expect("it was added").blocks.push(block);
            }
            let once = |wanted: &dyn Fn(u32) -> bool| {
                counts.values().filter(|(child, count)| *count == 1 && wanted(*child)).count()
            };
            for (child, parts) in &mut below {
                if let Some(part) = parts.last_mut().filter(|part| part.around == around) {
                    part.once = once(&|of| of != *child) as u32;
                }
            }
        }
        below
    }

    /// Calls of an outermost module: a program calls it once for each batch, so its calls are no
    /// layers.
    fn of_outermost(&mut self, target: Target<'_>, child: u32, parts: Vec<Below>) -> Vec<Visit> {
        let node = self.node(0, Key::Entry(child));
        let last = parts.len();
        let mut inner = Vec::new();
        for (index, part) in (1..).zip(parts) {
            let calls =
                cut(target, &part.blocks, |symbols| outermost_visits(symbols, index == last));
            inner.extend(calls.into_iter().map(|blocks| Visit::new(node, blocks, false)));
        }
        inner
    }

    /// Visits of an entry in the visits of the entry around it.
    fn of_inner(
        &mut self,
        target: Target<'_>,
        (child, is_chain): (u32, bool),
        around: &[Visit],
        parts: Vec<Below>,
        is_in_container: bool,
    ) -> Vec<Visit> {
        let is_one = |part: &Below| part.once > 0 || is_in_container && around[part.around].is_one;
        let known: Vec<bool> = parts.iter().map(is_one).collect();
        let whole = |split: &mut Self, parts: Vec<Below>| -> Vec<Visit> {
            let visit = |(part, is_one): (Below, &bool)| {
                let node = split.node(around[part.around].node, Key::Entry(child));
                Visit::new(node, part.blocks, *is_one)
            };
            parts.into_iter().zip(&known).map(visit).collect()
        };
        // Within several calls, those of what is in them cannot be counted.
        let is_many = parts.iter().any(|part| around[part.around].is_many);
        // A container is called once, and calls the layers.
        if is_many || is_chain {
            let mut visits = whole(self, parts);
            for visit in &mut visits {
                visit.is_many = is_many;
            }
            return visits;
        }
        let mut calls: Vec<(usize, Vec<Vec<u32>>)> =
            parts.iter().map(|part| (0, cut(target, &part.blocks, visits))).collect();
        let layers = calls.iter().map(|(_, calls)| calls.len()).max().unwrap_or(1);
        if layers < 2 {
            return whole(self, parts);
        }
        // The window's begin or end can cut a visit off.
        let end = calls.len() - 1;
        if end > 0
            && calls[end].1.len() != layers
            && let Some(found) = cut_off(target, &parts[end].blocks, &calls[end - 1].1, false)
        {
            calls[end] = found;
        }
        if end > 0
            && self.is_late
            && calls[0].1.len() != layers
            && let Some(found) = cut_off(target, &parts[0].blocks, &calls[1].1, true)
        {
            calls[0] = found;
        }
        let is_known =
            |&(missing, ref calls): &(usize, Vec<Vec<u32>>)| calls.len() == layers || missing > 0;
        let is_whole = |index: &usize| calls[*index].1.len() == layers;
        let why = if !calls.iter().all(is_known) || layers > MAX_LAYERS {
            Some(NotSplit::Counts)
        } else {
            let is_one = (0..calls.len()).filter(is_whole).all(|index| known[index]);
            (!is_one).then_some(NotSplit::Around)
        };
        if let Some(why) = why {
            self.layers[child as usize].not_split = Some(why);
            let mut visits = whole(self, parts);
            for visit in &mut visits {
                visit.is_many = true;
            }
            return visits;
        }
        self.layers[child as usize].count = Some(layers as u32);
        let mut inner = Vec::new();
        for (part, (missing, calls)) in parts.iter().zip(calls) {
            let entry = self.node(around[part.around].node, Key::Entry(child));
            let first = if missing == CUT_END { 0 } else { missing as u32 };
            for (layer, blocks) in (first..).zip(calls) {
                let node = self.node(entry, Key::Layer(layer));
                inner.push(Visit::new(node, blocks, true));
            }
        }
        inner
    }
}

/// In place of the number of layers that the window's begin cuts off: its end cuts off some.
const CUT_END: usize = usize::MAX;

/// The layers of a visit that the window's begin or end cuts off, as in a whole one, with the
/// number of layers before them. `None` if they differ otherwise.
fn cut_off(
    target: Target<'_>,
    blocks: &[u32],
    whole: &[Vec<u32>],
    is_begin: bool,
) -> Option<(usize, Vec<Vec<u32>>)> {
    let (counted, symbols) = counted(target, blocks);
    let layers: Vec<Vec<u32>> = whole.iter().map(|layer| self::counted(target, layer).1).collect();
    let all = layers.concat();
    let from = if is_begin { all.len().checked_sub(symbols.len())? } else { 0 };
    if all.get(from..from + symbols.len()) != Some(&symbols[..]) {
        return None;
    }
    let (mut begins, mut missing, mut at) = (Vec::new(), 0, 0);
    for layer in layers {
        at += layer.len();
        if at <= from {
            missing += 1;
        } else if let Some(&begin) = counted.get(at - from) {
            begins.push(begin);
        }
    }
    Some((if is_begin { missing } else { CUT_END }, at_blocks(blocks, begins)))
}

/// The blocks that count, and their stacks. Workspaces come and go as libraries need them: they
/// belong to the visit that they are in.
fn counted(target: Target<'_>, blocks: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let categories = target.entry.categories(target.index);
    let counts = |block: &&u32| categories.get(**block).category != Category::Workspace;
    let counted: Vec<u32> = blocks.iter().filter(counts).copied().collect();
    let stack = |block: &u32| target.trace().blocks[*block as usize].stack.0;
    let symbols = counted.iter().map(stack).collect();
    (counted, symbols)
}

/// Cuts blocks into visits.
fn cut(target: Target<'_>, blocks: &[u32], visits: impl Fn(&[u32]) -> Vec<usize>) -> Vec<Vec<u32>> {
    let (counted, symbols) = counted(target, blocks);
    let begins = visits(&symbols).into_iter().skip(1).map(|at| counted[at]).collect();
    at_blocks(blocks, begins)
}

/// Cuts blocks before some of them.
fn at_blocks(blocks: &[u32], begins: Vec<u32>) -> Vec<Vec<u32>> {
    let mut parts = Vec::with_capacity(begins.len() + 1);
    let mut rest = blocks;
    for begin in begins {
        let (part, next) = rest.split_at(rest.partition_point(|&block| block < begin));
        parts.push(part.to_vec());
        rest = next;
    }
    parts.push(rest.to_vec());
    parts
}

impl NotSplit {
    /// The reason in words.
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Counts => "not every call around it has as many calls of it",
            Self::Around => "nothing shows that the call around it is one call",
        }
    }
}
