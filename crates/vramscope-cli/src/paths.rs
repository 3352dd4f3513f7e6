//! Finds snapshot files under paths.

use std::io;
use std::path::{Path, PathBuf};

/// File name extensions for which folders are searched.
const EXTENSIONS: [&str; 6] = ["pickle", "pkl", "pt", "gz", "html", "json"];

/// Replaces each folder by the snapshot files in it, at any depth, sorted by name.
///
/// Paths of files are returned unchecked.
///
/// # Errors
/// A folder cannot be listed.
pub(crate) fn expand(paths: &[PathBuf]) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() { search(path, &mut files)? } else { files.push(path.clone()) }
    }
    Ok(files)
}

fn search(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    let name_folder =
        |e: io::Error| io::Error::new(e.kind(), format!("cannot list {}: {e}", folder.display()));
    let mut entries = std::fs::read_dir(folder)
        .map_err(name_folder)?
        .collect::<io::Result<Vec<_>>>()
        .map_err(name_folder)?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        if path.is_dir() {
            search(&path, files)?;
        } else if path.extension().and_then(|e| e.to_str()).is_some_and(|e| EXTENSIONS.contains(&e))
        {
            files.push(path);
        }
    }
    Ok(())
}
