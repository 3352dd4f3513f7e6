//! The notes of a release: the section of its version in CHANGELOG.md.

use super::{prepare, version};
use crate::repo::Repo;
use anyhow::{Context, Result, bail, ensure};
use std::path::Path;

/// A section of the changelog.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Section<'a> {
    /// Its text, without the heading.
    text: &'a str,
    /// Whether the heading is the version alone, as in a release: `## 1.2.3`. Before that it is
    /// `## Unreleased (1.2.3)`.
    released: bool,
}

/// Writes `notes.md`. With a tag, the changelog must have a released section.
pub(super) fn make(repo: &Repo, out: &Path, tag: Option<&str>) -> Result<()> {
    let version = version(repo)?;
    let changelog = read(repo)?;
    let section = section(&changelog, &version)?;
    if let Some(tag) = tag {
        ensure!(tag == format!("v{version}"), "the tag is {tag}, the version v{version}");
        ensure!(section.released, "CHANGELOG.md: {}", rename(&version));
        if let Some(remark) = prepare::remark(repo)? {
            bail!("{remark}");
        }
    }
    std::fs::write(out.join("notes.md"), format!("{}\n", section.text)).context("notes.md")
}

/// What is left to do in the changelog before a tag.
pub(super) fn remark(repo: &Repo) -> Result<Option<String>> {
    let version = version(repo)?;
    let changelog = read(repo)?;
    let section = section(&changelog, &version)?;
    Ok((!section.released).then(|| format!("CHANGELOG.md: {}", rename(&version))))
}

fn rename(version: &str) -> String {
    format!("its section is unreleased: `cargo xtask release --prepare {version}` renames it")
}

fn read(repo: &Repo) -> Result<String> {
    std::fs::read_to_string(repo.path("CHANGELOG.md")).context("reading CHANGELOG.md")
}

/// The section of a version: its own, or the unreleased one that names it.
pub(super) fn section<'a>(changelog: &'a str, version: &str) -> Result<Section<'a>> {
    let unreleased = format!("Unreleased ({version})");
    for part in changelog.split("\n## ").skip(1) {
        let (heading, text) = part.split_once('\n').unwrap_or((part, ""));
        let heading = heading.trim();
        let released = heading == version;
        if released || heading == unreleased {
            let text = text.trim();
            ensure!(!text.is_empty(), "the section `{heading}` of CHANGELOG.md is empty");
            return Ok(Section { text, released });
        }
    }
    bail!("CHANGELOG.md has no section `{version}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "# Changelog\n\n## Unreleased (0.3.0)\n\n- New.\n\n## 0.2.0\n\n- Old.\n\n\
                       ## 0.1.0\n\n## 0.1.0-rc\n\n- Oldest.\n";

    #[test]
    fn notes_are_the_section_of_the_version() {
        let of = |version| section(LOG, version);
        assert_eq!(of("0.2.0").ok(), Some(Section { text: "- Old.", released: true }));
        assert_eq!(of("0.3.0").ok(), Some(Section { text: "- New.", released: false }));
    }

    #[test]
    fn a_version_without_notes_is_an_error() {
        for version in ["0.4.0", "0.2", "0.1.0", "Unreleased (0.3.0)x"] {
            assert!(section(LOG, version).is_err(), "{version}");
        }
    }
}
