//! Flame graphs, and their cache.

mod graph;
mod nodes;
#[cfg(test)]
mod tests;
mod weight;

pub(crate) use graph::Graph;
pub(super) use nodes::MAX_BOXES;

use super::lru_cache::LruCache;
use super::subject::Subject;
use crate::messages::DeviceRef;
use crate::messages::views::{FlameSpec, FlameWeight};
use crate::scheduler::SLICE;
use vramscope_trace::slicing::Budget;

/// Cached graphs.
const MAX_GRAPHS: usize = 4;

/// The most recently used graphs. The root and the search are not part of their key.
pub(crate) struct Graphs(LruCache<(DeviceRef, FlameSpec), Graph>);

impl Default for Graphs {
    fn default() -> Self {
        Self(LruCache::new(MAX_GRAPHS))
    }
}

impl Graphs {
    /// The graph with the spec's root and search. Runs a slice of computing it; `None` until it is
    /// complete.
    pub(crate) fn poll(&mut self, on: &Subject, flame: &FlameSpec) -> Option<&Graph> {
        let graph = self.0.poll((on.device, tree_key(flame)), |key| graph(on.clone(), key))?;
        graph.show(on.at(), &flame.root, &flame.search);
        Some(graph)
    }
}

async fn graph(on: Subject, (_, spec): (DeviceRef, FlameSpec)) -> Graph {
    Graph::new(on.at(), &spec, &mut Budget::of(SLICE)).await
}

/// The fields of a spec that decide the tree: no root, no search, and only the one of event and
/// range that the weight depends on.
fn tree_key(flame: &FlameSpec) -> FlameSpec {
    let at_cursor = flame.weight == FlameWeight::Cursor;
    FlameSpec {
        event: if at_cursor { flame.event } else { 0 },
        range: if at_cursor { None } else { flame.range },
        root: String::new(),
        search: String::new(),
        ..flame.clone()
    }
}
