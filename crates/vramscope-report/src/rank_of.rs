//! Finds the rank, the iteration and the run in a path.

use std::ops::Range;
use vramscope_trace::file_name;

/// The rank in a path: the digits after the last `rank` in the file's name, else in the nearest
/// folder's name.
///
/// ```
/// use vramscope_report::rank_of;
///
/// assert_eq!(rank_of("iteration_10/rank3_memory_snapshot.pickle"), Some(3));
/// assert_eq!(rank_of("oom_rank-12.pickle"), Some(12));
/// assert_eq!(rank_of("rank_4/snapshot.pickle"), Some(4));
/// assert_eq!(rank_of("step_000000000010/000003_step_10.pickle"), Some(3));
/// assert_eq!(rank_of("frank.pickle"), None);
/// ```
pub fn rank_of(path: &str) -> Option<u32> {
    digits_of(path).map(|(rank, _)| rank)
}

/// The folder of a rank's run, and the rest of the path without the rank's digits. Files of one run
/// have one folder, whether the rank is in the file's name or in a folder's name. `None` if the
/// path has no rank.
pub(crate) fn run_of(path: &str) -> Option<(&str, String)> {
    let (_, digits) = digits_of(path)?;
    let folder = path[..digits.start].rfind(SEPARATORS).map_or(0, |at| at + 1);
    Some((&path[..folder], format!("{}{}", &path[folder..digits.start], &path[digits.end..])))
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
        .or_else(|| holder_of(|name| in_name(name).is_some()))
        .unwrap_or(folder)
}

const SEPARATORS: [char; 2] = ['/', '\\'];

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
fn digits_of(path: &str) -> Option<(u32, Range<usize>)> {
    let mut end = path.len();
    for part in path.rsplit(SEPARATORS) {
        let begin = end - part.len();
        if let Some((rank, digits)) = in_name(part) {
            return Some((rank, begin + digits.start..begin + digits.end));
        }
        end = begin.saturating_sub(1);
    }
    before_step(path)
}

fn in_name(name: &str) -> Option<(u32, Range<usize>)> {
    let lower = name.to_ascii_lowercase();
    lower.rmatch_indices("rank").find_map(|(at, word)| {
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
    use super::{iteration_of, run_folder_of, run_of, without_iteration};

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
        ] {
            assert_eq!(run_of(path), Some((folder, rest.to_owned())), "{path}");
        }
        assert_eq!(run_of("runs/gpt.pickle"), None);
    }
}
