//! Reports in HTML.

use crate::failure::wrong;
use pyo3::prelude::*;
use std::io::ErrorKind;
use std::path::PathBuf;
use vramscope_cli::report::{Report, html_report};

/// Writes the report of files in one HTML file. Returns what it holds.
#[pyfunction]
#[pyo3(signature = (paths, output, source=false, redact=false, force=false))]
pub(crate) fn report(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    output: PathBuf,
    source: bool,
    redact: bool,
    force: bool,
) -> PyResult<Vec<String>> {
    let report = Report { paths, output, source, redact, force };
    py.detach(|| html_report(&report)).map_err(|error| match error.kind() {
        ErrorKind::InvalidInput => wrong(error.to_string()),
        _ => error.into(),
    })
}
