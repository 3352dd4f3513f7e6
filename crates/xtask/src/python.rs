//! The Python package: format, lints, types and tests.
//!
//! Tests that record real programs need a PyTorch, which `VRAMSCOPE_TORCH` names (see
//! `python/tests/test_recorder.py`). Without one they are skipped, and pytest says how many.

use crate::{cmd, repo::Repo, wasm};
use anyhow::{Context, Result};
use std::path::PathBuf;
use std::process::Command;

/// Checks the Python package.
pub(crate) fn run(repo: &Repo) -> Result<()> {
    let tools = install(repo)?;
    let python = |args: &[&str]| -> Command {
        let mut command = cmd::command("python3", &["-m"], &repo.path("python"));
        command.args(args).env("PYTHONPATH", &tools).env("PYTHONDONTWRITEBYTECODE", "1");
        command
    };
    cmd::run(&mut python(&["ruff", "format", "--check", "--quiet", "."]))?;
    cmd::run(&mut python(&["ruff", "check", "--quiet", "."]))?;
    cmd::run(&mut python(&["mypy", "--cache-dir", "/dev/null"]))?;
    cmd::run(&mut python(&["pytest", "--quiet", "-p", "no:cacheprovider", "tests"]))
}

/// Installs the tools below the target folder. Returns the folder that Python imports them from.
fn install(repo: &Repo) -> Result<PathBuf> {
    let requirements = repo.path(".ci/python.txt");
    let pinned = std::fs::read(&requirements)
        .with_context(|| format!("reading {}", requirements.display()))?;
    let version = wasm::fingerprint(&pinned).replace(' ', "-");
    let folder = repo.target.join("tools").join(format!("python-{version}"));
    let complete = folder.join("complete");
    if complete.is_file() {
        return Ok(folder);
    }
    let quiet = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    let mut pip = cmd::command("python3", &quiet, &repo.root);
    pip.args(["--only-binary", ":all:", "--upgrade", "--target"]);
    cmd::run(pip.arg(&folder).arg("--requirement").arg(&requirements))
        .context("cannot install the tools of .ci/python.txt")?;
    std::fs::write(&complete, "").with_context(|| format!("writing {}", complete.display()))?;
    Ok(folder)
}
