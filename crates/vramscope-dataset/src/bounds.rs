//! Bounds on what a part takes to read. Anyone may have written it: a file of a few bytes can say
//! that it has any number of rows, and that each has the same long text.

use crate::part::failure;
use crate::regular::open_regular;
use crate::thrift::{FILE, Form, PAGE};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder,
};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read as _, Seek as _, SeekFrom};
use std::path::Path;

/// The most rows of a part. It has a row for each device of a few files.
const MAX_ROWS: i64 = 1 << 20;

/// The most bytes of a file's metadata. It takes up to 30 times this memory.
const MAX_FOOTER: u64 = 16 << 20;

/// Bytes at the end of a file: the length of its metadata, and a signature.
const TAIL: u64 = 8;

/// The most unpacked bytes of a page of texts such as paths, and of cards.
pub(crate) const SHORT_TEXTS: u64 = 4 << 20;
pub(crate) const CARDS: u64 = 64 << 20;

/// The most unpacked bytes of rows that are read at a time, of a column. Each row can have all
/// bytes of a page.
const MAX_BATCH: u64 = 128 << 20;

/// The most bytes that are used of a part.
const MAX_USED: usize = 256 << 20;

/// Opens a file of a dataset.
///
/// # Errors
/// It cannot be read, or its metadata could take more than time and memory in proportion to it.
pub(crate) fn open(
    path: &Path,
    options: ArrowReaderOptions,
) -> io::Result<(File, ArrowReaderMetadata)> {
    let mut file = open_regular(path)?;
    let end = file.metadata()?.len();
    // The library says what is wrong with a file that has no tail.
    if let Some(tail) = end.checked_sub(TAIL) {
        let mut length = [0; 4];
        file.seek(SeekFrom::Start(tail))?;
        file.read_exact(&mut length)?;
        let length = u64::from(u32::from_le_bytes(length));
        if length > MAX_FOOTER {
            return Err(invalid(&format!(
                "its metadata have {length} bytes, of at most {MAX_FOOTER}"
            )));
        }
        if let Some(start) = tail.checked_sub(length) {
            file.seek(SeekFrom::Start(start))?;
            Form::new(BufReader::new(&file), length).fields(FILE)?;
        }
    }
    let metadata = ArrowReaderMetadata::load(&file, options).map_err(failure)?;
    Ok((file, metadata))
}

/// Reads columns of a file of `ranks`, whose pages have at most some unpacked bytes.
///
/// # Errors
/// The file cannot be read, or is larger than a writer makes it.
pub(crate) fn read(
    path: &Path,
    columns: &[&str],
    most: u64,
) -> io::Result<ParquetRecordBatchReader> {
    let plain = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let (file, metadata) = open(path, plain)?;
    few_rows(metadata.metadata())?;
    let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file.try_clone()?, metadata);
    let mask = ProjectionMask::columns(builder.parquet_schema(), columns.iter().copied());
    for group in builder.metadata().row_groups() {
        for (_, column) in
            group.columns().iter().enumerate().filter(|(at, _)| mask.leaf_included(*at))
        {
            small_pages(&file, column, most)?;
        }
    }
    let rows = usize::try_from(MAX_BATCH / most).unwrap_or(usize::MAX);
    builder.with_projection(mask).with_batch_size(rows).build().map_err(failure)
}

/// Refuses a part with more rows than a writer makes.
fn few_rows(file: &ParquetMetaData) -> io::Result<()> {
    let groups = file.row_groups();
    let rows = groups.iter().fold(0, |sum: i64, group| sum.saturating_add(group.num_rows()));
    if (0..=MAX_ROWS).contains(&rows) && groups.iter().all(|group| group.num_rows() >= 0) {
        return Ok(());
    }
    Err(invalid(&format!("it has {rows} rows, of at most {MAX_ROWS}")))
}

/// Refuses a column whose pages are not in the file, or unpack to more than a writer makes.
fn small_pages(mut file: &File, column: &ColumnChunkMetaData, most: u64) -> io::Result<()> {
    let outside = || invalid("it has pages that are not in the file");
    let start = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
    let place = u64::try_from(start).ok().zip(u64::try_from(column.compressed_size()).ok());
    let (mut at, mut left) = place.ok_or_else(outside)?;
    if at.checked_add(left).is_none_or(|end| file.metadata().is_ok_and(|of| end > of.len())) {
        return Err(outside());
    }
    while left > 0 {
        file.seek(SeekFrom::Start(at))?;
        let mut form = Form::new(BufReader::new(file), left);
        let [_, unpacked, packed] = form.fields(PAGE)?.map(|number| u64::try_from(number).ok());
        let length = packed.filter(|&packed| i32::try_from(packed).is_ok()).ok_or_else(outside)?
            + form.bytes;
        if unpacked.is_none_or(|bytes| bytes > most) {
            return Err(invalid(&format!("it has a page of more than {most} bytes")));
        }
        left = left.checked_sub(length).ok_or_else(outside)?;
        at += length;
    }
    Ok(())
}

/// Counts the bytes that are used of a part.
#[derive(Default)]
pub(crate) struct Used(usize);

impl Used {
    /// # Errors
    /// There are more than a part has.
    pub(crate) fn add(&mut self, text: &str) -> io::Result<()> {
        self.0 = self.0.saturating_add(text.len());
        if self.0 > MAX_USED {
            return Err(invalid(&format!("it has texts of more than {MAX_USED} bytes")));
        }
        Ok(())
    }
}

pub(crate) fn invalid(what: &str) -> io::Error {
    io::Error::new(
        ErrorKind::InvalidData,
        format!("{what}: remove the file, or use another dataset"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cards, Plan};
    use arrow_array::types::Int32Type;
    use arrow_array::{ArrayRef, DictionaryArray, Int32Array, NullArray, RecordBatch, StringArray};
    use parquet::arrow::ArrowWriter;
    use std::sync::Arc;

    /// Asserts that an export and a command that reads cards refuse a part, with these words.
    #[track_caller]
    fn refused(part: &[u8], expected: &str) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("ranks/run=r/iteration=0/part-0123456789abcdef.parquet");
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(&path, part).expect("a file");
        let plan = Plan::new(folder.path(), Vec::new()).expect_err("it is refused");
        let cards = Cards::open(folder.path()).expect("a folder").expect("a dataset");
        for why in [plan, cards.count().expect_err("it is refused")] {
            assert!(why.to_string().contains(expected), "{why}");
        }
        assert!(path.exists(), "what cannot be read stays");
    }

    fn written(columns: Vec<(&str, ArrayRef)>) -> Vec<u8> {
        let columns = columns.into_iter().map(|(name, array)| (name, array, true));
        let batch = RecordBatch::try_from_iter_with_nullable(columns).expect("columns");
        let mut file = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut file, batch.schema(), None).expect("a writer");
        writer.write(&batch).expect("rows");
        writer.close().expect("a footer");
        file
    }

    /// A file with this metadata and nothing else.
    fn with_footer(footer: &[u8]) -> Vec<u8> {
        [b"PAR1", footer, &(footer.len() as u32).to_le_bytes(), b"PAR1"].concat()
    }

    /// A file of a few bytes can have any number of equal rows.
    #[test]
    fn a_part_with_too_many_rows_is_refused() {
        let rows: ArrayRef = Arc::new(NullArray::new(MAX_ROWS as usize + 1));
        refused(&written(vec![("path", rows)]), "it has 1048577 rows, of at most 1048576");
    }

    /// Each row can have the text of one page.
    #[test]
    fn a_long_text_of_many_rows_is_refused() {
        let text: ArrayRef = Arc::new(StringArray::from(vec!["x".repeat(1 << 20)]));
        let keys = Int32Array::from(vec![0; (MAX_USED >> 20) + 1]);
        let rows: ArrayRef = Arc::new(DictionaryArray::<Int32Type>::new(keys, text));
        let short: ArrayRef = Arc::new(StringArray::from(vec![""; rows.len()]));
        let numbers: ArrayRef = Arc::new(arrow_array::Int64Array::from(vec![0; rows.len()]));
        let columns = ["file", "error", "error_kind"].map(|name| (name, Arc::clone(&short)));
        let numbers = ["file_bytes", "modified_us"].map(|name| (name, Arc::clone(&numbers)));
        let columns = [("path", rows)].into_iter().chain(columns).chain(numbers).collect();
        refused(&written(columns), "it has texts of more than 268435456 bytes");
    }

    /// The page takes a few kilobytes in the file.
    #[test]
    fn a_page_that_unpacks_to_much_is_refused() {
        let long: ArrayRef = Arc::new(StringArray::from(vec!["x".repeat(CARDS as usize + 1)]));
        refused(&written(vec![("path", long)]), "it has a page of more than");
    }

    /// The library calls itself for each level.
    #[test]
    fn a_deep_schema_is_refused() {
        let levels = 500_000_u32;
        let count = [levels as u8 | 128, (levels >> 7) as u8 | 128, (levels >> 14) as u8];
        let head = [&[0x15, 2, 0x19, 0xfc], &count[..]].concat();
        let footer = [head, b"\x48\x01a\x15\x02\0".repeat(levels as usize)].concat();
        refused(&with_footer(&footer), "not of Parquet's form");
    }

    /// The library passes each element of such a list, although it has no bytes.
    #[test]
    fn lists_without_bytes_are_refused() {
        let list = b"\x09\x1e\xf1\xff\xff\xff\xff\x07".repeat(10_000);
        refused(&with_footer(&[&b"\x15\x02"[..], &list].concat()), "not of Parquet's form");
    }

    /// The library ends the program at a place before the file.
    #[test]
    fn pages_outside_of_the_file_are_refused() {
        for offset in [&[1][..], &[0x80, 0x80, 0x10]] {
            let chunk =
                [b"\x15\x0c\x19\x15\0\x19\x18\x04path\x15\0\x16\x02\x16\x02\x16\x02\x26", offset];
            let footer = [
                &b"\x15\x02\x19\x2c\x48\x06schema\x15\x02\0\x15\x0c\x25\x02\x18\x04path\0"[..],
                b"\x16\x02\x19\x1c\x19\x1c\x26\x08\x1c",
                &chunk.concat(),
                b"\0\0\x16\x02\x16\x02\0\0",
            ];
            refused(&with_footer(&footer.concat()), "pages that are not in the file");
        }
    }

    #[test]
    fn a_long_footer_is_refused() {
        let footer = vec![0; MAX_FOOTER as usize + 1];
        refused(&with_footer(&footer), "its metadata have 16777217 bytes, of at most 16777216");
    }
}
