//! The picture of a plot as an SVG document with labels and a background.
//!
//! It is drawn from the tiles that the page would draw at this size, so both merge the same blocks.

mod sheet;
mod simulated;

use self::sheet::{
    CHAR_WIDTH, MARGINS, MAX_SIDE, Sheet, X_LABEL_SPACING, Y_LABEL_SPACING, escaped,
};
use super::{PartialTile, Queries, Subject, TileStep, grouped};
use crate::derived::DerivedBuilder;
use crate::loaded::breaks;
use crate::messages::views::{Layer, Query, ROW_UNITS};
use crate::messages::{AxisBreak, AxisKind, TILE_COLUMNS, TILE_ROWS, TileKey};
use crate::scheduler::SLICE;
use std::cmp::Reverse;
use std::fmt::Write as _;
use vramscope_layout::{
    Axis, Color, HATCH_GAP, PALETTE_LEN, Palette, Strips, Surfaces, Theme, View,
};
use vramscope_report::device_name;
use vramscope_trace::Cut;
use vramscope_trace::slicing::Budget;
use vramscope_units::{TimeBreak, broken_time_ticks, byte_ticks, event_ticks};

/// The height of a label in a band, in CSS pixels.
const LABEL_HEIGHT: f64 = 9.0;

/// The SVG document; empty for an unknown device, an invalid view or another query.
pub(super) async fn picture(on: &Subject, query: &Query, budget: &mut Budget) -> String {
    // Separate caches, because the page draws its own tiles meanwhile.
    let queries = &mut Queries::default();
    let Query::Picture { layer, axis, x0, x1, y0, y1, width, height, dark, simulated } = query
    else {
        return String::new();
    };
    let is_valid = [x0, x1, y0, y1].iter().all(|v| v.is_finite()) && x0 < x1 && y0 < y1;
    let (width, height) = ((*width).clamp(1, MAX_SIDE), (*height).clamp(1, MAX_SIDE));
    if !is_valid {
        return String::new();
    }
    let at = on.at();
    let theme = if *dark { Theme::Dark } else { Theme::Light };
    let (palette, surfaces) = (Palette::new(theme), Surfaces::new(theme));
    let (out, [width, height]) = (String::new(), [width, height].map(f64::from));
    let mut sheet = Sheet { out, x: [*x0, *x1], y: [*y0, *y1], width, height, palette };
    let (all_width, all_height) =
        (sheet.width + MARGINS[0] + MARGINS[2], sheet.height + MARGINS[1] + MARGINS[3]);
    let (background, text_color) = (css(surfaces.ground), css(surfaces.mark));
    let name = vramscope_report::text::file_name(at.path);
    sheet.put(format_args!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{all_width}\" height=\"{all_height}\" \
         viewBox=\"0 0 {all_width} {all_height}\" font-family=\"system-ui, sans-serif\" \
         font-size=\"11\">"
    ));
    sheet.put(format_args!(
        "<title>{}</title>",
        escaped(&format!("{name}, {}", device_name(at.device())))
    ));
    sheet.put(format_args!(
        "<rect width=\"{all_width}\" height=\"{all_height}\" fill=\"{background}\"/>"
    ));
    let caption = caption(layer, at.entry.pools(at.index).is_some());
    let head = format!("{name}, {}: {caption}", device_name(at.device()));
    sheet.text(MARGINS[0], 20.0, &format!("fill=\"{text_color}\" font-size=\"13\""), &head);
    if matches!(layer, Layer::Timeline { .. }) {
        let line = css(surfaces.grid);
        for tick in byte_ticks(*y0, *y1, (sheet.height / Y_LABEL_SPACING).max(1.0) as usize) {
            let y = sheet.px_y(tick.value);
            let right = MARGINS[0] + sheet.width;
            sheet.put(format_args!(
                "<path d=\"M{} {y:.1}H{right}\" stroke=\"{line}\"/>",
                MARGINS[0]
            ));
            sheet.text(
                MARGINS[0] - 8.0,
                y + 4.0,
                &format!("fill=\"{text_color}\" text-anchor=\"end\""),
                &tick.text,
            );
        }
    }
    strips(queries, on, *axis, layer, &mut sheet, budget).await;
    if let Layer::Timeline { group, search, .. } = layer
        && let Some(grouped) = queries.grouped(on, *group)
    {
        let (x, y, size) = (sheet.x, sheet.y, [sheet.width, sheet.height]);
        let (view, letter) = (View { x, y, size }, [CHAR_WIDTH, LABEL_HEIGHT]);
        for label in grouped::labels(at, &grouped, *axis, view, letter, search, budget).await {
            let x = sheet.px_x(f64::midpoint(label.x.0, label.x.1));
            let y = sheet.px_y(f64::midpoint(label.y.0, label.y.1)) + 4.0;
            // A casing keeps the text readable over every color.
            let style = format!(
                "fill=\"{text_color}\" stroke=\"{background}\" stroke-width=\"3\" \
                 stroke-linejoin=\"round\" paint-order=\"stroke\" text-anchor=\"middle\""
            );
            sheet.text(x, y, &style, &label.text);
        }
    }
    if let (Layer::Timeline { .. }, Some(question)) = (layer, simulated) {
        simulated::draw(at, question, *axis, &surfaces, &mut sheet, budget).await;
    }
    if !matches!(layer, Layer::Flame { .. } | Layer::Map { .. })
        && let Some(axis) = Axis::new(at.trace(), *axis)
    {
        let max_labels = (sheet.width / X_LABEL_SPACING).max(1.0) as usize;
        let origin = axis.origin() as f64;
        let (low, high) = (x0 - origin, x1 - origin);
        let last = axis.extent() as f64 - origin;
        let ticks = match query_axis(query) {
            AxisKind::Event => event_ticks(low.max(0.0), high.min(last - 1.0), max_labels),
            AxisKind::Time => {
                let breaks: Vec<TimeBreak> =
                    axis.cuts().iter().map(|cut| time_break(*cut)).collect();
                broken_time_ticks(low.max(-origin), high.min(last), max_labels, &breaks)
            }
            AxisKind::Weight => Vec::new(),
        };
        if query_axis(query) == AxisKind::Time {
            draw_breaks(&breaks(at.trace()), &surfaces, &mut sheet);
        }
        let y = MARGINS[1] + sheet.height + 17.0;
        for tick in ticks {
            let x = sheet.px_x(tick.value + origin);
            if x + tick.text.len() as f64 * CHAR_WIDTH / 2.0 > all_width {
                continue;
            }
            sheet.text(x, y, &format!("fill=\"{text_color}\" text-anchor=\"middle\""), &tick.text);
        }
    }
    labels(queries, on, layer, &mut sheet, &text_color);
    sheet.put(format_args!("</svg>"));
    sheet.out
}

/// A cut as a break of the axis, from the window's start.
fn time_break(cut: Cut) -> TimeBreak {
    let time = (cut.to - cut.from) as f64;
    TimeBreak { x0: cut.at as f64, x1: (cut.at + cut.width) as f64, time }
}

/// Marks where the time axis takes less room than its time, as the page does: a pale stretch
/// between dashed lines, with its time.
fn draw_breaks(breaks: &[AxisBreak], surfaces: &Surfaces, sheet: &mut Sheet) {
    let (ground, line, text_color) = (css(surfaces.ground), css(surfaces.grid), css(surfaces.mark));
    let (top, height) = (MARGINS[1], sheet.height);
    let [x0, x1] = sheet.x;
    let bottom = top + height;
    for part in breaks.iter().filter(|part| part.x0 < x1 && part.x1 > x0) {
        let (left, right) = (sheet.px_x(part.x0), sheet.px_x(part.x1));
        sheet.put(format_args!(
            "<g class=\"break\"><rect x=\"{left:.1}\" y=\"{top}\" width=\"{:.1}\" \
             height=\"{height}\" fill=\"{ground}\" fill-opacity=\"0.7\"/><path d=\"M{left:.1} \
             {top}V{bottom}M{right:.1} {top}V{bottom}\" stroke=\"{line}\" \
             stroke-dasharray=\"3 3\"/>",
            right - left
        ));
        let style = format!(
            "fill=\"{text_color}\" stroke=\"{ground}\" stroke-width=\"3\" \
             stroke-linejoin=\"round\" paint-order=\"stroke\" text-anchor=\"middle\""
        );
        sheet.text(f64::midpoint(left, right), bottom - 5.0, &style, &part.text);
        sheet.put(format_args!("</g>"));
    }
}

fn css([r, g, b, _]: [u8; 4]) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

fn query_axis(query: &Query) -> AxisKind {
    match query {
        Query::Picture { axis, .. } => *axis,
        _ => AxisKind::Event,
    }
}

fn caption(layer: &Layer, has_pools: bool) -> String {
    match layer {
        Layer::Timeline { bands, .. } => {
            let lines = [
                ("reserved bytes", bands.reserved),
                ("active bytes", bands.active),
                ("allocated bytes", bands.allocated),
                ("private pools", bands.pools && has_pools),
            ];
            let drawn: Vec<_> =
                lines.into_iter().filter_map(|(name, is_drawn)| is_drawn.then_some(name)).collect();
            if drawn.is_empty() {
                "requested bytes by block".to_owned()
            } else {
                format!("requested bytes by block; lines: {}", drawn.join(", "))
            }
        }
        Layer::Outline {} => "requested bytes".to_owned(),
        Layer::Segments { .. } => "segments and their blocks".to_owned(),
        Layer::Flame { .. } => "call stacks".to_owned(),
        Layer::Map { .. } => "map of the segments".to_owned(),
    }
}

/// Draws all strips in view, one path for each color. Lines are drawn over blocks.
async fn strips(
    queries: &mut Queries,
    on: &Subject,
    axis: AxisKind,
    layer: &Layer,
    sheet: &mut Sheet,
    budget: &mut Budget,
) {
    let [x0, x1] = sheet.x.map(|v| v.max(0.0));
    let [y0, y1] = sheet.y.map(|v| v.max(0.0));
    let exact = |k: u8| f64::from(k).exp2();
    let per_pixel =
        [(sheet.x[1] - sheet.x[0]) / sheet.width, (sheet.y[1] - sheet.y[0]) / sheet.height];
    // The page's choice of tiles: columns of at least one pixel, rows of at most one pixel.
    let kx = (0..48).find(|&k| exact(k) >= per_pixel[0]).unwrap_or(48);
    let ky = (0..48).take_while(|&k| exact(k) <= per_pixel[1]).last().unwrap_or(0);
    let (w, h) = (f64::from(TILE_COLUMNS) * exact(kx), f64::from(TILE_ROWS) * exact(ky));
    let mut paths: Vec<(Color, String)> = Vec::new();
    // The index in `paths` for each color word, once plain and once hatched.
    let mut path_of: Vec<Option<usize>> = vec![None; 2 * PALETTE_LEN];
    for iy in (y0 / h) as u32..(y1 / h).ceil() as u32 {
        for ix in (x0 / w) as u32..(x1 / w).ceil() as u32 {
            let key = TileKey { kx, ky, ix, iy };
            let Some(tile) = tile(queries, on, axis, layer, key, budget).await else {
                continue;
            };
            for (position, &word) in tile.positions.iter().zip(&tile.colors) {
                let color = Color::from_word(word);
                if color == Color::CASING {
                    continue;
                }
                let [a, b, c, d] = position.map(f64::from);
                let at =
                    |column: f64| (f64::from(ix) * f64::from(TILE_COLUMNS) + column) * exact(kx);
                let up = |row: f64| (f64::from(iy) * f64::from(TILE_ROWS) + row) * exact(ky);
                let (left, right) = (sheet.px_x(at(a)), sheet.px_x(at(c)));
                let (top, bottom) = (sheet.px_y(up(d)), sheet.px_y(up(b)));
                let (is_wide, is_high) = (right - left >= 0.05, bottom - top >= 0.05);
                // A line outside the view was moved to its edge.
                let is_cut = color.is_line() && (up(d) < sheet.y[0] || up(b) > sheet.y[1]);
                if if color.is_line() { is_cut || is_wide == is_high } else { !is_wide || !is_high }
                {
                    continue;
                }
                let plain = (color.plain().word() as usize).min(PALETTE_LEN - 1);
                let entry = &mut path_of[2 * plain + usize::from(color.is_hatched())];
                let index = *entry.get_or_insert_with(|| {
                    paths.push((color, String::new()));
                    paths.len() - 1
                });
                let path = &mut paths[index].1;
                match color.is_line() {
                    true if is_wide => write!(path, "M{left:.1} {top:.1}H{right:.1}"),
                    true => write!(path, "M{left:.1} {top:.1}V{bottom:.1}"),
                    false => write!(path, "M{left:.1} {top:.1}H{right:.1}V{bottom:.1}H{left:.1}z"),
                }
                .expect("writing to a String cannot fail");
            }
        }
    }
    // Drawn in this order, as on the page: reserved, active, allocated bytes.
    paths.sort_by_key(|&(color, _)| {
        (color.is_line(), color.plain() != Color::SEGMENT, Reverse(color))
    });
    let ground = sheet.palette.css(Color::CASING);
    if paths.iter().any(|(color, _)| color.is_hatched()) {
        sheet.put(format_args!(
            "<pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" \
             patternTransform=\"rotate(45)\"><path stroke=\"{ground}\" \
             stroke-opacity=\"{HATCH_GAP}\" stroke-width=\"3\" d=\"M1.5 0V6\"/></pattern>"
        ));
    }
    for (color, path) in paths {
        let css = sheet.palette.css(color);
        if color.is_line() {
            for (stroke, width) in [(&ground, 3.5), (&css, 1.5)] {
                sheet.put(format_args!(
                    "<path fill=\"none\" stroke=\"{stroke}\" stroke-width=\"{width}\" \
                     stroke-linecap=\"square\" d=\"{path}\"/>"
                ));
            }
            continue;
        }
        sheet.put(format_args!("<path fill=\"{css}\" d=\"{path}\"/>"));
        if color.is_hatched() {
            sheet.put(format_args!("<path fill=\"url(#hatch)\" d=\"{path}\"/>"));
        }
    }
}

/// Draws one tile; `None` for an unknown device or axis.
async fn tile(
    queries: &mut Queries,
    on: &Subject,
    axis: AxisKind,
    layer: &Layer,
    key: TileKey,
    budget: &mut Budget,
) -> Option<Strips> {
    let (mut tile, mut derived) = (PartialTile::new(key, layer), DerivedBuilder::default());
    while tile.finished.is_none() {
        let partial = &mut [&mut tile];
        if queries.draw(on, &mut derived, axis, layer, partial) != TileStep::Drawn {
            return None;
        }
        budget.charge(SLICE).await;
    }
    tile.finished
}

/// Draws the names in a flame graph, or the sizes beside segments.
fn labels(queries: &mut Queries, on: &Subject, layer: &Layer, sheet: &mut Sheet, text_color: &str) {
    let at = on.at();
    let [x0, x1] = sheet.x;
    match layer {
        Layer::Timeline { .. } | Layer::Outline {} => {}
        Layer::Map { map, .. } => {
            let style = format!("fill=\"{text_color}\"");
            let map = queries.maps.poll(on, map);
            for group in map.iter().flat_map(|map| &map.info.groups) {
                let middle = f64::midpoint(group.y.0, group.y.1);
                if (sheet.y[0]..sheet.y[1]).contains(&middle) {
                    let label = format!("{}, {} reserved", group.name, group.reserved.text);
                    sheet.text(MARGINS[0] + 4.0, sheet.px_y(middle) + 4.0, &style, &label);
                }
            }
        }
        Layer::Segments { rows, .. } => {
            let [y0, y1] = sheet.y;
            let order = queries.tiles.orders.poll(on, rows);
            for row in order.into_iter().flat_map(|order| order.rows(at, rows, y0, y1)) {
                let middle = f64::midpoint(row.y0, row.y1);
                if (sheet.y[0]..sheet.y[1]).contains(&middle) {
                    let y = sheet.px_y(middle) + 4.0;
                    sheet.text(
                        MARGINS[0] - 8.0,
                        y,
                        &format!("fill=\"{text_color}\" text-anchor=\"end\""),
                        &row.size.text,
                    );
                }
            }
        }
        Layer::Flame { flame } => {
            let min_width = (x1 - x0) / sheet.width * 24.0;
            let graph = queries.flames.poll(on, flame);
            let boxes = graph.into_iter().flat_map(|graph| graph.boxes(at, x0, x1, min_width));
            for flame_box in boxes {
                let (left, right) = (sheet.px_x(flame_box.x0), sheet.px_x(flame_box.x1));
                let max_chars = ((right - left - 6.0) / CHAR_WIDTH) as usize;
                let middle = flame_box.y0 + f64::from(ROW_UNITS) / 2.0;
                if max_chars < 3 || !(sheet.y[0]..sheet.y[1]).contains(&middle) {
                    continue;
                }
                let label = flame_box.text.chars().chain([' ']).chain(flame_box.place.chars());
                let text: String = label.take(max_chars).collect();
                sheet.text(
                    left + 4.0,
                    sheet.px_y(middle) + 4.0,
                    "fill=\"#14181d\"",
                    text.trim_end(),
                );
            }
        }
    }
}
