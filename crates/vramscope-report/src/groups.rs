//! Blocks in groups: by category, by line, or by module. A grouped timeline draws each group as one
//! band.

mod modules;

use crate::Target;
use crate::text;
use modules::Modules;
use rustc_hash::FxHashMap;
use vramscope_inference::Category;
use vramscope_snapshot::{Frame, FrameId, StackId};
use vramscope_trace::slicing::{Budget, strides};
use vramscope_trace::{Block, NoStack, frame_parts, name_hash};

/// What the blocks of a group have in common, beside their category.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupKind {
    /// Nothing else.
    Category,
    /// The line of the call site.
    Line,
    /// The module that calls it, in all layers. Without known layers, the file of the call site.
    Module,
}

/// Categories from the bottom of the stack up: what stays from step to step first.
const STACKED: [Category; 11] = [
    Category::Parameter,
    Category::OptimizerState,
    Category::Gradient,
    Category::Activation,
    Category::Cache,
    Category::Input,
    Category::Buffer,
    Category::Workspace,
    Category::Communication,
    Category::Temporary,
    Category::Unknown,
];

/// The groups of a device's blocks. Groups are in the order of the stack, from the bottom up: by
/// category, then by their first block.
#[derive(Debug)]
pub struct Groups {
    /// The group of each block.
    pub of_block: Vec<u32>,
    /// The groups.
    pub groups: Vec<Group>,
}

/// A group of blocks.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// The category of its blocks.
    pub category: Category,
    name: Name,
}

/// The data that a group's name is made from.
#[derive(Clone, Copy, Debug)]
enum Name {
    Category,
    NoStack(NoStack),
    Line(Frame),
    File(Frame),
    /// Compiled code without known files.
    Compiled,
    Module {
        caller: FrameId,
        layers: u32,
    },
}

/// The key of blocks that compiled code allocated. Other keys are indices of modules, which are
/// smaller, and hashes.
const COMPILED: u64 = 1 << 32;

/// Cost of grouping a block, in units of [`Budget`].
const COST_PER_BLOCK: u64 = 6;

impl Groups {
    /// Groups the blocks of a device, whose categories exist.
    pub async fn new(target: Target<'_>, kind: GroupKind, budget: &mut Budget) -> Self {
        let (trace, categories) = (target.trace(), target.entry.categories(target.index));
        let modules = match kind {
            GroupKind::Module => Some(Modules::new(target, budget).await),
            GroupKind::Category | GroupKind::Line => None,
        };
        let mut known: FxHashMap<(Category, u64), u32> = FxHashMap::default();
        let mut groups: Vec<Group> = Vec::new();
        // Many blocks have one stack: its name is found once.
        let mut names: FxHashMap<(StackId, Option<NoStack>), (u64, Name)> = FxHashMap::default();
        let mut of_block: Vec<u32> = Vec::with_capacity(trace.blocks.len());
        let visit = |index, block: &Block| {
            let category = categories.get(index).category;
            let (key, name) = if kind == GroupKind::Category {
                (0, Name::Category)
            } else {
                let why = trace.no_stack(block);
                *names
                    .entry((block.stack, why))
                    .or_insert_with(|| name(target, block.stack, why, modules.as_ref()))
            };
            of_block.push(*known.entry((category, key)).or_insert_with(|| {
                groups.push(Group { category, name });
                groups.len() as u32 - 1
            }));
        };
        trace.each_block(COST_PER_BLOCK, budget, visit).await;
        // From the order of first blocks to the order of the stack.
        let rank = |category| STACKED.iter().position(|&of| of == category);
        let mut order: Vec<u32> = (0..groups.len() as u32).collect();
        order.sort_by_key(|&group| rank(groups[group as usize].category));
        let mut places = vec![0; groups.len()];
        for (place, &group) in (0..).zip(&order) {
            places[group as usize] = place;
        }
        for part in strides(of_block.len()) {
            budget.charge(part.len() as u64 / 2).await;
            for group in &mut of_block[part] {
                *group = places[*group as usize];
            }
        }
        let groups = order.iter().map(|&group| groups[group as usize]).collect();
        Self { of_block, groups }
    }
}

/// The key of a stack's group within its category, and the group's name.
fn name(
    target: Target<'_>,
    stack: StackId,
    why: Option<NoStack>,
    modules: Option<&Modules>,
) -> (u64, Name) {
    let site = target.entry.sites.get(stack);
    let Some(frame) = site.frame else {
        let why = why.unwrap_or(NoStack::NotRecorded);
        return (COMPILED + 1 + why as u64, Name::NoStack(why));
    };
    let Some(modules) = modules else { return (site.site_hash, Name::Line(frame)) };
    if let Some(module) = modules.of(stack) {
        return (module.key, Name::Module { caller: module.caller, layers: module.layers });
    }
    let snapshot = target.snapshot();
    match text::place_of(snapshot, Frame { line: 0, ..frame }) {
        Some(file) => (name_hash(&file), Name::File(frame)),
        None => (COMPILED, Name::Compiled),
    }
}

impl Group {
    /// Names of the group, from the longest to the shortest: `modeling.py:59 forward`, then
    /// `modeling.py:59`.
    pub fn names(&self, target: Target<'_>) -> Vec<String> {
        let snapshot = target.snapshot();
        match self.name {
            Name::Category => vec![text::category(self.category).to_owned()],
            Name::NoStack(why) => vec![text::no_stack(why).to_owned()],
            Name::Line(frame) => {
                let [name, file] = [frame.name, frame.file].map(|text| snapshot.text(text));
                let place = frame_parts(&name, &file, frame.line).0;
                std::iter::once(text::label_of(snapshot, frame)).chain(place).collect()
            }
            Name::File(frame) => {
                text::place_of(snapshot, Frame { line: 0, ..frame }).into_iter().collect()
            }
            Name::Compiled => vec!["compiled code".to_owned()],
            Name::Module { caller, layers } => {
                let place = text::place_of(snapshot, snapshot.frame(caller)).unwrap_or_default();
                vec![format!("layers 0-{} · {place}", layers - 1)]
            }
        }
    }
}

impl Group {
    /// The terms of a search that chooses the group's blocks.
    pub fn terms(&self, target: Target<'_>) -> Vec<String> {
        let snapshot = target.snapshot();
        let line = match self.name {
            Name::Category | Name::Compiled => None,
            Name::NoStack(why) => Some(format!("site:{}", text::no_stack(why))),
            Name::Line(frame) => Some(format!("site:{}", text::label_of(snapshot, frame))),
            Name::File(frame) => text::place_of(snapshot, Frame { line: 0, ..frame })
                .map(|file| format!("site:{file}")),
            Name::Module { caller, .. } => {
                Some(format!("via:{}", text::label_of(snapshot, snapshot.frame(caller))))
            }
        };
        std::iter::once(format!("category:{}", self.category.name())).chain(line).collect()
    }
}

#[cfg(test)]
mod tests;
