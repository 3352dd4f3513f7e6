//! Which files a path means.

use std::io;
use std::path::{Path, PathBuf};

/// What a folder is searched for.
const ENDINGS: [&str; 6] = ["pickle", "pkl", "pt", "gz", "html", "json"];

/// The files that these paths mean: each file as it is, each folder's snapshots in order of their
/// names.
///
/// # Errors
/// When a folder cannot be listed.
pub(crate) fn expand(paths: &[PathBuf]) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() { search(path, &mut files)? } else { files.push(path.clone()) }
    }
    Ok(files)
}

fn search(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    let naming = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", folder.display()));
    let mut entries = std::fs::read_dir(folder)
        .map_err(naming)?
        .collect::<io::Result<Vec<_>>>()
        .map_err(naming)?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        if path.is_dir() {
            search(&path, files)?;
        } else if path.extension().and_then(|e| e.to_str()).is_some_and(|e| ENDINGS.contains(&e)) {
            files.push(path);
        }
    }
    Ok(())
}
