//! What follows the lists of findings and changes elsewhere: `cargo xtask docs` writes it.

use vramscope_inference::{CHANGES, Change, FindingKind, Recipe};
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

fn change(change: &Change) -> String {
    let error = match change.error_percent {
        _ if !change.is_predicted() => String::new(),
        Some(error) => format!("{error} %"),
        None => "not measured".to_owned(),
    };
    format!("| `{}` | {} | {error} |\n", change.form, change.does)
}

fn is_on(change: &Change) -> String {
    let [on, off] = change.on;
    format!("| `{}` | {on} | {off} |\n", change.listed())
}

/// The text with `table` between two marks.
fn with(text: &str, begin: &str, table: &str, end: &str) -> String {
    let (before, rest) = text.split_once(begin).expect("the mark");
    let (_, after) = rest.split_once(end).expect("the end of the table");
    format!("{before}{begin}{table}{end}{after}")
}

#[test]
fn tables_of_changes_are_current() {
    let table = |text: &str, name: &str, head: &str, rows: String| {
        let begin = format!("<!-- {name}: written by `cargo xtask docs` -->\n");
        with(text, &begin, &format!("\n{head}{rows}\n"), "<!-- end -->\n")
    };
    hold("docs/what-if.md", |text| {
        let rows = CHANGES.iter().map(|of| change(of)).collect();
        let head = "| change | what it does to the list | error |\n|---|---|---|\n";
        let text = table(text, "changes", head, rows);
        let rows = CHANGES.iter().filter(|of| !of.on[0].is_empty()).map(|of| is_on(of)).collect();
        table(&text, "is it on", "| name | on | off |\n|---|---|---|\n", rows)
    });
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
