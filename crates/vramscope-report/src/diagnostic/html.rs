//! An answer as a piece of HTML, for reports and notebooks: without scripts, in light and dark.
//!
//! Names come from files, so every text is escaped, and no attribute has a text of a file.

use super::{Answer, Bar, Diagnostic, Fact, FigureRow, LeverRow, LineRow, RankRow};
use crate::html::escape;
use std::fmt::Write as _;
use vramscope_inference::capitalized;
use vramscope_units::color::{CATEGORIES, category_variables, light_dark, surface_of};
use vramscope_units::grouped;

/// The styles of [`html`], with the colors of the page. They follow the color scheme around them.
pub fn styles() -> String {
    let [danger, warn] = ["danger", "warn"].map(|name| {
        let of = surface_of(name);
        format!("--{name}: {};", light_dark(of.light, of.dark))
    });
    let categories = category_variables(light_dark);
    let mut out = format!(".vramscope-answer {{\n  {categories}\n  {danger}\n  {warn}\n}}\n");
    for of in CATEGORIES {
        writeln!(out, ".vramscope-answer .{0} {{ --of: var(--{0}); }}", of.name)
            .expect("a String takes all text");
    }
    out.push_str(include_str!("card.css"));
    out
}

/// The width of a bar.
const BAR: u64 = 960;

/// The answer in HTML with its styles, for a page of others.
pub fn card(answer: &Answer) -> String {
    format!("<style>\n{}</style>\n{}", styles(), html(answer))
}

/// The answer in HTML. The page around it has the styles.
pub fn html(answer: &Answer) -> String {
    let mut out = String::from("<div class=\"vramscope-answer\">\n");
    if let Some(dry) = &answer.dry {
        put(&mut out, "p", "nothing", &capitalized(dry));
    }
    if let Some(empty) = &answer.empty {
        put(&mut out, "p", "nothing", &capitalized(empty));
    }
    let (first, others) = answer.parts();
    if first.is_empty() {
        peak(&mut out, answer);
    }
    for one in first {
        finding(&mut out, one);
    }
    for process in &answer.processes {
        put(&mut out, "p", "", process);
    }
    ranks(&mut out, &answer.ranks);
    if !first.is_empty() {
        peak(&mut out, answer);
    }
    rows(&mut out, &answer.levers);
    for one in others {
        finding(&mut out, one);
    }
    if answer.omitted > 0 {
        put(&mut out, "p", "more", &format!("and {} more", grouped(answer.omitted as u64)));
    }
    for help in &answer.help {
        out.push_str("<p class=\"help\">");
        put(&mut out, "code", "", help);
        out.push_str("</p>\n");
    }
    for note in &answer.notes {
        put(&mut out, "p", "note", note);
    }
    out.push_str("</div>\n");
    out
}

fn peak(out: &mut String, answer: &Answer) {
    if let Some((words, memory)) = &answer.peak {
        put(out, "p", "peak", &capitalized(words));
        bar(out, memory);
    }
}

fn put(out: &mut String, tag: &str, class: &str, text: &str) {
    let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
    writeln!(out, "<{tag}{class}>{}</{tag}>", escape(text)).expect("a String takes all text");
}

fn finding(out: &mut String, one: &Diagnostic) {
    let level = one.level.name();
    let headline = escape(&one.headline);
    // The first words are the cause.
    write!(out, "<article class=\"{level}\">\n<h4>{headline} <b>{level}[{}]</b>", one.kind)
        .expect("a String takes all text");
    out.push_str("</h4>\n<p class=\"place\">");
    // Without a file it is a place in a log, not in code.
    let tag = if one.file.is_empty() { "span" } else { "code" };
    if !one.site.is_empty() {
        put(out, tag, "", &one.place());
    }
    if !one.file.is_empty() {
        put(out, "small", "", &one.file);
    }
    out.push_str("</p>\n");
    if let Some((number, source)) = &one.source {
        put(out, "pre", "", &format!("{number} | {source}"));
    }
    if !one.what.is_empty() {
        put(out, "p", "what", &one.what);
    }
    if let Some(memory) = &one.bar {
        put(out, "p", "peak", &memory.title);
        bar(out, memory);
    }
    for Fact { label, text } in &one.facts {
        let label = label.name();
        out.push_str("<p>");
        if !label.is_empty() {
            put(out, "b", "", &format!("{label}:"));
        }
        out.push_str(&escape(text));
        out.push_str("</p>\n");
    }
    rows(out, &one.fixes);
    for look in &one.looks {
        let site = if look.site.is_empty() { String::new() } else { format!("{}: ", look.site) };
        put(out, "p", "look", &format!("{site}{}", look.text));
    }
    figures(out, &one.figures);
    if !one.detail.is_empty() {
        put(out, "p", "detail", &one.detail);
    }
    out.push_str("</article>\n");
}

fn figures(out: &mut String, rows: &[FigureRow]) {
    if rows.is_empty() {
        return;
    }
    out.push_str(
        "<details>\n<summary>What each figure means</summary>\n<table class=\"figures\">\n",
    );
    for row in rows {
        out.push_str("<tr>");
        put(out, "th", "", row.name);
        put(out, "td", "number", &row.bytes);
        put(out, "td", "", &row.meaning);
        out.push_str("</tr>\n");
    }
    out.push_str("</table>\n</details>\n");
}

/// A bar to scale, with its legend.
fn bar(out: &mut String, bar: &Bar) {
    let whole = bar.whole() + bar.request.map_or(0, |bytes| bytes.0);
    if whole == 0 {
        return;
    }
    let x = |bytes: u64| (u128::from(bytes) * u128::from(BAR) / u128::from(whole)) as u64;
    write!(
        out,
        "<svg class=\"bar\" viewBox=\"0 0 {BAR} 16\" preserveAspectRatio=\"none\" \
         aria-hidden=\"true\">"
    )
    .expect("a String takes all text");
    let mut end = 0;
    let mut part = |name: &str, bytes: u64| {
        let from = x(end);
        end += bytes;
        write!(out, "<path class=\"part {name}\" d=\"M{from} 0H{}V16H{from}Z\"/>", x(end))
            .expect("a String takes all text");
    };
    for one in &bar.parts {
        part(one.name, one.bytes.0);
    }
    if let Some(request) = bar.request {
        part("request", request.0);
    }
    out.push_str("</svg>\n<p class=\"legend\">");
    for one in bar.legend() {
        put(out, "span", &format!("key {}", one.name), &format!("{} {}", one.label, one.bytes));
    }
    if let Some(request) = bar.request {
        put(out, "span", "key request", &format!("asked {request}"));
    }
    out.push_str("</p>\n");
    for line in &bar.lines {
        let LineRow { bytes, share, site, text } = line;
        put(out, "p", "what", &format!("{bytes} ({share}) {site}: {text}"));
    }
}

fn rows(out: &mut String, rows: &[LeverRow]) {
    if rows.is_empty() {
        return;
    }
    out.push_str("<table class=\"fixes\">\n");
    for row in rows {
        out.push_str(if row.helps { "<tr>" } else { "<tr class=\"no\">" });
        put(out, "th", "", &row.label);
        put(out, "td", "", &row.text);
        for (_, class, text) in LeverRow::columns(rows) {
            let fits = if row.verdict == "fits" && class == "outcome" { " fits" } else { "" };
            put(out, "td", &format!("{class}{fits}"), text(row));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</table>\n");
}

fn ranks(out: &mut String, rows: &[RankRow]) {
    if rows.is_empty() {
        return;
    }
    out.push_str("<table class=\"ranks\">\n<tr>");
    for head in ["rank", "peak", "reserved", "alive at the end", ""] {
        put(out, "th", "", head);
    }
    out.push_str("</tr>\n");
    for row in rows {
        out.push_str("<tr>");
        put(out, "td", "", &row.ranks);
        for bytes in &row.bytes {
            put(out, "td", "number", bytes);
        }
        let level = row.level.map_or("", super::Level::name);
        put(out, "td", level, level);
        out.push_str("</tr>\n");
    }
    out.push_str("</table>\n");
}
