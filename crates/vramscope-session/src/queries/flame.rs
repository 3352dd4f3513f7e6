//! Flame graphs, and their cache.

mod graph;
mod nodes;
#[cfg(test)]
mod tests;
mod weight;

pub(crate) use graph::Graph;
pub(super) use nodes::MAX_BOXES;

use super::lru_cache::LruCache;
use super::target as target_of;
use crate::scheduler::SLICE;
use std::sync::Arc;
use vramscope_analysis::slicing::{Budget, run_to_completion};
use vramscope_protocol::DeviceRef;
use vramscope_protocol::views::{FlameSpec, FlameWeight};
use vramscope_report::LoadedFile;
use vramscope_report::Target;

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
    /// Whether a graph is cached. If not, runs a slice of computing it.
    pub(crate) fn is_ready(
        &mut self,
        file: &Arc<LoadedFile>,
        target: DeviceRef,
        flame: &FlameSpec,
    ) -> bool {
        let wanted = (target, tree_key(flame));
        self.0.is_ready(&wanted, || graph(file.clone(), wanted.clone()))
    }

    /// The cached graph with the spec's root and search; a missing graph is computed at once.
    pub(crate) fn get(&mut self, at: Target<'_>, target: DeviceRef, flame: &FlameSpec) -> &Graph {
        let wanted = (target, tree_key(flame));
        let graph = self.0.get(&wanted, || {
            run_to_completion(Graph::sliced(at, &wanted.1, &mut Budget::unlimited()))
        });
        graph.show(at, &flame.root, &flame.search);
        graph
    }
}

async fn graph(file: Arc<LoadedFile>, (target, spec): (DeviceRef, FlameSpec)) -> Option<Graph> {
    Some(Graph::sliced(target_of(&file, target)?, &spec, &mut Budget::of(SLICE)).await)
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
