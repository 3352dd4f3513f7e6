//! `cargo bench -p vramscope-render --features gl`: what a frame takes on this machine's OpenGL ES
//! 3, without a window.
//!
//! A canvas of 1600 x 800 pixels is covered once by strips in tiles as a worker sends them, and
//! panned by a pixel a frame. `issue` is the time of our own calls, which is what a page's script
//! would take; `frame` is that and the driver's, until the last pixel is there.

#![expect(clippy::print_stdout, reason = "a program that prints a table")]
#![expect(unsafe_code, reason = "glow is a foreign function")]

#[path = "../tests/support/mod.rs"]
#[expect(dead_code, reason = "pictures are compared in tests")]
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
/// As many as a tile of a timeline may have.
const TILE: usize = 32 << 10;

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

/// Strips of a tile that cover it: columns of a few pixels, each a stack.
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
        StripRenderer::new(gl, &Palette::new(Theme::Dark)).expect("the strips program");
    let tiles = strips.div_ceil(TILE);
    let content = tile(strips / tiles);
    let began = Instant::now();
    let uploaded: Vec<_> = (0..tiles)
        .map(|_| renderer.upload(gl, content.columns()).expect("textures for a tile"))
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
