//! Writes the colors of the page and of the HTML report as CSS variables, from the tables of units.
//!
//! `cargo xtask types` writes both files. Without `UPDATE_GENERATED` the tests fail if they are
//! stale.

use std::fmt::Write as _;
use vramscope_units::color::{
    CATEGORIES, Rgb, SURFACES, category_variables, css, label_on, light_dark,
};

const BEGIN: &str = "/* Categories, by `cargo xtask types` */\n";
const END: &str = "/* End of categories */\n";

/// Writes the file if it is asked for, and compares it.
fn check(path: &str, expected: &str) {
    let path = format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE_GENERATED").is_some() {
        std::fs::write(&path, expected).expect("the generated file can be written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == expected, "{path} is stale: run `cargo xtask types`");
}

/// The variables of both themes of the page.
fn sheet() -> String {
    let mut out = String::from(
        "/* Generated from crates/vramscope-units by `cargo xtask types`. Do not edit. */\n",
    );
    for (name, is_dark) in [("dark", true), ("light", false)] {
        let of = |light: Rgb, dark: Rgb| if is_dark { dark } else { light };
        writeln!(out, "\n.app[data-theme=\"{name}\"] {{").expect("writing to a string");
        for surface in SURFACES {
            let color = css(of(surface.light, surface.dark));
            // Hosts of the element may choose the accent.
            let value = match surface.name {
                "accent" => format!("var(--vramscope-accent, {color})"),
                _ => color,
            };
            writeln!(out, "  --{}: {value};", surface.name).expect("writing to a string");
        }
        writeln!(out, "  {}", category_variables(|light, dark| css(of(light, dark))))
            .expect("writing to a string");
        for category in CATEGORIES {
            let label = css(label_on(of(category.light, category.dark)));
            writeln!(out, "  --on-{}: {label};", category.name).expect("writing to a string");
        }
        out.push_str("}\n");
    }
    out
}

#[test]
fn typescript_colors_of_the_page_are_current() {
    check("web/viewer/src/generated/colors.css", &sheet());
}

#[test]
fn typescript_colors_of_the_report_are_current() {
    let path = "web/site/report/report.html";
    let text = std::fs::read_to_string(format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR")))
        .expect("the report's template");
    let begin = text.find(BEGIN).expect("the mark before the categories") + BEGIN.len();
    let end = text.find(END).expect("the mark behind the categories");
    let variables = category_variables(light_dark);
    let expected = format!("{}:root {{\n  {variables}\n}}\n{}", &text[..begin], &text[end..]);
    check(path, &expected);
}
