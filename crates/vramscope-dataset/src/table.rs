//! A table that is being written: rows go to columns, and columns in batches to a file.

use crate::columns::{Batch, TableRows};
use crate::schema::{Kind, Storage, TableSchema};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::Result;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;
use std::fs::File;

/// Rows that are held before they are written.
const BATCH_ROWS: usize = 1 << 15;

/// Rows of a row group. A reader may skip row groups by the range of their values.
const GROUP_ROWS: usize = 1 << 17;

/// The level of compression. Level 6 would take longer and save 4 %.
const LEVEL: i32 = 3;

/// A table that is being written.
pub(crate) struct Table<T: TableRows> {
    batch: Batch<T>,
    writer: ArrowWriter<File>,
}

impl<T: TableRows> Table<T> {
    /// A table without rows, which are written to this file.
    pub(crate) fn new(file: File) -> Result<Self> {
        let batch = Batch::bound(T::SCHEMA.arrow(), T::columns());
        let properties = properties(&T::SCHEMA)?;
        let writer = ArrowWriter::try_new(file, batch.schema().clone(), Some(properties))?;
        Ok(Self { batch, writer })
    }

    /// Adds a row.
    pub(crate) fn push(&mut self, row: &T::Row<'_>) -> Result<()> {
        self.batch.push(row);
        if self.batch.len() == BATCH_ROWS { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<()> {
        self.writer.write(&self.batch.take()?)
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
    for column in (of.columns)() {
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
