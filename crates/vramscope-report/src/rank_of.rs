//! Finds the rank in a path.

use std::ops::Range;

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
    let folder = path[..digits.start].rfind(['/', '\\']).map_or(0, |at| at + 1);
    Some((&path[..folder], format!("{}{}", &path[folder..digits.start], &path[digits.end..])))
}

/// The rank in a path, and the place of its digits.
fn digits_of(path: &str) -> Option<(u32, Range<usize>)> {
    let mut end = path.len();
    for part in path.rsplit(['/', '\\']) {
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
        let rest = lower[at + word.len()..].trim_start_matches(['_', '-', '.', ' ', '=']);
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let begin = lower.len() - rest.len();
        Some((rest[..digits].parse().ok()?, begin..begin + digits))
    })
}

/// The rank in a file name `RANK_step_STEP`, which torchtitan writes since 2026 (its
/// `tools/profiler.py`).
fn before_step(path: &str) -> Option<(u32, Range<usize>)> {
    let begin = path.rfind(['/', '\\']).map_or(0, |at| at + 1);
    let (rank, step) = path[begin..].split_once("_step_")?;
    let digits = begin..begin + rank.len();
    step.starts_with(|c: char| c.is_ascii_digit()).then(|| Some((rank.parse().ok()?, digits)))?
}

#[cfg(test)]
mod tests {
    use super::run_of;

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
