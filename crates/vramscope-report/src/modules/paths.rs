//! The paths of modules, as searches name them.

use crate::{Derived, Target};
use vramscope_trace::slicing::{Budget, strides};

/// Separates the modules of a path.
const WITHIN: &str = " / ";

/// The paths of all modules, in which each has its name and the line that calls or builds it.
pub async fn paths(at: Target<'_>, budget: &mut Budget) -> Vec<String> {
    let modules = at.entry.modules(at.index);
    let mut paths: Vec<String> = vec![String::new()];
    for part in strides(modules.len() - 1) {
        budget.charge(64 * part.len() as u64).await;
        for node in part.map(|node| node as u32 + 1) {
            let (called, built) = modules.lines(at, node);
            let name = modules.name(at, node);
            let own = called.or(built).map_or_else(|| name.clone(), |at| format!("{name} at {at}"));
            let around = &paths[modules.parent(node) as usize];
            let path = if around.is_empty() { own } else { format!("{around}{WITHIN}{own}") };
            paths.push(path);
        }
    }
    paths
}

/// The ends of a path, from its last module to all of it.
pub fn ends_of(path: &str) -> impl Iterator<Item = &str> {
    let inner = path.rmatch_indices(WITHIN).map(|(at, _)| &path[at + WITHIN.len()..]);
    inner.chain(std::iter::once(path))
}

/// Whether each block belongs to a module that `wanted` names: an end of its path, in lower case,
/// without the lines that follow if that is all.
pub(crate) async fn of_module(at: Target<'_>, wanted: &str, budget: &mut Budget) -> Vec<bool> {
    at.entry.derive(Derived::Modules, at.index, budget).await;
    let modules = at.entry.modules(at.index);
    let paths = paths(at, budget).await;
    let mut is_in: Vec<bool> = Vec::with_capacity(paths.len());
    for (node, path) in (0..).zip(&paths) {
        let path = path.to_ascii_lowercase();
        let own = ends_of(&path).next().unwrap_or_default();
        let is_named = ends_of(&path).any(|end| end == wanted)
            || own.strip_prefix(wanted).is_some_and(|rest| rest.starts_with([' ', ':', '-']));
        is_in.push(is_named || node > 0 && is_in[modules.parent(node) as usize]);
    }
    let mut blocks: Vec<bool> = Vec::with_capacity(modules.of_block.len());
    for part in strides(modules.of_block.len()) {
        budget.charge(part.len() as u64).await;
        blocks.extend(modules.of_block[part].iter().map(|&node| is_in[node as usize]));
    }
    blocks
}
