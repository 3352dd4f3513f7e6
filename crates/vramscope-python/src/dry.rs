//! Dry runs: the GPU by its name, and the files that answer for Nvidia's libraries.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::path::PathBuf;

/// A GPU by its name, as JSON: `vramscope_gpus::Gpu`.
#[pyfunction]
pub(crate) fn gpu(name: &str) -> PyResult<String> {
    let gpu = vramscope_gpus::Gpu::named(name).map_err(PyValueError::new_err)?;
    serde_json::to_string(&gpu).map_err(super::failure::internal)
}

/// A size in bytes: `24GiB`, or the memory of a GPU by its name.
#[pyfunction]
pub(crate) fn memory_size(text: &str) -> PyResult<u64> {
    vramscope_report::what_if::parse_memory(text).map_err(PyValueError::new_err)
}

/// Checks an expression of `--fail-on`.
#[pyfunction]
pub(crate) fn check_expression(text: &str) -> PyResult<()> {
    let parsed = vramscope_report::check::Expression::parse(text);
    parsed.map(drop).map_err(PyValueError::new_err)
}

/// Writes the files for the PyTorch in a folder, unless the cache has them. JSON with their paths
/// and the versions of CUDA and cuDNN.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "Python's arguments are owned")]
pub(crate) fn dry_shims(packages: PathBuf, core: PathBuf, cache: PathBuf) -> PyResult<String> {
    let written = vramscope_dry::shims::cached(&packages, &core, &cache)
        .map_err(|error| PyValueError::new_err(error.to_string()))?;
    serde_json::to_string(&written).map_err(super::failure::internal)
}
