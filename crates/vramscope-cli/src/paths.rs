//! Finds snapshot files under paths.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// File name extensions for which folders are searched.
const EXTENSIONS: [&str; 6] = ["pickle", "pkl", "pt", "gz", "html", "json"];

/// A file to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// The file's path: as given, or below the given folder.
    pub(crate) path: PathBuf,
    /// Whether the command line names the file. If not, a search of a folder found it, and it may
    /// be something else than a snapshot.
    pub(crate) is_named: bool,
}

/// Replaces each folder by the snapshot files in it, at any depth, sorted by name.
///
/// A file or folder that is reached twice counts once, under the first path. Paths that do not
/// exist are returned as well, because reading reports them.
///
/// # Errors
/// A folder cannot be listed.
pub(crate) fn expand(paths: &[PathBuf]) -> io::Result<Vec<Found>> {
    let mut search = Search::default();
    for path in paths {
        match path.metadata() {
            Ok(metadata) if metadata.is_dir() => search.folder(path)?,
            _ => search.file(path.clone(), true),
        }
    }
    Ok(search.files)
}

#[derive(Default)]
struct Search {
    files: Vec<Found>,
    /// The files and folders reached so far. A file has its index in `files`.
    seen: BTreeMap<Identity, usize>,
}

impl Search {
    fn file(&mut self, path: PathBuf, is_named: bool) {
        let next = self.files.len();
        let at = match identity(&path) {
            Some(identity) => *self.seen.entry(identity).or_insert(next),
            None => next,
        };
        match self.files.get_mut(at) {
            Some(known) => known.is_named |= is_named,
            None => self.files.push(Found { path, is_named }),
        }
    }

    fn folder(&mut self, folder: &Path) -> io::Result<()> {
        let is_known = identity(folder)
            .is_some_and(|identity| self.seen.insert(identity, usize::MAX).is_some());
        if is_known {
            return Ok(());
        }
        let name_folder = |e: io::Error| {
            io::Error::new(e.kind(), format!("cannot list {}: {e}", folder.display()))
        };
        let mut entries = std::fs::read_dir(folder)
            .map_err(name_folder)?
            .collect::<io::Result<Vec<_>>>()
            .map_err(name_folder)?;
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            let path = entry.path();
            let has_extension =
                path.extension().and_then(|e| e.to_str()).is_some_and(|e| EXTENSIONS.contains(&e));
            match path.metadata() {
                Ok(metadata) if metadata.is_dir() => self.folder(&path)?,
                // Reading a pipe or a device would wait forever.
                Ok(metadata) if has_extension && metadata.is_file() => self.file(path, false),
                Err(_) if has_extension => self.file(path, false),
                _ => {}
            }
        }
        Ok(())
    }
}

/// What tells a file from all others: device and inode.
#[cfg(unix)]
type Identity = (u64, u64);

/// The identity of a file; `None` if it does not exist.
#[cfg(unix)]
fn identity(path: &Path) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt as _;
    path.metadata().ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// What tells a file from all others: its path without links.
#[cfg(not(unix))]
type Identity = PathBuf;

/// The identity of a file; `None` if it does not exist.
#[cfg(not(unix))]
fn identity(path: &Path) -> Option<Identity> {
    path.canonicalize().ok()
}
