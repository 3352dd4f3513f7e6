//! The version stands in five files, which must agree.

use super::Source;

const PLACES: [(&str, &str); 5] = [
    ("web/viewer/package.json", "\"version\": \""),
    ("web/viewer/src/version.ts", "VERSION = \""),
    ("vscode/package.json", "\"version\": \""),
    ("python/vramscope/__init__.py", "__version__ = \""),
    ("Cargo.toml", "\nversion = \""),
];

pub(super) fn check(sources: &[Source]) -> Vec<String> {
    let version = |(name, before): &(&str, &str)| {
        let text = &sources.iter().find(|source| source.name == *name)?.text;
        text.split_once(before)?.1.split_once('"').map(|(text, _)| text)
    };
    let wanted = version(&PLACES[0]);
    let broken = PLACES.iter().filter(|place| version(place) != wanted || wanted.is_none());
    broken
        .map(|(name, _)| {
            format!(
                "{name} does not have the version of {}: {}",
                PLACES[0].0,
                wanted.unwrap_or("none")
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_must_agree() {
        let of = |version: &str| -> Vec<Source> {
            let texts = [
                "\"version\": \"0.1.0\"".into(),
                format!("const VERSION = \"{version}\";"),
                "\"version\": \"0.1.0\"".into(),
                "__version__ = \"0.1.0\"".into(),
                "a\nversion = \"0.1.0\"".into(),
            ];
            PLACES
                .iter()
                .zip(texts)
                .map(|((name, _), text)| Source { name: (*name).into(), text })
                .collect()
        };
        assert_eq!(check(&of("0.1.0")).len(), 0);
        assert_eq!(check(&of("0.2.0")).len(), 1);
        assert_eq!(check(&[]).len(), 5);
    }
}
