//! Finds the rank, the iteration and the run in a path.

mod names;

use names::Named;
use std::ops::Range;
use vramscope_trace::file_name;

/// The rank in a path: the digits after the last `rank` in the file's name, else in the nearest
/// folder's name. A local rank or the rank of a node counts only without another. Else the number
/// of a name such as `worker3.pickle`, `3.pickle` or `snapshot_20260101_120000_3.pickle`.
///
/// ```
/// use vramscope_report::rank_of;
///
/// assert_eq!(rank_of("iteration_10/rank3_memory_snapshot.pickle"), Some(3));
/// assert_eq!(rank_of("oom_rank-12.pickle"), Some(12));
/// assert_eq!(rank_of("rank_4/snapshot.pickle"), Some(4));
/// assert_eq!(rank_of("step_000000000010/000003_step_10.pickle"), Some(3));
/// assert_eq!(rank_of("snapshot_20260101_120000_3.pickle"), Some(3));
/// assert_eq!(rank_of("snapshot_20260101_120000.pickle"), None);
/// assert_eq!(rank_of("frank.pickle"), None);
/// ```
pub fn rank_of(path: &str) -> Option<u32> {
    digits_of(path).map(|named| named.rank)
}

/// The folder of a rank's run, and the rest of the path without the rank's digits, and without the
/// seconds of a time in front of them. Files of one run have one folder, whether the rank is in the
/// file's name or in a folder's name. `None` if the path has no rank.
pub(crate) fn run_of(path: &str) -> Option<(&str, String)> {
    let Named { digits, seconds, .. } = digits_of(path)?;
    let folder = path[..digits.start].rfind(SEPARATORS).map_or(0, |at| at + 1);
    let (front, end) = (&path[folder..digits.start], &path[digits.end..]);
    let file = if seconds.is_empty() {
        format!("{front}{end}")
    } else {
        format!("{}{}{end}", &path[folder..seconds.start], &path[seconds.end..digits.start])
    };
    Some((&path[..folder], file))
}

/// Parts of a path, counted from its end, that may name the iteration.
const ITERATION_PARTS: usize = 4;

/// The iteration in a path: the number after `iteration`, `iter` or `step` in the file's name, else
/// in the name of the nearest of its three folders.
///
/// ```
/// use vramscope_report::iteration_of;
///
/// assert_eq!(iteration_of("run/iteration_10/rank3_memory_snapshot.pickle"), Some(10));
/// assert_eq!(iteration_of("run/iteration_7_exit/rank0_memory_snapshot.pickle"), Some(7));
/// assert_eq!(iteration_of("step_000000000010/000003_step_10.pickle"), Some(10));
/// assert_eq!(iteration_of("run/rank0.pickle"), None);
/// ```
pub fn iteration_of(path: &str) -> Option<u64> {
    iteration_digits_of(path).map(|(iteration, _)| iteration)
}

/// The path without the digits of its iteration, and the iteration. Dumps of one process that a
/// program writes every few steps have one path then.
pub(crate) fn without_iteration(path: &str) -> Option<(String, u64)> {
    let (iteration, digits) = iteration_digits_of(path)?;
    Some((format!("{}{}", &path[..digits.start], &path[digits.end..]), iteration))
}

/// The iteration in a path, and the place of its digits.
fn iteration_digits_of(path: &str) -> Option<(u64, Range<usize>)> {
    let mut end = path.len();
    path.rsplit(SEPARATORS).take(ITERATION_PARTS).find_map(|part| {
        let begin = end - part.len();
        end = begin.saturating_sub(1);
        let (iteration, digits) = iteration_in_name(part)?;
        Some((iteration, begin + digits.start..begin + digits.end))
    })
}

/// The folder of the run that a path belongs to: the one that holds the folders of iterations, else
/// those of ranks, else the file. Its last part names the run. Empty if the path has no folder.
///
/// ```
/// use vramscope_report::run_folder_of;
///
/// assert_eq!(run_folder_of("/runs/gpt/iteration_10/rank3.pickle"), "/runs/gpt");
/// assert_eq!(run_folder_of("/runs/gpt/iteration_10/leaf/rank3.pickle"), "/runs/gpt");
/// assert_eq!(run_folder_of("/runs/gpt/rank_4/snapshot.pickle"), "/runs/gpt");
/// assert_eq!(run_folder_of("/runs/gpt/rank3.pickle"), "/runs/gpt");
/// assert_eq!(run_folder_of("rank3.pickle"), "");
/// ```
pub fn run_folder_of(path: &str) -> &str {
    let folder = folder_of(path);
    let holder_of = |is_one: fn(&str) -> bool| {
        let folders = std::iter::successors(Some(folder), |rest| Some(folder_of(rest)));
        let found = folders.take(ITERATION_PARTS - 1).find(|rest| is_one(file_name(rest)));
        found.map(folder_of)
    };
    holder_of(|name| iteration_in_name(name).is_some())
        .or_else(|| holder_of(|name| in_name(name, false).is_some()))
        .unwrap_or(folder)
}

/// What separates the parts of a path, on any system.
pub(crate) const SEPARATORS: [char; 2] = ['/', '\\'];

/// The path without its last part.
fn folder_of(path: &str) -> &str {
    path.rfind(SEPARATORS).map_or("", |at| &path[..at])
}

/// The iteration in a name, and the place of its digits.
fn iteration_in_name(name: &str) -> Option<(u64, Range<usize>)> {
    let lower = name.to_ascii_lowercase();
    ["iteration", "iter", "step"].iter().find_map(|word| {
        lower.rmatch_indices(word).find_map(|(at, _)| {
            let is_word = !lower[..at].ends_with(|c: char| c.is_ascii_alphanumeric());
            let digits = digits_after(&lower, at + word.len()).filter(|_| is_word)?;
            Some((lower[digits.clone()].parse().ok()?, digits))
        })
    })
}

/// The place of the digits after the word that ends at `end`.
fn digits_after(name: &str, end: usize) -> Option<Range<usize>> {
    let rest = name[end..].trim_start_matches(['_', '-', '.', ' ', '=']);
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let begin = name.len() - rest.len();
    (digits > 0).then_some(begin..begin + digits)
}

/// The rank in a path, and the place of its digits.
fn digits_of(path: &str) -> Option<Named> {
    let within = |begin: usize, named: Named| Named {
        digits: begin + named.digits.start..begin + named.digits.end,
        seconds: begin + named.seconds.start..begin + named.seconds.end,
        ..named
    };
    for is_of_job in [true, false] {
        let mut end = path.len();
        for part in path.rsplit(SEPARATORS) {
            let begin = end - part.len();
            if let Some((rank, digits)) = in_name(part, is_of_job) {
                return Some(within(begin, Named { rank, digits, seconds: 0..0 }));
            }
            end = begin.saturating_sub(1);
        }
    }
    if let Some((rank, digits)) = before_step(path) {
        return Some(Named { rank, digits, seconds: 0..0 });
    }
    let name = file_name(path);
    names::in_file_name(name).map(|named| within(path.len() - name.len(), named))
}

/// The last rank in a name: of the job, or within a node and the like.
fn in_name(name: &str, is_of_job: bool) -> Option<(u32, Range<usize>)> {
    let lower = name.to_ascii_lowercase();
    lower.rmatch_indices("rank").find_map(|(at, word)| {
        let front = lower[..at].trim_end_matches(['_', '-', '.']);
        if is_of_job && (front.ends_with("local") || front.ends_with("node")) {
            return None;
        }
        let digits = digits_after(&lower, at + word.len())?;
        Some((lower[digits.clone()].parse().ok()?, digits))
    })
}

/// The rank in a file name `RANK_step_STEP`, which torchtitan writes since 2026 (its
/// `tools/profiler.py`).
fn before_step(path: &str) -> Option<(u32, Range<usize>)> {
    let begin = path.rfind(SEPARATORS).map_or(0, |at| at + 1);
    let (rank, step) = path[begin..].split_once("_step_")?;
    let digits = begin..begin + rank.len();
    step.starts_with(|c: char| c.is_ascii_digit()).then(|| Some((rank.parse().ok()?, digits)))?
}

#[cfg(test)]
mod tests {
    use super::{iteration_of, rank_of, run_folder_of, run_of, without_iteration};

    #[test]
    fn ranks_are_read_from_names() {
        for (path, rank) in [
            ("rank3.pickle", Some(3)),
            ("rank_3.pickle", Some(3)),
            ("mem_rank3_oom.pickle.gz", Some(3)),
            ("Rank-12.pt", Some(12)),
            ("local_rank2.pickle", Some(2)),
            ("rank9_local_rank1.pickle", Some(9)),
            ("node_rank1_rank9.pickle", Some(9)),
            ("rank9/local_rank1.pickle", Some(9)),
            ("node0/local_rank1.pickle", Some(1)),
            // Scripts for NPUs, with a date and a time.
            ("snapshot_20260101_120000_3.pickle", Some(3)),
            ("run/snapshot_20260101120000_3.pickle", Some(3)),
            ("snapshot_20260101T120000-3.pickle", Some(3)),
            ("snapshot_20260101T120000.pickle", None),
            ("snapshot_2026-01-01-12-00-00_3.pickle", Some(3)),
            ("snapshot_2026-01-01_12-00-00_12.pickle.gz", Some(12)),
            ("snapshot_2026_01_01_12_00_00_0.pickle", Some(0)),
            ("snapshot_20260101_3.pickle", Some(3)),
            ("snapshot_2026-01-01_3.pickle", Some(3)),
            ("snapshot_1700000000_7.pickle", Some(7)),
            ("snapshot_1700000000123-7.pickle", Some(7)),
            ("20260101_120000_15.pkl", Some(15)),
            // Dates, times and other numbers are none.
            ("snapshot_20260101.pickle", None),
            ("snapshot_20260101_120000.pickle", None),
            ("snapshot_20260101_1200.pickle", None),
            ("snapshot_2026-01-01.pickle", None),
            ("snapshot_2026-01-01-12.pickle", None),
            ("snapshot_2026-01-01_12-00.pickle", None),
            ("snapshot_2026-01-01_12-00-00.pickle", None),
            ("snapshot_2026-01-01-12-00-00.pickle", None),
            ("snapshot_1700000000.pickle", None),
            ("snapshot_1700000000_120000_3.pickle", None),
            ("snapshot_20261301_120000_3.pickle", None),
            ("snapshot_3.pickle", None),
            ("gpt_7.pickle", None),
            // The number is all of the name.
            ("run/3.pickle", Some(3)),
            ("000003.pickle.gz", Some(3)),
            ("r3.pickle", Some(3)),
            ("2026.pickle", None),
            ("120000.pickle", None),
            ("1000.pickle", None),
            ("deepseek_r1.pickle", None),
            ("3/snapshot.pickle", None),
            // Workers.
            ("worker3.pickle", Some(3)),
            ("dump_worker-12_end.pickle", Some(12)),
            ("coworker3.pickle", None),
            ("workers.pickle", None),
            // Of several dimensions, none is the rank. One alone can be a size.
            ("dp0_tp1.pickle", None),
            ("llama_tp8.pickle", None),
            ("frank.pickle", None),
            (".pickle", None),
            ("", None),
        ] {
            assert_eq!(rank_of(path), rank, "{path}");
        }
    }

    #[test]
    fn without_iteration_joins_the_dumps_of_one_program() {
        for (path, name) in [
            ("run/snapshot_step10.pickle", Some(("run/snapshot_step.pickle", 10))),
            ("run/iteration_5/rank_3/dump.pickle", Some(("run/iteration_/rank_3/dump.pickle", 5))),
            ("run/dump.pickle", None),
        ] {
            let name = name.map(|(name, step)| (name.to_owned(), step));
            assert_eq!(without_iteration(path), name, "{path}");
        }
    }

    #[test]
    fn iteration_of_needs_a_word_with_a_number() {
        for (path, iteration) in [
            ("run/iter-12/rank0.pickle", Some(12)),
            (r"C:\runs\Step=3\rank0.pickle", Some(3)),
            ("iteration_5/rank3_step_6.pickle", Some(6)),
            ("iterator_3/rank0.pickle", None),
            ("backstep_3/rank0.pickle", None),
            ("steps/rank0.pickle", None),
            ("step_2/a/b/c/rank0.pickle", None),
            ("iteration_99999999999999999999/rank0.pickle", None),
        ] {
            assert_eq!(iteration_of(path), iteration, "{path}");
        }
    }

    #[test]
    fn run_folder_of_is_above_iterations_and_ranks() {
        for (path, folder) in [
            ("a/gpt/iteration_5/rank_3/snapshot.pickle", "a/gpt"),
            (r"C:\gpt\rank_3\snapshot.pickle", r"C:\gpt"),
            ("iteration_5/rank3.pickle", ""),
            ("/rank3.pickle", ""),
        ] {
            assert_eq!(run_folder_of(path), folder, "{path}");
        }
    }

    #[test]
    fn run_of_removes_the_rank_from_a_file_or_a_folder() {
        for (path, folder, rest) in [
            ("run/rank3_memory_snapshot.pickle", "run/", "rank_memory_snapshot.pickle"),
            ("run/rank_4/snapshot.pickle", "run/", "rank_/snapshot.pickle"),
            ("rank0.pickle", "", "rank.pickle"),
            ("it/000003_step_10.pickle", "it/", "_step_10.pickle"),
            ("run/snap_20260101_120059_3.pickle", "run/", "snap_20260101_1200_.pickle"),
            ("snap_2026-01-01-12-00-59_3.pickle", "", "snap_2026-01-01-12-00-_.pickle"),
            ("run/snap_1700000059_3.pickle", "run/", "snap_17000000_.pickle"),
            ("run/snap_1700000059123_3.pickle", "run/", "snap_17000000_.pickle"),
            ("run/3.pickle", "run/", ".pickle"),
        ] {
            assert_eq!(run_of(path), Some((folder, rest.to_owned())), "{path}");
        }
        assert_eq!(run_of("runs/gpt.pickle"), None);
    }
}
