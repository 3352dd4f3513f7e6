//! Columns of a dataset's tables, each bound to the accessor that reads it from a row.
//!
//! The accessor gives a column its type, so that a row of the wrong type does not compile. Numbers
//! larger than the column's type become its largest.

use crate::schema::{Column, Kind, Storage, TableSchema};
use arrow_array::builder::{
    BooleanBuilder, Int32Builder, ListBuilder, PrimitiveBuilder, StringBuilder,
};
use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Int32Type, Int64Type, UInt32Type, UInt64Type,
};
use arrow_array::{ArrayRef, DictionaryArray, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::ops::Deref;
use std::sync::Arc;
use vramscope_report::columns::{self, Get, GetText, Number, Read, Rows, Unit};
use vramscope_units::Addr;

/// The rows of a table.
pub(crate) trait TableRows: Rows + Sized {
    /// The table's name.
    const NAME: &'static str;
    /// What a row is.
    const ROW: &'static str;
    /// The table's schema.
    const SCHEMA: TableSchema =
        TableSchema { name: Self::NAME, row: Self::ROW, columns: schemas_of::<Self> };

    /// The columns, in order.
    fn columns() -> Vec<Bound<Self>>;
}

fn schemas_of<T: TableRows>() -> Vec<Column> {
    T::columns().into_iter().map(|column| column.schema).collect()
}

/// The device that a row is about.
#[derive(Clone, Copy)]
pub(crate) struct Key<'a> {
    pub(crate) file: &'a str,
    pub(crate) rank: Option<u32>,
    /// Annotations of a damaged file may have any number.
    pub(crate) device: i64,
}

impl Rows for Key<'static> {
    type Row<'a> = Key<'a>;
}

/// A row with its device.
pub(crate) struct Keyed<'a, R> {
    key: Key<'a>,
    row: R,
}

impl<'a> Key<'a> {
    /// A row about this device.
    pub(crate) fn row<R>(self, row: R) -> Keyed<'a, R> {
        Keyed { key: self, row }
    }
}

impl<R> Deref for Keyed<'_, R> {
    type Target = R;

    fn deref(&self) -> &R {
        &self.row
    }
}

impl<'a, R> AsRef<Key<'a>> for Keyed<'a, R> {
    fn as_ref(&self) -> &Key<'a> {
        &self.key
    }
}

/// The path of a row's file.
pub(crate) const FILE: [&str; 2] =
    ["file", "Path below the run's folder; `#name` follows if the file has several snapshots"];

/// The rank of a row's file.
pub(crate) const RANK: [&str; 2] = ["rank", "Rank in the path"];

/// The columns that say which device a row is about.
pub(crate) fn key<T: Rows>() -> Vec<Bound<T>>
where
    for<'a> T::Row<'a>: AsRef<Key<'a>>,
{
    type Of = columns::Column<Key<'static>>;
    let (file, rank) = (FILE, RANK);
    let columns = [
        Of::text(file[0], file[1], |row| row.file.into()),
        Of::new(rank[0], rank[1], |row| row.rank),
        Of::new("device", "Device; 128 is pinned host memory", |row| row.device),
    ];
    columns.into_iter().map(|column| Bound::from(column.lift()).narrow()).collect()
}

/// A column with its accessor.
pub(crate) struct Bound<T: Rows> {
    pub(crate) schema: Column,
    read: Stored<T>,
}

/// Reads a list from a row.
type GetList<T, V> = Box<dyn for<'r, 'a> Fn(&'r <T as Rows>::Row<'a>) -> &'r [V] + Send + Sync>;

/// An accessor, and the form in which its values are stored.
enum Stored<T: Rows> {
    Int32(Get<T, i64>),
    Int64(Get<T, i64>),
    Plain(Read<T>),
    Text(GetText<T>),
    Int32List(GetList<T, i32>),
    Int64List(GetList<T, i64>),
}

/// A column of a report's table, for engines that know only numbers with a sign. Its texts are
/// names, of which few are distinct.
impl<T: Rows> From<columns::Column<T>> for Bound<T> {
    fn from(column: columns::Column<T>) -> Self {
        let (unit, mut bound) = (column.unit, Self::plain(column));
        (bound.schema.kind, bound.read) = match bound.read {
            Stored::Plain(Read::U32(get)) if unit == Some(Unit::Events) => {
                (Kind::Int64, Stored::Int64(Box::new(move |row| get(row).map(i64::from))))
            }
            Stored::Plain(Read::U32(get)) => {
                (Kind::Int32, Stored::Int32(Box::new(move |row| get(row).map(i64::from))))
            }
            Stored::Plain(Read::U64(get)) => {
                let most = |n| i64::try_from(n).unwrap_or(i64::MAX);
                (Kind::Int64, Stored::Int64(Box::new(move |row| get(row).map(most))))
            }
            read => (bound.schema.kind, read),
        };
        bound
    }
}

impl<T: Rows> Bound<T> {
    /// A column of a report's table in the type of its accessor.
    pub(crate) fn plain(column: columns::Column<T>) -> Self {
        let columns::Column { name, unit, is_nullable, description, read, .. } = column;
        let kind = match &read {
            Read::U32(_) => Kind::UInt32,
            Read::U64(_) | Read::Address(_) => Kind::UInt64,
            Read::I64(_) => Kind::Int64,
            Read::F32(_) => Kind::Float32,
            Read::Bool(_) => Kind::Bool,
            Read::Text(_) => Kind::Name,
        };
        let storage = match unit {
            Some(Unit::Events | Unit::Microseconds) => Storage::Delta,
            Some(Unit::Bytes) | None => Storage::Dictionary,
        };
        let schema = Column { name, kind, unit, is_nullable, storage, description };
        Self { schema, read: Stored::Plain(read) }
    }

    /// A column of numbers.
    pub(crate) fn new<V: Number>(
        name: &'static str,
        description: &'static str,
        get: impl for<'r, 'a> Fn(&'r T::Row<'a>) -> V + Send + Sync + 'static,
    ) -> Self {
        columns::Column::new(name, description, get).into()
    }

    /// A column of texts of which few are distinct.
    pub(crate) fn name(
        name: &'static str,
        description: &'static str,
        get: impl for<'r, 'a> Fn(&'r T::Row<'a>) -> Cow<'r, str> + Send + Sync + 'static,
    ) -> Self {
        columns::Column::text(name, description, get).into()
    }

    /// A column of texts of which few are distinct, and that rows may lack.
    pub(crate) fn maybe_name(
        name: &'static str,
        description: &'static str,
        get: impl for<'r, 'a> Fn(&'r T::Row<'a>) -> Option<Cow<'r, str>> + Send + Sync + 'static,
    ) -> Self {
        columns::Column::maybe_text(name, description, get).into()
    }

    /// A column of lists of 32-bit integers.
    pub(crate) fn int32_list(
        name: &'static str,
        description: &'static str,
        get: impl for<'r, 'a> Fn(&'r T::Row<'a>) -> &'r [i32] + Send + Sync + 'static,
    ) -> Self {
        Self::list(name, description, Kind::Int32List, Stored::Int32List(Box::new(get)))
    }

    /// A column of lists of 64-bit integers.
    pub(crate) fn int64_list(
        name: &'static str,
        description: &'static str,
        get: impl for<'r, 'a> Fn(&'r T::Row<'a>) -> &'r [i64] + Send + Sync + 'static,
    ) -> Self {
        Self::list(name, description, Kind::Int64List, Stored::Int64List(Box::new(get)))
    }

    fn list(name: &'static str, description: &'static str, kind: Kind, read: Stored<T>) -> Self {
        let (unit, is_nullable, storage) = (None, false, Storage::Dictionary);
        Self { schema: Column { name, kind, unit, is_nullable, storage, description }, read }
    }

    /// The column with another name.
    pub(crate) fn named(mut self, name: &'static str) -> Self {
        self.schema.name = name;
        self
    }

    /// The column of numbers with a sign, in 32 bits.
    fn narrow(mut self) -> Self {
        if let Stored::Plain(Read::I64(get)) = self.read {
            self.read = Stored::Int32(get);
            self.schema.kind = Kind::Int32;
        }
        self
    }

    /// The column of texts of which many are distinct.
    pub(crate) fn distinct(mut self) -> Self {
        if let Stored::Plain(Read::Text(get)) = self.read {
            self.read = Stored::Text(get);
            self.schema.kind = Kind::Text;
        }
        self
    }

    /// The column, stored as differences of neighbors.
    pub(crate) fn delta(mut self) -> Self {
        self.schema.storage = Storage::Delta;
        self
    }

    /// The column, stored byte by byte.
    pub(crate) fn split(mut self) -> Self {
        self.schema.storage = Storage::Split;
        self
    }

    fn values(self) -> Box<dyn Values<T>> {
        type Of<P> = PrimitiveBuilder<P>;
        fn numbers<T: Rows, V: 'static, P: ArrowPrimitiveType>(
            get: Get<T, V>,
            native: fn(V) -> P::Native,
        ) -> Box<dyn Values<T>> {
            Box::new(Numbers::<T, V, P> { get, native, to: PrimitiveBuilder::new() })
        }
        let item = |of: DataType| Arc::new(Field::new_list_field(of, false));
        match self.read {
            Stored::Int32(get) => {
                numbers::<T, i64, Int32Type>(get, |n| i32::try_from(n).unwrap_or(i32::MAX))
            }
            Stored::Int64(get) => numbers::<T, i64, Int64Type>(get, |n| n),
            Stored::Plain(Read::U32(get)) => numbers::<T, u32, UInt32Type>(get, |n| n),
            Stored::Plain(Read::U64(get)) => numbers::<T, u64, UInt64Type>(get, |n| n),
            Stored::Plain(Read::I64(get)) => numbers::<T, i64, Int64Type>(get, |n| n),
            Stored::Plain(Read::Address(get)) => numbers::<T, Addr, UInt64Type>(get, |n| n.0),
            Stored::Plain(Read::F32(get)) => numbers::<T, f32, Float32Type>(get, |n| n),
            Stored::Plain(Read::Bool(get)) => Box::new(Bools { get, to: BooleanBuilder::new() }),
            Stored::Plain(Read::Text(get)) => Box::new(Named { get, names: Names::default() }),
            Stored::Text(get) => Box::new(Texts { get, to: StringBuilder::new() }),
            Stored::Int32List(get) => Box::new(Lists::<T, Int32Type> {
                get,
                to: ListBuilder::new(Of::new()).with_field(item(DataType::Int32)),
            }),
            Stored::Int64List(get) => Box::new(Lists::<T, Int64Type> {
                get,
                to: ListBuilder::new(Of::new()).with_field(item(DataType::Int64)),
            }),
        }
    }
}

/// The values of a column, until they are taken.
trait Values<T: Rows>: Send {
    fn push(&mut self, row: &T::Row<'_>);

    fn take(&mut self) -> Result<ArrayRef, ArrowError>;
}

struct Numbers<T: Rows, V, P: ArrowPrimitiveType> {
    get: Get<T, V>,
    native: fn(V) -> P::Native,
    to: PrimitiveBuilder<P>,
}

impl<T: Rows, V, P: ArrowPrimitiveType> Values<T> for Numbers<T, V, P> {
    fn push(&mut self, row: &T::Row<'_>) {
        self.to.append_option((self.get)(row).map(self.native));
    }

    fn take(&mut self) -> Result<ArrayRef, ArrowError> {
        Ok(Arc::new(self.to.finish()))
    }
}

struct Bools<T: Rows> {
    get: Get<T, bool>,
    to: BooleanBuilder,
}

impl<T: Rows> Values<T> for Bools<T> {
    fn push(&mut self, row: &T::Row<'_>) {
        self.to.append_option((self.get)(row));
    }

    fn take(&mut self) -> Result<ArrayRef, ArrowError> {
        Ok(Arc::new(self.to.finish()))
    }
}

struct Texts<T: Rows> {
    get: GetText<T>,
    to: StringBuilder,
}

impl<T: Rows> Values<T> for Texts<T> {
    fn push(&mut self, row: &T::Row<'_>) {
        (self.get)(row, &mut |text| self.to.append_option(text));
    }

    fn take(&mut self) -> Result<ArrayRef, ArrowError> {
        Ok(Arc::new(self.to.finish()))
    }
}

struct Named<T: Rows> {
    get: GetText<T>,
    names: Names,
}

impl<T: Rows> Values<T> for Named<T> {
    fn push(&mut self, row: &T::Row<'_>) {
        (self.get)(row, &mut |name| self.names.push(name));
    }

    fn take(&mut self) -> Result<ArrayRef, ArrowError> {
        let texts = Arc::new(self.names.texts.finish_cloned());
        Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(self.names.keys.finish(), texts)?))
    }
}

struct Lists<T: Rows, P: ArrowPrimitiveType> {
    get: GetList<T, P::Native>,
    to: ListBuilder<PrimitiveBuilder<P>>,
}

impl<T: Rows, P: ArrowPrimitiveType> Values<T> for Lists<T, P> {
    fn push(&mut self, row: &T::Row<'_>) {
        self.to.values().append_slice((self.get)(row));
        self.to.append(true);
    }

    fn take(&mut self) -> Result<ArrayRef, ArrowError> {
        Ok(Arc::new(self.to.finish()))
    }
}

/// Texts, each stored once for the whole file.
#[derive(Default)]
struct Names {
    keys: Int32Builder,
    texts: StringBuilder,
    known: FxHashMap<Box<str>, i32>,
}

impl Names {
    fn push(&mut self, text: Option<&str>) {
        let key = text.map(|text| match self.known.get(text) {
            Some(&key) => key,
            None => {
                let key = self.known.len() as i32;
                self.known.insert(text.into(), key);
                self.texts.append_value(text);
                key
            }
        });
        self.keys.append_option(key);
    }
}

/// Rows in memory.
pub struct Batch<T: Rows> {
    schema: SchemaRef,
    values: Vec<Box<dyn Values<T>>>,
    rows: usize,
}

impl<T: Rows> Batch<T> {
    /// A batch of columns of a report's table, in the types of their accessors.
    pub fn new(columns: impl IntoIterator<Item = columns::Column<T>>) -> Self {
        let columns: Vec<_> = columns.into_iter().map(Bound::plain).collect();
        let fields = columns.iter().map(|column| {
            let schema = &column.schema;
            // Texts may be absent in every table of the Python module.
            let is_nullable = schema.is_nullable || schema.kind == Kind::Name;
            Field::new(schema.name, schema.data_type(), is_nullable)
        });
        Self::bound(Schema::new(fields.collect::<Vec<_>>()), columns)
    }

    /// A batch of these columns, whose schema is given.
    pub(crate) fn bound(schema: Schema, columns: Vec<Bound<T>>) -> Self {
        let values = columns.into_iter().map(Bound::values).collect();
        Self { schema: Arc::new(schema), values, rows: 0 }
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The number of rows.
    pub(crate) fn len(&self) -> usize {
        self.rows
    }

    /// Adds a row.
    pub fn push(&mut self, row: &T::Row<'_>) {
        self.values.iter_mut().for_each(|values| values.push(row));
        self.rows += 1;
    }

    /// Takes the rows.
    ///
    /// # Errors
    /// A row lacks a value that its column requires.
    pub fn take(&mut self) -> Result<RecordBatch, ArrowError> {
        let columns = self.values.iter_mut().map(|values| values.take());
        self.rows = 0;
        RecordBatch::try_new(self.schema.clone(), columns.collect::<Result<_, _>>()?)
    }
}
