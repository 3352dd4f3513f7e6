//! What no compiler checks. Each rule says what to do when it is broken.

mod edges;
mod lines;
mod links;
mod paths;
mod versions;

use crate::{files, repo::Repo};
use anyhow::{Context, Result, bail};

/// Largest file of test data, in bytes.
const TEST_DATA_LIMIT: u64 = 200 << 10;

/// The crates that may say `unsafe`: GL, and the two that speak to the browser.
const UNSAFE_CRATES: [&str; 3] = ["vramscope-render", "vramscope-view", "vramscope-worker"];

/// A file of the repository with its text; none when it is not text.
pub(crate) struct Source {
    /// Relative to the top, with slashes.
    pub(crate) name: String,
    /// What it says.
    pub(crate) text: String,
}

/// Runs every rule, prints what is broken, and fails if anything is.
pub(crate) fn run(repo: &Repo) -> Result<()> {
    let names = files::tracked(repo)?;
    let sources = read(repo, &names)?;
    let mut broken = edges::check(&repo.metadata);
    broken.extend(lines::lengths(&sources));
    broken.extend(lines::typescript_share(&sources));
    broken.extend(unsafe_code(&sources));
    broken.extend(links::check(&sources, &names));
    broken.extend(versions::check(&sources));
    broken.extend(paths::machines(repo, &sources)?);
    broken.extend(paths::registries(&sources));
    broken.extend(test_data(repo, &names)?);
    for line in &broken {
        eprintln!("tidy: {line}");
    }
    if !broken.is_empty() {
        bail!(
            "{} untidy",
            if broken.len() == 1 {
                "1 thing is".into()
            } else {
                format!("{} things are", broken.len())
            }
        );
    }
    println!("tidy: {} files are in order", names.len());
    Ok(())
}

fn read(repo: &Repo, names: &[String]) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    for name in names {
        let bytes =
            std::fs::read(repo.root.join(name)).with_context(|| format!("reading {name}"))?;
        if let Ok(text) = String::from_utf8(bytes)
            && !text.contains('\0')
        {
            sources.push(Source { name: name.clone(), text });
        }
    }
    Ok(sources)
}

fn extension(name: &str) -> &str {
    name.rsplit_once('.').map_or("", |(_, extension)| extension)
}

fn unsafe_code(sources: &[Source]) -> Vec<String> {
    let mut broken = Vec::new();
    for source in sources.iter().filter(|s| extension(&s.name) == "rs") {
        let mut parts = source.name.split('/');
        if (parts.next(), parts.next()) == (Some("crates"), Some("xtask"))
            || UNSAFE_CRATES.iter().any(|name| source.name.starts_with(&format!("crates/{name}/")))
        {
            continue; // this file names the word; the others may use it
        }
        for (n, line) in source.text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            let words = code.split(|c: char| !c.is_alphanumeric() && c != '_');
            if words.into_iter().any(|word| word == "unsafe" || word == "unsafe_code") {
                broken.push(format!(
                    "{}:{} says unsafe; only {} may",
                    source.name,
                    n + 1,
                    UNSAFE_CRATES.join(", ")
                ));
            }
        }
    }
    broken
}

fn test_data(repo: &Repo, names: &[String]) -> Result<Vec<String>> {
    let mut broken = Vec::new();
    for name in
        names.iter().filter(|n| n.starts_with("test_data/") || n.starts_with("web/site/public/"))
    {
        let size =
            repo.root.join(name).metadata().with_context(|| format!("looking at {name}"))?.len();
        if size > TEST_DATA_LIMIT {
            broken.push(format!(
                "{name} has {size} bytes; {TEST_DATA_LIMIT} is the most: gzip it, or take a smaller one"
            ));
        }
    }
    Ok(broken)
}
