//! Finds snapshot files under paths.

use crate::mcp::call;
use std::collections::BTreeMap;
use std::fs::{DirEntry, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use vramscope_report::sidecar;

/// File name extensions for which folders are searched.
const EXTENSIONS: [&str; 6] = ["pickle", "pkl", "pt", "gz", "html", "json"];

/// The files of folders that are read, in words.
pub(crate) const SEARCHED: &str =
    "Folders are searched for .pickle, .pkl, .pt, .gz, .html and .json files.";

/// A file to read.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// The file's path: as given, or below the given folder.
    pub(crate) path: PathBuf,
    /// Whether the command line names the file. If not, a search of a folder found it, and it may
    /// be something else than a snapshot.
    pub(crate) is_named: bool,
    /// The file's size and times when it was found; `None` if it does not exist.
    pub(crate) metadata: Option<Metadata>,
}

/// Which links a search follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Links {
    /// All of them.
    Everywhere,
    /// Only links whose target lies below the searched folder.
    Inside,
}

/// Replaces each folder by the snapshot files in it, at any depth, sorted by name.
///
/// A file or folder that is reached twice counts once, under the first path. Paths that do not
/// exist and folders that cannot be listed are returned as files, because reading reports them.
pub(crate) fn expand(paths: &[PathBuf], links: Links) -> Vec<Found> {
    let mut search = Search { links, root: None, files: Vec::new(), seen: BTreeMap::new() };
    for path in paths {
        match path.metadata() {
            Ok(metadata) if metadata.is_dir() => {
                search.root = path.canonicalize().ok();
                search.folder(path, metadata);
            }
            metadata => search.file(path.clone(), true, metadata.ok()),
        }
    }
    search.files
}

/// [`expand`] with all links, and with each folder that has nothing to read: reading it says so.
pub(crate) fn to_read(paths: &[PathBuf]) -> Vec<Found> {
    let mut files = expand(paths, Links::Everywhere);
    let has_file = |folder: &PathBuf| {
        let all = expand(std::slice::from_ref(folder), Links::Everywhere);
        !all.is_empty()
    };
    files.extend(paths.iter().filter(|path| path.is_dir() && !has_file(path)).map(|path| Found {
        path: path.clone(),
        is_named: true,
        metadata: path.metadata().ok(),
    }));
    files
}

/// The name of a run: that of the first path, without links. Empty without one.
pub(crate) fn title(paths: &[PathBuf]) -> String {
    let first = paths.first().and_then(|path| path.canonicalize().ok());
    let name = first.as_deref().and_then(Path::file_name);
    name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

struct Search {
    links: Links,
    /// The folder that is searched, without links; `None` if it has vanished.
    root: Option<PathBuf>,
    files: Vec<Found>,
    /// The files and folders reached so far. A file has its index in `files`.
    seen: BTreeMap<Identity, usize>,
}

impl Search {
    fn file(&mut self, path: PathBuf, is_named: bool, metadata: Option<Metadata>) {
        let next = self.files.len();
        let at = match metadata.as_ref().and_then(|metadata| identity(&path, metadata)) {
            Some(identity) => *self.seen.entry(identity).or_insert(next),
            None => next,
        };
        match self.files.get_mut(at) {
            Some(known) => known.is_named |= is_named,
            None => self.files.push(Found { path, is_named, metadata }),
        }
    }

    fn folder(&mut self, folder: &Path, metadata: Metadata) {
        let is_known = identity(folder, &metadata)
            .is_some_and(|identity| self.seen.insert(identity, usize::MAX).is_some());
        if is_known {
            return;
        }
        let listed: io::Result<Vec<DirEntry>> =
            std::fs::read_dir(folder).and_then(Iterator::collect);
        let Ok(mut entries) = listed else {
            // Reading it fails for the same reason, and says so. The other files are read.
            let path = folder.to_owned();
            self.files.push(Found { path, is_named: true, metadata: Some(metadata) });
            return;
        };
        entries.sort_by_cached_key(DirEntry::file_name);
        for entry in entries {
            let path = entry.path();
            let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
            if is_link && self.links == Links::Inside && !self.is_inside(&path) {
                continue;
            }
            // The file beside a snapshot is read with the snapshot.
            let is_beside = path.to_string_lossy().ends_with(sidecar::EXTENSION);
            let has_extension = !is_beside
                && path
                    .extension()
                    .and_then(|e| e.to_str())
                    .is_some_and(|e| EXTENSIONS.contains(&e));
            match path.metadata() {
                // Reading it fails, and says why.
                Ok(metadata)
                    if (has_extension || metadata.is_dir()) && call::allow(&path).is_err() =>
                {
                    self.files.push(Found { path, is_named: true, metadata: None });
                }
                Ok(metadata) if metadata.is_dir() => self.folder(&path, metadata),
                // Reading a pipe or a device would wait forever.
                Ok(metadata) if has_extension && metadata.is_file() => {
                    self.file(path, false, Some(metadata));
                }
                Err(_) if has_extension => self.file(path, false, None),
                _ => {}
            }
        }
    }

    /// Whether a link leads to a place below the searched folder.
    fn is_inside(&self, link: &Path) -> bool {
        let (Some(root), Ok(target)) = (&self.root, link.canonicalize()) else { return false };
        target.starts_with(root)
    }
}

/// What tells a file from all others: device and inode.
#[cfg(unix)]
type Identity = (u64, u64);

#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "elsewhere a file may vanish meanwhile")]
fn identity(_path: &Path, metadata: &Metadata) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt as _;
    Some((metadata.dev(), metadata.ino()))
}

/// What tells a file from all others: its path without links.
#[cfg(not(unix))]
type Identity = PathBuf;

#[cfg(not(unix))]
fn identity(path: &Path, _metadata: &Metadata) -> Option<Identity> {
    path.canonicalize().ok()
}
