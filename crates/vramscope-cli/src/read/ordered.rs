//! Reads files on all cores, and hands on the results in the order of the files.

use super::{
    Limits, load, load_rules, none_found, print_failure, progress_bar, report_skipped, threads,
};
use crate::Failure;
use crate::arguments::Window;
use crate::paths::Found;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use vramscope_report::LoadedFile;
use vramscope_report::summary::{ErrorKind, ErrorSummary};

/// Results per thread that may wait for the result of an earlier file.
const AHEAD: usize = 8;

/// What [`in_order`] did.
pub(crate) struct Read {
    /// Files of searched folders that are no snapshots.
    pub(crate) skipped_files: usize,
    /// [`Failure::Input`] if a file could not be read, or if there is none.
    pub(crate) outcome: Result<(), Failure>,
}

/// Reads files as [`each_found`](super::each_found) does, and calls `take` with the results in the
/// order of the files. Memory holds one file per core, and few results.
///
/// # Errors
/// The rules cannot be read, or `take` fails.
pub(crate) fn in_order<T: Send>(
    files: &[Found],
    window: &Window,
    work: impl Fn(&Path, u64, Result<LoadedFile, ErrorSummary>) -> T + Sync,
    mut take: impl FnMut(T) -> Result<(), Failure>,
) -> Result<Read, Failure> {
    let rules = load_rules(&window.reading)?;
    let bar = progress_bar(files.iter().map(|found| found.path.as_path()));
    let limits = Limits::of_each(window, files.len());
    let (mut skipped_files, mut has_failed) = (0, false);
    let read = |found: &Found| {
        let (bytes, result) = load(&found.path, found.is_named, &limits, &rules, &bar);
        if let Err(failure) = &result {
            if !found.is_named && failure.kind == ErrorKind::NoSnapshot {
                return None;
            }
            bar.suspend(|| print_failure(&found.path, failure));
        }
        let failed = result.is_err();
        Some((work(&found.path, bytes, result), failed))
    };
    let taken = map_in_order(files, read, |result| match result {
        Some((result, failed)) => {
            has_failed |= failed;
            take(result)
        }
        None => {
            skipped_files += 1;
            Ok(())
        }
    });
    bar.finish_and_clear();
    taken?;
    report_skipped(skipped_files);
    let found_none = skipped_files == files.len();
    if found_none {
        none_found(files);
    }
    let outcome = if found_none || has_failed { Err(Failure::Input) } else { Ok(()) };
    Ok(Read { skipped_files, outcome })
}

/// What threads and their caller share.
struct Queue<T> {
    /// The next item to work on.
    next: usize,
    /// Results that wait for earlier ones.
    done: BTreeMap<usize, T>,
    /// The number of results that were handed on.
    taken: usize,
    /// The caller needs no more results, or a thread panicked.
    is_stopped: bool,
}

/// Maps items on one thread per core, and calls `take` with the results in the order of the items,
/// until it fails.
pub(crate) fn map_in_order<I: Sync, T: Send, E>(
    items: &[I],
    work: impl Fn(&I) -> T + Sync,
    mut take: impl FnMut(T) -> Result<(), E>,
) -> Result<(), E> {
    let threads = threads(items.len());
    let queue = Mutex::new(Queue { next: 0, done: BTreeMap::new(), taken: 0, is_stopped: false });
    let changed = Condvar::new();
    let lock = || queue.lock().unwrap_or_else(PoisonError::into_inner);
    let stop = || {
        lock().is_stopped = true;
        changed.notify_all();
    };
    let run = || {
        let _guard = StopOnPanic(&stop);
        loop {
            let is_ahead = |queue: &mut Queue<T>| {
                !queue.is_stopped
                    && queue.next < items.len()
                    && queue.next >= queue.taken + AHEAD * threads
            };
            let mut queue = wait_while(&changed, lock(), is_ahead);
            if queue.is_stopped || queue.next == items.len() {
                return;
            }
            let at = queue.next;
            queue.next += 1;
            drop(queue);
            let result = work(&items[at]);
            lock().done.insert(at, result);
            changed.notify_all();
        }
    };
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(run);
        }
        for at in 0..items.len() {
            let is_missing =
                |queue: &mut Queue<T>| !queue.is_stopped && !queue.done.contains_key(&at);
            let result = {
                let mut queue = wait_while(&changed, lock(), is_missing);
                queue.taken = at + 1;
                queue.done.remove(&at)
            };
            changed.notify_all();
            // A thread panicked: the end of the scope panics, too.
            let Some(result) = result else { break };
            if let Err(error) = take(result) {
                stop();
                return Err(error);
            }
        }
        Ok(())
    })
}

fn wait_while<'a, T>(
    changed: &Condvar,
    queue: MutexGuard<'a, Queue<T>>,
    condition: impl FnMut(&mut Queue<T>) -> bool,
) -> MutexGuard<'a, Queue<T>> {
    changed.wait_while(queue, condition).unwrap_or_else(PoisonError::into_inner)
}

/// Stops the others when its thread panics: they would wait forever.
struct StopOnPanic<'a>(&'a dyn Fn());

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            (self.0)();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    #[test]
    fn results_keep_their_order_and_few_wait() {
        let items: Vec<usize> = (0..300).collect();
        let (taken, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let work = |&item: &usize| {
            most.fetch_max(item.saturating_sub(taken.load(Ordering::SeqCst)), Ordering::SeqCst);
            // The first items are slow, the others wait for them.
            thread::sleep(Duration::from_millis(if item < 2 { 100 } else { 0 }));
            item * 2
        };
        let mut found = Vec::new();
        let done: Result<(), ()> = map_in_order(&items, work, |result| {
            found.push(result);
            taken.fetch_add(1, Ordering::SeqCst);
            Ok(())
        });
        assert_eq!(done, Ok(()));
        assert_eq!(found, items.iter().map(|item| item * 2).collect::<Vec<_>>());
        assert!(most.into_inner() <= AHEAD * threads(300));
    }

    #[test]
    fn an_error_and_a_panic_end_the_work() {
        let items: Vec<usize> = (0..300).collect();
        let failed =
            map_in_order(&items, |&item| item, |item| if item < 7 { Ok(()) } else { Err(item) });
        assert_eq!(failed, Err(7));
        let none: Result<(), ()> = map_in_order(&[] as &[usize], |&item| item, |_| Err(()));
        assert_eq!(none, Ok(()));
        let panicked = std::panic::catch_unwind(|| {
            let work = |&item: &usize| assert_ne!(item, 5, "a planted panic");
            map_in_order(&items, work, |()| Ok::<(), ()>(()))
        });
        assert!(panicked.is_err());
    }
}
