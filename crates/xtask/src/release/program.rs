//! The archive of the program: with the page and the list of its dependencies inside, and with that
//! list (an SBOM, `CycloneDX`), the licenses and the first documents beside it.

use super::{archive, empty, need_site, place, shipped, version, wheel};
use crate::{cmd, install, machine, notices, python, repo::Repo, size};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::collections::BTreeSet;
use std::env::consts::{ARCH, EXE_SUFFIX, OS};
use std::path::{Path, PathBuf};

/// Writes the list of dependencies into the program.
const AUDITABLE: (&str, &str) = ("cargo-auditable", "0.7.7");
/// Writes the list of dependencies into a file.
const CYCLONEDX: (&str, &str) = ("cargo-cyclonedx", "0.5.9");

/// The manual page, for `man`.
const MANUAL: &str = "python/vramscope.data/data/share/man/man1/vramscope.1";

/// The file with the list of dependencies.
const LIST: &str = "vramscope.cdx.json";

/// A recording that program and wheel read, below the root.
pub(super) const SNAPSHOT: &str = "test_data/recorded/oom_expandable.pickle.gz";

/// The name of this system in the name of the archive.
pub(super) fn system() -> String {
    format!("{OS}-{ARCH}")
}

/// Builds the program, checks it, and packs it. Returns the archive.
pub(super) fn make(repo: &Repo, out: &Path) -> Result<PathBuf> {
    need_site(repo)?;
    let program = build(repo)?;
    check(repo, &program)?;
    let name = format!("vramscope-v{}-{}", version(repo)?, system());
    let folder = out.join("program");
    empty(&folder)?;
    place(&program, &folder)?;
    notices::copy(repo, &folder)?;
    for document in ["README.md", "SECURITY.md", MANUAL] {
        place(&repo.path(document), &folder)?;
    }
    std::fs::write(folder.join(LIST), dependencies(repo)?)?;
    let file = archive(&folder, out.join(format!("{name}.tar.gz")))?;
    std::fs::remove_dir_all(&folder).with_context(|| format!("removing {}", folder.display()))?;
    size::within("program", file.metadata()?.len().try_into()?, size::PROGRAM_BUDGET)?;
    Ok(file)
}

/// Builds the program, on Linux for the C library of older systems. Returns its path.
fn build(repo: &Repo) -> Result<PathBuf> {
    let auditable = install::cargo_tool(repo, AUDITABLE.0, AUDITABLE.1)?;
    let target = wheel::host(repo)?;
    let mut build = cmd::command(&auditable.to_string_lossy(), &["auditable"], &repo.root);
    if OS == "linux" {
        let tools = python::tools(repo, "release")?;
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = [tools.join("bin")].into_iter().chain(std::env::split_paths(&path));
        build.env("PATH", std::env::join_paths(path)?).env("PYTHONPATH", &tools);
        build.arg("zigbuild").args(["--target", &format!("{target}.{}", shipped::GLIBC)]);
    } else {
        build.arg("build").args(["--target", &target]);
    }
    machine::set_flags(repo, &mut build, &[])?;
    build.args(["--quiet", "--locked", "--release", "--features", "page"]);
    cmd::run(build.args(["--package", "vramscope-cli"]))?;
    Ok(repo.target.join(target).join("release").join(format!("vramscope{EXE_SUFFIX}")))
}

/// The program reads a snapshot, and has the page: the parts of a report come from it.
pub(super) fn check(repo: &Repo, program: &Path) -> Result<()> {
    let program = program.to_string_lossy();
    let report = repo.target.join("release-report.html");
    let mut export = cmd::command(&program, &["export", "--as", "html", "-o"], &repo.root);
    cmd::run(export.arg(&report).arg(SNAPSHOT))?;
    let bytes = report.metadata()?.len();
    ensure!(bytes > 1_000_000, "a report of {program} has {bytes} bytes: it lacks the viewer");
    std::fs::remove_file(&report).with_context(|| format!("removing {}", report.display()))
}

/// The list of dependencies, without the place of this checkout.
///
/// The tool writes a file beside each manifest of the workspace. Only that of the program is used.
fn dependencies(repo: &Repo) -> Result<String> {
    let tool = install::cargo_tool(repo, CYCLONEDX.0, CYCLONEDX.1)?;
    let args = ["cyclonedx", "--manifest-path", "crates/vramscope-cli/Cargo.toml"];
    let mut list = cmd::command(&tool.to_string_lossy(), &args, &repo.root);
    list.args(["--features", "page", "--format", "json", "--target", "all"]);
    cmd::run(list.args(["--override-filename", LIST.trim_end_matches(".json")]))?;
    let text = std::fs::read_to_string(repo.path("crates/vramscope-cli").join(LIST))
        .with_context(|| format!("reading {LIST}"))?;
    for package in &repo.metadata.packages {
        let file = package.manifest_path.with_file_name(LIST);
        if file.is_file() {
            std::fs::remove_file(&file).with_context(|| format!("removing {file}"))?;
        }
    }
    // A path of Windows has a slash before its drive in an address, and other slashes.
    let root = repo.root.to_string_lossy().replace('\\', "/");
    let text = text.replace(&format!("file://{root}"), "file:///vramscope");
    let text = text.replace(&format!("file:///{root}"), "file:///vramscope");
    let lock = std::fs::read_to_string(repo.path("Cargo.lock")).context("reading Cargo.lock")?;
    check_list(&text, &lock)?;
    Ok(text)
}

/// Fails unless the list names dependencies, and only those of Cargo.lock.
pub(super) fn check_list(list: &str, lock: &str) -> Result<()> {
    let lock = lock.replace('\r', "");
    let locked: BTreeSet<&str> = lock.split("[[package]]\n").skip(1).filter_map(entry).collect();
    let list: Value = serde_json::from_str(list).with_context(|| format!("parsing {LIST}"))?;
    let components = list["components"].as_array().context("a list without components")?;
    ensure!(!components.is_empty(), "{LIST} names no dependency");
    for component in components {
        let field = |name: &str| component[name].as_str().unwrap_or_default();
        let wanted = format!("name = \"{}\"\nversion = \"{}\"", field("name"), field("version"));
        ensure!(locked.contains(wanted.as_str()), "Cargo.lock does not have {wanted:?} of {LIST}");
    }
    Ok(())
}

/// The lines with name and version of a package of Cargo.lock.
fn entry(package: &str) -> Option<&str> {
    let end = package.match_indices('\n').nth(1)?.0;
    package.get(..end)
}
