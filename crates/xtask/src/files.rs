//! Lists of files.

use crate::{cmd, repo::Repo};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// All files below a folder, sorted. A folder that does not exist has no files.
pub(crate) fn below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(folder) = open.pop() {
        if !folder.is_dir() {
            continue;
        }
        for entry in
            std::fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))?
        {
            let path = entry?.path();
            if path.is_dir() { open.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    Ok(found)
}

/// Files that git tracks or would add, relative to the root. Deleted files are left out.
pub(crate) fn tracked(repo: &Repo) -> Result<Vec<String>> {
    let list = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let names = cmd::output(&mut cmd::command("git", &list, &repo.root))?;
    let mut names: Vec<String> =
        names.split('\0').filter(|n| !n.is_empty()).map(str::to_owned).collect();
    names.sort();
    names.dedup();
    names.retain(|name| repo.root.join(name).is_file());
    Ok(names)
}

/// Writes a file unless it has these bytes, so that cargo builds little again.
pub(crate) fn update(path: &Path, bytes: &[u8]) -> Result<()> {
    if std::fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    std::fs::create_dir_all(path.parent().context("a file has a folder")?)?;
    std::fs::write(path, bytes).with_context(|| format!("writing {}", path.display()))
}

/// The modification time of a file; `None` if it does not exist.
pub(crate) fn modified(path: &Path) -> Option<SystemTime> {
    path.metadata().and_then(|m| m.modified()).ok()
}

/// True when `path` has one of these extensions, given without the dot.
pub(crate) fn has_extension(path: &Path, wanted: &[&str]) -> bool {
    path.extension().and_then(|e| e.to_str()).is_some_and(|e| wanted.contains(&e))
}
