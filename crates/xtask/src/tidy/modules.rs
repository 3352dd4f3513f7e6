//! Files of tests that no binary would run.

use super::Source;

/// Where a crate has one binary of tests, Cargo does not look for others: each file in `tests` must
/// be that binary's root or a module of it.
pub(super) fn check(sources: &[Source]) -> Vec<String> {
    let text_of =
        |name: &str| sources.iter().find(|s| s.name == name).map_or("", |s| s.text.as_str());
    let mut broken = Vec::new();
    for manifest in sources.iter().filter(|s| {
        s.name.ends_with("/Cargo.toml") && s.text.lines().any(|line| line == "autotests = false")
    }) {
        let folder = manifest.name.replace("Cargo.toml", "tests/");
        let roots: Vec<String> = manifest
            .text
            .lines()
            .filter_map(|line| line.strip_prefix("path = \"tests/")?.strip_suffix('"'))
            .map(|root| format!("{folder}{root}"))
            .collect();
        for source in sources {
            let Some(module) =
                source.name.strip_prefix(&folder).and_then(|file| file.strip_suffix(".rs"))
            else {
                continue;
            };
            let is_run = roots.iter().any(|root| {
                *root == source.name
                    || text_of(root).lines().any(|line| line == format!("mod {module};"))
            });
            if !module.contains('/') && !is_run {
                broken.push(format!(
                    "{} is never run: write `mod {module};` in {}",
                    source.name,
                    roots.join(" or ")
                ));
            }
        }
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(name: &str, text: &str) -> Source {
        Source { name: name.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn a_file_that_is_no_module_is_named() {
        let manifest = "autotests = false\n\n[[test]]\nname = \"all\"\npath = \"tests/all.rs\"\n";
        let mut sources = vec![
            source("crates/a/Cargo.toml", manifest),
            source("crates/a/tests/all.rs", "mod one;\n"),
            source("crates/a/tests/one.rs", ""),
            source("crates/a/tests/one/part.rs", ""),
            source("crates/b/Cargo.toml", "[package]\n"),
            source("crates/b/tests/two.rs", ""),
        ];
        assert!(check(&sources).is_empty());
        sources.push(source("crates/a/tests/two.rs", ""));
        let broken = check(&sources);
        assert_eq!(broken.len(), 1);
        assert!(broken[0].starts_with("crates/a/tests/two.rs is never run"), "{broken:?}");
    }
}
