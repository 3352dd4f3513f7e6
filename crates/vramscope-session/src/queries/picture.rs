//! What a plot shows as an SVG document: vectors, with labels, on a ground of its own.
//!
//! It is made of the tiles that the page would draw at that size, so that it adds up in the same
//! way.

use super::{PartialTile, Queries, TileStep, layout_axis};
use crate::derived::DerivedBuilder;
use crate::scheduler::SLICE;
use std::cmp::Reverse;
use std::fmt::Write as _;
use std::sync::Arc;
use vramscope_analysis::slicing::Budget;
use vramscope_layout::{Color, PALETTE_LEN, Palette, Strips, Surfaces, Theme};
use vramscope_protocol::views::{Layer, Query, ROW_UNITS};
use vramscope_protocol::{AxisKind, DeviceRef, NO_BLOCK, TILE_COLUMNS, TILE_ROWS, TileKey};
use vramscope_report::LoadedFile;
use vramscope_units::{byte_ticks, event_ticks, time_ticks};

/// Room for labels, in pixels: left, above, right, below.
const ROOM: [f64; 4] = [72.0, 34.0, 16.0, 28.0];
/// Pixels between two labels of an axis.
const X_ROOM: f64 = 110.0;
const Y_ROOM: f64 = 48.0;
/// A letter of an 11 px label, a little generously.
const LETTER: f64 = 6.8;
/// A picture is at most so many pixels wide and high.
const MOST: u32 = 8192;

struct Sheet {
    out: String,
    x: [f64; 2],
    y: [f64; 2],
    width: f64,
    height: f64,
    palette: Palette,
}

impl Sheet {
    fn left(&self, x: f64) -> f64 {
        let [x0, x1] = self.x;
        ROOM[0] + ((x - x0) / (x1 - x0)).clamp(0.0, 1.0) * self.width
    }

    fn top(&self, y: f64) -> f64 {
        let [y0, y1] = self.y;
        ROOM[1] + (1.0 - ((y - y0) / (y1 - y0)).clamp(0.0, 1.0)) * self.height
    }

    fn put(&mut self, text: std::fmt::Arguments<'_>) {
        self.out.write_fmt(text).expect("a String takes all text");
        self.out.push('\n');
    }

    fn text(&mut self, x: f64, y: f64, look: &str, text: &str) {
        let text = escaped(text);
        self.put(format_args!("<text x=\"{x:.1}\" y=\"{y:.1}\" {look}>{text}</text>"));
    }
}

/// The document; empty when there is nothing to draw it from.
pub(super) async fn picture(
    file: &Arc<LoadedFile>,
    target: DeviceRef,
    query: &Query,
    budget: &mut Budget,
) -> String {
    // What it is drawn from is its own: meanwhile the page's tiles are drawn from theirs.
    let queries = &mut Queries::default();
    let Query::Picture { layer, axis, x0, x1, y0, y1, width, height, dark } = query else {
        return String::new();
    };
    let sane = [x0, x1, y0, y1].iter().all(|v| v.is_finite()) && x0 < x1 && y0 < y1;
    let (width, height) = ((*width).clamp(1, MOST), (*height).clamp(1, MOST));
    let Some(at) = super::target(file, target).filter(|_| sane) else { return String::new() };
    let theme = if *dark { Theme::Dark } else { Theme::Light };
    let (palette, surfaces) = (Palette::new(theme), Surfaces::new(theme));
    let css = |[r, g, b, _]: [u8; 4]| format!("#{r:02x}{g:02x}{b:02x}");
    let (out, [width, height]) = (String::new(), [width, height].map(f64::from));
    let mut sheet = Sheet { out, x: [*x0, *x1], y: [*y0, *y1], width, height, palette };
    let (all_width, all_height) =
        (sheet.width + ROOM[0] + ROOM[2], sheet.height + ROOM[1] + ROOM[3]);
    let (ground, quiet) = (css(surfaces.ground), css(surfaces.mark));
    let name = vramscope_report::text::file_name(at.path);
    sheet.put(format_args!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{all_width}\" height=\"{all_height}\" viewBox=\"0 0 {all_width} {all_height}\" font-family=\"system-ui, sans-serif\" font-size=\"11\">"
    ));
    sheet.put(format_args!(
        "<title>{}</title>",
        escaped(&format!("{name}, device {}", at.device()))
    ));
    sheet.put(format_args!(
        "<rect width=\"{all_width}\" height=\"{all_height}\" fill=\"{ground}\"/>"
    ));
    let caption = caption(layer, at.entry.pools(at.index).is_some());
    let head = format!("{name}, device {}: {caption}", at.device());
    sheet.text(ROOM[0], 20.0, &format!("fill=\"{quiet}\" font-size=\"13\""), &head);
    if matches!(layer, Layer::Timeline { .. }) {
        let line = css(surfaces.grid);
        for tick in byte_ticks(*y0, *y1, (sheet.height / Y_ROOM).max(1.0) as usize) {
            let y = sheet.top(tick.value);
            let right = ROOM[0] + sheet.width;
            sheet.put(format_args!("<path d=\"M{} {y:.1}H{right}\" stroke=\"{line}\"/>", ROOM[0]));
            sheet.text(
                ROOM[0] - 8.0,
                y + 4.0,
                &format!("fill=\"{quiet}\" text-anchor=\"end\""),
                &tick.text,
            );
        }
    }
    strips(queries, file, target, *axis, layer, &mut sheet, budget).await;
    if !matches!(layer, Layer::Flame { .. })
        && let Some(axis) = layout_axis(at.trace(), *axis)
    {
        let most = (sheet.width / X_ROOM).max(1.0) as usize;
        let origin = axis.origin() as f64;
        let (low, high) = (x0 - origin, x1 - origin);
        let last = axis.extent() as f64 - origin;
        let ticks = match query_axis(query) {
            AxisKind::Event => event_ticks(low.max(0.0), high.min(last - 1.0), most),
            AxisKind::Time => time_ticks(low.max(-origin), high.min(last), most),
            AxisKind::Weight => Vec::new(),
        };
        let y = ROOM[1] + sheet.height + 17.0;
        for tick in ticks {
            let x = sheet.left(tick.value + origin);
            if x + tick.text.len() as f64 * LETTER / 2.0 > all_width {
                continue;
            }
            sheet.text(x, y, &format!("fill=\"{quiet}\" text-anchor=\"middle\""), &tick.text);
        }
    }
    names(queries, file, target, layer, &mut sheet, &quiet);
    sheet.put(format_args!("</svg>"));
    sheet.out
}

fn query_axis(query: &Query) -> AxisKind {
    match query {
        Query::Picture { axis, .. } => *axis,
        _ => AxisKind::Event,
    }
}

fn caption(layer: &Layer, has_pools: bool) -> &'static str {
    match layer {
        Layer::Timeline { bands: true, .. } if has_pools => {
            "requested bytes by block, with reserved, active and allocated bytes and private pools as lines"
        }
        Layer::Timeline { bands: true, .. } => {
            "requested bytes by block, with reserved, active and allocated bytes as lines"
        }
        Layer::Timeline { .. } => "requested bytes by block",
        Layer::Segments { .. } => "segments and the blocks in them",
        Layer::Flame { .. } => "call stacks",
    }
}

/// Every strip in view, as one path a color; lines over blocks.
async fn strips(
    queries: &mut Queries,
    file: &Arc<LoadedFile>,
    target: DeviceRef,
    axis: AxisKind,
    layer: &Layer,
    sheet: &mut Sheet,
    budget: &mut Budget,
) {
    let [x0, x1] = sheet.x.map(|v| v.max(0.0));
    let [y0, y1] = sheet.y.map(|v| v.max(0.0));
    let exact = |k: u8| f64::from(k).exp2();
    let per = [(sheet.x[1] - sheet.x[0]) / sheet.width, (sheet.y[1] - sheet.y[0]) / sheet.height];
    // As the page chooses: columns of a pixel or more, rows of a pixel or less.
    let kx = (0..48).find(|&k| exact(k) >= per[0]).unwrap_or(48);
    let ky = (0..48).take_while(|&k| exact(k) <= per[1]).last().unwrap_or(0);
    let (w, h) = (f64::from(TILE_COLUMNS) * exact(kx), f64::from(TILE_ROWS) * exact(ky));
    let mut paths: Vec<(Color, bool, String)> = Vec::new();
    // For each color word, under and over the others, the place of its path.
    let mut place: Vec<Option<usize>> = vec![None; 2 * PALETTE_LEN];
    for iy in (y0 / h) as u32..(y1 / h).ceil() as u32 {
        for ix in (x0 / w) as u32..(x1 / w).ceil() as u32 {
            let key = TileKey { kx, ky, ix, iy };
            let Some(found) = tile(queries, file, target, axis, layer, key, budget).await else {
                continue;
            };
            for ((position, &word), &block) in
                found.positions.iter().zip(&found.colors).zip(&found.blocks)
            {
                let [a, b, c, d] = position.map(f64::from);
                let at =
                    |column: f64| (f64::from(ix) * f64::from(TILE_COLUMNS) + column) * exact(kx);
                let up = |row: f64| (f64::from(iy) * f64::from(TILE_ROWS) + row) * exact(ky);
                let (left, right) = (sheet.left(at(a)), sheet.left(at(c)));
                let (top, bottom) = (sheet.top(up(d)), sheet.top(up(b)));
                if right - left < 0.05 || bottom - top < 0.05 {
                    continue;
                }
                // The ground of a segment lies below its blocks, though it is none either.
                let over = block == NO_BLOCK && Color::from_word(word) != Color::SEGMENT;
                let entry =
                    &mut place[2 * (word as usize).min(PALETTE_LEN - 1) + usize::from(over)];
                let index = *entry.get_or_insert_with(|| {
                    paths.push((Color::from_word(word), over, String::new()));
                    paths.len() - 1
                });
                write!(paths[index].2, "M{left:.1} {top:.1}H{right:.1}V{bottom:.1}H{left:.1}z")
                    .expect("a String takes all text");
            }
        }
    }
    // Reserved bytes below active ones, and those below allocated bytes, as on the page.
    paths.sort_unstable_by_key(|&(color, over, _)| (over, color != Color::SEGMENT, Reverse(color)));
    for (color, _, path) in paths {
        let fill = sheet.palette.css(color);
        sheet.put(format_args!("<path fill=\"{fill}\" d=\"{path}\"/>"));
    }
}

async fn tile(
    queries: &mut Queries,
    file: &Arc<LoadedFile>,
    target: DeviceRef,
    axis: AxisKind,
    layer: &Layer,
    key: TileKey,
    budget: &mut Budget,
) -> Option<Strips> {
    let (mut tile, mut derived) = (PartialTile::new(key), DerivedBuilder::default());
    while tile.finished.is_none() {
        let partial = &mut [&mut tile];
        if queries.draw(file, &mut derived, target, axis, layer, partial) != TileStep::Drawn {
            return None;
        }
        budget.charge(SLICE).await;
    }
    tile.finished
}

/// Names in a flame graph, sizes beside segments.
fn names(
    queries: &mut Queries,
    file: &LoadedFile,
    target: DeviceRef,
    layer: &Layer,
    sheet: &mut Sheet,
    quiet: &str,
) {
    let Some(at) = super::target(file, target) else { return };
    let [x0, x1] = sheet.x;
    match layer {
        Layer::Timeline { .. } => {}
        Layer::Segments { rows, .. } => {
            let [y0, y1] = sheet.y;
            for row in queries.tiles.orders.get(at, target, rows).rows(at, rows, y0, y1) {
                let middle = f64::midpoint(row.y0, row.y1);
                if (sheet.y[0]..sheet.y[1]).contains(&middle) {
                    let y = sheet.top(middle) + 4.0;
                    sheet.text(
                        ROOM[0] - 8.0,
                        y,
                        &format!("fill=\"{quiet}\" text-anchor=\"end\""),
                        &row.size.text,
                    );
                }
            }
        }
        Layer::Flame { flame } => {
            let least = (x1 - x0) / sheet.width * 24.0;
            for name in queries.flames.get(at, target, flame).boxes(at, x0, x1, least) {
                let (left, right) = (sheet.left(name.x0), sheet.left(name.x1));
                let fits = ((right - left - 6.0) / LETTER) as usize;
                let middle = name.y0 + f64::from(ROW_UNITS) / 2.0;
                if fits < 3 || !(sheet.y[0]..sheet.y[1]).contains(&middle) {
                    continue;
                }
                let whole = name.text.chars().chain([' ']).chain(name.place.chars());
                let text: String = whole.take(fits).collect();
                sheet.text(
                    left + 4.0,
                    sheet.top(middle) + 4.0,
                    "fill=\"#14181d\"",
                    text.trim_end(),
                );
            }
        }
    }
}

/// Names of files and frames are not ours: nothing in them may become markup, and control
/// characters are no XML.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
