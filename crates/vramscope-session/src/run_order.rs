//! The order of a run's files in the file list.

use crate::messages::{FileEntry, PlannedRow};
use rustc_hash::FxHashMap;
use std::cmp::Ordering;
use vramscope_report::text::file_name;
use vramscope_report::{Quantity, rank_of, sidecar};
use vramscope_units::Bytes;

/// The run's title and one row for each file but the skipped ones and those beside snapshots, by
/// folder, then rank, then path.
///
/// Numbers inside names compare as numbers.
pub fn plan(files: &[FileEntry]) -> (String, Vec<PlannedRow>) {
    let folder_of =
        |path: &str| path.rsplit_once(['/', '\\']).map_or("", |(folder, _)| folder).to_owned();
    let is_beside = |file: &FileEntry| file.path.ends_with(sidecar::EXTENSION);
    let has_row = |file: &FileEntry| !file.skipped && !file.closed;
    let shown = || files.iter().filter(|file| has_row(file) && !is_beside(file));
    let beside: FxHashMap<&str, u32> = (0..)
        .zip(files)
        .filter(|(_, file)| is_beside(file))
        .map(|(index, file)| (file.path.as_str(), index))
        .collect();
    let common = shown()
        .map(|f| folder_of(&f.path))
        .reduce(|a, b| common_folder(&a, &b))
        .unwrap_or_default();
    let mut rows: Vec<(&FileEntry, PlannedRow)> = (0..)
        .zip(files)
        .filter(|(_, entry)| has_row(entry) && !is_beside(entry))
        .map(|(file, entry)| {
            let folder = folder_of(&entry.path);
            let rank = rank_of(&entry.path);
            let row = PlannedRow {
                file,
                rank,
                label: rank.map_or_else(|| file_name(&entry.path).to_owned(), |r| r.to_string()),
                group: folder[common.len()..].trim_start_matches(['/', '\\']).to_owned(),
                size: Bytes(entry.bytes as u64).to_string(),
                beside: sidecar::path_of(&entry.path)
                    .and_then(|path| beside.get(path.as_str()).copied()),
            };
            (entry, row)
        })
        .collect();
    // Several dumps of a rank are told apart by their names.
    let mut dumps: FxHashMap<(String, u32), usize> = FxHashMap::default();
    let key = |row: &PlannedRow| Some((row.group.clone(), row.rank?));
    for (_, row) in &rows {
        if let Some(of) = key(row) {
            *dumps.entry(of).or_default() += 1;
        }
    }
    for (file, row) in &mut rows {
        if key(row).is_some_and(|of| dumps[&of] > 1) {
            file_name(&file.path).clone_into(&mut row.label);
        }
    }
    cut_common(rows.iter_mut().map(|(_, row)| &mut row.label));
    rows.sort_by(|(a_file, a), (b_file, b)| {
        natural(&a.group, &b.group)
            .then_with(|| a.rank.unwrap_or(u32::MAX).cmp(&b.rank.unwrap_or(u32::MAX)))
            .then_with(|| natural(&a_file.path, &b_file.path))
    });
    let title = match (shown().collect::<Vec<_>>().as_slice(), file_name(&common)) {
        ([one], "") => file_name(&one.path).to_owned(),
        (all, "") => Quantity::count(all.len() as u64, "file", "files").exact,
        (_, folder) => folder.to_owned(),
    };
    (title, rows.into_iter().map(|(_, row)| row).collect())
}

/// Cuts off what all names share at their ends, up to a sign between words. Numbers of ranks and a
/// single name stay.
fn cut_common<'a>(labels: impl Iterator<Item = &'a mut String>) {
    let mut names: Vec<_> = labels.filter(|label| label.parse::<u32>().is_err()).collect();
    let (Some(first), true) = (names.first().map(|name| (*name).clone()), names.len() > 1) else {
        return;
    };
    if names.iter().all(|name| **name == first) {
        return;
    }
    let is_sign = |letter: char| matches!(letter, '_' | '-' | '.' | ' ');
    let shared = |name: &str| first.chars().zip(name.chars()).take_while(|(a, b)| a == b).count();
    let head = names.iter().map(|name| shared(name)).min().unwrap_or(0);
    let head: String = first.chars().take(head).collect();
    let head = head.rfind(is_sign).map_or(0, |at| at + 1);
    let shared = |name: &str| {
        let ends = first[head..].chars().rev().zip(name[head..].chars().rev());
        ends.take_while(|(a, b)| a == b).count()
    };
    let tail = names.iter().map(|name| shared(name)).min().unwrap_or(0);
    let letters = first[head..].chars().count();
    let tail: String = first[head..].chars().skip(letters - tail).collect();
    let tail = tail.find(is_sign).map_or(0, |at| tail.len() - at);
    if names.iter().any(|name| name.len() <= head + tail) {
        return;
    }
    for name in &mut names {
        name.drain(..head);
        name.truncate(name.len() - tail);
    }
}

fn common_folder(a: &str, b: &str) -> String {
    let parts = a.split('/').zip(b.split('/')).take_while(|(a, b)| a == b).map(|(a, _)| a);
    parts.collect::<Vec<_>>().join("/")
}

/// Natural order: numbers inside names compare as numbers, so `iteration_9` precedes
/// `iteration_10`.
pub(crate) fn natural(a: &str, b: &str) -> Ordering {
    if a == b {
        return Ordering::Equal;
    }
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
        paths
            .iter()
            .map(|p| FileEntry {
                path: (*p).to_owned(),
                bytes: 2048.0,
                skipped: false,
                closed: false,
            })
            .collect()
    }

    #[test]
    fn plan_sorts_ranks_as_numbers_within_folders() {
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
    fn plan_titles_a_single_file_by_its_name() {
        let (title, rows) = plan(&files(&["snapshot.pickle"]));
        assert_eq!(
            (title.as_str(), rows[0].label.as_str()),
            ("snapshot.pickle", "snapshot.pickle")
        );
    }

    #[test]
    fn plan_labels_several_dumps_of_a_rank_by_their_names() {
        let all = ["a/rank0_step9.pickle", "a/rank0_step10.pickle", "a/rank1_step9.pickle"];
        let (_, rows) = plan(&files(&all));
        let shown: Vec<_> = rows.iter().map(|row| (&*row.label, row.rank)).collect();
        assert_eq!(shown, [("step9", Some(0)), ("step10", Some(0)), ("1", Some(1))]);
    }

    #[test]
    fn plan_cuts_what_all_names_share() {
        let labels = |paths: &[&str]| {
            let (_, rows) = plan(&files(paths));
            rows.into_iter().map(|row| row.label).collect::<Vec<_>>()
        };
        let sizes = ["run_medium_128_snap.pickle", "run_medium_512_snap.pickle"];
        assert_eq!(labels(&sizes), ["128", "512"]);
        // A name ends between words, not within one.
        assert_eq!(labels(&["small.pickle", "smart.pickle"]), ["small", "smart"]);
        assert_eq!(labels(&["é_a.pickle", "é_b.pickle.gz"]), ["a.pickle", "b.pickle.gz"]);
        assert_eq!(labels(&["a.pickle", "a_b.a.pickle"]), ["a", "a_b.a"]);
        // Nothing would be left of the first name.
        assert_eq!(labels(&["run_", "run_b"]), ["run_", "run_b"]);
        assert_eq!(labels(&["x/snap.pickle", "y/snap.pickle"]), ["snap.pickle", "snap.pickle"]);
    }

    #[test]
    fn plan_leaves_out_closed_files() {
        let mut all = files(&["run/rank1.pickle", "run/rank0.pickle"]);
        all[0].closed = true;
        assert_eq!(plan(&all).1.iter().map(|row| row.file).collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn plan_leaves_out_skipped_files() {
        let mut all = files(&["run/config.json", "run/rank1.pickle", "run/rank0.pickle"]);
        all[0].skipped = true;
        let (title, rows) = plan(&all);
        assert_eq!(title, "run");
        // Rows keep the numbers of their files.
        assert_eq!(rows.iter().map(|row| row.file).collect::<Vec<_>>(), [2, 1]);
    }

    #[test]
    fn plan_gives_files_beside_snapshots_to_their_rows() {
        let all = files(&[
            "run/rank0.vramscope.json",
            "run/rank1.pickle.gz",
            "run/rank0.pickle",
            "other/rank1.vramscope.json",
            "run/rank1.vramscope.json",
        ]);
        let (title, rows) = plan(&all);
        assert_eq!(title, "run");
        let found: Vec<_> = rows.iter().map(|row| (row.file, row.beside)).collect();
        assert_eq!(found, [(2, Some(0)), (1, Some(4))]);
        assert!(plan(&all[..1]).1.is_empty());
    }

    #[test]
    fn plan_compares_whole_folder_names() {
        let (title, rows) = plan(&files(&["run1/a.pickle", "run10/b.pickle"]));
        assert_eq!(title, "2 files");
        assert_eq!(rows[1].group, "run10");
    }
}
