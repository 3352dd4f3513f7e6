//! Errors as exceptions of the Python package.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::path::Path;
use vramscope_report::summary::ErrorSummary;

/// `vramscope.ReadError`: why a file could not be read.
pub(crate) fn read_error<'py>(
    py: Python<'py>,
    path: &Path,
    error: &ErrorSummary,
) -> PyResult<Bound<'py, PyAny>> {
    let class = py.import("vramscope.errors")?.getattr("ReadError")?;
    let kind = serde_json::to_value(error.kind).map_err(internal)?;
    let kind = kind.as_str().unwrap_or_default();
    class.call1((
        path.to_string_lossy(),
        &error.message,
        error.hint.as_deref(),
        kind,
        error.byte_offset,
    ))
}

/// A wrong argument.
pub(crate) fn wrong(message: impl Into<String>) -> PyErr {
    PyValueError::new_err(message.into())
}

/// An error that only a bug explains.
pub(crate) fn internal(error: impl std::fmt::Display) -> PyErr {
    pyo3::exceptions::PyRuntimeError::new_err(error.to_string())
}
