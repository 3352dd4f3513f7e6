//! The table of modules: rows of a tree, and the search for a module's blocks.

use super::lru_cache::LruCache;
use super::shares::{category_label, fraction};
use super::subject::Subject;
use crate::messages::DeviceRef;
use crate::messages::views::{ModulePage, ModuleRow, ModuleSpec, ShapeSum};
use crate::scheduler::SLICE;
use rustc_hash::FxHashMap;
use std::ops::Range;
use vramscope_layout::Color;
use vramscope_report::modules::{ModuleSums, basis_text, categories_of, ends_of, paths};
use vramscope_report::shapes::{legend_texts, shapes};
use vramscope_report::{Quantity, Target, slot_after};
use vramscope_trace::name_hash;
use vramscope_trace::slicing::{Budget, strides};
use vramscope_units::{Bytes, grouped};

/// Shapes in the list.
const MAX_SHAPES: usize = 12;
/// Rows of a page.
const MAX_PAGE_ROWS: u32 = 500;

/// The most recently used sums, by the event of the cursor.
pub(crate) struct Tables(LruCache<(DeviceRef, Option<i64>), Tree>);

impl Default for Tables {
    fn default() -> Self {
        Self(LruCache::new(2))
    }
}

/// The sums of modules, and what a search calls them.
struct Tree {
    sums: ModuleSums,
    /// The path of each module.
    paths: Vec<String>,
    /// The number of modules whose path ends with each end of a path.
    ends: FxHashMap<u64, u32>,
    dims: Vec<String>,
    refused: String,
    shapes: Vec<ShapeSum>,
}

async fn tree(on: Subject, (_, event): (DeviceRef, Option<i64>)) -> Tree {
    Tree::new(on.at(), event, &mut Budget::of(SLICE)).await
}

impl Tables {
    /// A page of at most [`MAX_PAGE_ROWS`] rows. Runs a slice of computing the sums; `None` until
    /// they are complete.
    pub(crate) fn page(
        &mut self,
        on: &Subject,
        spec: &ModuleSpec,
        rows: Range<u32>,
    ) -> Option<ModulePage> {
        let at = on.at();
        let tree = self.0.poll((on.device, spec.event), |key| tree(on.clone(), key))?;
        let open = spec.open.clone().unwrap_or_else(|| tree.usual(at));
        let listed = tree.listed(&open);
        let total = listed.len() as u32;
        let from = rows.start.min(total);
        let until = rows.end.min(total).min(from.saturating_add(MAX_PAGE_ROWS)).max(from);
        let row = |&(node, depth): &(u32, u32)| tree.row(at, node, depth, &open, spec);
        let rows = listed[from as usize..until as usize].iter().map(row).collect();
        let phases = tree.sums.phases.iter().flatten().map(|moment| moment.phase.to_owned());
        let (text, phases) = (basis_text(at.entry.modules(at.index)), phases.collect());
        let (dims, refused, shapes) =
            (tree.dims.clone(), tree.refused.clone(), tree.shapes.clone());
        Some(ModulePage { total, from, rows, open, text, phases, dims, refused, shapes })
    }
}

impl Tree {
    async fn new(at: Target<'_>, event: Option<i64>, budget: &mut Budget) -> Self {
        let slot = event.map(|event| slot_after(at.trace(), event));
        let sums = ModuleSums::new(at, slot, budget).await;
        let paths = paths(at, budget).await;
        let mut ends: FxHashMap<u64, u32> = FxHashMap::default();
        for part in strides(paths.len()) {
            budget.charge(64 * part.len() as u64).await;
            for path in &paths[part] {
                for end in ends_of(path) {
                    *ends.entry(name_hash(end)).or_default() += 1;
                }
            }
        }
        let report = shapes(at, Some(0));
        let whole = report.bytes;
        let sum = |sum: &vramscope_report::shapes::ShapeSum| ShapeSum {
            shape: sum.shape.text.clone(),
            symbols: sum.shape.symbols.clone().unwrap_or_default(),
            bytes: Quantity::bytes(Bytes(sum.bytes)),
            blocks: Quantity::count(sum.blocks.into(), "block", "blocks"),
            share: fraction(sum.bytes, whole),
        };
        let dims = legend_texts(at);
        let shapes = report.by_shape.iter().take(MAX_SHAPES).map(sum).collect();
        Self { sums, paths, ends, dims, refused: report.refused.unwrap_or_default(), shapes }
    }

    /// What is open at first: the largest module, down to the first with layers.
    fn usual(&self, at: Target<'_>) -> Vec<u32> {
        let modules = at.entry.modules(at.index);
        let mut open = Vec::new();
        let is_module = |node: &&u32| modules.basis(**node).is_some();
        let largest = |node: u32| {
            let children = &self.sums.children[node as usize];
            children.iter().find(is_module).or(children.first()).copied()
        };
        let mut next = largest(0);
        while let Some(node) = next.filter(|&node| modules.layers(node).is_none()) {
            open.push(node);
            next = largest(node);
        }
        open
    }

    /// The modules in the order of the table: each open one is followed by its children.
    fn listed(&self, open: &[u32]) -> Vec<(u32, u32)> {
        let below = |node: u32, depth: u32| {
            self.sums.children[node as usize].iter().rev().map(move |&child| (child, depth))
        };
        let mut listed = Vec::new();
        let mut rest: Vec<(u32, u32)> = below(0, 0).collect();
        while let Some((node, depth)) = rest.pop() {
            listed.push((node, depth));
            if open.contains(&node) {
                rest.extend(below(node, depth + 1));
            }
        }
        listed
    }

    fn row(
        &self,
        at: Target<'_>,
        node: u32,
        depth: u32,
        open: &[u32],
        spec: &ModuleSpec,
    ) -> ModuleRow {
        let (modules, sum) = (at.entry.modules(at.index), &self.sums.sums[node as usize]);
        let bytes = |bytes: u64| Quantity::bytes(Bytes(bytes));
        let categories = categories_of(sum);
        let (called, built) = modules.lines(at, node);
        let layers = modules.layers(node).map(|layers| format!("×{}", grouped(layers.into())));
        let place = called.as_ref().or(built.as_ref()).cloned();
        let note: Vec<String> = layers.into_iter().chain(place).collect();
        let mut title = vec![self.paths[node as usize].clone()];
        title.extend(built.map(|line| format!("built at {line}")));
        title.extend(modules.not_split(node).map(|why| format!("not split into layers: {why}")));
        title.extend(modules.basis(node).map(|basis| format!("{} module", basis.name())));
        let words = categories
            .iter()
            .map(|&(category, bytes)| format!("{} {}", category_label(category), Bytes(bytes)));
        let path = &self.paths[node as usize];
        // A number alone says little.
        let is_only =
            |end: &&str| !end.starts_with('[') && self.ends.get(&name_hash(end)) == Some(&1);
        let end = ends_of(path).find(is_only).unwrap_or(path);
        let phases = self.sums.phases.iter().zip(sum.phases);
        ModuleRow {
            node,
            depth,
            label: modules.name(at, node),
            note: note.join(" "),
            title: title.join("\n"),
            open: (!self.sums.children[node as usize].is_empty()).then(|| open.contains(&node)),
            total: bytes(sum.bytes),
            percent: format!("{:.1} %", 100.0 * fraction(sum.bytes, self.sums.sums[0].bytes)),
            cursor: spec.event.map(|_| bytes(sum.event_bytes)),
            shares: categories.iter().map(|row| fraction(row.1, sum.bytes)).collect(),
            colors: categories.iter().map(|row| Color::category(row.0 as u8).word()).collect(),
            categories: words.collect::<Vec<_>>().join(", "),
            phases: phases.filter(|of| of.0.is_some()).map(|of| bytes(of.1)).collect(),
            blocks: Quantity::count(sum.blocks.into(), "block", "blocks"),
            terms: vec![format!("module:{end}")],
        }
    }
}
