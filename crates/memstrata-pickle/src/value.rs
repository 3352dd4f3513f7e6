//! What stands on the machine's stack: eight bytes a value.

/// A value: a tag in the low four bits, a payload above. Copying it copies no data.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Value(u64);

/// Index of an interned string in [`Strings`](crate::Strings). Equal strings have equal ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StrId(pub u32);

/// Index of a list or dict that the machine holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ObjectId(pub u32);

/// What a [`Value`] is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// `None`.
    None,
    /// `True` or `False`.
    Bool(bool),
    /// An integer of at most 60 bits with its sign.
    Int(i64),
    /// A longer integer: index into the heap's long integers.
    Long(u32),
    /// A float: index into the heap's floats.
    Float(u32),
    /// A string.
    Str(StrId),
    /// Bytes; their content is not kept.
    Bytes,
    /// A list.
    List(ObjectId),
    /// A dict.
    Dict(ObjectId),
    /// A tuple that the sink did not take.
    Tuple(ObjectId),
    /// What the sink put in an object's place: its own kind and index.
    Ext(u8, u32),
    /// A class, by its dotted name. It is never looked up.
    Class(StrId),
    /// Something that only Python could make: its class name. It stays closed.
    Opaque(StrId),
}

/// What became of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    /// Nothing in it yet; the memo entry that refers to it, if any.
    Empty(Option<u32>),
    /// Its items are in this store.
    Stored(u32),
    /// A sink took it and gave this in its place.
    Taken(Value),
}

const TAG_BITS: u32 = 4;
const TAG_MASK: u64 = (1 << TAG_BITS) - 1;

const NONE: u64 = 0;
const BOOL: u64 = 1;
const INT: u64 = 2;
const LONG: u64 = 3;
const FLOAT: u64 = 4;
const STR: u64 = 5;
const BYTES: u64 = 6;
const LIST: u64 = 7;
const DICT: u64 = 8;
const TUPLE: u64 = 9;
const EXT: u64 = 10;
const CLASS: u64 = 11;
const OPAQUE: u64 = 12;
// The machine's own marks: an empty container's slot, a filled one's, and what means nothing yet.
const EMPTY: u64 = 13;
const STORED: u64 = 14;
const UNSET: u64 = 15;
/// Above the number of an open container: it is one, and which.
const OPEN_LIST: u64 = 1 << 32;
const OPEN_DICT: u64 = 2 << 32;

impl Value {
    /// `None`.
    pub const NONE: Self = Self(NONE);

    const fn new(tag: u64, payload: u64) -> Self {
        Self(payload << TAG_BITS | tag)
    }

    /// A bool.
    pub const fn bool(b: bool) -> Self {
        Self::new(BOOL, b as u64)
    }

    /// An integer that fits in 60 bits, or `None`.
    pub const fn small_int(i: i64) -> Option<Self> {
        if (i << TAG_BITS) >> TAG_BITS == i { Some(Self((i << TAG_BITS) as u64 | INT)) } else { None }
    }

    /// An integer of 32 bits.
    pub(crate) const fn int(i: i32) -> Self {
        Self(((i as i64) << TAG_BITS) as u64 | INT)
    }

    pub(crate) const fn long(index: u32) -> Self {
        Self::new(LONG, index as u64)
    }

    pub(crate) const fn float(index: u32) -> Self {
        Self::new(FLOAT, index as u64)
    }

    /// A string.
    pub const fn str(id: StrId) -> Self {
        Self::new(STR, id.0 as u64)
    }

    pub(crate) const BYTES: Self = Self::new(BYTES, 0);

    pub(crate) const fn list(id: u32) -> Self {
        Self::new(LIST, id as u64)
    }

    pub(crate) const fn dict(id: u32) -> Self {
        Self::new(DICT, id as u64)
    }

    pub(crate) const fn tuple(id: u32) -> Self {
        Self::new(TUPLE, id as u64)
    }

    /// A sink's own value: a kind of its choosing and an index.
    pub const fn ext(kind: u8, index: u32) -> Self {
        Self::new(EXT, (kind as u64) << 32 | index as u64)
    }

    pub(crate) const fn class(name: StrId) -> Self {
        Self::new(CLASS, name.0 as u64)
    }

    pub(crate) const fn opaque(name: StrId) -> Self {
        Self::new(OPAQUE, name.0 as u64)
    }

    /// A memo entry that was never written.
    pub(crate) const UNSET: Self = Self::new(UNSET, 0);

    /// A container that is open: begun, and so far with nothing but its memo entry to refer to it. It has no object yet,
    /// since nearly all are taken when they close. On the stack it stands right below its mark, with the number of its memo
    /// entry; that entry has its place on the stack.
    pub(crate) const fn open(dict: bool, number: u32) -> Self {
        Self::new(UNSET, if dict { OPEN_DICT } else { OPEN_LIST } | number as u64)
    }

    /// Whether an open container is a dict, and its number.
    pub(crate) const fn as_open(self) -> Option<(bool, u32)> {
        let payload = self.0 >> TAG_BITS;
        if self.means_something() || payload < OPEN_LIST { None } else { Some((payload >= OPEN_DICT, payload as u32)) }
    }

    /// Whether it is more than a memo entry never written, or an open container.
    pub(crate) const fn means_something(self) -> bool {
        self.0 & TAG_MASK != UNSET
    }

    /// The slot of an empty container, and the memo entry that refers to it.
    pub(crate) const fn empty_slot(memo: Option<u32>) -> Self {
        Self::new(
            EMPTY,
            match memo {
                Some(index) => index as u64 + 1,
                None => 0,
            },
        )
    }

    /// The slot of a container with items: where they are.
    pub(crate) const fn stored_slot(store: u32) -> Self {
        Self::new(STORED, store as u64)
    }

    /// What a container's slot says.
    pub(crate) const fn slot(self) -> Slot {
        let payload = self.0 >> TAG_BITS;
        match self.0 & TAG_MASK {
            EMPTY if payload == 0 => Slot::Empty(None),
            EMPTY => Slot::Empty(Some((payload - 1) as u32)),
            STORED => Slot::Stored(payload as u32),
            _ => Slot::Taken(self),
        }
    }

    /// What it is.
    pub const fn kind(self) -> Kind {
        let payload = self.0 >> TAG_BITS;
        let low = payload as u32;
        match self.0 & TAG_MASK {
            NONE => Kind::None,
            BOOL => Kind::Bool(payload != 0),
            INT => Kind::Int(self.0 as i64 >> TAG_BITS),
            LONG => Kind::Long(low),
            FLOAT => Kind::Float(low),
            STR => Kind::Str(StrId(low)),
            BYTES => Kind::Bytes,
            LIST => Kind::List(ObjectId(low)),
            DICT => Kind::Dict(ObjectId(low)),
            TUPLE => Kind::Tuple(ObjectId(low)),
            EXT => Kind::Ext((payload >> 32) as u8, low),
            CLASS => Kind::Class(StrId(low)),
            _ => Kind::Opaque(StrId(low)),
        }
    }

    /// Whether it holds other values: what it means may change while those come.
    pub(crate) const fn is_container(self) -> bool {
        matches!(self.0 & TAG_MASK, LIST | DICT | TUPLE)
    }

    /// The index of a sink's own value of this kind.
    pub const fn as_ext(self, kind: u8) -> Option<u32> {
        let head = EXT | (kind as u64) << (32 + TAG_BITS);
        if self.0 & !((u32::MAX as u64) << TAG_BITS) == head { Some((self.0 >> TAG_BITS) as u32) } else { None }
    }
}

impl std::fmt::Debug for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.kind().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_as_they_went_in() {
        for i in [0, 1, -1, (1 << 59) - 1, -(1 << 59)] {
            assert_eq!(Value::small_int(i).map(Value::kind), Some(Kind::Int(i)));
        }
        assert_eq!(Value::small_int(1 << 59), None);
        assert_eq!(Value::small_int(i64::MIN), None);
        assert_eq!(Value::ext(255, u32::MAX).kind(), Kind::Ext(255, u32::MAX));
        assert_eq!(Value::ext(3, 7).as_ext(3), Some(7));
        assert_eq!(Value::ext(3, 7).as_ext(2), None);
        assert_eq!(Value::list(7).as_ext(0), None);
        assert_eq!(Value::bool(true).kind(), Kind::Bool(true));
        assert_eq!(Value::open(true, u32::MAX).as_open(), Some((true, u32::MAX)));
        assert_eq!(Value::open(false, 0).as_open(), Some((false, 0)));
        assert_eq!([Value::UNSET, Value::list(0), Value::ext(255, u32::MAX)].map(Value::as_open), [None; 3]);
    }
}
