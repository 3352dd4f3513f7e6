//! `vramscope peak --by module`: memory by module, as names or call stacks tell.

mod layers;
mod link;
mod nesting;
mod paths;
mod tree;
mod visits;

pub(crate) use paths::of_module;
pub use paths::{ends_of, paths};
pub use tree::{ModuleBasis, Modules};

use crate::phases::{ByCategory, highest_peaks};
use crate::{Target, block_site, event_of, rank_of, slot_of};
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::cmp::Reverse;
use vramscope_inference::{Category, CategoryBytes, StepPhase};
use vramscope_trace::slicing::{Budget, now};
use vramscope_trace::{Block, group_by_key};

/// `vramscope.peak-module/1`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ModulesReport<'a> {
    /// The schema's name and version.
    pub schema: &'static str,
    /// The file's path.
    pub path: &'a str,
    /// The rank in the path; null if there is none.
    pub rank: Option<u32>,
    /// The device's ordinal.
    pub device: u32,
    /// The first event after which `requested_bytes` peaks; -1 is the state before the window.
    pub peak_event: i64,
    /// The event of `event_bytes`; null unless one is asked for.
    pub event: Option<i64>,
    /// The highest peaks of phases: the moments of `forward_bytes` and the like. Phases that the
    /// window does not have are left out.
    pub phases: Vec<PhaseMoment>,
    /// How modules are known, in sentences.
    pub text: Vec<String>,
    /// All blocks, with the modules below.
    pub root: ModuleRecord,
    /// The number of modules left out by `--limit`; absent if none are.
    #[serde(skip_serializing_if = "is_zero")]
    pub omitted: usize,
}

/// The highest peak of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PhaseMoment {
    /// `forward`, `backward` or `optimizer`.
    pub phase: &'static str,
    /// The first event of the peak; -1 is the state before the window.
    pub event: i64,
    /// `requested_bytes` after it.
    pub bytes: u64,
}

/// A module, a layer of it, or what is outside of modules.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ModuleRecord {
    /// The name: `mlp`, `gpt.py:31-32 forward`, `[3]`.
    pub name: String,
    /// The names from the outermost module, separated by ` / `; empty for all blocks.
    pub path: String,
    /// `recorded` or `inferred`; null for what is no module.
    pub basis: Option<&'static str>,
    /// The line that calls the module; absent if none is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub called_at: Option<String>,
    /// The line that builds the module; absent if none is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub built_at: Option<String>,
    /// The number of layers; absent if the module is not split into layers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layers: Option<u32>,
    /// Why a module that is called several times is not split; absent if it is called once or
    /// split.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_split: Option<&'static str>,
    /// Requested bytes at the peak, those of `children` included.
    pub bytes: u64,
    /// Blocks at the peak.
    pub blocks: u32,
    /// Requested bytes at the event; absent unless one is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_bytes: Option<u64>,
    /// Bytes at the peak by category.
    pub categories: ByCategory,
    /// Bytes at the highest peak of forward; null if the window has no forward.
    pub forward_bytes: Option<u64>,
    /// The same of backward.
    pub backward_bytes: Option<u64>,
    /// The same of the optimizer.
    pub optimizer_bytes: Option<u64>,
    /// Call sites of the blocks at the peak that are in none of the children, most bytes first.
    pub sites: Vec<ModuleSite>,
    /// The modules in it that have bytes at one of these moments, most bytes at the peak first.
    pub children: Vec<ModuleRecord>,
}

/// The blocks of a call site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ModuleSite {
    /// The call site.
    pub site: String,
    /// Bytes at the peak.
    pub bytes: u64,
    /// Blocks at the peak.
    pub blocks: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// The phases with a column of their own.
pub const PHASES: [StepPhase; 3] = [StepPhase::Forward, StepPhase::Backward, StepPhase::Optimizer];

/// What a node holds.
#[derive(Clone, Copy, Debug, Default)]
pub struct NodeSum {
    /// Bytes at the peak.
    pub bytes: u64,
    /// Blocks at the peak.
    pub blocks: u32,
    /// Bytes at the event.
    pub event_bytes: u64,
    /// Bytes at the peak by category.
    pub categories: CategoryBytes,
    /// Bytes at the highest peak of each of [`PHASES`].
    pub phases: [u64; PHASES.len()],
}

impl NodeSum {
    fn add(&mut self, other: &Self) {
        self.bytes += other.bytes;
        self.blocks += other.blocks;
        self.event_bytes += other.event_bytes;
        for (sum, more) in self.categories.iter_mut().zip(other.categories) {
            *sum += more;
        }
        for (sum, more) in self.phases.iter_mut().zip(other.phases) {
            *sum += more;
        }
    }

    /// Whether the node has bytes at any of the moments.
    pub fn has_bytes(&self) -> bool {
        self.blocks > 0 || self.event_bytes > 0 || self.phases.iter().any(|&bytes| bytes > 0)
    }
}

/// What the nodes of a device's modules hold.
pub struct ModuleSums {
    /// By node, those of the nodes below included.
    pub sums: Vec<NodeSum>,
    /// The nodes below each node that have bytes, most bytes at the peak first.
    pub children: Vec<Vec<u32>>,
    /// The moments of the phases.
    pub phases: [Option<PhaseMoment>; PHASES.len()],
}

impl ModuleSums {
    /// Adds up the blocks that are live at the peak, in a slot, and at the peaks of phases.
    pub async fn new(target: Target<'_>, event: Option<u32>, budget: &mut Budget) -> Self {
        let (trace, modules) = (target.trace(), target.entry.modules(target.index));
        let categories = target.entry.categories(target.index);
        let peak = slot_of(trace.requested_band.peak_event);
        let highest = highest_peaks(target, budget).await;
        let phases = PHASES.map(|phase| {
            let (_, slot, bytes) = *highest.iter().find(|(of, ..)| *of == phase)?;
            Some(PhaseMoment { phase: phase.name(), event: event_of(slot), bytes })
        });
        let slots = phases.map(|moment| moment.map(|moment| (moment.event + 1) as u32));
        let mut sums = vec![NodeSum::default(); modules.len()];
        let visit = |index, block: &Block| {
            let sum = &mut sums[modules.of_block[index as usize] as usize];
            let bytes = block.bytes.0;
            if block.is_live_at(peak) {
                sum.bytes += bytes;
                sum.blocks += 1;
                sum.categories[categories.get(index).category as usize] += bytes;
            }
            if event.is_some_and(|slot| block.is_live_at(slot)) {
                sum.event_bytes += bytes;
            }
            for (sum, slot) in sum.phases.iter_mut().zip(slots) {
                if slot.is_some_and(|slot| block.is_live_at(slot)) {
                    *sum += bytes;
                }
            }
        };
        trace.each_block(3, budget, visit).await;
        let mut children: Vec<Vec<u32>> = vec![Vec::new(); modules.len()];
        for node in (1..modules.len() as u32).rev() {
            let (sum, parent) = (sums[node as usize], modules.parent(node) as usize);
            sums[parent].add(&sum);
            if sum.has_bytes() {
                children[parent].push(node);
            }
        }
        for nodes in &mut children {
            nodes.sort_by_key(|&node| (Reverse(sums[node as usize].bytes), node));
        }
        Self { sums, children, phases }
    }
}

/// The modules of a device. `event` is the slot of `event_bytes`. A node has at most `limit`
/// children, without one all.
pub fn modules(target: Target<'_>, event: Option<u32>, limit: Option<usize>) -> ModulesReport<'_> {
    let sums = now(async |budget| ModuleSums::new(target, event, budget).await);
    let mut maker = Maker { target, sums: &sums, event, limit, sites: sites(target), omitted: 0 };
    let root = maker.record(0, String::new());
    ModulesReport {
        schema: "vramscope.peak-module/1",
        path: target.path,
        rank: rank_of(target.path),
        device: target.device(),
        peak_event: event_of(slot_of(target.trace().requested_band.peak_event)),
        event: event.map(event_of),
        phases: sums.phases.into_iter().flatten().collect(),
        text: basis_text(target.entry.modules(target.index)),
        omitted: maker.omitted,
        root,
    }
}

/// The call sites of the blocks at the peak, by node. Each has bytes and blocks.
fn sites(target: Target<'_>) -> FxHashMap<u32, Vec<ModuleSite>> {
    let (trace, modules) = (target.trace(), target.entry.modules(target.index));
    let peak = slot_of(trace.requested_band.peak_event);
    // Many blocks share a stack, whose site is found once.
    let mut known: FxHashMap<_, (u32, u64, u32)> = FxHashMap::default();
    for (index, block) in (0u32..).zip(&trace.blocks) {
        if block.is_live_at(peak) {
            let stack = target.entry.sites.same_line(block.stack);
            let key = (modules.of_block[index as usize], stack, trace.no_stack(block));
            let (_, bytes, blocks) = known.entry(key).or_insert((index, 0, 0));
            (*bytes, *blocks) = (*bytes + block.bytes.0, *blocks + 1);
        }
    }
    let named = known.into_iter().map(|((node, ..), (block, bytes, blocks))| {
        ((node, block_site(target, &trace.blocks[block as usize])), (bytes, blocks))
    });
    let mut sites: FxHashMap<u32, Vec<ModuleSite>> = FxHashMap::default();
    for ((node, site), rows) in group_by_key(named.collect()) {
        let bytes = rows.iter().map(|row| row.0).sum();
        let blocks = rows.iter().map(|row| row.1).sum();
        sites.entry(node).or_default().push(ModuleSite { site, bytes, blocks });
    }
    sites
}

struct Maker<'a> {
    target: Target<'a>,
    sums: &'a ModuleSums,
    event: Option<u32>,
    limit: Option<usize>,
    sites: FxHashMap<u32, Vec<ModuleSite>>,
    omitted: usize,
}

impl Maker<'_> {
    fn record(&mut self, node: u32, path: String) -> ModuleRecord {
        let modules = self.target.entry.modules(self.target.index);
        let sum = &self.sums.sums[node as usize];
        let children = &self.sums.children[node as usize];
        let shown = children.len().min(self.limit.unwrap_or(usize::MAX));
        self.omitted += children.len() - shown;
        let children = children[..shown].iter().map(|&child| {
            let name = modules.name(self.target, child);
            let path = if path.is_empty() { name } else { format!("{path} / {name}") };
            self.record(child, path)
        });
        let children = children.collect();
        let phase = |at: usize| self.sums.phases[at].map(|_| sum.phases[at]);
        let (called_at, built_at) = modules.lines(self.target, node);
        let mut sites = self.sites.remove(&node).unwrap_or_default();
        sites.sort_by_key(|site| Reverse(site.bytes));
        ModuleRecord {
            name: modules.name(self.target, node),
            path,
            basis: modules.basis(node).map(ModuleBasis::name),
            called_at,
            built_at,
            layers: modules.layers(node),
            not_split: modules.not_split(node),
            bytes: sum.bytes,
            blocks: sum.blocks,
            event_bytes: self.event.map(|_| sum.event_bytes),
            categories: ByCategory(sum.categories),
            forward_bytes: phase(0),
            backward_bytes: phase(1),
            optimizer_bytes: phase(2),
            sites,
            children,
        }
    }
}

/// How modules are known, in sentences.
pub fn basis_text(modules: &Modules) -> Vec<String> {
    let mut text = Vec::new();
    if modules.are_named() {
        text.push(
            "The file beside the snapshot names the modules of parameters, buffers, gradients and \
             optimizer states."
                .to_owned(),
        );
    }
    if modules.are_inferred() {
        text.push(
            "Modules are inferred from call stacks. Numbers in brackets are the order of calls."
                .to_owned(),
        );
    }
    if modules.are_named() && modules.are_inferred() {
        text.push("Nothing links the names with the call stacks, so both are listed.".to_owned());
    }
    if text.is_empty() {
        text.push(
            "No call stack of this recording has a call of a module, and no file beside it names \
             modules."
                .to_owned(),
        );
    }
    text
}

/// The categories with bytes, most bytes first.
pub fn categories_of(sum: &NodeSum) -> Vec<(Category, u64)> {
    let mut rows: Vec<(Category, u64)> =
        Category::ALL.iter().copied().zip(sum.categories).filter(|row| row.1 > 0).collect();
    rows.sort_by_key(|row| Reverse(row.1));
    rows
}
