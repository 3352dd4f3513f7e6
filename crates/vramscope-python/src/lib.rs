//! `vramscope._vramscope`: what the Python package takes from Rust.
//!
//! The program, and files that are read by the same functions. A report crosses to Python as the
//! JSON that the program prints, and `vramscope.reader` makes dataclasses of it. Tables of blocks,
//! events, stacks and segments cross as Arrow, without copies. Everything that takes long runs
//! without the interpreter's lock.

mod dataset;
mod diff;
mod dry;
mod failure;
mod file;
mod options;
mod peak;
mod predictions;
mod report;
mod run;
mod source;
mod table;
mod walk;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::ffi::OsString;
use vramscope_report::Quantity;

/// Runs the program and returns its exit code. `arguments` begins with the program's name. `again`
/// is a command line that starts the program in another process.
#[pyfunction]
fn main(py: Python<'_>, arguments: Vec<OsString>, again: Option<Vec<OsString>>) -> u8 {
    py.detach(|| vramscope_cli::run_within(again, arguments))
}

/// A part of the viewer: `script`, `view`, `worker` or `notebook`. None without the page, or if
/// there is no such part.
#[pyfunction]
fn viewer_part<'py>(py: Python<'py>, name: &str) -> Option<Bound<'py, PyBytes>> {
    let viewer = vramscope_cli::viewer()?;
    let part = match name {
        "script" => viewer.script,
        "view" => viewer.view,
        "worker" => viewer.worker,
        "notebook" => viewer.notebook,
        _ => return None,
    };
    Some(PyBytes::new(py, &part))
}

/// Bytes in words: `5.46 GiB`. A change has its sign: `+1.20 GiB`.
#[pyfunction]
#[pyo3(signature = (bytes, is_change=false))]
fn bytes_text(bytes: i64, is_change: bool) -> String {
    let made = if is_change { Quantity::change_of_bytes } else { Quantity::signed_bytes };
    made(bytes).text
}

/// What holds blocks of this process, as JSON: what [`walk::walk`] found, in words. `sizes` has
/// device, address and bytes of each block.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "Python's arguments are owned")]
fn holders_told(json: &[u8], sizes: Vec<(u32, u64, u64)>) -> PyResult<String> {
    let told = vramscope_report::holders::of_process(json, &sizes).map_err(failure::internal)?;
    serde_json::to_string(&told).map_err(failure::internal)
}

/// The module.
#[pymodule]
mod _vramscope {
    #[pymodule_export]
    use super::bytes_text;
    #[pymodule_export]
    use super::dataset::export_parquet;
    #[pymodule_export]
    use super::dry::{check_expression, dry_shims, gpu, memory_size};
    #[pymodule_export]
    use super::file::{File, open, open_file};
    #[pymodule_export]
    use super::holders_told;
    #[pymodule_export]
    use super::main;
    #[pymodule_export]
    use super::report::report;
    #[pymodule_export]
    use super::run::{Run, open_run};
    #[pymodule_export]
    use super::table::Table;
    #[pymodule_export]
    use super::viewer_part;
    #[pymodule_export]
    use super::walk::walk;
}
