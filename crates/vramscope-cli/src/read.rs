//! Reads snapshot files in chunks and in parallel, with a progress bar.

mod ordered;

pub(crate) use ordered::{Read, in_order, map_in_order};

use crate::Failure;
use crate::arguments::{DeviceInput, Dimensions, Reading, Window};
use crate::mcp::call;
use crate::memory;
use crate::output;
use crate::paths::{self, Found};
use crate::printable::printable;
use indicatif::{ProgressBar, ProgressStyle};
use std::fs::File;
use std::io::{self, Read as _};
use std::num::NonZero;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;
use vramscope_dataset::open_regular;
use vramscope_report::Target;
use vramscope_report::device_name;
use vramscope_report::shapes::widths_of_config;
use vramscope_report::summary::{ErrorKind, ErrorSummary};
use vramscope_report::{FileReader, LoadedFile, Rules, SnapshotEntry, Widths};
use vramscope_units::grouped;

/// Bytes per read.
const CHUNK_BYTES: usize = 1 << 20;

/// What [`each_file`] did.
pub(crate) struct FilesRead<T> {
    /// The result of `work` for each file, in the order of the files; `None` for a skipped file.
    pub(crate) each: Vec<Option<T>>,
    /// Files of searched folders that are no snapshots.
    pub(crate) skipped_files: usize,
    /// [`Failure::Input`] if a file could not be read, or if there is none.
    pub(crate) outcome: Result<(), Failure>,
}

impl<T> FilesRead<T> {
    /// The results of all files but the skipped ones.
    pub(crate) fn into_results(self) -> (impl Iterator<Item = T>, usize, Result<(), Failure>) {
        (self.each.into_iter().flatten(), self.skipped_files, self.outcome)
    }
}

/// Reads every file under these paths and calls `work` with each file's path, size and content.
///
/// `work` runs as soon as its file is read, so memory holds at most one file per core. Unreadable
/// files are reported on standard error. A file that a search found and that is no snapshot is
/// skipped, and one line gives the number of skipped files.
///
/// # Errors
/// The rules cannot be read.
pub(crate) fn each_file<T: Send>(
    given: &[PathBuf],
    window: &Window,
    work: impl Fn(&Path, u64, Result<LoadedFile, ErrorSummary>) -> T + Sync,
) -> Result<FilesRead<T>, Failure> {
    each_found(&paths::to_read(given), window, work)
}

/// [`each_file`] for files that were found already.
///
/// # Errors
/// The rules cannot be read.
pub(crate) fn each_found<T: Send>(
    files: &[Found],
    window: &Window,
    work: impl Fn(&Path, u64, Result<LoadedFile, ErrorSummary>) -> T + Sync,
) -> Result<FilesRead<T>, Failure> {
    let rules = load_rules(&window.reading)?;
    let bar = progress_bar(files.iter().map(|found| found.path.as_path()));
    let limits = Limits::of_each(window, files.len());
    let results = parallel_map(files, |Found { path, is_named, .. }: &Found| {
        let (bytes, result) = load(path, *is_named, &limits, &rules, &bar);
        if let Err(failure) = &result {
            if !is_named && failure.kind == ErrorKind::NoSnapshot {
                return None;
            }
            bar.suspend(|| print_failure(path, failure));
        }
        let failed = result.is_err();
        Some((work(path, bytes, result), failed))
    });
    bar.finish_and_clear();
    let skipped_files = results.iter().filter(|result| result.is_none()).count();
    report_skipped(skipped_files);
    let found_none = skipped_files == files.len();
    if found_none {
        none_found(files);
    }
    let failed = found_none || results.iter().flatten().any(|&(_, failed)| failed);
    Ok(FilesRead {
        each: results.into_iter().map(|result| Some(result?.0)).collect(),
        skipped_files,
        outcome: if failed { Err(Failure::Input) } else { Ok(()) },
    })
}

/// Tells how many files of folders are no snapshots.
pub(crate) fn report_skipped(files: usize) {
    match files {
        0 => {}
        1 => output::complain("1 other file skipped"),
        n => output::complain(format_args!("{} other files skipped", grouped(n as u64))),
    }
}

/// Tells that none of these files is a snapshot.
pub(crate) fn none_found(files: &[Found]) {
    let which = match files {
        [] => String::new(),
        [only] => format!("{}: ", only.path.display()),
        [first, others @ ..] => {
            format!("{} and {} more: ", first.path.display(), grouped(others.len() as u64))
        }
    };
    output::complain(format_args!("{which}no snapshots found. {}", paths::SEARCHED));
}

/// The number of threads that read these files.
pub(crate) fn threads(files: usize) -> usize {
    thread::available_parallelism().map_or(1, NonZero::get).min(files)
}

/// Maps items on one thread per core. Results keep the order of the items.
///
/// The threads are not those of the rayon pool that analyses share. A pool thread that waits for a
/// part of one file's analysis would start to read another file.
pub(crate) fn parallel_map<I: Sync, T: Send>(items: &[I], work: impl Fn(&I) -> T + Sync) -> Vec<T> {
    let threads = threads(items.len());
    let queue = Mutex::new(items.iter().enumerate());
    let next = || queue.lock().ok()?.next();
    let take =
        || std::iter::from_fn(next).map(|(at, item)| (at, work(item))).collect::<Vec<(usize, T)>>();
    let mut done: Vec<(usize, T)> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(take)).collect();
        // A panic in a worker ends the program.
        workers
            .into_iter()
            .flat_map(|w| w.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    done.sort_unstable_by_key(|&(at, _)| at);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Reads one file and calls `work` with the selected device.
///
/// # Errors
/// The file or the rules cannot be read, the snapshot or device does not exist, or `work` fails.
pub(crate) fn with_device(
    input: &DeviceInput,
    work: impl FnOnce(Target<'_>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    with_device_or(input, input.choice.device, work)
}

/// [`with_device`] with all events, whatever the window.
///
/// # Errors
/// As [`with_device`].
pub(crate) fn with_device_of_whole(
    input: &DeviceInput,
    work: impl FnOnce(Target<'_>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let window = Window::whole(&input.common.window.reading);
    with_selected(&read_file(input, &window)?, input, input.choice.device, work)
}

/// [`with_device`] with this device.
///
/// # Errors
/// As [`with_device`].
pub(crate) fn with_device_or(
    input: &DeviceInput,
    device: Option<u32>,
    work: impl FnOnce(Target<'_>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    with_selected(&read_file(input, &input.common.window)?, input, device, work)
}

/// [`with_device`] with what the user knows of the model.
///
/// # Errors
/// As [`with_device`]; the configuration of the model cannot be read.
pub(crate) fn with_model(
    input: &DeviceInput,
    model: &Dimensions,
    work: impl FnOnce(Target<'_>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let widths = widths(model)?;
    let mut file = read_file(input, &input.common.window)?;
    if let Some(widths) = widths {
        for entry in &mut file.entries {
            entry.set_widths(widths.clone());
        }
    }
    with_selected(&file, input, input.choice.device, work)
}

fn with_selected(
    file: &LoadedFile,
    input: &DeviceInput,
    device: Option<u32>,
    work: impl FnOnce(Target<'_>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let entry = select_entry(file, input.choice.snapshot.as_deref())?;
    work(select_device(entry, device, &entry.path)?)
}

/// A `config.json` has a few kilobytes.
const MAX_CONFIG_BYTES: u64 = 1 << 20;

/// The widths that the user gives.
fn widths(model: &Dimensions) -> Result<Option<Vec<Widths>>, Failure> {
    let Some(path) = &model.config else {
        let hidden = model.dims.first();
        return Ok(hidden.map(|&hidden| Widths::given(hidden, &model.dims, None)));
    };
    let wrong = |why: &dyn std::fmt::Display| {
        Failure::Usage(format!("{}: {why}", printable(&path.display().to_string())))
    };
    let mut text = String::new();
    let file = File::open(path).map_err(|error| wrong(&error))?;
    file.take(MAX_CONFIG_BYTES).read_to_string(&mut text).map_err(|error| wrong(&error))?;
    widths_of_config(&text).map(Some).map_err(|why| wrong(&why))
}

fn read_file(input: &DeviceInput, window: &Window) -> Result<LoadedFile, Failure> {
    let chosen = if input.path.is_dir() { Some(likely(input)?) } else { None };
    let path = chosen.as_deref().unwrap_or(&input.path);
    let rules = load_rules(&window.reading)?;
    let bar = progress_bar(std::iter::once(path));
    let limits = Limits::of_each(window, 1);
    let is_named = chosen.is_none() || path.is_dir();
    let (_, result) = load(path, is_named, &limits, &rules, &bar);
    bar.finish_and_clear();
    result.map_err(|failure| {
        print_failure(path, &failure);
        Failure::Input
    })
}

/// The file of a folder that a question about one file is likely about: the only one, else one that
/// ran out of memory, else that with the highest peak. Standard error names it.
fn likely(input: &DeviceInput) -> Result<PathBuf, Failure> {
    let files = paths::to_read(std::slice::from_ref(&input.path));
    if let [only] = &files[..] {
        if !only.is_named {
            output::complain(only.path.display());
        }
        return Ok(only.path.clone());
    }
    let read = each_found(&files, &input.common.window, |path, _, result| {
        let file = result.ok()?;
        let traces = file.entries.iter().flat_map(|entry| entry.traces.iter());
        let traces = traces
            .filter(|trace| input.choice.device.is_none_or(|device| trace.device.device == device));
        let weights = traces.map(|trace| (!trace.ooms.is_empty(), trace.requested_band.peak));
        Some((weights.max()?, path.to_owned()))
    })?;
    let (found, ..) = read.into_results();
    let found: Vec<((bool, i64), PathBuf)> = found.flatten().collect();
    let count = found.len();
    // Of equals the first.
    let best = found.into_iter().rev().max_by_key(|of| of.0);
    let Some(((has_oom, _), path)) = best else { return Err(Failure::Input) };
    let why = if has_oom { "it ran out of memory" } else { "it has the highest peak" };
    output::complain(format_args!(
        "{}, of {} snapshots: {why}",
        path.display(),
        grouped(count as u64)
    ));
    Ok(path)
}

/// The snapshot that `--snapshot` names; by default the file's first.
///
/// # Errors
/// The file has no snapshot of that name.
pub(crate) fn select_entry<'a>(
    file: &'a LoadedFile,
    name: Option<&str>,
) -> Result<&'a SnapshotEntry, Failure> {
    let Some(name) = name else { return Ok(&file.entries[0]) };
    file.entries.iter().find(|entry| entry.name == name).ok_or_else(|| {
        let names: Vec<&str> = file.entries.iter().map(|entry| entry.name.as_str()).collect();
        let remedy = match names.as_slice() {
            // A file that is itself the snapshot gives it no name.
            [""] => "its only snapshot has no name, omit --snapshot".to_owned(),
            names => format!("available: {}", names.join(", ")),
        };
        Failure::Usage(format!("{}: no snapshot {name:?} ({remedy})", file.path))
    })
}

/// The device with this ordinal; by default one that ran out of memory, then the one with the
/// highest peak.
///
/// # Errors
/// The snapshot has no data of that device, or of any device.
pub(crate) fn select_device<'a>(
    entry: &'a SnapshotEntry,
    device: Option<u32>,
    path: &'a str,
) -> Result<Target<'a>, Failure> {
    let ordinals = || entry.traces.iter().map(|t| t.device.device);
    let selected = device.or_else(|| entry.default_trace().map(|t| t.device.device));
    let index = selected.and_then(|selected| ordinals().position(|d| d == selected));
    let index = index.ok_or_else(|| {
        let available: Vec<String> =
            ordinals().map(|d| device_name(d).replace("device ", "")).collect();
        match device {
            Some(device) if !available.is_empty() => {
                let available = available.join(", ");
                let name = device_name(device);
                Failure::Usage(format!("{path}: {name} has no data (available: {available})"))
            }
            _ => Failure::NoMemory { path: path.to_owned() },
        }
    })?;
    Ok(Target { path, entry, index })
}

/// Prints why a file could not be read, and the hint if the failure has one.
pub(crate) fn print_failure(path: &Path, failure: &ErrorSummary) {
    output::complain_of(&path.to_string_lossy(), &failure.message);
    if let Some(hint) = &failure.hint {
        eprintln!("  {hint}");
    }
}

/// Reads the file that `--rules` names. No file means no rules.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn load_rules(reading: &Reading) -> Result<Rules, Failure> {
    let Some(path) = &reading.rules else { return Ok(Rules::default()) };
    let text = std::fs::read_to_string(path)
        .map_err(|e| Failure::Usage(format!("cannot read {}: {e}", path.display())))?;
    Rules::parse(&text).map_err(|e| Failure::Usage(format!("{}: {e}", path.display())))
}

/// A progress bar over the bytes of all files. It is hidden unless standard error is a terminal.
pub(crate) fn progress_bar<'a>(files: impl Iterator<Item = &'a Path>) -> ProgressBar {
    let bytes = files.filter_map(|p| p.metadata().ok()).map(|m| m.len()).sum();
    let bar = ProgressBar::new(bytes);
    let template =
        "{bar:30} {binary_bytes} of {binary_total_bytes}, {binary_bytes_per_sec}, {eta} left";
    bar.set_style(
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()),
    );
    bar
}

/// What is read of a file.
pub(crate) struct Limits {
    /// Only these events of each device, and those of blocks that are live in the range.
    pub(crate) events: Option<Range<u32>>,
    /// Bytes of memory that reading may take.
    pub(crate) memory: u64,
}

impl Limits {
    /// What is read of each of `files`, of which each core reads one at a time.
    fn of_each(window: &Window, files: usize) -> Self {
        Self {
            events: window.events.clone(),
            memory: memory::limit(window.reading.max_memory, threads(files)),
        }
    }
}

/// Reads a file, and applies the rules. Also returns the file's size in bytes. See [`read_chunks`].
pub(crate) fn load(
    path: &Path,
    is_named: bool,
    limits: &Limits,
    rules: &Rules,
    bar: &ProgressBar,
) -> (u64, Result<LoadedFile, ErrorSummary>) {
    let (bytes, mut result) = read_chunks(path, is_named, limits, |n| bar.inc(n));
    if let Ok(file) = &mut result
        && !rules.user().is_empty()
    {
        for entry in &mut file.entries {
            entry.set_rules(rules.clone());
        }
    }
    (bytes, result)
}

/// Reads a file in chunks, and tells the bytes of each. Returns the file's size in bytes and its
/// content. A file that the user names may be a pipe. Others must be regular files.
pub(crate) fn read_chunks(
    path: &Path,
    is_named: bool,
    limits: &Limits,
    read: impl Fn(u64),
) -> (u64, Result<LoadedFile, ErrorSummary>) {
    let open = |()| if is_named { File::open(path) } else { open_regular(path) };
    let file = call::allow(path).and_then(open);
    read_opened(path, file, limits, read)
}

/// Reads the file at a path, which is open already, as [`read_chunks`] does.
pub(crate) fn read_opened(
    path: &Path,
    file: io::Result<File>,
    limits: &Limits,
    read: impl Fn(u64),
) -> (u64, Result<LoadedFile, ErrorSummary>) {
    let mut bytes = 0;
    let result = try_read(path, file, limits, &mut bytes, read);
    (bytes, result)
}

fn try_read(
    path: &Path,
    file: io::Result<File>,
    limits: &Limits,
    bytes: &mut u64,
    read: impl Fn(u64),
) -> Result<LoadedFile, ErrorSummary> {
    let what = if path.is_dir() { "folder" } else { "file" };
    if file.is_ok() && path.read_dir().is_ok() {
        let message = format!("no snapshots found. {}", paths::SEARCHED);
        return Err(failed(message, ErrorKind::NoSnapshot));
    }
    let file = file.map_err(|error| unreadable(what, &error))?;
    *bytes = file.metadata().map_err(|error| unreadable(what, &error))?.len();
    let mut file = read_source(&path.to_string_lossy(), *bytes, file, limits, read)?;
    beside(path, &mut file);
    Ok(file)
}

fn failed(message: String, kind: ErrorKind) -> ErrorSummary {
    ErrorSummary { message, hint: None, kind, byte_offset: None }
}

fn unreadable(what: &str, error: &io::Error) -> ErrorSummary {
    failed(format!("cannot read the {what}: {error}"), ErrorKind::Unreadable)
}

/// Reads a snapshot in chunks, and tells the bytes of each. `bytes` is its size, 0 if that is not
/// known.
pub(crate) fn read_source(
    name: &str,
    bytes: u64,
    mut source: impl io::Read,
    limits: &Limits,
    read: impl Fn(u64),
) -> Result<LoadedFile, ErrorSummary> {
    let mut loader = FileReader::new(name, bytes);
    if let Some(events) = &limits.events {
        loader = loader.of_events(events.clone());
    }
    loader = loader.within(limits.memory);
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        match source.read(&mut chunk).map_err(|error| unreadable("file", &error))? {
            0 => return loader.finish(),
            n => {
                loader.feed(&chunk[..n])?;
                read(n as u64);
            }
        }
    }
}

/// Reads the file beside a snapshot, if there is one.
fn beside(path: &Path, file: &mut LoadedFile) {
    let Some(json) = crate::beside::read(path) else { return };
    for entry in &mut file.entries {
        match &json {
            Ok(json) => entry.set_sidecar(json),
            Err(error) => entry.refuse_sidecar(error.to_string()),
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// A search lists regular files, but something else may take the place of one.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "a thread that waits for a pipe does not end")]
    fn a_pipe_that_a_search_found_is_not_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let pipe = folder.path().join("rank0.pickle");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.is_ok_and(|status| status.success()), "mkfifo");
        let (told, heard) = std::sync::mpsc::channel();
        thread::spawn(move || {
            let limits = Limits { events: None, memory: 1 << 20 };
            told.send(read_chunks(&pipe, false, &limits, |_| {}).1.map(|_| ()))
        });
        let read =
            heard.recv_timeout(std::time::Duration::from_secs(20)).expect("it does not wait");
        let error = read.expect_err("a pipe");
        assert_eq!(error.message, "cannot read the file: it is no regular file");
    }
}
