//! A table that is being written: rows go to columns, and columns in batches to a file.

use crate::schema::{Column, Kind, Storage, TableSchema};
use arrow_array::builder::{
    BooleanBuilder, Float32Builder, Int32Builder, Int64Builder, ListBuilder, StringBuilder,
    UInt64Builder,
};
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, RecordBatch};
use arrow_schema::{DataType, Field, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::Result;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;
use rustc_hash::FxHashMap;
use std::fs::File;
use std::sync::Arc;

/// Rows that are held before they are written.
const BATCH_ROWS: usize = 1 << 15;

/// Rows of a row group. A reader may skip row groups by the range of their values.
const GROUP_ROWS: usize = 1 << 17;

/// The level of compression. Level 6 would take longer and save 4 %.
const LEVEL: i32 = 3;

/// A value of a row.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value<'a> {
    Null,
    Int(i64),
    Float(f32),
    Bool(bool),
    Text(&'a str),
    Ints(&'a [i64]),
    Lines(&'a [i32]),
}

/// The values that have not been written yet, of one column.
enum Values {
    Int32(Int32Builder),
    Int64(Int64Builder),
    UInt64(UInt64Builder),
    Float(Float32Builder),
    Bool(BooleanBuilder),
    Names(Names),
    Text(StringBuilder),
    Lines(ListBuilder<Int32Builder>),
    Ints(ListBuilder<Int64Builder>),
}

/// Texts, each stored once for the whole file.
#[derive(Default)]
struct Names {
    keys: Int32Builder,
    texts: StringBuilder,
    known: FxHashMap<Box<str>, i32>,
}

/// A table that is being written.
pub(crate) struct Table {
    schema: SchemaRef,
    values: Vec<Values>,
    rows: usize,
    writer: ArrowWriter<File>,
}

impl Table {
    /// A table without rows, which are written to this file.
    pub(crate) fn new(of: &TableSchema, file: File) -> Result<Self> {
        let schema: SchemaRef = Arc::new(of.arrow());
        let writer = ArrowWriter::try_new(file, schema.clone(), Some(properties(of)?))?;
        Ok(Self { schema, values: of.all().map(Values::new).collect(), rows: 0, writer })
    }

    /// Adds a row: a value for each column, in order.
    pub(crate) fn push(&mut self, row: &[Value<'_>]) -> Result<()> {
        assert_eq!(row.len(), self.values.len(), "a row has a value for each column");
        for (values, &value) in self.values.iter_mut().zip(row) {
            values.push(value);
        }
        self.rows += 1;
        if self.rows == BATCH_ROWS { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<()> {
        let columns = self.values.iter_mut().map(Values::take).collect::<Result<_>>()?;
        self.rows = 0;
        self.writer.write(&RecordBatch::try_new(self.schema.clone(), columns)?)
    }

    /// Writes the rest, and returns the file.
    pub(crate) fn finish(mut self) -> Result<File> {
        self.write()?;
        self.writer.into_inner()
    }
}

/// How a table is stored.
fn properties(of: &TableSchema) -> Result<WriterProperties> {
    let level = ZstdLevel::try_new(LEVEL)?;
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(level))
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_created_by(concat!("vramscope ", env!("CARGO_PKG_VERSION")).to_owned());
    for column in of.all() {
        let path = ColumnPath::from(column.name);
        if column.kind == Kind::Text {
            // No reader skips rows by the range of long texts.
            let none = EnabledStatistics::None;
            properties = properties.set_column_statistics_enabled(path.clone(), none);
        }
        let encoding = match column.storage {
            Storage::Dictionary => continue,
            Storage::Delta => Encoding::DELTA_BINARY_PACKED,
            Storage::Split => Encoding::BYTE_STREAM_SPLIT,
        };
        properties = properties
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, encoding);
    }
    Ok(properties.build())
}

impl Values {
    fn new(column: &Column) -> Self {
        let item = |of: DataType| Field::new_list_field(of, false);
        match column.kind {
            Kind::Int32 => Self::Int32(Int32Builder::new()),
            Kind::Int64 => Self::Int64(Int64Builder::new()),
            Kind::UInt64 => Self::UInt64(UInt64Builder::new()),
            Kind::Float32 => Self::Float(Float32Builder::new()),
            Kind::Bool => Self::Bool(BooleanBuilder::new()),
            Kind::Name => Self::Names(Names::default()),
            Kind::Text => Self::Text(StringBuilder::new()),
            Kind::Int32List => {
                Self::Lines(ListBuilder::new(Int32Builder::new()).with_field(item(DataType::Int32)))
            }
            Kind::Int64List => {
                Self::Ints(ListBuilder::new(Int64Builder::new()).with_field(item(DataType::Int64)))
            }
        }
    }

    fn push(&mut self, value: Value<'_>) {
        match (self, value) {
            (Self::Int32(to), Value::Int(n)) => {
                to.append_value(i32::try_from(n).unwrap_or(i32::MAX));
            }
            (Self::Int32(to), Value::Null) => to.append_null(),
            (Self::Int64(to), Value::Int(n)) => to.append_value(n),
            (Self::Int64(to), Value::Null) => to.append_null(),
            (Self::UInt64(to), Value::Int(n)) => to.append_value(n as u64),
            (Self::Float(to), Value::Float(n)) => to.append_value(n),
            (Self::Bool(to), Value::Bool(is)) => to.append_value(is),
            (Self::Names(to), Value::Text(text)) => to.push(text),
            (Self::Names(to), Value::Null) => to.keys.append_null(),
            (Self::Text(to), Value::Text(text)) => to.append_value(text),
            (Self::Text(to), Value::Null) => to.append_null(),
            (Self::Lines(to), Value::Lines(all)) => {
                to.values().append_slice(all);
                to.append(true);
            }
            (Self::Ints(to), Value::Ints(all)) => {
                to.values().append_slice(all);
                to.append(true);
            }
            (_, value) => unreachable!("{value:?} is of another type than its column"),
        }
    }

    fn take(&mut self) -> Result<ArrayRef> {
        Ok(match self {
            Self::Int32(values) => Arc::new(values.finish()),
            Self::Int64(values) => Arc::new(values.finish()),
            Self::UInt64(values) => Arc::new(values.finish()),
            Self::Float(values) => Arc::new(values.finish()),
            Self::Bool(values) => Arc::new(values.finish()),
            Self::Names(names) => {
                let texts = Arc::new(names.texts.finish_cloned());
                Arc::new(DictionaryArray::<Int32Type>::try_new(names.keys.finish(), texts)?)
            }
            Self::Text(values) => Arc::new(values.finish()),
            Self::Lines(values) => Arc::new(values.finish()),
            Self::Ints(values) => Arc::new(values.finish()),
        })
    }
}

impl Names {
    fn push(&mut self, text: &str) {
        let key = match self.known.get(text) {
            Some(&key) => key,
            None => {
                let key = self.known.len() as i32;
                self.known.insert(text.into(), key);
                self.texts.append_value(text);
                key
            }
        };
        self.keys.append_value(key);
    }
}

/// Whole numbers as values. One above the largest of the column's type becomes the largest.
macro_rules! int {
    ($($type:ty)*) => {$(
        impl From<$type> for Value<'_> {
            fn from(n: $type) -> Self {
                Self::Int(i64::try_from(n).unwrap_or(i64::MAX))
            }
        }
    )*};
}

int!(i64 u64 u32 usize);

impl From<f32> for Value<'_> {
    fn from(n: f32) -> Self {
        Self::Float(n)
    }
}

impl From<bool> for Value<'_> {
    fn from(is: bool) -> Self {
        Self::Bool(is)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a String> for Value<'a> {
    fn from(text: &'a String) -> Self {
        Self::Text(text)
    }
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}
