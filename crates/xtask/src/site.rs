//! Builds the site, and generates files for it.

use crate::wasm::{self, Mode};
use crate::{cmd, repo::Repo, threads};
use anyhow::Result;

/// Builds wasm, TypeScript and the site with Vite, into `web/site/dist`. The fast build leaves an
/// older build with threads as it is.
pub(crate) fn build(repo: &Repo, mode: Mode) -> Result<()> {
    wasm::build(repo, mode)?;
    if mode == Mode::Release {
        threads::build(repo)?;
    }
    cmd::run(&mut cmd::command("npm", &["run", "--silent", "build", "-w", "site"], &repo.web()))
}

/// Generates the TypeScript types of the worker protocol. A test writes them when the variable is
/// set, and otherwise checks that they are current.
pub(crate) fn types(repo: &Repo) -> Result<()> {
    let test = ["test", "--quiet", "--package", "vramscope-protocol", "--lib", "typescript"];
    cmd::run(cmd::cargo(&test, &repo.root).env("UPDATE_GENERATED", "1"))
}
