//! Rules that no compiler checks. Each message says how to satisfy its rule.

mod answers;
mod circles;
mod edges;
mod editor;
mod hashes;
mod lines;
mod links;
mod modules;
mod paths;
mod versions;
mod width;

use crate::{files, repo::Repo};
use anyhow::{Context, Result, bail};

/// Largest file of test data, in bytes.
const TEST_DATA_LIMIT: u64 = 200 << 10;

/// Crates that may contain `unsafe`: GL, the two at the border to JavaScript, and the references of
/// Python's objects.
const UNSAFE_CRATES: [&str; 5] =
    ["vramscope-dry", "vramscope-python", "vramscope-render", "vramscope-view", "vramscope-worker"];

/// A text file of the repository.
pub(crate) struct Source {
    /// Path from the root of the repository, with slashes.
    pub(crate) name: String,
    /// Content.
    pub(crate) text: String,
}

/// Runs every rule, prints the violations, and fails if there is one.
pub(crate) fn run(repo: &Repo) -> Result<()> {
    let names = files::tracked(repo)?;
    let sources = read(repo, &names)?;
    let mut broken = edges::check(&repo.metadata);
    broken.extend(answers::check(&sources));
    broken.extend(circles::check(&sources));
    broken.extend(editor::check(&sources));
    broken.extend(lines::lengths(&sources));
    broken.extend(lines::typescript_share(&sources));
    broken.extend(width::check(&sources));
    broken.extend(unsafe_code(&sources));
    broken.extend(modules::check(&sources));
    broken.extend(hashes::check(&sources));
    broken.extend(links::check(&sources, &names));
    broken.extend(versions::check(&sources));
    broken.extend(paths::machines(repo, &sources)?);
    broken.extend(paths::registries(&sources));
    broken.extend(test_data(repo, &names)?);
    for line in &broken {
        eprintln!("tidy: {line}");
    }
    if !broken.is_empty() {
        bail!("rules broken: {}", broken.len());
    }
    println!("tidy: {} files follow all rules", names.len());
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
    // xtask has the word in this rule.
    for source in sources.iter().filter(|s| extension(&s.name) == "rs") {
        let mut parts = source.name.split('/');
        if (parts.next(), parts.next()) == (Some("crates"), Some("xtask"))
            || UNSAFE_CRATES.iter().any(|name| source.name.starts_with(&format!("crates/{name}/")))
        {
            continue;
        }
        for (n, line) in source.text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            let words = code.split(|c: char| !c.is_alphanumeric() && c != '_');
            if words.into_iter().any(|word| word == "unsafe" || word == "unsafe_code") {
                broken.push(format!(
                    "{}:{} contains `unsafe`: only {} may",
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
            repo.root.join(name).metadata().with_context(|| format!("size of {name}"))?.len();
        if size > TEST_DATA_LIMIT {
            broken.push(format!(
                "{name} has {size} bytes, of {TEST_DATA_LIMIT}: compress it or use a smaller file"
            ));
        }
    }
    Ok(broken)
}
