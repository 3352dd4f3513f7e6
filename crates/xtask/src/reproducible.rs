//! Builds the site twice, in two places, and compares every file.
//!
//! Who downloads the page or the package can so check that it is made of the sources that it names.

use crate::{cmd, files, repo::Repo};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};

/// Two folders whose paths differ in length, so that a path in a file shows.
const PLACES: [&str; 2] = ["a", "another-place"];

/// Builds the last commit in two clones, and compares the sites.
pub(crate) fn run(repo: &Repo) -> Result<()> {
    println!("\n==> reproducible: the site of two clones, byte for byte");
    let root = repo.target.join("reproducible");
    if root.is_dir() {
        std::fs::remove_dir_all(&root).with_context(|| format!("emptying {}", root.display()))?;
    }
    std::fs::create_dir_all(&root).with_context(|| format!("making {}", root.display()))?;
    let mut sites = Vec::new();
    for place in PLACES {
        let clone = root.join(place);
        let from = repo.root.to_string_lossy();
        let to = clone.to_string_lossy();
        cmd::run(&mut cmd::command("git", &["clone", "--quiet", &from, &to], &root))?;
        let mut build = cmd::cargo(&["xtask", "build"], &clone);
        cmd::run(build.env_remove("CARGO_TARGET_DIR"))?;
        sites.push(clone.join("web/site/dist"));
    }
    let [a, b] = sites.as_slice() else { bail!("expected two sites") };
    let count = compare(a, b)?;
    println!("{count} files are equal");
    std::fs::remove_dir_all(&root).with_context(|| format!("removing {}", root.display()))
}

/// Compares two folders. Returns the number of files; fails if one differs or is in one only.
fn compare(a: &Path, b: &Path) -> Result<usize> {
    let names = |folder: &Path| -> Result<Vec<PathBuf>> {
        let below = files::below(folder)?;
        Ok(below.iter().filter_map(|p| p.strip_prefix(folder).ok().map(Path::to_owned)).collect())
    };
    let (in_a, in_b) = (names(a)?, names(b)?);
    if in_a.is_empty() {
        bail!("{} has no files", a.display());
    }
    if let Some(name) = in_a.iter().find(|name| !in_b.contains(name)) {
        bail!("{} is in one build only", name.display());
    }
    if let Some(name) = in_b.iter().find(|name| !in_a.contains(name)) {
        bail!("{} is in one build only", name.display());
    }
    for name in &in_a {
        let read = |folder: &Path| {
            let path = folder.join(name);
            std::fs::read(&path).with_context(|| format!("reading {}", path.display()))
        };
        let (left, right) = (read(a)?, read(b)?);
        if left != right {
            let at = left.iter().zip(&right).position(|(x, y)| x != y);
            let at = at.unwrap_or(left.len().min(right.len()));
            bail!("{} differs between two builds, first at byte {at}", name.display());
        }
    }
    Ok(in_a.len())
}

#[cfg(test)]
mod tests {
    use super::compare;
    use std::fs;

    #[test]
    fn a_file_that_differs_or_is_missing_is_named() {
        let root = std::env::temp_dir().join(format!("xtask-compare-{}", std::process::id()));
        let (a, b) = (root.join("a"), root.join("b"));
        for folder in [&a, &b] {
            fs::create_dir_all(folder.join("assets")).expect("a folder");
            fs::write(folder.join("assets/x.wasm"), [1, 2, 3]).expect("a file");
        }
        assert_eq!(compare(&a, &b).expect("equal"), 1);
        fs::write(b.join("assets/x.wasm"), [1, 9, 3]).expect("a file");
        let error = compare(&a, &b).expect_err("differs").to_string();
        assert_eq!(error, "assets/x.wasm differs between two builds, first at byte 1");
        fs::write(a.join("y.js"), "").expect("a file");
        let error = compare(&a, &b).expect_err("missing").to_string();
        assert_eq!(error, "y.js is in one build only");
        fs::remove_dir_all(&root).expect("removed");
    }
}
