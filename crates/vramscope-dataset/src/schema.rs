//! The tables of a dataset and their columns.
//!
//! A change that a reader could notice is a new [`VERSION`]: a column that is gone, renamed, or
//! means something else. A new column is none.

mod tables;

pub use tables::{
    ANNOTATIONS, BLOCKS, CURVE, FINDINGS, FRAMES, OOMS, PEAK, PHASES, RANKS, SEGMENTS, STACKS,
};

use arrow_schema::{DataType, Field, Metadata, Schema};
use std::fmt::Write as _;
use std::sync::Arc;

/// The version of the tables. Each file has it in its schema's metadata, as `vramscope.schema`.
pub const VERSION: &str = "vramscope.dataset/1";

/// Begins every [`VERSION`].
pub(crate) const VERSION_FAMILY: &str = "vramscope.dataset/";

/// The key of [`VERSION`] in a schema's metadata.
pub const VERSION_KEY: &str = "vramscope.schema";

/// All tables. A part is there when its file of the first one is.
pub const TABLES: [&TableSchema; 11] = [
    &RANKS,
    &BLOCKS,
    &STACKS,
    &FRAMES,
    &PEAK,
    &CURVE,
    &SEGMENTS,
    &OOMS,
    &FINDINGS,
    &PHASES,
    &ANNOTATIONS,
];

/// A table. Its files lie in the folder of its name.
#[derive(Debug)]
pub struct TableSchema {
    /// The name.
    pub name: &'static str,
    /// What a row is.
    pub row: &'static str,
    /// The columns before [`TableSchema::columns`]: which file, rank and device a row is about.
    pub key: &'static [Column],
    /// The columns.
    pub columns: &'static [Column],
}

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// 32-bit integers.
    Int32,
    /// 64-bit integers.
    Int64,
    /// 64-bit integers without a sign: addresses.
    UInt64,
    /// 32-bit floating-point numbers.
    Float32,
    /// Truth values.
    Bool,
    /// Text of which few values are distinct.
    Name,
    /// Other text.
    Text,
    /// Lists of 32-bit integers.
    Int32List,
    /// Lists of 64-bit integers.
    Int64List,
}

/// How a column is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Storage {
    /// Each distinct value once, where there are few.
    Dictionary,
    /// Differences of neighbors: for numbers that rise.
    Delta,
    /// First the lowest byte of all values, then the next: for numbers of a common magnitude.
    Split,
}

/// What the numbers of a column count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Events of the device's trace, from 0. -1 is the state before the window.
    Events,
    /// Microseconds; those of a moment count from 1970.
    Microseconds,
}

impl Unit {
    /// The name in a column's metadata.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Events => "events",
            Self::Microseconds => "microseconds",
        }
    }
}

/// A column.
#[derive(Debug)]
pub struct Column {
    /// The name.
    pub name: &'static str,
    /// The type.
    pub kind: Kind,
    /// The unit of its numbers; `None` for counts, ids and texts.
    pub unit: Option<Unit>,
    /// Whether rows may lack a value.
    pub is_nullable: bool,
    /// How it is stored.
    pub(crate) storage: Storage,
    /// What it is, in one line.
    pub description: &'static str,
}

impl Column {
    const fn new(name: &'static str, kind: Kind, description: &'static str) -> Self {
        Self {
            name,
            kind,
            unit: None,
            is_nullable: false,
            storage: Storage::Dictionary,
            description,
        }
    }

    const fn bytes(name: &'static str, description: &'static str) -> Self {
        Self { unit: Some(Unit::Bytes), ..Self::new(name, Kind::Int64, description) }
    }

    const fn event(name: &'static str, description: &'static str) -> Self {
        let column = Self::new(name, Kind::Int64, description).delta();
        Self { unit: Some(Unit::Events), ..column }
    }

    const fn time(name: &'static str, description: &'static str) -> Self {
        let column = Self::new(name, Kind::Int64, description).delta();
        Self { unit: Some(Unit::Microseconds), ..column }
    }

    const fn nullable(self) -> Self {
        Self { is_nullable: true, ..self }
    }

    const fn delta(self) -> Self {
        Self { storage: Storage::Delta, ..self }
    }

    const fn split(self) -> Self {
        Self { storage: Storage::Split, ..self }
    }

    fn data_type(&self) -> DataType {
        let list = |of| DataType::List(Arc::new(Field::new_list_field(of, false)));
        match self.kind {
            Kind::Int32 => DataType::Int32,
            Kind::Int64 => DataType::Int64,
            Kind::UInt64 => DataType::UInt64,
            Kind::Float32 => DataType::Float32,
            Kind::Bool => DataType::Boolean,
            Kind::Name => DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
            Kind::Text => DataType::Utf8,
            Kind::Int32List => list(DataType::Int32),
            Kind::Int64List => list(DataType::Int64),
        }
    }

    fn field(&self) -> Field {
        let unit = self.unit.map(|unit| ("unit", unit.name()));
        let metadata = unit.into_iter().chain([("description", self.description)]);
        let metadata =
            metadata.map(|(key, value)| (key.to_owned(), value.to_owned())).collect::<Metadata>();
        Field::new(self.name, self.data_type(), self.is_nullable).with_metadata(metadata)
    }
}

impl TableSchema {
    /// All columns, in order.
    pub fn all(&self) -> impl Iterator<Item = &'static Column> {
        self.key.iter().chain(self.columns)
    }

    /// The schema of the table's files, with the units and descriptions of the columns.
    pub fn arrow(&self) -> Schema {
        let fields: Vec<Field> = self.all().map(Column::field).collect();
        Schema::new(fields).with_metadata([(VERSION_KEY, VERSION)])
    }
}

/// The tables in Markdown, for docs/fleet.md. A test compares them.
pub fn markdown() -> String {
    let mut out = String::new();
    for (at, table) in TABLES.iter().enumerate() {
        let (name, row) = (table.name, table.row);
        let gap = if at > 0 { "\n" } else { "" };
        write!(out, "{gap}### `{name}`\n\nA row is {row}.\n\n").expect("writing to memory");
        out.push_str("| column | type | unit | |\n|---|---|---|---|\n");
        for column in table.all() {
            let kind = match column.kind {
                Kind::Int32 => "int32",
                Kind::Int64 => "int64",
                Kind::UInt64 => "uint64",
                Kind::Float32 => "float",
                Kind::Bool => "bool",
                Kind::Name | Kind::Text => "text",
                Kind::Int32List => "list of int32",
                Kind::Int64List => "list of int64",
            };
            let kind = if column.is_nullable { format!("{kind} or null") } else { kind.into() };
            let unit = column.unit.map_or("", Unit::name);
            let (name, description) = (column.name, column.description);
            writeln!(out, "| `{name}` | {kind} | {unit} | {description} |")
                .expect("writing to memory");
        }
    }
    out
}
