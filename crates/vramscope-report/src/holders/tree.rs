//! Recorded blocks by what holds them: a root, then the first links of the chain.

use super::{HolderKind, alike, words};
use crate::Target;
use crate::sidecar::holders::{By, HeldBlock, Holders};
use rustc_hash::FxHashMap;

/// Links below a root that the tree tells apart.
const MAX_DEPTH: usize = 4;

/// The tree of what holds blocks.
#[derive(Debug, Default)]
pub(super) struct Tree {
    /// Parents come before their children.
    pub(super) nodes: Vec<Node>,
    /// The node of each recorded block.
    pub(super) of_entry: Vec<u32>,
}

/// A root or a link below it, with all items of a container as one.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) parent: Option<u32>,
    pub(super) kind: HolderKind,
    /// What a search calls it: `losses of train()`, `self.history[i] of fit()`. Empty for what no
    /// search finds.
    pub(super) path: String,
    /// The kind of the link that it is.
    pub(super) by: By,
    /// Its links.
    pub(super) links: Vec<u32>,
}

/// A node by what its links have in common: parent, kind and name.
type Key = (Option<u32>, HolderKind, String);

impl Tree {
    pub(super) fn new(holders: &Holders) -> Self {
        let mut tree = Self::default();
        let mut known: FxHashMap<Key, u32> = FxHashMap::default();
        for block in &holders.blocks {
            let node = tree.add(holders, block, &mut known);
            tree.of_entry.push(node);
        }
        tree
    }

    fn add(
        &mut self,
        holders: &Holders,
        block: &HeldBlock,
        known: &mut FxHashMap<Key, u32>,
    ) -> u32 {
        let kind = HolderKind::of(holders, block);
        let Some(link) = block.link.filter(|_| kind == HolderKind::Reference) else {
            let path = match kind {
                HolderKind::Cycle => "cycle",
                HolderKind::BelowPython => "below_python",
                HolderKind::Reference | HolderKind::Unread => "unread",
            };
            return self.node(None, kind, path.to_owned(), By::Reference, None, known);
        };
        let chain = holders.chain(link);
        let root = holders.link(chain[0]);
        let (name, of) = words::root_parts(root);
        let mut node = self.node(None, kind, format!("{name}{of}"), root.by, Some(chain[0]), known);
        let mut name = name;
        for &link in chain.iter().skip(1).take(MAX_DEPTH) {
            let of_link = holders.link(link);
            let step = match alike::index(of_link) {
                Some(_) => Some("[i]".to_owned()),
                None => words::step(of_link, None).map(|step| step.replace('"', "")),
            };
            match step {
                Some(step) => name.push_str(&step),
                // The name ends here.
                None => break,
            }
            let path = format!("{name}{of}");
            node = self.node(Some(node), kind, path, of_link.by, Some(link), known);
        }
        node
    }

    fn node(
        &mut self,
        parent: Option<u32>,
        kind: HolderKind,
        path: String,
        by: By,
        link: Option<u32>,
        known: &mut FxHashMap<Key, u32>,
    ) -> u32 {
        let next = self.nodes.len() as u32;
        let node = *known.entry((parent, kind, path.clone())).or_insert(next);
        if node == next {
            self.nodes.push(Node { parent, kind, path, by, links: Vec::new() });
        }
        let links = &mut self.nodes[node as usize].links;
        if let Some(link) = link.filter(|link| !links.contains(link)) {
            links.push(link);
        }
        node
    }

    /// A node and those above it.
    pub(super) fn above(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(Some(node), |&node| self.nodes[node as usize].parent)
    }
}

/// Whether each block of a device has a holder that a search names: `losses`, `losses of train()`,
/// `self.history`, `cycle`, `below_python`, `unread`. `wanted` is in lower case.
pub(crate) fn of_holder(target: Target<'_>, wanted: &str) -> Vec<bool> {
    let mut blocks = vec![false; target.trace().blocks.len()];
    let held = target.entry.held(target.index);
    let is_wanted = |node: u32| {
        let path = held.tree.nodes[node as usize].path.to_lowercase();
        path.strip_prefix(wanted)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '.', '[']))
    };
    let wanted: Vec<bool> = (0..held.tree.nodes.len() as u32).map(is_wanted).collect();
    for &(index, entry) in &held.blocks {
        let node = held.tree.of_entry[entry as usize];
        blocks[index as usize] = held.tree.above(node).any(|node| wanted[node as usize]);
    }
    blocks
}
