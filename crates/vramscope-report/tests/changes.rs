//! The tables of docs/what-if.md: `cargo xtask docs` writes them from the list of changes.

use vramscope_inference::{CHANGES, Change, Recipe};
use vramscope_report::what_if::USUAL;

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/what-if.md");

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

/// The text with `table` after a mark.
fn with(text: &str, mark: &str, table: &str) -> String {
    let mark = format!("<!-- {mark}: written by `cargo xtask docs` -->\n");
    let (before, rest) = text.split_once(&mark).expect("the mark");
    let (_, after) = rest.split_once("<!-- end -->\n").expect("the end of the table");
    format!("{before}{mark}{table}<!-- end -->\n{after}")
}

#[test]
fn tables_of_changes_are_current() {
    let found = std::fs::read_to_string(PATH).expect("the document");
    let rows: String = CHANGES.iter().map(|of| change(of)).collect();
    let table = format!("\n| change | what it does to the list | error |\n|---|---|---|\n{rows}\n");
    let expected = with(&found, "changes", &table);
    let rows: String =
        CHANGES.iter().filter(|of| !of.on[0].is_empty()).map(|of| is_on(of)).collect();
    let table = format!("\n| name | on | off |\n|---|---|---|\n{rows}\n");
    let expected = with(&expected, "is it on", &table);
    if std::env::var_os("UPDATE_DOCUMENTS").is_some() {
        std::fs::write(PATH, &expected).expect("the document can be written");
    } else {
        assert!(found == expected, "docs/what-if.md is stale: run `cargo xtask docs`");
    }
}

#[test]
fn usual_changes_are_changes() {
    for text in USUAL {
        assert_eq!(text.parse::<Recipe>().map(|recipe| recipe.to_string()).as_deref(), Ok(text));
    }
}
