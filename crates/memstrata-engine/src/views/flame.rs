//! Flame graphs.

mod graph;
#[cfg(test)]
mod tests;
mod words;

pub(crate) use graph::Graph;

use crate::protocol::DeviceRef;
use crate::protocol::views::{FlameSpec, FlameWeight};
use crate::report::Target;

/// How many graphs are kept.
const GRAPHS: usize = 4;

/// The graphs that were asked for last.
#[derive(Default)]
pub(crate) struct Kept {
    /// The latest last.
    graphs: Vec<(DeviceRef, FlameSpec, Graph)>,
}

impl Kept {
    /// A graph, with its root and its search.
    pub(crate) fn get(&mut self, at: Target<'_>, target: DeviceRef, flame: &FlameSpec) -> &Graph {
        let wanted = tree_of(flame);
        let known = self.graphs.iter().position(|(of, spec, _)| *of == target && *spec == wanted);
        let entry = match known {
            Some(known) => self.graphs.remove(known),
            None => {
                let graph = Graph::new(at, &wanted);
                (target, wanted, graph)
            }
        };
        if self.graphs.len() == GRAPHS {
            self.graphs.remove(0);
        }
        self.graphs.push(entry);
        let last = self.graphs.len() - 1;
        let graph = &mut self.graphs[last].2;
        graph.show(at, &flame.root, &flame.search);
        graph
    }
}

/// What decides the tree: neither what of it is shown, nor what its weight does not look at.
fn tree_of(flame: &FlameSpec) -> FlameSpec {
    let live = matches!(flame.weight, FlameWeight::Peak | FlameWeight::Cursor);
    FlameSpec {
        event: if flame.weight == FlameWeight::Cursor { flame.event } else { 0 },
        range: if live { None } else { flame.range },
        root: String::new(),
        search: String::new(),
        ..flame.clone()
    }
}
