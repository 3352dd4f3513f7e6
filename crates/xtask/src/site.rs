//! Builds the site, and generates files for it.

use crate::{cmd, repo::Repo, threads, wasm};
use anyhow::Result;

/// Builds wasm, TypeScript and the site with Vite, into `web/site/dist`.
pub(crate) fn build(repo: &Repo) -> Result<()> {
    wasm::build(repo)?;
    threads::build(repo)?;
    cmd::run(&mut cmd::command("npm", &["run", "--silent", "build", "-w", "site"], &repo.web()))
}

/// Generates the TypeScript types of the worker protocol. A test writes them when the variable is
/// set, and otherwise checks that they are current.
pub(crate) fn types(repo: &Repo) -> Result<()> {
    let test = ["test", "--quiet", "--package", "vramscope-protocol", "--lib", "typescript"];
    cmd::run(cmd::cargo(&test, &repo.root).env("UPDATE_GENERATED", "1"))
}
