//! What PyTorch's objects refer to, which Python's collector is not told.
//!
//! Everything is read by PyTorch's own functions in C: those of a subclass may be the program's.
//! A tensor that answers by `__torch_dispatch__` is asked nothing, nor one that wraps such a tensor
//! in C++. What the first is made of is found by its attributes. Both may hold memory that is not
//! seen, so they are counted: [`Torch::opaque`].
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

use super::keys::Keys;
use super::profile::Profile;
use super::{Wanted, frames};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyMappingProxy, PyString, PyTuple, PyType};
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

/// The kind of a reference and its name: SIDECAR.md.
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
        self.0.call_method1("__get__", (object, object.get_type()))
    }

    fn call(&self, object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.0.call1((object,))
    }
}

/// What is read of nodes of a type.
#[derive(Default)]
struct NodeSlots<'py> {
    next: Option<Slot<'py>>,
    /// The leaf of a node that accumulates.
    leaf: Option<Slot<'py>>,
    /// What it saves, by name.
    saved: Vec<(String, Slot<'py>)>,
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
    module: Bound<'py, PyAny>,
    /// The number of devices in use.
    devices: usize,
    pub(super) holds: Vec<Hold>,
    labels: Vec<(&'static str, Option<String>)>,
    numbers: FxHashMap<(&'static str, Option<String>), u32>,
    blocks: Vec<(i64, u64, u64)>,
    late: Vec<Bound<'py, PyType>>,
    tensor: Bound<'py, PyType>,
    storage: Bound<'py, PyType>,
    /// Types of tensors that have no memory.
    hollow: Vec<Bound<'py, PyType>>,
    slots: Slots<'py>,
    keys: Option<Keys<'py>>,
    /// `type.__mro__`, `type.__dict__` and `type.__qualname__`, which a class cannot replace.
    mro: Slot<'py>,
    dict: Slot<'py>,
    qualname: Slot<'py>,
    /// The type of an attribute of a class of C.
    attribute: Bound<'py, PyAny>,
    /// Whether graphs and gradients are read.
    reads: bool,
    /// Whether saved tensors show what they hold. Before, reading one calls its hook.
    shows_saved: bool,
    profile: Profile<'py>,
    /// Tensors that were made for an answer.
    kept: Vec<Bound<'py, PyAny>>,
    /// By type of node: what is read of it.
    nodes: FxHashMap<usize, NodeSlots<'py>>,
    /// By type of tensor: whether it answers by code of the program.
    custom: FxHashMap<usize, bool>,
    opaque: usize,
    /// Whether something else than a hook was refused.
    ran: bool,
}

impl<'py> Torch<'py> {
    pub(super) fn new(torch: &Bound<'py, PyAny>, wanted: &Wanted<'py>) -> PyResult<Self> {
        let py = torch.py();
        let own = torch.getattr("_C")?;
        let (base, storage) = (own.getattr("TensorBase")?, own.getattr("StorageBase")?);
        let saved = own.getattr("_autograd")?.getattr("SavedTensor")?;
        let class = py.get_type::<PyType>();
        // `type.__dict__` itself: `type.__mro__` would be that of `type`.
        let of_type = class.getattr("__dict__")?;
        let shows_saved = saved.hasattr("unpack_hook")?;
        // PyTorch 2.3 and later.
        let counts = base.hasattr("_use_count")?;
        let mut profile = Profile::new(py)?;
        let mut reads = counts && frames::may_read(torch, wanted.devices)?;
        if reads && !shows_saved {
            reads = profile.set()?;
        }
        Ok(Self {
            module: torch.clone(),
            devices: wanted.devices,
            holds: Vec::new(),
            labels: Vec::new(),
            numbers: FxHashMap::default(),
            blocks: wanted.blocks.clone(),
            late: wanted.late.clone(),
            tensor: torch.getattr("Tensor")?.cast_into()?,
            storage: torch.getattr("UntypedStorage")?.cast_into()?,
            hollow: wanted.hollow.clone(),
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
            keys: Keys::new(&own),
            mro: Slot(of_type.get_item("__mro__")?),
            dict: Slot(of_type.get_item("__dict__")?),
            qualname: Slot(of_type.get_item("__qualname__")?),
            attribute: py.import("types")?.getattr("GetSetDescriptorType")?,
            reads,
            shows_saved,
            profile,
            kept: Vec::new(),
            nodes: FxHashMap::default(),
            custom: FxHashMap::default(),
            opaque: 0,
            ran: false,
        })
    }

    /// The number of tensors that may hold memory and were not read.
    pub(super) fn opaque(&self) -> usize {
        self.opaque
    }

    /// Whether code of the program was called, and refused.
    pub(super) fn refused(&self) -> bool {
        self.ran || self.profile.refused()
    }

    /// Reads no graphs from now on, if other threads that ran may change them.
    pub(super) fn look_again(&mut self) -> PyResult<()> {
        self.reads = self.reads && frames::may_read(&self.module, self.devices)?;
        Ok(())
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

    /// Lets functions of Python run again. The walk follows nothing from here on.
    pub(super) fn end(&mut self) {
        self.profile.unset();
    }

    /// Drops what was made for answers. Other threads of Python may run meanwhile.
    pub(super) fn release(&mut self, made: Vec<Bound<'py, PyAny>>) {
        let (tensors, others): (Vec<_>, Vec<_>) = made
            .into_iter()
            .chain(std::mem::take(&mut self.kept))
            .partition(|one| self.is_tensor(one));
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

    /// The name of a type.
    pub(super) fn name_of(&self, class: &Bound<'py, PyType>) -> PyResult<Bound<'py, PyAny>> {
        self.qualname.get(class.as_any())
    }

    /// The attributes of a type itself.
    fn defined(&self, class: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyMappingProxy>> {
        Ok(self.dict.get(class)?.cast_into()?)
    }

    /// Whether a type with these bases is one of nodes of the autograd graph.
    fn is_node(&self, bases: &Bound<'py, PyTuple>) -> PyResult<bool> {
        Ok(self.attribute_of(bases, "next_functions")?.is_some())
    }

    /// An attribute of C that a type with these bases has; `None` if one of them replaces it.
    fn attribute_of(&self, bases: &Bound<'py, PyTuple>, name: &str) -> PyResult<Option<Slot<'py>>> {
        for base in bases {
            let defined = self.defined(&base)?;
            if defined.contains(name)? {
                let found = defined.get_item(name)?;
                let is_own = found.get_type().is(&self.attribute);
                return Ok(is_own.then_some(Slot(found)));
            }
        }
        Ok(None)
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
        match self.attribute_of(&bases, "__dict__")? {
            Some(own) => Ok(own.get(object)?.is(dict)),
            None => Ok(false),
        }
    }

    /// Whether a tensor may be asked. One that may not is counted, unless it has no memory.
    fn may_ask(&mut self, tensor: &Bound<'py, PyAny>) -> PyResult<bool> {
        let class = tensor.get_type();
        let is_custom = self.is_custom(&class)?;
        if is_custom || self.keys.as_ref().is_some_and(|keys| keys.may_run(tensor)) {
            self.opaque += usize::from(!self.hollow.iter().any(|one| one.is(&class)));
            return Ok(false);
        }
        Ok(true)
    }

    /// Whether a type of tensors answers questions by code of the program.
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
            custom |= self.defined(&base)?.contains("__torch_dispatch__")?;
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
        if !self.may_ask(tensor)? {
            return Ok(());
        }
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
        // Memory of the host has no index. One without memory may have a size that is computed.
        let device = self.slots.storage_device.get(storage)?;
        let device: i64 = device.getattr("index")?.extract()?;
        let address: u64 = self.slots.storage_ptr.call(storage)?.extract()?;
        let bytes: u64 = self.slots.storage_bytes.call(storage)?.extract()?;
        self.hold(Hold { node, block: 0, label: None, view: Some(bytes) }, device, address);
        Ok(())
    }

    fn of_node(
        &mut self,
        node: u32,
        object: &Bound<'py, PyAny>,
        found: &mut Vec<(Bound<'py, PyAny>, u32)>,
    ) -> PyResult<()> {
        let key = object.get_type().as_ptr() as usize;
        if !self.nodes.contains_key(&key) {
            let slots = self.node_slots(&object.get_type())?;
            self.nodes.insert(key, slots);
        }
        // Put back below: answers change what is known of tensors.
        let slots = self.nodes.remove(&key).unwrap_or_default();
        let told = self.of_node_by(&slots, node, object, found);
        self.nodes.insert(key, slots);
        told
    }

    fn of_node_by(
        &mut self,
        slots: &NodeSlots<'py>,
        node: u32,
        object: &Bound<'py, PyAny>,
        found: &mut Vec<(Bound<'py, PyAny>, u32)>,
    ) -> PyResult<()> {
        if let Some(next) = &slots.next {
            for pair in next.get(object)?.cast_into::<PyTuple>()? {
                let other = pair.cast_into::<PyTuple>()?.get_item(0)?;
                if !other.is_none() {
                    found.push((other, self.number("graph", None)));
                }
            }
        }
        if let Some(leaf) = &slots.leaf {
            found.push((leaf.get(object)?, self.number("accumulates", None)));
        }
        for (name, slot) in &slots.saved {
            if !self.reads {
                break;
            }
            for value in self.saved_as(object, slot)? {
                if self.kind_of(&value.get_type())? == Kind::Tensor {
                    let label = self.number("saved", Some(name));
                    if self.may_ask(&value)? {
                        let _: PyResult<()> = self.note(node, Some(label), &value);
                    }
                    self.kept.push(value);
                } else if !value.is_none() {
                    found.push((value, self.number("packed", Some(name))));
                }
            }
        }
        Ok(())
    }

    /// What is read of nodes of a type: only attributes of C, which run no code.
    fn node_slots(&self, class: &Bound<'py, PyType>) -> PyResult<NodeSlots<'py>> {
        let bases = self.bases(class)?;
        let mut names: Vec<String> = Vec::new();
        for base in &bases {
            for name in self.defined(&base)?.keys()? {
                let Ok(name) = name.cast_into_exact::<PyString>() else { continue };
                names.extend(name.to_cow()?.strip_prefix("_raw_saved_").map(str::to_owned));
            }
        }
        names.sort_unstable();
        names.dedup();
        let mut saved = Vec::new();
        for name in names {
            let attribute = match &name[..] {
                _ if self.shows_saved => format!("_raw_saved_{name}"),
                "tensors" => "saved_tensors".to_owned(),
                _ => format!("_saved_{name}"),
            };
            saved.extend(self.attribute_of(&bases, &attribute)?.map(|slot| (name, slot)));
        }
        Ok(NodeSlots {
            next: self.attribute_of(&bases, "next_functions")?,
            leaf: self.attribute_of(&bases, "variable")?,
            saved,
        })
    }

    /// What a node has saved, or what a hook has packed. No hook runs.
    fn saved_as(
        &mut self,
        node: &Bound<'py, PyAny>,
        slot: &Slot<'py>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let each = |value: Bound<'py, PyAny>| {
            if let Ok(tuple) = value.cast_exact::<PyTuple>() {
                tuple.iter().collect()
            } else if let Ok(list) = value.cast_exact::<PyList>() {
                list.iter().collect()
            } else {
                vec![value]
            }
        };
        if self.shows_saved {
            let raw = each(slot.get(node)?);
            let data = raw.into_iter().map(|one| one.getattr("data"));
            return Ok(data.flatten().collect());
        }
        self.ran |= !self.profile.take()?.is_empty();
        let value = slot.get(node);
        let packed = self.profile.take()?;
        if !packed.is_empty() {
            // Python lets other threads run when it enters a function, before the profile function
            // is called that refuses it.
            self.look_again()?;
            return Ok(packed);
        }
        // What it has freed cannot be read.
        let Ok(value) = value else { return Ok(Vec::new()) };
        self.kept.push(value.clone());
        Ok(each(value))
    }

    // -- Blocks -----------------------------------------------------------------------------------

    /// Notes the block of a tensor that may be asked. One on a device without an address, such as a
    /// sparse one, holds blocks that are not seen.
    fn note(&mut self, node: u32, label: Option<u32>, tensor: &Bound<'py, PyAny>) -> PyResult<()> {
        if !self.slots.is_cuda.get(tensor)?.is_truthy()? {
            return Ok(());
        }
        let Ok(address) = self.slots.data_ptr.call(tensor).and_then(|one| one.extract::<u64>())
        else {
            self.opaque += 1;
            return Ok(());
        };
        let count: u64 = self.slots.numel.call(tensor)?.extract()?;
        let bytes: u64 = self.slots.element_size.call(tensor)?.extract()?;
        let device: i64 = self.slots.get_device.call(tensor)?.extract()?;
        self.hold(Hold { node, block: 0, label, view: count.checked_mul(bytes) }, device, address);
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
