//! What PyTorch's objects refer to, which Python's collector is not told.
//!
//! Everything is read by PyTorch's own functions in C: those of a subclass may be the program's.
//!
//! Threads of PyTorch drop tensors without the interpreter's lock. To make an object of Python for
//! one that only they hold, such as the storage of a tensor, races with that, and has ended
//! processes. So addresses are read from tensors, not from their storages, and the base of a view
//! is left alone. What a live node or parameter holds does not go away while it is looked at.
//!
//! The object of a tensor releases the interpreter's lock when it goes away with the tensor, and
//! then other threads of Python run. So what is made for an answer is kept until the walk has
//! ended. [`Torch::release`] drops first what PyTorch holds too, while no other thread runs: up to
//! 2.9 PyTorch decides without a lock whether such an object goes away.

use super::frames;
use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyList, PyMappingProxy, PyString, PyTuple, PyType};
use rustc_hash::FxHashMap;

/// What a type is to the walk.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Plain,
    /// Code of the program, and optimizers: an optimizer names a parameter worse than a module.
    Late,
    Tensor,
    Storage,
    /// A node of the autograd graph.
    Node,
}

impl Kind {
    /// Whether PyTorch is asked for references.
    pub(super) fn is_asked(self) -> bool {
        matches!(self, Self::Tensor | Self::Storage | Self::Node)
    }
}

/// The kind of a reference and its name: docs/sidecar.md.
pub(super) type Label<'torch> = (&'static str, Option<&'torch str>);

/// An object that holds a block.
#[derive(Clone, Copy)]
pub(super) struct Hold {
    pub(super) node: u32,
    pub(super) block: u32,
    /// The reference to the tensor, where that is no object of Python.
    pub(super) label: Option<u32>,
    /// The bytes that the tensor uses; `None` if they are not known.
    pub(super) view: Option<u64>,
}

/// A function or attribute of a class of PyTorch.
struct Slot<'py>(Bound<'py, PyAny>);

impl<'py> Slot<'py> {
    fn of(class: &Bound<'py, PyAny>, name: &str) -> PyResult<Self> {
        class.getattr(name).map(Self)
    }

    fn get(&self, object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = object.py();
        self.0.call_method1(intern!(py, "__get__"), (object, object.get_type()))
    }

    fn call(&self, object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.0.call1((object,))
    }
}

/// The functions of PyTorch's classes.
struct Slots<'py> {
    is_cuda: Slot<'py>,
    is_leaf: Slot<'py>,
    retains_grad: Slot<'py>,
    grad: Slot<'py>,
    grad_fn: Slot<'py>,
    numel: Slot<'py>,
    element_size: Slot<'py>,
    data_ptr: Slot<'py>,
    get_device: Slot<'py>,
    use_count: Slot<'py>,
    storage_ptr: Slot<'py>,
    storage_bytes: Slot<'py>,
    storage_device: Slot<'py>,
}

pub(super) struct Torch<'py> {
    pub(super) holds: Vec<Hold>,
    labels: Vec<(&'static str, Option<String>)>,
    numbers: FxHashMap<(&'static str, Option<String>), u32>,
    blocks: Vec<(i64, u64, u64)>,
    late: Vec<Bound<'py, PyType>>,
    tensor: Bound<'py, PyType>,
    storage: Bound<'py, PyType>,
    slots: Slots<'py>,
    /// `type.__mro__` and `type.__dict__`, which a class cannot replace.
    mro: Slot<'py>,
    dict: Slot<'py>,
    /// The type of an attribute of a class of C.
    attribute: Bound<'py, PyAny>,
    /// Whether graphs and gradients are read.
    reads: bool,
    /// Whether saved tensors show what they hold. Before, reading one calls its hook.
    shows_saved: bool,
    profile: Profile<'py>,
    /// Tensors that were made for an answer.
    kept: Vec<Bound<'py, PyAny>>,
    /// By type of node: what it saves.
    saved: FxHashMap<usize, Vec<String>>,
    /// By type of tensor: whether it answers by code of the program.
    custom: FxHashMap<usize, bool>,
}

impl<'py> Torch<'py> {
    pub(super) fn new(
        torch: &Bound<'py, PyAny>,
        blocks: &[(i64, u64, u64)],
        late: &[Bound<'py, PyType>],
        devices: usize,
    ) -> PyResult<Self> {
        let py = torch.py();
        let own = torch.getattr("_C")?;
        let (base, storage) = (own.getattr("TensorBase")?, own.getattr("StorageBase")?);
        let saved = own.getattr("_autograd")?.getattr("SavedTensor")?;
        let class = py.get_type::<PyType>();
        // `type.__dict__` itself: `type.__mro__` would be that of `type`.
        let of_type = class.getattr("__dict__")?;
        let profile = Profile::new(py)?;
        let shows_saved = saved.hasattr("unpack_hook")?;
        // PyTorch 2.3 and later.
        let counts = base.hasattr("_use_count")?;
        Ok(Self {
            holds: Vec::new(),
            labels: Vec::new(),
            numbers: FxHashMap::default(),
            blocks: blocks.to_vec(),
            late: late.to_vec(),
            tensor: torch.getattr("Tensor")?.cast_into()?,
            storage: torch.getattr("UntypedStorage")?.cast_into()?,
            slots: Slots {
                is_cuda: Slot::of(&base, "is_cuda")?,
                is_leaf: Slot::of(&base, "is_leaf")?,
                retains_grad: Slot::of(&base, "retains_grad")?,
                grad: Slot::of(&base, "grad")?,
                grad_fn: Slot::of(&base, "grad_fn")?,
                numel: Slot::of(&base, "numel")?,
                element_size: Slot::of(&base, "element_size")?,
                data_ptr: Slot::of(&base, "data_ptr")?,
                get_device: Slot::of(&base, "get_device")?,
                use_count: Slot::of(&base, if counts { "_use_count" } else { "get_device" })?,
                storage_ptr: Slot::of(&storage, "data_ptr")?,
                storage_bytes: Slot::of(&storage, "nbytes")?,
                storage_device: Slot::of(&storage, "device")?,
            },
            mro: Slot(of_type.get_item("__mro__")?),
            dict: Slot(of_type.get_item("__dict__")?),
            attribute: py.import("types")?.getattr("GetSetDescriptorType")?,
            // A profiler of the program must not be replaced.
            reads: counts
                && frames::may_read(torch, devices)?
                && (shows_saved || profile.is_free()?),
            shows_saved,
            profile,
            kept: Vec::new(),
            saved: FxHashMap::default(),
            custom: FxHashMap::default(),
        })
    }

    /// Whether graphs and gradients are read.
    pub(super) fn is_read(&self) -> bool {
        self.reads
    }

    /// The kind of a reference.
    pub(super) fn label(&self, number: u32) -> Label<'_> {
        let (by, name) = &self.labels[number as usize];
        (by, name.as_deref())
    }

    fn number(&mut self, by: &'static str, name: Option<&str>) -> u32 {
        let key = (by, name.map(str::to_owned));
        if let Some(&known) = self.numbers.get(&key) {
            return known;
        }
        let number = u32::try_from(self.labels.len()).unwrap_or(u32::MAX);
        self.labels.push(key.clone());
        self.numbers.insert(key, number);
        number
    }

    /// Whether an object is a tensor that was made for an answer, or may be.
    pub(super) fn is_tensor(&self, object: &Bound<'py, PyAny>) -> bool {
        self.kind_of(&object.get_type()).is_ok_and(|kind| kind == Kind::Tensor)
    }

    /// Drops what was made for answers. Other threads of Python may run meanwhile.
    pub(super) fn release(self, made: Vec<Bound<'py, PyAny>>) {
        let (tensors, others): (Vec<_>, Vec<_>) = made
            .into_iter()
            .chain(self.kept)
            .partition(|one| self.slots.use_count.call(one).is_ok());
        // Containers of tensors, and nodes.
        drop(others);
        let is_shared = |one: &Bound<'py, PyAny>| {
            let count = self.slots.use_count.call(one).and_then(|count| count.extract::<i64>());
            count.is_ok_and(|count| count > 1)
        };
        let (shared, own): (Vec<_>, Vec<_>) = tensors.into_iter().partition(is_shared);
        drop(shared);
        drop(own);
    }

    // -- Types ------------------------------------------------------------------------------------

    /// The kind of a type.
    pub(super) fn kind_of(&self, class: &Bound<'py, PyType>) -> PyResult<Kind> {
        let bases = self.bases(class)?;
        let inherits = |base: &Bound<'py, PyType>| bases.iter().any(|one| one.is(base));
        let meta = class.py().get_type::<PyType>();
        Ok(if inherits(&self.tensor) {
            Kind::Tensor
        } else if inherits(&self.storage) {
            Kind::Storage
        } else if !inherits(&meta) && self.is_node(&bases)? {
            Kind::Node
        } else if self.late.iter().any(inherits) {
            Kind::Late
        } else {
            Kind::Plain
        })
    }

    /// A type and those that it inherits from.
    fn bases(&self, class: &Bound<'py, PyType>) -> PyResult<Bound<'py, PyTuple>> {
        Ok(self.mro.get(class.as_any())?.cast_into()?)
    }

    /// The attributes of a type itself.
    fn defined(&self, class: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyMappingProxy>> {
        Ok(self.dict.get(class)?.cast_into()?)
    }

    /// Whether a type with these bases is one of nodes of the autograd graph.
    fn is_node(&self, bases: &Bound<'py, PyTuple>) -> PyResult<bool> {
        for base in bases {
            let defined = self.defined(&base)?;
            if defined.contains(intern!(base.py(), "next_functions"))? {
                let next = defined.get_item(intern!(base.py(), "next_functions"))?;
                return Ok(next.get_type().is(&self.attribute));
            }
        }
        Ok(false)
    }

    /// Whether a dict is the one of the attributes of an object.
    pub(super) fn is_of_attributes(
        &self,
        object: &Bound<'py, PyAny>,
        dict: &Bound<'py, PyAny>,
    ) -> PyResult<bool> {
        let bases = self.bases(&object.get_type())?;
        let meta = object.py().get_type::<PyType>();
        if bases.iter().any(|base| base.is(&meta)) {
            return Ok(true);
        }
        let name = intern!(object.py(), "__dict__");
        for base in bases {
            let defined = self.defined(&base)?;
            if defined.contains(name)? {
                let own = defined.get_item(name)?;
                return Ok(own.get_type().is(&self.attribute) && Slot(own).get(object)?.is(dict));
            }
        }
        Ok(false)
    }

    /// Whether a type of tensors answers questions about their size by code of the program.
    fn is_custom(&mut self, class: &Bound<'py, PyType>) -> PyResult<bool> {
        let key = class.as_ptr() as usize;
        if let Some(&known) = self.custom.get(&key) {
            return Ok(known);
        }
        let mut custom = false;
        for base in self.bases(class)? {
            if base.is(&self.tensor) {
                break;
            }
            custom |= self.defined(&base)?.contains(intern!(base.py(), "__torch_dispatch__"))?;
        }
        self.custom.insert(key, custom);
        Ok(custom)
    }

    // -- References -------------------------------------------------------------------------------

    /// What an object refers to, with the kind of each reference. Notes the block that it holds.
    pub(super) fn references(
        &mut self,
        node: u32,
        object: &Bound<'py, PyAny>,
    ) -> Vec<(Bound<'py, PyAny>, u32)> {
        let mut found = Vec::new();
        let Ok(kind) = self.kind_of(&object.get_type()) else { return found };
        // What fails is a tensor without memory, or a node that was freed: it refers to nothing.
        let _: PyResult<()> = match kind {
            Kind::Tensor => self.of_tensor(node, object, &mut found),
            Kind::Storage => self.of_storage(node, object),
            Kind::Node if self.reads => self.of_node(node, object, &mut found),
            _ => Ok(()),
        };
        found
    }

    fn of_tensor(
        &mut self,
        node: u32,
        tensor: &Bound<'py, PyAny>,
        found: &mut Vec<(Bound<'py, PyAny>, u32)>,
    ) -> PyResult<()> {
        // Its graph is there even where its memory is not.
        let _: PyResult<()> = self.note(node, None, tensor);
        let mut add = |this: &mut Self, other: Bound<'py, PyAny>, by| {
            if !other.is_none() {
                found.push((other, this.number(by, None)));
            }
        };
        if self.reads {
            // Another thread's backward pass replaces the gradient without the lock, too.
            let is_leaf = self.slots.is_leaf.get(tensor)?.is_truthy()?;
            if is_leaf || self.slots.retains_grad.get(tensor)?.is_truthy()? {
                let gradient = self.slots.grad.get(tensor)?;
                add(self, gradient, "gradient");
            }
            let graph = self.slots.grad_fn.get(tensor)?;
            add(self, graph, "graph");
        }
        Ok(())
    }

    fn of_storage(&mut self, node: u32, storage: &Bound<'py, PyAny>) -> PyResult<()> {
        let address: u64 = self.slots.storage_ptr.call(storage)?.extract()?;
        let bytes: u64 = self.slots.storage_bytes.call(storage)?.extract()?;
        let device = self.slots.storage_device.get(storage)?;
        let device: i64 = device.getattr(intern!(storage.py(), "index"))?.extract()?;
        self.hold(Hold { node, block: 0, label: None, view: Some(bytes) }, device, address);
        Ok(())
    }

    fn of_node(
        &mut self,
        node: u32,
        object: &Bound<'py, PyAny>,
        found: &mut Vec<(Bound<'py, PyAny>, u32)>,
    ) -> PyResult<()> {
        let py = object.py();
        let next = object.getattr(intern!(py, "next_functions"))?.cast_into::<PyTuple>()?;
        for pair in next {
            let other = pair.get_item(0)?;
            if !other.is_none() {
                found.push((other, self.number("graph", None)));
            }
        }
        if object.get_type().name()? == "AccumulateGrad" {
            let leaf = object.getattr(intern!(py, "variable"))?;
            found.push((leaf, self.number("accumulates", None)));
        }
        for name in self.saved_names(&object.get_type())? {
            for value in self.saved_as(object, &name)? {
                if self.kind_of(&value.get_type())? == Kind::Tensor {
                    let label = self.number("saved", Some(&name));
                    let _: PyResult<()> = self.note(node, Some(label), &value);
                    self.kept.push(value);
                } else if !value.is_none() {
                    found.push((value, self.number("packed", Some(&name))));
                }
            }
        }
        Ok(())
    }

    /// The names under which nodes of a type save tensors.
    fn saved_names(&mut self, class: &Bound<'py, PyType>) -> PyResult<Vec<String>> {
        let key = class.as_ptr() as usize;
        if let Some(known) = self.saved.get(&key) {
            return Ok(known.clone());
        }
        let mut names = Vec::new();
        for base in self.bases(class)? {
            for name in self.defined(&base)?.keys()? {
                let name: String = name.extract()?;
                names.extend(name.strip_prefix("_raw_saved_").map(str::to_owned));
            }
        }
        names.sort_unstable();
        names.dedup();
        self.saved.insert(key, names.clone());
        Ok(names)
    }

    /// What a node has saved under a name, or what a hook has packed. No hook runs.
    fn saved_as(
        &mut self,
        node: &Bound<'py, PyAny>,
        name: &str,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let py = node.py();
        let each = |value: Bound<'py, PyAny>| -> PyResult<Vec<Bound<'py, PyAny>>> {
            if value.is_exact_instance_of::<PyTuple>() || value.is_exact_instance_of::<PyList>() {
                value.try_iter()?.collect()
            } else {
                Ok(vec![value])
            }
        };
        if self.shows_saved {
            let raw = each(node.getattr(format!("_raw_saved_{name}"))?)?;
            let data = raw.into_iter().map(|one| one.getattr(intern!(py, "data")));
            return Ok(data.flatten().collect());
        }
        let attribute =
            if name == "tensors" { "saved_tensors".to_owned() } else { format!("_saved_{name}") };
        let value = self.profile.refusing(|| node.getattr(attribute))?;
        let packed = self.profile.take()?;
        if !packed.is_empty() {
            return Ok(packed);
        }
        // What it has freed cannot be read.
        let Ok(value) = value else { return Ok(Vec::new()) };
        self.kept.push(value.clone());
        each(value)
    }

    // -- Blocks -----------------------------------------------------------------------------------

    fn note(&mut self, node: u32, label: Option<u32>, tensor: &Bound<'py, PyAny>) -> PyResult<()> {
        if !self.slots.is_cuda.get(tensor)?.is_truthy()? {
            return Ok(());
        }
        let view = if self.is_custom(&tensor.get_type())? {
            None
        } else {
            let count: u64 = self.slots.numel.call(tensor)?.extract()?;
            let bytes: u64 = self.slots.element_size.call(tensor)?.extract()?;
            count.checked_mul(bytes)
        };
        let address: u64 = self.slots.data_ptr.call(tensor)?.extract()?;
        let device: i64 = self.slots.get_device.call(tensor)?.extract()?;
        self.hold(Hold { node, block: 0, label, view }, device, address);
        Ok(())
    }

    /// Keeps what holds memory at an address, if that is in a block.
    fn hold(&mut self, hold: Hold, device: i64, address: u64) {
        let after = self.blocks.partition_point(|&(on, at, _)| (on, at) <= (device, address));
        let Some(block) = after.checked_sub(1) else { return };
        let (on, at, size) = self.blocks[block];
        if on == device && address > 0 && address - at < size {
            let block = u32::try_from(block).unwrap_or(u32::MAX);
            self.holds.push(Hold { block, ..hold });
        }
    }
}

/// Refuses hooks. Older releases call the hook of a saved tensor to read it. A profile function is
/// called before the first line of a function of Python, and may raise.
struct Profile<'py> {
    sys: Bound<'py, PyAny>,
    refuse: Bound<'py, PyAny>,
    /// The arguments of refused hooks: what they have packed.
    packed: Bound<'py, PyList>,
}

impl<'py> Profile<'py> {
    fn new(py: Python<'py>) -> PyResult<Self> {
        let packed = PyList::empty(py);
        let kept = packed.clone().unbind();
        let refuse = PyCFunction::new_closure(
            py,
            None,
            None,
            move |args: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| -> PyResult<()> {
                let py = args.py();
                let (frame, event): (Bound<'_, PyAny>, Bound<'_, PyString>) =
                    (args.get_item(0)?, args.get_item(1)?.cast_into()?);
                if event.to_cow()? != "call" {
                    return Ok(());
                }
                let code = frame.getattr(intern!(py, "f_code"))?;
                let count: usize = code.getattr(intern!(py, "co_argcount"))?.extract()?;
                if let Some(last) = count.checked_sub(1) {
                    let name = code.getattr(intern!(py, "co_varnames"))?.get_item(last)?;
                    let values = frame.getattr(intern!(py, "f_locals"))?;
                    kept.bind(py).append(values.get_item(name)?)?;
                }
                Err(PyRuntimeError::new_err("a hook is not run"))
            },
        )?;
        Ok(Self { sys: py.import("sys")?.into_any(), refuse: refuse.into_any(), packed })
    }

    /// Whether the program has no profile function.
    fn is_free(&self) -> PyResult<bool> {
        Ok(self.sys.call_method0("getprofile")?.is_none())
    }

    fn refusing<T>(&self, read: impl FnOnce() -> T) -> PyResult<T> {
        self.sys.call_method1("setprofile", (&self.refuse,))?;
        let told = read();
        self.sys.call_method1("setprofile", (self.sys.py().None(),))?;
        Ok(told)
    }

    /// What was refused since the last call.
    fn take(&self) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let packed = self.packed.iter().collect();
        self.packed.del_slice(0, self.packed.len())?;
        Ok(packed)
    }
}
