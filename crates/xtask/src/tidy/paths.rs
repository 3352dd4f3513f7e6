//! Paths of the machine, and registries in lock files.

use super::Source;
use crate::repo::Repo;
use anyhow::{Context, Result};

/// Registries that lock files may name.
const REGISTRIES: [&str; 2] =
    ["registry+https://github.com/rust-lang/crates.io-index", "https://registry.npmjs.org/"];

/// Mentions of this checkout, of the folders beside it, and of the home folder.
pub(super) fn machines(repo: &Repo, sources: &[Source]) -> Result<Vec<String>> {
    let mut folders = vec![format!("{}/", repo.root.display())];
    if let Some(parent) = repo.root.parent().filter(|parent| parent.parent().is_some()) {
        for entry in parent.read_dir().with_context(|| format!("reading {}", parent.display()))? {
            folders.push(format!("{}/", entry?.path().display()));
        }
    }
    folders.extend(
        std::env::var("HOME").ok().filter(|home| home.len() > 1).map(|home| format!("{home}/")),
    );
    Ok(mentions(sources, &folders))
}

fn mentions(sources: &[Source], folders: &[String]) -> Vec<String> {
    let mut broken = Vec::new();
    for source in sources {
        for (n, line) in source.text.lines().enumerate() {
            if let Some(folder) = folders.iter().find(|folder| names(line, folder)) {
                broken.push(format!(
                    "{}:{} names a folder of this machine: {folder}",
                    source.name,
                    n + 1
                ));
            }
        }
    }
    broken
}

/// True when the line has this absolute path, not only a longer path that ends in it.
fn names(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|c| !c.is_alphanumeric() && !matches!(c, '.' | '_' | '-' | '/'))
    })
}

/// Packages in lock files that do not come from a public registry.
pub(super) fn registries(sources: &[Source]) -> Vec<String> {
    let mut broken = Vec::new();
    let locks = sources
        .iter()
        .filter(|s| s.name.ends_with("Cargo.lock") || s.name.ends_with("package-lock.json"));
    for source in locks {
        for (n, line) in source.text.lines().enumerate() {
            let Some((_, value)) =
                line.split_once("source = ").or_else(|| line.split_once("\"resolved\": "))
            else {
                continue;
            };
            let value = value.trim_matches(['"', ',', ' ']);
            if value.contains("://")
                && !REGISTRIES.iter().any(|registry| value.starts_with(registry))
            {
                broken.push(format!("{}:{} takes a package from {value}", source.name, n + 1));
            }
        }
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(name: &str, text: &str) -> Vec<Source> {
        vec![Source { name: name.into(), text: text.into() }]
    }

    #[test]
    fn only_absolute_paths_are_mentions() {
        let folders = ["/home/someone/".to_owned()];
        assert_eq!(mentions(&source("a", "open('/home/someone/x')"), &folders).len(), 1);
        assert_eq!(
            mentions(&source("a", "see ../home/someone/x and x/home/someone/y"), &folders).len(),
            0
        );
    }

    #[test]
    fn other_registries_in_lock_files_are_refused() {
        let mirror = "source = \"registry+https://mirror.example/index\"";
        assert_eq!(registries(&source("Cargo.lock", mirror)).len(), 1);
        assert_eq!(registries(&source("notes.md", mirror)).len(), 0);
        let public = "\"resolved\": \"https://registry.npmjs.org/a/-/a-1.0.0.tgz\",";
        assert_eq!(registries(&source("web/package-lock.json", public)).len(), 0);
    }
}
