//! The Python wheel of a release: optimized, with the page, and on Linux for old systems. It is
//! installed without network and run where its target is this machine.

use super::{empty, need_site, place};
use crate::{cmd, files, install, notices, python, repo::Repo};
use anyhow::{Context, Result, anyhow, ensure};
use std::path::{Path, PathBuf};

/// The largest wheel, in bytes. A wheel has 16.1 MB, two of them the module with threads, which
/// `vramscope serve` uses.
const LIMIT: u64 = 16 << 20;

/// A recording that the installed wheel reads, below the root.
const SNAPSHOT: &str = "test_data/recorded/oom_expandable.pickle.gz";

/// The target of this machine.
pub(super) fn host(repo: &Repo) -> Result<String> {
    let version = cmd::output(&mut cmd::command("rustc", &["-vV"], &repo.root))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("`rustc -vV` names no host")?.to_owned())
}

/// Builds the wheel for a target, and checks it.
pub(super) fn make(repo: &Repo, out: &Path, target: Option<&str>) -> Result<()> {
    need_site(repo)?;
    let host = host(repo)?;
    let target = target.unwrap_or(&host);
    install::target(repo, target)?;
    let tools = python::tools(repo, "wheel")?;
    let folder = repo.target.join("release-wheel");
    empty(&folder)?;
    let maturin = tools.join("bin/maturin");
    let args = ["build", "--quiet", "--locked", "--target", target];
    let mut build = cmd::command(&maturin.to_string_lossy(), &args, &repo.path("python"));
    if target.contains("-linux-") {
        // zig links for the C library of older systems, and for other processors.
        build.args(["--zig", "--compatibility", "manylinux2014"]).env("PYTHONPATH", &tools);
    }
    cmd::run(build.arg("--out").arg(&folder))?;
    let [wheel] = files::below(&folder)?.try_into().map_err(|all: Vec<PathBuf>| {
        anyhow!("expected one wheel in {}, found {}", folder.display(), all.len())
    })?;
    check(repo, &wheel)?;
    if target == host {
        run(repo, &wheel)?;
    }
    place(&wheel, out)
}

/// The wheel has the licenses, and is not too large.
fn check(repo: &Repo, wheel: &Path) -> Result<()> {
    let bytes = wheel.metadata()?.len();
    ensure!(bytes <= LIMIT, "{} has {bytes} bytes, of {LIMIT}", wheel.display());
    let mut list = cmd::command("python3", &["-m", "zipfile", "-l"], &repo.root);
    let names = cmd::output(list.arg(wheel))?;
    for name in notices::FILES {
        let is_there = names.contains(&format!("licenses/{name}"));
        ensure!(is_there, "{} does not have {name}", wheel.display());
    }
    Ok(())
}

/// Installs the wheel in a new environment without network, and asks program and module.
fn run(repo: &Repo, wheel: &Path) -> Result<()> {
    let folder = wheel.parent().context("a wheel without folder")?;
    let programs = python::install_wheel(wheel, &folder.join("venv"))?;
    let snapshot = repo.path(SNAPSHOT);
    let program = programs.join("vramscope").to_string_lossy().into_owned();
    cmd::run(cmd::command(&program, &["diagnose"], folder).arg(&snapshot))?;
    let python = programs.join("python").to_string_lossy().into_owned();
    let ask = "import sys, vramscope; print(vramscope.open(sys.argv[1]).diagnosis)";
    let answer = cmd::output(cmd::command(&python, &["-c", ask], folder).arg(&snapshot))?;
    ensure!(!answer.trim().is_empty(), "the module says nothing about {SNAPSHOT}");
    Ok(())
}
