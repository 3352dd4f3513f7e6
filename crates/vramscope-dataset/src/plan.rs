//! What an export has to do: which files the dataset has, and how the others form parts.

use crate::bounds::{self, Used, invalid};
use crate::part::{ENDING, Files, Part, Source, TEMPORARY, is_folder, named};
use crate::rows::UNREADABLE;
use crate::schema::{RANKS, TABLES};
use arrow_array::cast::AsArray as _;
use arrow_array::types::Int64Type;
use arrow_array::{Array as _, RecordBatch};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;
use vramscope_report::{iteration_of, run_folder_of};
use vramscope_trace::file_name;
use xxhash_rust::xxh3::xxh3_64;

/// The largest number of files of a part.
const MAX_FILES: usize = 64;

/// Bounds of the limit on the bytes of the files of a part. A lower limit would make small parts;
/// with a higher one, an interrupted export would lose more. A larger file is a part by itself.
const PART_BYTES: [u64; 2] = [8 << 20, 256 << 20];

/// The number of parts that an export should have, so that each thread has one to write.
const MIN_PARTS: u64 = 16;

/// Begins the name of a part. A hash of 16 hexadecimal digits follows.
const PART: &str = "part-";

/// The name of a run whose folder has none.
const NO_NAME: &str = "run";

impl Source {
    /// The file at a path from the root. `run` is the name of its run, by default that of the run's
    /// folder.
    pub fn new(path: &Path, metadata: Option<&Metadata>, run: Option<&str>) -> Self {
        let text = path.to_string_lossy();
        let folder = run_folder_of(&text);
        let file = text[folder.len()..].trim_start_matches(['/', '\\']).replace('\\', "/");
        let name = run.unwrap_or_else(|| file_name(folder));
        let modified = metadata.and_then(|of| of.modified().ok());
        let modified = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        Self {
            run: if name.is_empty() { NO_NAME } else { name }.to_owned(),
            iteration: iteration_of(&text).unwrap_or(0),
            file,
            bytes: metadata.map_or(0, Metadata::len),
            modified_us: modified.and_then(|time| i64::try_from(time.as_micros()).ok()),
            path: path.to_owned(),
        }
    }

    /// The folder of the file's part in the folder of a table.
    fn folder(&self) -> String {
        format!("run={}/iteration={}", escaped(&self.run), self.iteration)
    }
}

/// A value in the name of a folder, as Hive writes it: readers of datasets know it.
fn escaped(value: &str) -> String {
    let mut out = String::new();
    for c in value.chars() {
        if c.is_alphanumeric() || matches!(c, '-' | '_' | '.') {
            out.push(c);
        } else {
            let mut bytes = [0; 4];
            for byte in c.encode_utf8(&mut bytes).bytes() {
                write!(out, "%{byte:02X}").expect("writing to memory");
            }
        }
    }
    out
}

/// What an export has to do.
#[derive(Debug, Default)]
pub struct Plan {
    /// The parts to write.
    pub parts: Vec<Part>,
    /// The number of files that the dataset has already.
    pub present: usize,
    /// Those of them that could not be read, and why.
    pub failed: Vec<(Source, String)>,
    /// The files that were removed: what interrupted exports left, and parts with changed files.
    pub removed: Vec<PathBuf>,
}

impl Plan {
    /// Compares files with a dataset that [`check_dataset`](crate::check_dataset) accepts. Removes
    /// parts of interrupted exports, and parts with files that have changed.
    ///
    /// A file is removed only if its name is that of a part, no link leads to it and, if it is
    /// complete, its footer names a version of these tables.
    ///
    /// # Errors
    /// The dataset cannot be read. `InvalidInput` if two files would have one name in it.
    pub fn new(dataset: &Path, sources: Vec<Source>) -> io::Result<Self> {
        let given: FxHashMap<(String, &str), &Source> = distinct(&sources)?;
        let (parts, removed) = find(dataset)?;
        let (mut plan, mut present) = (Self { removed, ..Self::default() }, FxHashSet::default());
        for (files, rows) in parts {
            let is_stale = rows.iter().any(|row| {
                let source = given.get(&(row.folder.clone(), row.file.as_str()));
                source.is_some_and(|source| row.is_stale(source))
            });
            if is_stale {
                for row in &rows {
                    row.must_be_given(
                        given.get(&(row.folder.clone(), row.file.as_str())).copied(),
                    )?;
                }
                plan.removed.extend(files.remove()?);
                continue;
            }
            for row in rows {
                let Some(&source) = given.get(&(row.folder.clone(), row.file.as_str())) else {
                    continue;
                };
                if present.insert((row.folder, row.file)) {
                    plan.failed.extend(row.error.map(|error| (source.clone(), error)));
                }
            }
        }
        plan.present = present.len();
        drop(given);
        let missing = sources
            .into_iter()
            .filter(|source| !present.contains(&(source.folder(), source.file.clone())));
        plan.parts = group(missing.collect());
        Ok(plan)
    }
}

/// The files by their names in the dataset.
fn distinct(sources: &[Source]) -> io::Result<FxHashMap<(String, &str), &Source>> {
    let mut given = FxHashMap::default();
    for source in sources {
        if let Some(other) = given.insert((source.folder(), source.file.as_str()), source) {
            let (a, b) = (other.path.display(), source.path.display());
            let (file, run) = (&source.file, &source.run);
            return Err(refused(format!(
                "{a} and {b} would both be {file} of run {run}: export them with another --run each"
            )));
        }
    }
    Ok(given)
}

fn refused(message: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, message)
}

/// A row of `ranks` of a part that is there.
struct Row {
    folder: String,
    file: String,
    path: String,
    bytes: u64,
    modified_us: Option<i64>,
    error: Option<String>,
    error_kind: Option<String>,
}

impl Row {
    /// Whether the file has changed, or may be readable now.
    fn is_stale(&self, source: &Source) -> bool {
        (self.bytes, self.modified_us) != (source.bytes, source.modified_us)
            || self.error_kind.as_deref() == Some(UNREADABLE)
    }

    /// A part is written again as a whole, so all its files must be there.
    fn must_be_given(&self, source: Option<&Source>) -> io::Result<()> {
        let path = &self.path;
        match source {
            None => Err(refused(format!(
                "a file that was converted together with {path} has changed: give {path}, too, or \
                 another dataset"
            ))),
            Some(source) if self.is_stale(source) && source.path.to_string_lossy() != *path => {
                let (run, file) = (&source.run, &source.file);
                Err(refused(format!(
                    "run {run} of the dataset has {file} from {path}: give this run another name \
                     with --run"
                )))
            }
            Some(_) => Ok(()),
        }
    }
}

/// Parts of a dataset, with the rows of their files.
type Parts = Vec<(Files, Vec<Row>)>;

/// The parts that are there. Removes what interrupted exports left, and returns those files.
fn find(dataset: &Path) -> io::Result<(Parts, Vec<PathBuf>)> {
    let mut names: BTreeSet<(String, String)> = BTreeSet::new();
    for table in TABLES {
        for folder in partitions(&dataset.join(table.name))? {
            for file in entries(&dataset.join(table.name).join(&folder))? {
                let name = file.strip_suffix(TEMPORARY).or_else(|| file.strip_suffix(ENDING));
                let name = name.filter(|name| is_part(name));
                names.extend(name.map(|name| (folder.clone(), name.to_owned())));
            }
        }
    }
    let (mut parts, mut removed) = (Vec::new(), Vec::new());
    for (folder, name) in names {
        let files = Files::new(dataset, &folder, &name);
        removed.extend(files.clean()?);
        if files.is_there() {
            let path = dataset.join(RANKS.name).join(&folder).join(format!("{name}{ENDING}"));
            let rows = read(&path, &folder).map_err(|error| named(error, &path))?;
            parts.push((files, rows));
        }
    }
    Ok((parts, removed))
}

/// Whether a file without its ending has the name of a part: see [`part`].
fn is_part(name: &str) -> bool {
    let hash = name.strip_prefix(PART).unwrap_or_default();
    hash.len() == 16 && hash.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// The folders `run=*/iteration=*` in the folder of a table. Links are left out.
pub(crate) fn partitions(table: &Path) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    for run in folders(table, "run=")? {
        for iteration in folders(&table.join(&run), "iteration=")? {
            found.push(format!("{run}/{iteration}"));
        }
    }
    Ok(found)
}

/// The names in a folder, sorted; none if it is not there.
pub(crate) fn entries(folder: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut names = entries
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<io::Result<Vec<String>>>()?;
    names.sort_unstable();
    Ok(names)
}

/// The folders in a folder whose names begin with `key`; none if `folder` is a link.
fn folders(folder: &Path, key: &str) -> io::Result<Vec<String>> {
    if !is_folder(folder)? {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for name in entries(folder)?.into_iter().filter(|name| name.starts_with(key)) {
        if is_folder(&folder.join(&name))? {
            found.push(name);
        }
    }
    Ok(found)
}

/// The columns of `ranks` that are compared.
const COMPARED: [&str; 6] = ["file", "path", "file_bytes", "modified_us", "error", "error_kind"];

/// The rows of a part's files.
fn read(path: &Path, folder: &str) -> io::Result<Vec<Row>> {
    let (mut rows, mut used) = (Vec::new(), Used::default());
    for batch in bounds::read(path, &COMPARED, bounds::SHORT_TEXTS)? {
        let batch: RecordBatch = batch.map_err(io::Error::other)?;
        let column = |name: &str| {
            let column = batch.column_by_name(name);
            column.ok_or_else(|| invalid(&format!("it has no column {name}")))
        };
        let wrong = |name: &str, expected: &str| {
            let found = column(name).map(|column| column.data_type().clone());
            found.map(|found| invalid(&format!("its column {name} is {found}, not {expected}")))
        };
        let text = |name: &str| match column(name)?.as_string_opt::<i32>() {
            Some(texts) => Ok(texts.clone()),
            None => Err(wrong(name, "text")?),
        };
        let number = |name: &str| match column(name)?.as_primitive_opt::<Int64Type>() {
            Some(numbers) => Ok(numbers.clone()),
            None => Err(wrong(name, "a 64-bit integer")?),
        };
        let (file, path) = (text("file")?, text("path")?);
        let (error, error_kind) = (text("error")?, text("error_kind")?);
        let (bytes, modified) = (number("file_bytes")?, number("modified_us")?);
        for at in 0..batch.num_rows() {
            for text in [&file, &path, &error, &error_kind] {
                used.add(text.value(at))?;
            }
            let owned =
                |of: &arrow_array::StringArray| (!of.is_null(at)).then(|| of.value(at).to_owned());
            rows.push(Row {
                folder: folder.to_owned(),
                file: without_snapshot(file.value(at), path.value(at)).to_owned(),
                path: path.value(at).to_owned(),
                bytes: bytes.value(at) as u64,
                modified_us: (!modified.is_null(at)).then(|| modified.value(at)),
                error: owned(&error),
                error_kind: owned(&error_kind),
            });
        }
    }
    Ok(rows)
}

/// The file without the name of the snapshot in it. The path ends with it.
fn without_snapshot<'a>(file: &'a str, path: &str) -> &'a str {
    let path = path.replace('\\', "/");
    let shorter = file.rmatch_indices('#').map(|(at, _)| &file[..at]);
    std::iter::once(file).chain(shorter).find(|file| path.ends_with(file)).unwrap_or(file)
}

/// Files as parts. The same files form the same parts on every machine.
fn group(sources: Vec<Source>) -> Vec<Part> {
    let total: u64 = sources.iter().map(|source| source.bytes).sum();
    let most = (total / MIN_PARTS).clamp(PART_BYTES[0], PART_BYTES[1]);
    let mut by_folder: BTreeMap<String, Vec<Source>> = BTreeMap::new();
    for source in sources {
        by_folder.entry(source.folder()).or_default().push(source);
    }
    let mut parts = Vec::new();
    for (folder, sources) in by_folder {
        let (mut next, mut bytes): (Vec<Source>, u64) = (Vec::new(), 0);
        for source in sources {
            let is_full = next.len() == MAX_FILES || bytes.saturating_add(source.bytes) > most;
            if is_full && !next.is_empty() {
                parts.push(part(&folder, std::mem::take(&mut next)));
                bytes = 0;
            }
            bytes = bytes.saturating_add(source.bytes);
            next.push(source);
        }
        if !next.is_empty() {
            parts.push(part(&folder, next));
        }
    }
    parts
}

/// A part with a name that follows from its files.
fn part(folder: &str, sources: Vec<Source>) -> Part {
    let mut key = String::new();
    for Source { file, bytes, modified_us, .. } in &sources {
        write!(key, "{file}\0{bytes}\0{modified_us:?}\0").expect("writing to memory");
    }
    let name = format!("{PART}{:016x}", xxh3_64(key.as_bytes()));
    Part { name, folder: folder.to_owned(), sources }
}
