//! Reads snapshot files in chunks and in parallel, with a progress bar.

use crate::Failure;
use crate::arguments::{Common, DeviceInput};
use crate::paths;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::Read as _;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;
use vramscope_report::Target;
use vramscope_report::device_name;
use vramscope_report::summary::ErrorSummary;
use vramscope_report::{FileReader, LoadedFile, Rules, SnapshotEntry};

/// Bytes per read.
const CHUNK_BYTES: usize = 1 << 20;

/// Reads every file under these paths and calls `work` with each file's path, size and content.
///
/// `work` runs as soon as its file is read, so memory holds at most one file per core. Unreadable
/// files are reported on standard error, and the returned outcome is then [`Failure::Input`].
///
/// # Errors
/// A folder cannot be listed, or the rules cannot be read.
pub(crate) fn each_file<T: Send>(
    given: &[PathBuf],
    common: &Common,
    work: impl Fn(&Path, u64, Result<LoadedFile, ErrorSummary>) -> T + Sync,
) -> Result<(Vec<T>, Result<(), Failure>), Failure> {
    let rules = load_rules(common)?;
    let files = paths::expand(given)?;
    if files.is_empty() {
        eprintln!(
            "vramscope: no snapshots found. Folders are searched for .pickle, .pkl, .pt, .gz, \
             .html \
             and .json files."
        );
    }
    let bar = progress_bar(&files);
    let results: Vec<(T, bool)> = parallel_map(&files, |path: &PathBuf| {
        let (bytes, result) = load(path, common, &rules, &bar);
        if let Err(failure) = &result {
            bar.suspend(|| print_failure(path, failure));
        }
        let failed = result.is_err();
        (work(path, bytes, result), failed)
    });
    bar.finish_and_clear();
    let failed = files.is_empty() || results.iter().any(|r| r.1);
    let outcome = if failed { Err(Failure::Input) } else { Ok(()) };
    Ok((results.into_iter().map(|r| r.0).collect(), outcome))
}

/// Maps items on one thread per core. Results keep the order of the items.
///
/// The threads are not those of the rayon pool that analyses share. A pool thread that waits for a
/// part of one file's analysis would start to read another file.
fn parallel_map<I: Sync, T: Send>(items: &[I], work: impl Fn(&I) -> T + Sync) -> Vec<T> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(items.len());
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
    let file = read_file(input)?;
    let entry = select_entry(&file, input)?;
    work(select_device(entry, input.device, &entry.path)?)
}

fn read_file(input: &DeviceInput) -> Result<LoadedFile, Failure> {
    let rules = load_rules(&input.common)?;
    let bar = progress_bar(std::slice::from_ref(&input.path));
    let (_, result) = load(&input.path, &input.common, &rules, &bar);
    bar.finish_and_clear();
    result.map_err(|failure| {
        print_failure(&input.path, &failure);
        Failure::Input
    })
}

/// The snapshot that `--snapshot` names; by default the file's first.
fn select_entry<'a>(
    file: &'a LoadedFile,
    input: &DeviceInput,
) -> Result<&'a SnapshotEntry, Failure> {
    let Some(name) = &input.snapshot else { return Ok(&file.entries[0]) };
    file.entries.iter().find(|entry| entry.name == *name).ok_or_else(|| {
        let names: Vec<&str> = file.entries.iter().map(|entry| entry.name.as_str()).collect();
        let remedy = match names.as_slice() {
            // A file that is itself the snapshot gives it no name.
            [""] => "its only snapshot has no name, omit --snapshot".to_owned(),
            names => format!("available: {}", names.join(", ")),
        };
        Failure::Usage(format!("{}: no snapshot {name:?} ({remedy})", file.path))
    })
}

/// The device with this ordinal; by default the device with the most events.
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
        Failure::Usage(match device {
            Some(device) if !available.is_empty() => {
                let available = available.join(", ");
                let name = device_name(device);
                format!("{path}: {name} has no data (available: {available})")
            }
            _ => format!("{path}: no memory was allocated on any device"),
        })
    })?;
    Ok(Target { path, entry, index })
}

/// Prints why a file could not be read, and the hint if the failure has one.
fn print_failure(path: &Path, failure: &ErrorSummary) {
    eprintln!("vramscope: {}: {}", path.display(), failure.message);
    if let Some(hint) = &failure.hint {
        eprintln!("  {hint}");
    }
}

/// Reads the file that `--rules` names. No file means no rules.
fn load_rules(common: &Common) -> Result<Rules, Failure> {
    let Some(path) = &common.rules else { return Ok(Rules::default()) };
    let text = std::fs::read_to_string(path)
        .map_err(|e| Failure::Usage(format!("cannot read {}: {e}", path.display())))?;
    Rules::parse(&text).map_err(|e| Failure::Usage(format!("{}: {e}", path.display())))
}

/// A progress bar over the bytes of all files. It is hidden unless standard error is a terminal.
fn progress_bar(files: &[PathBuf]) -> ProgressBar {
    let bytes = files.iter().filter_map(|p| p.metadata().ok()).map(|m| m.len()).sum();
    let bar = ProgressBar::new(bytes);
    let template =
        "{bar:30} {binary_bytes} of {binary_total_bytes}, {binary_bytes_per_sec}, {eta} left";
    bar.set_style(
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()),
    );
    bar
}

/// Reads a file and applies the rules. Also returns the file's size in bytes.
fn load(
    path: &Path,
    common: &Common,
    rules: &Rules,
    bar: &ProgressBar,
) -> (u64, Result<LoadedFile, ErrorSummary>) {
    let mut bytes = 0;
    let mut result = read_chunks(path, common, &mut bytes, bar);
    if let Ok(file) = &mut result
        && !rules.user().is_empty()
    {
        for entry in &mut file.entries {
            entry.set_rules(rules.clone());
        }
    }
    (bytes, result)
}

/// Reads a file in chunks and sets `bytes` to its size.
fn read_chunks(
    path: &Path,
    common: &Common,
    bytes: &mut u64,
    bar: &ProgressBar,
) -> Result<LoadedFile, ErrorSummary> {
    let failure = |e: std::io::Error| ErrorSummary {
        message: format!("cannot read the file: {e}"),
        hint: None,
    };
    let mut file = std::fs::File::open(path).map_err(failure)?;
    *bytes = file.metadata().map_err(failure)?.len();
    let mut loader = FileReader::new(&path.to_string_lossy(), *bytes);
    if let Some(events) = &common.events {
        loader = loader.of_events(events.clone());
    }
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        match file.read(&mut chunk).map_err(failure)? {
            0 => return loader.finish(),
            n => {
                loader.feed(&chunk[..n])?;
                bar.inc(n as u64);
            }
        }
    }
}
