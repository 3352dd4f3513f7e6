//! Datasets of Parquet tables.

use crate::failure::wrong;
use pyo3::prelude::*;
use std::io::ErrorKind;
use std::path::PathBuf;
use vramscope_cli::dataset::{self, Exported};

/// The numbers of what an export did (files that were converted, were there already, are no
/// snapshots; parts; bytes read and written), and the files that could not be read.
type Done = ([u64; 6], Vec<(PathBuf, String)>);

/// Adds the files under these paths to a dataset.
#[pyfunction]
#[pyo3(signature = (paths, dataset, run=None))]
#[expect(clippy::needless_pass_by_value, reason = "pyo3 makes values of arguments")]
pub(crate) fn export_parquet(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    dataset: PathBuf,
    run: Option<&str>,
) -> PyResult<Done> {
    let done = py.detach(|| dataset::export_parquet(&paths, &dataset, run));
    let done = done.map_err(|error| match error.kind() {
        ErrorKind::InvalidInput => wrong(error.to_string()),
        _ => error.into(),
    })?;
    let Exported { converted, present, skipped, parts, bytes_read, bytes_written, .. } = done;
    let counts = [converted, present, skipped, parts].map(|count| count as u64);
    let [converted, present, skipped, parts] = counts;
    let before = done.failed_before.into_iter().map(|(source, error)| (source.path, error));
    let failed = done.failed.into_iter().chain(before).collect();
    Ok(([converted, present, skipped, parts, bytes_read, bytes_written], failed))
}
