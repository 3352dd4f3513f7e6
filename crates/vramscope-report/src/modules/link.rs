//! Links modules that are built with modules that are called, where the file shows that they are
//! the same: they are of one class, in modules that are linked, and no other module there is of
//! that class.

use super::layers::Layers;
use super::nesting::{Class, Entry, Kind, ROOT};
use rustc_hash::FxHashMap;

/// The called entry that each entry is the same module as; itself without one.
pub(super) fn link(entries: &[Entry], layers: &[Layers]) -> Vec<u32> {
    let mut linked: Vec<u32> = (0..entries.len() as u32).collect();
    // Of the entries of a class below an entry: the only one, or none if there are several.
    let mut called: FxHashMap<(u32, Class), Option<u32>> = FxHashMap::default();
    let mut anywhere: FxHashMap<Class, Option<u32>> = FxHashMap::default();
    let mut built: FxHashMap<(u32, Class), Option<u32>> = FxHashMap::default();
    let mut outermost: FxHashMap<Class, Option<u32>> = FxHashMap::default();
    let only = |known: &mut Option<u32>| *known = None;
    for (index, entry) in (1..).zip(&entries[1..]) {
        let key = (entry.parent, entry.class);
        let (below, all) = match entry.kind {
            Kind::Called => (&mut called, &mut anywhere),
            Kind::Built => (&mut built, &mut outermost),
        };
        below.entry(key).and_modify(only).or_insert(Some(index));
        // Outermost by its class: a linked module may be built by another, which is not a module.
        if entry.kind == Kind::Called || !is_nested(entries, entry) {
            all.entry(entry.class).and_modify(only).or_insert(Some(index));
        }
    }
    for (index, entry) in (1..).zip(&entries[1..]) {
        if entry.kind != Kind::Built {
            continue;
        }
        let around = linked[entry.parent as usize];
        let is_only = |known: Option<&Option<u32>>| known.copied().flatten();
        let found = if around == entry.parent {
            let own = is_only(outermost.get(&entry.class));
            let other = is_only(anywhere.get(&entry.class));
            other.filter(|&other| own == Some(index) && !has_layers_around(entries, layers, other))
        } else {
            let own = is_only(built.get(&(entry.parent, entry.class)));
            let other = is_only(called.get(&(around, entry.class)));
            other.filter(|_| own == Some(index))
        };
        let is_equal = |other: u32| layers[other as usize].count == layers[index as usize].count;
        if let Some(other) = found.filter(|&other| is_equal(other)) {
            linked[index as usize] = other;
        }
    }
    linked
}

/// Whether an entry of the same kind is around one.
fn is_nested(entries: &[Entry], entry: &Entry) -> bool {
    entry.parent != ROOT && entries[entry.parent as usize].kind == entry.kind
}

fn has_layers_around(entries: &[Entry], layers: &[Layers], entry: u32) -> bool {
    let mut at = entries[entry as usize].parent;
    while at != ROOT {
        if layers[at as usize].count.is_some() {
            return true;
        }
        at = entries[at as usize].parent;
    }
    false
}
