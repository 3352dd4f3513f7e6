//! Graphs and the objects that they hold.

use super::Timeline;
use crate::errors::{Code, INVALID_VALUE};
use crate::tables::new_handle;
use std::collections::BTreeMap;

/// The types of nodes in graphs: a kernel, nothing.
pub(crate) const KERNEL_NODE: i32 = 0;
/// See [`KERNEL_NODE`].
pub(crate) const EMPTY_NODE: i32 = 5;

/// A graph.
#[derive(Debug, Default)]
pub(super) struct Graph {
    /// Types of nodes by handle.
    nodes: BTreeMap<u64, i32>,
    /// Graphs of conditional nodes. The nodes point to these handles.
    bodies: Vec<Box<[u64]>>,
    /// References to user objects.
    objects: Vec<(u64, u32)>,
}

/// An object that lives as long as graphs need it.
#[derive(Debug)]
pub(super) struct UserObject {
    /// References.
    count: u32,
    /// What destroys it.
    destroy: Destroy,
}

/// A call that destroys a user object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Destroy {
    /// The function.
    pub(crate) function: unsafe extern "C" fn(u64),
    /// Its argument.
    pub(crate) argument: u64,
}

impl Timeline {
    /// Makes a graph without nodes. Returns its handle.
    pub(crate) fn add_graph(&mut self) -> u64 {
        let handle = new_handle();
        self.graphs.insert(handle, Graph::default());
        handle
    }

    /// A graph.
    fn graph(&mut self, graph: u64) -> Result<&mut Graph, Code> {
        self.graphs.get_mut(&graph).ok_or(INVALID_VALUE)
    }

    /// Destroys a graph and the graphs of its nodes. Returns the calls that destroy user objects.
    pub(crate) fn remove_graph(&mut self, graph: u64) -> Result<Vec<Destroy>, Code> {
        let removed = self.graphs.remove(&graph).ok_or(INVALID_VALUE)?;
        let mut calls = Vec::new();
        for (object, count) in removed.objects {
            calls.extend(self.release_object(object, count)?);
        }
        for body in removed.bodies.into_iter().flatten() {
            calls.extend(self.remove_graph(body)?);
        }
        Ok(calls)
    }

    /// Adds a node to a graph. Returns its handle.
    pub(crate) fn add_node(&mut self, graph: u64, kind: i32) -> Result<u64, Code> {
        let handle = new_handle();
        self.graph(graph)?.nodes.insert(handle, kind);
        Ok(handle)
    }

    /// Adds a graph that belongs to a node of `graph`. Returns where its handle lies.
    pub(crate) fn add_body(&mut self, graph: u64) -> Result<*const u64, Code> {
        let body: Box<[u64]> = Box::from([self.add_graph()]);
        let place = body.as_ptr();
        self.graph(graph)?.bodies.push(body);
        Ok(place)
    }

    /// The nodes of a graph.
    pub(crate) fn nodes(&mut self, graph: u64) -> Result<Vec<u64>, Code> {
        Ok(self.graph(graph)?.nodes.keys().copied().collect())
    }

    /// The type of a node.
    pub(crate) fn node_type(&self, node: u64) -> Result<i32, Code> {
        self.graphs.values().find_map(|graph| graph.nodes.get(&node)).copied().ok_or(INVALID_VALUE)
    }

    /// Makes a user object with `count` references. Returns its handle.
    pub(crate) fn add_object(&mut self, count: u32, destroy: Destroy) -> u64 {
        let handle = new_handle();
        self.objects.insert(handle, UserObject { count, destroy });
        handle
    }

    /// Adds references to a user object.
    pub(crate) fn retain_object(&mut self, object: u64, count: u32) -> Result<(), Code> {
        self.objects.get_mut(&object).ok_or(INVALID_VALUE)?.count += count;
        Ok(())
    }

    /// A graph holds `count` references to a user object.
    pub(crate) fn hold_object(&mut self, graph: u64, object: u64, count: u32) -> Result<(), Code> {
        self.graph(graph)?.objects.push((object, count));
        Ok(())
    }

    /// Gives references to a user object back. Returns the call that destroys it after the last.
    pub(crate) fn release_object(
        &mut self,
        object: u64,
        count: u32,
    ) -> Result<Option<Destroy>, Code> {
        let found = self.objects.get_mut(&object).ok_or(INVALID_VALUE)?;
        found.count = found.count.checked_sub(count).ok_or(INVALID_VALUE)?;
        if found.count > 0 {
            return Ok(None);
        }
        Ok(self.objects.remove(&object).map(|object| object.destroy))
    }
}
