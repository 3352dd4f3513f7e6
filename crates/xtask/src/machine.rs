//! The folders of this machine, which nothing that ships may name.

use crate::{cmd, repo::Repo};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folders that a compiler writes into messages, each with its replacement: the checkout,
/// cargo's sources and those of the standard library.
fn sources(repo: &Repo) -> Result<[(PathBuf, &'static str); 3]> {
    let sysroot = cmd::output(&mut cmd::command("rustc", &["--print", "sysroot"], &repo.root))?;
    let rust = Path::new(sysroot.trim()).join("lib/rustlib/src/rust");
    let cargo = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo = cargo.or_else(|| Some(std::env::home_dir()?.join(".cargo")));
    let cargo = cargo.context("cargo's folder is unknown: set CARGO_HOME")?.join("registry/src");
    Ok([(repo.root.clone(), "/vramscope"), (cargo, "/cargo"), (rust, "/rust")])
}

/// Makes a command of cargo compile with these flags, and with replacements for the folders of this
/// machine. So a build elsewhere has the same bytes.
///
/// Flags from outside, such as a linker, sanitizers or coverage, are left out.
pub(crate) fn set_flags(repo: &Repo, cargo: &mut Command, flags: &[&str]) -> Result<()> {
    let mut all: Vec<String> = sources(repo)?
        .map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display()))
        .into();
    all.extend(flags.iter().map(|&flag| flag.to_owned()));
    cargo.env_remove("RUSTFLAGS").env("CARGO_ENCODED_RUSTFLAGS", all.join("\x1f"));
    Ok(())
}

/// The folders of the checkout from which files ship.
const SHIPPED: [&str; 4] = ["crates", "python", "vscode", "web"];

/// The folders that no file of a release may name: those that are replaced, the built ones, and
/// hidden folders of the home folder. A name alone, such as `/src`, could stand in any path.
pub(crate) fn folders(repo: &Repo) -> Result<Vec<String>> {
    let [(root, replacement), cargo, rust] = sources(repo)?;
    let mut folders = vec![cargo.0, rust.0, repo.target.clone()];
    if root != Path::new(replacement) {
        folders.extend(SHIPPED.map(|name| root.join(name)));
    }
    folders.extend(std::env::home_dir().map(|home| home.join(".")));
    Ok(folders.iter().map(|folder| folder.display().to_string()).collect())
}
