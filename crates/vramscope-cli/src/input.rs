//! Reading files as the program does, for other front ends: the Python module.

use crate::memory;
use crate::paths::{self, Found, Links};
use crate::read::{Limits, parallel_map, read_chunks, read_source};
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};
use vramscope_report::LoadedFile;
use vramscope_report::summary::{ErrorKind, ErrorSummary};

/// What is read of files.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// Only these events of each device, and those of blocks that are live in the range.
    pub events: Option<Range<u32>>,
    /// Bytes of memory that reading may take; by default 80 % of the machine's.
    pub max_memory: Option<u64>,
}

/// A file that was read, or could not be.
pub struct ReadFile {
    /// The path as given, or below the given folder.
    pub path: PathBuf,
    /// The file's size in bytes.
    pub bytes: u64,
    /// The content.
    pub result: Result<LoadedFile, ErrorSummary>,
}

/// Reads one file.
pub fn read_file(path: &Path, options: &ReadOptions) -> ReadFile {
    read(path, true, options, 1)
}

/// Reads a snapshot that has no path. `name` is its name in answers, and `bytes` its size, 0 if it
/// is not known. There is no file beside it.
///
/// # Errors
/// The source cannot be read, or is no snapshot.
pub fn read_from(
    name: &str,
    bytes: u64,
    source: impl Read,
    options: &ReadOptions,
) -> Result<LoadedFile, ErrorSummary> {
    read_source(name, bytes, source, &limits(options, 1), |_| {})
}

/// Reads every file under these paths, in parallel, and holds them all. Also returns the number of
/// files of folders that are no snapshots.
pub fn read_files(paths: &[PathBuf], options: &ReadOptions) -> (Vec<ReadFile>, usize) {
    let found = paths::expand(paths, Links::Everywhere);
    let files = parallel_map(&found, |Found { path, is_named, .. }: &Found| {
        let file = read(path, *is_named, options, found.len());
        let is_other = file.result.as_ref().is_err_and(|e| e.kind == ErrorKind::NoSnapshot);
        (*is_named || !is_other).then_some(file)
    });
    let skipped = files.iter().filter(|file| file.is_none()).count();
    (files.into_iter().flatten().collect(), skipped)
}

/// Reads one file of several that share the memory.
fn read(path: &Path, is_named: bool, options: &ReadOptions, files: usize) -> ReadFile {
    let (bytes, result) = read_chunks(path, is_named, &limits(options, files), |_| {});
    ReadFile { path: path.to_owned(), bytes, result }
}

fn limits(options: &ReadOptions, files: usize) -> Limits {
    let memory = memory::limit(options.max_memory, files);
    Limits { events: options.events.clone(), memory }
}
