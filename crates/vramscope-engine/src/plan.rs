//! The files of a drop, in the order in which they are shown.

use crate::protocol::{FileEntry, PlannedRow, RunRequest, RunResponse};
use crate::text::{count, file_name};
use std::cmp::Ordering;
use vramscope_units::Bytes;

/// Sees all files of a run; in a browser it has a worker of its own.
#[derive(Debug, Default)]
pub struct Coordinator {
    ranks: crate::views::Ranks,
    compared: Option<Box<crate::views::Compared>>,
}

impl Coordinator {
    /// Answer a request.
    pub fn handle(&mut self, request: &RunRequest) -> RunResponse {
        match request {
            RunRequest::Plan { id, files } => {
                let (title, rows) = plan(files);
                let many = if rows.iter().all(|r| r.rank.is_some()) {
                    ("rank", "ranks")
                } else {
                    ("file", "files")
                };
                RunResponse::Planned {
                    id: *id,
                    title,
                    count_text: count(rows.len() as u64, many.0, many.1).exact,
                    rows,
                }
            }
            RunRequest::View { id, query } => {
                RunResponse::Overview { id: *id, overview: self.ranks.answer(query) }
            }
            RunRequest::Compare { id, query } => {
                let answer = crate::views::Compared::answer(&mut self.compared, query);
                RunResponse::Compared { id: *id, answer }
            }
        }
    }
}

/// The rank that a path names: the digits after the last `rank` of the file's name, else of the
/// nearest folder's.
///
/// ```
/// use vramscope_engine::rank_of;
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

/// What torchtitan names a file since 2026 (its `tools/profiler.py`): the rank, then the step.
fn before_step(path: &str) -> Option<u32> {
    let (rank, step) = file_name(path).split_once("_step_")?;
    step.starts_with(|c: char| c.is_ascii_digit()).then(|| rank.parse().ok())?
}

/// The run's name and its rows.
pub fn plan(files: &[FileEntry]) -> (String, Vec<PlannedRow>) {
    let folder_of =
        |path: &str| path.rsplit_once(['/', '\\']).map_or("", |(folder, _)| folder).to_owned();
    let common = files
        .iter()
        .map(|f| folder_of(&f.path))
        .reduce(|a, b| common_folder(&a, &b))
        .unwrap_or_default();
    let mut rows: Vec<(&FileEntry, PlannedRow)> = (0..)
        .zip(files)
        .map(|(file, entry)| {
            let folder = folder_of(&entry.path);
            let rank = rank_of(&entry.path);
            let row = PlannedRow {
                file,
                rank,
                label: rank.map_or_else(|| file_name(&entry.path).to_owned(), |r| r.to_string()),
                group: folder[common.len()..].trim_start_matches(['/', '\\']).to_owned(),
                size: Bytes(entry.bytes as u64).to_string(),
            };
            (entry, row)
        })
        .collect();
    rows.sort_by(|(a_file, a), (b_file, b)| {
        natural(&a.group, &b.group)
            .then_with(|| a.rank.unwrap_or(u32::MAX).cmp(&b.rank.unwrap_or(u32::MAX)))
            .then_with(|| natural(&a_file.path, &b_file.path))
    });
    let title = match (files, file_name(&common)) {
        ([one], "") => file_name(&one.path).to_owned(),
        (_, "") => "files".to_owned(),
        (_, folder) => folder.to_owned(),
    };
    (title, rows.into_iter().map(|(_, row)| row).collect())
}

fn common_folder(a: &str, b: &str) -> String {
    let parts = a.split('/').zip(b.split('/')).take_while(|(a, b)| a == b).map(|(a, _)| a);
    parts.collect::<Vec<_>>().join("/")
}

/// Numbers inside names count as numbers: `iteration_9` comes before `iteration_10`.
pub(crate) fn natural(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a, b);
    loop {
        let (Some(x), Some(y)) = (a.chars().next(), b.chars().next()) else {
            return a.len().cmp(&b.len());
        };
        if x.is_ascii_digit() && y.is_ascii_digit() {
            let (digits_a, digits_b) = (leading_digits(a), leading_digits(b));
            let value = |digits: &str| digits.trim_start_matches('0').to_owned();
            let (value_a, value_b) = (value(digits_a), value(digits_b));
            let order = value_a.len().cmp(&value_b.len()).then_with(|| value_a.cmp(&value_b));
            if order != Ordering::Equal {
                return order;
            }
            (a, b) = (&a[digits_a.len()..], &b[digits_b.len()..]);
        } else if x == y {
            (a, b) = (&a[x.len_utf8()..], &b[y.len_utf8()..]);
        } else {
            return x.cmp(&y);
        }
    }
}

fn leading_digits(text: &str) -> &str {
    &text[..text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(paths: &[&str]) -> Vec<FileEntry> {
        paths.iter().map(|p| FileEntry { path: (*p).to_owned(), bytes: 2048.0 }).collect()
    }

    #[test]
    fn ranks_are_ordered_as_numbers_within_their_folders() {
        let (title, rows) = plan(&files(&[
            "run/iteration_10/rank0.pickle",
            "run/iteration_9/rank10.pickle",
            "run/iteration_9/rank2.pickle",
        ]));
        assert_eq!(title, "run");
        let shown: Vec<_> = rows.iter().map(|r| (&*r.group, &*r.label, r.file)).collect();
        assert_eq!(
            shown,
            [("iteration_9", "2", 2), ("iteration_9", "10", 1), ("iteration_10", "0", 0)]
        );
        assert_eq!(rows[0].size, "2.00 KiB");
    }

    #[test]
    fn a_single_file_gives_its_name() {
        let (title, rows) = plan(&files(&["snapshot.pickle"]));
        assert_eq!(
            (title.as_str(), rows[0].label.as_str()),
            ("snapshot.pickle", "snapshot.pickle")
        );
    }

    #[test]
    fn folders_with_a_common_start_of_their_names_are_apart() {
        let (title, rows) = plan(&files(&["run1/a.pickle", "run10/b.pickle"]));
        assert_eq!(title, "files");
        assert_eq!(rows[1].group, "run10");
    }
}
