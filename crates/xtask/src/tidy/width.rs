//! Width of lines of code and prose.

use super::{Source, extension};

/// Columns of the widest line, as in rustfmt.toml.
const LIMIT: usize = 100;

/// Extensions of the files that people write.
const EXTENSIONS: [&str; 6] = ["rs", "ts", "tsx", "mjs", "py", "md"];

/// Parts of the names of files that are generated, or data.
const EXEMPT: [&str; 2] = ["test_data/", "/generated/"];

/// Lines that are too wide.
///
/// Exempt are lines with a URL, and in Markdown the rows of tables and fenced code.
pub(super) fn check(sources: &[Source]) -> Vec<String> {
    let mut broken = Vec::new();
    for source in sources {
        let extension = extension(&source.name);
        if !EXTENSIONS.contains(&extension) || EXEMPT.iter().any(|not| source.name.contains(not)) {
            continue;
        }
        for (line, columns) in wide_lines(&source.text, extension == "md") {
            broken.push(format!("{}:{line} has {columns} columns, of {LIMIT}", source.name));
        }
    }
    if !broken.is_empty() {
        println!("tidy: {} lines are wider than {LIMIT} columns", broken.len());
    }
    broken
}

/// Numbers, from 1, and widths of the lines that are too wide.
fn wide_lines(text: &str, is_markdown: bool) -> Vec<(usize, usize)> {
    let mut is_code = false;
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let start = line.trim_start();
        if is_markdown && start.starts_with("```") {
            is_code = !is_code;
        }
        let is_exempt = line.contains("://") || is_markdown && (is_code || start.starts_with('|'));
        let columns = line.chars().count();
        if columns > LIMIT && !is_exempt {
            found.push((number, columns));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_characters() {
        let (fits, wide) = ("ä".repeat(LIMIT), "ä".repeat(LIMIT + 1));
        assert_eq!(wide_lines(&format!("{fits}\n{wide}\n"), false), [(2, LIMIT + 1)]);
    }

    #[test]
    fn lines_with_a_url_are_exempt() {
        let words = "word ".repeat(30);
        assert!(wide_lines(&format!("// https://example.com {words}"), false).is_empty());
    }

    #[test]
    fn tables_and_fenced_code_of_markdown_are_exempt() {
        let words = "word ".repeat(30);
        let page = format!("| {words}|\n```\n{words}\n```\n{words}\n");
        let wide: Vec<usize> = wide_lines(&page, true).into_iter().map(|(line, _)| line).collect();
        assert_eq!(wide, [5]);
        assert_eq!(wide_lines(&page, false).len(), 3);
    }

    #[test]
    fn only_files_that_people_write_are_checked() {
        let source = |name: &str| Source { name: name.into(), text: "x".repeat(LIMIT + 1) };
        let names = ["a.rs", "web/b.tsx", "c.snap", "test_data/d.py", "web/generated/e.ts"];
        let broken = check(&names.map(source));
        let expected = ["a.rs:1 has 101 columns, of 100", "web/b.tsx:1 has 101 columns, of 100"];
        assert_eq!(broken, expected);
    }
}
