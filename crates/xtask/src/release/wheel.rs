//! The Python wheel of a release: optimized, with the page, and on Linux for old systems. It is
//! installed without network and run where its target is this machine.

use super::program::{self, SNAPSHOT};
use super::{empty, need_site, place};
use crate::{cmd, files, install, machine, notices, python, repo::Repo, size};
use anyhow::{Context, Result, anyhow, ensure};
use std::path::{Path, PathBuf};

/// The target of this machine.
pub(super) fn host(repo: &Repo) -> Result<String> {
    let version = cmd::output(&mut cmd::command("rustc", &["-vV"], &repo.root))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("`rustc -vV` names no host")?.to_owned())
}

/// Builds the wheel for a target, and checks it. Returns its path.
pub(super) fn make(repo: &Repo, out: &Path, target: Option<&str>) -> Result<PathBuf> {
    need_site(repo)?;
    let host = host(repo)?;
    let target = target.unwrap_or(&host);
    install::target(repo, target)?;
    let tools = python::tools(repo, "release")?;
    let folder = repo.target.join("release-wheel");
    empty(&folder)?;
    let maturin = tools.join("bin/maturin");
    let args = ["build", "--quiet", "--locked", "--target", target];
    let mut build = cmd::command(&maturin.to_string_lossy(), &args, &repo.path("python"));
    if target.contains("-linux-") {
        // zig links for the C library of older systems, and for other processors.
        build.args(["--zig", "--compatibility", "manylinux2014"]).env("PYTHONPATH", &tools);
    }
    machine::set_flags(repo, &mut build, &[])?;
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

/// The wheel has the licenses, and is within its budget.
fn check(repo: &Repo, wheel: &Path) -> Result<()> {
    size::within("wheel", wheel.metadata()?.len().try_into()?, size::WHEEL_BUDGET)?;
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
    program::check(repo, &programs.join("vramscope"))?;
    let python = programs.join("python").to_string_lossy().into_owned();
    let ask = "import sys, vramscope; print(vramscope.open(sys.argv[1]).diagnosis)";
    let answer = cmd::output(cmd::command(&python, &["-c", ask], folder).arg(&snapshot))?;
    ensure!(!answer.trim().is_empty(), "the module says nothing about {SNAPSHOT}");
    Ok(())
}
