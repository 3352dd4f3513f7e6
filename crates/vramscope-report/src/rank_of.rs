//! Finds the rank in a path.

use crate::text::file_name;

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
    let named = path.rsplit(['/', '\\']).find_map(|part| {
        let lower = part.to_ascii_lowercase();
        lower.rmatch_indices("rank").find_map(|(at, word)| {
            let rest = lower[at + word.len()..].trim_start_matches(['_', '-', '.', ' ', '=']);
            let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            rest[..digits].parse().ok()
        })
    });
    named.or_else(|| before_step(path))
}

/// The rank in a file name `RANK_step_STEP`, which torchtitan writes since 2026 (its
/// `tools/profiler.py`).
fn before_step(path: &str) -> Option<u32> {
    let (rank, step) = file_name(path).split_once("_step_")?;
    step.starts_with(|c: char| c.is_ascii_digit()).then(|| rank.parse().ok())?
}
