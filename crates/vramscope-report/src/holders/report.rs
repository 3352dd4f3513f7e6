//! `vramscope peak --by holder`: what holds the memory of a moment, and what drops free.

use super::tree::Node;
use super::{Held, HolderKind, NO_GRAPHS, alike, missing, words};
use crate::sidecar::holders::{By, HeldBlock, Holders};
use crate::{CategoryShare, Target, by_category, event_of, rank_of, row_category, slot_of};
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::cmp::Reverse;
use vramscope_inference::Category;
use vramscope_trace::slicing::{Budget, now, strides};

/// Rows below a root with a smaller part of all bytes, as its divisor, are left out.
const MIN_SHARE: u64 = 20;
/// A node with more keys is a cache or a table of states: its keys say little.
const MAX_KEYS: usize = 8;
/// The maximum number of drops.
const MAX_DROPS: usize = 60;

/// `vramscope.peak-holder/1`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HoldersReport<'a> {
    /// The schema's name and version.
    pub schema: &'static str,
    /// The file's path.
    pub path: &'a str,
    /// The rank in the path; null if there is none.
    pub rank: Option<u32>,
    /// The device's ordinal.
    pub device: u32,
    /// The event of the moment: by default the first after which `requested_bytes` peaks; -1 is the
    /// state before the window.
    pub event: i64,
    /// `requested_bytes` after it.
    pub bytes: u64,
    /// Bytes of blocks that a named reference holds.
    pub held_bytes: u64,
    /// False where not all references were read: drops free at most their bytes. Null if
    /// no holders are recorded.
    pub complete: Option<bool>,
    /// False where autograd graphs and gradients were not read. Null if no holders are recorded.
    pub graph: Option<bool>,
    /// The blocks by what holds them: each root with most bytes first, followed by parts of it.
    pub rows: Vec<HolderRow>,
    /// The number of roots left out by `--limit`; absent if none are.
    #[serde(skip_serializing_if = "is_zero")]
    pub omitted: usize,
    /// What dropping references frees at the end, as a tree: a row is followed by the rows that are
    /// within it.
    pub drops: Vec<DropRecord>,
    /// What limits the answer, in sentences.
    pub text: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Blocks with one holder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HolderRow {
    /// `local "losses" (list of 12) of train(), train.py:42`, a part of it such as `losses[0..11]`,
    /// or why no reference is named.
    pub holder: String,
    /// `reference`, `cycle`, `below_python`, `unread`, `freed` (before the end, which the recorder
    /// saw), `not_listed` (too small to be recorded), or `not_recorded` (no holders are recorded).
    pub kind: &'static str,
    /// The number of rows around it.
    pub depth: u32,
    /// The search for its blocks; null if none finds them.
    pub search: Option<String>,
    /// The category, or `mixed`.
    pub category: &'static str,
    /// Requested bytes.
    pub bytes: u64,
    /// Blocks.
    pub blocks: u32,
    /// Bytes of its blocks that are live at the end.
    pub end_bytes: u64,
    /// What dropping this reference alone frees; null if that is not known.
    pub frees_bytes: Option<u64>,
    /// The categories, most bytes first.
    #[serde(skip)]
    pub categories: Vec<CategoryShare>,
}

/// What dropping references frees.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DropRecord {
    /// The references: `local "losses" (list of 12) of train(), train.py:42`, `losses[0..11]`.
    pub text: String,
    /// The number of references that are dropped.
    pub references: u32,
    /// Freed bytes.
    pub bytes: u64,
    /// Freed blocks.
    pub blocks: u64,
    /// The number of rows that it is within.
    pub depth: u32,
}

/// Sums of the blocks of a node.
#[derive(Clone, Default)]
struct Sum {
    blocks: u32,
    bytes: u64,
    end: u64,
    categories: Vec<(Category, u64)>,
}

impl Sum {
    fn add(&mut self, category: Category, bytes: u64, is_live: bool, is_at_end: bool) {
        if is_live {
            self.blocks += 1;
            self.bytes += bytes;
            self.categories.push((category, bytes));
        }
        if is_at_end {
            self.end += bytes;
        }
    }
}

/// What holds the blocks that are live at the peak of `requested_bytes`.
pub fn holders_of(target: Target<'_>, limit: Option<usize>) -> HoldersReport<'_> {
    holders_at(target, slot_of(target.trace().requested_band.peak_event), limit)
}

/// What holds the blocks that are live in a slot.
pub fn holders_at(target: Target<'_>, slot: u32, limit: Option<usize>) -> HoldersReport<'_> {
    now(async |budget| report(target, slot, false, limit, budget).await)
}

/// Why blocks have no node.
const FREED: usize = 0;
const NOT_LISTED: usize = 1;

/// What holds the blocks that are live in a slot. With `and_end`, also what holds only blocks that
/// are live at the end. Categories must be derived before.
pub async fn report<'a>(
    target: Target<'a>,
    slot: u32,
    and_end: bool,
    limit: Option<usize>,
    budget: &mut Budget,
) -> HoldersReport<'a> {
    let trace = target.trace();
    let holders = target.entry.holders();
    let held = target.entry.held(target.index);
    let categories = target.entry.categories(target.index);
    let mut of_node: Vec<Sum> = vec![Sum::default(); held.tree.nodes.len()];
    let mut others = [Sum::default(), Sum::default()];
    let mut next = held.blocks.iter().peekable();
    let mut total = 0u64;
    for part in strides(trace.blocks.len()) {
        budget.charge(2 * part.len() as u64).await;
        for (index, block) in (part.start as u32..).zip(&trace.blocks[part]) {
            let recorded = next.next_if(|&&(of, _)| of == index);
            let (is_live, is_at_end) = (block.is_live_at(slot), block.leaves == trace.slots());
            if !is_live && recorded.is_none() {
                continue;
            }
            let bytes = block.bytes.0;
            total += if is_live { bytes } else { 0 };
            let category = categories.get(index).category;
            match recorded {
                Some(&(_, entry)) => {
                    for node in held.tree.above(held.tree.of_entry[entry as usize]) {
                        of_node[node as usize].add(category, bytes, is_live, is_at_end);
                    }
                }
                None => {
                    let why = if is_at_end { NOT_LISTED } else { FREED };
                    others[why].add(category, bytes, is_live, is_at_end);
                }
            }
        }
    }
    let all = Rows { holders, held, sums: of_node, total, and_end };
    let (mut rows, omitted) = all.rows(limit.unwrap_or(usize::MAX));
    let held_bytes = all.held_bytes();
    if holders.is_none() {
        // Nothing tells why.
        let [mut all, other] = others;
        all.blocks += other.blocks;
        all.bytes += other.bytes;
        all.end += other.end;
        all.categories.extend(other.categories);
        rows.extend((all.blocks > 0).then(|| row(all, "not known".to_owned(), "not_recorded")));
    } else {
        rows.extend(
            others
                .into_iter()
                .zip([
                    ("freed", "not known: freed before the end"),
                    ("not_listed", "not known: too small to be recorded"),
                ])
                .filter(|(sum, _)| sum.blocks > 0)
                .map(|(sum, (kind, words))| row(sum, words.to_owned(), kind)),
        );
    }
    HoldersReport {
        schema: "vramscope.peak-holder/1",
        path: target.path,
        rank: rank_of(target.path),
        device: target.device(),
        event: event_of(slot),
        bytes: total,
        held_bytes,
        complete: holders.map(Holders::is_whole),
        graph: holders.map(|holders| holders.graph),
        rows,
        omitted,
        drops: holders.map(|holders| drops(holders, target.device())).unwrap_or_default(),
        text: text(holders),
    }
}

/// What limits the answer.
pub(super) fn text(holders: Option<&Holders>) -> Vec<String> {
    let Some(holders) = holders else {
        return vec![
            "No file beside the snapshot tells what holds memory. `vramscope record` writes it."
                .to_owned(),
        ];
    };
    let sentence = |text: &str| {
        let (first, rest) = text.split_at(1);
        format!("{}{rest}.", first.to_uppercase())
    };
    let bounds = missing(holders).map(|why| {
        sentence(&format!("{why}: drops free at most their bytes, and nothing is said of garbage"))
    });
    bounds.into_iter().chain((!holders.graph).then(|| sentence(NO_GRAPHS))).collect()
}

fn row(sum: Sum, holder: String, kind: &'static str) -> HolderRow {
    let categories = by_category(sum.categories.into_iter());
    HolderRow {
        holder,
        kind,
        depth: 0,
        search: None,
        category: row_category(&categories).unwrap_or_default(),
        bytes: sum.bytes,
        blocks: sum.blocks,
        end_bytes: sum.end,
        frees_bytes: None,
        categories,
    }
}

/// The rows of a tree.
struct Rows<'a> {
    holders: Option<&'a Holders>,
    held: &'a Held,
    sums: Vec<Sum>,
    total: u64,
    and_end: bool,
}

impl Rows<'_> {
    fn node(&self, node: u32) -> &Node {
        &self.held.tree.nodes[node as usize]
    }

    fn bytes(&self, node: u32) -> u64 {
        self.sums[node as usize].bytes
    }

    /// What a node counts in the order of rows.
    fn weight(&self, node: u32) -> u64 {
        let Sum { bytes, end, .. } = &self.sums[node as usize];
        if self.and_end { *bytes.max(end) } else { *bytes }
    }

    fn held_bytes(&self) -> u64 {
        let nodes = 0..self.held.tree.nodes.len() as u32;
        let is_held = |node: &u32| {
            let of = self.node(*node);
            of.parent.is_none() && of.kind == HolderKind::Reference
        };
        nodes.filter(is_held).map(|node| self.bytes(node)).sum()
    }

    /// The rows of the first roots with most bytes, and the number of those left out.
    fn rows(&self, limit: usize) -> (Vec<HolderRow>, usize) {
        let mut children: FxHashMap<Option<u32>, Vec<u32>> = FxHashMap::default();
        for node in 0..self.held.tree.nodes.len() as u32 {
            if self.weight(node) > 0 {
                children.entry(self.node(node).parent).or_default().push(node);
            }
        }
        let sorted = |parent: Option<u32>| {
            let mut all = children.get(&parent).cloned().unwrap_or_default();
            if all.iter().filter(|&&node| self.node(node).by == By::Key).count() > MAX_KEYS {
                return Vec::new();
            }
            // References first: the rest is not known.
            all.sort_by_key(|&node| (self.node(node).kind, Reverse(self.weight(node)), node));
            all
        };
        let roots = sorted(None);
        let omitted = roots.len().saturating_sub(limit);
        let mut rows = Vec::new();
        for root in roots.into_iter().take(limit) {
            let mut open: Vec<(u32, u32)> = vec![(root, 0)];
            while let Some((node, depth)) = open.pop() {
                // A part that is nearly all of its whole has no row of its own.
                let (mut inner, mut below) = (node, sorted(Some(node)));
                let mut whole = node;
                while let Some(&first) = below.first()
                    && self.weight(first) / 19 >= self.weight(whole) / 20
                {
                    whole = first;
                    if self.weight(first) == self.weight(node) {
                        inner = first;
                    }
                    below = sorted(Some(first));
                }
                rows.push(self.row(node, inner, depth));
                let is_large =
                    |&child: &u32| self.weight(child).saturating_mul(MIN_SHARE) >= self.total;
                open.extend(below.into_iter().filter(is_large).rev().map(|one| (one, depth + 1)));
            }
        }
        (rows, omitted)
    }

    /// The row of a node whose blocks are those of `inner`, a node in it.
    fn row(&self, node: u32, inner: u32, depth: u32) -> HolderRow {
        let of = self.node(node);
        let (kind, words) = match of.kind {
            HolderKind::Reference => ("reference", self.words(node, inner)),
            HolderKind::Cycle => ("cycle", "only cycles, gc.collect() frees them".to_owned()),
            HolderKind::BelowPython => {
                ("below_python", "below Python (autograd, CUDA graphs, libraries)".to_owned())
            }
            HolderKind::Unread => ("unread", "not known: not looked at".to_owned()),
        };
        let frees = self.holders.and_then(|holders| {
            let is_it = |links: &[u32]| links.len() == 1 && of.links == links;
            holders.drops.iter().find(|row| is_it(&row.links)).map(|row| row.bytes)
        });
        HolderRow {
            depth,
            search: Some(format!("holder:{}", of.path)),
            frees_bytes: frees,
            ..row(self.sums[node as usize].clone(), words, kind)
        }
    }

    /// A reference in words, with the attribute or key in it that has all of its bytes.
    fn words(&self, node: u32, inner: u32) -> String {
        let (Some(holders), of) = (self.holders, self.node(node)) else { return String::new() };
        let way = |node: u32, has_type: bool| {
            let of = self.node(node);
            let ranges = alike::ranges(holders, &of.links);
            let chain = holders.chain(of.links[0]);
            let way = words::way(holders, &chain, &ranges);
            match of.links[..] {
                [only] if has_type => way + &words::in_brackets(holders.link(only)),
                _ => way,
            }
        };
        let root = holders.link(of.links[0]);
        let is_named = |node: &u32| matches!(self.node(*node).by, By::Attribute | By::Key);
        let named = self.held.tree.above(inner).take_while(|&of| of != node).find(is_named);
        match (of.parent, named) {
            (None, Some(named)) => words::part_of_root(root, &way(named, false)),
            (None, None) => words::root(root, false),
            (Some(_), named) => way(named.unwrap_or(node), true),
        }
    }
}

/// What drops free, as a tree, those with most bytes first.
pub(super) fn drops(holders: &Holders, device: u32) -> Vec<DropRecord> {
    // Rows that free blocks of this device. What was noted earlier may be gone.
    let mut has_blocks = vec![false; holders.drops.len()];
    let is_listed = |block: &&HeldBlock| block.device == device && !block.noted;
    for block in holders.blocks.iter().filter(is_listed) {
        for row in block.drop.iter().flat_map(|&row| holders.around(row)) {
            has_blocks[row as usize] = true;
        }
    }
    let mut within: FxHashMap<Option<u32>, Vec<u32>> = FxHashMap::default();
    for row in (0..holders.drops.len() as u32).filter(|&row| has_blocks[row as usize]) {
        within.entry(holders.drops[row as usize].within).or_default().push(row);
    }
    // Rows that differ by the indices of items alone are one.
    let alike = |parents: &[Option<u32>]| -> Vec<Vec<u32>> {
        let mut groups: Vec<Vec<u32>> = Vec::new();
        let mut known: FxHashMap<u64, usize> = FxHashMap::default();
        for &row in parents.iter().filter_map(|parent| within.get(parent)).flatten() {
            let group = match holders.drops[row as usize].links[..] {
                [only] => *known.entry(alike::pattern(holders, only)).or_insert(groups.len()),
                _ => groups.len(),
            };
            if group == groups.len() {
                groups.push(Vec::new());
            }
            groups[group].push(row);
        }
        groups.sort_by_key(|rows| (Reverse(freed(holders, rows)), rows[0]));
        groups
    };
    let mut open: Vec<(Vec<u32>, u32)> =
        alike(&[None]).into_iter().rev().map(|rows| (rows, 0)).collect();
    let mut records = Vec::new();
    while let Some((rows, depth)) = open.pop() {
        if records.len() == MAX_DROPS {
            break;
        }
        let parents: Vec<Option<u32>> = rows.iter().map(|&row| Some(row)).collect();
        let mut inner = alike(&parents);
        // Items that are all of a list say no more than the list.
        if let [only] = &inner[..]
            && freed(holders, only) == freed(holders, &rows)
        {
            inner = alike(&only.iter().map(|&row| Some(row)).collect::<Vec<_>>());
        }
        open.extend(inner.into_iter().rev().map(|rows| (rows, depth + 1)));
        let blocks = rows.iter().map(|&row| holders.drops[row as usize].blocks);
        records.push(DropRecord {
            text: words_of(holders, &rows, depth),
            references: rows
                .iter()
                .map(|&row| holders.drops[row as usize].links.len() as u32)
                .sum(),
            bytes: freed(holders, &rows),
            blocks: blocks.fold(0, u64::saturating_add),
            depth,
        });
    }
    records
}

fn freed(holders: &Holders, rows: &[u32]) -> u64 {
    rows.iter().map(|&row| holders.drops[row as usize].bytes).fold(0, u64::saturating_add)
}

/// The references of alike rows.
fn words_of(holders: &Holders, rows: &[u32], depth: u32) -> String {
    let links = &holders.drops[rows[0] as usize].links;
    match links[..] {
        [root] if holders.link(root).from.is_none() && depth == 0 => {
            words::root(holders.link(root), false)
        }
        [_] => {
            let all: Vec<u32> =
                rows.iter().flat_map(|&row| holders.drops[row as usize].links.clone()).collect();
            words::reference(holders, all[0], &alike::ranges(holders, &all), depth == 0)
        }
        _ => words::references(holders, links),
    }
}

impl HoldersReport<'_> {
    /// Whether `drops` says more than the rows do, each with what dropping it frees: references
    /// within others, or several that must be dropped together.
    pub fn has_tree(&self) -> bool {
        self.drops.iter().any(|row| row.depth > 0 || row.references > 1)
    }
}
