//! The files to serve. Every index request searches the folders again.

use crate::paths;
use serde::Serialize;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Time since the last write after which a file counts as complete.
const SETTLED: Duration = Duration::from_secs(2);

/// The files and folders of the command line, and the files found in them.
pub(crate) struct Shelf {
    named: Vec<PathBuf>,
    /// Every file found so far. A file's index is its number in URLs.
    seen: Mutex<Vec<PathBuf>>,
}

/// The list of files that the page opens.
#[derive(Serialize)]
pub(crate) struct Index {
    title: String,
    files: Vec<Entry>,
    /// Whether the page should poll for new files.
    watch: bool,
}

#[derive(Serialize)]
struct Entry {
    path: String,
    /// URL relative to the index. It changes when the file changes.
    url: String,
    bytes: u64,
}

impl Shelf {
    pub(crate) fn new(named: Vec<PathBuf>) -> Self {
        Self { named, seen: Mutex::default() }
    }

    /// Whether the command line has no path. The page is then served without files.
    pub(crate) fn is_empty(&self) -> bool {
        self.named.is_empty()
    }

    /// The current files, without those that are still being written.
    ///
    /// # Errors
    /// A folder cannot be listed.
    pub(crate) fn index(&self) -> io::Result<Index> {
        let now = SystemTime::now();
        let mut files = Vec::new();
        for path in paths::expand(&self.named)? {
            // Skip a file that was removed after its folder was listed.
            let Ok(metadata) = path.metadata() else { continue };
            let modified = metadata.modified().unwrap_or(UNIX_EPOCH);
            // If the clock was set back, `duration_since` fails and the file counts as complete.
            if now.duration_since(modified).is_ok_and(|age| age < SETTLED) {
                continue;
            }
            let version = modified.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis());
            let url = format!("{}?{version}-{}", self.number(&path), metadata.len());
            files.push(Entry {
                path: path.to_string_lossy().into_owned(),
                url,
                bytes: metadata.len(),
            });
        }
        let title = self.named.first().and_then(|p| p.canonicalize().ok());
        let title =
            title.as_deref().and_then(Path::file_name).map(|n| n.to_string_lossy().into_owned());
        Ok(Index { title: title.unwrap_or_default(), files, watch: true })
    }

    /// The number of a file. A new file gets the next number.
    fn number(&self, path: &Path) -> usize {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.iter().position(|p| p == path).unwrap_or_else(|| {
            seen.push(path.to_owned());
            seen.len() - 1
        })
    }

    /// The file with this number.
    pub(crate) fn path(&self, number: usize) -> Option<PathBuf> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).get(number).cloned()
    }
}
