//! A file and its reports.

use crate::failure::{internal, read_error, wrong};
use crate::options;
use crate::peak;
use crate::source::Source;
use crate::table::{self, Table};
use crate::{diff, predictions};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use vramscope_cli::input::{read_file, read_from};
use vramscope_cli::{DiagnoseReport, FailedFile};
use vramscope_report::diagnose::{Diagnosis, Listing, MAX_FINDINGS, diagnose, with_levers};
use vramscope_report::diagnostic::{Answer, card, markdown, plain_text};
use vramscope_report::holders::{holders_at, holders_of};
use vramscope_report::info::{Info, add_optimizations, info};
use vramscope_report::modules::modules;
use vramscope_report::now;
use vramscope_report::shapes::shapes;
use vramscope_report::steps::step_table;
use vramscope_report::summary::{FileSummary, Summary, of_entry};
use vramscope_report::uses::uses_at;
use vramscope_report::what_if::{Options, RankLimit, what_if};
use vramscope_report::{LoadedFile, Target, device_name};

/// A file in memory. Its methods return the JSON of the program's reports.
///
/// `entry` is the index of a snapshot in the file, `device` a device's ordinal.
#[pyclass(frozen, module = "vramscope._vramscope")]
pub(crate) struct File {
    path: String,
    /// `None` once the file is closed.
    loaded: RwLock<Option<Arc<LoadedFile>>>,
    /// Limits that other ranks of its run show.
    limits: Arc<[RankLimit]>,
}

/// Reads a file. `limits` is what [`File::limits`] of a file of the same run returned.
#[pyfunction]
#[pyo3(signature = (path, events=None, max_memory=None, limits=None))]
pub(crate) fn open(
    py: Python<'_>,
    path: PathBuf,
    events: Option<(u32, u32)>,
    max_memory: Option<&str>,
    limits: Option<&[u8]>,
) -> PyResult<File> {
    let options = options::reading(events, max_memory)?;
    let limits: Vec<RankLimit> =
        limits.map(serde_json::from_slice).transpose().map_err(internal)?.unwrap_or_default();
    let read = py.detach(move || read_file(&path, &options));
    match read.result {
        Ok(file) => Ok(File::new(Arc::new(file), limits.into())),
        Err(error) => Err(PyErr::from_value(read_error(py, &read.path, &error)?)),
    }
}

/// Reads a snapshot from a binary file of Python. `bytes` is its size, 0 if that is not known.
#[pyfunction]
#[pyo3(signature = (file, name, bytes, events=None, max_memory=None))]
pub(crate) fn open_file(
    py: Python<'_>,
    file: Py<PyAny>,
    name: &str,
    bytes: u64,
    events: Option<(u32, u32)>,
    max_memory: Option<&str>,
) -> PyResult<File> {
    let options = options::reading(events, max_memory)?;
    let mut source = Source::new(file);
    let read = py.detach(|| read_from(name, bytes, &mut source, &options));
    match (read, source.failure) {
        (Ok(file), _) => Ok(File::new(Arc::new(file), Arc::new([]))),
        // The exception of the file says more than what reading makes of it.
        (Err(_), Some(failure)) => Err(failure),
        (Err(error), None) => Err(PyErr::from_value(read_error(py, Path::new(name), &error)?)),
    }
}

/// A report as JSON.
pub(crate) fn json<'py>(py: Python<'py>, text: &[u8]) -> Bound<'py, PyBytes> {
    PyBytes::new(py, text)
}

/// Serializes a report.
pub(crate) fn text(report: &impl Serialize) -> PyResult<Vec<u8>> {
    serde_json::to_vec(report).map_err(internal)
}

/// The columns of a diagnosis as text.
const WIDTH: usize = 100;

/// The record that the program prints, and what a reader sees of it, both as JSON.
pub(crate) type Told = (Vec<u8>, Vec<u8>);

/// [`Told`] in Python.
pub(crate) type PyTold<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>);

/// Hands over what was told.
pub(crate) fn told<'py>(py: Python<'py>, (record, view): &Told) -> PyTold<'py> {
    (json(py, record), json(py, view))
}

/// What a reader sees of a diagnosis.
#[derive(Serialize)]
struct Shown {
    text: String,
    markdown: String,
    html: String,
}

/// A diagnosis, with the text of `vramscope diagnose`, and the same as Markdown and HTML. `paths`
/// are those that were opened.
pub(crate) fn shown(
    mut diagnosis: Diagnosis,
    errors: Vec<FailedFile>,
    paths: &[String],
) -> PyResult<Told> {
    let answer = Answer::new(&diagnosis, paths, false);
    let shown = Shown {
        text: plain_text(&answer, WIDTH),
        markdown: markdown(&answer),
        html: card(&answer),
    };
    // As the program: a chart is no part of a diagnosis. `findings` has them.
    diagnosis.findings.iter_mut().for_each(|finding| finding.record.proof = None);
    Ok((text(&DiagnoseReport::new(diagnosis, errors))?, text(&shown)?))
}

/// The devices of a file, with what the model of the allocator says about their findings.
pub(crate) fn simulated(file: &LoadedFile) -> impl Iterator<Item = Target<'_>> {
    file.entries.iter().flat_map(|entry| {
        (0..entry.traces.len()).map(move |index| {
            entry.simulate(index);
            Target { path: &entry.path, entry, index }
        })
    })
}

/// The name of a snapshot, its devices, and the one that is shown first.
type Entry = (String, Vec<u32>, Option<u32>);

/// A device of a file.
fn target(file: &LoadedFile, (entry, device): (u32, u32)) -> PyResult<Target<'_>> {
    let found = file.target(entry, device);
    found.ok_or_else(|| wrong(format!("{}: {} has no data", file.path, device_name(device))))
}

impl File {
    /// A file that was read.
    pub(crate) fn new(loaded: Arc<LoadedFile>, limits: Arc<[RankLimit]>) -> Self {
        Self { path: loaded.path.clone(), loaded: RwLock::new(Some(loaded)), limits }
    }

    /// The content, which stays until the caller drops it.
    fn loaded(&self) -> PyResult<Arc<LoadedFile>> {
        let loaded = self.loaded.read().unwrap_or_else(PoisonError::into_inner).clone();
        loaded.ok_or_else(|| wrong(format!("{} is closed: open it again", self.path)))
    }

    /// Makes a report of a device without the interpreter's lock.
    fn report<'py>(
        &self,
        py: Python<'py>,
        device: (u32, u32),
        make: impl Fn(Target<'_>) -> PyResult<Vec<u8>> + Send + Sync,
    ) -> PyResult<Bound<'py, PyBytes>> {
        Ok(json(py, &self.of_device(py, device, make)?))
    }

    /// Makes something of a device without the interpreter's lock.
    fn of_device<T: Send>(
        &self,
        py: Python<'_>,
        device: (u32, u32),
        make: impl Fn(Target<'_>) -> PyResult<T> + Send + Sync,
    ) -> PyResult<T> {
        let file = self.loaded()?;
        py.detach(|| make(target(&file, device)?))
    }
}

#[pymethods]
impl File {
    /// The path as given.
    #[getter]
    fn path(&self) -> &str {
        &self.path
    }

    /// Frees the content. Reports that are being made in other threads end first.
    fn close(&self, py: Python<'_>) {
        let held = || self.loaded.write().unwrap_or_else(PoisonError::into_inner).take();
        py.detach(|| drop(held()));
    }

    /// Whether the content is freed.
    #[getter]
    fn closed(&self) -> bool {
        self.loaded.read().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// What other ranks of its run show, for [`open`].
    fn limits<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(json(py, &text(&self.limits)?))
    }

    /// The name of each snapshot in the file, with its devices and the one that is shown first.
    fn entries(&self) -> PyResult<Vec<Entry>> {
        let file = self.loaded()?;
        let entries = file.entries.iter().map(|entry| {
            let devices = entry.traces.iter().map(|t| t.device.device).collect();
            let first = entry.default_trace().map(|t| t.device.device);
            (entry.name.clone(), devices, first)
        });
        Ok(entries.collect())
    }

    /// `vramscope.summary/1` of the file.
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let file = &self.loaded()?;
        let made = py.detach(|| text(&Summary::new(summaries(file), 0)))?;
        Ok(json(py, &made))
    }

    /// `vramscope.info/1` of the file.
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let file = &self.loaded()?;
        let made = py.detach(|| {
            let all = file
                .entries
                .iter()
                .map(|entry| {
                    now(async |budget| {
                        let mut info = info(&entry.path, entry, budget).await;
                        add_optimizations(&mut info, entry, budget).await;
                        info
                    })
                })
                .collect();
            text(&Info::new(all, 0))
        })?;
        Ok(json(py, &made))
    }

    /// `vramscope.diagnose/1` of the file, with all findings.
    fn findings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let file = &self.loaded()?;
        let made = py.detach(|| {
            let devices = simulated(file).map(with_levers).collect();
            text(&DiagnoseReport::new(diagnose(devices, Listing::All(usize::MAX), 0), Vec::new()))
        })?;
        Ok(json(py, &made))
    }

    /// `vramscope.diagnose/1` of the file, and its `text`, `markdown` and `html`.
    fn diagnosis<'py>(&self, py: Python<'py>) -> PyResult<PyTold<'py>> {
        let file = &self.loaded()?;
        let made = py.detach(|| {
            let devices = simulated(file).map(with_levers).collect();
            let diagnosis = diagnose(devices, Listing::Main(MAX_FINDINGS), 0);
            shown(diagnosis, Vec::new(), std::slice::from_ref(&file.path))
        })?;
        Ok(told(py, &made))
    }

    /// `vramscope.peak/1` of a device.
    fn peak<'py>(
        &self,
        py: Python<'py>,
        entry: u32,
        device: u32,
        band: &str,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let band = options::band(band)?;
        self.report(py, (entry, device), |target| text(&peak::peak(target, band, None)))
    }

    /// The own lines of call stacks at a band's peak.
    fn lines<'py>(
        &self,
        py: Python<'py>,
        entry: u32,
        device: u32,
        band: &str,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let band = options::band(band)?;
        self.report(py, (entry, device), |target| text(&peak::lines(target, band)))
    }

    /// The modules at the peak of `requested_bytes`, as a tree.
    fn modules<'py>(
        &self,
        py: Python<'py>,
        entry: u32,
        device: u32,
    ) -> PyResult<Bound<'py, PyBytes>> {
        self.report(py, (entry, device), |target| text(&modules(target, None, None)))
    }

    /// The shapes of tensors at the peak of `requested_bytes`.
    fn shapes<'py>(
        &self,
        py: Python<'py>,
        entry: u32,
        device: u32,
    ) -> PyResult<Bound<'py, PyBytes>> {
        self.report(py, (entry, device), |target| text(&shapes(target, None)))
    }

    /// What holds the memory at the peak of `requested_bytes`, or at the end.
    fn holders<'py>(
        &self,
        py: Python<'py>,
        entry: u32,
        device: u32,
        at_end: bool,
    ) -> PyResult<Bound<'py, PyBytes>> {
        self.report(py, (entry, device), |target| {
            let end = target.trace().slots() - 1;
            text(&if at_end { holders_at(target, end, None) } else { holders_of(target, None) })
        })
    }

    /// What becomes of the memory at the peak of the traced step.
    fn uses<'py>(&self, py: Python<'py>, entry: u32, device: u32) -> PyResult<Bound<'py, PyBytes>> {
        self.report(py, (entry, device), |target| text(&uses_at(target, None, None)))
    }

    /// The steps and phases of `vramscope.steps/1`, of a device.
    fn steps<'py>(
        &self,
        py: Python<'py>,
        entry: u32,
        device: u32,
    ) -> PyResult<Bound<'py, PyBytes>> {
        self.report(py, (entry, device), |target| {
            text(&now(async |budget| step_table(target, None, budget).await))
        })
    }

    /// `vramscope.diff/1` of a device, before a change, and a device after it; and its words.
    fn diff<'py>(
        &self,
        py: Python<'py>,
        before: (u32, u32),
        other: &Bound<'py, Self>,
        after: (u32, u32),
        band: &str,
    ) -> PyResult<PyTold<'py>> {
        let band = options::band(band)?;
        let files = [self.loaded()?, other.get().loaded()?];
        let made = py.detach(|| {
            let (diff, words) =
                diff::diff(target(&files[0], before)?, target(&files[1], after)?, band);
            PyResult::Ok((text(&diff)?, text(&words)?))
        })?;
        Ok(told(py, &made))
    }

    /// `vramscope.what-if/1` of a device, about the question of a text; and its words.
    fn what_if<'py>(
        &self,
        py: Python<'py>,
        entry: u32,
        device: u32,
        question: &str,
    ) -> PyResult<PyTold<'py>> {
        let options = Options::parse(question).map_err(|error| wrong(error.text))?;
        let made = self.of_device(py, (entry, device), |target| {
            let limit = RankLimit::for_rank(target, &self.limits);
            let report = now(async |budget| what_if(target, &options, limit, budget).await);
            Ok((text(&report)?, text(&predictions::Words::new(&report))?))
        })?;
        Ok(told(py, &made))
    }

    /// The blocks of a device's window, in the order of their allocation.
    fn blocks(&self, py: Python<'_>, entry: u32, device: u32) -> PyResult<Table> {
        self.of_device(py, (entry, device), table::blocks)
    }

    /// The events of a device's trace.
    fn events(&self, py: Python<'_>, entry: u32, device: u32) -> PyResult<Table> {
        self.of_device(py, (entry, device), table::events)
    }

    /// The segments of a device after the last event.
    fn segments(&self, py: Python<'_>, entry: u32, device: u32) -> PyResult<Table> {
        self.of_device(py, (entry, device), table::segments)
    }

    /// The call stacks of a snapshot: a row for each frame.
    fn stacks(&self, py: Python<'_>, entry: u32) -> PyResult<Table> {
        let file = self.loaded()?;
        let entry = file.entries.get(entry as usize);
        let entry = entry.ok_or_else(|| wrong("no such snapshot"))?;
        py.detach(|| table::stacks(entry))
    }
}

/// The summaries of the snapshots of a file.
pub(crate) fn summaries(file: &Arc<LoadedFile>) -> Vec<FileSummary> {
    file.entries.iter().map(|entry| of_entry(file, entry)).collect()
}
