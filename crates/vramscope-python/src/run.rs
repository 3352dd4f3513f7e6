//! The files of a run.

use crate::failure::{read_error, wrong};
use crate::file::{File, PyTold, json, shown, simulated, summaries, text, told};
use crate::options;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use vramscope_cli::input::read_files;
use vramscope_cli::{DiagnoseReport, FailedFile};
use vramscope_report::diagnose::{Listing, MAX_FINDINGS, at_peak, diagnose};
use vramscope_report::summary::{ErrorSummary, Summary};
use vramscope_report::what_if::RankLimit;
use vramscope_report::{LoadedFile, Target};

/// The files under some paths, all in memory.
#[pyclass(frozen, module = "vramscope._vramscope")]
pub(crate) struct Run {
    /// The paths as given.
    paths: Vec<String>,
    /// Empty once the run is closed.
    files: RwLock<Vec<Arc<LoadedFile>>>,
    limits: Arc<[RankLimit]>,
    failed: Vec<(PathBuf, ErrorSummary)>,
    skipped_files: usize,
    closed: AtomicBool,
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
            Err(error) => failed.push((file.path, error)),
        }
    }
    let limits = files.iter().flat_map(|file| &file.entries).filter_map(|entry| {
        let index = entry.default_trace().map(|first| first.device.device);
        let index = entry.traces.iter().position(|trace| Some(trace.device.device) == index);
        index.and_then(|index| RankLimit::of(Target { path: &entry.path, entry, index }))
    });
    let limits = limits.collect();
    let files = RwLock::new(files);
    Ok(Run { paths: given, files, limits, failed, skipped_files, closed: AtomicBool::new(false) })
}

impl Run {
    /// The files, which stay until the caller drops them.
    fn loaded(&self) -> PyResult<Vec<Arc<LoadedFile>>> {
        if self.closed() {
            return Err(wrong(format!("{} is closed: open it again", self.paths.join(", "))));
        }
        Ok(self.files.read().unwrap_or_else(PoisonError::into_inner).clone())
    }

    fn failed_files(&self) -> Vec<FailedFile> {
        self.failed.iter().map(|(path, why)| FailedFile::new(path, why.clone())).collect()
    }
}

#[pymethods]
impl Run {
    /// The files that could be read, in the order of their paths.
    fn files(&self) -> PyResult<Vec<File>> {
        let files = self.loaded()?.into_iter();
        Ok(files.map(|loaded| File::new(loaded, self.limits.clone())).collect())
    }

    /// Frees the files. Those of [`Run::files`] hold them, too.
    fn close(&self, py: Python<'_>) {
        self.closed.store(true, Ordering::Release);
        let held = || self.files.write().unwrap_or_else(PoisonError::into_inner).split_off(0);
        py.detach(|| drop(held()));
    }

    /// Whether the files are freed.
    #[getter]
    fn closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// The paths as given.
    #[getter]
    fn paths(&self) -> Vec<String> {
        self.paths.clone()
    }

    /// Why each other file could not be read: `vramscope.ReadError`.
    fn errors<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        self.failed.iter().map(|(path, why)| read_error(py, path, why)).collect()
    }

    /// Files of folders that are no snapshots.
    #[getter]
    fn skipped_files(&self) -> usize {
        self.skipped_files
    }

    /// `vramscope.summary/1` of the files that could be read.
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let files = self.loaded()?;
        let made = py.detach(|| {
            let all = files.iter().flat_map(summaries).collect();
            text(&Summary::new(all, self.skipped_files))
        })?;
        Ok(json(py, &made))
    }

    /// `vramscope.diagnose/1` of all files, with all findings.
    fn findings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let files = self.loaded()?;
        let made = py.detach(|| {
            let ranks = files.iter().flat_map(|file| simulated(file).map(at_peak));
            let found = diagnose(ranks.collect(), Listing::All(usize::MAX), self.skipped_files);
            text(&DiagnoseReport::new(found, self.failed_files()))
        })?;
        Ok(json(py, &made))
    }

    /// `vramscope.diagnose/1` of all files, and its `text`, `markdown` and `html`.
    fn diagnosis<'py>(&self, py: Python<'py>) -> PyResult<PyTold<'py>> {
        let files = self.loaded()?;
        let made = py.detach(|| {
            let ranks = files.iter().flat_map(|file| simulated(file).map(at_peak));
            let skipped = self.skipped_files;
            let diagnosis = diagnose(ranks.collect(), Listing::Main(MAX_FINDINGS), skipped);
            shown(diagnosis, self.failed_files(), &self.paths)
        })?;
        Ok(told(py, &made))
    }
}
