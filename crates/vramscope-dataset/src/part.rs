//! A part of a dataset: the tables of files that are converted together.
//!
//! All its files are written under temporary names and renamed at the end, that of `ranks` last. A
//! part is there when its file of `ranks` is. Until then its writer holds a lock on the temporary
//! file of `ranks`, so that another process neither writes the part nor removes it.

use crate::bounds;
use crate::regular::without_waiting;
use crate::rows::{self, Known};
use crate::schema::{
    ANNOTATIONS, BLOCKS, CURVE, FINDINGS, FRAMES, OOMS, PEAK, PHASES, RANKS, SEGMENTS, STACKS,
    TABLES, TableSchema, VERSION_FAMILY, VERSION_KEY,
};
use crate::sql::add_sql;
use crate::table::Table;
use parquet::arrow::arrow_reader::ArrowReaderOptions;
use parquet::errors::ParquetError;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use vramscope_report::LoadedFile;
use vramscope_report::summary::ErrorSummary;

/// A file that is converted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The path, from the root of the file system.
    pub path: PathBuf,
    /// The path below the run's folder, with `/` between its parts.
    pub file: String,
    /// The run.
    pub run: String,
    /// The iteration; 0 if the path has none.
    pub iteration: u64,
    /// The size in bytes; 0 if it is not known.
    pub bytes: u64,
    /// When it was last written, in microseconds since 1970; `None` if that is not known.
    pub modified_us: Option<i64>,
}

/// Files that are converted together. They are of one run and one iteration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The name of its files, without the ending.
    pub(crate) name: String,
    /// The folder of its files in the folder of a table: `run=.../iteration=...`.
    pub(crate) folder: String,
    /// The files.
    pub sources: Vec<Source>,
}

/// The tables of a part that is being written.
pub(crate) struct Tables {
    pub(crate) ranks: Table<rows::Ranks>,
    pub(crate) blocks: Table<rows::Blocks>,
    pub(crate) stacks: Table<rows::StackRows>,
    pub(crate) frames: Table<rows::FrameRows>,
    pub(crate) peak: Table<rows::Peak>,
    pub(crate) curve: Table<rows::Curve>,
    pub(crate) segments: Table<rows::Segments>,
    pub(crate) ooms: Table<rows::Ooms>,
    pub(crate) findings: Table<rows::Findings>,
    pub(crate) phases: Table<rows::Phases>,
    pub(crate) annotations: Table<rows::Annotations>,
}

impl Tables {
    /// Writes all rows, those of `ranks` last.
    fn finish(self) -> parquet::errors::Result<[File; TABLES.len()]> {
        Ok([
            self.blocks.finish()?,
            self.stacks.finish()?,
            self.frames.finish()?,
            self.peak.finish()?,
            self.curve.finish()?,
            self.segments.finish()?,
            self.ooms.finish()?,
            self.findings.finish()?,
            self.phases.finish()?,
            self.annotations.finish()?,
            self.ranks.finish()?,
        ])
    }
}

/// The paths of a part's files.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    dataset: PathBuf,
    folder: String,
    name: String,
}

/// The end of the name of a table's file.
pub(crate) const ENDING: &str = ".parquet";

/// The end of the name of a table's file that is being written.
pub(crate) const TEMPORARY: &str = ".parquet.tmp";

impl Files {
    pub(crate) fn new(dataset: &Path, folder: &str, name: &str) -> Self {
        Self { dataset: dataset.to_owned(), folder: folder.to_owned(), name: name.to_owned() }
    }

    fn of(&self, table: &TableSchema, ending: &str) -> PathBuf {
        let folder = self.dataset.join(table.name).join(&self.folder);
        folder.join(format!("{}{ending}", self.name))
    }

    pub(crate) fn is_there(&self) -> bool {
        self.of(&RANKS, ENDING).exists()
    }

    /// Removes the part, and returns the files that are gone: first `ranks`, without which the rest
    /// is no part.
    pub(crate) fn remove(&self) -> io::Result<Vec<PathBuf>> {
        let mut removed = Vec::new();
        for table in TABLES {
            self.remove_complete(table, &mut removed)?;
        }
        Ok(removed)
    }

    /// Removes what a writer left that no longer runs: temporary files, and all files of a part
    /// that is not there. Returns the files that are gone.
    pub(crate) fn clean(&self) -> io::Result<Vec<PathBuf>> {
        let claimed = self.of(&RANKS, TEMPORARY);
        let mut removed = Vec::new();
        let lock = if is_file(&claimed)? {
            let file = without_waiting(File::options().write(true)).open(&claimed)?;
            match file.try_lock() {
                Err(fs::TryLockError::WouldBlock) => return Ok(removed),
                // Where there are no locks, only one process may write.
                Ok(()) | Err(fs::TryLockError::Error(_)) => Some(file),
            }
        } else {
            None
        };
        let is_there = self.is_there();
        for table in TABLES.iter().rev() {
            let temporary = self.of(table, TEMPORARY);
            if self.is_own_folder(table)? && is_file(&temporary)? {
                remove(&temporary)?;
                removed.push(temporary);
            }
            if !is_there {
                self.remove_complete(table, &mut removed)?;
            }
        }
        drop(lock);
        Ok(removed)
    }

    /// Removes the complete file of a table, if this program wrote it.
    fn remove_complete(&self, table: &TableSchema, removed: &mut Vec<PathBuf>) -> io::Result<()> {
        let path = self.of(table, ENDING);
        if self.is_own_folder(table)? && is_file(&path)? && has_version(&path) {
            remove(&path)?;
            removed.push(path);
        }
        Ok(())
    }

    /// Whether the folder of the part's file of this table lies in the dataset, not behind a link.
    fn is_own_folder(&self, table: &TableSchema) -> io::Result<bool> {
        let mut folder = self.dataset.join(table.name);
        let mut is_own = is_folder(&folder)?;
        for name in self.folder.split('/') {
            folder.push(name);
            is_own = is_own && is_folder(&folder)?;
        }
        Ok(is_own)
    }

    /// Creates the temporary file of `ranks` and locks it. `None` if another process has written
    /// the part meanwhile.
    fn claim(&self) -> io::Result<Option<File>> {
        let path = self.of(&RANKS, TEMPORARY);
        loop {
            if !is_file(&path)? && fs::symlink_metadata(&path).is_ok() {
                return Err(refused_link(&path));
            }
            let mut options = File::options();
            options.write(true).create(true).truncate(false);
            let file = without_waiting(&mut options).open(&path)?;
            match file.lock() {
                Err(error) if error.kind() != ErrorKind::Unsupported => return Err(error),
                _ => {}
            }
            // The process that held the lock may have removed or renamed the file.
            let is_own = is_at(&file, &path)?;
            if self.is_there() {
                return if is_own { remove(&path).map(|()| None) } else { Ok(None) };
            }
            if is_own {
                file.set_len(0)?;
                return Ok(Some(file));
            }
        }
    }
}

/// Removes a file, if it is there.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Whether there is a regular file at a path. A link is none.
pub(crate) fn is_file(path: &Path) -> io::Result<bool> {
    is(path, fs::Metadata::is_file)
}

/// Whether there is a folder at a path. A link is none.
pub(crate) fn is_folder(path: &Path) -> io::Result<bool> {
    is(path, fs::Metadata::is_dir)
}

fn is(path: &Path, what: impl FnOnce(&fs::Metadata) -> bool) -> io::Result<bool> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(named(error, path)),
        Ok(of) => Ok(what(&of)),
    }
}

fn refused_link(path: &Path) -> io::Error {
    let text = format!("{} is a link: a dataset is written without links", path.display());
    io::Error::new(ErrorKind::InvalidInput, text)
}

/// An error with the path that it is about.
#[expect(clippy::needless_pass_by_value, reason = "map_err passes the error by value")]
pub(crate) fn named(error: io::Error, path: &Path) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Whether a Parquet file names a version of these tables in its footer.
fn has_version(path: &Path) -> bool {
    let plain = ArrowReaderOptions::new().with_skip_arrow_metadata(false);
    bounds::open(path, plain).is_ok_and(|(_, metadata)| {
        let version = metadata.schema().metadata().get(VERSION_KEY);
        version.is_some_and(|version| version.starts_with(VERSION_FAMILY))
    })
}

/// Whether an open file is the one at a path, and no link leads to it.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let there = match path.symlink_metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        there => there?,
    };
    let own = file.metadata()?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        Ok((there.dev(), there.ino()) == (own.dev(), own.ino()))
    }
    #[cfg(not(unix))]
    Ok(there.created().ok() == own.created().ok())
}

/// Writes a part.
pub struct PartWriter {
    tables: Tables,
    known: Known,
    unfinished: Unfinished,
}

/// The temporary files of a part. They are removed if the part is not finished.
struct Unfinished(Files);

impl Drop for Unfinished {
    fn drop(&mut self) {
        for table in TABLES.iter().rev() {
            // The next export removes what cannot be removed now.
            drop(fs::remove_file(self.0.of(table, TEMPORARY)));
        }
    }
}

impl PartWriter {
    /// Begins a part. `None` if it is there: another process has written it.
    ///
    /// # Errors
    /// Its files cannot be created.
    pub fn begin(dataset: &Path, part: &Part) -> io::Result<Option<Self>> {
        let files = Files::new(dataset, &part.folder, &part.name);
        add_sql(dataset)?;
        for table in TABLES {
            fs::create_dir_all(dataset.join(table.name).join(&part.folder))?;
            if !files.is_own_folder(table)? {
                return Err(refused_link(&dataset.join(table.name).join(&part.folder)));
            }
        }
        let Some(ranks) = files.claim()? else { return Ok(None) };
        let unfinished = Unfinished(files);
        let create = |schema: &TableSchema| {
            let path = unfinished.0.of(schema, TEMPORARY);
            // The lock on `ranks` shows that no other writer runs, so what is there is left over.
            remove(&path)?;
            File::create_new(path)
        };
        let tables = Tables {
            ranks: Table::new(ranks).map_err(failure)?,
            blocks: Table::new(create(&BLOCKS)?).map_err(failure)?,
            stacks: Table::new(create(&STACKS)?).map_err(failure)?,
            frames: Table::new(create(&FRAMES)?).map_err(failure)?,
            peak: Table::new(create(&PEAK)?).map_err(failure)?,
            curve: Table::new(create(&CURVE)?).map_err(failure)?,
            segments: Table::new(create(&SEGMENTS)?).map_err(failure)?,
            ooms: Table::new(create(&OOMS)?).map_err(failure)?,
            findings: Table::new(create(&FINDINGS)?).map_err(failure)?,
            phases: Table::new(create(&PHASES)?).map_err(failure)?,
            annotations: Table::new(create(&ANNOTATIONS)?).map_err(failure)?,
        };
        Ok(Some(Self { tables, known: Known::default(), unfinished }))
    }

    /// Adds a file, or why it could not be read.
    ///
    /// # Errors
    /// The tables cannot be written.
    pub fn add(
        &mut self,
        source: &Source,
        read: &Result<LoadedFile, ErrorSummary>,
    ) -> io::Result<()> {
        let added = match read {
            Ok(file) => rows::add(&mut self.tables, &mut self.known, source, file),
            Err(error) => rows::failed(&mut self.tables.ranks, source, error),
        };
        added.map_err(failure)
    }

    /// Finishes the part, which is there from now on. Returns its size in bytes.
    ///
    /// # Errors
    /// The tables cannot be written.
    pub fn finish(self) -> io::Result<u64> {
        let Self { tables, unfinished, .. } = self;
        // The lock on `ranks` is held until all files have their names.
        let open = tables.finish().map_err(failure)?;
        let mut bytes = 0;
        for file in &open {
            file.sync_all()?;
            bytes += file.metadata()?.len();
        }
        for table in TABLES.iter().rev() {
            fs::rename(unfinished.0.of(table, TEMPORARY), unfinished.0.of(table, ENDING))?;
        }
        Ok(bytes)
    }
}

/// An error of the Parquet writer.
pub(crate) fn failure(error: ParquetError) -> io::Error {
    io::Error::other(error)
}
