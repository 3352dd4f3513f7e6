//! Compares the reader with a slow and simple reading of the same pickle.

mod compare;
mod generate;
mod kinds;
mod tables;
mod text;
mod unpickle;

use crate::pieces;
use vramscope_snapshot::{LoadError, Reader};

/// First bytes from here on: the rest says how to write a pickle, instead of being one.
const GENERATED: u8 = 128;

/// What came of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compared {
    /// Both give the same tables.
    Equal,
    /// The reader says that no number of the file is exact.
    Estimate,
    /// The reader refuses the file, with this message.
    Refused(String),
    /// There is nothing to compare with: Python raises an exception or would run code, or the file
    /// is beyond the limits of the reference.
    Unread(&'static str),
}

/// Reads the bytes, or the pickle that they describe, with the reader and with the reference. The
/// reader must refuse it, call all its numbers estimates, or give equal tables.
///
/// # Panics
/// When the readings differ.
pub fn reference(data: &[u8]) {
    let Some((size, bytes)) = pieces(data) else { return };
    if data[0] >= GENERATED {
        compare_readings(&generate::pickle(bytes), size);
    } else {
        compare_readings(bytes, size);
    }
}

/// The pickle that an input of [`reference()`] describes, to look at.
pub fn generated_pickle(data: &[u8]) -> Option<Vec<u8>> {
    let (_, bytes) = pieces(data)?;
    (data[0] >= GENERATED).then(|| generate::pickle(bytes))
}

/// [`reference()`] of a pickle that arrives in pieces of this size.
///
/// # Panics
/// When the readings differ.
pub fn compare_readings(bytes: &[u8], size: usize) -> Compared {
    let read = read(bytes, size);
    let expected = unpickle::unpickle(bytes);
    let expected = expected.and_then(|(objects, root)| tables::tables(&objects, root));
    match (read, expected) {
        (Err(error), Ok(_)) => Compared::Refused(error.to_string()),
        (_, Err(reason)) => Compared::Unread(reason),
        (Ok(read), Ok(_)) if read.report.changes_values() => Compared::Estimate,
        (Ok(read), Ok(expected)) => {
            compare::compare(&read, &expected);
            Compared::Equal
        }
    }
}

/// Whether the reference reads equal tables from two pickles. `None` if it cannot read one.
pub fn are_equal(a: &[u8], b: &[u8]) -> Option<bool> {
    let read = |bytes| {
        let (objects, root) = unpickle::unpickle(bytes).ok()?;
        tables::tables(&objects, root).ok()
    };
    Some(read(a)? == read(b)?)
}

fn read(bytes: &[u8], size: usize) -> Result<vramscope_snapshot::Snapshot, LoadError> {
    let mut reader = Reader::default();
    for piece in bytes.chunks(size) {
        reader.feed(piece)?;
    }
    Ok(reader.finish()?.remove(0).snapshot)
}
