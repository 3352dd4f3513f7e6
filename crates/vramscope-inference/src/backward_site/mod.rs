//! The line of the forward pass whose backward an allocation belongs to.
//!
//! The threads of backward have no Python frames. With C++ stacks, an allocation there has a node
//! of the autograd graph. Without them it has only its size. Either way, the line comes from the
//! forward pass just before: backward visits the operations of that pass in reverse.

mod stacks;

use self::stacks::{Part, StackParts};
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::collections::BTreeMap;
use vramscope_snapshot::{Snapshot, StackId};
use vramscope_trace::Sites;
use vramscope_trace::Trace;
use vramscope_trace::slicing::{Budget, now, strides};
use vramscope_trace::{Block, Origin};
use vramscope_units::{Bytes, EventIndex};

/// The evidence for the forward line of an allocation, strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum BackwardBasis {
    /// A block of the line has the same number of bytes, and its operation is that of the node. Or
    /// no other line of the pass has blocks of this size.
    EqualBytes,
    /// The order of the autograd graph. Among operations of the node, or without a node among
    /// blocks of equal size, it is the latest that backward has not visited yet.
    GraphOrder,
    /// No block fits, and this one is nearest in size.
    NearestSize,
}

/// The place of an allocation in backward.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BackwardSite {
    /// The node of the autograd graph: `LogSoftmaxBackward0`. `None` without C++ frames.
    pub node: Option<String>,
    /// The stack of a block of the forward pass, at the line whose backward it is.
    pub forward: Option<StackId>,
    /// The evidence for `forward`. `None` if and only if there is none.
    pub basis: Option<BackwardBasis>,
}

/// An allocation for which a forward line is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocation {
    /// The block with this index into [`Trace::blocks`].
    Block(u32),
    /// A request that failed.
    Failed {
        /// The event of the failure.
        event: EventIndex,
        /// Requested bytes, after rounding.
        bytes: Bytes,
        /// The stack of the request.
        stack: StackId,
    },
}

/// The backward sites of allocations, in their order. `None` for an allocation that is not known to
/// be backward's: it has Python frames, or nothing in its window has.
///
/// Takes time linear in stacks and blocks up to the last allocation, plus sorting.
pub async fn backward_sites(
    snapshot: &Snapshot,
    trace: &Trace,
    sites: &Sites,
    wanted: &[Allocation],
    budget: &mut Budget,
) -> Vec<Option<BackwardSite>> {
    if wanted.is_empty() {
        return Vec::new();
    }
    let parts = StackParts::new(snapshot, sites, budget).await;
    let mut order: Vec<(u32, bool, usize)> = Vec::with_capacity(wanted.len());
    for (i, allocation) in wanted.iter().enumerate() {
        let (index, is_block) = position(trace, allocation);
        order.push((index, is_block, i));
    }
    order.sort_unstable();
    let mut order = order.into_iter().peekable();
    let mut found = vec![None; wanted.len()];
    let mut pass = Pass::new(trace, sites, &parts);
    for part in strides(trace.blocks.len()) {
        budget.charge(8 * part.len() as u64).await;
        for (index, block) in (part.start as u32..).zip(&trace.blocks[part]) {
            while let Some((_, _, i)) = order.next_if(|&(at, is_block, _)| at == index && !is_block)
            {
                found[i] = pass.failed(&wanted[i]);
            }
            let site = pass.visit(index, block);
            while let Some((_, _, i)) = order.next_if(|&(at, ..)| at == index) {
                found[i] = site;
            }
        }
        if order.peek().is_none() {
            break;
        }
    }
    // Requests that fail after the last alloc.
    for (_, _, i) in order {
        found[i] = pass.failed(&wanted[i]);
    }
    found.into_iter().map(|site: Option<Found>| site.map(|site| site.finish(&parts))).collect()
}

/// [`backward_sites`] of one allocation, at once.
pub fn backward_site(
    snapshot: &Snapshot,
    trace: &Trace,
    sites: &Sites,
    wanted: Allocation,
) -> Option<BackwardSite> {
    let wanted = [wanted];
    now(async |budget| backward_sites(snapshot, trace, sites, &wanted, budget).await)
        .pop()
        .flatten()
}

/// The block that an allocation is, or the first block after a failed request. True for a block.
fn position(trace: &Trace, wanted: &Allocation) -> (u32, bool) {
    match *wanted {
        Allocation::Block(block) => (block, true),
        // Blocks are sorted by the slot at which they enter.
        Allocation::Failed { event, .. } => {
            (trace.blocks.partition_point(|b| b.enters <= event.0 + 1) as u32, false)
        }
    }
}

/// A [`BackwardSite`] by ids.
#[derive(Clone, Copy)]
struct Found {
    node: Option<u16>,
    forward: Option<(StackId, BackwardBasis)>,
}

impl Found {
    fn finish(self, parts: &StackParts) -> BackwardSite {
        BackwardSite {
            node: self.node.map(|node| parts.name(node).to_owned()),
            forward: self.forward.map(|(stack, _)| stack),
            basis: self.forward.map(|(_, basis)| basis),
        }
    }
}

/// Blocks of the forward pass of one size.
#[derive(Default)]
struct SizeClass {
    /// Blocks that backward has not visited, by the order of their allocs.
    unvisited: Vec<u32>,
    /// The pass that `site` and `has_one_site` are about.
    pass: u32,
    site: u64,
    has_one_site: bool,
}

/// The sweep over a window: the forward pass so far, and how far backward has come in it.
struct Pass<'a> {
    trace: &'a Trace,
    sites: &'a Sites,
    parts: &'a StackParts,
    /// The first block of the current forward pass.
    start: u32,
    /// The number of forward passes so far.
    number: u32,
    in_backward: bool,
    by_size: FxHashMap<u64, SizeClass>,
    /// Blocks of the current forward pass by size.
    nearest: BTreeMap<u64, u32>,
    /// Blocks whose operation is that of a node, by node.
    by_node: Vec<Vec<u32>>,
    /// The forward block of the last visited node. Backward only moves to earlier ones.
    visited: u32,
    /// The last visited node, with its forward block.
    last: Option<(u16, Option<u32>)>,
}

/// The allocator's granularity. A failed request is recorded after rounding to it.
const GRANULARITY: u64 = 512;

fn size_class(bytes: Bytes) -> u64 {
    bytes.0.div_ceil(GRANULARITY)
}

impl<'a> Pass<'a> {
    fn new(trace: &'a Trace, sites: &'a Sites, parts: &'a StackParts) -> Self {
        Self {
            trace,
            sites,
            parts,
            start: 0,
            number: 0,
            in_backward: false,
            by_size: FxHashMap::default(),
            nearest: BTreeMap::new(),
            by_node: vec![Vec::new(); parts.nodes()],
            visited: u32::MAX,
            last: None,
        }
    }

    /// Adds the next block. Returns its site if backward allocated it.
    fn visit(&mut self, index: u32, block: &Block) -> Option<Found> {
        if block.origin() != Origin::Alloc {
            return None;
        }
        match self.part(block.stack) {
            Part::Forward { starts_pass } => {
                self.forward(index, block, starts_pass);
                None
            }
            Part::Backward { node } => Some(self.backward(node, block.bytes, block.enters)),
            Part::Other => None,
        }
    }

    fn failed(&mut self, wanted: &Allocation) -> Option<Found> {
        let Allocation::Failed { event, bytes, stack } = *wanted else { return None };
        let Part::Backward { node } = self.part(stack) else { return None };
        Some(self.backward(node, bytes, event.0 + 1))
    }

    fn part(&self, stack: StackId) -> Part {
        match self.parts.get(stack) {
            // Without stacks in the window, a missing stack tells nothing.
            Part::Backward { .. }
                if stack == StackId::EMPTY && !self.trace.allocs_have_stacks() =>
            {
                Part::Other
            }
            part => part,
        }
    }

    fn forward(&mut self, index: u32, block: &Block, starts_pass: bool) {
        if self.in_backward && starts_pass {
            self.in_backward = false;
            self.start = index;
            self.number += 1;
            self.nearest.clear();
            self.visited = u32::MAX;
            self.last = None;
        }
        let (size, site) = (size_class(block.bytes), self.sites.get(block.stack).site_hash);
        let class = self.by_size.entry(size).or_default();
        if class.unvisited.is_empty() || class.pass != self.number {
            (class.pass, class.site, class.has_one_site) = (self.number, site, true);
        }
        class.has_one_site &= class.site == site;
        class.unvisited.push(index);
        self.nearest.insert(size, index);
        for node in self.parts.nodes_of(block.stack) {
            self.by_node[usize::from(node)].push(index);
        }
    }

    fn backward(&mut self, node: Option<u16>, bytes: Bytes, slot: u32) -> Found {
        self.in_backward = true;
        let size = size_class(bytes);
        let of_node = node.and_then(|node| self.of_node(node, slot));
        if node.is_none() {
            self.last = None;
        }
        let found = match of_node {
            Some(block) => {
                let has_size = size_class(self.trace.blocks[block as usize].bytes) == size;
                Some((
                    block,
                    if has_size { BackwardBasis::EqualBytes } else { BackwardBasis::GraphOrder },
                ))
            }
            None => self.of_size(size, slot).or_else(|| self.nearest(size)),
        };
        let forward = found.map(|(block, basis)| (self.trace.blocks[block as usize].stack, basis));
        Found { node, forward }
    }

    /// The forward block of a node: the latest of its operation that precedes those already
    /// visited. All allocations in a row with one node are from one visit.
    fn of_node(&mut self, node: u16, slot: u32) -> Option<u32> {
        if let Some((last, block)) = self.last
            && last == node
        {
            return block;
        }
        let blocks = &self.by_node[usize::from(node)];
        let before = blocks.partition_point(|&block| block < self.visited);
        let latest = before.checked_sub(1).map(|i| blocks[i]);
        let block = latest.filter(|&block| self.is_candidate(block, slot));
        self.visited = block.unwrap_or(self.visited);
        self.last = Some((node, block));
        block
    }

    /// The latest unvisited block of a size.
    fn of_size(&mut self, size: u64, slot: u32) -> Option<(u32, BackwardBasis)> {
        let mut class = self.by_size.remove(&size)?;
        let mut found = None;
        while found.is_none()
            && let Some(block) = class.unvisited.pop()
        {
            found = Some(block).filter(|&block| self.is_candidate(block, slot));
        }
        let is_only_line = class.has_one_site && class.pass == self.number;
        self.by_size.insert(size, class);
        let basis =
            if is_only_line { BackwardBasis::EqualBytes } else { BackwardBasis::GraphOrder };
        found.map(|block| (block, basis))
    }

    /// The block of the current forward pass that is nearest in size, at most twice or half as
    /// large.
    fn nearest(&self, size: u64) -> Option<(u32, BackwardBasis)> {
        let below = self.nearest.range(size.div_ceil(2)..=size).next_back();
        let above = self.nearest.range(size..=size.saturating_mul(2)).next();
        let nearest = [below, above].into_iter().flatten().min_by_key(|(s, _)| s.abs_diff(size));
        nearest.map(|(_, &block)| (block, BackwardBasis::NearestSize))
    }

    /// Whether a block is of the current forward pass, or still live.
    fn is_candidate(&self, block: u32, slot: u32) -> bool {
        block >= self.start || self.trace.blocks[block as usize].leaves > slot
    }
}

#[cfg(test)]
mod tests;
