//! What is said about allocations of backward: their node, and the forward line whose backward they
//! belong to.

use crate::frames::site;
use crate::target::Target;
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::cmp::Reverse;
use vramscope_inference::{Allocation, BackwardBasis, BackwardSite, backward_site, backward_sites};
use vramscope_trace::NoStack;
use vramscope_trace::group_by_key;
use vramscope_trace::slicing::Budget;

/// The place of an allocation in backward.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BackwardRecord {
    /// The node of the autograd graph; null without C++ frames.
    pub node: Option<String>,
    /// The call site in the forward pass whose backward it is; null if none is likely.
    pub forward: Option<String>,
    /// The evidence for `forward`: `equal_bytes`, `graph_order` or `nearest_size`; null without
    /// one.
    pub basis: Option<BackwardBasis>,
}

/// The distinct places in backward of a report's rows. A row refers to its place by index, because
/// many rows have equal places.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct BackwardTable {
    places: Vec<BackwardRecord>,
    #[serde(skip)]
    indices: FxHashMap<BackwardRecord, u32>,
}

impl BackwardTable {
    /// The index of a place, which is added if it is new.
    pub fn add(&mut self, place: BackwardRecord) -> u32 {
        *self.indices.entry(place).or_insert_with_key(|place| {
            self.places.push(place.clone());
            (self.places.len() - 1) as u32
        })
    }
}

impl BackwardRecord {
    fn new(target: Target<'_>, found: BackwardSite) -> Self {
        let forward = found.forward.map(|stack| site(target.entry, stack));
        Self { node: found.node, forward, basis: found.basis }
    }

    /// The forward line in words, with its evidence: `gpt.py:44 forward (equal bytes)`. `None`
    /// without a line.
    pub fn text(&self) -> Option<String> {
        let basis = match self.basis? {
            BackwardBasis::EqualBytes => "equal bytes",
            BackwardBasis::GraphOrder => "order of the autograd graph",
            BackwardBasis::NearestSize => "nearest size, a guess",
        };
        Some(format!("{} ({basis})", self.forward.as_ref()?))
    }
}

/// Blocks with one place in backward.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BackwardShare {
    /// The place.
    #[serde(flatten)]
    pub site: BackwardRecord,
    /// Bytes.
    pub bytes: u64,
    /// Blocks.
    pub blocks: u32,
}

/// The record of a block; `None` if it is not known to be backward's.
pub fn of_block(target: Target<'_>, block: u32) -> Option<BackwardRecord> {
    let allocation = Allocation::Block(block);
    let found = backward_site(target.snapshot(), target.trace(), &target.entry.sites, allocation)?;
    Some(BackwardRecord::new(target, found))
}

/// The records of blocks, in their order.
pub async fn of_blocks(
    target: Target<'_>,
    blocks: impl Iterator<Item = u32>,
    budget: &mut Budget,
) -> Vec<Option<BackwardRecord>> {
    let wanted: Vec<Allocation> = blocks.map(Allocation::Block).collect();
    let (snapshot, trace, sites) = (target.snapshot(), target.trace(), &target.entry.sites);
    let found = backward_sites(snapshot, trace, sites, &wanted, budget).await;
    found.into_iter().map(|site| site.map(|site| BackwardRecord::new(target, site))).collect()
}

/// Sums blocks, given with their rows and bytes, by row and place. Most bytes come first in a row.
pub async fn shares(
    target: Target<'_>,
    blocks: &[(usize, u32, u64)],
    rows: usize,
    budget: &mut Budget,
) -> Vec<Vec<BackwardShare>> {
    let found = of_blocks(target, blocks.iter().map(|&(_, block, _)| block), budget).await;
    let mut sites: Vec<((usize, BackwardRecord), u64)> = Vec::new();
    for (&(row, _, bytes), site) in blocks.iter().zip(found) {
        let Some(site) = site else { continue };
        sites.push(((row, site), bytes));
    }
    let mut of_rows = vec![Vec::new(); rows];
    for ((row, site), of) in group_by_key(sites) {
        let (bytes, blocks) = (of.iter().fold(0u64, |sum, b| sum.saturating_add(*b)), of.len());
        let blocks = blocks as u32;
        of_rows[row].push(BackwardShare { site, bytes, blocks });
    }
    for row in &mut of_rows {
        row.sort_by_key(|share| Reverse(share.bytes));
    }
    of_rows
}

/// The label of a row of backward's blocks: `LogSoftmaxBackward0 (backward of gpt.py:44 forward)`.
///
/// `label` is the call site of the row, and `no_stack` why it has no call stack.
pub fn row_label(label: String, no_stack: Option<NoStack>, shares: &[BackwardShare]) -> String {
    // Without stacks, one row has all of backward.
    let likely = |share: &&BackwardShare| share.site.basis < Some(BackwardBasis::NearestSize);
    let lines = shares.iter().filter(likely).filter_map(|share| share.site.forward.as_ref());
    let mut lines: Vec<&String> = lines.collect();
    let Some(&largest) = lines.first().filter(|_| no_stack.is_none()) else { return label };
    lines.sort();
    lines.dedup();
    match lines.len() - 1 {
        0 => format!("{label} (backward of {largest})"),
        1 => format!("{label} (backward of {largest} and 1 more line)"),
        more => format!("{label} (backward of {largest} and {more} more lines)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(forward: &str, basis: BackwardBasis, bytes: u64) -> BackwardShare {
        let node = Some("MulBackward0".to_owned());
        let site = BackwardRecord { node, forward: Some(forward.to_owned()), basis: Some(basis) };
        BackwardShare { site, bytes, blocks: 1 }
    }

    #[test]
    fn row_label_names_the_line_with_most_bytes() {
        let [equal, order, nearest] =
            [BackwardBasis::EqualBytes, BackwardBasis::GraphOrder, BackwardBasis::NearestSize];
        let label = |shares: &[BackwardShare]| row_label("Mul".to_owned(), None, shares);
        let [a, b] = [share("a.py:1 f", equal, 9), share("b.py:2 f", order, 5)];
        assert_eq!(label(&[]), "Mul");
        assert_eq!(label(std::slice::from_ref(&a)), "Mul (backward of a.py:1 f)");
        assert_eq!(label(&[share("a.py:1 f", nearest, 9)]), "Mul");
        let two = [a.clone(), share("a.py:1 f", order, 7), b.clone()];
        assert_eq!(label(&two), "Mul (backward of a.py:1 f and 1 more line)");
        let three = [a, b, share("c.py:3 f", order, 1)];
        assert_eq!(label(&three), "Mul (backward of a.py:1 f and 2 more lines)");
        let without = Some(NoStack::Backward);
        assert_eq!(row_label("(backward)".to_owned(), without, &three), "(backward)");
    }

    #[test]
    fn text_has_the_evidence() {
        let text = |basis| share("a.py:1 f", basis, 1).site.text();
        assert_eq!(text(BackwardBasis::EqualBytes).as_deref(), Some("a.py:1 f (equal bytes)"));
        let nearest = "a.py:1 f (nearest size, a guess)";
        assert_eq!(text(BackwardBasis::NearestSize).as_deref(), Some(nearest));
        let none = BackwardRecord { node: None, forward: None, basis: None };
        assert_eq!(none.text(), None);
    }
}
