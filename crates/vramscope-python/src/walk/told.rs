//! What a walk has found, for Python.

use super::Wanted;
use super::torch::{Hold, Kind, Label};
use super::{Walk, frames};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};
use rustc_hash::FxHashMap;
use std::time::Instant;
use vramscope_holders::{Drops, Limits, NONE, Path, Paths};

impl<'py> Walk<'py> {
    /// The result.
    pub(super) fn told(
        &self,
        wanted: &Wanted<'py>,
        reached: usize,
        cycles: &FxHashMap<u32, usize>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let holds = &self.torch.holds[..reached];
        let paths = Paths::new(self.nodes.parents());
        let is_part = |node| self.is_part(node, &wanted.parts);
        let drops = self.drops(wanted, holds, is_part);
        let mut complete =
            self.complete && !self.failed && !self.torch.refused() && drops.is_some();
        let drops = drops.unwrap_or_else(|| Drops {
            rows: Vec::new(),
            of_block: vec![None; wanted.blocks.len()],
        });
        let mut by_block: Vec<Vec<&Hold>> = vec![Vec::new(); wanted.blocks.len()];
        for hold in holds {
            by_block[hold.block as usize].push(hold);
        }
        let mut chains = Chains::new(self);
        let mut blocks = Vec::new();
        for (block, holds) in (0_u32..).zip(&by_block) {
            let chain = holds.first().map(|hold| chains.add(&paths.to(hold.node, is_part)));
            let label = holds.first().and_then(|hold| hold.label);
            let view = holds.iter().map(|hold| hold.view).collect::<Option<Vec<u64>>>();
            let view = view.and_then(|views| views.into_iter().max());
            blocks.push((
                chain.transpose()?,
                label.map(|label| self.torch.label(label)),
                view,
                cycles.get(&block).copied(),
                drops.of_block[block as usize],
            ));
        }
        let mut rows = Vec::new();
        for row in drops.rows {
            let references = row.references.into_iter().map(|(from, to)| {
                let mut path = paths.to(from, is_part);
                path.objects.push(to);
                chains.add(&path)
            });
            let references = references.collect::<PyResult<Vec<_>>>()?;
            rows.push((row.within, references, row.bytes, row.blocks));
        }
        let told = PyDict::new(self.py);
        told.set_item("graph", self.torch.is_read())?;
        told.set_item("opaque", self.torch.opaque())?;
        told.set_item("seen", self.nodes.count())?;
        told.set_item("references", self.nodes.graph.references())?;
        told.set_item("objects", chains.objects)?;
        told.set_item("chains", chains.told)?;
        told.set_item("labels", chains.labels)?;
        told.set_item("blocks", blocks)?;
        told.set_item("rows", rows)?;
        // A hook of `sys.addaudithook` may refuse the question.
        complete &= frames::Others::new(self.py).is_ok_and(|now| now == self.others);
        told.set_item("complete", complete)?;
        Ok(told)
    }

    /// What dropping references frees; `None` if there is no time for it.
    fn drops(
        &self,
        wanted: &Wanted<'py>,
        holds: &[Hold],
        is_part: impl Fn(u32) -> bool,
    ) -> Option<Drops> {
        let pairs: Vec<(u32, u32)> = holds.iter().map(|hold| (hold.node, hold.block)).collect();
        let bytes: Vec<u64> = wanted.blocks.iter().map(|&(_, _, bytes)| bytes).collect();
        let limits = Limits { rows: wanted.rows, bytes: wanted.least, ..Limits::default() };
        let until = self.clock.dominators;
        let goes_on = || Instant::now() < until;
        self.nodes.graph.drops(&pairs, &bytes, &limits, |node| !is_part(node), &goes_on).ok()
    }

    /// Whether an object is only a part of another, so that no reference to it is told.
    fn is_part(&self, node: u32, parts: &[Bound<'py, PyType>]) -> bool {
        let (object, parent) = (self.nodes.object(node), self.nodes.parent(node));
        // SAFETY: the node has a reference of ours.
        let class = unsafe { ffi::Py_TYPE(object) };
        if self.types.get(&class).is_some_and(|known| known.kind == Kind::Node)
            || parts.iter().any(|part| part.as_type_ptr() == class)
        {
            return true;
        }
        let holder = if parent == NONE { std::ptr::null_mut() } else { self.nodes.object(parent) };
        // SAFETY: both nodes have a reference of ours.
        let (dict, holder) = unsafe {
            (
                Bound::from_borrowed_ptr(self.py, object),
                Bound::from_borrowed_ptr_or_opt(self.py, holder),
            )
        };
        dict.is_exact_instance_of::<PyDict>()
            && holder
                .is_some_and(|holder| self.torch.is_of_attributes(&holder, &dict).unwrap_or(false))
    }
}

/// A variable, the places of the objects of a chain, and its cut.
type Chain = (u32, Vec<usize>, Option<(usize, u32)>);

/// Chains for Python. Their objects are held from here on.
struct Chains<'walk, 'py> {
    walk: &'walk Walk<'py>,
    places: FxHashMap<u32, usize>,
    objects: Vec<Bound<'py, PyAny>>,
    told: Vec<Chain>,
    labels: FxHashMap<(usize, usize), Label<'walk>>,
}

impl<'walk, 'py> Chains<'walk, 'py> {
    fn new(walk: &'walk Walk<'py>) -> Self {
        Self {
            walk,
            places: FxHashMap::default(),
            objects: Vec::new(),
            told: Vec::new(),
            labels: FxHashMap::default(),
        }
    }

    /// Adds a chain. Returns its number.
    fn add(&mut self, path: &Path) -> PyResult<usize> {
        let mut chain = Vec::new();
        for &node in &path.objects {
            let place = match self.places.get(&node) {
                Some(&place) => place,
                None => {
                    // SAFETY: the node has a reference of ours.
                    let object = unsafe {
                        Bound::from_borrowed_ptr(self.walk.py, self.walk.nodes.object(node))
                    };
                    // It must go away before other threads run: see `Torch::release`.
                    let hides = self.walk.made.contains(&node);
                    let hides = hides && self.walk.torch.is_tensor(&object);
                    self.objects.push(if hides {
                        self.walk.torch.name_of(&object.get_type())?
                    } else {
                        object
                    });
                    self.places.insert(node, self.objects.len() - 1);
                    self.objects.len() - 1
                }
            };
            chain.push(place);
        }
        for (pair, places) in path.objects.windows(2).zip(chain.windows(2)) {
            if let Some(&label) = self.walk.labels.get(&(pair[0], pair[1])) {
                self.labels.insert((places[0], places[1]), self.walk.torch.label(label));
            }
        }
        self.told.push((path.variable - self.walk.first, chain, path.cut));
        Ok(self.told.len() - 1)
    }
}
