//! The small pictures of what proves a finding.

use super::shares::fraction;
use crate::messages::views::{Anchor, CHART, ChartLabel, ChartShape, FindingChart, ShapeKind};
use vramscope_inference::Phase;
use vramscope_report::proof::{Proof, ProofForm};
use vramscope_units::svg::Path;

const WIDTH: f64 = CHART[0] as f64;
const HEIGHT: f64 = CHART[1] as f64;

/// The top of the plot, below the labels of values.
const TOP: f64 = 16.0;

/// The bottom of the plot, above the labels of the axis.
const BOTTOM: f64 = HEIGHT - 16.0;

/// The distance of a base line of text from what is below it.
const ABOVE: f64 = 5.0;

/// The maximum number of characters of a call site, which fill the width.
const MAX_SITE: usize = 40;

/// The picture of a proof.
pub(super) fn chart(proof: &Proof) -> FindingChart {
    let mut chart = FindingChart {
        title: proof.title.clone(),
        text: proof.text.clone(),
        ..FindingChart::default()
    };
    match proof.form {
        ProofForm::Columns => columns(&mut chart, proof),
        ProofForm::Parts => parts(&mut chart, proof),
        ProofForm::Curve => curve(&mut chart, proof),
        ProofForm::Lives => lives(&mut chart, proof),
    }
    chart
}

fn put(chart: &mut FindingChart, kind: ShapeKind, path: String, value: Option<u64>) {
    chart.shapes.push(ChartShape { kind, path, value: value.map(|value| value.to_string()) });
}

fn label(chart: &mut FindingChart, [x, y]: [f64; 2], anchor: Anchor, text: &str, strong: bool) {
    let (x, y) = (x as u32, y as u32);
    chart.labels.push(ChartLabel { text: text.to_owned(), x, y, anchor, strong });
}

/// A path of commands with their numbers.
fn path(parts: &[(&str, f64)]) -> String {
    let mut path = Path::default();
    for &(command, number) in parts {
        path.to(command, number);
    }
    path.into()
}

fn rect([x0, x1]: [f64; 2], [y0, y1]: [f64; 2]) -> String {
    path(&[("M", x0), (" ", y0), ("H", x1), ("V", y1), ("H", x0)]) + "Z"
}

/// A line over the whole width.
fn across(y: f64) -> String {
    path(&[("M0 ", y), ("H", WIDTH)])
}

/// Slanted lines in a rectangle.
fn hatch([x0, x1]: [f64; 2], [y0, y1]: [f64; 2]) -> String {
    const STEP: f64 = 5.0;
    let mut lines = String::new();
    let height = y1 - y0;
    // Each line goes from the bottom at x to the top at x + height, cut at both sides.
    let mut x = x0 - height + STEP;
    while x < x1 {
        let (from, to) = (x.max(x0), (x + height).min(x1));
        if from < to {
            let y = |at: f64| y1 - (at - x);
            lines += &path(&[("M", from), (" ", y(from)), ("L", to), (" ", y(to))]);
        }
        x += STEP;
    }
    lines
}

/// The height of a value on a scale.
fn y(value: u64, scale: u64) -> f64 {
    BOTTOM - (BOTTOM - TOP) * fraction(value, scale)
}

fn is_marked(proof: &Proof, index: usize) -> bool {
    proof.marked.contains(&(index as u32))
}

fn columns(chart: &mut FindingChart, proof: &Proof) {
    let count = proof.values.len().max(1) as f64;
    let line = proof.line.as_ref().map(|line| line.value);
    let scale = proof.values.iter().copied().chain(line).max().unwrap_or(0);
    let pitch = WIDTH / count;
    // Columns are at most as wide as high, so that few of them do not fill the box.
    let width = (pitch - if pitch > 6.0 { 2.0 } else { 0.5 }).min(BOTTOM - TOP);
    let middle = |i: usize| (i as f64 + 0.5) * pitch;
    put(chart, ShapeKind::Axis, across(BOTTOM), None);
    for (i, &value) in proof.values.iter().enumerate() {
        let x = middle(i) - width / 2.0;
        let top = y(value, scale).min(if value > 0 { BOTTOM - 1.0 } else { BOTTOM });
        let kind = if is_marked(proof, i) { ShapeKind::Marked } else { ShapeKind::Value };
        put(chart, kind, rect([x, x + width], [top, BOTTOM]), Some(value));
    }
    if let Some(line) = &proof.line {
        let at = y(line.value, scale);
        put(chart, ShapeKind::Line, across(at), Some(line.value));
    }
    let last = proof.values.len().saturating_sub(1);
    let Some(highest) = (0..=last).rev().max_by_key(|&i| proof.values.get(i)) else { return };
    let Some(&value) = proof.values.get(highest) else { return };
    let (x, anchor) = within(middle(highest));
    label(chart, [x, TOP - ABOVE], anchor, &proof.unit.text(value), true);
    if let Some(line) = &proof.line {
        let text = format!("{} {}", line.label, proof.unit.text(line.value));
        let (x, anchor) =
            if middle(highest) < WIDTH / 2.0 { (WIDTH, Anchor::End) } else { (0.0, Anchor::Start) };
        label(chart, [x, TOP - ABOVE], anchor, &text, false);
    }
    label(chart, [0.0, HEIGHT - 4.0], Anchor::Start, &proof.labels[0], false);
    if last > 0 {
        label(chart, [WIDTH, HEIGHT - 4.0], Anchor::End, &proof.labels[last], false);
    }
    // A rank in the middle is named as well.
    if let [only] = proof.marked[..]
        && (0.15..0.85).contains(&(middle(only as usize) / WIDTH))
    {
        let at = [middle(only as usize), HEIGHT - 4.0];
        label(chart, at, Anchor::Middle, &proof.labels[only as usize], true);
    }
}

/// Where a label at a place is anchored, so that it is not cut.
fn within(x: f64) -> (f64, Anchor) {
    if x < WIDTH * 0.2 {
        (0.0, Anchor::Start)
    } else if x > WIDTH * 0.8 {
        (WIDTH, Anchor::End)
    } else {
        (x, Anchor::Middle)
    }
}

fn parts(chart: &mut FindingChart, proof: &Proof) {
    const BAR: [f64; 2] = [20.0, 46.0];
    const ROW: f64 = 16.0;
    let whole: u64 = proof.values.iter().sum();
    let mut end = 0;
    for (i, &value) in proof.values.iter().enumerate() {
        let from = fraction(end, whole) * WIDTH;
        end += value;
        let x = [from, (fraction(end, whole) * WIDTH).max(from + 1.0)];
        let is_free = is_marked(proof, i);
        put(chart, part_kind(i, is_free), rect(x, BAR), Some(value));
        if is_free {
            put(chart, ShapeKind::Hatch, hatch(x, BAR), None);
        }
        // Two columns of names below, from top to bottom.
        let (column, row) = ((i % 2) as f64, (i / 2) as f64);
        let (left, base) = (column * WIDTH / 2.0, BAR[1] + 18.0 + row * ROW);
        let swatch = ([left, left + 8.0], [base - 8.0, base]);
        put(chart, part_kind(i, is_free), rect(swatch.0, swatch.1), None);
        if is_free {
            put(chart, ShapeKind::Hatch, hatch(swatch.0, swatch.1), None);
        }
        let text = format!("{} {}", proof.labels[i], proof.unit.text(value));
        label(chart, [left + 13.0, base], Anchor::Start, &text, is_free);
    }
    if let Some(line) = &proof.line {
        let at = fraction(line.value.min(whole), whole) * WIDTH;
        put(chart, ShapeKind::Line, path(&[("M", at), (" ", 14.0), ("V", 50.0)]), Some(line.value));
        let (x, anchor) = within(at);
        let text = format!("{} {}", line.label, proof.unit.text(line.value));
        label(chart, [x, 10.0], anchor, &text, false);
    }
}

/// The first part is what is in use. Further ones that do not show the finding are paler.
fn part_kind(index: usize, is_marked: bool) -> ShapeKind {
    match index {
        _ if is_marked => ShapeKind::Free,
        0 => ShapeKind::Used,
        _ => ShapeKind::Other,
    }
}

fn curve(chart: &mut FindingChart, proof: &Proof) {
    let count = proof.values.len().max(1) as f64;
    // The request has a column of its own behind the last state.
    let width = WIDTH * 0.93;
    let x = |i: usize| i as f64 / count * width;
    let reserved = proof.reserved.last().copied().unwrap_or(0);
    let asked = reserved.saturating_add(proof.request.unwrap_or(0));
    let line = proof.line.as_ref().map(|line| line.value);
    let all = proof.values.iter().chain(&proof.reserved).copied();
    let scale = all.chain([asked]).chain(line).max().unwrap_or(0);
    let steps = |values: &[u64]| {
        let step = |(i, &value): (usize, &u64)| {
            let command = if i == 0 { "M0 " } else { "V" };
            path(&[(command, y(value, scale)), ("H", x(i + 1))])
        };
        values.iter().enumerate().map(step).collect::<String>()
    };
    let requested = steps(&proof.values);
    let last = proof.values.last().copied();
    put(chart, ShapeKind::Value, requested + &path(&[("V", BOTTOM)]) + "H0Z", last);
    put(
        chart,
        ShapeKind::Reserved,
        steps(&proof.reserved) + &path(&[("H", WIDTH)]),
        Some(reserved),
    );
    if let Some(request) = proof.request {
        let (sides, ends) = ([width, WIDTH], [y(asked, scale), y(reserved, scale)]);
        put(chart, ShapeKind::Request, rect(sides, ends), Some(request));
        put(chart, ShapeKind::RequestHatch, hatch(sides, ends), None);
    }
    if let Some(line) = &proof.line {
        put(chart, ShapeKind::Limit, across(y(line.value, scale)), Some(line.value));
        let text = format!("{} {}", proof.unit.text(line.value), line.label);
        label(chart, [0.0, TOP - ABOVE], Anchor::Start, &text, false);
    }
    put(chart, ShapeKind::Axis, across(BOTTOM), None);
    if let Some(request) = proof.request {
        let text = format!("{} asked for", proof.unit.text(request));
        label(chart, [WIDTH, TOP - ABOVE], Anchor::End, &text, true);
    }
    for (text, at) in proof.labels.iter().zip([(0.0, Anchor::Start), (WIDTH, Anchor::End)]) {
        label(chart, [at.0, HEIGHT - 4.0], at.1, text, false);
    }
    let names = format!("requested {}", proof.unit.text(last.unwrap_or(0)));
    let reserved = format!("reserved {}", proof.unit.text(reserved));
    label(
        chart,
        [WIDTH / 2.0, HEIGHT - 4.0],
        Anchor::Middle,
        &format!("{names}, {reserved}"),
        false,
    );
}

fn lives(chart: &mut FindingChart, proof: &Proof) {
    const PITCH: f64 = 27.0;
    let from = proof.spans.iter().map(|span| span[0]).min().unwrap_or(0);
    let to = proof.spans.iter().map(|span| span[1]).max().unwrap_or(1);
    // Room at both sides shows that the lives begin and end within the picture.
    let room = (to - from) / 20 + 1;
    let (left, right) = (from.saturating_sub(room), to.saturating_add(room));
    let whole = u64::from(right - left);
    let x = |slot: u32| fraction(u64::from(slot.clamp(left, right) - left), whole) * WIDTH;
    for ground in &proof.ground {
        let path = rect([x(ground.from), x(ground.to)], [0.0, BOTTOM]);
        let kind = match ground.phase {
            Phase::Forward | Phase::Evaluation => ShapeKind::Forward,
            Phase::Backward => ShapeKind::Backward,
            Phase::Optimizer => ShapeKind::Optimizer,
            Phase::Other => continue,
        };
        put(chart, kind, path, None);
    }
    let phases = [
        (ShapeKind::Forward, Phase::Forward),
        (ShapeKind::Backward, Phase::Backward),
        (ShapeKind::Optimizer, Phase::Optimizer),
    ];
    for (i, (kind, phase)) in phases.into_iter().enumerate() {
        if chart.shapes.iter().any(|known| known.kind == kind) {
            let left = i as f64 * 86.0;
            put(chart, kind, rect([left, left + 9.0], [HEIGHT - 12.0, HEIGHT - 3.0]), None);
            label(chart, [left + 14.0, HEIGHT - 4.0], Anchor::Start, phase.name(), false);
        }
    }
    for (i, (span, &value)) in proof.spans.iter().zip(&proof.values).enumerate() {
        let top = i as f64 * PITCH + 15.0;
        let bar = rect([x(span[0]), x(span[1]).max(x(span[0]) + 1.0)], [top, top + 8.0]);
        put(chart, ShapeKind::Marked, bar, Some(value));
        let site = &proof.labels[i];
        let cut = site.char_indices().nth(MAX_SITE).map(|(end, _)| format!("{}…", &site[..end]));
        let text = format!("{} {}", proof.unit.text(value), cut.as_ref().unwrap_or(site));
        label(chart, [4.0, top - 4.0], Anchor::Start, &text, true);
    }
    if let Some(moment) = proof.moment {
        put(chart, ShapeKind::Line, path(&[("M", x(moment)), (" ", 0.0), ("V", BOTTOM)]), None);
    }
    put(chart, ShapeKind::Axis, across(BOTTOM), None);
}
