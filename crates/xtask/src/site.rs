//! The page, built for good; and the files that are generated.

use crate::{cmd, repo::Repo, threads, wasm};
use anyhow::Result;

/// wasm, TypeScript and Vite: web/site/dist.
pub(crate) fn build(repo: &Repo) -> Result<()> {
    wasm::build(repo)?;
    threads::build(repo)?;
    cmd::run(&mut cmd::command("npm", &["run", "--silent", "build", "-w", "site"], &repo.web()))
}

/// The TypeScript twin of the worker protocol; without the variable the same test says whether it
/// is current.
pub(crate) fn types(repo: &Repo) -> Result<()> {
    let test = ["test", "--quiet", "--package", "vramscope-protocol", "--lib", "typescript"];
    cmd::run(cmd::cargo(&test, &repo.root).env("UPDATE_GENERATED", "1"))
}
