//! The references between the objects of this process: [`walk`].
//!
//! `vramscope.recorder.holders` says where to begin and how references are called. This module
//! follows them, a level at a time, so that the first way to an object is a shortest.
//!
//! Python's own references are those that an object's `tp_traverse` tells to the garbage collector.
//! That slot is read by `PyType_GetSlot`, which the stable ABI has for all types from Python 3.10
//! on. [`torch`] adds those of PyTorch.
//!
//! # What it rests on
//!
//! Nothing of it runs bytecode or drops a tensor, so no other thread of Python runs before it ends.
//! Nor is there anything in it that pyo3 makes once, such as an `intern!` or an iterator of Python:
//! pyo3 lets go of the lock to make it.
//! `sys.setswitchinterval` is no way to keep other threads from running: one that waits already
//! asks for the lock after the old interval, and may then keep it.
//!
//! Should code of the program run all the same, the walk still reads no freed memory: each node has
//! a reference of ours until the end. Such references would be wrong while another thread runs: it
//! may be building a tuple, which must have one reference. So the walk compares the frames of the
//! other threads before and after. Where one has moved, the answer is not complete.
//!
//! Every stage looks at the clock: within the references of one object, between objects, and while
//! dominators are computed.
#![expect(unsafe_code, reason = "only tp_traverse tells what an object refers to")]

mod frames;
mod keys;
mod nodes;
mod profile;
mod rest;
mod table;
mod told;
mod torch;

use crate::failure::wrong;
use nodes::{Nodes, Object};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyType};
use rest::Rest;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ffi::{c_int, c_void};
use std::time::{Duration, Instant};
use torch::Torch;
use vramscope_holders::{NONE, Stopped};

/// Objects between two looks at the clock.
const STRIDE: usize = 64;
/// References of one object between two looks at the clock.
const PIECE: usize = 1 << 12;
/// The part of the time that may be spent on following references. The rest is for dominators and
/// for naming what was found.
const FOLLOWING: f64 = 0.6;
/// The part of the time after which dominators are given up.
const DOMINATORS: f64 = 0.9;

/// What the program holds: Python's side of the walk.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Wanted<'py> {
    /// Live blocks as device, address and bytes, sorted.
    blocks: Vec<(i64, u64, u64)>,
    /// The values of variables. The program's own are the first.
    values: Bound<'py, PyList>,
    /// Of each variable, whether it is a library's and ends with a call.
    passing: Vec<bool>,
    /// The number of the program's own variables.
    own: usize,
    /// What no way leads through.
    skipped: Bound<'py, PyList>,
    /// What no way leads through, with all that it leads to.
    hidden: Bound<'py, PyList>,
    /// Types of objects that are only parts of others: no row is about them.
    parts: Vec<Bound<'py, PyType>>,
    /// Types that are followed after the data of the program.
    late: Vec<Bound<'py, PyType>>,
    /// Types of tensors that have no memory.
    hollow: Vec<Bound<'py, PyType>>,
    seconds: f64,
    objects: usize,
    rows: usize,
    /// The number of devices in use.
    devices: usize,
    /// The least bytes of a row.
    least: u64,
}

/// Follows references from variables to what holds blocks. `wanted` is a dict. The result is one:
///
/// - `complete`: whether nothing was cut and no other thread ran; `graph`: whether graphs were
///   read; `opaque`: the number of tensors that were not read, because code of the program would
///   have answered or because they have no single address; `seen`, `references`: the number of
///   objects and references.
/// - `objects`: those on the chains; a text, the name of its type, in place of a tensor that
///   PyTorch told. `chains`: of each its variable, the places of its objects in `objects`, and, if
///   it was cut, the number of places before the cut and of objects that were left out there.
///   `labels`: `(by, name)` of a reference of PyTorch's, by two places.
/// - `blocks`: of each `(chain, label of the last reference, view bytes, cycle, row)`. `cycle` is
///   the number of objects that only hold each other, 0 for what native code holds.
/// - `rows`: `(row that it lies within, chains, bytes, blocks)`.
///
/// # Errors
/// `wanted` is not of this form, or PyTorch is not as expected.
#[pyfunction]
pub(crate) fn walk<'py>(
    py: Python<'py>,
    torch: &Bound<'py, PyAny>,
    wanted: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyDict>> {
    let wanted: Wanted<'py> = wanted.extract()?;
    if wanted.values.len() != wanted.passing.len() || wanted.own > wanted.passing.len() {
        return Err(wrong("there is one value for each variable"));
    }
    let mut walk = Walk::new(py, torch, &wanted)?;
    walk.follow(&wanted)?;
    let reached = walk.torch.holds.len();
    let cycles = walk.follow_rest(&wanted, reached)?;
    walk.told(&wanted, reached, &cycles)
}

#[derive(Clone, Copy)]
struct Type {
    kind: torch::Kind,
    traverse: Option<ffi::traverseproc>,
}

/// A walk along references. Nodes are variables and objects.
struct Walk<'py> {
    py: Python<'py>,
    torch: Torch<'py>,
    nodes: Nodes,
    /// The first variable.
    first: u32,
    types: FxHashMap<*mut ffi::PyTypeObject, Type>,
    /// What a reference is that PyTorch told, by its ends.
    labels: FxHashMap<(u32, u32), u32>,
    /// Objects that PyTorch made for an answer, such as those of the nodes of a graph.
    made: FxHashSet<u32>,
    /// Nodes of graphs that wait for their turn.
    waiting: Vec<u32>,
    late: Vec<u32>,
    defers: bool,
    clock: Clock,
    most: usize,
    complete: bool,
    /// Whether a type failed to tell its references.
    failed: bool,
    /// The other threads, when the walk began.
    others: frames::Others<'py>,
    /// The first node to which no variable leads.
    rest: u32,
    /// What the objects refer to that are being followed.
    found: Found,
}

/// The ends of the stages.
struct Clock {
    following: Instant,
    dominators: Instant,
}

impl Clock {
    fn new(seconds: f64) -> PyResult<Self> {
        let begin = Instant::now();
        let at = |part: f64| {
            let limit = Duration::try_from_secs_f64(seconds * part);
            let end = limit.ok().and_then(|limit| begin.checked_add(limit));
            end.ok_or_else(|| wrong(format!("{seconds} is no number of seconds")))
        };
        Ok(Self { following: at(FOLLOWING)?, dominators: at(DOMINATORS)? })
    }
}

/// What one object refers to.
struct Found {
    objects: Vec<Object>,
    /// The most references, and when to stop.
    most: usize,
    until: Instant,
    /// Whether some were left out.
    is_late: bool,
}

extern "C" fn visit(object: Object, found: *mut c_void) -> c_int {
    // SAFETY: `Walk::referents_of` passes its own, which nothing else uses during the call.
    let found = unsafe { &mut *found.cast::<Found>() };
    // No type may visit null. One that does would end the process in the collector, too.
    if object.is_null() {
        return 0;
    }
    // Another number than 0 ends the visit, unless the type takes no notice.
    if found.is_late {
        return 1;
    }
    found.objects.push(object);
    let count = found.objects.len();
    found.is_late =
        count > found.most || (count.is_multiple_of(PIECE) && Instant::now() > found.until);
    c_int::from(found.is_late)
}

impl<'py> Walk<'py> {
    fn new(py: Python<'py>, torch: &Bound<'py, PyAny>, wanted: &Wanted<'py>) -> PyResult<Self> {
        let clock = Clock::new(wanted.seconds)?;
        // The first error of a process: pyo3 makes a type for it, and lets go of the lock.
        drop(py.None().bind(py).getattr(" "));
        let (most, until) = (wanted.objects, clock.following);
        let found = Found { objects: Vec::new(), most, until, is_late: false };
        Ok(Self {
            py,
            torch: Torch::new(torch, wanted)?,
            nodes: Nodes::default(),
            first: 0,
            types: FxHashMap::default(),
            labels: FxHashMap::default(),
            made: FxHashSet::default(),
            waiting: Vec::new(),
            late: Vec::new(),
            defers: false,
            clock,
            most,
            complete: true,
            failed: false,
            others: frames::Others::new(py)?,
            rest: NONE,
            found,
        })
    }

    /// Whether the time or the number of objects is at its end. Then the answer is not complete.
    fn is_cut(&mut self) -> bool {
        let is_over = self.nodes.len() > self.most || Instant::now() > self.clock.following;
        self.complete &= !is_over;
        !self.complete
    }

    /// Follows the references of the variables.
    fn follow(&mut self, wanted: &Wanted<'py>) -> PyResult<()> {
        for object in wanted.skipped.iter().chain(&wanted.hidden) {
            self.nodes.of(object.as_ptr(), NONE);
        }
        self.first = self.nodes.graph.len();
        let variables: Vec<u32> =
            wanted.passing.iter().map(|&passing| self.nodes.add_variable(passing)).collect();
        let (mine, others) = variables.split_at(wanted.own);
        for (part, defers) in [(mine, true), (others, false)] {
            // Data of the program first, without its code, which leads to everything: so a
            // parameter is found by its module, and little is lost if time runs out.
            self.defers = defers;
            let mut level = Vec::new();
            for &variable in part {
                let value = wanted.values.get_item((variable - self.first) as usize)?;
                if !is_tracked(value.as_ptr()) {
                    continue;
                }
                let (node, is_new) = self.nodes.of(value.as_ptr(), variable);
                if self.is_open(node) {
                    self.nodes.graph.refer(variable, node);
                }
                if is_new {
                    self.sort(node, &mut level)?;
                }
            }
            self.spread(level)?;
            self.defers = false;
            let late = std::mem::take(&mut self.late);
            self.spread(late)?;
        }
        Ok(())
    }

    /// Follows the references of the other objects, if blocks are left. Returns of each of these
    /// blocks the number of objects in its cycle, 0 where something else holds it.
    fn follow_rest(
        &mut self,
        wanted: &Wanted<'py>,
        reached: usize,
    ) -> PyResult<FxHashMap<u32, usize>> {
        let sizes = FxHashMap::default();
        let known: FxHashSet<u32> = self.torch.holds.iter().map(|hold| hold.block).collect();
        if known.len() == wanted.blocks.len() || self.is_cut() {
            return Ok(sizes);
        }
        self.hide(&wanted.hidden)?;
        // A hook of `sys.addaudithook` is called here, and may refuse.
        let Ok(all) = self.py.import("gc")?.call_method0("get_objects") else {
            self.complete = false;
            return Ok(sizes);
        };
        let all = all.cast_into::<PyList>()?;
        self.torch.look_again()?;
        self.rest = self.nodes.graph.len();
        let mut level = Vec::new();
        for (at, object) in all.iter().enumerate() {
            if at.is_multiple_of(PIECE) && self.is_cut() {
                return Ok(sizes);
            }
            let (node, is_new) = self.nodes.of(object.as_ptr(), NONE);
            if is_new && !object.is(&all) {
                level.push(node);
            }
        }
        drop(all);
        self.spread(level)?;
        self.ask_rest()?;
        if self.is_cut() {
            return Ok(sizes);
        }
        match self.cycles(reached, &known) {
            Ok(sizes) => Ok(sizes),
            Err(Stopped) => {
                self.complete = false;
                Ok(sizes)
            }
        }
    }

    /// Of the blocks that only the rest holds the number of objects in the smallest cycle.
    fn cycles(
        &self,
        reached: usize,
        known: &FxHashSet<u32>,
    ) -> Result<FxHashMap<u32, usize>, Stopped> {
        let mut sizes = FxHashMap::default();
        let mut rest = Rest::new(self)?;
        for hold in self.torch.holds[reached..].iter().filter(|hold| !known.contains(&hold.block)) {
            let size = rest.cycle_of(self, hold.node)?;
            let least = sizes.entry(hold.block).or_insert(size);
            *least = size.min(*least);
        }
        Ok(sizes)
    }

    /// Marks what some objects lead to as met.
    fn hide(&mut self, objects: &Bound<'py, PyList>) -> PyResult<()> {
        let mut todo: Vec<Object> = objects.iter().map(|object| object.as_ptr()).collect();
        while let Some(object) = todo.pop() {
            self.referents_of(object)?;
            for child in std::mem::take(&mut self.found.objects) {
                // SAFETY: its parent refers to it.
                let is_data = unsafe {
                    ffi::PyDict_CheckExact(child)
                        | ffi::PyList_CheckExact(child)
                        | ffi::PyTuple_CheckExact(child)
                        != 0
                };
                if is_data && self.nodes.of(child, NONE).1 {
                    todo.push(child);
                }
            }
            if todo.len().is_multiple_of(STRIDE) && self.is_cut() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Whether ways may lead through a node.
    fn is_open(&self, node: u32) -> bool {
        self.nodes.parent(node) != NONE || node >= self.rest
    }

    /// Follows references from these nodes, and then from the graphs that were met.
    fn spread(&mut self, mut level: Vec<u32>) -> PyResult<()> {
        loop {
            while !level.is_empty() {
                let mut next = Vec::new();
                for (at, node) in level.into_iter().enumerate() {
                    if !self.complete || (at.is_multiple_of(STRIDE) && self.is_cut()) {
                        return Ok(());
                    }
                    self.follow_one(node, &mut next)?;
                }
                level = next;
            }
            if self.waiting.is_empty() {
                return Ok(());
            }
            level = std::mem::take(&mut self.waiting);
        }
    }

    /// Adds what an object refers to.
    fn follow_one(&mut self, node: u32, next: &mut Vec<u32>) -> PyResult<()> {
        let object = self.nodes.object(node);
        self.referents_of(object)?;
        let mut found = std::mem::take(&mut self.found.objects);
        let mut targets = Vec::with_capacity(found.len());
        for (at, object) in (1_usize..).zip(found.drain(..)) {
            if at.is_multiple_of(PIECE) && self.is_cut() {
                break;
            }
            let (to, is_new) = self.nodes.of(object, node);
            if self.is_open(to) {
                targets.push(to);
            }
            if is_new {
                self.sort(to, next)?;
            }
        }
        self.found.objects = found;
        self.nodes.graph.refer_all(node, targets);
        if node < self.rest && self.type_of(object)?.kind.is_asked() {
            self.ask(node, next)?;
        }
        Ok(())
    }

    /// Adds what an object refers to as PyTorch tells it.
    fn ask(&mut self, node: u32, next: &mut Vec<u32>) -> PyResult<()> {
        // SAFETY: the node has a reference of ours.
        let object = unsafe { Bound::from_borrowed_ptr(self.py, self.nodes.object(node)) };
        for (other, label) in self.torch.references(node, &object) {
            let (to, is_new) = self.nodes.of(other.as_ptr(), node);
            if self.is_open(to) {
                self.nodes.graph.refer(node, to);
                self.labels.entry((node, to)).or_insert(label);
            }
            if is_new {
                self.sort(to, next)?;
                self.made.insert(to);
            }
        }
        Ok(())
    }

    /// Asks PyTorch about the objects that no variable leads to, but other objects of Python do. A
    /// tensor without those may be one that only PyTorch holds, and is just dropping.
    fn ask_rest(&mut self) -> PyResult<()> {
        let rest = self.rest;
        let mut is_held = vec![false; (self.nodes.graph.len() - rest) as usize];
        for (_, to) in self.nodes.graph.edges().filter(|&(from, to)| from.min(to) >= rest) {
            is_held[(to - rest) as usize] = true;
        }
        let mut next = Vec::new();
        for (node, _) in (rest..).zip(is_held).filter(|&(_, is_held)| is_held) {
            if (node as usize).is_multiple_of(STRIDE) && self.is_cut() {
                return Ok(());
            }
            if self.type_of(self.nodes.object(node))?.kind.is_asked() {
                self.ask(node, &mut next)?;
            }
        }
        Ok(())
    }

    /// Puts a new node where it waits for its turn.
    fn sort(&mut self, node: u32, next: &mut Vec<u32>) -> PyResult<()> {
        match self.type_of(self.nodes.object(node))?.kind {
            torch::Kind::Node => self.waiting.push(node),
            torch::Kind::Late if self.defers => self.late.push(node),
            _ => next.push(node),
        }
        Ok(())
    }

    /// Puts what an object refers to into `found`.
    fn referents_of(&mut self, object: Object) -> PyResult<()> {
        self.found.objects.clear();
        if let Some(traverse) = self.type_of(object)?.traverse {
            let found: *mut Found = &raw mut self.found;
            // SAFETY: it is the slot of the object's own type, the object is tracked, and `visit`
            // only appends to the vector.
            unsafe { traverse(object, visit, found.cast()) };
            self.complete &= !self.found.is_late;
            // No type may fail here. The error of one that does would be that of the next call.
            self.failed |= PyErr::take(self.py).is_some();
        }
        self.found.objects.retain(|&object| is_tracked(object));
        Ok(())
    }

    fn type_of(&mut self, object: Object) -> PyResult<Type> {
        // SAFETY: the object is alive, and so is its type.
        let pointer = unsafe { ffi::Py_TYPE(object) };
        if let Some(known) = self.types.get(&pointer) {
            return Ok(*known);
        }
        // SAFETY: as above. The slot of a type that has it has this signature.
        let (class, traverse) = unsafe {
            let class: Bound<'py, PyAny> = Bound::from_borrowed_ptr(self.py, pointer.cast());
            let slot = ffi::PyType_GetSlot(pointer, ffi::Py_tp_traverse);
            (class, std::mem::transmute::<*mut c_void, Option<ffi::traverseproc>>(slot))
        };
        let found = Type { kind: self.torch.kind_of(&class.cast_into()?)?, traverse };
        self.types.insert(pointer, found);
        Ok(found)
    }
}

impl Drop for Walk<'_> {
    /// Drops the references of the walk: first those that are not the last of an object, so that no
    /// tensor goes away before them. Other threads of Python may run from then on.
    fn drop(&mut self) {
        self.torch.end();
        self.others.forget();
        let made = self.nodes.release(self.py, &self.made);
        self.torch.release(made);
    }
}

/// Whether Python's collector knows the object. What it does not know refers to nothing.
fn is_tracked(object: Object) -> bool {
    // SAFETY: the object is alive, and the lock is held.
    unsafe { ffi::PyObject_GC_IsTracked(object) != 0 }
}
