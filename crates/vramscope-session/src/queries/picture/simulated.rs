//! The simulated reserved bytes over a picture of the timeline, and their label.

use super::super::what_if::AnsweredScenario;
use super::sheet::{CHAR_WIDTH, MARGINS, Sheet};
use crate::messages::AxisKind;
use std::fmt::Write as _;
use vramscope_layout::Surfaces;
use vramscope_report::{Derived, Target};
use vramscope_trace::slicing::Budget;

/// Columns of the line per pixel: a PNG has two pixels for each.
const COLUMNS_PER_PIXEL: u32 = 2;
/// The distance of the label from the edges, in pixels.
const PADDING: f64 = 8.0;
/// The width of the line's sample in the label, in pixels.
const SAMPLE: f64 = 14.0;

/// Draws the line and its label; nothing without a prediction.
pub(super) async fn draw(
    at: Target<'_>,
    question: &str,
    axis: AxisKind,
    surfaces: &Surfaces,
    sheet: &mut Sheet,
    budget: &mut Budget,
) {
    for &needed in Derived::WhatIf.needs() {
        at.entry.derive(needed, at.index, budget).await;
    }
    at.entry.derive(Derived::WhatIf, at.index, budget).await;
    let answered = AnsweredScenario::new(at, question, budget).await;
    let columns = sheet.width as u32 * COLUMNS_PER_PIXEL;
    let (first, tops) = answered.tops(at, axis, sheet.x, columns);
    if answered.card.needs.is_none() || tops.is_empty() {
        return;
    }
    let [line, ground, text] = [surfaces.simulated, surfaces.ground, surfaces.mark].map(super::css);
    let [low, high] = sheet.y;
    let mut path = String::new();
    let mut last = None;
    for (column, top) in (first..).zip(&tops) {
        let x = f64::from(column) / f64::from(COLUMNS_PER_PIXEL);
        let y = (high - *top as f64) / (high - low) * sheet.height;
        if last != Some(y) {
            match last {
                None => write!(path, "M{x:.1} {y:.1}"),
                Some(_) => write!(path, "H{x:.1}V{y:.1}"),
            }
            .expect("writing to a String cannot fail");
        }
        last = Some(y);
    }
    let end = f64::from(first + tops.len() as u32) / f64::from(COLUMNS_PER_PIXEL);
    let ([left, top, ..], width, height) = (MARGINS, sheet.width, sheet.height);
    // An inner document clips the line where the view does.
    sheet.put(format_args!(
        "<svg x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\"><path \
         class=\"simulated\" fill=\"none\" stroke=\"{line}\" stroke-width=\"2\" \
         stroke-linejoin=\"round\" d=\"{path}H{end:.1}\"/></svg>"
    ));
    let label = match answered.card.change.as_str() {
        "" => "reserved, simulated".to_owned(),
        change => format!("reserved, simulated: {change}"),
    };
    let room = ((width - SAMPLE - 3.0 * PADDING) / CHAR_WIDTH) as usize;
    let (x, y) = (left + width - PADDING, top + 16.0);
    sheet.put(format_args!(
        "<path d=\"M{x} {}h-{SAMPLE}\" stroke=\"{line}\" stroke-width=\"2\"/>",
        y - 4.0
    ));
    // A rim in the color of the background keeps the text readable over blocks.
    let attributes = format!(
        "fill=\"{text}\" text-anchor=\"end\" stroke=\"{ground}\" stroke-width=\"4\" \
         stroke-linejoin=\"round\" paint-order=\"stroke\""
    );
    sheet.text(x - SAMPLE - 6.0, y, &attributes, &shortened(&label, room));
}

/// The text with at most `room` characters.
fn shortened(text: &str, room: usize) -> String {
    match text.char_indices().nth(room) {
        None => text.to_owned(),
        Some(_) => text.chars().take(room.saturating_sub(1)).chain(['\u{2026}']).collect(),
    }
}
