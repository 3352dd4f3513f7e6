//! Adds files to a dataset, for the program and the Python module.

use crate::memory;
use crate::paths::{self, Links};
use crate::read::{Limits, load, parallel_map, threads};
use indicatif::ProgressBar;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use vramscope_dataset::{Part, PartWriter, Plan, Source, add_sql, check_dataset};
use vramscope_report::Rules;
use vramscope_report::summary::{ErrorKind, ErrorSummary};

/// What an export did.
#[derive(Debug, Default)]
pub struct Exported {
    /// Files that were converted. Files that could not be read count, too.
    pub converted: usize,
    /// Their size in bytes.
    pub bytes_read: u64,
    /// Parts that were written.
    pub parts: usize,
    /// Their size in bytes.
    pub bytes_written: u64,
    /// Files that the dataset had already.
    pub present: usize,
    /// Files of folders that are no snapshots.
    pub skipped: usize,
    /// Files that could not be read, and why.
    pub failed: Vec<(PathBuf, String)>,
    /// Files that the dataset had already and that could not be read, and why.
    pub failed_before: Vec<(Source, String)>,
}

impl Exported {
    fn add(&mut self, other: Self) {
        self.converted += other.converted;
        self.bytes_read += other.bytes_read;
        self.parts += other.parts;
        self.bytes_written += other.bytes_written;
        self.present += other.present;
        self.skipped += other.skipped;
        self.failed.extend(other.failed);
    }
}

/// Adds the files under these paths to a dataset. `run` is the name of their run, by default that
/// of the run's folder.
///
/// # Errors
/// The dataset cannot be read or written. `InvalidInput` if the folder holds other files, or if two
/// files would have one name in it.
pub fn export_parquet(
    given: &[PathBuf],
    dataset: &Path,
    run: Option<&str>,
) -> io::Result<Exported> {
    check_dataset(dataset, false)?;
    let found = find(given, run)?;
    let plan = plan(dataset, &found)?;
    let job = Job {
        dataset,
        rules: Rules::default(),
        max_memory: None,
        bar: ProgressBar::hidden(),
        is_named: &|source| found.is_named(source),
        failed: &|_, _| {},
    };
    job.run(plan)
}

/// Files to convert, each with whether the command line names it.
pub(crate) struct Found(BTreeMap<PathBuf, (Source, bool)>);

impl Found {
    pub(crate) fn is_named(&self, source: &Source) -> bool {
        self.0.get(&source.path).is_some_and(|(_, is_named)| *is_named)
    }
}

/// Finds the files under these paths.
///
/// # Errors
/// The current folder is not known.
pub(crate) fn find(given: &[PathBuf], run: Option<&str>) -> io::Result<Found> {
    let found = paths::expand(given, Links::Everywhere).into_iter().map(|found| {
        let path = from_root(&found.path)?;
        let source = Source::new(&path, found.metadata.as_ref(), run);
        Ok((path, (source, found.is_named)))
    });
    found.collect::<io::Result<_>>().map(Found)
}

/// The path from the root of the file system. A link in place of the file stays: its name may have
/// the rank.
fn from_root(path: &Path) -> io::Result<PathBuf> {
    let absolute = std::path::absolute(path)?;
    let (Some(folder), Some(name)) = (absolute.parent(), absolute.file_name()) else {
        return Ok(absolute);
    };
    Ok(folder.canonicalize().map_or_else(|_| absolute.clone(), |folder| folder.join(name)))
}

/// What is to be done for these files.
///
/// # Errors
/// See [`Plan::new`].
pub(crate) fn plan(dataset: &Path, found: &Found) -> io::Result<Plan> {
    Plan::new(dataset, found.0.values().map(|(source, _)| source.clone()).collect())
}

/// How files are converted.
pub(crate) struct Job<'a> {
    pub(crate) dataset: &'a Path,
    pub(crate) rules: Rules,
    pub(crate) max_memory: Option<u64>,
    pub(crate) bar: ProgressBar,
    /// Whether the user names a file. Others are skipped if they are no snapshots.
    pub(crate) is_named: &'a (dyn Fn(&Source) -> bool + Sync),
    /// Called for each file that cannot be read.
    pub(crate) failed: &'a (dyn Fn(&Source, &ErrorSummary) + Sync),
}

impl Job<'_> {
    /// Writes the parts of a plan, one on each core.
    ///
    /// # Errors
    /// The dataset cannot be written.
    pub(crate) fn run(&self, plan: Plan) -> io::Result<Exported> {
        let Plan { parts, present, failed: failed_before, .. } = plan;
        let limits =
            Limits { events: None, memory: memory::limit(self.max_memory, threads(parts.len())) };
        let (is_over, first) = (AtomicBool::new(false), Mutex::new(None));
        let done = parallel_map(&parts, |part| {
            if is_over.load(Ordering::Relaxed) {
                return Exported::default();
            }
            self.write(part, &limits).unwrap_or_else(|error| {
                is_over.store(true, Ordering::Relaxed);
                let mut first = first.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                first.get_or_insert(error);
                Exported::default()
            })
        });
        self.bar.finish_and_clear();
        if let Some(error) = first.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
            return Err(error);
        }
        let mut exported = Exported { present, failed_before, ..Exported::default() };
        for part in done {
            exported.add(part);
        }
        if exported.converted + exported.present > 0 {
            add_sql(self.dataset)?;
        }
        Ok(exported)
    }

    fn write(&self, part: &Part, limits: &Limits) -> io::Result<Exported> {
        let mut done = Exported::default();
        let Some(mut writer) = PartWriter::begin(self.dataset, part)? else {
            done.present += part.sources.len();
            return Ok(done);
        };
        for source in &part.sources {
            let is_named = (self.is_named)(source);
            let (bytes, result) = load(&source.path, is_named, limits, &self.rules, &self.bar);
            if let Err(error) = &result {
                if error.kind == ErrorKind::NoSnapshot && !is_named {
                    done.skipped += 1;
                    continue;
                }
                self.bar.suspend(|| (self.failed)(source, error));
                done.failed.push((source.path.clone(), error.message.clone()));
            }
            done.converted += 1;
            done.bytes_read += bytes;
            writer.add(source, &result)?;
        }
        if done.converted > 0 {
            done.parts += 1;
            done.bytes_written += writer.finish()?;
        }
        Ok(done)
    }
}
