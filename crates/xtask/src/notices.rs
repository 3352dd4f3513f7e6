//! Writes and checks `THIRD_PARTY.txt`: the packages of others in the program, the wheel and the
//! npm package, with their licenses.
//!
//! The three ship one file. A column says which of them has a package.

mod packages;

use crate::repo::Repo;
use anyhow::{Context, Result, ensure};
use packages::Package;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

/// The list.
const LIST: &str = "THIRD_PARTY.txt";
/// The files that everything that ships has.
pub(crate) const FILES: [&str; 3] = ["LICENSE-APACHE", "LICENSE-MIT", LIST];

/// A letter for the program, the wheel, and the npm package.
const LETTERS: &str = "pwn";

const HEADER: &str = "\
Packages of others in vramscope

This list is one for the program (p), the Python wheel (w) and the npm package and page (n). A build
for one system has some of them. Where a package can be taken under MIT, that license is taken.
`cargo xtask notices` writes this file.

";

/// Writes the list.
pub(crate) fn write(repo: &Repo) -> Result<()> {
    let text = list(&packages::all(repo)?);
    let path = repo.path(LIST);
    std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))
}

/// Fails if the list is not current.
pub(crate) fn check(repo: &Repo) -> Result<()> {
    let found = std::fs::read_to_string(repo.path(LIST)).unwrap_or_default().replace('\r', "");
    let wanted = list(&packages::all(repo)?);
    let differs = wanted.lines().zip(found.lines()).find(|(wanted, found)| wanted != found);
    let first = differs.map_or("at its end", |(wanted, _)| wanted);
    ensure!(found == wanted, "{LIST} is not current: run `cargo xtask notices`. First: {first}");
    println!("{LIST} is current");
    Ok(())
}

/// Copies the files to a folder whose package has them.
pub(crate) fn copy(repo: &Repo, folder: &Path) -> Result<()> {
    for name in FILES {
        std::fs::copy(repo.path(name), folder.join(name))
            .with_context(|| format!("copying {name}"))?;
    }
    Ok(())
}

/// The list: a line for each package, then each text once, under the packages that have it.
fn list(packages: &[Package]) -> String {
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    let mut texts: Vec<(&str, Vec<String>)> = Vec::new();
    let mut out = HEADER.to_owned();
    for package in packages {
        let label = format!("{} {}", package.name, package.version);
        let mut own = BTreeSet::new();
        for text in &package.texts {
            let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let number = *numbers.entry(words).or_insert_with(|| {
                texts.push((text, Vec::new()));
                texts.len()
            });
            if own.insert(number) {
                texts[number - 1].1.push(label.clone());
            }
        }
        let letter = |c| if package.letters.contains(&c) { c } else { '-' };
        let letters: String = LETTERS.chars().map(letter).collect();
        let own: Vec<String> = own.iter().map(ToString::to_string).collect();
        let (license, own) = (&package.license, own.join(", "));
        writeln!(out, "{letters} {label}: {license} (text {own})").expect("writing to memory");
    }
    for (number, (text, owners)) in (1..).zip(texts) {
        let line = "=".repeat(80);
        write!(out, "\n{line}\nText {number}: {}\n{line}\n\n", owners.join(", "))
            .expect("writing to memory");
        writeln!(out, "{}", text.trim_matches('\n')).expect("writing to memory");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, texts: &[&str]) -> Package {
        let texts = texts.iter().map(|text| (*text).to_owned()).collect();
        let (version, license) = ("1.0.0".to_owned(), "MIT".to_owned());
        Package { name: name.into(), version, license, letters: "pw".chars().collect(), texts }
    }

    #[test]
    fn equal_texts_stand_once_under_all_that_have_them() {
        let list = list(&[package("a", &["may\n  copy\n"]), package("b", &["may copy", "other"])]);
        assert!(list.contains("pw- a 1.0.0: MIT (text 1)\npw- b 1.0.0: MIT (text 1, 2)\n"));
        assert!(list.contains("Text 1: a 1.0.0, b 1.0.0\n") && list.contains("\n\nmay\n  copy\n"));
        assert!(list.contains("Text 2: b 1.0.0\n") && !list.contains("may copy"));
    }

    /// Whatever builds or describes a package names the files, so none is forgotten.
    #[test]
    fn all_that_ships_has_the_files() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for (place, wanted) in [
            ("crates/xtask/src/release/program.rs", "notices::copy("),
            ("python/pyproject.toml", r#""LICENSE-APACHE", "LICENSE-MIT", "THIRD_PARTY.txt""#),
            ("web/viewer/package.json", r#""THIRD_PARTY.txt""#),
        ] {
            let text = std::fs::read_to_string(root.join(place)).expect("a file of the repository");
            assert!(text.contains(wanted), "{place} does not have {wanted}");
        }
    }
}
