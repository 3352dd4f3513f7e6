//! Work on every device of files.

use crate::Failure;
use crate::arguments::Window;
use crate::read;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::{Path, PathBuf};
use vramscope_report::Target;
use vramscope_report::index::{self, NO_DEVICE};
use vramscope_report::summary::{ErrorKind, ErrorSummary};

/// The devices of files.
pub(super) struct Devices<T> {
    /// The result of `work` for each device.
    pub(super) each: Vec<T>,
    /// Files that were read.
    pub(super) files_read: usize,
    /// Why other files could not be read.
    pub(super) errors: Vec<FailedFile>,
    /// Files of searched folders that are no snapshots.
    pub(super) skipped_files: usize,
    /// [`Failure::Input`] if a file could not be read.
    pub(super) outcome: Result<(), Failure>,
}

impl<T> Devices<T> {
    /// No devices.
    pub(super) fn none() -> Self {
        Self {
            each: Vec::new(),
            files_read: 0,
            errors: Vec::new(),
            skipped_files: 0,
            outcome: Ok(()),
        }
    }
}

impl FailedFile {
    /// A file, and why it could not be read.
    pub fn new(path: &Path, why: ErrorSummary) -> Self {
        Self { path: path.to_string_lossy().into_owned(), why }
    }

    /// A file of an index without a card; `None` if it has no memory.
    pub(super) fn of_index(file: &index::FailedFile) -> Option<Self> {
        let index::FailedFile { path, error, .. } = file;
        let why = ErrorSummary {
            message: error.clone(),
            hint: None,
            kind: ErrorKind::Unreadable,
            byte_offset: None,
        };
        (error != NO_DEVICE).then(|| Self { path: path.clone(), why })
    }
}

/// A file that could not be read.
#[derive(Clone, Serialize, JsonSchema)]
pub struct FailedFile {
    /// The file's path.
    path: String,
    #[serde(flatten)]
    why: ErrorSummary,
}

/// Reads files, and calls `work` with every device.
///
/// # Errors
/// A folder cannot be listed, or the rules cannot be read.
pub(super) fn each_device<T: Send>(
    paths: &[PathBuf],
    window: &Window,
    work: impl Fn(Target<'_>) -> T + Sync,
) -> Result<Devices<T>, Failure> {
    each_device_of(paths, window, |target| {
        target.entry.simulate(target.index);
        work(target)
    })
}

/// [`each_device`], without what the model of the allocator says.
///
/// # Errors
/// A folder cannot be listed, or the rules cannot be read.
pub(super) fn each_device_of<T: Send>(
    paths: &[PathBuf],
    window: &Window,
    work: impl Fn(Target<'_>) -> T + Sync,
) -> Result<Devices<T>, Failure> {
    let read = read::each_file(paths, window, |path, _, result| {
        let failure = result.as_ref().err().map(|why| FailedFile::new(path, why.clone()));
        let mut devices: Vec<T> = Vec::new();
        for entry in result.iter().flat_map(|file| &file.entries) {
            let targets =
                (0..entry.traces.len()).map(|index| Target { path: &entry.path, entry, index });
            devices.extend(targets.map(&work));
        }
        (failure, devices)
    })?;
    let (files, skipped_files, outcome) = read.into_results();
    let files: Vec<(Option<FailedFile>, Vec<T>)> = files.collect();
    let files_read = files.iter().filter(|file| file.0.is_none()).count();
    let errors = files.iter().filter_map(|file| file.0.clone()).collect();
    let each = files.into_iter().flat_map(|file| file.1).collect();
    Ok(Devices { each, files_read, errors, skipped_files, outcome })
}
