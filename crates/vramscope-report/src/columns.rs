//! Columns of tables.
//!
//! A column is defined once, beside the record of its rows: a name, a text and an accessor. CSV,
//! the tables of the Python module and the Parquet datasets iterate over lists of columns. The
//! accessor's type gives the type, the unit and whether a value can be absent.

use serde::Serialize;
use std::borrow::Cow;
use vramscope_units::{
    Addr, Allocations, Blocks, Bytes, Change, EventIndex, Events, Micros, PeakEvent, Segments,
    SignedBytes, Steps, named,
};

/// A kind of row.
pub trait Rows: 'static {
    /// A row, which may borrow from a loaded file.
    type Row<'a>;
}

/// Reads a number from a row.
pub type Get<T, V> = Box<dyn for<'r, 'a> Fn(&'r <T as Rows>::Row<'a>) -> Option<V> + Send + Sync>;

/// Reads a text from a row and passes it on, so that it may live in the row or be made for it.
pub type GetText<T> =
    Box<dyn for<'r, 'a> Fn(&'r <T as Rows>::Row<'a>, &mut dyn FnMut(Option<&str>)) + Send + Sync>;

/// The accessor of a column.
pub enum Read<T: Rows> {
    /// Numbers without a sign.
    U32(Get<T, u32>),
    /// Large numbers without a sign.
    U64(Get<T, u64>),
    /// Numbers with a sign.
    I64(Get<T, i64>),
    /// Addresses.
    Address(Get<T, Addr>),
    /// Numbers with a fraction.
    F32(Get<T, f32>),
    /// Truth values.
    Bool(Get<T, bool>),
    /// Texts.
    Text(GetText<T>),
}

/// The value of a row in a column. It serializes as the value alone.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Value<'a> {
    /// The row has no value.
    Absent,
    /// A number without a sign.
    Unsigned(u64),
    /// A number with a sign.
    Signed(i64),
    /// An address.
    Address(Addr),
    /// A number with a fraction.
    Fraction(f32),
    /// A truth value.
    Bool(bool),
    /// A text.
    Text(&'a str),
}

named! {
    /// The unit of a column's numbers.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Unit {
        /// Bytes.
        Bytes = "bytes",
        /// Events of the device's trace, from 0. -1 is the state before the window.
        Events = "events",
        /// Microseconds; those of a moment count from 1970.
        Microseconds = "microseconds",
    }
}

/// A column.
pub struct Column<T: Rows> {
    /// The name in tables.
    pub name: &'static str,
    /// The name in CSV and in lists of JSON; `None` for a column that they lack.
    pub csv: Option<&'static str>,
    /// Whether tables have the column.
    pub in_tables: bool,
    /// The unit of the numbers; `None` for counts, ids and texts.
    pub unit: Option<Unit>,
    /// Whether rows may lack a value.
    pub is_nullable: bool,
    /// The meaning, in one line.
    pub description: &'static str,
    /// The accessor.
    pub read: Read<T>,
}

/// A type of the numbers that accessors return.
pub trait Number {
    /// The type without its unit.
    type Plain;
    /// The unit.
    const UNIT: Option<Unit>;
    /// Whether a value can be absent.
    const IS_NULLABLE: bool;

    /// The number without its unit.
    fn plain(self) -> Option<Self::Plain>;

    /// An accessor of such numbers.
    fn read<T: Rows>(get: Get<T, Self::Plain>) -> Read<T>;
}

macro_rules! numbers {
    ($($type:ty: $read:ident, $plain:ty, $unit:expr, $take:expr;)*) => {$(
        impl Number for $type {
            type Plain = $plain;
            const UNIT: Option<Unit> = $unit;
            const IS_NULLABLE: bool = false;

            fn plain(self) -> Option<$plain> {
                let take: fn($type) -> $plain = $take;
                Some(take(self))
            }

            fn read<T: Rows>(get: Get<T, $plain>) -> Read<T> {
                Read::$read(get)
            }
        }
    )*};
}

numbers! {
    u32: U32, u32, None, |n| n;
    u64: U64, u64, None, |n| n;
    i64: I64, i64, None, |n| n;
    usize: U64, u64, None, |n| n as u64;
    f32: F32, f32, None, |n| n;
    bool: Bool, bool, None, |is| is;
    Addr: Address, Addr, None, |address| address;
    Bytes: U64, u64, Some(Unit::Bytes), |bytes| bytes.0;
    SignedBytes: I64, i64, Some(Unit::Bytes), |bytes| bytes.0;
    Change: I64, i64, Some(Unit::Bytes), |bytes| bytes.0;
    Micros: I64, i64, Some(Unit::Microseconds), |micros| micros.0;
    EventIndex: U32, u32, Some(Unit::Events), |event| event.0;
    PeakEvent: I64, i64, Some(Unit::Events), |event| event.0;
    Blocks: U64, u64, None, |count| count.0;
    Events: U64, u64, None, |count| count.0;
    Segments: U64, u64, None, |count| count.0;
    Steps: U64, u64, None, |count| count.0;
    Allocations: U64, u64, None, |count| count.0;
}

impl<V: Number> Number for Option<V> {
    type Plain = V::Plain;
    const UNIT: Option<Unit> = V::UNIT;
    const IS_NULLABLE: bool = true;

    fn plain(self) -> Option<V::Plain> {
        self.and_then(V::plain)
    }

    fn read<T: Rows>(get: Get<T, V::Plain>) -> Read<T> {
        V::read(get)
    }
}

impl<T: Rows> Column<T> {
    /// A column of numbers.
    pub fn new<V: Number>(
        name: &'static str,
        description: &'static str,
        get: impl for<'r, 'a> Fn(&'r T::Row<'a>) -> V + Send + Sync + 'static,
    ) -> Self {
        let read = V::read(number::<T, _>(move |row| get(row).plain()));
        Self::with(name, description, read, V::UNIT, V::IS_NULLABLE)
    }

    /// A column of texts.
    pub fn text(
        name: &'static str,
        description: &'static str,
        get: impl for<'r, 'a> Fn(&'r T::Row<'a>) -> Cow<'r, str> + Send + Sync + 'static,
    ) -> Self {
        let read = Read::Text(text::<T>(move |row, take| take(Some(&get(row)))));
        Self::with(name, description, read, None, false)
    }

    /// A column of texts that rows may lack.
    pub fn maybe_text(
        name: &'static str,
        description: &'static str,
        get: impl for<'r, 'a> Fn(&'r T::Row<'a>) -> Option<Cow<'r, str>> + Send + Sync + 'static,
    ) -> Self {
        let read = Read::Text(text::<T>(move |row, take| take(get(row).as_deref())));
        Self::with(name, description, read, None, true)
    }

    fn with(
        name: &'static str,
        description: &'static str,
        read: Read<T>,
        unit: Option<Unit>,
        is_nullable: bool,
    ) -> Self {
        Self { name, csv: Some(name), in_tables: true, unit, is_nullable, description, read }
    }

    /// The column with another name in CSV.
    #[must_use]
    pub fn named_in_csv(self, name: &'static str) -> Self {
        Self { csv: Some(name), ..self }
    }

    /// The column, left out of CSV.
    #[must_use]
    pub fn not_in_csv(self) -> Self {
        Self { csv: None, ..self }
    }

    /// The column, left out of tables.
    #[must_use]
    pub fn only_in_csv(self) -> Self {
        Self { in_tables: false, ..self }
    }

    /// Calls `take` with the value of a row.
    pub fn with_value<R>(&self, row: &T::Row<'_>, take: impl FnOnce(Value<'_>) -> R) -> R {
        fn value<V>(got: Option<V>, of: impl Fn(V) -> Value<'static>) -> Value<'static> {
            got.map_or(Value::Absent, of)
        }
        match &self.read {
            Read::U32(get) => take(value(get(row), |n| Value::Unsigned(n.into()))),
            Read::U64(get) => take(value(get(row), Value::Unsigned)),
            Read::I64(get) => take(value(get(row), Value::Signed)),
            Read::Address(get) => take(value(get(row), Value::Address)),
            Read::F32(get) => take(value(get(row), Value::Fraction)),
            Read::Bool(get) => take(value(get(row), Value::Bool)),
            Read::Text(get) => {
                let (mut take, mut taken) = (Some(take), None);
                get(row, &mut |text| {
                    let value = text.map_or(Value::Absent, Value::Text);
                    taken = take.take().map(|take| take(value));
                });
                taken.expect("an accessor passes one text on")
            }
        }
    }

    /// The column of rows that contain a row of this kind.
    pub fn lift<O: Rows>(self) -> Column<O>
    where
        for<'a> O::Row<'a>: AsRef<T::Row<'a>>,
    {
        let Self { name, csv, in_tables, unit, is_nullable, description, read } = self;
        macro_rules! lifted {
            ($get:ident) => {
                number::<O, _>(move |row| $get(row.as_ref()))
            };
        }
        let read = match read {
            Read::U32(get) => Read::U32(lifted!(get)),
            Read::U64(get) => Read::U64(lifted!(get)),
            Read::I64(get) => Read::I64(lifted!(get)),
            Read::Address(get) => Read::Address(lifted!(get)),
            Read::F32(get) => Read::F32(lifted!(get)),
            Read::Bool(get) => Read::Bool(lifted!(get)),
            Read::Text(get) => Read::Text(text::<O>(move |row, take| get(row.as_ref(), take))),
        };
        Column { name, csv, in_tables, unit, is_nullable, description, read }
    }
}

fn number<T: Rows, V>(
    get: impl for<'r, 'a> Fn(&'r T::Row<'a>) -> Option<V> + Send + Sync + 'static,
) -> Get<T, V> {
    Box::new(get)
}

fn text<T: Rows>(
    get: impl for<'r, 'a> Fn(&'r T::Row<'a>, &mut dyn FnMut(Option<&str>)) + Send + Sync + 'static,
) -> GetText<T> {
    Box::new(get)
}
