//! A file and its reports.

use crate::failure::{internal, read_error, wrong};
use crate::options;
use crate::table::{self, Table};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::Serialize;
use std::path::PathBuf;
use std::sync::Arc;
use vramscope_cli::input::read_file;
use vramscope_report::diagnose::{Diagnosis, Listing, MAX_FINDINGS, diagnose, with_savings};
use vramscope_report::diagnostic::{Answer, card, plain_text};
use vramscope_report::info::{Info, add_optimizations, info};
use vramscope_report::now;
use vramscope_report::summary::{FileSummary, Summary, of_entry};
use vramscope_report::what_if::{Options, RankLimit, what_if};
use vramscope_report::{LoadedFile, Target, device_name, peak, phases};

/// A file in memory. Its methods return the JSON of the program's reports.
///
/// `entry` is the index of a snapshot in the file, `device` a device's ordinal.
#[pyclass(frozen, module = "vramscope._vramscope")]
pub(crate) struct File {
    /// The file, and limits that other ranks of its run show.
    pub(crate) loaded: Arc<LoadedFile>,
    pub(crate) limits: Arc<[RankLimit]>,
}

/// Reads a file.
#[pyfunction]
#[pyo3(signature = (path, events=None, max_memory=None))]
pub(crate) fn open(
    py: Python<'_>,
    path: PathBuf,
    events: Option<(u32, u32)>,
    max_memory: Option<&str>,
) -> PyResult<File> {
    let options = options::reading(events, max_memory)?;
    let read = py.detach(move || read_file(&path, &options));
    match read.result {
        Ok(file) => Ok(File { loaded: Arc::new(file), limits: Arc::new([]) }),
        Err(error) => Err(PyErr::from_value(read_error(py, &read.path, &error)?)),
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

/// A diagnosis, and what a reader sees of it.
#[derive(Serialize)]
pub(crate) struct Shown {
    #[serde(flatten)]
    diagnosis: Diagnosis,
    text: String,
    html: String,
}

impl Shown {
    /// The text of `vramscope diagnose`, and the same as HTML. `paths` are those that were opened.
    pub(crate) fn new(diagnosis: Diagnosis, paths: &[String]) -> Self {
        let answer = Answer::new(&diagnosis, paths, false);
        Self { text: plain_text(&answer, WIDTH), html: card(&answer), diagnosis }
    }
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

impl File {
    fn target(&self, entry: u32, device: u32) -> PyResult<Target<'_>> {
        self.loaded.target(entry, device).ok_or_else(|| {
            wrong(format!("{}: {} has no data", self.loaded.path, device_name(device)))
        })
    }

    /// Makes a report of a device without the interpreter's lock.
    fn report<'py>(
        &self,
        py: Python<'py>,
        (entry, device): (u32, u32),
        make: impl Fn(Target<'_>) -> PyResult<Vec<u8>> + Send + Sync,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let target = self.target(entry, device)?;
        Ok(json(py, &py.detach(|| make(target))?))
    }
}

#[pymethods]
impl File {
    /// The path as given.
    #[getter]
    fn path(&self) -> &str {
        &self.loaded.path
    }

    /// The name of each snapshot in the file, with its devices and the one that is shown first.
    fn entries(&self) -> Vec<(&str, Vec<u32>, Option<u32>)> {
        let entries = self.loaded.entries.iter();
        entries
            .map(|entry| {
                let devices = entry.traces.iter().map(|t| t.device.device).collect();
                let first = entry.default_trace().map(|t| t.device.device);
                (entry.name.as_str(), devices, first)
            })
            .collect()
    }

    /// `vramscope.summary/1` of the file.
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let file = &self.loaded;
        let made = py.detach(|| text(&Summary::new(summaries(file), 0)))?;
        Ok(json(py, &made))
    }

    /// `vramscope.info/1` of the file.
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let file = &self.loaded;
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
        let file = &self.loaded;
        let made = py.detach(|| {
            text(&diagnose(
                simulated(file).map(with_savings).collect(),
                Listing::All(usize::MAX),
                0,
            ))
        })?;
        Ok(json(py, &made))
    }

    /// `vramscope.diagnose/1` of the file, with its `text` and `html`.
    fn diagnosis<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let file = &self.loaded;
        let made = py.detach(|| {
            let devices = simulated(file).map(with_savings).collect();
            let diagnosis = diagnose(devices, Listing::Main(MAX_FINDINGS), 0);
            text(&Shown::new(diagnosis, &[file.path.clone()]))
        })?;
        Ok(json(py, &made))
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

    /// The bytes of each module at a band's peak.
    fn modules<'py>(
        &self,
        py: Python<'py>,
        entry: u32,
        device: u32,
        band: &str,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let band = options::band(band)?;
        self.report(py, (entry, device), |target| text(&peak::by_module(target, band)))
    }

    /// The steps and phases of `vramscope.steps/1`, of a device.
    fn phases<'py>(
        &self,
        py: Python<'py>,
        entry: u32,
        device: u32,
    ) -> PyResult<Bound<'py, PyBytes>> {
        self.report(py, (entry, device), |target| {
            text(&now(async |budget| phases::phases(target, None, budget).await))
        })
    }

    /// `vramscope.what-if/1` of a device, about the question of a text.
    fn what_if<'py>(
        &self,
        py: Python<'py>,
        entry: u32,
        device: u32,
        question: &str,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let options = Options::parse(question).map_err(|error| wrong(error.text))?;
        self.report(py, (entry, device), |target| {
            let limit = RankLimit::for_rank(target, &self.limits);
            text(&now(async |budget| what_if(target, &options, limit, budget).await))
        })
    }

    /// The blocks of a device's window, in the order of their allocation.
    fn blocks(&self, py: Python<'_>, entry: u32, device: u32) -> PyResult<Table> {
        let target = self.target(entry, device)?;
        py.detach(|| table::blocks(target))
    }

    /// The events of a device's trace.
    fn events(&self, py: Python<'_>, entry: u32, device: u32) -> PyResult<Table> {
        let target = self.target(entry, device)?;
        py.detach(|| table::events(target))
    }

    /// The segments of a device after the last event.
    fn segments(&self, py: Python<'_>, entry: u32, device: u32) -> PyResult<Table> {
        let target = self.target(entry, device)?;
        py.detach(|| table::segments(target))
    }

    /// The call stacks of a snapshot: a row for each frame.
    fn stacks(&self, py: Python<'_>, entry: u32) -> PyResult<Table> {
        let entry = self.loaded.entries.get(entry as usize);
        let entry = entry.ok_or_else(|| wrong("no such snapshot"))?;
        py.detach(|| table::stacks(entry))
    }
}

/// The summaries of the snapshots of a file.
pub(crate) fn summaries(file: &Arc<LoadedFile>) -> Vec<FileSummary> {
    file.entries.iter().map(|entry| of_entry(file, entry)).collect()
}
