//! The rehearsal of a release: all that this machine can make, and a list of what is left.

use super::{Options, Part, empty, notes, out, prepare, program, wheel};
use crate::site::{self, Site};
use crate::{cmd, examples, files, repo::Repo};
use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use std::path::Path;
use std::time::Instant;

/// What only a tag can do: the action that does it, and what it is.
pub(super) const ONLY_A_TAG: [(&str, &str); 5] = [
    ("actions/attest-build-provenance", "attestations of where each file was built"),
    ("actions/deploy-pages", "the page on GitHub Pages"),
    ("gh release create", "the draft of the release, which a person publishes"),
    ("pypa/gh-action-pypi-publish", "the wheels on PyPI, by a token of the environment pypi"),
    ("rust-lang/crates-io-auth-action", "the crates, by a token of the environment crates-io"),
];

/// Makes every part. The checks that take no time come first.
pub(super) fn run(repo: &Repo, options: &Options) -> Result<()> {
    let status = cmd::output(&mut cmd::command("git", &["status", "--porcelain"], &repo.root))?;
    ensure!(status.is_empty(), "a tag has only what is committed. Not committed:\n{status}");
    empty(&out(repo))?;
    let mut times = Vec::new();
    let mut timed = |name: String, make: &dyn Fn() -> Result<()>| -> Result<()> {
        println!("\n==> release: {name}");
        let start = Instant::now();
        make().with_context(|| name.clone())?;
        times.push((name, start.elapsed().as_secs_f64()));
        Ok(())
    };
    timed("notes".into(), &|| Part::Notes.make(repo, options))?;
    timed("build".into(), &|| {
        site::build(repo, Site::Whole)?;
        examples::run(repo)
    })?;
    let parts = Part::value_variants().iter().filter(|&&part| part != Part::Notes);
    for part in parts {
        timed(part.name(), &|| part.make(repo, options))?;
    }
    sums(&out(repo))?;
    let after = cmd::output(&mut cmd::command("git", &["status", "--porcelain"], &repo.root))?;
    ensure!(after.is_empty(), "the rehearsal changed the checkout:\n{after}");
    println!("\n{:>8}  part", "seconds");
    for (name, seconds) in times {
        println!("{seconds:>8.1}  {name}");
    }
    print_made(repo)
}

/// Prints what was made, and what is left for the tag.
fn print_made(repo: &Repo) -> Result<()> {
    let out = out(repo);
    println!("\n{:>11}  file in {}", "bytes", out.display());
    for path in files::below(&out)? {
        println!("{:>11}  {}", path.metadata()?.len(), path.strip_prefix(&out)?.display());
    }
    println!("\nOnly a tag makes or does:");
    let here = [wheel::host(repo)?, program::system()];
    for (workflow, key, what) in
        [("publish.yml", "target", "the wheel"), ("release.yml", "name", "the program")]
    {
        let text = workflow_text(repo, workflow)?;
        for built in matrix(&text, key).filter(|built| !here.iter().any(|here| here == built)) {
            println!("- {what} for {built}");
        }
    }
    for (_, what) in ONLY_A_TAG {
        println!("- {what}");
    }
    println!("- the npm package, by a token of the environment npm");
    for remark in [notes::remark(repo)?, prepare::remark(repo)?].into_iter().flatten() {
        println!("\nBefore the tag: {remark}");
    }
    Ok(())
}

pub(super) fn workflow_text(repo: &Repo, name: &str) -> Result<String> {
    let path = repo.path(".github/workflows").join(name);
    std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))
}

/// The values of a key in the matrix of a workflow, whose rows are written `- { key: value, ... }`.
pub(super) fn matrix<'a>(workflow: &'a str, key: &'a str) -> impl Iterator<Item = &'a str> {
    let rows = workflow.lines().filter_map(|line| line.trim().strip_prefix("- { os: "));
    rows.filter_map(move |row| {
        let fields = row.trim_end_matches(" }").split(", ");
        fields.filter_map(|field| field.split_once(": ")).find(|field| field.0 == key)
    })
    .map(|(_, value)| value)
}

/// Writes the checksums of all files, as release.yml does for its own, and checks them.
fn sums(out: &Path) -> Result<()> {
    let mut sum = cmd::command("sha256sum", &["--"], out);
    for path in files::below(out)? {
        sum.arg(path.strip_prefix(out)?);
    }
    std::fs::write(out.join("SHA256SUMS"), cmd::output(&mut sum)?)?;
    cmd::run(&mut cmd::command("sha256sum", &["--check", "--quiet", "SHA256SUMS"], out))
}
