//! Frame times on this machine's OpenGL ES 3, without a window.
//!
//! Run it with `cargo bench -p vramscope-render --features gl`. It covers a canvas of 1600 x 800
//! pixels once with strips in tiles of the size that a worker sends, and pans by one pixel per
//! frame. `issue` is the time of the renderer's calls, which is what the page's script would take.
//! `frame` also includes the driver, until the last pixel is drawn.

#![expect(clippy::print_stdout, reason = "the benchmark prints a table")]
#![expect(unsafe_code, reason = "all functions of glow are unsafe")]

#[path = "../tests/support/mod.rs"]
#[expect(dead_code, reason = "only the tests compare images")]
mod support;

use glow::HasContext as _;
use std::time::{Duration, Instant};
use support::Canvas;
use vramscope_render::gl::{Counters, StripRenderer, StripStyle, clear};
use vramscope_render::{
    Color, Palette, Placement, Strips, Surfaces, TILE_COLUMNS, TILE_ROWS, Theme,
};

const SIZE: [u32; 2] = [1600, 800];
const FRAMES: u32 = 60;
/// Maximum strips of a timeline tile.
const TILE_STRIPS: usize = 32 << 10;

fn main() {
    let canvas = Canvas::new(SIZE[0], SIZE[1]);
    // SAFETY: the context is current on this thread.
    let renderer = unsafe { canvas.gl.get_parameter_string(glow::RENDERER) };
    println!("{renderer}, {} x {}, {FRAMES} frames each\n", SIZE[0], SIZE[1]);
    println!("  strips  tiles  draws   upload ms  issue p50  issue p95  frame p50  frame p95");
    for strips in [20_000, 50_000, 100_000, 200_000, 400_000] {
        measure(&canvas, strips);
    }
}

/// Strips that cover a tile: stacks in columns of a few pixels.
fn tile(strips: usize) -> Strips {
    let columns = 1usize << (strips.ilog2() / 2);
    let rows = strips / columns;
    let (width, height) = (TILE_COLUMNS as f32 / columns as f32, TILE_ROWS as f32 / rows as f32);
    let mut tile = Strips::with_capacity(strips);
    for column in 0..columns {
        for row in 0..rows {
            let (x, y) = (column as f32 * width, row as f32 * height);
            let hue = ((column / 7 + row * 13) % 250) as u8;
            tile.push(
                [x, y, x + width, y + height],
                Color::new(hue, (row % 4) as u8),
                (column * rows + row) as u32,
            );
        }
    }
    tile
}

fn measure(canvas: &Canvas, strips: usize) {
    let gl = &canvas.gl;
    let surfaces = Surfaces::new(Theme::Dark);
    let style = StripStyle {
        ground: surfaces.ground,
        accent: surfaces.accent,
        lift: surfaces.lift,
        selected: None,
        ends: None,
        hovered: Some(7),
        line: 1.0,
    };
    let mut renderer =
        StripRenderer::new(gl, &Palette::new(Theme::Dark)).expect("the strips program links");
    let tiles = strips.div_ceil(TILE_STRIPS);
    let content = tile(strips / tiles);
    let began = Instant::now();
    let uploaded: Vec<_> = (0..tiles)
        .map(|_| renderer.upload(gl, content.columns()).expect("the tile fits in GPU memory"))
        .collect();
    finish(gl);
    let upload = began.elapsed() / tiles as u32;

    let scale = [
        f64::from(SIZE[0]) / f64::from(TILE_COLUMNS) / tiles as f64,
        f64::from(SIZE[1]) / f64::from(TILE_ROWS),
    ];
    let clip = [0.0, 0.0, f64::from(SIZE[0]), f64::from(SIZE[1])];
    let mut counters = Counters::default();
    let (mut issue, mut whole) = (Vec::new(), Vec::new());
    for frame in 0..FRAMES {
        let start = Instant::now();
        counters.reset();
        clear(gl, SIZE, surfaces.ground);
        for (i, tile) in uploaded.iter().enumerate() {
            let x = i as f64 * f64::from(SIZE[0]) / tiles as f64 + f64::from(frame);
            renderer.place(tile, Placement::new([x, 0.0], scale, clip));
        }
        renderer.draw(gl, SIZE, &style, &mut counters);
        issue.push(start.elapsed());
        finish(gl);
        whole.push(start.elapsed());
    }
    let [i50, i95] = quantiles(&mut issue);
    let [f50, f95] = quantiles(&mut whole);
    println!(
        "{:>8} {tiles:>6} {:>6} {:>11.2} {i50:>10.3} {i95:>10.3} {f50:>10.2} {f95:>10.2}",
        content.len() * tiles,
        counters.draws,
        ms(upload)
    );
    for tile in uploaded {
        renderer.release(tile);
    }
    renderer.destroy(gl);
}

fn finish(gl: &glow::Context) {
    // SAFETY: the context is current on this thread.
    unsafe { gl.finish() };
}

fn quantiles(times: &mut [Duration]) -> [f64; 2] {
    times.sort_unstable();
    [times.len() / 2, times.len() * 95 / 100].map(|i| ms(times[i]))
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
