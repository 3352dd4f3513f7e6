//! Values on the machine's stack, eight bytes each.

/// A value: a tag in the low four bits, a payload above. Copying copies no data.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Value(u64);

/// A value in four bytes, for the memo: a code in the low five bits, a payload above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CompactValue(u32);

const CODE_BITS: u32 = 5;
/// Code 0 is none. Then come the tags plus 1, lists and dicts, open ones, and the kinds of a sink's
/// values.
const CODE_OBJECT: u32 = 12;
const CODE_LIST: u32 = 14;
const CODE_DICT: u32 = 15;
const CODE_EXT: u32 = 16;

/// The value with payload 0 of each code.
const HEADS: [u64; 32] = {
    let mut heads = [UNSET; 32];
    let mut code = 1;
    while code < 32 {
        heads[code as usize] = match code {
            CODE_LIST => OPEN_LIST << TAG_BITS | UNSET,
            CODE_DICT => OPEN_DICT << TAG_BITS | UNSET,
            CODE_OBJECT..CODE_LIST => (code - CODE_OBJECT) as u64 + LIST,
            CODE_EXT.. => ((code - CODE_EXT) as u64) << (32 + TAG_BITS) | EXT,
            _ => code as u64 - 1,
        };
        code += 1;
    }
    heads
};

impl CompactValue {
    /// No value, or a value that does not fit.
    pub(crate) const NONE: Self = Self(0);

    /// The full value.
    #[inline]
    pub(crate) const fn value(self) -> Option<Value> {
        let head = HEADS[(self.0 % 32) as usize];
        if self.0 == 0 {
            None
        } else {
            Some(Value(head | ((self.0 >> CODE_BITS) as u64) << TAG_BITS))
        }
    }
}

/// Index of an interned string in [`Strings`](crate::Strings). Equal strings have equal ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StrId(pub u32);

/// Index of a list, dict or tuple in the heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ObjectId(pub u32);

/// The content of a [`Value`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// `None`.
    None,
    /// `True` or `False`.
    Bool(bool),
    /// An integer of at most 60 bits, sign included.
    Int(i64),
    /// A longer integer: an index into the heap's long integers.
    Long(u32),
    /// A float: an index into the heap's floats.
    Float(u32),
    /// A string.
    Str(StrId),
    /// Bytes. Their content is dropped.
    Bytes,
    /// A list.
    List(ObjectId),
    /// A dict.
    Dict(ObjectId),
    /// A tuple that the sink did not take.
    Tuple(ObjectId),
    /// The sink's own value for a container: a kind and an index of its choice.
    Ext(u8, u32),
    /// A class, by its dotted name. It is never looked up.
    Class(StrId),
    /// An object that only Python code could build, by its class name. It stays closed.
    Opaque(StrId),
}

/// The state of a container's object slot. While it is empty or stored, the slot also has a mark
/// once another container holds this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    /// No items yet. Holds the index of the memo entry that refers to it, if any.
    Empty(Option<u32>),
    /// Index of the item store.
    Stored(u32),
    /// A sink took the container and returned this value.
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
const TUPLE: u64 = 7;
const EXT: u64 = 8;
const CLASS: u64 = 9;
const OPAQUE: u64 = 10;
// Internal tags of slots: an empty container's, and a filled container's.
const EMPTY: u64 = 11;
const STORED: u64 = 12;
// What may change, or is no value, is last, so that one comparison finds it.
const LIST: u64 = 13;
const DICT: u64 = 14;
const UNSET: u64 = 15;
/// The bits that a sink's value may use to fit into a [`CompactValue`].
const COMPACT_EXT: u64 = (0xf << 32 | u32::MAX as u64 >> CODE_BITS) << TAG_BITS;
/// Payload bits above the number of an open container.
const OPEN_LIST: u64 = 1 << 32;
const OPEN_DICT: u64 = 2 << 32;
/// The marks of a slot: another container holds this one, or several places on the stack or in
/// variables of the pickle refer to it.
const HELD: u64 = 1 << 63;
const SHARED: u64 = 1 << 62;

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
        if (i << TAG_BITS) >> TAG_BITS == i {
            Some(Self((i << TAG_BITS) as u64 | INT))
        } else {
            None
        }
    }

    /// Creates an integer of 32 bits.
    pub(crate) const fn int(i: i32) -> Self {
        Self(((i as i64) << TAG_BITS) as u64 | INT)
    }

    pub(crate) const fn long(index: u32) -> Self {
        Self::new(LONG, index as u64)
    }

    pub(crate) const fn float(index: u32) -> Self {
        Self::new(FLOAT, index as u64)
    }

    /// Creates a string value.
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

    /// Creates a sink's own value: a kind and an index of its choice.
    pub const fn ext(kind: u8, index: u32) -> Self {
        Self::new(EXT, (kind as u64) << 32 | index as u64)
    }

    pub(crate) const fn class(name: StrId) -> Self {
        Self::new(CLASS, name.0 as u64)
    }

    pub(crate) const fn opaque(name: StrId) -> Self {
        Self::new(OPAQUE, name.0 as u64)
    }

    /// The memo entry that was never written.
    pub(crate) const UNSET: Self = Self::new(UNSET, 0);

    /// An open container: it was begun, and only its memo entry refers to it. It has no object yet,
    /// because the sink takes nearly all containers when they close. On the stack, it is directly
    /// below its mark, and `number` is its memo index. In the memo, `number` is its stack index.
    pub(crate) const fn open(dict: bool, number: u32) -> Self {
        Self::new(UNSET, if dict { OPEN_DICT } else { OPEN_LIST } | number as u64)
    }

    /// For an open container: whether it is a dict, and its number.
    pub(crate) const fn as_open(self) -> Option<(bool, u32)> {
        let payload = self.0 >> TAG_BITS;
        if self.is_value() || payload < OPEN_LIST {
            None
        } else {
            Some((payload >= OPEN_DICT, payload as u32))
        }
    }

    /// Whether this is a value, not an unwritten memo entry or an open container.
    pub(crate) const fn is_value(self) -> bool {
        self.0 & TAG_MASK != UNSET
    }

    /// Whether this is a value that cannot change: no list or dict in the heap, and no open
    /// container.
    #[inline]
    pub(crate) const fn is_final(self) -> bool {
        self.0 & TAG_MASK < LIST
    }

    /// The value in four bytes, or [`CompactValue::NONE`] if it does not fit.
    #[inline]
    pub(crate) const fn compact(self) -> CompactValue {
        // A sink's value, the most frequent kind of memo entry.
        if self.0 & !COMPACT_EXT == EXT {
            return CompactValue(
                ((self.0 >> TAG_BITS) as u32) << CODE_BITS
                    | (CODE_EXT + (self.0 >> (32 + TAG_BITS)) as u32),
            );
        }
        let (tag, payload) = (self.0 & TAG_MASK, self.0 >> TAG_BITS);
        let (code, payload) = match tag {
            EXT => (CODE_EXT as u64 + (payload >> 32), payload as u32 as u64),
            UNSET => (CODE_LIST as u64 - 1 + (payload >> 32), payload as u32 as u64),
            LIST | DICT => (tag - LIST + CODE_OBJECT as u64, payload),
            _ => (tag + 1, payload),
        };
        let fits = code < 32 && payload >> (32 - CODE_BITS) == 0 && self.0 != Self::UNSET.0;
        if fits {
            CompactValue((payload as u32) << CODE_BITS | code as u32)
        } else {
            CompactValue::NONE
        }
    }

    /// The slot of an empty container, with the index of the memo entry that refers to it.
    pub(crate) const fn empty_slot(memo: Option<u32>) -> Self {
        Self::new(
            EMPTY,
            match memo {
                Some(index) => index as u64 + 1,
                None => 0,
            },
        )
    }

    /// The slot of a container with items: the index of its item store.
    pub(crate) const fn stored_slot(store: u32) -> Self {
        Self::new(STORED, store as u64)
    }

    /// The slot with the mark that another container holds this one. Unchanged if a sink took the
    /// container.
    pub(crate) const fn held(self) -> Self {
        match self.0 & TAG_MASK {
            EMPTY | STORED => Self(self.0 & !SHARED | HELD),
            _ => self,
        }
    }

    /// The slot with the mark that a second place refers to this container, unless another
    /// container holds it or a sink took it.
    pub(crate) const fn shared(self) -> Self {
        match self.0 & TAG_MASK {
            EMPTY | STORED if self.0 & HELD == 0 => Self(self.0 | SHARED),
            _ => self,
        }
    }

    /// Whether the slot has the mark of [`Value::shared`].
    pub(crate) const fn is_shared(self) -> bool {
        matches!(self.0 & TAG_MASK, EMPTY | STORED) && self.0 & SHARED != 0
    }

    /// This slot with the marks of another one.
    pub(crate) const fn with_marks(self, of: Self) -> Self {
        Self(self.0 | of.0 & (HELD | SHARED))
    }

    /// Whether the slot has the mark of [`Value::held`].
    pub(crate) const fn is_held(self) -> bool {
        matches!(self.0 & TAG_MASK, EMPTY | STORED) && self.0 & HELD != 0
    }

    /// Decodes a container's slot.
    pub(crate) const fn slot(self) -> Slot {
        let payload = (self.0 & !(HELD | SHARED)) >> TAG_BITS;
        match self.0 & TAG_MASK {
            EMPTY if payload == 0 => Slot::Empty(None),
            EMPTY => Slot::Empty(Some((payload - 1) as u32)),
            STORED => Slot::Stored(payload as u32),
            _ => Slot::Taken(self),
        }
    }

    /// Decodes the value.
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

    /// Whether this is a list, dict or tuple in the heap. Its meaning may change while it is
    /// filled.
    pub(crate) const fn is_container(self) -> bool {
        matches!(self.0 & TAG_MASK, LIST | DICT | TUPLE)
    }

    /// The index of a sink's value, if it has this kind.
    pub const fn as_ext(self, kind: u8) -> Option<u32> {
        let head = EXT | (kind as u64) << (32 + TAG_BITS);
        if self.0 & !((u32::MAX as u64) << TAG_BITS) == head {
            Some((self.0 >> TAG_BITS) as u32)
        } else {
            None
        }
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
    fn compact_value_is_exact_or_none() {
        let most = (1 << 27) - 1;
        let fit = [
            Value::NONE,
            Value::bool(true),
            Value::int(7),
            Value::str(StrId(most)),
            Value::BYTES,
            Value::list(0),
            Value::dict(1),
            Value::tuple(2),
            Value::long(3),
            Value::float(4),
            Value::class(StrId(5)),
            Value::opaque(StrId(most)),
            Value::ext(0, 0),
            Value::ext(15, most),
            Value::open(false, most),
            Value::open(true, 0),
        ];
        assert_eq!(fit.map(|value| value.compact().value()), fit.map(Some));
        let others = [
            Value::int(-1),
            Value::ext(16, 0),
            Value::ext(0, most + 1),
            Value::open(true, most + 1),
            Value::UNSET,
        ];
        assert!(others.iter().all(|value| value.compact() == CompactValue::NONE), "{others:?}");
        assert_eq!(CompactValue::NONE.value(), None);
    }

    #[test]
    fn values_round_trip() {
        for i in [0, 1, -1, (1 << 59) - 1, -(1 << 59)] {
            assert_eq!(Value::small_int(i).map(Value::kind), Some(Kind::Int(i)));
        }
        assert_eq!(Value::small_int(1 << 59), None);
        assert_eq!(Value::small_int(i64::MIN), None);
        assert_eq!(Value::ext(255, u32::MAX).kind(), Kind::Ext(255, u32::MAX));
        assert_eq!(Value::ext(3, 7).as_ext(3), Some(7));
        assert_eq!(Value::ext(3, 7).as_ext(2), None);
        assert_eq!(Value::list(7).as_ext(0), None);
        let slots =
            [Value::empty_slot(None), Value::empty_slot(Some(u32::MAX)), Value::stored_slot(9)];
        assert_eq!(slots.map(|slot| slot.held().slot()), slots.map(Value::slot));
        assert_eq!(slots.map(Value::is_held), [false; 3]);
        assert_eq!(slots.map(|slot| slot.held().is_held()), [true; 3]);
        assert!(!Value::ext(1, 7).held().is_held() && !Value::ext(1, 7).shared().is_shared());
        let shared = Value::stored_slot(9).shared();
        assert!(shared.is_shared() && !shared.is_held() && shared.slot() == Slot::Stored(9));
        assert!(!shared.held().is_shared() && !shared.held().shared().is_shared());
        assert!(Value::stored_slot(8).with_marks(shared).is_shared());
        assert!(Value::ext(9, 0).is_final() && Value::tuple(1).is_final());
        let may_change = [Value::list(0), Value::dict(1), Value::open(true, 0), Value::UNSET];
        assert_eq!(may_change.map(Value::is_final), [false; 4]);
        assert_eq!(Value::bool(true).kind(), Kind::Bool(true));
        assert_eq!(Value::open(true, u32::MAX).as_open(), Some((true, u32::MAX)));
        assert_eq!(Value::open(false, 0).as_open(), Some((false, 0)));
        assert_eq!(
            [Value::UNSET, Value::list(0), Value::ext(255, u32::MAX)].map(Value::as_open),
            [None; 3]
        );
    }
}
