//! The files to serve. Every request of the index lists the folders again.

use crate::paths::{self, Found};
use serde::Serialize;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A file that was modified within this time may be incomplete.
const SETTLED: Duration = Duration::from_secs(2);

/// The files and folders of the command line, and the files found in them.
pub(crate) struct Shelf {
    named: Vec<PathBuf>,
    /// Every file found so far. Its index is its number in addresses.
    seen: Mutex<Vec<PathBuf>>,
}

/// The run index that the page opens.
#[derive(Serialize)]
pub(crate) struct Index {
    title: String,
    files: Vec<Entry>,
    /// Files may be added: the page should ask again.
    watch: bool,
}

#[derive(Serialize)]
struct Entry {
    path: String,
    /// Relative to the index. Changes when the file changes.
    url: String,
    bytes: u64,
    /// Whether a search of a folder found the file, which may be no snapshot.
    searched: bool,
}

impl Shelf {
    pub(crate) fn new(named: Vec<PathBuf>) -> Self {
        Self { named, seen: Mutex::default() }
    }

    /// True when the command line has no path, and only the page is served.
    pub(crate) fn is_empty(&self) -> bool {
        self.named.is_empty()
    }

    /// Lists the files, except those that may still be written.
    ///
    /// # Errors
    /// A folder cannot be listed.
    pub(crate) fn index(&self) -> io::Result<Index> {
        let now = SystemTime::now();
        let mut files = Vec::new();
        for Found { path, is_named } in paths::expand(&self.named)? {
            // A file may be deleted while its folder is listed.
            let Ok(metadata) = path.metadata() else { continue };
            let modified = metadata.modified().unwrap_or(UNIX_EPOCH);
            // A modification time in the future, after the clock was set back, hides no file.
            if now.duration_since(modified).is_ok_and(|age| age < SETTLED) {
                continue;
            }
            let version = modified.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis());
            let url = format!("{}?{version}-{}", self.number(&path), metadata.len());
            files.push(Entry {
                path: path.to_string_lossy().into_owned(),
                url,
                bytes: metadata.len(),
                searched: !is_named,
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

    /// The file with this number from an index.
    pub(crate) fn path(&self, number: usize) -> Option<PathBuf> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).get(number).cloned()
    }
}
