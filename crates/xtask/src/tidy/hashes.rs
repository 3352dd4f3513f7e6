//! Python packages are installed by their hashes. Lists in `.ci/` and `scripts/standin/` have them.
//!
//! `NAME.in` says what is wanted. `uv` writes `NAME.txt` from it, as the first lines of that say.

use super::{Source, extension};

/// Folders of lists.
const FOLDERS: [&str; 2] = [".ci/", "scripts/standin/"];
/// Folders of what runs in other repositories.
const ELSEWHERE: [&str; 2] = ["docs/", ".github/actions/"];
/// Of these, a line that lets pip install or download has one: with hashes, or without network.
const SAFE: [&str; 3] = ["--require-hashes", "\"${hashed[@]}\"", "--no-index"];

pub(super) fn check(sources: &[Source]) -> Vec<String> {
    let mut broken = Vec::new();
    for source in sources {
        let is_list = FOLDERS.iter().any(|folder| source.name.starts_with(folder));
        match extension(&source.name) {
            "in" if is_list => broken.extend(stale(source, sources)),
            "txt" if is_list => broken.extend(without_hash(source)),
            "sh" | "yml" if ELSEWHERE.iter().all(|folder| !source.name.starts_with(folder)) => {
                broken.extend(unsafe_lines(source));
            }
            _ => {}
        }
    }
    broken
}

/// The name of a package as pip compares it, and its version.
fn pin(line: &str) -> Option<(String, &str)> {
    let (name, version) = line.split_once("==")?;
    let name = name.split('[').next().unwrap_or_default().trim();
    let version = version.split([' ', ';', '\\']).next().unwrap_or_default();
    Some((name.to_lowercase().replace(['_', '.'], "-"), version))
}

/// What a list wants, and its file of hashes does not have.
fn stale(wanted: &Source, sources: &[Source]) -> Vec<String> {
    let name = format!("{}.txt", wanted.name.trim_end_matches(".in"));
    let list = sources.iter().find(|source| source.name == name);
    let hashed: Vec<_> =
        list.map(|list| list.text.lines().filter_map(pin).collect()).unwrap_or_default();
    let pins = wanted.text.lines().filter(|line| !line.starts_with('#')).filter_map(pin);
    pins.filter(|pin| !hashed.contains(pin))
        .map(|(package, version)| {
            format!("{name} does not have {package}=={version}: write it anew")
        })
        .collect()
}

/// Packages without a hash, and addresses of registries.
fn without_hash(list: &Source) -> Vec<String> {
    let mut broken = Vec::new();
    let mut lines = list.text.lines().enumerate().peekable();
    while let Some((n, line)) = lines.next() {
        let next = lines.peek().map_or("", |(_, next)| next.trim_start());
        if pin(line).is_some() && !line.starts_with('#') && !next.starts_with("--hash=") {
            broken.push(format!("{}:{} has no hash", list.name, n + 1));
        }
        if line.contains("://") {
            broken.push(format!("{}:{} names an address", list.name, n + 1));
        }
    }
    broken
}

fn unsafe_lines(script: &Source) -> Vec<String> {
    let installs = |line: &str| {
        let is_pip = line.contains("pip install") || line.contains("pip download");
        let by_array = line.contains("${pip[@]}");
        (is_pip || by_array) && !line.trim_start().starts_with('#')
    };
    let lines = (1..).zip(script.text.lines()).filter(|(_, line)| installs(line));
    lines
        .filter(|(_, line)| SAFE.iter().all(|word| !line.contains(word)))
        .map(|(n, _)| format!("{}:{n} installs without --require-hashes", script.name))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(name: &str, text: &str) -> usize {
        check(&[Source { name: name.into(), text: text.into() }]).len()
    }

    #[test]
    fn installations_without_hashes_are_found() {
        let file = ".github/workflows/a.yml";
        assert_eq!(count(file, "run: python -m pip install maturin==1.0"), 1);
        assert_eq!(count(file, "run: python -m pip install --require-hashes -r a.txt"), 0);
        assert_eq!(count(file, "run: python -m pip install --no-index a.whl"), 0);
        assert_eq!(count("scripts/a.sh", "\"${pip[@]}\" install torch"), 1);
        assert_eq!(count("scripts/a.sh", "\"${pip[@]}\" install \"${hashed[@]}\" -r a"), 0);
        assert_eq!(count("README.md", "pip install vramscope"), 0);
        assert_eq!(count("docs/ci/a.yml", "run: python -m pip install vramscope"), 0);
        assert_eq!(count(".github/actions/a/action.yml", "run: pip install vramscope"), 0);
    }

    #[test]
    fn lists_have_all_that_is_wanted_with_hashes() {
        let lists = |hashed: &str| {
            let [name, text] = [".ci/a.in", "# b==1\nA_b[c]==2.0\n"].map(str::to_owned);
            let hashed = Source { name: ".ci/a.txt".into(), text: hashed.into() };
            check(&[Source { name, text }, hashed]).len()
        };
        assert_eq!(lists("a-b==2.0 ; python_version < '3' \\\n    --hash=sha256:00\n"), 0);
        assert_eq!(lists("a-b==2.1 \\\n    --hash=sha256:00\n"), 1);
        assert_eq!(lists("a-b==2.0\n"), 1);
        assert_eq!(lists("--index-url https://mirror.example\na-b==2.0 \\\n  --hash=x\n"), 1);
    }
}
