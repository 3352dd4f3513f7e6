//! Tests of rows, ranges, limits and boxes of a scene without a GPU.

use std::convert::Infallible;

use vramscope_render::{Color, NO_BLOCK, Strips};

use super::Scene;
use crate::scene::{Hit, Selection};
use crate::screen::Screen;
use crate::tile::{Area, Axis, AxisKind, PlotKind, Rows, TileGeometry};

const PEAK: f64 = 1e9;
const EVENTS: Axis = Axis { kind: AxisKind::Event, extent: 100_000.0, origin: 1.0, peak: 50_000.0 };
const WEIGHTS: Axis = Axis { kind: AxisKind::Weight, extent: 1e6, origin: 0.0, peak: 0.0 };
const ROW: f64 = 4096.0;

/// A plot of 1000 x 400 CSS pixels with its upper left corner at 64, 8.
fn scene(axis: Axis, kind: PlotKind) -> Scene<usize> {
    let mut scene = Scene::default();
    scene.resize(Screen::new(1076.0, 432.0, 1.0));
    scene.open(axis, PEAK, kind, 64.0);
    scene.set_smooth(false);
    scene
}

fn timeline() -> Scene<usize> {
    scene(EVENTS, PlotKind::Bytes)
}

fn segments(rows: f64) -> Scene<usize> {
    scene(EVENTS, kind(rows, 14.0, 34.0))
}

fn kind(rows: f64, min_px: f64, max_px: f64) -> PlotKind {
    PlotKind::Rows(Rows { units: rows * ROW, row_units: ROW, min_px, max_px })
}

/// Height of a row in CSS pixels, and the units of rows above the plot.
fn row_height_and_offset(scene: &Scene<usize>, rows: f64) -> [f64; 2] {
    let view = scene.target();
    [400.0 / view.height() * ROW, rows * ROW - view.y1]
}

fn assert_near<const N: usize>(a: [f64; N], b: [f64; N]) {
    assert!(
        a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-6 * b.abs().max(1.0)),
        "{a:?} is not {b:?}"
    );
}

#[test]
fn rows_fill_the_plot_within_their_limits() {
    for (rows, height) in [(3.0, 34.0), (20.0, 20.0), (500.0, 14.0), (0.0, 34.0)] {
        assert_near(row_height_and_offset(&segments(rows), rows), [height, 0.0]);
    }
    // With three rows, the space below them is free.
    let three = segments(3.0);
    assert!(three.target().y0 < 0.0);
    assert_near(
        [three.place(100.0, 8.0 + 3.0 * 34.0).y, three.place(100.0, 8.0).y],
        [0.0, 3.0 * ROW],
    );
    for rows in [4.0, 50.0] {
        assert_near(
            row_height_and_offset(&scene(WEIGHTS, kind(rows, 20.0, 20.0)), rows),
            [20.0, 0.0],
        );
    }
}

#[test]
fn rows_zoom_and_pan_within_their_limits() {
    let mut scene = segments(100.0);
    scene.wheel([500.0, 100.0], [0.0, 1e5], 0, true, false);
    assert_near(row_height_and_offset(&scene, 100.0), [14.0, 0.0]);
    scene.wheel([500.0, 100.0], [0.0, -1e5], 0, true, false);
    assert_near([row_height_and_offset(&scene, 100.0)[0]], [34.0 * 8.0]);
    scene.fit();
    scene.begin_drag(500.0, 200.0);
    scene.drag(500.0, 200.0 - 140.0);
    assert_near(row_height_and_offset(&scene, 100.0), [14.0, 10.0 * ROW]);
    scene.drag(500.0, -1e6);
    assert_near([scene.target().y0, row_height_and_offset(&scene, 100.0)[0]], [0.0, 14.0]);
    scene.drag(500.0, 1e6);
    assert_near(row_height_and_offset(&scene, 100.0), [14.0, 0.0]);
    // Rows that do not fill the plot stay at the top. Rows of a fixed height keep it.
    let mut few = segments(3.0);
    few.begin_drag(500.0, 200.0);
    few.drag(500.0, 300.0);
    assert_near(row_height_and_offset(&few, 3.0), [34.0, 0.0]);
    let mut flame = self::scene(WEIGHTS, kind(50.0, 20.0, 20.0));
    flame.wheel([500.0, 100.0], [0.0, -500.0], 0, true, false);
    assert_near(row_height_and_offset(&flame, 50.0), [20.0, 0.0]);
}

#[test]
fn rows_keep_their_height_when_the_plot_is_resized() {
    let mut scene = segments(100.0);
    scene.set_view(Area { x0: 10.0, x1: 20.0, y0: 0.0, y1: 40.0 * ROW });
    let before = scene.target();
    scene.resize(Screen::new(1076.0, 232.0, 1.0));
    let after = scene.target();
    assert_near(
        [after.x0, after.x1, after.y1, after.height()],
        [10.0, 20.0, before.y1, before.height() / 2.0],
    );
    scene.resize(Screen::new(1076.0, 432.0, 1.0));
    assert_near([scene.target().y0, scene.target().y1], [before.y0, before.y1]);
    // The whole view adapts to the new height. A plot may be opened before it has a size.
    let mut scene: Scene<usize> = Scene::default();
    scene.open(EVENTS, PEAK, kind(20.0, 14.0, 34.0), 64.0);
    for (height, row) in [(400.0, 20.0), (600.0, 30.0), (100.0, 14.0), (900.0, 34.0)] {
        scene.resize(Screen::new(1076.0, height + 32.0, 2.0));
        assert_near([height / scene.target().height() * ROW, scene.target().y1], [row, 20.0 * ROW]);
    }
}

#[test]
fn invalid_rows_give_a_valid_view() {
    let invalid =
        Rows { units: f64::NAN, row_units: -1.0, min_px: f64::NAN, max_px: f64::NEG_INFINITY };
    let mut scene = scene(WEIGHTS, PlotKind::Rows(invalid));
    assert!(scene.wanted().is_empty());
    scene.wheel([500.0, 100.0], [0.0, -500.0], 0, true, false);
    scene.fit();
    let view = scene.target();
    assert!(view.height() > 0.0 && view.y1.is_finite());
}

#[test]
fn tiles_are_wanted_only_where_rows_are() {
    let mut scene = segments(3.0);
    let wanted = scene.wanted().to_vec();
    // On 400 pixels, tile rows have 64 units, so one tile covers the 3 rows of 4096 units.
    assert!(
        !wanted.is_empty() && wanted.iter().all(|key| key.ky == 6 && key.iy == 0),
        "{wanted:?}"
    );
    for key in wanted {
        let mut strips = Strips::default();
        strips.push([0.0, 0.0, 512.0, 192.0], Color::SEGMENT, NO_BLOCK);
        strips.push([0.0, 0.0, 512.0, 64.0], Color::new(0, 0), 7);
        scene.put_tile(key, strips);
    }
    let done: Result<(), Infallible> = scene.cache.upload(usize::MAX, |strips| Ok(strips.len()));
    assert_eq!(done, Ok(()));
    scene.place_tiles(|_, _| {});
    let hit = scene.hit(500.0, 8.0 + 2.5 * 34.0);
    assert!(
        matches!(hit, Some(Hit { block: 7, bytes, .. }) if (bytes - ROW / 2.0).abs() < 64.0),
        "{hit:?}"
    );
    let background = scene.hit(500.0, 8.0 + 1.5 * 34.0);
    assert_eq!(background, None, "the background of a segment is not a block");
    assert_eq!(scene.hit(500.0, 300.0), None);
    scene.take_dirty();
    scene.set_hovered(Some(NO_BLOCK));
    scene.set_selected(Some(Selection { block: NO_BLOCK, span: None }));
    assert!(scene.hovered().is_none() && scene.selected().is_none() && !scene.take_dirty());
}

#[test]
fn set_range_moves_x_and_not_y() {
    let (mut scene, mut other) = (timeline(), segments(50.0));
    scene.set_smooth(true);
    scene.zoom_to(Area { x0: 20_000.0, x1: 30_000.0, y0: 1e8, y1: 2e8 });
    for now in [0.0, 40.0, 80.0, 120.0] {
        scene.advance(now);
        other.set_range(scene.view().x0, scene.view().x1);
        assert_eq!([other.view().x0, other.view().x1], [scene.view().x0, scene.view().x1]);
        assert_near(row_height_and_offset(&other, 50.0), [14.0, 0.0]);
    }
    assert_near([other.view().x0, other.view().x1], [20_000.0, 30_000.0]);
    other.take_dirty();
    other.set_range(20_000.0, 30_000.0);
    for [x0, x1] in [[f64::NAN, 1.0], [0.0, f64::INFINITY]] {
        other.set_range(x0, x1);
    }
    assert!(!other.take_dirty(), "the view has not changed");
    // A running jump continues along y.
    scene.zoom_to(Area { x0: 0.0, x1: 100.0, y0: 0.0, y1: 5e8 });
    assert!(scene.advance(1000.0) && scene.advance(1060.0));
    scene.set_range(700.0, 500.0);
    assert!(!scene.advance(1120.0));
    let view = scene.view();
    assert_near([view.x0, view.x1, view.y0, view.y1], [500.0, 700.0, 0.0, 5e8]);
}

#[test]
fn place_is_clamped_to_the_plot() {
    let mut scene = timeline();
    let view = *scene.view();
    let at = |x: f64, y: f64| {
        let place = scene.place(x, y);
        [place.x, place.y]
    };
    assert_near(at(564.0, 208.0), [50_000.0, view.y1 / 2.0]);
    assert_near(at(-50.0, 1e9), [0.0, 0.0]);
    assert_near(at(f64::INFINITY, f64::NEG_INFINITY), [100_000.0, view.y1]);
    assert_near(at(f64::NAN, f64::NAN), [0.0, view.y1]);
    scene.resize(Screen::default());
    assert!(scene.place(5.0, 5.0).x.is_finite());
}

#[test]
fn zoom_box_ignores_short_sides() {
    let mut scene = timeline();
    let fit = scene.target();
    assert!(!scene.zoom_box([100.0, 100.0], [107.9, 92.1]));
    assert!(!scene.zoom_box([f64::NAN, 100.0], [500.0, f64::NAN]));
    assert_eq!(scene.target(), fit);
    assert!(scene.zoom_box([364.0, 100.0], [164.0, 104.0]));
    let view = scene.target();
    assert_near([view.x0, view.x1, view.y0, view.y1], [10_000.0, 30_000.0, 0.0, fit.y1]);
    assert!(scene.zoom_box([200.0, 208.0], [203.0, 900.0]));
    let view = scene.target();
    assert_near([view.x0, view.x1, view.y0, view.y1], [10_000.0, 30_000.0, 0.0, fit.y1 / 2.0]);
    // An area below the minimum is enlarged about its center.
    scene.zoom_to(Area { x0: 15_000.2, x1: 15_000.4, y0: 1e6, y1: 1e6 + 1.0 });
    let view = scene.target();
    assert_near([f64::midpoint(view.x0, view.x1), view.width()], [15_000.3, 2.0]);
    assert_near([f64::midpoint(view.y0, view.y1), view.height()], [1e6 + 0.5, 64.0]);
}

#[test]
fn set_top_extends_the_whole_view_and_the_wanted_tiles() {
    let mut scene = timeline();
    let fit = scene.target();
    let mark = scene.peak_pixel();
    scene.set_top(Some(3.0 * PEAK));
    assert_near([scene.target().y0, scene.target().y1], [0.0, 3.0 * fit.y1]);
    assert!(scene.wanted().iter().any(|key| key.area().y1 > 2.0 * PEAK));
    let labels = scene.labels();
    assert_eq!(labels.peak.map(|peak| peak.text), Some("peak 953.7 MiB".to_owned()));
    let low = scene.peak_pixel().map(|at| at[1]);
    assert!(low < mark.map(|at| at[1]) && low.is_some());
    // A view that is not the whole view does not change.
    let close_view = Area { x0: 0.0, x1: 50.0, y0: 5e7, y1: 6e7 };
    scene.set_view(close_view);
    scene.set_top(None);
    assert_near([scene.target().y0, scene.target().y1], [5e7, 6e7]);
    scene.fit();
    assert_eq!(scene.target(), fit);
    scene.set_top(Some(f64::NAN));
    assert_eq!(scene.target(), fit);
    scene.set_top(Some(PEAK / 2.0));
    assert_eq!(scene.target(), fit, "a top below the peak has no effect");
}

#[test]
fn whole_view_begins_at_the_base() {
    let mut scene = timeline();
    scene.set_base(0.8 * PEAK);
    assert_near(
        [scene.target().y0, scene.target().y1],
        [0.8 * PEAK, 0.8 * PEAK + 0.2 * PEAK * 1.08],
    );
    scene.wheel([500.0, 100.0], [0.0, 1e5], 0, true, false);
    assert_near([scene.target().y0, scene.target().y1], [0.0, 1.08 * PEAK]);
    scene.fit();
    scene.begin_drag(100.0, 100.0);
    scene.drag(100.0, -1e9);
    assert_near([scene.target().y0, scene.target().height()], [0.0, 0.2 * PEAK * 1.08]);
    for invalid in [f64::NAN, -1.0, 1e30] {
        scene.set_base(invalid);
        scene.fit();
        assert!(
            scene.target().height() >= 64.0 && scene.target().y1 <= 1.08 * PEAK + 1.0,
            "{invalid}"
        );
    }
}

#[test]
fn capacity_line_has_a_pixel_only_in_view() {
    let mut scene = timeline();
    scene.take_dirty();
    scene.set_capacity(Some(2.0 * PEAK));
    assert!(scene.take_dirty() && scene.capacity_pixel().is_none());
    scene.set_top(Some(2.0 * PEAK));
    assert_near([scene.capacity_pixel().unwrap_or_default()], [24.0 + 400.0 / 1.08]);
    scene.set_capacity(None);
    assert!(scene.capacity_pixel().is_none());
    scene.set_capacity(Some(PEAK));
    scene.open(EVENTS, PEAK, PlotKind::Bytes, 64.0);
    assert!(scene.capacity_pixel().is_none(), "opening another trace resets the capacity");
}

#[test]
fn opening_a_plot_resets_boxes_and_gutter() {
    let mut scene = timeline();
    scene.set_boxes(vec![0.0, 100_000.0, f64::NAN, f64::NAN]);
    assert_near(
        [scene.boxes().len() as f64, scene.boxes()[1], scene.boxes()[3]],
        [5.0, 64.0, 1000.0],
    );
    scene.open(WEIGHTS, 0.0, kind(3.0, 20.0, 20.0), 0.0);
    assert!(scene.boxes().is_empty());
    scene.resize(Screen::new(512.0, 432.0, 1.0));
    scene.set_boxes(vec![0.0, 5e5, 2.0 * ROW, 3.0 * ROW]);
    assert_near(
        [scene.boxes()[1], scene.boxes()[2], scene.boxes()[3], scene.boxes()[4]],
        [0.0, 8.0, 250.0, 20.0],
    );
    scene.close();
    assert!(scene.boxes().is_empty() && scene.measure_x(0.0, 1.0).is_empty());
}

#[test]
fn set_rows_keeps_the_distance_from_the_first_row() {
    // A whole view stays a whole view.
    let mut scene = segments(20.0);
    scene.set_rows(23.0 * ROW, None);
    assert_near(row_height_and_offset(&scene, 23.0), [400.0 / 23.0, 0.0]);
    // 200 rows are above the plot, regardless of the number of rows below it.
    let mut scene = segments(500.0);
    let Area { x0, x1, y0, y1 } = scene.target();
    scene.set_view(Area { x0, x1, y0: y0 - 200.0 * ROW, y1: y1 - 200.0 * ROW });
    for rows in [503.0, 503.0, 500.0, 900.0] {
        scene.set_rows(rows * ROW, None);
        assert_near(row_height_and_offset(&scene, rows), [14.0, 200.0 * ROW]);
    }
    // The view does not move for a row that is at least partly in view. Any other row is moved to
    // the center.
    let row = |from_top: f64| Some([(900.0 - from_top - 4.0) * ROW, (900.0 - from_top) * ROW]);
    for (from_top, above) in [
        (210.0, 200.0),
        (197.0, 200.0),
        (400.0, 402.0 - 200.0 / 14.0),
        (0.0, 0.0),
        (896.0, 900.0 - 400.0 / 14.0),
    ] {
        scene.set_rows(900.0 * ROW, row(from_top));
        assert_near(row_height_and_offset(&scene, 900.0), [14.0, above * ROW]);
    }
    // No effect on a plot of bytes.
    let mut bytes = timeline();
    let before = bytes.target();
    bytes.set_rows(5.0, Some([0.0, 1.0]));
    assert_eq!(bytes.target(), before);
}
