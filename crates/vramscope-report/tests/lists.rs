//! What follows the lists of findings and changes elsewhere: `cargo xtask docs` writes it.

use vramscope_inference::{FindingKind, Recipe};
use vramscope_report::what_if::USUAL;

/// Compares a file with what `written` makes of it, or writes that.
fn hold(path: &str, written: impl Fn(&str) -> String) {
    let path = format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"));
    let found = std::fs::read_to_string(&path).expect("the file");
    let expected = written(&found);
    if std::env::var_os("UPDATE_DOCUMENTS").is_some() {
        std::fs::write(&path, &expected).expect("the file can be written");
    } else {
        assert!(found == expected, "{path} is stale: run `cargo xtask docs`");
    }
}

/// The text with `table` between two marks.
fn with(text: &str, begin: &str, table: &str, end: &str) -> String {
    let (before, rest) = text.split_once(begin).expect("the mark");
    let (_, after) = rest.split_once(end).expect("the end of the table");
    format!("{before}{begin}{table}{end}{after}")
}

#[test]
fn kinds_of_findings_in_python_are_current() {
    let kinds: Vec<String> =
        FindingKind::ALL.iter().map(|kind| format!("    \"{}\",\n", kind.name())).collect();
    hold("python/vramscope/reader/names.py", |text| {
        with(text, "FindingKind = Literal[\n", &kinds.concat(), "]\n")
    });
}

#[test]
fn usual_changes_are_changes() {
    for text in USUAL {
        assert_eq!(text.parse::<Recipe>().map(|recipe| recipe.to_string()).as_deref(), Ok(text));
    }
}
