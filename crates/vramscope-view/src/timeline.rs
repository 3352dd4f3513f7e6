//! The class for JavaScript.
//!
//! It owns the canvas, its context and a [`Scene`]. It only converts between values of JavaScript
//! and Rust. Exceptions are strings for the user.

use js_sys::Float64Array;
use serde::Serialize;
use vramscope_render::gl::GpuTile;
use vramscope_render::{Color, Palette, Strips, Theme};
use vramscope_units::color::{css, label_on};
use wasm_bindgen::prelude::*;
use web_sys::{
    HtmlCanvasElement, MediaQueryList, Performance, WebGl2RenderingContext, WebGlContextAttributes,
};

use crate::motion::Action;
use crate::paint::Painter;
use crate::scene::{Scene, Selection};
use crate::screen::Screen;
use crate::stats::FrameTimes;
use crate::tile::{Area, Axis, PlotKind, TileKey};

mod overlay;
mod types;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Stats {
    strips: u32,
    instances: u32,
    draw_calls: u32,
    frame_cpu_ms: Quantiles,
    tiles: usize,
}

#[derive(Serialize)]
struct Quantiles {
    p50: f64,
    p95: f64,
}

/// The colors of a theme, for elements that the page draws itself. Needs no canvas.
#[wasm_bindgen]
pub struct Swatches {
    palette: Palette,
}

#[wasm_bindgen]
impl Swatches {
    /// The colors of the dark or the light theme.
    #[wasm_bindgen(constructor)]
    pub fn new(dark: bool) -> Self {
        Self { palette: Palette::new(theme(dark)) }
    }

    /// The CSS color of a color word.
    pub fn css(&self, color: u32) -> String {
        self.palette.css(Color::from_word(color))
    }

    /// The CSS color of a label on a color word.
    pub fn ink(&self, color: u32) -> String {
        self.palette.ink(Color::from_word(color))
    }

    /// The CSS color of a label on a color.
    #[wasm_bindgen(js_name = inkOn)]
    pub fn ink_on(red: u8, green: u8, blue: u8) -> String {
        css(label_on([red, green, blue]))
    }
}

fn theme(dark: bool) -> Theme {
    if dark { Theme::Dark } else { Theme::Light }
}

/// A context and the objects created in it. Both are dropped when the context is lost.
struct Gpu {
    gl: glow::Context,
    painter: Painter,
}

impl Gpu {
    fn new(context: &WebGl2RenderingContext, theme: Theme) -> Result<Self, String> {
        let gl = glow::Context::from_webgl2_context(context.clone());
        let painter = Painter::new(&gl, theme).map_err(|error| error.to_string())?;
        Ok(Self { gl, painter })
    }
}

/// One plot in one canvas: the timeline of a trace, its segments, or a flame graph.
#[wasm_bindgen]
pub struct TimelineView {
    canvas: HtmlCanvasElement,
    context: WebGl2RenderingContext,
    clock: Option<Performance>,
    /// Matches when the user prefers reduced motion.
    reduced_motion: Option<MediaQueryList>,
    gpu: Option<Gpu>,
    scene: Scene<GpuTile>,
    times: FrameTimes,
    /// The last result of [`TimelineView::labels`], and its inputs.
    labels: Option<(ViewState, JsValue)>,
    /// The last result of [`TimelineView::boxes`], and its inputs.
    boxes: Option<(ViewState, Float64Array)>,
}

/// The inputs of labels and of the positions of boxes.
type ViewState = (Screen, Area, bool);

#[wasm_bindgen]
impl TimelineView {
    /// Creates a plot in a canvas.
    ///
    /// # Errors
    /// A message when the browser cannot create a WebGL 2 context.
    #[wasm_bindgen(constructor)]
    pub fn new(canvas: HtmlCanvasElement) -> Result<TimelineView, JsValue> {
        console_error_panic_hook::set_once();
        let wanted = WebGlContextAttributes::new();
        // No alpha: every pixel is drawn opaque. No antialiasing: edges are at pixels. The drawing
        // buffer is not preserved, because it is not read after it was shown.
        wanted.set_alpha(false);
        wanted.set_antialias(false);
        wanted.set_depth(false);
        wanted.set_stencil(false);
        wanted.set_preserve_drawing_buffer(false);
        let context = canvas
            .get_context_with_context_options("webgl2", &wanted)
            .ok()
            .flatten()
            .and_then(|context| context.dyn_into::<WebGl2RenderingContext>().ok())
            .ok_or(
                "Cannot create a WebGL 2 context: WebGL is disabled, or too many contexts are in \
                 use. Enable it in the browser's settings, or close other tabs that use it.",
            )?;
        let gpu = Gpu::new(&context, Theme::Dark)?;
        let window = web_sys::window();
        let clock = window.as_ref().and_then(web_sys::Window::performance);
        let reduced_motion =
            window.and_then(|w| w.match_media("(prefers-reduced-motion: reduce)").ok().flatten());
        Ok(Self {
            canvas,
            context,
            clock,
            reduced_motion,
            gpu: Some(gpu),
            scene: Scene::default(),
            times: FrameTimes::default(),
            labels: None,
            boxes: None,
        })
    }

    /// Sets the size of the canvas. The drawing buffer is resized in the next frame, so that an
    /// empty buffer is never visible.
    pub fn resize(&mut self, css_width: f64, css_height: f64, device_pixel_ratio: f64) {
        self.scene.resize(Screen::new(css_width, css_height, device_pixel_ratio));
    }

    /// Sets the dark or the light theme. Tiles are kept.
    #[wasm_bindgen(js_name = setTheme)]
    pub fn set_theme(&mut self, dark: bool) {
        self.scene.set_theme(theme(dark));
    }

    /// Opens a trace, axis or kind of plot, with `gutter` CSS pixels of space left of the plot.
    /// Labels need 64. Drops all tiles and settings (top, base, capacity, boxes, hover and
    /// selection), and shows the whole view.
    ///
    /// # Errors
    /// When `axis` is not a valid axis, or `kind` is not a valid kind.
    pub fn open(
        &mut self,
        #[wasm_bindgen(unchecked_param_type = "Axis")] axis: JsValue,
        peak_bytes: f64,
        #[wasm_bindgen(unchecked_param_type = "PlotKind")] kind: JsValue,
        gutter: f64,
    ) -> Result<(), JsValue> {
        let axis: Axis = serde_wasm_bindgen::from_value(axis)?;
        let kind: PlotKind = serde_wasm_bindgen::from_value(kind)?;
        self.scene.open(axis, peak_bytes, kind, gutter);
        self.labels = None;
        self.boxes = None;
        Ok(())
    }

    /// Marks all tiles as stale, for example after a change of colors. The old tiles stay on screen
    /// until the new ones arrive.
    pub fn refresh(&mut self) {
        self.scene.refresh();
    }

    /// Closes the plot.
    pub fn close(&mut self) {
        self.scene.close();
        self.labels = None;
        self.boxes = None;
    }

    /// The tiles to request from a worker, most urgent first. The list replaces the previous one:
    /// it has all missing tiles of the view. Empty when no missing tile is new since the last call.
    ///
    /// # Errors
    /// Never in practice: keys are plain numbers.
    #[wasm_bindgen(unchecked_return_type = "TileKey[]")]
    pub fn wanted(&mut self) -> Result<JsValue, JsValue> {
        Ok(serde_wasm_bindgen::to_value(self.scene.wanted())?)
    }

    /// Adds a tile that has arrived. It must belong to the open trace and axis.
    ///
    /// # Errors
    /// When the lengths of the arrays do not match.
    #[wasm_bindgen(js_name = putTile)]
    pub fn put_tile(
        &mut self,
        #[wasm_bindgen(unchecked_param_type = "TileKey")] key: JsValue,
        positions: Vec<f32>,
        colors: Vec<u32>,
        blocks: Vec<u32>,
    ) -> Result<(), JsValue> {
        let key: TileKey = serde_wasm_bindgen::from_value(key)?;
        let strips = Strips::from_flat(positions, colors, blocks).ok_or(
            "Invalid tile: it needs four positions, one color and one block number per strip.",
        )?;
        self.scene.put_tile(key, strips);
        Ok(())
    }

    /// Draws if something has changed. Returns true when another frame is needed.
    ///
    /// # Errors
    /// A message when the GPU has no memory for a tile.
    pub fn frame(&mut self, now_ms: f64) -> Result<bool, JsValue> {
        let Some(gpu) = &mut self.gpu else { return Ok(false) };
        let began = self.clock.as_ref().map(Performance::now);
        let moving = self.scene.advance(now_ms);
        let uploaded = gpu.painter.upload(&gpu.gl, &mut self.scene);
        if self.scene.take_dirty() {
            let [width, height] = self.scene.screen().canvas;
            // Only on a change: setting either makes the browser allocate a new drawing buffer.
            if self.canvas.width() != width {
                self.canvas.set_width(width);
            }
            if self.canvas.height() != height {
                self.canvas.set_height(height);
            }
            gpu.painter.draw(&gpu.gl, &mut self.scene);
            if let (Some(began), Some(clock)) = (began, &self.clock) {
                self.times.record(clock.now() - began);
            }
        }
        let more = uploaded.map_err(|error| error.to_string())?;
        Ok(moving || more)
    }

    /// The labels of the view. Returns the previous object while nothing has changed.
    ///
    /// # Errors
    /// Never in practice: labels are numbers and text.
    #[wasm_bindgen(unchecked_return_type = "Labels")]
    pub fn labels(&mut self) -> Result<JsValue, JsValue> {
        let state = self.view_state();
        if let Some((before, labels)) = &self.labels
            && *before == state
        {
            return Ok(labels.clone());
        }
        let serializer = serde_wasm_bindgen::Serializer::new().serialize_missing_as_null(true);
        let labels = self.scene.labels().serialize(&serializer)?;
        self.labels = Some((state, labels.clone()));
        Ok(labels)
    }

    /// Handles a wheel event. The wheel zooms x about the pointer, with Shift it zooms y, and
    /// horizontal deltas pan.
    #[expect(
        clippy::too_many_arguments,
        reason = "the fields of a wheel event, without allocating an object per event"
    )]
    pub fn wheel(
        &mut self,
        x: f64,
        y: f64,
        dx: f64,
        dy: f64,
        delta_mode: u32,
        shift: bool,
        ctrl: bool,
    ) {
        self.scene.wheel([x, y], [dx, dy], delta_mode, shift, ctrl);
    }

    /// Zooms along x about a CSS position, and pans by CSS pixels.
    pub fn pinch(&mut self, x: f64, factor: f64, by: f64) {
        self.scene.pinch(x, factor, by);
    }

    /// Starts a drag.
    #[wasm_bindgen(js_name = beginDrag)]
    pub fn begin_drag(&mut self, x: f64, y: f64) {
        self.scene.begin_drag(x, y);
    }

    /// Continues a drag.
    pub fn drag(&mut self, x: f64, y: f64) {
        self.scene.drag(x, y);
    }

    /// Ends a drag.
    #[wasm_bindgen(js_name = endDrag)]
    pub fn end_drag(&mut self) {
        self.scene.end_drag();
    }

    /// Handles a key that goes down or up, and acts while it is held.
    ///
    /// # Errors
    /// When the action is unknown.
    pub fn key(&mut self, action: &str, down: bool, now_ms: f64) -> Result<(), JsValue> {
        let action = Action::from_name(action)
            .ok_or_else(|| format!("Unknown timeline action `{action}`."))?;
        self.scene.set_smooth(self.is_smooth());
        self.scene.key(action, down, now_ms);
        Ok(())
    }

    /// Releases all held keys.
    #[wasm_bindgen(js_name = releaseKeys)]
    pub fn release_keys(&mut self) {
        self.scene.release_keys();
    }

    /// The pointer has left the canvas. From now on keys zoom about the center.
    #[wasm_bindgen(js_name = pointerLeft)]
    pub fn pointer_left(&mut self) {
        self.scene.pointer_left();
    }

    /// Jumps to the whole view.
    pub fn fit(&mut self) {
        self.scene.set_smooth(self.is_smooth());
        self.scene.fit();
    }

    /// Jumps to a range of slots with a small margin.
    #[wasm_bindgen(js_name = fitRange)]
    pub fn fit_range(&mut self, x0: f64, x1: f64) {
        self.scene.set_smooth(self.is_smooth());
        self.scene.fit_range(x0, x1);
    }

    /// Jumps so that a slot is in the center.
    pub fn goto(&mut self, slot: f64) {
        self.scene.set_smooth(self.is_smooth());
        self.scene.goto(slot);
    }

    /// The strip that the last frame shows at a position in CSS pixels of the canvas.
    ///
    /// # Errors
    /// Never in practice: a hit is plain numbers.
    #[wasm_bindgen(unchecked_return_type = "Hit | null")]
    pub fn hit(&mut self, x: f64, y: f64) -> Result<JsValue, JsValue> {
        match self.scene.hit(x, y) {
            Some(hit) => Ok(serde_wasm_bindgen::to_value(&hit)?),
            None => Ok(JsValue::NULL),
        }
    }

    /// Sets the hovered block, which is lightened.
    #[wasm_bindgen(js_name = setHover)]
    pub fn set_hover(&mut self, block: Option<u32>) {
        self.scene.set_hovered(block);
    }

    /// Sets the selected block, which is outlined. The outline is closed at the slots `x0` and `x1`
    /// where the block begins and ends, if given.
    #[wasm_bindgen(js_name = setSelected)]
    pub fn set_selected(&mut self, block: Option<u32>, x0: Option<f64>, x1: Option<f64>) {
        let span = x0.zip(x1).map(|(x0, x1)| [x0, x1]);
        self.scene.set_selected(block.map(|block| Selection { block, span }));
    }

    /// The view, or the target of a running jump.
    ///
    /// # Errors
    /// Never in practice: an area is four numbers.
    #[wasm_bindgen(js_name = getView, unchecked_return_type = "Area")]
    pub fn get_view(&self) -> Result<JsValue, JsValue> {
        Ok(serde_wasm_bindgen::to_value(&self.scene.target())?)
    }

    /// Shows the nearest allowed view without animation.
    ///
    /// # Errors
    /// When `view` is not a valid area.
    #[wasm_bindgen(js_name = setView)]
    pub fn set_view(
        &mut self,
        #[wasm_bindgen(unchecked_param_type = "Area")] view: JsValue,
    ) -> Result<(), JsValue> {
        let view: Area = serde_wasm_bindgen::from_value(view)?;
        self.scene.set_view(view);
        Ok(())
    }

    /// Statistics of drawing.
    ///
    /// # Errors
    /// Never in practice: the statistics are plain numbers.
    #[wasm_bindgen(unchecked_return_type = "Stats")]
    pub fn stats(&self) -> Result<JsValue, JsValue> {
        let counters = self.gpu.as_ref().map(|gpu| gpu.painter.counters()).unwrap_or_default();
        let [p50, p95] = self.times.quantiles([0.5, 0.95]);
        let stats = Stats {
            strips: counters.strips,
            instances: counters.instances,
            draw_calls: counters.draws,
            frame_cpu_ms: Quantiles { p50, p95 },
            tiles: self.scene.cache.len(),
        };
        Ok(serde_wasm_bindgen::to_value(&stats)?)
    }

    /// Handles a lost context. The caller must prevent the event's default action, otherwise the
    /// browser never restores the context.
    #[wasm_bindgen(js_name = contextLost)]
    pub fn context_lost(&mut self) {
        // The objects of a lost context no longer exist, so they are not deleted.
        self.gpu = None;
        self.scene.cache.forget_gpu();
    }

    /// Handles a restored context: creates all objects again, from the strips in the cache.
    ///
    /// # Errors
    /// A message when the objects cannot be created.
    #[wasm_bindgen(js_name = contextRestored)]
    pub fn context_restored(&mut self) -> Result<(), JsValue> {
        self.context_lost();
        self.gpu = Some(Gpu::new(&self.context, self.scene.theme())?);
        self.scene.touch();
        Ok(())
    }

    /// Deletes the GL objects. Afterwards nothing is drawn. Call `free()` too.
    pub fn destroy(&mut self) {
        self.scene.close();
        self.labels = None;
        self.boxes = None;
        if let Some(Gpu { gl, painter }) = self.gpu.take() {
            painter.destroy(&gl);
        }
    }

    fn view_state(&self) -> ViewState {
        (*self.scene.screen(), *self.scene.view(), self.scene.is_open())
    }

    fn is_smooth(&self) -> bool {
        !self.reduced_motion.as_ref().is_some_and(MediaQueryList::matches)
    }
}
