//! A scene as GL draws it.

use vramscope_render::gl::{
    Counters, GlError, GpuTile, Rect, RectRenderer, StripRenderer, StripStyle, clear, scissor,
};
use vramscope_render::{Palette, PixelRect, Rgba, Surfaces, Theme};

use crate::axes::GridLines;
use crate::scene::Scene;

/// Strips that are sent to the GPU in a frame: two of the largest tiles, a millisecond or two.
const UPLOAD: usize = 64 << 10;
/// The rows of the peak's mark, an arrow head that points down, and the pixels (times the line's)
/// between it and the peak.
const MARK_ROWS: u8 = 5;
const MARK_GAP: f32 = 2.0;

/// The programs, and what they need from frame to frame.
#[derive(Debug)]
pub struct Painter {
    strips: StripRenderer,
    rects: RectRenderer,
    theme: Theme,
    lines: GridLines,
    furniture: Vec<Rect>,
    counters: Counters,
}

impl Painter {
    /// Sets up.
    ///
    /// # Errors
    /// When the driver refuses a shader or an object.
    pub fn new(gl: &glow::Context, theme: Theme) -> Result<Self, GlError> {
        Ok(Self {
            strips: StripRenderer::new(gl, &Palette::new(theme))?,
            rects: RectRenderer::new(gl)?,
            theme,
            lines: GridLines::default(),
            furniture: Vec::new(),
            counters: Counters::default(),
        })
    }

    /// Sends tiles that wait, within the budget of a frame; true when there are more.
    ///
    /// # Errors
    /// When the GPU has no memory for a tile.
    pub fn upload(
        &mut self,
        gl: &glow::Context,
        scene: &mut Scene<GpuTile>,
    ) -> Result<bool, GlError> {
        for tile in scene.cache.released() {
            self.strips.release(tile);
        }
        if scene.cache.waiting() {
            scene.touch();
            scene.cache.upload(UPLOAD, |strips| self.strips.upload(gl, strips.columns()))?;
        }
        Ok(scene.cache.waiting())
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
        // The baseline lies below the plot, so that it hides nothing.
        let (plot, line) = (scene.screen().plot, line(scene));
        scissor(gl, PixelRect { y0: plot.y0 - line, ..plot });
        self.draw_marks(gl, scene, &surfaces);
    }

    fn draw_grid(&mut self, gl: &glow::Context, scene: &Scene<GpuTile>, surfaces: &Surfaces) {
        let (screen, line) = (scene.screen(), line(scene));
        let plot = screen.plot;
        if scene.has_rows() {
            return;
        }
        self.furniture.clear();
        for &y in self.lines.of(screen, scene.view()) {
            self.furniture.push(solid(PixelRect { y0: y, y1: y + line, ..plot }, surfaces.grid));
        }
        self.rects.draw(gl, screen.canvas, &self.furniture, &mut self.counters);
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
            line: line(scene),
        };
        let strips = &mut self.strips;
        scene.place_tiles(|tile, placement| strips.place(tile, placement));
        strips.draw(gl, scene.screen().canvas, &style, &mut self.counters);
    }

    fn draw_marks(&mut self, gl: &glow::Context, scene: &Scene<GpuTile>, surfaces: &Surfaces) {
        let (screen, line) = (scene.screen(), line(scene));
        let plot = screen.plot;
        self.furniture.clear();
        // Where 0 is not in view, the plot does not stand on anything; rows never do.
        let base = if scene.view().y0 > 0.0 || scene.has_rows() {
            surfaces.grid
        } else {
            surfaces.baseline
        };
        self.furniture.push(solid(PixelRect { y0: plot.y0 - line, y1: plot.y0, ..plot }, base));
        if let Some(y) = scene.capacity_pixel() {
            self.furniture.push(dashed(plot, (y + 0.5).floor() as f32, line, surfaces.warn));
        }
        if let Some([x, y]) = scene.peak_pixel() {
            let (x, y) = (x.floor() as f32, (y + 0.5).floor() as f32);
            self.furniture.push(dashed(plot, y, line, surfaces.mark));
            for row in 0..MARK_ROWS {
                let (half, low) = (f32::from(row) * line, y + (MARK_GAP + f32::from(row)) * line);
                let at = PixelRect { x0: x - half, x1: x + half + line, y0: low, y1: low + line };
                self.furniture.push(solid(at, surfaces.mark));
            }
        }
        self.rects.draw(gl, screen.canvas, &self.furniture, &mut self.counters);
    }

    /// What the last frame took.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Gives the GL objects back.
    pub fn destroy(self, gl: &glow::Context) {
        self.strips.destroy(gl);
        self.rects.destroy(gl);
    }
}

/// Device pixels of a thin line.
fn line(scene: &Scene<GpuTile>) -> f32 {
    scene.screen().ratio.round().max(1.0) as f32
}

/// A line from side to side, `y` its lower edge.
fn dashed(plot: PixelRect, y: f32, line: f32, color: Rgba) -> Rect {
    Rect { at: PixelRect { y0: y, y1: y + line, ..plot }, color, dash: 8.0 * line }
}

fn solid(at: PixelRect, color: Rgba) -> Rect {
    Rect { at, color, dash: 0.0 }
}
