//! Walking folders, and the files that git knows.

use crate::{cmd, repo::Repo};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// All files below a folder, sorted; folders that do not exist have none.
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

/// The tracked files and the new ones that are not ignored, relative to the top; those deleted but
/// not yet committed are left out.
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

/// When a file was last written; never, if it is not there.
pub(crate) fn modified(path: &Path) -> Option<SystemTime> {
    path.metadata().and_then(|m| m.modified()).ok()
}

/// True when `path` ends in one of these, without the dot.
pub(crate) fn has_extension(path: &Path, wanted: &[&str]) -> bool {
    path.extension().and_then(|e| e.to_str()).is_some_and(|e| wanted.contains(&e))
}
