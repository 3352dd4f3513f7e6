//! Several runs below one folder: a rank has a process in each of them.

use crate::card::Card;
use crate::findings::BlindSpotRecord;
use crate::moments::Dump;
use std::collections::{BTreeMap, BTreeSet};
use vramscope_units::grouped;

/// The most folders that the note names.
const MAX_NAMED: usize = 3;

const SEPARATORS: [char; 2] = ['/', '\\'];

/// A rank whose files are of several processes, and the folders of these.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Runs {
    rank: u32,
    folders: BTreeSet<String>,
}

/// The first rank with several processes in folders of their own; `None` if there is none.
///
/// Two files with all events from the start of their process are of one process only if their first
/// events have one time.
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
        // `runs/a` and `runs/b/1` part above `runs/b/1` and `runs/b/2`.
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

/// The folders in which two paths part; `None` if that is in the names of the files.
fn folders<'a>(a: &'a str, b: &'a str) -> Option<[&'a str; 2]> {
    let differs = a.bytes().zip(b.bytes()).position(|(a, b)| a != b)?;
    let begin = a.as_bytes()[..differs].iter().rposition(|byte| b"/\\".contains(byte));
    let begin = begin.map_or(0, |at| at + 1);
    let folder = |path: &'a str| path[begin..].find(SEPARATORS).map(|end| &path[..begin + end]);
    Some([folder(a)?, folder(b)?])
}

impl Runs {
    /// The folder of the run that has a file.
    pub(super) fn of(&self, path: &str) -> Option<&str> {
        self.folders.iter().map(String::as_str).find(|folder| is_below(path, folder))
    }

    /// The note. A table of ranks is of the folder that is `shown`.
    pub(super) fn note(&self, shown: &str) -> BlindSpotRecord {
        let named: Vec<&str> = self.folders.iter().take(MAX_NAMED).map(String::as_str).collect();
        let more = match self.folders.len() - named.len() {
            0 => String::new(),
            more => format!(" and {} more", grouped(more as u64)),
        };
        let text = format!(
            "Rank {} has a process in each of {} folders ({}{more}). A table of ranks is of \
             {shown} alone: diagnose each folder by itself",
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
    fn paths_part_in_a_folder_or_not_at_all() {
        for (a, b, parted) in [
            ("runs/77-0/oom_1/rank0.pickle", "runs/78-0/exit/rank0.pickle", "runs/77-0 runs/78-0"),
            ("77/rank0.pickle", "78/rank0.pickle", "77 78"),
            ("/r/a/rank0.pickle", "/r/ab/rank0.pickle", "/r/a /r/ab"),
            (r"C:\\r\\a\\rank0.pickle", r"C:\\r\\b\\rank0.pickle", r"C:\\r\\a C:\\r\\b"),
            ("r/rank0.pickle", "r/pid7_rank0.pickle", ""),
            ("r/rank0.pickle", "r/old/rank0.pickle", ""),
            ("r/rank0.pickle", "r/rank0.pickle", ""),
        ] {
            let found = folders(a, b).map(|both| both.join(" ")).unwrap_or_default();
            assert_eq!(found, parted, "{a} {b}");
        }
    }
}
