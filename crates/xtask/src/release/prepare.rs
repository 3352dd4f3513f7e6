//! Prepares a release: one command writes the version into every file that has it, the heading of
//! the changelog, and the address of the repository.
//!
//! The address is in no file before the first release. `cargo binstall`, npm's attestations and the
//! page of the Python package need it.

use super::{published, version};
use crate::{cmd, repo::Repo};
use anyhow::{Context, Result, bail, ensure};
use std::path::{Path, PathBuf};

/// Files with the version, and what stands around it: `@` is the version.
const PLACES: [(&str, &[&str]); 17] = [
    ("Cargo.toml", &["\nversion = \"@\"", "{ version = \"@\", path = \"crates/"]),
    ("python/vramscope/__init__.py", &["__version__ = \"@\""]),
    ("web/viewer/package.json", &["\"version\": \"@\""]),
    ("web/viewer/src/version.ts", &["VERSION = \"@\""]),
    ("vscode/package.json", &["\"version\": \"@\""]),
    ("web/site/package.json", &["\"vramscope-viewer\": \"@\""]),
    ("web/e2e/package.json", &["\"vramscope-viewer\": \"@\""]),
    ("web/examples/esbuild/package.json", &["\"vramscope-viewer\": \"@\""]),
    ("web/examples/plain/package.json", &["\"vramscope-viewer\": \"@\""]),
    ("web/examples/vite/package.json", &["\"vramscope-viewer\": \"@\""]),
    ("web/examples/webpack/package.json", &["\"vramscope-viewer\": \"@\""]),
    (
        "web/package-lock.json",
        &[
            "\"vramscope-viewer\": \"@\"",
            "\"name\": \"vramscope-viewer\",\n      \"version\": \"@\"",
        ],
    ),
    (
        "vscode/package-lock.json",
        &[
            "\"name\": \"vramscope\",\n  \"version\": \"@\"",
            "\"name\": \"vramscope\",\n      \"version\": \"@\"",
        ],
    ),
    ("python/vramscope.data/data/share/man/man1/vramscope.1", &["\"vramscope @\""]),
    ("python/conda/recipe.yaml", &["version: \"@\""]),
    ("vscode/README.md", &["vramscope-@.vsix"]),
    ("CONTRIBUTING.md", &["vramscope-viewer-@.tgz"]),
];

/// The links of the Python package, with what follows the address of the repository.
const LINKS: [(&str, &str); 5] = [
    ("Homepage", ""),
    ("Repository", ""),
    ("Documentation", "/tree/main/docs"),
    ("Changelog", "/blob/main/CHANGELOG.md"),
    ("Issues", "/issues"),
];

/// Prepares the version `new`, and names the repository, if it is given.
pub(super) fn run(repo: &Repo, new: &str, repository: Option<&str>) -> Result<()> {
    let old = version(repo)?;
    let is_version = new.split('.').count() == 3
        && new.split('.').all(|part| part.parse::<u32>().is_ok_and(|n| n.to_string() == part));
    ensure!(is_version, "{new} is no version: expected one such as 1.2.3");
    let mut edits = 0;
    let mut edit = |name: &str, edit: &dyn Fn(&str) -> Result<String>| -> Result<()> {
        let path = repo.path(name);
        let text = std::fs::read_to_string(&path).with_context(|| format!("reading {name}"))?;
        let edited = edit(&text).with_context(|| name.to_owned())?;
        edits += 1;
        std::fs::write(&path, edited).with_context(|| format!("writing {name}"))
    };
    for (name, places) in PLACES {
        edit(name, &|text| with_version(text, places, &old, new))?;
    }
    edit("CHANGELOG.md", &|text| with_heading(text, new))?;
    if let Some(url) = repository {
        let url = url.trim_end_matches('/').trim_end_matches(".git");
        ensure!(url.starts_with("https://"), "{url} is no address: expected https://...");
        edit("Cargo.toml", &|text| with_field(text, "license = ", "repository = ", url))?;
        edit("python/pyproject.toml", &|text| with_links(text, url))?;
        for (name, folder) in
            [("web/viewer/package.json", "web/viewer"), ("vscode/package.json", "vscode")]
        {
            edit(name, &|text| with_repository(text, url, folder))?;
        }
        for manifest in manifests(repo) {
            edit(&manifest.to_string_lossy(), &|text| inherited(text))?;
        }
    }
    // Writes the versions of the crates into Cargo.lock.
    cmd::run(&mut cmd::cargo(&["update", "--workspace", "--offline", "--quiet"], &repo.root))?;
    println!("made {edits} edits for {new}: read the difference, commit it, push the tag v{new}");
    Ok(())
}

/// The manifests of the published crates, below the root.
fn manifests(repo: &Repo) -> Vec<PathBuf> {
    let below = |path: &Path| path.strip_prefix(&repo.root).unwrap_or(path).to_owned();
    let names = published(repo);
    let packages = repo.metadata.packages.iter();
    packages
        .filter(|package| names.contains(&package.name.as_str()))
        .map(|package| below(package.manifest_path.as_std_path()))
        .collect()
}

/// What is left to do before a tag; `None` if the repository has an address.
pub(super) fn remark(repo: &Repo) -> Result<Option<String>> {
    let manifest = std::fs::read_to_string(repo.path("Cargo.toml")).context("Cargo.toml")?;
    let has_address = manifest.lines().any(|line| line.starts_with("repository = "));
    Ok((!has_address).then(|| {
        "name the repository: `cargo xtask release --prepare VERSION --repository URL`".to_owned()
    }))
}

/// The text with the new version in each of these places.
fn with_version(text: &str, places: &[&str], old: &str, new: &str) -> Result<String> {
    places.iter().try_fold(text.to_owned(), |text, place| {
        let before = place.replace('@', old);
        ensure!(text.contains(&before), "it does not have `{before}`");
        Ok(text.replace(&before, &place.replace('@', new)))
    })
}

/// The changelog with the unreleased section under the name of the version.
fn with_heading(text: &str, version: &str) -> Result<String> {
    let begin = "\n## Unreleased (";
    let Some((before, rest)) = text.split_once(begin) else {
        let heading = format!("\n## {version}\n");
        ensure!(text.contains(&heading), "it has no section `Unreleased (...)`");
        return Ok(text.to_owned());
    };
    let (_, after) = rest.split_once(")\n").context("the heading of its section has no end")?;
    Ok(format!("{before}\n## {version}\n{after}"))
}

/// The text with a line `name"value"`, in place of such a line or after the line that begins with
/// `after`.
fn with_field(text: &str, after: &str, name: &str, value: &str) -> Result<String> {
    let line = format!("{name}\"{value}\"");
    let old = text.lines().find(|line| line.starts_with(name));
    if let Some(old) = old {
        return Ok(text.replacen(old, &line, 1));
    }
    match text.lines().find(|line| line.starts_with(after)) {
        Some(found) => Ok(text.replacen(found, &format!("{found}\n{line}"), 1)),
        None => bail!("it has no line `{after}...`"),
    }
}

/// `pyproject.toml` with the links of the package.
fn with_links(text: &str, url: &str) -> Result<String> {
    let head = "[project.urls]\n";
    let rest = match text.split_once(head) {
        Some((before, after)) => {
            let (_, after) = after.split_once("\n\n").context("its links have no end")?;
            format!("{before}{after}")
        }
        None => text.to_owned(),
    };
    let links = LINKS.map(|(name, path)| format!("{name} = \"{url}{path}\"")).join("\n");
    let place = "[project.scripts]\n";
    ensure!(rest.contains(place), "it has no {place}");
    Ok(rest.replacen(place, &format!("{head}{links}\n\n{place}"), 1))
}

/// `package.json` with the repository. npm compares it with that of the attestation.
fn with_repository(text: &str, url: &str, folder: &str) -> Result<String> {
    let of = |url: &str| {
        format!(
            "  \"repository\": {{\n    \"type\": \"git\",\n    \"url\": \"git+{url}.git\",\n    \
             \"directory\": \"{folder}\"\n  }},\n"
        )
    };
    let begin = "  \"repository\": {\n";
    let text = match text.split_once(begin) {
        Some((before, rest)) => {
            let (_, after) = rest.split_once("\n  },\n").context("its repository has no end")?;
            format!("{before}{after}")
        }
        None => text.to_owned(),
    };
    let license = text.lines().find(|line| line.starts_with("  \"license\": "));
    let license = license.context("it has no license")?.to_owned();
    Ok(text.replacen(&license, &format!("{license}\n{}", of(url).trim_end()), 1))
}

/// A manifest that inherits the repository of the workspace.
fn inherited(text: &str) -> Result<String> {
    let line = "repository.workspace = true\n";
    if text.contains(line) {
        return Ok(text.to_owned());
    }
    let license = "license.workspace = true\n";
    ensure!(text.contains(license), "it has no `{}`", license.trim());
    Ok(text.replacen(license, &format!("{license}{line}"), 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str) -> String {
        let repo = Repo::find().expect("this checkout");
        std::fs::read_to_string(repo.path(name)).expect(name)
    }

    #[test]
    fn every_file_takes_another_version() {
        let old = version(&Repo::find().expect("this checkout")).expect("a version");
        for (name, places) in PLACES {
            let text = read(name);
            let edited = with_version(&text, places, &old, "98.7.6").expect(name);
            assert_ne!(edited, text, "{name}");
            assert_eq!(with_version(&edited, places, "98.7.6", &old).expect(name), text);
        }
        assert!(with_version("version = 1", &["VERSION = \"@\""], "1.0.0", "2.0.0").is_err());
    }

    #[test]
    fn the_unreleased_section_becomes_that_of_the_version() {
        let log = "# Changelog\n\n## Unreleased (1.1.0)\n\n- New.\n\n## 1.0.0\n\n- Old.\n";
        let released = with_heading(log, "1.1.0").expect("a section");
        assert_eq!(released, log.replace("Unreleased (1.1.0)", "1.1.0"));
        assert_eq!(with_heading(&released, "1.1.0").expect("it is there"), released);
        assert!(with_heading(&released, "1.2.0").is_err());
    }

    /// The second address replaces the first.
    #[test]
    fn the_repository_is_named_once() {
        let [first, second] = ["https://example.org/a/b", "https://example.org/c/d"];
        let twice = |edit: &dyn Fn(&str, &str) -> Result<String>, text: &str| {
            let once = edit(text, first).expect("an edit");
            assert!(once.contains(first), "{once}");
            let again = edit(&once, second).expect("an edit");
            assert_eq!(again, edit(text, second).expect("an edit"));
            again
        };
        let cargo = |text: &str, url: &str| with_field(text, "license = ", "repository = ", url);
        twice(&cargo, &read("Cargo.toml"));
        let python = twice(&with_links, &read("python/pyproject.toml"));
        assert!(
            python.contains("Issues = \"https://example.org/c/d/issues\"\n\n[project.scripts]")
        );
        for name in ["web/viewer/package.json", "vscode/package.json"] {
            let edit = |text: &str, url: &str| with_repository(text, url, "x");
            let package: serde_json::Value =
                serde_json::from_str(&twice(&edit, &read(name))).expect("JSON");
            assert_eq!(package["repository"]["url"], "git+https://example.org/c/d.git");
        }
        let crates = manifests(&Repo::find().expect("this checkout"));
        assert!(crates.len() >= 8, "{crates:?}");
        for manifest in crates {
            let text = inherited(&read(&manifest.to_string_lossy())).expect("a manifest");
            assert_eq!(text, inherited(&text).expect("a manifest"));
        }
    }
}
