//! The files of a run.

use crate::failure::read_error;
use crate::file::{File, Shown, json, simulated, summaries, text};
use crate::options;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::PathBuf;
use std::sync::Arc;
use vramscope_cli::input::read_files;
use vramscope_report::diagnose::{Listing, MAX_FINDINGS, at_peak, diagnose};
use vramscope_report::summary::Summary;
use vramscope_report::what_if::RankLimit;
use vramscope_report::{LoadedFile, Target};

/// The files under some paths, all in memory.
#[pyclass(frozen, module = "vramscope._vramscope")]
pub(crate) struct Run {
    /// The paths as given.
    paths: Vec<String>,
    files: Vec<Arc<LoadedFile>>,
    limits: Arc<[RankLimit]>,
    failed: Vec<Py<PyAny>>,
    skipped_files: usize,
}

/// Reads the files under these paths, in parallel.
#[pyfunction]
#[pyo3(signature = (paths, events=None, max_memory=None))]
pub(crate) fn open_run(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    events: Option<(u32, u32)>,
    max_memory: Option<&str>,
) -> PyResult<Run> {
    let options = options::reading(events, max_memory)?;
    let given = paths.iter().map(|path| path.to_string_lossy().into_owned()).collect();
    let (read, skipped_files) = py.detach(move || read_files(&paths, &options));
    let (mut files, mut failed) = (Vec::new(), Vec::new());
    for file in read {
        match file.result {
            Ok(loaded) => files.push(Arc::new(loaded)),
            Err(error) => failed.push(read_error(py, &file.path, &error)?.unbind()),
        }
    }
    let limits = files.iter().flat_map(|file| &file.entries).filter_map(|entry| {
        let index = entry.default_trace().map(|first| first.device.device);
        let index = entry.traces.iter().position(|trace| Some(trace.device.device) == index);
        index.and_then(|index| RankLimit::of(Target { path: &entry.path, entry, index }))
    });
    let limits = limits.collect();
    Ok(Run { paths: given, files, limits, failed, skipped_files })
}

#[pymethods]
impl Run {
    /// The files that could be read, in the order of their paths.
    fn files(&self) -> Vec<File> {
        let file =
            |loaded: &Arc<LoadedFile>| File { loaded: loaded.clone(), limits: self.limits.clone() };
        self.files.iter().map(file).collect()
    }

    /// Why each other file could not be read: `vramscope.ReadError`.
    fn errors(&self, py: Python<'_>) -> Vec<Py<PyAny>> {
        self.failed.iter().map(|error| error.clone_ref(py)).collect()
    }

    /// Files of folders that are no snapshots.
    #[getter]
    fn skipped_files(&self) -> usize {
        self.skipped_files
    }

    /// `vramscope.summary/1` of the files that could be read.
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let made = py.detach(|| {
            let all = self.files.iter().flat_map(summaries).collect();
            text(&Summary::new(all, self.skipped_files))
        })?;
        Ok(json(py, &made))
    }

    /// `vramscope.diagnose/1` of all files, with all findings.
    fn findings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let made = py.detach(|| {
            let ranks = self.files.iter().flat_map(|file| simulated(file).map(at_peak));
            text(&diagnose(ranks.collect(), Listing::All(usize::MAX), self.skipped_files))
        })?;
        Ok(json(py, &made))
    }

    /// `vramscope.diagnose/1` of all files, with its `text` and `html`.
    fn diagnosis<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let made = py.detach(|| {
            let ranks = self.files.iter().flat_map(|file| simulated(file).map(at_peak));
            let skipped = self.skipped_files;
            let diagnosis = diagnose(ranks.collect(), Listing::Main(MAX_FINDINGS), skipped);
            text(&Shown::new(diagnosis, &self.paths))
        })?;
        Ok(json(py, &made))
    }
}
