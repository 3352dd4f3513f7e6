//! The references between the objects of this process: [`walk`].
//!
//! `vramscope.recorder.holders` says where to begin and how references are called. This module
//! follows them, a level at a time, so that the first way to an object is a shortest.
//!
//! Python's own references are those that an object's `tp_traverse` tells to the garbage collector.
//! That slot is read by `PyType_GetSlot`, which the stable ABI has for all types from Python 3.10
//! on. Before, `gc.get_referents` tells the same, more slowly. [`torch`] adds those of PyTorch.
//!
//! # Why it is one call
//!
//! Nothing of it runs bytecode or drops a tensor, so no other thread of Python runs before it ends.
//! Objects therefore live as long as it needs them, without a reference of ours. To hold objects
//! that the collector lists would break programs: one may be a tuple that another thread is still
//! building, which must have one reference. `sys.setswitchinterval` is no way to keep other threads
//! from running: one that waits already asks for the lock after the old interval, and may then keep
//! it.
#![expect(unsafe_code, reason = "only tp_traverse tells what an object refers to")]

mod frames;
mod rest;
mod table;
mod torch;

use crate::failure::wrong;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyType};
use rest::Rest;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ffi::{c_int, c_void};
use std::time::{Duration, Instant};
use table::Table;
use torch::{Hold, Torch};
use vramscope_holders::{Graph, Limits};

type Object = *mut ffi::PyObject;

/// The node that is no node.
const NONE: u32 = u32::MAX;
/// Nodes between two looks at the clock.
const STRIDE: usize = 64;

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
    seconds: f64,
    objects: usize,
    rows: usize,
    /// The number of devices in use.
    devices: usize,
    /// The least bytes of a row.
    least: u64,
    /// Whether `tp_traverse` may be read.
    native: bool,
}

/// Follows references from variables to what holds blocks. `wanted` is a dict. The result is one:
///
/// - `complete`: whether nothing was cut; `graph`: whether graphs were read; `seen`, `references`:
///   the number of objects and references.
/// - `objects`: those on the chains; a text, the name of its type, in place of a tensor that
///   PyTorch told. `chains`: of each its variable and the places of its objects in `objects`.
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
    let told = walk.told(&wanted, reached, &cycles);
    walk.torch.release(walk.made.into_values().collect());
    told
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
    graph: Graph,
    /// The object of each node; null for a variable.
    objects: Vec<Object>,
    /// The node from which each was met first.
    parents: Vec<u32>,
    /// The first variable.
    first: u32,
    table: Table,
    types: FxHashMap<*mut ffi::PyTypeObject, Type>,
    /// What a reference is that PyTorch told, by its ends.
    labels: FxHashMap<(u32, u32), u32>,
    /// Objects that PyTorch made for an answer, such as those of the nodes of a graph.
    made: FxHashMap<u32, Bound<'py, PyAny>>,
    referents: Option<Bound<'py, PyAny>>,
    /// Nodes of graphs that wait for their turn.
    waiting: Vec<u32>,
    late: Vec<u32>,
    defers: bool,
    until: Instant,
    most: usize,
    complete: bool,
    /// The first node to which no variable leads.
    rest: u32,
    /// What the objects refer to that are being followed.
    found: Vec<Object>,
}

extern "C" fn visit(object: Object, found: *mut c_void) -> c_int {
    // SAFETY: `Walk::referents_of` passes its vector, which nothing else uses during the call.
    unsafe { (*found.cast::<Vec<Object>>()).push(object) };
    0
}

impl<'py> Walk<'py> {
    fn new(py: Python<'py>, torch: &Bound<'py, PyAny>, wanted: &Wanted<'py>) -> PyResult<Self> {
        let version = py.version_info();
        let native = wanted.native && (version.major, version.minor) >= (3, 10);
        let limit = Duration::try_from_secs_f64(wanted.seconds);
        let limit = limit.map_err(|error| wrong(error.to_string()))?;
        Ok(Self {
            py,
            torch: Torch::new(torch, &wanted.blocks, &wanted.late, wanted.devices)?,
            graph: Graph::default(),
            objects: Vec::new(),
            parents: Vec::new(),
            first: 0,
            table: Table::default(),
            types: FxHashMap::default(),
            labels: FxHashMap::default(),
            made: FxHashMap::default(),
            referents: if native { None } else { Some(py.import("gc")?.getattr("get_referents")?) },
            waiting: Vec::new(),
            late: Vec::new(),
            defers: false,
            until: Instant::now() + limit,
            most: wanted.objects,
            complete: true,
            rest: NONE,
            found: Vec::new(),
        })
    }

    /// Follows the references of the variables.
    fn follow(&mut self, wanted: &Wanted<'py>) -> PyResult<()> {
        for object in wanted.skipped.iter().chain(&wanted.hidden) {
            self.node_of(object.as_ptr(), NONE);
        }
        self.first = self.graph.len();
        let mut variables = Vec::new();
        for &passing in &wanted.passing {
            variables.push(self.graph.add_variable(passing));
            self.objects.push(std::ptr::null_mut());
            self.parents.push(NONE);
        }
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
                let (node, is_new) = self.node_of(value.as_ptr(), variable);
                if self.is_open(node) {
                    self.graph.refer(variable, node);
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
        let mut sizes = FxHashMap::default();
        let known: FxHashSet<u32> = self.torch.holds.iter().map(|hold| hold.block).collect();
        if known.len() == wanted.blocks.len() || !self.complete {
            return Ok(sizes);
        }
        self.hide(&wanted.hidden)?;
        let all = self.py.import("gc")?.call_method0("get_objects")?.cast_into::<PyList>()?;
        self.rest = self.graph.len();
        let mut level = Vec::new();
        for object in &all {
            let (node, is_new) = self.node_of(object.as_ptr(), NONE);
            if is_new && !object.is(&all) {
                level.push(node);
            }
        }
        drop(all);
        self.spread(level)?;
        self.ask_rest()?;
        if !self.complete {
            return Ok(sizes);
        }
        let rest = Rest::new(self);
        for hold in &self.torch.holds[reached..] {
            if !known.contains(&hold.block) {
                let size = rest.cycle_of(self, hold.node);
                let least = sizes.entry(hold.block).or_insert(size);
                *least = size.min(*least);
            }
        }
        Ok(sizes)
    }

    /// Marks what some objects lead to as met.
    fn hide(&mut self, objects: &Bound<'py, PyList>) -> PyResult<()> {
        let mut todo: Vec<Object> = objects.iter().map(|object| object.as_ptr()).collect();
        while let Some(object) = todo.pop() {
            self.referents_of(object)?;
            for child in std::mem::take(&mut self.found) {
                // SAFETY: its parent refers to it.
                let is_data = unsafe {
                    ffi::PyDict_CheckExact(child)
                        | ffi::PyList_CheckExact(child)
                        | ffi::PyTuple_CheckExact(child)
                        != 0
                };
                if is_data && self.node_of(child, NONE).1 {
                    todo.push(child);
                }
            }
        }
        Ok(())
    }

    /// The node of an object, and whether it is new. A new one was met from `parent`.
    fn node_of(&mut self, object: Object, parent: u32) -> (u32, bool) {
        let next = self.graph.len();
        let known = self.table.insert(object, next, &self.objects);
        if known == next {
            self.objects.push(object);
            self.parents.push(parent);
            self.graph.add();
        }
        (known, known == next)
    }

    /// Whether ways may lead through a node.
    fn is_open(&self, node: u32) -> bool {
        self.parents[node as usize] != NONE || node >= self.rest
    }

    /// Follows references from these nodes, and then from the graphs that were met.
    fn spread(&mut self, mut level: Vec<u32>) -> PyResult<()> {
        loop {
            while !level.is_empty() {
                let mut next = Vec::new();
                for (at, node) in level.into_iter().enumerate() {
                    let is_late = at % STRIDE == 0 && Instant::now() > self.until;
                    if is_late || self.objects.len() > self.most || !self.complete {
                        self.complete = false;
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
        let object = self.objects[node as usize];
        self.referents_of(object)?;
        let mut found = std::mem::take(&mut self.found);
        let mut targets = Vec::with_capacity(found.len());
        for object in found.drain(..) {
            let (to, is_new) = self.node_of(object, node);
            if self.is_open(to) {
                targets.push(to);
            }
            if is_new {
                self.sort(to, next)?;
            }
        }
        self.found = found;
        self.graph.refer_all(node, targets);
        if node < self.rest && self.type_of(object)?.kind.is_asked() {
            self.ask(node, next)?;
        }
        Ok(())
    }

    /// Adds what an object refers to as PyTorch tells it.
    fn ask(&mut self, node: u32, next: &mut Vec<u32>) -> PyResult<()> {
        // SAFETY: the object is alive until the walk ends.
        let object = unsafe { Bound::from_borrowed_ptr(self.py, self.objects[node as usize]) };
        for (other, label) in self.torch.references(node, &object) {
            let (to, is_new) = self.node_of(other.as_ptr(), node);
            if self.is_open(to) {
                self.graph.refer(node, to);
                self.labels.entry((node, to)).or_insert(label);
            }
            if is_new {
                self.sort(to, next)?;
                self.made.insert(to, other);
            }
        }
        Ok(())
    }

    /// Asks PyTorch about the objects that no variable leads to, but other objects of Python do. A
    /// tensor without those may be one that only PyTorch holds, and is just dropping.
    fn ask_rest(&mut self) -> PyResult<()> {
        let rest = self.rest;
        let held: FxHashSet<u32> = self
            .graph
            .edges()
            .filter(|&(from, to)| from.min(to) >= rest)
            .map(|(_, to)| to)
            .collect();
        let mut held: Vec<u32> = held.into_iter().collect();
        held.sort_unstable();
        let mut next = Vec::new();
        for node in held {
            if self.type_of(self.objects[node as usize])?.kind.is_asked() {
                self.ask(node, &mut next)?;
            }
        }
        Ok(())
    }

    /// Puts a new node where it waits for its turn.
    fn sort(&mut self, node: u32, next: &mut Vec<u32>) -> PyResult<()> {
        match self.type_of(self.objects[node as usize])?.kind {
            torch::Kind::Node => self.waiting.push(node),
            torch::Kind::Late if self.defers => self.late.push(node),
            _ => next.push(node),
        }
        Ok(())
    }

    /// Puts what an object refers to into `found`.
    fn referents_of(&mut self, object: Object) -> PyResult<()> {
        self.found.clear();
        if let Some(referents) = &self.referents {
            // SAFETY: the object is alive.
            let known = unsafe { Bound::from_borrowed_ptr(self.py, object) };
            // The object refers to them, so they outlive the list.
            let told = referents.call1((known,))?.cast_into::<PyList>()?;
            self.found.extend(told.iter().map(|one| one.as_ptr()));
        } else if let Some(traverse) = self.type_of(object)?.traverse {
            let found: *mut Vec<Object> = &raw mut self.found;
            // SAFETY: it is the slot of the object's own type, the object is tracked, and `visit`
            // only appends to the vector.
            unsafe { traverse(object, visit, found.cast()) };
        }
        self.found.retain(|&object| is_tracked(object));
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
            let slot = match &self.referents {
                Some(_) => std::ptr::null_mut(),
                None => ffi::PyType_GetSlot(pointer, ffi::Py_tp_traverse),
            };
            (class, std::mem::transmute::<*mut c_void, Option<ffi::traverseproc>>(slot))
        };
        let found = Type { kind: self.torch.kind_of(&class.cast_into()?)?, traverse };
        self.types.insert(pointer, found);
        Ok(found)
    }

    /// The nodes from a variable to this one, both with it.
    fn path(&self, node: u32) -> Vec<u32> {
        let mut path = vec![node];
        let mut at = self.parents[node as usize];
        while at != NONE {
            path.push(at);
            at = self.parents[at as usize];
        }
        path.reverse();
        path
    }

    /// Whether an object is only a part of another, so that no reference to it is told.
    fn is_part(&self, node: u32, parts: &[Bound<'py, PyType>]) -> bool {
        let (object, parent) = (self.objects[node as usize], self.parents[node as usize]);
        // SAFETY: the object is alive.
        let class = unsafe { ffi::Py_TYPE(object) };
        if self.types.get(&class).is_some_and(|known| known.kind == torch::Kind::Node)
            || parts.iter().any(|part| part.as_type_ptr() == class)
        {
            return true;
        }
        let holder = self.objects.get(parent as usize).copied().unwrap_or(std::ptr::null_mut());
        // SAFETY: both are alive.
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

    /// The result.
    fn told(
        &mut self,
        wanted: &Wanted<'py>,
        reached: usize,
        cycles: &FxHashMap<u32, usize>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let holds = &self.torch.holds[..reached];
        let pairs: Vec<(u32, u32)> = holds.iter().map(|hold| (hold.node, hold.block)).collect();
        let bytes: Vec<u64> = wanted.blocks.iter().map(|&(_, _, bytes)| bytes).collect();
        let limits = Limits { rows: wanted.rows, bytes: wanted.least, ..Limits::default() };
        let drops =
            self.graph.drops(&pairs, &bytes, &limits, |node| !self.is_part(node, &wanted.parts));
        let mut by_block: Vec<Vec<&Hold>> = vec![Vec::new(); bytes.len()];
        for hold in holds {
            by_block[hold.block as usize].push(hold);
        }
        let mut chains = Chains::new(self);
        let mut blocks = Vec::new();
        for (block, holds) in (0_u32..).zip(&by_block) {
            let chain = holds.first().map(|hold| chains.add(&self.path(hold.node))).transpose()?;
            let label = holds.first().and_then(|hold| hold.label);
            let view = holds.iter().map(|hold| hold.view).collect::<Option<Vec<u64>>>();
            let view = view.and_then(|views| views.into_iter().max());
            blocks.push((
                chain,
                label.map(|label| self.torch.label(label)),
                view,
                cycles.get(&block).copied(),
                drops.of_block[block as usize],
            ));
        }
        let mut rows = Vec::new();
        for row in drops.rows {
            let references = row.references.into_iter().map(|(from, to)| {
                let mut path = self.path(from);
                path.push(to);
                chains.add(&path)
            });
            rows.push((
                row.within,
                references.collect::<PyResult<Vec<_>>>()?,
                row.bytes,
                row.blocks,
            ));
        }
        let told = PyDict::new(self.py);
        told.set_item("complete", self.complete)?;
        told.set_item("graph", self.torch.is_read())?;
        told.set_item("seen", self.table.len())?;
        told.set_item("references", self.graph.references())?;
        told.set_item("objects", chains.objects)?;
        told.set_item("chains", chains.told)?;
        told.set_item("labels", chains.labels)?;
        told.set_item("blocks", blocks)?;
        told.set_item("rows", rows)?;
        Ok(told)
    }
}

/// Chains for Python. Their objects are held from here on.
struct Chains<'walk, 'py> {
    walk: &'walk Walk<'py>,
    places: FxHashMap<u32, usize>,
    objects: Vec<Bound<'py, PyAny>>,
    /// Of each its variable and the places of its objects.
    told: Vec<(u32, Vec<usize>)>,
    labels: FxHashMap<(usize, usize), torch::Label<'walk>>,
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

    /// Adds a chain of nodes, of which the first is a variable. Returns its number.
    fn add(&mut self, path: &[u32]) -> PyResult<usize> {
        let mut chain = Vec::new();
        for &node in &path[1..] {
            let place = match self.places.get(&node) {
                Some(&place) => place,
                None => {
                    let object = self.walk.objects[node as usize];
                    // SAFETY: the object is alive.
                    let object = unsafe { Bound::from_borrowed_ptr(self.walk.py, object) };
                    // It must go away before other threads run: see `Torch::release`.
                    let hides = self.walk.made.contains_key(&node);
                    let hides = hides && self.walk.torch.is_tensor(&object);
                    self.objects.push(if hides {
                        object.get_type().qualname()?.into_any()
                    } else {
                        object
                    });
                    self.places.insert(node, self.objects.len() - 1);
                    self.objects.len() - 1
                }
            };
            chain.push(place);
        }
        for (pair, places) in path[1..].windows(2).zip(chain.windows(2)) {
            if let Some(&label) = self.walk.labels.get(&(pair[0], pair[1])) {
                self.labels.insert((places[0], places[1]), self.walk.torch.label(label));
            }
        }
        self.told.push((path[0] - self.walk.first, chain));
        Ok(self.told.len() - 1)
    }
}

/// Whether Python's collector knows the object. What it does not know refers to nothing.
fn is_tracked(object: Object) -> bool {
    // SAFETY: the object is alive, and the lock is held.
    unsafe { ffi::PyObject_GC_IsTracked(object) != 0 }
}
