//! Lengths of files, and the share of TypeScript in the code.

use super::Source;

const RUST_LIMIT: usize = 600;
const TYPESCRIPT_LIMIT: usize = 350;
/// Words in the header of a longer file, before the reason.
const REASON: &str = "Long because";
/// Lines of a header.
const HEADER_LINES: usize = 20;
/// Limit of TypeScript, in percent of the code lines of both languages.
const TYPESCRIPT_PERCENT: usize = 20;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Language {
    Rust,
    TypeScript,
}

/// The language of a file that people write. `None` for generated files, end-to-end tests and unit
/// tests of TypeScript.
fn language(name: &str) -> Option<Language> {
    let extension = name.rsplit_once('.').map(|(_, extension)| extension)?;
    match extension {
        "rs" => Some(Language::Rust),
        "ts" | "tsx"
            if !["web/e2e/", "/generated/", ".css.", ".test."]
                .iter()
                .any(|not| name.contains(not)) =>
        {
            Some(Language::TypeScript)
        }
        _ => None,
    }
}

pub(super) fn lengths(sources: &[Source]) -> Vec<String> {
    let mut broken = Vec::new();
    for source in sources {
        let limit = match language(&source.name) {
            Some(Language::Rust) => RUST_LIMIT,
            Some(Language::TypeScript) => TYPESCRIPT_LIMIT,
            None => continue,
        };
        let lines = source.text.lines().count();
        if lines > limit
            && !source.text.lines().take(HEADER_LINES).any(|line| line.contains(REASON))
        {
            broken.push(format!(
                "{} has {lines} lines, of {limit}: split it, or put \"{REASON} ...\" in its header",
                source.name
            ));
        }
    }
    broken
}

pub(super) fn typescript_share(sources: &[Source]) -> Vec<String> {
    let count = |wanted| -> usize {
        sources
            .iter()
            .filter(|s| language(&s.name) == Some(wanted))
            .map(|s| code_lines(&s.text))
            .sum()
    };
    let (rust, typescript) = (count(Language::Rust), count(Language::TypeScript));
    let percent = 100 * typescript / (rust + typescript).max(1);
    println!("tidy: {rust} lines of Rust, {typescript} of TypeScript ({percent} %)");
    if percent >= TYPESCRIPT_PERCENT {
        return vec![format!(
            "TypeScript is {percent} % of the code, of {TYPESCRIPT_PERCENT} %: compute in Rust"
        )];
    }
    Vec::new()
}

/// Number of lines that are neither blank nor a comment.
fn code_lines(text: &str) -> usize {
    let comment =
        |line: &str| line.starts_with("//") || line.starts_with("/*") || line.starts_with('*');
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !comment(line)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn language_follows_from_the_name() {
        assert!(language("crates/a/src/lib.rs") == Some(Language::Rust));
        assert!(language("web/viewer/src/ui/app.tsx") == Some(Language::TypeScript));
        assert!(language("web/viewer/src/generated/protocol.ts").is_none());
        assert!(language("web/e2e/tests/load.spec.ts").is_none());
        assert!(language("web/viewer/src/styles/rail.css.ts").is_none());
        assert!(language("README").is_none());
    }

    #[test]
    fn comments_and_blank_lines_are_not_code() {
        assert_eq!(code_lines("// a\n\n/* b\n * c\n */\nlet d = 1; // e\n}\n"), 2);
    }

    #[test]
    fn long_file_needs_a_reason() {
        let long = "let a = 1;\n".repeat(RUST_LIMIT + 1);
        let source = |text: String| Source { name: "crates/a/src/lib.rs".into(), text };
        assert_eq!(lengths(&[source(long.clone())]).len(), 1);
        assert_eq!(
            lengths(&[source(format!("//! Long because it is one table.\n{long}"))]).len(),
            0
        );
    }
}
