//! Reading files, in chunks and in parallel, with a bar that shows how far that is.

use crate::Failure;
use crate::arguments::{Common, One};
use crate::paths;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::Read as _;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;
use vramscope_report::Target;
use vramscope_report::summary::ErrorSummary;
use vramscope_report::{FileReader, LoadedFile, Rules, SnapshotEntry};

const CHUNK: usize = 1 << 20;

/// Reads every file that these paths mean, and turns each into a result as soon as it is read: no
/// more files are held than there are cores. Those that cannot be read are named on standard error;
/// `Err(Failure::Input)` comes at the end.
///
/// # Errors
/// When a folder cannot be listed, or the rules are none.
pub(crate) fn all<T: Send>(
    given: &[PathBuf],
    common: &Common,
    work: impl Fn(&Path, u64, Result<LoadedFile, ErrorSummary>) -> T + Sync,
) -> Result<(Vec<T>, Result<(), Failure>), Failure> {
    let rules = rules(common)?;
    let files = paths::expand(given)?;
    if files.is_empty() {
        eprintln!(
            "vramscope: no snapshot found: folders are searched for .pickle, .pkl, .pt, .gz, .html and .json"
        );
    }
    let bar = progress(&files);
    let results: Vec<(T, bool)> = each(&files, |path: &PathBuf| {
        let (bytes, result) = load(path, common, &rules, &bar);
        if let Err(failure) = &result {
            bar.suspend(|| complain(path, failure));
        }
        let failed = result.is_err();
        (work(path, bytes, result), failed)
    });
    bar.finish_and_clear();
    let failed = files.is_empty() || results.iter().any(|r| r.1);
    let outcome = if failed { Err(Failure::Input) } else { Ok(()) };
    Ok((results.into_iter().map(|r| r.0).collect(), outcome))
}

/// Every item's result, in the order of the items, on as many threads as there are cores. They are
/// threads of their own: one of the pool that analyses share would begin another file while it
/// waits for its half of the work on this one.
fn each<I: Sync, T: Send>(items: &[I], work: impl Fn(&I) -> T + Sync) -> Vec<T> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(items.len());
    let queue = Mutex::new(items.iter().enumerate());
    let next = || queue.lock().ok()?.next();
    let take =
        || std::iter::from_fn(next).map(|(at, item)| (at, work(item))).collect::<Vec<(usize, T)>>();
    let mut done: Vec<(usize, T)> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(take)).collect();
        // A panic ends the program: this one's and a worker's alike.
        workers
            .into_iter()
            .flat_map(|w| w.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    done.sort_unstable_by_key(|&(at, _)| at);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Reads one file, and works on the device that is meant.
///
/// # Errors
/// When the file cannot be read (which is said), it has no such device, the rules are none, or the
/// work fails.
pub(crate) fn device(
    one: &One,
    work: impl FnOnce(Target<'_>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let file = file(one)?;
    let path = name(&file, one);
    work(target(&file, one, &path)?)
}

fn file(one: &One) -> Result<LoadedFile, Failure> {
    let rules = rules(&one.common)?;
    let bar = progress(std::slice::from_ref(&one.path));
    let (_, result) = load(&one.path, &one.common, &rules, &bar);
    bar.finish_and_clear();
    result.map_err(|failure| {
        complain(&one.path, &failure);
        Failure::Input
    })
}

/// The device that is meant, of the snapshot that is meant.
fn target<'a>(file: &'a LoadedFile, one: &One, path: &'a str) -> Result<Target<'a>, Failure> {
    let entry = match &one.snapshot {
        None => &file.entries[0],
        Some(name) => file.entries.iter().find(|p| p.name == *name).ok_or_else(|| {
            let names: Vec<&str> = file.entries.iter().map(|p| p.name.as_str()).collect();
            Failure::Usage(format!("{path} has no snapshot {name:?}: it has {}", names.join(", ")))
        })?,
    };
    device_of(entry, one.device, path)
}

/// The device that is meant; unless told, the one with most events.
///
/// # Errors
/// When it has no data.
pub(crate) fn device_of<'a>(
    entry: &'a SnapshotEntry,
    device: Option<u32>,
    path: &'a str,
) -> Result<Target<'a>, Failure> {
    let devices = || entry.traces.iter().map(|t| t.device.device);
    let wanted = device.or_else(|| entry.default_trace().map(|t| t.device.device));
    let index = wanted.and_then(|wanted| devices().position(|d| d == wanted)).ok_or_else(|| {
        let all: Vec<String> = devices().map(|d| d.to_string()).collect();
        Failure::Usage(match (wanted, all.is_empty()) {
            (_, true) => format!("{path}: nothing was allocated on any device"),
            (wanted, _) => {
                format!(
                    "{path}: device {} has no data: those that have are {}",
                    wanted.unwrap_or(0),
                    all.join(", ")
                )
            }
        })
    })?;
    Ok(Target { path, entry, index })
}

/// What to call the snapshot that is meant.
fn name(file: &LoadedFile, one: &One) -> String {
    let entry =
        one.snapshot.as_ref().and_then(|name| file.entries.iter().find(|p| p.name == *name));
    entry.unwrap_or(&file.entries[0]).path.clone()
}

fn complain(path: &Path, failure: &ErrorSummary) {
    eprintln!("vramscope: {}: {}", path.display(), failure.message);
    if let Some(hint) = &failure.hint {
        eprintln!("  {hint}");
    }
}

fn rules(common: &Common) -> Result<Rules, Failure> {
    let Some(path) = &common.rules else { return Ok(Rules::default()) };
    let text = std::fs::read_to_string(path)
        .map_err(|e| Failure::Usage(format!("{}: {e}", path.display())))?;
    Rules::parse(&text).map_err(|e| Failure::Usage(format!("{}: {e}", path.display())))
}

/// A bar over the bytes of all files; hidden where standard error is no terminal.
fn progress(files: &[PathBuf]) -> ProgressBar {
    let bytes = files.iter().filter_map(|p| p.metadata().ok()).map(|m| m.len()).sum();
    let bar = ProgressBar::new(bytes);
    let template =
        "{bar:30} {binary_bytes} of {binary_total_bytes}, {binary_bytes_per_sec}, {eta} left";
    bar.set_style(
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()),
    );
    bar
}

/// A file's snapshots, and its size.
fn load(
    path: &Path,
    common: &Common,
    rules: &Rules,
    bar: &ProgressBar,
) -> (u64, Result<LoadedFile, ErrorSummary>) {
    let mut bytes = 0;
    let mut result = stream(path, common, &mut bytes, bar);
    if let Ok(file) = &mut result
        && !rules.user().is_empty()
    {
        for entry in &mut file.entries {
            entry.set_rules(rules.clone());
        }
    }
    (bytes, result)
}

fn stream(
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
    let mut chunk = vec![0; CHUNK];
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
