//! The nodes of a walk. Each object has one, and a reference of ours.

use super::table::Table;
use pyo3::ffi;
use pyo3::prelude::*;
use rustc_hash::FxHashSet;
use vramscope_holders::{Graph, NONE};

pub(super) type Object = *mut ffi::PyObject;

#[derive(Default)]
pub(super) struct Nodes {
    pub(super) graph: Graph,
    /// The object of each node; null for a variable.
    objects: Vec<Object>,
    /// The node from which each was met first. It has a smaller number.
    parents: Vec<u32>,
    table: Table,
}

impl Nodes {
    /// The number of nodes.
    pub(super) fn len(&self) -> usize {
        self.objects.len()
    }

    /// The number of objects.
    pub(super) fn count(&self) -> u32 {
        self.table.len()
    }

    /// The object of a node; null for a variable.
    pub(super) fn object(&self, node: u32) -> Object {
        self.objects[node as usize]
    }

    pub(super) fn parent(&self, node: u32) -> u32 {
        self.parents[node as usize]
    }

    pub(super) fn parents(&self) -> &[u32] {
        &self.parents
    }

    pub(super) fn add_variable(&mut self, passing: bool) -> u32 {
        self.objects.push(std::ptr::null_mut());
        self.parents.push(NONE);
        self.graph.add_variable(passing)
    }

    /// The node of a live object, and whether it is new. A new one was met from `parent`.
    pub(super) fn of(&mut self, object: Object, parent: u32) -> (u32, bool) {
        let next = self.graph.len();
        let known = self.table.insert(object, next, &self.objects);
        if known == next {
            // SAFETY: the object is alive, and the lock is held.
            unsafe { ffi::Py_INCREF(object) };
            self.objects.push(object);
            self.parents.push(parent);
            self.graph.add();
        }
        (known, known == next)
    }

    /// Drops the references to all objects but these, which it returns.
    pub(super) fn release<'py>(
        &mut self,
        py: Python<'py>,
        kept: &FxHashSet<u32>,
    ) -> Vec<Bound<'py, PyAny>> {
        let mut left = Vec::with_capacity(kept.len());
        for (node, object) in (0_u32..).zip(std::mem::take(&mut self.objects)) {
            if object.is_null() {
                continue;
            }
            // SAFETY: the node has this reference, and gives it away.
            let object = unsafe { Bound::from_owned_ptr(py, object) };
            if kept.contains(&node) {
                left.push(object);
            }
        }
        left
    }
}
