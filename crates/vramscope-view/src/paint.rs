//! Draws a scene with GL.

use vramscope_render::gl::{
    Counters, GlError, GpuTile, Rect, RectRenderer, StripRenderer, StripStyle, clear, scissor,
};
use vramscope_render::{Palette, PixelRect, Rgba, Surfaces, Theme};

use crate::axes::GridLines;
use crate::scene::Scene;

/// Strips uploaded per frame: two of the largest tiles, which takes 1 to 2 ms.
const UPLOAD_BUDGET: usize = 64 << 10;
/// Height of the peak's mark in line widths. The mark is an arrowhead that points down.
const MARK_ROWS: u8 = 5;
/// Distance between the mark and the peak in line widths.
const MARK_GAP: f32 = 2.0;

/// The GL programs, and the state that they keep between frames.
#[derive(Debug)]
pub struct Painter {
    strips: StripRenderer,
    rects: RectRenderer,
    theme: Theme,
    lines: GridLines,
    line_rects: Vec<Rect>,
    counters: Counters,
}

impl Painter {
    /// Creates the GL programs.
    ///
    /// # Errors
    /// When the driver rejects a shader or cannot create an object.
    pub fn new(gl: &glow::Context, theme: Theme) -> Result<Self, GlError> {
        Ok(Self {
            strips: StripRenderer::new(gl, &Palette::new(theme))?,
            rects: RectRenderer::new(gl)?,
            theme,
            lines: GridLines::default(),
            line_rects: Vec::new(),
            counters: Counters::default(),
        })
    }

    /// Uploads waiting tiles within the budget of a frame. Returns true when more tiles are
    /// waiting.
    ///
    /// # Errors
    /// When the GPU has no memory for a tile.
    pub fn upload(
        &mut self,
        gl: &glow::Context,
        scene: &mut Scene<GpuTile>,
    ) -> Result<bool, GlError> {
        for tile in scene.cache.take_released() {
            self.strips.release(tile);
        }
        if scene.cache.has_waiting() {
            scene.touch();
            scene.cache.upload(UPLOAD_BUDGET, |strips| self.strips.upload(gl, strips.columns()))?;
        }
        Ok(scene.cache.has_waiting())
    }

    /// Draws the scene.
    pub fn draw(&mut self, gl: &glow::Context, scene: &mut Scene<GpuTile>) {
        if self.theme != scene.theme() {
            self.theme = scene.theme();
            self.strips.set_palette(gl, &Palette::new(self.theme));
        }
        self.counters.reset();
        let surfaces = Surfaces::new(self.theme);
        let canvas = scene.screen().canvas;
        clear(gl, canvas, surfaces.ground);
        if !scene.is_open() {
            return;
        }
        scissor(gl, scene.screen().plot);
        self.draw_grid(gl, scene, &surfaces);
        self.draw_strips(gl, scene, &surfaces);
        // The baseline is below the plot, so that it hides no data.
        let (plot, line) = (scene.screen().plot, line_width(scene));
        scissor(gl, PixelRect { y0: plot.y0 - line, ..plot });
        self.draw_marks(gl, scene, &surfaces);
    }

    fn draw_grid(&mut self, gl: &glow::Context, scene: &Scene<GpuTile>, surfaces: &Surfaces) {
        let (screen, line) = (scene.screen(), line_width(scene));
        let plot = screen.plot;
        if scene.has_rows() {
            return;
        }
        self.line_rects.clear();
        for [x0, x1] in scene.shaded_pixels() {
            self.line_rects.push(solid(PixelRect { x0, x1, ..plot }, surfaces.shade));
        }
        for &y in self.lines.positions(screen, scene.view()) {
            self.line_rects.push(solid(PixelRect { y0: y, y1: y + line, ..plot }, surfaces.grid));
        }
        self.rects.draw(gl, screen.canvas, &self.line_rects, &mut self.counters);
    }

    fn draw_strips(&mut self, gl: &glow::Context, scene: &mut Scene<GpuTile>, surfaces: &Surfaces) {
        let selected = scene.selected();
        let style = StripStyle {
            ground: surfaces.ground,
            accent: surfaces.accent,
            lift: surfaces.lift,
            selected: selected.map(|(block, _)| block),
            ends: selected.and_then(|(_, ends)| ends),
            hovered: scene.hovered(),
            line: line_width(scene),
        };
        let strips = &mut self.strips;
        scene.place_tiles(|tile, placement| strips.place(tile, placement));
        strips.draw(gl, scene.screen().canvas, &style, &mut self.counters);
    }

    fn draw_marks(&mut self, gl: &glow::Context, scene: &Scene<GpuTile>, surfaces: &Surfaces) {
        let (screen, line) = (scene.screen(), line_width(scene));
        let plot = screen.plot;
        self.line_rects.clear();
        // A grid line instead of the baseline when 0 is not in view, and for rows.
        let base = if scene.view().y0 > 0.0 || scene.has_rows() {
            surfaces.grid
        } else {
            surfaces.baseline
        };
        self.line_rects.push(solid(PixelRect { y0: plot.y0 - line, y1: plot.y0, ..plot }, base));
        if let Some(y) = scene.capacity_pixel() {
            self.line_rects.push(dashed(plot, (y + 0.5).floor() as f32, line, surfaces.capacity));
        }
        if let Some([x, y]) = scene.peak_pixel() {
            let (x, y) = (x.floor() as f32, (y + 0.5).floor() as f32);
            self.line_rects.push(dashed(plot, y, line, surfaces.mark));
            for row in 0..MARK_ROWS {
                let (half, low) = (f32::from(row) * line, y + (MARK_GAP + f32::from(row)) * line);
                let at = PixelRect { x0: x - half, x1: x + half + line, y0: low, y1: low + line };
                self.line_rects.push(solid(at, surfaces.mark));
            }
        }
        self.rects.draw(gl, screen.canvas, &self.line_rects, &mut self.counters);
    }

    /// Counts of draw calls and instances in the last frame.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Deletes the GL objects.
    pub fn destroy(self, gl: &glow::Context) {
        self.strips.destroy(gl);
        self.rects.destroy(gl);
    }
}

/// Width of a thin line in device pixels.
fn line_width(scene: &Scene<GpuTile>) -> f32 {
    scene.screen().ratio.round().max(1.0) as f32
}

/// A dashed line over the width of the plot. `y` is its lower edge.
fn dashed(plot: PixelRect, y: f32, line: f32, color: Rgba) -> Rect {
    Rect { at: PixelRect { y0: y, y1: y + line, ..plot }, color, dash: 8.0 * line }
}

fn solid(at: PixelRect, color: Rgba) -> Rect {
    Rect { at, color, dash: 0.0 }
}
