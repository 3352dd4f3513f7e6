//! Builds the site, and generates files for it.

use crate::wasm::{self, Mode};
use crate::{cmd, repo::Repo, threads};
use anyhow::Result;
use std::path::PathBuf;

/// Which modules the site gets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Site {
    /// What is published: also the module with threads, if it can be built.
    Whole,
    /// Without the module with threads.
    Plain,
    /// Compiled in a fraction of the time, for work on the page.
    Fast,
}

/// Writes what the program tells of itself into `web/site/reference`: commands, JSON, findings.
/// Returns the program, which is built for it.
pub(crate) fn reference(repo: &Repo) -> Result<PathBuf> {
    cmd::run(&mut cmd::cargo(&["build", "--quiet", "--package", "vramscope-cli"], &repo.root))?;
    let program = repo.target.join(format!("debug/vramscope{}", std::env::consts::EXE_SUFFIX));
    let mut script = cmd::command("python3", &["-B", "scripts/reference.py"], &repo.root);
    cmd::run(script.arg(&program).arg(repo.path("web/site/reference")))?;
    Ok(program)
}

/// Builds wasm, TypeScript and the site with Vite, into `web/site/dist`. The fast build leaves an
/// older build with threads as it is.
pub(crate) fn build(repo: &Repo, site: Site) -> Result<()> {
    wasm::build(repo, if site == Site::Fast { Mode::Fast } else { Mode::Release })?;
    match site {
        Site::Whole => threads::build(repo)?,
        Site::Plain => threads::remove(repo)?,
        Site::Fast => {}
    }
    reference(repo)?;
    cmd::run(&mut cmd::command("npm", &["run", "--silent", "build", "-w", "site"], &repo.web()))
}

/// Generates the TypeScript types of the worker protocol. A test writes them when the variable is
/// set, and otherwise checks that they are current.
pub(crate) fn types(repo: &Repo) -> Result<()> {
    let test = ["test", "--quiet", "--package", "vramscope-session", "--lib", "typescript"];
    cmd::run(cmd::cargo(&test, &repo.root).env("UPDATE_GENERATED", "1"))
}
