//! Several runs below one folder: a rank has a process in each of them.

use crate::card::Card;
use crate::findings::BlindSpotRecord;
use crate::moments::Dump;
use crate::rank_of::SEPARATORS;
use std::collections::{BTreeMap, BTreeSet};
use vramscope_units::grouped;

/// The most folders that the note names.
const MAX_NAMED: usize = 3;

/// A rank with several processes, and the folder of each.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Runs {
    rank: u32,
    folders: BTreeSet<String>,
}

/// The first rank with several processes in folders of their own; `None` if there is none.
///
/// Two complete histories belong to one process only if their first events have equal times.
pub(super) fn several(dumps: &[(&Card, &Dump)]) -> Option<Runs> {
    let mut processes: BTreeMap<(u32, u32), BTreeMap<i64, &str>> = BTreeMap::new();
    for (card, dump) in dumps {
        if let Some((rank, start)) = card.rank.zip(dump.start(card)) {
            let of_rank = processes.entry((rank, card.device)).or_default();
            of_rank.entry(start).or_insert(&card.path);
        }
    }
    processes.into_iter().find_map(|((rank, _), paths)| {
        let mut paths: Vec<&str> = paths.into_values().collect();
        paths.sort_unstable();
        let pairs = paths.windows(2).filter_map(|pair| folders(pair[0], pair[1]));
        let found: BTreeSet<&str> = pairs.flatten().collect();
        // `runs/a/1` against `runs/b/1` gives `runs/b`, and against `runs/b/2` the folder itself.
        let holds_others = |of: &str| found.iter().any(|one| *one != of && is_below(one, of));
        let leaves = found.iter().filter(|one| !holds_others(one)).map(|&one| one.to_owned());
        let folders: BTreeSet<String> = leaves.collect();
        (folders.len() > 1).then_some(Runs { rank, folders })
    })
}

/// Whether a path is below a folder.
fn is_below(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.starts_with(SEPARATORS))
}

/// The first folders that differ between two paths; `None` if only the file names differ.
fn folders<'a>(a: &'a str, b: &'a str) -> Option<[&'a str; 2]> {
    let (differs, _) = a.char_indices().zip(b.chars()).find(|((_, a), b)| a != b)?.0;
    let begin = a[..differs].rfind(SEPARATORS).map_or(0, |at| at + 1);
    let folder = |path: &'a str| path[begin..].find(SEPARATORS).map(|end| &path[..begin + end]);
    Some([folder(a)?, folder(b)?])
}

impl Runs {
    /// The run's folder that contains a file.
    pub(super) fn of(&self, path: &str) -> Option<&str> {
        self.folders.iter().map(String::as_str).find(|folder| is_below(path, folder))
    }

    /// The note. `shown` is the folder whose ranks are in the table.
    pub(super) fn note(&self, shown: &str) -> BlindSpotRecord {
        let named: Vec<&str> = self.folders.iter().take(MAX_NAMED).map(String::as_str).collect();
        let more = match self.folders.len() - named.len() {
            0 => String::new(),
            more => format!(" and {} more", grouped(more as u64)),
        };
        let text = format!(
            "Rank {} is another process in each of {} folders ({}{more}). Diagnose each folder by \
             itself: the rows of ranks are those of {shown}",
            self.rank,
            grouped(self.folders.len() as u64),
            named.join(", "),
        );
        BlindSpotRecord { kind: "several_runs", text }
    }
}

#[cfg(test)]
mod tests {
    use super::folders;

    #[test]
    fn the_first_folders_that_differ_are_found() {
        for (a, b, expected) in [
            ("runs/77-0/oom_1/rank0.pickle", "runs/78-0/exit/rank0.pickle", "runs/77-0 runs/78-0"),
            ("77/rank0.pickle", "78/rank0.pickle", "77 78"),
            ("/r/a/rank0.pickle", "/r/ab/rank0.pickle", "/r/a /r/ab"),
            (r"C:\r\a\rank0.pickle", r"C:\r\b\rank0.pickle", r"C:\r\a C:\r\b"),
            ("r/rank0.pickle", "r/pid7_rank0.pickle", ""),
            ("r/rank0.pickle", "r/old/rank0.pickle", ""),
            ("r/rank0.pickle", "r/rank0.pickle", ""),
        ] {
            let found = folders(a, b).map(|both| both.join(" ")).unwrap_or_default();
            assert_eq!(found, expected, "{a} {b}");
        }
    }
}
