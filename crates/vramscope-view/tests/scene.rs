//! Tests of a whole timeline on the system's software OpenGL ES 3: golden images, hits compared
//! with pixels, and the cost of a frame.

#[path = "../../vramscope-render/tests/support/mod.rs"]
mod support;
mod trace;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::path::PathBuf;

use support::Canvas;
use trace::Trace;
use vramscope_render::gl::GpuTile;
use vramscope_render::{Color, NO_BLOCK, Palette, Strips, Surfaces, Theme};
use vramscope_view::paint::Painter;
use vramscope_view::scene::{Scene, Selection};
use vramscope_view::screen::Screen;
use vramscope_view::tile::{Area, Axis, AxisKind, PlotKind, Rows, power};

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// Counts Rust allocations per thread. Allocations of the driver are not counted.
struct Counting;

#[expect(unsafe_code, reason = "the `GlobalAlloc` interface is unsafe")]
// SAFETY: all calls are passed unchanged to the system allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|n| n.set(n.get() + 1));
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const CSS: [u32; 2] = [900, 440];

struct Stage {
    canvas: Canvas,
    trace: Trace,
    scene: Scene<GpuTile>,
    painter: Painter,
}

impl Stage {
    fn new(ratio: u32, theme: Theme) -> Self {
        let canvas = Canvas::new(CSS[0] * ratio, CSS[1] * ratio);
        let trace = Trace::new();
        let mut scene = Scene::default();
        scene.set_theme(theme);
        scene.resize(Screen::new(f64::from(CSS[0]), f64::from(CSS[1]), f64::from(ratio)));
        let axis = Axis {
            kind: AxisKind::Event,
            extent: trace.extent,
            origin: 1.0,
            peak: trace.peak_slot,
        };
        scene.open(axis, trace.peak, PlotKind::Bytes, 64.0);
        let painter = Painter::new(&canvas.gl, theme).expect("the GL programs link");
        Self { canvas, trace, scene, painter }
    }

    /// Adds and uploads all tiles that the view needs.
    fn load(&mut self) {
        for key in self.scene.wanted().to_vec() {
            self.scene.put_tile(key, self.trace.tile(key));
        }
        while self
            .painter
            .upload(&self.canvas.gl, &mut self.scene)
            .expect("tiles fit in GPU memory")
        {}
    }

    fn draw(&mut self) {
        self.painter.draw(&self.canvas.gl, &mut self.scene);
    }

    fn check_hits(&mut self) -> usize {
        let picture = self.canvas.read();
        let palette = Palette::new(self.scene.theme());
        let ground = Surfaces::new(self.scene.theme()).ground;
        let mut hits = 0;
        for x in (64..888).step_by(23) {
            for y in 8..416 {
                let pixel = picture.at(x, CSS[1] - 1 - y);
                match self.scene.hit(f64::from(x) + 0.5, f64::from(y) + 0.5) {
                    Some(hit) => {
                        hits += 1;
                        let color = palette.rgba(Color::from_word(self.trace.color(hit.block)));
                        // The hairline is the block's color mixed with the background.
                        let hairline: [u8; 4] = std::array::from_fn(|i| {
                            (f32::from(color[i]) * 0.55 + f32::from(ground[i]) * 0.45).round() as u8
                        });
                        let near =
                            |c: [u8; 4]| c.iter().zip(pixel).all(|(a, b)| a.abs_diff(b) <= 1);
                        assert!(
                            near(color) || near(hairline),
                            "{x},{y}: block {} is not {pixel:?}",
                            hit.block
                        );
                    }
                    None => assert!(
                        pixel == ground || !palette.entries().contains(&pixel),
                        "{x},{y}: the pixel shows a strip that is not hit"
                    ),
                }
            }
        }
        hits
    }
}

#[test]
fn timeline_matches_golden_images() {
    for (theme, ratio, name) in
        [(Theme::Dark, 1, "timeline-dark.png"), (Theme::Light, 2, "timeline-light-2x.png")]
    {
        let mut stage = Stage::new(ratio, theme);
        let block = Trace::LONG_LIVED;
        let span = stage.trace.span(block);
        stage.scene.set_selected(Some(Selection { block, span: Some(span) }));
        stage.load();
        stage.draw();
        let golden = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/goldens").join(name);
        stage.canvas.read().check(&golden);
    }
}

#[test]
fn hits_match_drawn_pixels() {
    let mut stage = Stage::new(1, Theme::Dark);
    stage.load();
    stage.draw();
    assert!(stage.check_hits() > 2_000);
    let peak = stage.trace.peak;
    // A zoomed view: first with stretched coarse tiles, then with its own tiles.
    stage.scene.set_view(Area { x0: 12_000.5, x1: 13_234.25, y0: peak * 0.11, y1: peak * 0.52 });
    stage.draw();
    assert!(stage.check_hits() > 2_000);
    stage.load();
    stage.draw();
    assert!(stage.check_hits() > 2_000);
}

#[test]
fn capacity_is_a_dashed_line_above_the_stack() {
    for (theme, ratio) in [(Theme::Dark, 1), (Theme::Light, 2)] {
        let mut stage = Stage::new(ratio, theme);
        let peak = stage.trace.peak;
        stage.scene.set_top(Some(peak * 2.0));
        stage.scene.set_capacity(Some(peak * 2.0));
        stage.load();
        stage.draw();
        let y = stage.scene.capacity_pixel().map(|y| (y + 0.5).floor() as u32);
        let picture = stage.canvas.read();
        let surfaces = Surfaces::new(theme);
        let warned = |y: u32| {
            (0..CSS[0] * ratio).filter(|x| picture.at(*x, y) == surfaces.capacity).count() as u32
        };
        let y = y.unwrap_or_else(|| panic!("the capacity line is not in view"));
        let width = 824 * ratio;
        assert!((width / 3..width).contains(&warned(y)), "{} of {width}", warned(y));
        assert_eq!((warned(y - 1), warned(y + ratio)), (0, 0));
    }
}

#[test]
fn rows_have_no_baseline_and_no_grid() {
    let mut stage = Stage::new(1, Theme::Dark);
    let axis = Axis { kind: AxisKind::Weight, extent: 1000.0, origin: 0.0, peak: 0.0 };
    let rows = Rows { units: 3.0 * 4096.0, row_units: 4096.0, min_px: 20.0, max_px: 20.0 };
    stage.scene.open(axis, 0.0, PlotKind::Rows(rows), 0.0);
    stage.scene.set_capacity(Some(4096.0));
    for key in stage.scene.wanted().to_vec() {
        let mut strips = Strips::default();
        let row = (4096.0 / power(key.ky)) as f32;
        strips.push([0.0, 2.0 * row, 512.0, 3.0 * row], Color::DIMMED, NO_BLOCK);
        stage.scene.put_tile(key, strips);
    }
    while stage.painter.upload(&stage.canvas.gl, &mut stage.scene).expect("tiles fit in GPU memory")
    {
    }
    stage.draw();
    let picture = stage.canvas.read();
    let surfaces = Surfaces::new(Theme::Dark);
    let row = Palette::new(Theme::Dark).rgba(Color::DIMMED);
    // The first row covers the top 20 pixels of the plot, from the left edge on. Its top pixel is a
    // hairline.
    let column: Vec<_> = (24..432).rev().map(|y| picture.at(0, y)).collect();
    assert!(column[1..20].iter().all(|pixel| *pixel == row));
    assert!(column[20..].iter().all(|pixel| *pixel == surfaces.ground));
    assert_eq!(picture.at(400, 23), surfaces.grid);
}

#[test]
fn panning_frames_allocate_nothing_and_use_few_draw_calls() {
    let mut stage = Stage::new(1, Theme::Dark);
    let width = stage.trace.extent / 4.0;
    let view = Area { x0: width, x1: width * 2.0, y0: 0.0, y1: stage.trace.peak };
    let pan = |stage: &mut Stage, frame: u32| {
        let dx = f64::from(frame % 20) * width / 400.0;
        stage.scene.set_view(Area { x0: view.x0 + dx, x1: view.x1 + dx, ..view });
        stage.load();
        stage.draw();
        assert!(stage.painter.counters().draws <= 20);
    };
    for frame in 0..40 {
        pan(&mut stage, frame);
    }
    let before = ALLOCATIONS.get();
    for frame in 0..20 {
        // Like `load`, but without copying the list of wanted tiles, which is empty.
        let dx = f64::from(frame) * width / 400.0;
        stage.scene.set_view(Area { x0: view.x0 + dx, x1: view.x1 + dx, ..view });
        assert!(stage.scene.wanted().is_empty());
        assert!(!stage.scene.advance(f64::from(frame)));
        let more = stage.painter.upload(&stage.canvas.gl, &mut stage.scene);
        assert!(more.is_ok_and(|more| !more));
        stage.draw();
        assert!(stage.scene.hit(400.0, 400.0).is_some());
    }
    assert_eq!(ALLOCATIONS.get() - before, 0);
}

#[test]
fn restored_contexts_draw_equal_pixels() {
    let mut stage = Stage::new(1, Theme::Dark);
    stage.load();
    stage.draw();
    let before = stage.canvas.read();
    stage.scene.cache.forget_gpu();
    stage.canvas = Canvas::new(CSS[0], CSS[1]);
    stage.painter = Painter::new(&stage.canvas.gl, Theme::Dark).expect("the GL programs link");
    stage.load();
    stage.draw();
    let after = stage.canvas.read();
    for x in (0..CSS[0]).step_by(3) {
        for y in 0..CSS[1] {
            assert_eq!(before.at(x, y), after.at(x, y), "pixel {x},{y}");
        }
    }
}
