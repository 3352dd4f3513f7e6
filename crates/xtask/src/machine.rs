//! The folders of this machine, which nothing that ships may name.

use crate::{cmd, repo::Repo};
use anyhow::{Context, Result};
use std::path::{MAIN_SEPARATOR, Path, PathBuf};
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

/// The folders whose names no file that ships may have, each with a separator at its end.
pub(crate) fn folders(repo: &Repo) -> Result<Vec<String>> {
    let mut folders: Vec<PathBuf> = sources(repo)?.map(|(folder, _)| folder).into();
    folders.push(repo.target.clone());
    folders.extend(std::env::home_dir().filter(|home| home.parent().is_some()));
    Ok(folders.iter().map(|folder| format!("{}{MAIN_SEPARATOR}", folder.display())).collect())
}
