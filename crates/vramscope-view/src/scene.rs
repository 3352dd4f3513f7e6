//! The state of a plot: the open axis, the view, its animation, and the tiles.
//!
//! It does not draw and needs no browser. `G` is the handle of a tile in GPU memory. Tests use a
//! placeholder for it.

use serde::Serialize;
use vramscope_render::{NO_BLOCK, Placement, Strips, TILE_COLUMNS, TILE_ROWS, Theme};
use vramscope_units::TimeBreak;

use crate::axes::{Labels, labels, peak_pixel};
use crate::cache::Cache;
use crate::grid::{Cells, Planner, TilePiece, level, nearest_first};
use crate::hit::{clamp_inside, strip_at};
use crate::motion::{Action, Ease, HeldKeys};
use crate::screen::{DEFAULT_LEFT, Screen, valid_length};
use crate::tile::{Area, Axis, Level, PlotKind, TileKey};
use crate::viewport::Bounds;
use crate::wheel;

/// Margin on both sides of a range that the view is fitted to, as a share of the range.
const RANGE_MARGIN: f64 = 0.05;

/// A point in a plot.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PlotPoint {
    /// The slot or weight.
    pub x: f64,
    /// The height in bytes or units of rows.
    pub y: f64,
}

/// The strip under the pointer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Hit {
    /// The block. In a merged strip the largest one.
    pub block: u32,
    /// Whether the strip merges several blocks.
    pub merged: bool,
    /// The strip's color word.
    pub color: u32,
    /// Whether the strip has a hit of the search. True for all without a search.
    pub lit: bool,
    /// The slot under the pointer, clamped to the strip.
    pub slot: f64,
    /// The height under the pointer in bytes (or units of rows), clamped to the strip.
    pub bytes: f64,
    /// Log2 of the slots per column of the hit tile.
    pub kx: u8,
    /// Log2 of the bytes per row of the hit tile.
    pub ky: u8,
}

/// The selected block, and its life if known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Selection {
    /// Index into the device's block table.
    pub block: u32,
    /// First slot of its life, and one past the last.
    pub span: Option<[f64; 2]>,
}

#[derive(Clone, Copy, Debug)]
struct OpenPlot {
    axis: Axis,
    bounds: Bounds,
}

#[derive(Clone, Copy, Debug)]
struct Drag {
    from: [f64; 2],
    view: Area,
}

/// A piece of a tile, and its placement on the screen.
#[derive(Clone, Copy, Debug)]
struct PlacedPiece {
    key: TileKey,
    placement: Placement,
}

/// A plot: a timeline, segments or a flame graph.
#[derive(Debug)]
pub struct Scene<G> {
    screen: Screen,
    /// Space left of the plot in CSS pixels.
    left: f64,
    open: Option<OpenPlot>,
    view: Area,
    ease: Option<Ease>,
    keys: HeldKeys,
    drag: Option<Drag>,
    pointer: Option<[f64; 2]>,
    smooth: bool,
    theme: Theme,
    hovered: Option<u32>,
    selected: Option<Selection>,
    capacity: Option<f64>,
    /// Ranges of slots with another ground, in order.
    shaded: Vec<[f64; 2]>,
    /// Parts of the time axis that take less room, from the origin.
    breaks: Vec<TimeBreak>,
    boxes: Vec<f64>,
    /// The tiles.
    pub cache: Cache<G>,
    planner: Planner,
    pieces: Vec<TilePiece>,
    placed: Vec<PlacedPiece>,
    /// The last list returned by [`Scene::wanted`], without the tiles that have arrived.
    requested: Vec<TileKey>,
    /// Scratch space of [`Scene::wanted`].
    missing: Vec<TileKey>,
    dirty: bool,
}

impl<G> Default for Scene<G> {
    fn default() -> Self {
        Self {
            screen: Screen::default(),
            left: DEFAULT_LEFT,
            open: None,
            view: Area::default(),
            ease: None,
            keys: HeldKeys::default(),
            drag: None,
            pointer: None,
            smooth: true,
            theme: Theme::Dark,
            hovered: None,
            selected: None,
            capacity: None,
            shaded: Vec::new(),
            breaks: Vec::new(),
            boxes: Vec::new(),
            cache: Cache::default(),
            planner: Planner::default(),
            pieces: Vec::new(),
            placed: Vec::new(),
            requested: Vec::new(),
            missing: Vec::new(),
            dirty: true,
        }
    }
}

impl<G> Scene<G> {
    /// Sets the size of the canvas.
    pub fn resize(&mut self, screen: Screen) {
        let screen = screen.with_left(self.left);
        if screen != self.screen {
            self.screen = screen;
            self.dirty = true;
            if let Some(OpenPlot { bounds, .. }) = self.open
                && bounds.rows.is_some()
            {
                self.set_bounds(Bounds { plot: screen.plot_css().height, ..bounds });
            }
        }
    }

    /// Sets the color theme.
    pub fn set_theme(&mut self, theme: Theme) {
        self.theme = theme;
        self.dirty = true;
    }

    /// Opens a trace, axis or kind of plot, with `left` CSS pixels of space left of the plot. Drops
    /// all tiles and settings of the previous one, and shows the whole view.
    pub fn open(&mut self, axis: Axis, peak: f64, kind: PlotKind, left: f64) {
        self.close();
        self.left = left;
        self.screen = self.screen.with_left(left);
        let bounds = Bounds {
            plot: valid_length(self.screen.plot_css().height),
            ..Bounds::new(axis.extent, peak, kind)
        };
        self.open = Some(OpenPlot { axis, bounds });
        self.view = bounds.fit();
    }

    /// Closes the plot, and drops its tiles and settings.
    pub fn close(&mut self) {
        self.open = None;
        self.cache.clear();
        self.requested.clear();
        self.placed.clear();
        self.ease = None;
        self.drag = None;
        self.keys.release();
        self.hovered = None;
        self.selected = None;
        self.capacity = None;
        self.shaded.clear();
        self.breaks.clear();
        self.boxes.clear();
        self.dirty = true;
    }

    /// The tiles to request from a worker, nearest to the pointer (or the center) first.
    ///
    /// Empty when all missing tiles were already in the last list. Otherwise the list has all
    /// missing tiles, because a worker drops earlier requests.
    pub fn wanted(&mut self) -> &[TileKey] {
        self.missing.clear();
        let Some(open) = self.open.filter(|_| !self.screen.is_empty()) else { return &[] };
        let view = self.target();
        let level = level(&view, self.screen.plot_size());
        let cells = Cells::of(&view.and(&open.bounds.drawn()), level);
        self.missing.extend(cells.iter().filter(|key| !self.cache.contains(*key)));
        if self.missing.iter().all(|key| self.requested.contains(key)) {
            return &[];
        }
        let near = self.anchor(&view);
        nearest_first(&mut self.missing, near);
        self.requested.clone_from(&self.missing);
        &self.requested
    }

    /// Adds a tile that has arrived.
    pub fn put_tile(&mut self, key: TileKey, strips: Strips) {
        let Some(open) = self.open else { return };
        self.requested.retain(|requested| *requested != key);
        let home = level(&open.bounds.fit(), self.screen.plot_size().map(|v| v.max(1.0)));
        self.cache.put(key, strips, home);
        self.dirty = true;
    }

    /// Marks all tiles as stale, for example after a change of colors. They are requested again,
    /// and the old ones stay on screen until then.
    pub fn refresh(&mut self) {
        self.cache.mark_stale();
        self.requested.clear();
        self.dirty = true;
    }

    /// Advances the animation to the time `now` in milliseconds. Returns true while the view moves.
    pub fn advance(&mut self, now: f64) -> bool {
        let Some(open) = self.open else { return false };
        if let Some(mut ease) = self.ease {
            let (view, over) = ease.at(now);
            self.view = view;
            self.ease = (!over).then_some(ease);
            self.dirty = true;
        }
        if self.keys.is_moving() {
            let at = self.anchor(&self.view);
            self.view = self.keys.advance(self.view, at, &open.bounds, now, self.smooth);
            self.dirty = true;
        }
        self.ease.is_some() || self.keys.is_moving()
    }

    /// Returns whether the last frame is outdated, and resets the flag.
    pub fn take_dirty(&mut self) -> bool {
        std::mem::take(&mut self.dirty)
    }

    /// Marks the last frame as outdated.
    pub fn touch(&mut self) {
        self.dirty = true;
    }

    /// Selects the pieces of tiles that cover the view, and calls `draw` for each.
    pub fn place_tiles(&mut self, mut draw: impl FnMut(&G, Placement)) {
        self.placed.clear();
        self.cache.begin_frame();
        let Some(open) = self.open.filter(|_| !self.screen.is_empty()) else { return };
        let area = self.view.and(&open.bounds.drawn());
        let level = self.level();
        let cache = &self.cache;
        self.planner.plan(
            &area,
            level,
            cache.levels(),
            |key| cache.is_drawable(key),
            &mut self.pieces,
        );
        for piece in &self.pieces {
            let placement = self.screen.place(&self.view, piece.key, &piece.clip);
            if let Some(gpu) = self.cache.get(piece.key).and_then(|tile| tile.gpu()) {
                draw(gpu, placement);
                self.placed.push(PlacedPiece { key: piece.key, placement });
            }
            self.cache.touch(piece.key);
        }
    }

    /// The strip that the last frame shows at a CSS position. Also sets the pointer.
    pub fn hit(&mut self, x: f64, y: f64) -> Option<Hit> {
        self.set_pointer(x, y);
        let [px, py] = self.screen.pixel_at(x, y).map(|v| v as f32);
        let placed = self.placed.iter().find(|placed| placed.placement.clip().contains(px, py))?;
        let strips = self.cache.get(placed.key)?.strips().columns();
        let strip = strip_at(strips, &placed.placement, [px, py])?;
        let key = placed.key;
        let [x0, y0, x1, y1] = strip.position.map(f64::from);
        // In columns and rows from the origin of the tile's grid.
        let (width, height) = ((1u64 << key.kx) as f64, (1u64 << key.ky) as f64);
        let (left, bottom) =
            (f64::from(key.ix) * f64::from(TILE_COLUMNS), f64::from(key.iy) * f64::from(TILE_ROWS));
        let column = clamp_inside(self.screen.slot_at(&self.view, x) / width, left + x0, left + x1);
        let row =
            clamp_inside(self.screen.bytes_at(&self.view, y) / height, bottom + y0, bottom + y1);
        Some(Hit {
            block: strip.block,
            merged: strip.merged,
            color: strip.color,
            lit: strip.is_lit(),
            slot: column * width,
            bytes: row * height,
            kx: key.kx,
            ky: key.ky,
        })
    }

    fn set_pointer(&mut self, x: f64, y: f64) {
        self.pointer = self.screen.in_plot(x, y).then_some([x, y]);
    }

    /// The pointer has left the canvas. From now on keys zoom about the center.
    pub fn pointer_left(&mut self) {
        self.pointer = None;
    }

    /// The point that zooming keeps in place: under the pointer, or the center.
    fn anchor(&self, view: &Area) -> [f64; 2] {
        match self.pointer {
            Some([x, y]) => [self.screen.slot_at(view, x), self.screen.bytes_at(view, y)],
            None => [f64::midpoint(view.x0, view.x1), f64::midpoint(view.y0, view.y1)],
        }
    }

    /// Handles a wheel event over the canvas.
    pub fn wheel(&mut self, at: [f64; 2], delta: [f64; 2], mode: u32, shift: bool, ctrl: bool) {
        let (Some(open), false) = (self.open, self.screen.is_empty()) else { return };
        self.set_pointer(at[0], at[1]);
        let Some(step) = wheel::step(delta[0], delta[1], mode, shift, ctrl) else { return };
        // A running jump counts as finished.
        let view = self.target();
        let view = match step {
            wheel::WheelStep::ZoomX(factor) => {
                open.bounds.zoom_x(view, self.screen.slot_at(&view, at[0]), factor)
            }
            wheel::WheelStep::ZoomY(factor) => {
                open.bounds.zoom_y(view, self.screen.bytes_at(&view, at[1]), factor)
            }
            wheel::WheelStep::PanX(by) => {
                open.bounds.pan(view, by * self.screen.ratio / self.screen.scale(&view)[0], 0.0)
            }
        };
        self.show(view);
    }

    /// Zooms along x about a CSS position, as two fingers do that move apart: `factor` multiplies
    /// the pixels per slot. Then pans by CSS pixels, as far as the fingers moved together.
    pub fn pinch(&mut self, x: f64, factor: f64, by: f64) {
        let (Some(open), false) = (self.open, self.screen.is_empty()) else { return };
        if !(factor.is_finite() && factor > 0.0 && by.is_finite()) {
            return;
        }
        let view = self.target();
        let view = open.bounds.zoom_x(view, self.screen.slot_at(&view, x - by), 1.0 / factor);
        let dx = by * self.screen.ratio / self.screen.scale(&view)[0];
        self.show(open.bounds.pan(view, -dx, 0.0));
    }

    /// Starts a drag at a CSS position.
    pub fn begin_drag(&mut self, x: f64, y: f64) {
        self.set_pointer(x, y);
        self.drag = Some(Drag { from: [x, y], view: self.target() });
    }

    /// Pans the view so that it follows the drag.
    pub fn drag(&mut self, x: f64, y: f64) {
        self.set_pointer(x, y);
        let (Some(drag), Some(open), false) = (self.drag, self.open, self.screen.is_empty()) else {
            return;
        };
        let [sx, sy] = self.screen.scale(&drag.view);
        let (dx, dy) = (
            (drag.from[0] - x) * self.screen.ratio / sx,
            (y - drag.from[1]) * self.screen.ratio / sy,
        );
        self.show(open.bounds.pan(drag.view, dx, dy));
    }

    /// Ends the drag.
    pub fn end_drag(&mut self) {
        self.drag = None;
    }

    /// Handles a key that goes down or up.
    pub fn key(&mut self, action: Action, down: bool, now: f64) {
        if self.open.is_none() {
            return;
        }
        if down {
            self.view = self.target();
            self.ease = None;
        }
        self.keys.set(action, down, now);
        self.dirty = true;
    }

    /// Releases all held keys.
    pub fn release_keys(&mut self) {
        self.keys.release();
    }

    /// Enables eased jumps and accelerated keys. Disabled when the user prefers reduced motion.
    pub fn set_smooth(&mut self, smooth: bool) {
        self.smooth = smooth;
    }

    /// Jumps to the whole view.
    pub fn fit(&mut self) {
        if let Some(open) = self.open {
            self.jump(open.bounds.fit());
        }
    }

    /// Jumps to the slots from `x0` to `x1` with a small margin. The heights in view do not change.
    pub fn fit_range(&mut self, x0: f64, x1: f64) {
        let margin = (x1 - x0).abs() * RANGE_MARGIN;
        let view = self.target();
        self.jump(Area { x0: x0.min(x1) - margin, x1: x0.max(x1) + margin, ..view });
    }

    /// Jumps so that a slot is in the center.
    pub fn goto(&mut self, slot: f64) {
        let view = self.target();
        let x0 = slot + 0.5 - view.width() / 2.0;
        self.jump(Area { x0, x1: x0 + view.width(), ..view });
    }

    fn jump(&mut self, to: Area) {
        let Some(open) = self.open else { return };
        let to = open.bounds.clamp(to);
        if self.smooth && to != self.view {
            self.keys.release();
            self.ease = Some(Ease::new(self.view, to));
            self.dirty = true;
        } else {
            self.show(to);
        }
    }

    /// Shows a view without animation.
    fn show(&mut self, view: Area) {
        self.ease = None;
        self.view = view;
        self.dirty = true;
    }

    /// The view, or the target of a running jump.
    pub fn target(&self) -> Area {
        self.ease.as_ref().map_or(self.view, Ease::target)
    }

    /// Shows the nearest allowed view without animation.
    pub fn set_view(&mut self, view: Area) {
        if let Some(open) = self.open {
            self.show(open.bounds.clamp(view));
        }
    }

    /// Sets the hovered block, which is lightened.
    pub fn set_hovered(&mut self, block: Option<u32>) {
        let block = block.filter(|block| *block != NO_BLOCK);
        self.dirty |= self.hovered != block;
        self.hovered = block;
    }

    /// Sets the selected block, which is outlined.
    pub fn set_selected(&mut self, selected: Option<Selection>) {
        let selected = selected.filter(|selected| selected.block != NO_BLOCK);
        self.dirty |= self.selected != selected;
        self.selected = selected;
    }

    /// The labels of the view. Empty when no plot is open.
    pub fn labels(&self) -> Labels {
        match self.open {
            Some(open) if !self.screen.is_empty() => {
                labels(&self.screen, &self.view, (&open.axis, &self.breaks), &open.bounds)
            }
            _ => Labels { x: Vec::new(), y: Vec::new(), peak: None, plot: self.screen.plot_css() },
        }
    }

    /// The level of the tiles for the current view.
    fn level(&self) -> Level {
        level(&self.view, self.screen.plot_size())
    }

    /// The device pixel of the peak, if it is in view.
    pub fn peak_pixel(&self) -> Option<[f64; 2]> {
        let open = self.open?;
        peak_pixel(&self.screen, &self.view, &open.axis, open.bounds.peak)
    }

    /// True when a plot is open and the canvas has space for it.
    pub fn is_open(&self) -> bool {
        self.open.is_some() && !self.screen.is_empty()
    }

    /// The canvas.
    pub fn screen(&self) -> &Screen {
        &self.screen
    }

    /// The current view, also during a jump.
    pub fn view(&self) -> &Area {
        &self.view
    }

    /// The color theme.
    pub fn theme(&self) -> Theme {
        self.theme
    }

    /// The hovered block.
    pub fn hovered(&self) -> Option<u32> {
        self.hovered
    }

    /// The selected block, and the edges of its life in device pixels from the left.
    pub fn selected(&self) -> Option<(u32, Option<[f32; 2]>)> {
        let selected = self.selected?;
        // Rounded like the edges of strips.
        let pixel = |slot: f64| (self.screen.x_of(&self.view, slot) + 0.5).floor() as f32;
        Some((selected.block, selected.span.map(|span| span.map(pixel))))
    }
}

mod overlay;

#[cfg(test)]
mod tests;
