//! The tables of a dataset and their columns.
//!
//! A change that a reader could notice is a new [`VERSION`]: a column that is gone, renamed, or
//! means something else. A new column is none.

use crate::columns::TableRows;
use crate::rows;
use arrow_schema::{DataType, Field, Metadata, Schema};
use std::fmt::Write as _;
use std::sync::Arc;
use vramscope_report::columns::Unit;

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

/// `ranks`.
pub static RANKS: TableSchema = rows::Ranks::SCHEMA;
/// `blocks`.
pub static BLOCKS: TableSchema = rows::Blocks::SCHEMA;
/// `stacks`.
pub static STACKS: TableSchema = rows::StackRows::SCHEMA;
/// `frames`.
pub static FRAMES: TableSchema = rows::FrameRows::SCHEMA;
/// `peak`.
pub static PEAK: TableSchema = rows::Peak::SCHEMA;
/// `curve`.
pub static CURVE: TableSchema = rows::Curve::SCHEMA;
/// `segments`.
pub static SEGMENTS: TableSchema = rows::Segments::SCHEMA;
/// `ooms`.
pub static OOMS: TableSchema = rows::Ooms::SCHEMA;
/// `findings`.
pub static FINDINGS: TableSchema = rows::Findings::SCHEMA;
/// `phases`.
pub static PHASES: TableSchema = rows::Phases::SCHEMA;
/// `annotations`.
pub static ANNOTATIONS: TableSchema = rows::Annotations::SCHEMA;

/// A table. Its files lie in the folder of its name.
#[derive(Debug)]
pub struct TableSchema {
    /// The name.
    pub name: &'static str,
    /// What a row is.
    pub row: &'static str,
    /// The columns, in order.
    pub columns: fn() -> Vec<Column>,
}

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// 32-bit integers.
    Int32,
    /// 32-bit integers without a sign.
    UInt32,
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
    pub(crate) fn data_type(&self) -> DataType {
        let list = |of| DataType::List(Arc::new(Field::new_list_field(of, false)));
        match self.kind {
            Kind::Int32 => DataType::Int32,
            Kind::UInt32 => DataType::UInt32,
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
    /// The schema of the table's files, with the units and descriptions of the columns.
    pub fn arrow(&self) -> Schema {
        let fields: Vec<Field> = (self.columns)().iter().map(Column::field).collect();
        Schema::new(fields).with_metadata([(VERSION_KEY, VERSION)])
    }
}

/// The tables in Markdown, for the reference of the site.
pub fn markdown() -> String {
    let mut out = String::new();
    for (at, table) in TABLES.iter().enumerate() {
        let (name, row) = (table.name, table.row);
        let gap = if at > 0 { "\n" } else { "" };
        write!(out, "{gap}### `{name}`\n\nA row is {row}.\n\n").expect("writing to memory");
        out.push_str("| column | type | unit | |\n|---|---|---|---|\n");
        for column in (table.columns)() {
            let kind = match column.kind {
                Kind::Int32 => "int32",
                Kind::UInt32 => "uint32",
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
