//! The class that JavaScript sees.
//!
//! It keeps the canvas, its context and a [`Scene`]; all that it does itself is to turn
//! JavaScript's values into Rust's. Exceptions are strings that can be shown.

use js_sys::Float64Array;
use serde::Serialize;
use vramscope_render::gl::GpuTile;
use vramscope_render::{Color, Palette, Strips, Theme};
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

/// The colors of a theme, for what the page draws itself; they need no canvas.
#[wasm_bindgen]
pub struct Swatches {
    palette: Palette,
}

#[wasm_bindgen]
impl Swatches {
    /// Those of the dark or the light theme.
    #[wasm_bindgen(constructor)]
    pub fn new(dark: bool) -> Self {
        Self { palette: Palette::new(theme(dark)) }
    }

    /// The CSS color of a color word.
    pub fn css(&self, color: u32) -> String {
        self.palette.css(Color::from_word(color))
    }
}

fn theme(dark: bool) -> Theme {
    if dark { Theme::Dark } else { Theme::Light }
}

/// A context and what was made in it; both go when the context is lost.
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
    still: Option<MediaQueryList>,
    gpu: Option<Gpu>,
    scene: Scene<GpuTile>,
    times: FrameTimes,
    labels: Option<(LabelsOf, JsValue)>,
    boxes: Option<(LabelsOf, Float64Array)>,
}

/// What the labels, and the places of boxes, depend on.
type LabelsOf = (Screen, Area, bool);

#[wasm_bindgen]
impl TimelineView {
    /// Takes a canvas.
    ///
    /// # Errors
    /// In words, when the browser has no WebGL 2.
    #[wasm_bindgen(constructor)]
    pub fn new(canvas: HtmlCanvasElement) -> Result<TimelineView, JsValue> {
        console_error_panic_hook::set_once();
        let wanted = WebGlContextAttributes::new();
        // Every pixel is drawn, so nothing shows through; edges lie on pixels, so there is nothing
        // to smooth; the drawing buffer need not be kept, since nothing reads it after it was
        // shown.
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
            .ok_or("This browser gives no WebGL 2 context: it is switched off, or too many are in use.")?;
        let gpu = Gpu::new(&context, Theme::Dark)?;
        let window = web_sys::window();
        let clock = window.as_ref().and_then(web_sys::Window::performance);
        let still =
            window.and_then(|w| w.match_media("(prefers-reduced-motion: reduce)").ok().flatten());
        Ok(Self {
            canvas,
            context,
            clock,
            still,
            gpu: Some(gpu),
            scene: Scene::default(),
            times: FrameTimes::default(),
            labels: None,
            boxes: None,
        })
    }

    /// The canvas has another size. The drawing buffer follows with the next frame, so that it is
    /// never seen empty.
    pub fn resize(&mut self, css_width: f64, css_height: f64, device_pixel_ratio: f64) {
        self.scene.resize(Screen::new(css_width, css_height, device_pixel_ratio));
    }

    /// Dark or light; tiles stay.
    #[wasm_bindgen(js_name = setTheme)]
    pub fn set_theme(&mut self, dark: bool) {
        self.scene.set_theme(theme(dark));
    }

    /// Another trace, axis or kind of plot, with so many CSS pixels left of it (64 have room for
    /// labels): forgets the tiles and all that was set (top, base, capacity, boxes, hover and
    /// selection), and shows everything.
    ///
    /// # Errors
    /// When `axis` is no axis, or `kind` no kind.
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

    /// The same is to be drawn in another way: all tiles are wanted anew; the old ones stay on
    /// screen until then.
    pub fn refresh(&mut self) {
        self.scene.refresh();
    }

    /// Nothing to draw.
    pub fn close(&mut self) {
        self.scene.close();
        self.labels = None;
        self.boxes = None;
    }

    /// The tiles to ask a worker for, most wanted first: all that the view needs and that are not
    /// here, when one of them is new since the last call; else none. Post the list as it is: it
    /// replaces the one before.
    ///
    /// # Errors
    /// Never, in practice: keys are plain numbers.
    #[wasm_bindgen(unchecked_return_type = "TileKey[]")]
    pub fn wanted(&mut self) -> Result<JsValue, JsValue> {
        Ok(serde_wasm_bindgen::to_value(self.scene.wanted())?)
    }

    /// A tile has come. One of another trace or axis than the open one must not be given here.
    ///
    /// # Errors
    /// When the columns do not belong together.
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
            "a tile has four positions, a color and a block for every strip; this one has not",
        )?;
        self.scene.put_tile(key, strips);
        Ok(())
    }

    /// Draws, if something has changed; true when the next frame should be drawn too.
    ///
    /// # Errors
    /// In words, when the GPU has no memory for a tile.
    pub fn frame(&mut self, now_ms: f64) -> Result<bool, JsValue> {
        let Some(gpu) = &mut self.gpu else { return Ok(false) };
        let began = self.clock.as_ref().map(Performance::now);
        let moving = self.scene.advance(now_ms);
        let uploaded = gpu.painter.upload(&gpu.gl, &mut self.scene);
        if self.scene.take_dirty() {
            let [width, height] = self.scene.screen().canvas;
            // Either makes the browser give the canvas another drawing buffer, and wait for it.
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

    /// The labels of what is in view: the same object as before while nothing has changed.
    ///
    /// # Errors
    /// Never, in practice: labels are numbers and text.
    #[wasm_bindgen(unchecked_return_type = "Labels")]
    pub fn labels(&mut self) -> Result<JsValue, JsValue> {
        let of = self.labels_of();
        if let Some((before, labels)) = &self.labels
            && *before == of
        {
            return Ok(labels.clone());
        }
        let serializer = serde_wasm_bindgen::Serializer::new().serialize_missing_as_null(true);
        let labels = self.scene.labels().serialize(&serializer)?;
        self.labels = Some((of, labels.clone()));
        Ok(labels)
    }

    /// The wheel: plain zooms x about the pointer, with Shift y, sideways pans.
    #[expect(
        clippy::too_many_arguments,
        reason = "a wheel event as it is, without an object for every turn"
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

    /// The hand takes hold of the plot.
    #[wasm_bindgen(js_name = beginDrag)]
    pub fn begin_drag(&mut self, x: f64, y: f64) {
        self.scene.begin_drag(x, y);
    }

    /// The hand moves.
    pub fn drag(&mut self, x: f64, y: f64) {
        self.scene.drag(x, y);
    }

    /// The hand lets go.
    #[wasm_bindgen(js_name = endDrag)]
    pub fn end_drag(&mut self) {
        self.scene.end_drag();
    }

    /// A key that acts while it is held goes down or up.
    ///
    /// # Errors
    /// When there is no such action.
    pub fn key(&mut self, action: &str, down: bool, now_ms: f64) -> Result<(), JsValue> {
        let action = Action::from_name(action)
            .ok_or_else(|| format!("the timeline has no action `{action}`"))?;
        self.scene.set_smooth(self.smooth());
        self.scene.key(action, down, now_ms);
        Ok(())
    }

    /// No key is held any more.
    #[wasm_bindgen(js_name = releaseKeys)]
    pub fn release_keys(&mut self) {
        self.scene.release_keys();
    }

    /// The pointer has left the canvas: keys zoom about the middle.
    #[wasm_bindgen(js_name = pointerLeft)]
    pub fn pointer_left(&mut self) {
        self.scene.pointer_left();
    }

    /// Shows everything.
    pub fn fit(&mut self) {
        self.scene.set_smooth(self.smooth());
        self.scene.fit();
    }

    /// Shows a range of slots, with a little room beside it.
    #[wasm_bindgen(js_name = fitRange)]
    pub fn fit_range(&mut self, x0: f64, x1: f64) {
        self.scene.set_smooth(self.smooth());
        self.scene.fit_range(x0, x1);
    }

    /// Moves a slot to the middle.
    pub fn goto(&mut self, slot: f64) {
        self.scene.set_smooth(self.smooth());
        self.scene.goto(slot);
    }

    /// What the last frame shows at a place, in CSS pixels of the canvas.
    ///
    /// # Errors
    /// Never, in practice: a hit is plain numbers.
    #[wasm_bindgen(unchecked_return_type = "Hit | null")]
    pub fn hit(&mut self, x: f64, y: f64) -> Result<JsValue, JsValue> {
        match self.scene.hit(x, y) {
            Some(hit) => Ok(serde_wasm_bindgen::to_value(&hit)?),
            None => Ok(JsValue::NULL),
        }
    }

    /// Lightens a block.
    #[wasm_bindgen(js_name = setHover)]
    pub fn set_hover(&mut self, block: Option<u32>) {
        self.scene.set_hovered(block);
    }

    /// Outlines a block. With the slots where it begins and ends the outline closes there.
    #[wasm_bindgen(js_name = setSelected)]
    pub fn set_selected(&mut self, block: Option<u32>, x0: Option<f64>, x1: Option<f64>) {
        let span = x0.zip(x1).map(|(x0, x1)| [x0, x1]);
        self.scene.set_selected(block.map(|block| Selection { block, span }));
    }

    /// What is in view, or will be when a jump is over.
    ///
    /// # Errors
    /// Never, in practice: an area is four numbers.
    #[wasm_bindgen(js_name = getView, unchecked_return_type = "Area")]
    pub fn get_view(&self) -> Result<JsValue, JsValue> {
        Ok(serde_wasm_bindgen::to_value(&self.scene.target())?)
    }

    /// Shows a view at once, or the nearest that is allowed.
    ///
    /// # Errors
    /// When `view` is no area.
    #[wasm_bindgen(js_name = setView)]
    pub fn set_view(
        &mut self,
        #[wasm_bindgen(unchecked_param_type = "Area")] view: JsValue,
    ) -> Result<(), JsValue> {
        let view: Area = serde_wasm_bindgen::from_value(view)?;
        self.scene.set_view(view);
        Ok(())
    }

    /// What drawing takes.
    ///
    /// # Errors
    /// Never, in practice: these are plain numbers.
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

    /// The context is lost. (The event's default must be prevented, or it never comes back.)
    #[wasm_bindgen(js_name = contextLost)]
    pub fn context_lost(&mut self) {
        // Its objects are gone already: there is nothing to give back.
        self.gpu = None;
        self.scene.cache.forget_gpu();
    }

    /// The context is back: everything is made anew, from the columns that were kept.
    ///
    /// # Errors
    /// In words, when the new context cannot be set up.
    #[wasm_bindgen(js_name = contextRestored)]
    pub fn context_restored(&mut self) -> Result<(), JsValue> {
        self.context_lost();
        self.gpu = Some(Gpu::new(&self.context, self.scene.theme())?);
        self.scene.touch();
        Ok(())
    }

    /// Gives the GL objects back. Draws nothing afterwards; call `free()` too.
    pub fn destroy(&mut self) {
        self.scene.close();
        self.labels = None;
        self.boxes = None;
        if let Some(Gpu { gl, painter }) = self.gpu.take() {
            painter.destroy(&gl);
        }
    }

    fn labels_of(&self) -> LabelsOf {
        (*self.scene.screen(), *self.scene.view(), self.scene.is_open())
    }

    fn smooth(&self) -> bool {
        !self.still.as_ref().is_some_and(MediaQueryList::matches)
    }
}
