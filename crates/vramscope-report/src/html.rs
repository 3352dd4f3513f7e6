//! The report of a device as HTML: what a page says without a script.
//!
//! The page around it has the styles. Names come from files, so every text is escaped, and no
//! attribute has a text of a file.

use crate::derived::Derived;
use crate::diagnostic::{self, Answer};
use crate::findings::{BlindSpotRecord, blind};
use crate::peak::{BandKind, stacks_at_peak};
use crate::summary::warnings;
use crate::target::{Target, slot_of};
use std::fmt::{self, Write as _};
use vramscope_inference::Category;
use vramscope_trace::slicing::{Budget, now};
use vramscope_trace::{Series, columns_of};
use vramscope_units::svg::Path;
use vramscope_units::{Bytes, acts, grouped};

/// The size of the curve.
const CURVE: [u32; 2] = [960, 200];

/// Columns of the curve.
const COLUMNS: u32 = 480;

/// Rows of the table of call stacks.
const STACKS: usize = 12;

/// Text in HTML, in an element or in an attribute.
#[inline(never)]
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if acts(c) => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[inline(never)]
fn push(out: &mut String, text: fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a String takes all text");
}

/// An element with a class and a text.
#[inline(never)]
fn put(out: &mut String, tag: &str, class: &str, text: &str) {
    open(out, tag, class);
    out.push_str(&escape(text));
    close(out, tag);
}

#[inline(never)]
fn open(out: &mut String, tag: &str, class: &str) {
    out.push('<');
    out.push_str(tag);
    if !class.is_empty() {
        out.push_str(" class=\"");
        out.push_str(class);
        out.push('"');
    }
    out.push('>');
}

#[inline(never)]
fn close(out: &mut String, tag: &str) {
    out.push_str("</");
    out.push_str(tag);
    out.push_str(">\n");
}

/// The report of one device: what is wrong, and the curve. `name` is that of the device among
/// others.
pub async fn device(target: Target<'_>, name: &str, budget: &mut Budget) -> String {
    use Derived::{Carving, Categories, Findings, Simulated, Steps};
    for what in [Carving, Categories, Steps, Findings, Simulated] {
        target.entry.derive(what, target.index, budget).await;
    }
    let out = &mut String::new();
    open(out, "section", "device");
    put(out, "h2", "", name);
    out.push_str(&diagnostic::html(&Answer::of_device(target, budget).await));
    curve(out, target, budget).await;
    close(out, "section");
    std::mem::take(out)
}

/// [`device`], at once, and what only the program says: how it was recorded (`about`), call stacks,
/// what could not be told.
pub fn whole_device(target: Target<'_>, name: &str, about: &str) -> String {
    now(async |budget| {
        let out = &mut device(target, name, budget).await;
        open(out, "section", "more");
        told(out, about);
        stacks(out, target, budget).await;
        let spots = blind::of_device(target, budget).await;
        let spots = spots.into_iter().map(|spot| BlindSpotRecord::from(spot).text);
        list(out, "Not looked for", &spots.collect::<Vec<_>>());
        faults(out, target);
        close(out, "section");
        std::mem::take(out)
    })
}

/// The curve of one device of a run, its call stacks and the warnings about it: the answer is about
/// the run. `about` is how it was recorded.
pub fn figures(target: Target<'_>, name: &str, about: &str) -> String {
    now(async |budget| {
        let out = &mut String::new();
        open(out, "section", "device");
        put(out, "h2", "", name);
        told(out, about);
        curve(out, target, budget).await;
        stacks(out, target, budget).await;
        faults(out, target);
        close(out, "section");
        std::mem::take(out)
    })
}

fn told(out: &mut String, about: &str) {
    if !about.is_empty() {
        put(out, "p", "detail", about);
    }
}

/// The warnings about a device.
fn faults(out: &mut String, target: Target<'_>) {
    let device = Some(target.device());
    let faults = warnings(target.entry, true).into_iter();
    let faults = faults.filter(|w| w.device.is_none() || w.device == device).map(|w| w.message);
    list(out, "Warnings", &faults.collect::<Vec<_>>());
}

#[inline(never)]
fn list(out: &mut String, title: &str, items: &[String]) {
    if items.is_empty() {
        return;
    }
    put(out, "h3", "", title);
    open(out, "ul", "notes");
    for item in items {
        put(out, "li", "", item);
    }
    close(out, "ul");
}

/// The tops of equal parts of a trace.
async fn columns(series: &Series, slots: u32, budget: &mut Budget) -> Vec<u64> {
    let count = COLUMNS.min(slots.max(1));
    let parts = columns_of(0..slots.into(), count);
    series.tops(parts.map(|part| part.start as u32..part.end as u32), budget).await
}

/// A stepped path over columns.
fn path(columns: &[u64], scale: u64, fill: bool) -> String {
    let [width, height] = CURVE.map(u64::from);
    let y =
        |value: u64| height - (u128::from(value) * u128::from(height) / u128::from(scale)) as u64;
    let mut path = Path::default();
    path.to("M0 ", (if fill { height } else { y(columns[0]) }) as f64);
    for (column, &value) in columns.iter().enumerate() {
        path.to("V", y(value) as f64);
        path.to("H", (width * (column as u64 + 1) / columns.len() as u64) as f64);
    }
    if !fill {
        return path.into();
    }
    path.to("V", height as f64);
    path.closed()
}

/// The curve of the trace, with its peak.
async fn curve(out: &mut String, target: Target<'_>, budget: &mut Budget) {
    let trace = target.trace();
    let slots = trace.slots();
    let reserved = trace.reserved(target.snapshot(), budget).await;
    let mut curves = Vec::with_capacity(2);
    for series in [&reserved, &trace.requested] {
        curves.push(columns(series, slots, budget).await);
    }
    let [reserved, requested] = &curves[..] else { return };
    let scale = reserved.iter().chain(requested).copied().max().unwrap_or(0);
    if slots < 2 || scale == 0 {
        return;
    }
    let [width, height] = CURVE;
    let x = |slot: u32| u64::from(width) * u64::from(slot) / u64::from(slots);
    let peak = slot_of(trace.requested_band.peak_event);
    let most = Bytes(trace.requested_band.peak.max(0) as u64);
    push(
        out,
        format_args!(
            "<figure><svg class=\"curve\" viewBox=\"0 0 {width} {height}\" \
         preserveAspectRatio=\"none\" role=\"img\" aria-label=\"memory over events\">\
         <path class=\"requested\" d=\"{}\"/><path class=\"reserved\" d=\"{}\"/>\
         <path class=\"peak\" d=\"M{} 0V{height}\"/>",
            path(requested, scale, true),
            path(reserved, scale, false),
            x(peak),
        ),
    );
    for oom in &trace.ooms {
        push(out, format_args!("<path class=\"oom\" d=\"M{} 0V{height}\"/>", x(oom.event.0 + 1)));
    }
    out.push_str("</svg><figcaption>");
    put(out, "span", "key requested", &format!("requested_bytes, peak {most}"));
    let whole = Bytes(trace.reserved_band.peak.max(0) as u64);
    put(out, "span", "key reserved", &format!("reserved_bytes, peak {whole}"));
    if !trace.ooms.is_empty() {
        let failed = format!("{} failed", grouped(trace.ooms.len() as u64));
        put(out, "span", "key oom", &failed);
    }
    put(out, "span", "end", &format!("{} events", grouped(u64::from(slots - 1))));
    out.push_str("</figcaption></figure>\n");
}

/// The call stacks that hold most at the peak.
async fn stacks(out: &mut String, target: Target<'_>, budget: &mut Budget) {
    let peak = stacks_at_peak(target, BandKind::Requested, Some(STACKS), budget).await;
    if peak.stacks.is_empty() {
        return;
    }
    put(out, "h3", "", "Call stacks at the peak");
    open(out, "table", "stacks");
    for row in &peak.stacks {
        open(out, "tr", "");
        put(out, "td", "number", &Bytes(row.bytes).to_string());
        let category = row.category.unwrap_or_default();
        let label = Category::parse(category).map_or(category, crate::text::category);
        put(out, "td", &format!("key {category}"), label);
        open(out, "td", "");
        out.push_str(&escape(&row.site));
        if let Some(source) = row.source {
            put(out, "code", "", source);
        }
        close(out, "td");
        close(out, "tr");
    }
    if peak.omitted > 0 {
        let rest = format!("and {} more", grouped(peak.omitted as u64));
        open(out, "tr", "");
        out.push_str("<td></td><td></td>");
        put(out, "td", "", &rest);
        close(out, "tr");
    }
    close(out, "table");
}
