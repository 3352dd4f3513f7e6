//! The machine's memory: strings, long integers, floats, and containers that no sink took.

use crate::budget::Budget;
use crate::capacity::reserve_for;
use crate::error::ByteOffset;
use crate::strings::Strings;
use crate::value::{Kind, ObjectId, Slot, StrId, Value};

/// An oddity that did not stop the read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The kind of oddity.
    pub what: Oddity,
    /// The offset of the first occurrence.
    pub at: ByteOffset,
    /// The number of occurrences.
    pub count: u32,
}

/// The kinds of [`Note`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Oddity {
    /// A value that only Python code could build stayed closed. Holds the class's dotted name.
    Opaque(StrId),
    /// An integer of more than 128 bits was dropped.
    HugeInteger,
    /// Items for a value other than a list, dict or set were dropped.
    StrayItems,
}

/// With this number of notes, the first of a kind also counts further classes. So searching them
/// takes no time.
const MAX_NOTES: usize = 64;

#[derive(Default)]
struct ItemStore {
    items: Vec<Value>,
    /// Filled one item at a time, and not offered to the sink yet.
    is_pending: bool,
}

/// The machine's memory. A [`Sink`](crate::Sink) reads values through it.
#[derive(Default)]
pub struct Heap {
    /// Every string of the pickle, interned.
    pub strings: Strings,
    /// The limit of the memory that the stream may ask for.
    pub budget: Budget,
    /// One eight-byte slot per object. Most containers are taken when they close and never get a
    /// slot.
    objects: Vec<Value>,
    stores: Vec<ItemStore>,
    /// The capacity of all stores, in items.
    stored_items: usize,
    free_stores: Vec<u32>,
    longs: Vec<i128>,
    floats: Vec<f64>,
    notes: Vec<Note>,
    pending: u32,
    /// The number of lists and dicts that several places refer to, but no container, and that no
    /// sink took. Discarded ones stay in the count.
    shared: usize,
    /// The number of objects at the last [`Heap::reserve_ahead`].
    len_at_reserve: usize,
}

impl Heap {
    /// Creates an empty heap with this string table.
    pub fn with_strings(strings: Strings) -> Self {
        Self { strings, ..Self::default() }
    }

    /// The items of a list or tuple, or the alternating keys and values of a dict. Empty if a sink
    /// took the container.
    pub fn items(&self, value: Value) -> &[Value] {
        match value.kind() {
            Kind::List(id) | Kind::Dict(id) | Kind::Tuple(id) => match self.slot(id) {
                Slot::Stored(store) => &self.stores[store as usize].items,
                Slot::Empty(_) | Slot::Taken(_) => &[],
            },
            _ => &[],
        }
    }

    /// The sink's value for a taken container; any other value unchanged.
    #[inline]
    pub fn resolve(&self, value: Value) -> Value {
        if value.is_container() { self.resolve_container(value) } else { value }
    }

    /// [`Heap::resolve`] for containers, out of line because most values are not containers.
    #[inline(never)]
    fn resolve_container(&self, value: Value) -> Value {
        match value.kind() {
            Kind::List(id) | Kind::Dict(id) => match self.slot(id) {
                Slot::Taken(replacement) => replacement,
                Slot::Empty(_) | Slot::Stored(_) => value,
            },
            _ => value,
        }
    }

    /// A number as an integer of at most 128 bits. Also accepts a bool, a float without a fraction
    /// and a string of digits (JSON re-exports have the last two).
    pub fn int(&self, value: Value) -> Option<i128> {
        match value.kind() {
            Kind::Int(i) => Some(i128::from(i)),
            Kind::Bool(b) => Some(i128::from(b)),
            Kind::Long(i) => Some(self.longs[i as usize]),
            Kind::Float(i) => {
                let f = self.floats[i as usize];
                (f.fract() == 0.0 && f.abs() < 1e38).then_some(f as i128)
            }
            Kind::Str(id) => std::str::from_utf8(self.strings.bytes(id)).ok()?.parse().ok(),
            _ => None,
        }
    }

    /// [`Heap::int`] as 64 bits. `None` if the integer needs more.
    #[inline]
    pub fn small_int(&self, value: Value) -> Option<i64> {
        match value.kind() {
            Kind::Int(i) => Some(i),
            _ => self.int(value).and_then(|i| i64::try_from(i).ok()),
        }
    }

    /// A number as a float.
    pub fn float(&self, value: Value) -> Option<f64> {
        match value.kind() {
            Kind::Float(i) => Some(self.floats[i as usize]),
            _ => self.int(value).map(|i| i as f64),
        }
    }

    /// All oddities, each kind once. About 64 classes have notes of their own.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// Bytes of memory held, strings included.
    pub fn memory(&self) -> usize {
        self.strings.memory()
            + self.objects.capacity() * size_of::<Value>()
            + self.stores.capacity() * size_of::<ItemStore>()
            + self.stored_items * size_of::<Value>()
            + self.free_stores.capacity() * size_of::<u32>()
            + self.notes.capacity() * size_of::<Note>()
            + self.longs.capacity() * size_of::<i128>()
            + self.floats.capacity() * size_of::<f64>()
    }

    /// Reserves slots for the rest of the stream. `rest` is its length, in multiples of the bytes
    /// read since the last call.
    pub(crate) fn reserve_ahead(&mut self, rest: f64) {
        let late = self.objects.len() - self.len_at_reserve;
        self.len_at_reserve += late;
        reserve_for(&mut self.objects, late, rest);
    }

    /// Creates a value for an integer.
    pub fn make_int(&mut self, i: i128) -> Value {
        if let Some(value) = i64::try_from(i).ok().and_then(Value::small_int) {
            return value;
        }
        self.longs.push(i);
        Value::long(self.longs.len() as u32 - 1)
    }

    /// Creates a value for a float.
    pub fn make_float(&mut self, f: f64) -> Value {
        self.floats.push(f);
        Value::float(self.floats.len() as u32 - 1)
    }

    /// Creates a value for a string.
    pub fn make_str(&mut self, bytes: &[u8]) -> Value {
        Value::str(self.strings.intern(bytes))
    }

    /// Creates a list of these items.
    pub fn make_list(&mut self, items: &[Value]) -> Value {
        let value = self.new_list();
        self.extend(value, items);
        value
    }

    /// Creates a dict of these alternating keys and values.
    pub fn make_dict(&mut self, pairs: &[Value]) -> Value {
        let value = self.new_dict();
        self.extend(value, pairs);
        value
    }

    fn new_object(&mut self, memo: Option<u32>) -> u32 {
        self.objects.push(Value::empty_slot(memo));
        self.objects.len() as u32 - 1
    }

    pub(crate) fn new_list(&mut self) -> Value {
        Value::list(self.new_object(None))
    }

    pub(crate) fn new_dict(&mut self) -> Value {
        Value::dict(self.new_object(None))
    }

    /// Creates the object of a dict or list that memo entry `memo` refers to.
    pub(crate) fn new_memoized(&mut self, dict: bool, memo: u32) -> Value {
        let id = self.new_object(Some(memo));
        if dict { Value::dict(id) } else { Value::list(id) }
    }

    /// Notes that a second place refers to a list or dict, at which it may change. `is_free` is
    /// whether no container holds it, if it had one place only.
    pub(crate) fn share(&mut self, value: Value, is_free: impl FnOnce() -> bool) {
        let (Kind::List(id) | Kind::Dict(id)) = value.kind() else { return };
        let slot = self.objects[id.0 as usize];
        if slot.is_shared() || slot.is_held() {
            return;
        }
        let marked = if is_free() { slot.shared() } else { slot.held() };
        self.shared += usize::from(marked.is_shared());
        self.objects[id.0 as usize] = marked;
    }

    /// Marks the lists and dicts among `items`: another container holds them from now on. Nothing
    /// to do for containers that have one place only: they leave it.
    #[inline]
    pub(crate) fn hold(&mut self, items: &[Value]) {
        if self.shared > 0 {
            self.hold_each(items);
        }
    }

    #[inline(never)]
    fn hold_each(&mut self, items: &[Value]) {
        for &item in items {
            if item.is_container() {
                self.hold_one(item);
            }
        }
    }

    fn hold_one(&mut self, value: Value) {
        let (Kind::List(id) | Kind::Dict(id)) = value.kind() else { return };
        let slot = self.objects[id.0 as usize];
        self.shared -= usize::from(slot.is_shared());
        self.objects[id.0 as usize] = slot.held();
    }

    /// Whether another container holds this one, so that it must not change.
    pub(crate) fn is_held(&self, id: ObjectId) -> bool {
        self.objects[id.0 as usize].is_held()
    }

    /// Whether a list or dict is empty, and no container holds it.
    pub(crate) fn is_new(&self, id: ObjectId) -> bool {
        let slot = self.objects[id.0 as usize];
        matches!(slot.slot(), Slot::Empty(_)) && !slot.is_held()
    }

    pub(crate) fn make_tuple(&mut self, items: &[Value]) -> Value {
        let value = Value::tuple(self.new_object(None));
        self.extend(value, items);
        value
    }

    pub(crate) fn note(&mut self, what: Oddity, at: ByteOffset) {
        let is_same_kind =
            |n: &Note| std::mem::discriminant(&n.what) == std::mem::discriminant(&what);
        let known = self.notes.iter().position(|n| n.what == what).or_else(|| {
            let is_full = self.notes.len() >= MAX_NOTES;
            is_full.then(|| self.notes.iter().position(is_same_kind)).flatten()
        });
        match known.map(|known| &mut self.notes[known]) {
            Some(note) => note.count = note.count.saturating_add(1),
            None => self.notes.push(Note { what, at, count: 1 }),
        }
    }

    /// Stores the memo index of an empty container, so that the entry can be redirected when a sink
    /// takes the container.
    pub(crate) fn set_memo_index(&mut self, value: Value, index: u32) {
        if let Kind::List(id) | Kind::Dict(id) = value.kind()
            && self.slot(id) == Slot::Empty(None)
        {
            let slot = &mut self.objects[id.0 as usize];
            *slot = Value::empty_slot(Some(index)).with_marks(*slot);
        }
    }

    pub(crate) fn slot(&self, id: ObjectId) -> Slot {
        self.objects[id.0 as usize].slot()
    }

    /// Replaces an object by the sink's value.
    pub(crate) fn replace(&mut self, id: ObjectId, replacement: Value) {
        let before = self.slot(id);
        self.shared -= usize::from(self.objects[id.0 as usize].is_shared());
        self.objects[id.0 as usize] = replacement;
        if let Slot::Stored(store) = before {
            self.clear_pending(store);
            self.stores[store as usize].items.clear();
            self.free_stores.push(store);
        }
    }

    /// Appends to an object that no sink took.
    pub(crate) fn extend(&mut self, value: Value, items: &[Value]) {
        if items.is_empty() {
            return;
        }
        let store = self.store_of(value);
        self.extend_store(store, items);
    }

    fn extend_store(&mut self, store: usize, to_add: &[Value]) {
        let items = &mut self.stores[store].items;
        self.stored_items -= items.capacity();
        items.extend_from_slice(to_add);
        self.stored_items += items.capacity();
    }

    /// Appends to an object that is filled one item at a time. The sink gets it when the object is
    /// used.
    pub(crate) fn extend_pending(&mut self, value: Value, items: &[Value]) {
        let index = self.store_of(value);
        self.extend_store(index, items);
        let store = &mut self.stores[index];
        if !store.is_pending {
            store.is_pending = true;
            self.pending += 1;
        }
    }

    fn store_of(&mut self, value: Value) -> usize {
        let (Kind::List(id) | Kind::Dict(id) | Kind::Tuple(id)) = value.kind() else {
            unreachable!("only containers have items")
        };
        if let Slot::Stored(store) = self.slot(id) {
            return store as usize;
        }
        let store = self.free_stores.pop().unwrap_or_else(|| {
            self.stores.push(ItemStore::default());
            self.stores.len() as u32 - 1
        });
        let slot = &mut self.objects[id.0 as usize];
        *slot = Value::stored_slot(store).with_marks(*slot);
        store as usize
    }

    pub(crate) fn has_pending(&self) -> bool {
        self.pending > 0
    }

    /// Moves out the items of an object that was not offered to the sink yet.
    /// [`Heap::restore_items`] puts them back.
    pub(crate) fn take_pending(&mut self, value: Value) -> Option<(ObjectId, Vec<Value>)> {
        let (Kind::List(id) | Kind::Dict(id)) = value.kind() else { return None };
        let Slot::Stored(store) = self.slot(id) else { return None };
        if !self.stores[store as usize].is_pending {
            return None;
        }
        self.clear_pending(store);
        let items = std::mem::take(&mut self.stores[store as usize].items);
        self.stored_items -= items.capacity();
        Some((id, items))
    }

    pub(crate) fn restore_items(&mut self, id: ObjectId, items: Vec<Value>) {
        if let Slot::Stored(store) = self.slot(id) {
            let store = &mut self.stores[store as usize];
            self.stored_items += items.capacity();
            self.stored_items -= store.items.capacity();
            store.items = items;
        }
    }

    fn clear_pending(&mut self, store: u32) {
        let store = &mut self.stores[store as usize];
        if store.is_pending {
            store.is_pending = false;
            self.pending -= 1;
        }
    }
}
