//! Dry runs of real programs, with the installed wheel and PyTorch's own wheel.

use crate::python::{RECORDED, tools};
use crate::{cmd, repo::Repo};
use anyhow::{Result, bail};
use std::process::Command;

/// The releases of PyTorch, each with the folder for it below the target folder. Before 2.5 no
/// values are computed.
const RELEASES: [(&str, &str); 6] = [
    ("2.1.2", "standin-2.1"),
    ("2.4.1", "standin-2.4"),
    ("2.7.1", "standin-2.7"),
    ("2.9.1", "standin"),
    ("2.11.0", "standin-2.11"),
    ("2.15.0", "standin-2.15"),
];

/// The files of tests of dry runs.
const DRY: [&str; 5] = [
    "test_dry_run.py",
    "test_dry_cluster.py",
    "test_dry_values.py",
    "test_fix.py",
    "test_serving.py",
];

/// What the gate runs of them: the others take minutes.
const IN_THE_GATE: &str = "h100 or first_line or error_is or named or children or no_process \
                           or rank_alone or cannot_run or losses or sizes_are or fewest_gpus_of \
                           or no_search or cured or no_fix";

/// Runs programs without a GPU, and compares their peaks with those of an H100; then the action
/// that compares a pull request with its base. The step `wheel` has built the package.
pub(crate) fn run(repo: &Repo) -> Result<()> {
    let (release, folder, _) = RECORDED[0];
    cmd::run(tests(repo, release, folder, &DRY)?.args(["-k", IN_THE_GATE]))?;
    cmd::run(&mut tests(repo, release, folder, &["test_action.py"])?)
}

/// All tests of dry runs, with six releases of PyTorch, one after the other. It downloads 5 GB.
pub(crate) fn long(repo: &Repo) -> Result<()> {
    println!("\n==> long: dry runs with six releases of PyTorch");
    crate::python::wheel(repo)?;
    for (release, folder) in RELEASES {
        println!("PyTorch {release}");
        cmd::run(tests(repo, release, folder, &DRY)?.env("VRAMSCOPE_TWINS", "1"))?;
    }
    Ok(())
}

/// The files of tests with a release of PyTorch, which is installed first.
fn tests(repo: &Repo, release: &str, folder: &str, files: &[&str]) -> Result<Command> {
    let folder = repo.target.join(folder);
    let setup = repo.path("scripts/standin/setup.sh");
    let mut setup = cmd::command(&setup.to_string_lossy(), &[], &repo.root);
    cmd::run(setup.arg(&folder).arg(release))?;
    let python = repo.target.join("wheel/venv/bin/python");
    if !python.is_file() {
        bail!("dry runs need the wheel: run `cargo xtask test wheel` first");
    }
    let args = ["-m", "pytest", "--quiet", "-rs", "-p", "no:cacheprovider"];
    // In another folder than the sources, which Python would import instead.
    let mut tests = cmd::command(&python.to_string_lossy(), &args, &repo.target.join("wheel"));
    tests.args(files.iter().map(|name| repo.path("python/tests").join(name)));
    tests.env("PYTHONPATH", tools(repo, "python")?).env("PYTHONDONTWRITEBYTECODE", "1");
    tests.env("VRAMSCOPE_TORCH", folder.join("venv/bin/python")).env("OMP_NUM_THREADS", "2");
    Ok(tests)
}
