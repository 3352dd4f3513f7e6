//! The packages that ship, and the texts of their licenses.

use super::LETTERS;
use crate::{cmd, files, install, repo::Repo};
use anyhow::{Context, Result, bail, ensure};
use cargo_metadata::{CargoOpt, MetadataCommand};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// What ships: its letters in the list, its crates, their features and the targets it is built for.
struct Shipped {
    letters: &'static str,
    crates: &'static [&'static str],
    features: &'static str,
    targets: &'static [&'static str],
}

/// The targets of the programs and wheels that the workflows build.
const NATIVE: [&str; 4] = [
    "aarch64-apple-darwin",
    "aarch64-unknown-linux-gnu",
    "x86_64-pc-windows-msvc",
    "x86_64-unknown-linux-gnu",
];
/// Program and wheel have the page, and with it the WebAssembly of the npm package.
const SHIPPED: [Shipped; 3] = [
    Shipped { letters: "p", crates: &["vramscope-cli"], features: "page", targets: &NATIVE },
    Shipped { letters: "w", crates: &["vramscope-python"], features: "page", targets: &NATIVE },
    Shipped {
        letters: LETTERS,
        crates: &["vramscope-view", "vramscope-worker"],
        features: "vramscope-worker/threads",
        targets: &["wasm32-unknown-unknown"],
    },
];

/// Packages without a license file. They are taken under Apache 2.0, and get its text.
const WITHOUT_TEXT: [(&str, &str); 2] = [
    ("flatbuffers", "Google's crate names its license only in Cargo.toml"),
    ("wasm_sync", "offers Apache-2.0, only in Cargo.toml"),
];
/// License files that do not apply: of a license that a package offers and vramscope does not take.
const NOT_TAKEN: [(&str, &str); 1] = [("zstd-sys", "zstd/COPYING")];

/// Starts of the names of license files.
const STARTS: [&str; 6] = ["copying", "copyright", "licence", "license", "notice", "unlicense"];
/// Ends of the names of license files that say an alternative to MIT.
const ALTERNATIVES: [&str; 8] = [
    "-0bsd",
    "-apache",
    "-apache-2.0",
    "-apache-2.0_with_llvm-exception",
    "-boost",
    "-bsd",
    "-zlib",
    "unlicense",
];

/// The notices of Rust's standard library, from `COPYRIGHT-library.html` of the toolchain.
const STD: &str = include_str!("std.txt");

/// A package that ships.
pub(super) struct Package {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) license: String,
    /// Of [`LETTERS`].
    pub(super) letters: BTreeSet<char>,
    /// Of its license files.
    pub(super) texts: Vec<String>,
}

/// All packages, by name and version.
pub(super) fn all(repo: &Repo) -> Result<Vec<Package>> {
    let mut all = crates(repo)?;
    all.extend(npm(repo)?);
    all.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    let unused = WITHOUT_TEXT.iter().find(|(name, _)| all.iter().all(|found| found.name != *name));
    ensure!(unused.is_none(), "{unused:?} ships no more: remove it from notices.rs");
    let toolchain = std::fs::read_to_string(repo.path("rust-toolchain.toml"))?;
    let version = toolchain.split('"').nth(1).unwrap_or_default().to_owned();
    ensure!(
        STD.lines().next().is_some_and(|line| line.contains(&format!(" {version} "))),
        "notices/std.txt is not of Rust {version}: compare it with COPYRIGHT-library.html"
    );
    let (name, license) = ("Rust's standard library".into(), "MIT OR Apache-2.0".into());
    all.insert(
        0,
        Package {
            name,
            version,
            license,
            letters: LETTERS.chars().collect(),
            texts: vec![STD.into()],
        },
    );
    Ok(all)
}

/// The crates that are linked. Build scripts and macros only run while vramscope is compiled.
fn crates(repo: &Repo) -> Result<Vec<Package>> {
    let mut linked: BTreeMap<(String, String), BTreeSet<char>> = BTreeMap::new();
    for shipped in &SHIPPED {
        let mut args = vec!["tree", "--locked", "--prefix", "none", "--format", "{p}"];
        args.extend(["--edges", "normal,no-proc-macro", "--features", shipped.features]);
        args.extend(shipped.crates.iter().flat_map(|name| ["--package", name]));
        args.extend(shipped.targets.iter().flat_map(|target| ["--target", target]));
        for line in cmd::output(&mut cmd::cargo(&args, &repo.root))?.lines() {
            let mut words = line.split(' ').map(str::to_owned);
            if let Some((name, version)) = words.next().zip(words.next()) {
                let version = version.trim_start_matches('v').to_owned();
                linked.entry((name, version)).or_default().extend(shipped.letters.chars());
            }
        }
    }
    let metadata = MetadataCommand::new()
        .manifest_path(repo.path("Cargo.toml"))
        .features(CargoOpt::AllFeatures)
        .other_options(["--locked".to_owned()])
        .exec()
        .context("cargo metadata of all dependencies")?;
    let mut found = Vec::new();
    for package in metadata.packages.iter().filter(|package| package.source.is_some()) {
        let (name, version) = (package.name.to_string(), package.version.to_string());
        let Some(letters) = linked.remove(&(name.clone(), version.clone())) else { continue };
        let license = package.license.clone().with_context(|| format!("{name} has no license"))?;
        let folder = package.manifest_path.parent().context("a manifest without a folder")?;
        let texts = texts(repo, &name, &license, folder.as_std_path())?;
        found.push(Package { name, version, license, letters, texts });
    }
    let unknown = linked.into_keys().find(|(name, _)| !name.starts_with("vramscope-"));
    ensure!(unknown.is_none(), "cargo metadata does not name {unknown:?}");
    Ok(found)
}

/// The npm packages that are bundled: those of the lock file that are not for development.
fn npm(repo: &Repo) -> Result<Vec<Package>> {
    install::npm(repo)?;
    let lock: Value =
        serde_json::from_slice(&std::fs::read(repo.web().join("package-lock.json"))?)?;
    let mut found = Vec::new();
    for (path, package) in lock["packages"].as_object().context("a lock file without packages")? {
        let is = |flag: &str| package[flag].as_bool() == Some(true);
        let Some((_, name)) = path.rsplit_once("node_modules/") else { continue };
        if is("dev") || is("devOptional") || is("link") {
            continue;
        }
        let field = |name: &str| package[name].as_str().unwrap_or_default().to_owned();
        let (name, license) = (name.to_owned(), field("license"));
        let texts = texts(repo, &name, &license, &repo.web().join(path))?;
        let letters = LETTERS.chars().collect();
        found.push(Package { name, version: field("version"), license, letters, texts });
    }
    Ok(found)
}

/// The texts of a package's license files.
fn texts(repo: &Repo, name: &str, license: &str, folder: &Path) -> Result<Vec<String>> {
    let all = files::below(folder)?.into_iter().filter_map(|path| {
        let below = path.strip_prefix(folder).ok()?.to_string_lossy().replace('\\', "/");
        let taken = is_license(&below) && !NOT_TAKEN.contains(&(name, &below));
        taken.then_some((below, path))
    });
    let chosen: Vec<PathBuf> = choose(license, all.collect());
    let without = WITHOUT_TEXT.iter().any(|(without, _)| *without == name);
    let paths = match (chosen.is_empty(), without) {
        (false, false) => chosen,
        (true, true) => vec![repo.path("LICENSE-APACHE")],
        (true, false) => bail!("{name} ({license}) has no license file: see notices.rs"),
        (false, true) => bail!("{name} has a license file: remove it from notices.rs"),
    };
    let read = |path: &PathBuf| {
        let bytes = std::fs::read(path).with_context(|| format!("reading {}", path.display()))?;
        let text = String::from_utf8_lossy(&bytes).replace(['\u{feff}', '\u{c}'], "");
        Ok(text.lines().map(|line| line.trim_end().to_owned() + "\n").collect())
    };
    paths.iter().map(read).collect()
}

/// The name of a file without its folder, in small letters, and without `.md` or `.txt`.
fn stem(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or_default().to_lowercase();
    name.trim_end_matches(".md").trim_end_matches(".txt").to_owned()
}

/// Whether this is the name of a license file, and not of code.
fn is_license(path: &str) -> bool {
    let is_code = files::has_extension(Path::new(path), &["rs", "py", "js", "ts", "c", "h"]);
    !is_code && STARTS.iter().any(|start| stem(path).starts_with(start))
}

/// Leaves out the alternatives to MIT, if MIT is offered and its text is among the files.
fn choose(license: &str, files: Vec<(String, PathBuf)>) -> Vec<PathBuf> {
    let words: Vec<&str> = license.split([' ', '/']).collect();
    let offered = words.contains(&"MIT") && !words.contains(&"AND");
    let takes_mit = offered && files.iter().any(|(name, _)| stem(name).ends_with("-mit"));
    let is_other = |name: &str| ALTERNATIVES.iter().any(|end| stem(name).ends_with(end));
    let kept = files.into_iter().filter(|(name, _)| !(takes_mit && is_other(name)));
    kept.map(|(_, path)| path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mit_is_chosen_where_it_is_offered_and_there() {
        let chosen = |license: &str, names: &[&str]| {
            let files = names.iter().map(|name| ((*name).to_owned(), PathBuf::from(name)));
            choose(license, files.collect()).len()
        };
        let both = ["LICENSE-APACHE", "LICENSE-MIT.md", "NOTICE", "UNLICENSE"];
        assert_eq!(chosen("Apache-2.0 OR MIT", &both), 2);
        assert_eq!(chosen("Unlicense/MIT", &both), 2);
        assert_eq!(chosen("Apache-2.0 AND MIT", &both), 4);
        assert_eq!(chosen("Apache-2.0 OR MIT", &["LICENSE-APACHE", "LICENSE"]), 2);
    }

    #[test]
    fn code_is_no_license() {
        assert!(
            is_license("zstd/LICENSE") && is_license("license-mit") && is_license("NOTICE.txt")
        );
        assert!(!is_license("src/license.rs") && !is_license("LICENSE-notes/a.txt"));
    }
}
