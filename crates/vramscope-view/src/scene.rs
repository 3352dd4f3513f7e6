//! The state of a plot: what is open, what is in view, what moves, and which tiles show it.
//!
//! Everything but the drawing itself, and so everything but what needs a browser. `G` is a tile's
//! place in the GPU's memory; tests put nothing there.

use serde::Serialize;
use vramscope_render::{NO_BLOCK, Placement, Strips, TILE_COLUMNS, TILE_ROWS, Theme};

use crate::axes::{Labels, labels, peak_pixel};
use crate::cache::Cache;
use crate::grid::{Cells, Piece, Planner, level, nearest_first};
use crate::hit::{strip_at, within};
use crate::motion::{Action, Ease, HeldKeys};
use crate::screen::{LEFT, Screen, sane};
use crate::tile::{Area, Axis, Level, PlotKind, TileKey};
use crate::viewport::Bounds;
use crate::wheel;

/// Room on either side of a range that the view is fitted to, as a share of it.
const RANGE_MARGIN: f64 = 0.05;

/// A place in a plot.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Place {
    /// The slot, or weight.
    pub x: f64,
    /// The height in bytes, or units of rows.
    pub y: f64,
}

/// What is under the pointer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Hit {
    /// The block; of a merged strip the largest.
    pub block: u32,
    /// The strip stands for several blocks.
    pub merged: bool,
    /// The slot under the pointer, within the strip.
    pub slot: f64,
    /// The height under the pointer in bytes (or units of rows), within the strip.
    pub bytes: f64,
    /// The scale of the tile that was hit.
    pub kx: u8,
    /// The same.
    pub ky: u8,
}

/// The block that is marked, and where it lives when that is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Selection {
    /// Index into the device's block table.
    pub block: u32,
    /// First slot, and one past the last.
    pub span: Option<[f64; 2]>,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    axis: Axis,
    bounds: Bounds,
}

#[derive(Clone, Copy, Debug)]
struct Drag {
    from: [f64; 2],
    view: Area,
}

/// A piece of a tile where it is drawn.
#[derive(Clone, Copy, Debug)]
struct Placed {
    key: TileKey,
    placement: Placement,
}

/// A plot: a timeline, segments or a flame graph.
#[derive(Debug)]
pub struct Scene<G> {
    screen: Screen,
    /// CSS pixels left of the plot.
    left: f64,
    open: Option<Open>,
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
    boxes: Vec<f64>,
    /// The tiles.
    pub cache: Cache<G>,
    planner: Planner,
    pieces: Vec<Piece>,
    placed: Vec<Placed>,
    /// The last list that [`Scene::wanted`] gave, less what has arrived.
    asked: Vec<TileKey>,
    missing: Vec<TileKey>,
    dirty: bool,
}

impl<G> Default for Scene<G> {
    fn default() -> Self {
        Self {
            screen: Screen::default(),
            left: LEFT,
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
            boxes: Vec::new(),
            cache: Cache::default(),
            planner: Planner::default(),
            pieces: Vec::new(),
            placed: Vec::new(),
            asked: Vec::new(),
            missing: Vec::new(),
            dirty: true,
        }
    }
}

impl<G> Scene<G> {
    /// The canvas has a size.
    pub fn resize(&mut self, screen: Screen) {
        let screen = screen.with_left(self.left);
        if screen != self.screen {
            self.screen = screen;
            self.dirty = true;
            if let Some(Open { bounds, .. }) = self.open
                && bounds.rows.is_some()
            {
                self.rebound(Bounds { plot: screen.plot_css().height, ..bounds });
            }
        }
    }

    /// Other colors.
    pub fn set_theme(&mut self, theme: Theme) {
        self.theme = theme;
        self.dirty = true;
    }

    /// Another trace, axis or kind of plot, with so many CSS pixels left of it: forgets the tiles
    /// and all that was set, and shows everything.
    pub fn open(&mut self, axis: Axis, peak: f64, kind: PlotKind, left: f64) {
        self.close();
        self.left = left;
        self.screen = self.screen.with_left(left);
        let bounds = Bounds {
            plot: sane(self.screen.plot_css().height),
            ..Bounds::new(axis.extent, peak, kind)
        };
        self.open = Some(Open { axis, bounds });
        self.view = bounds.fit();
    }

    /// Nothing to show.
    pub fn close(&mut self) {
        self.open = None;
        self.cache.clear();
        self.asked.clear();
        self.placed.clear();
        self.ease = None;
        self.drag = None;
        self.keys.release();
        self.hovered = None;
        self.selected = None;
        self.capacity = None;
        self.boxes.clear();
        self.dirty = true;
    }

    /// The tiles to ask for, nearest to the pointer (or the middle) first: all that the view needs
    /// and that are not here, when there is one among them that was not asked for the last time;
    /// else none. All, because a worker forgets what it was asked before.
    pub fn wanted(&mut self) -> &[TileKey] {
        self.missing.clear();
        let Some(open) = self.open.filter(|_| !self.screen.is_empty()) else { return &[] };
        let view = self.target();
        let level = level(&view, self.screen.plot_size());
        let cells = Cells::of(&view.and(&open.bounds.drawn()), level);
        self.missing.extend(cells.iter().filter(|key| !self.cache.contains(*key)));
        if self.missing.iter().all(|key| self.asked.contains(key)) {
            return &[];
        }
        let near = self.anchor(&view);
        nearest_first(&mut self.missing, near);
        self.asked.clone_from(&self.missing);
        &self.asked
    }

    /// A tile has come.
    pub fn put_tile(&mut self, key: TileKey, strips: Strips) {
        let Some(open) = self.open else { return };
        self.asked.retain(|asked| *asked != key);
        let home = level(&open.bounds.fit(), self.screen.plot_size().map(|v| v.max(1.0)));
        self.cache.put(key, strips, home);
        self.dirty = true;
    }

    /// The same trace is to be drawn in another way: all tiles are wanted anew, and stay on screen
    /// until they come.
    pub fn refresh(&mut self) {
        self.cache.expire();
        self.asked.clear();
        self.dirty = true;
    }

    /// Lets time pass for what moves; true while it moves.
    pub fn advance(&mut self, now: f64) -> bool {
        let Some(open) = self.open else { return false };
        if let Some(mut ease) = self.ease {
            let (view, over) = ease.at(now);
            self.view = view;
            self.ease = (!over).then_some(ease);
            self.dirty = true;
        }
        if self.keys.moving() {
            let at = self.anchor(&self.view);
            self.view = self.keys.advance(self.view, at, &open.bounds, now, self.smooth);
            self.dirty = true;
        }
        self.ease.is_some() || self.keys.moving()
    }

    /// True when what was drawn is no longer right; from then on it counts as drawn.
    pub fn take_dirty(&mut self) -> bool {
        std::mem::take(&mut self.dirty)
    }

    /// The next frame must be drawn.
    pub fn touch(&mut self) {
        self.dirty = true;
    }

    /// Finds the pieces of tiles that show the view; each goes to `draw`.
    pub fn place_tiles(&mut self, mut draw: impl FnMut(&G, Placement)) {
        self.placed.clear();
        self.cache.tick();
        let Some(open) = self.open.filter(|_| !self.screen.is_empty()) else { return };
        let area = self.view.and(&open.bounds.drawn());
        let level = self.level();
        let cache = &self.cache;
        self.planner.plan(
            &area,
            level,
            cache.levels(),
            |key| cache.drawable(key),
            &mut self.pieces,
        );
        for piece in &self.pieces {
            let placement = self.screen.place(&self.view, piece.key, &piece.clip);
            if let Some(gpu) = self.cache.get(piece.key).and_then(|tile| tile.gpu()) {
                draw(gpu, placement);
                self.placed.push(Placed { key: piece.key, placement });
            }
            self.cache.touch(piece.key);
        }
    }

    /// What the last frame shows at a CSS position.
    pub fn hit(&mut self, x: f64, y: f64) -> Option<Hit> {
        self.point(x, y);
        let [px, py] = self.screen.pixel_at(x, y).map(|v| v as f32);
        let placed = self.placed.iter().find(|placed| placed.placement.clip().contains(px, py))?;
        let strips = self.cache.get(placed.key)?.strips().columns();
        let strip = strip_at(strips, &placed.placement, [px, py])?;
        let key = placed.key;
        let [x0, y0, x1, y1] = strip.position.map(f64::from);
        // In columns and rows of the tile's grid, from its origin.
        let (width, height) = ((1u64 << key.kx) as f64, (1u64 << key.ky) as f64);
        let (left, bottom) =
            (f64::from(key.ix) * f64::from(TILE_COLUMNS), f64::from(key.iy) * f64::from(TILE_ROWS));
        let column = within(self.screen.slot_at(&self.view, x) / width, left + x0, left + x1);
        let row = within(self.screen.bytes_at(&self.view, y) / height, bottom + y0, bottom + y1);
        Some(Hit {
            block: strip.block,
            merged: strip.merged,
            slot: column * width,
            bytes: row * height,
            kx: key.kx,
            ky: key.ky,
        })
    }

    fn point(&mut self, x: f64, y: f64) {
        self.pointer = self.screen.in_plot(x, y).then_some([x, y]);
    }

    /// The pointer has left the canvas: keys zoom about the middle again.
    pub fn pointer_left(&mut self) {
        self.pointer = None;
    }

    /// The place that zooming keeps: under the pointer, or the middle.
    fn anchor(&self, view: &Area) -> [f64; 2] {
        match self.pointer {
            Some([x, y]) => [self.screen.slot_at(view, x), self.screen.bytes_at(view, y)],
            None => [f64::midpoint(view.x0, view.x1), f64::midpoint(view.y0, view.y1)],
        }
    }

    /// The wheel turns over the canvas.
    pub fn wheel(&mut self, at: [f64; 2], delta: [f64; 2], mode: u32, shift: bool, ctrl: bool) {
        let (Some(open), false) = (self.open, self.screen.is_empty()) else { return };
        self.point(at[0], at[1]);
        let Some(step) = wheel::step(delta[0], delta[1], mode, shift, ctrl) else { return };
        // The hand goes on from where the jump would have ended.
        let view = self.target();
        let view = match step {
            wheel::Step::ZoomX(factor) => {
                open.bounds.zoom_x(view, self.screen.slot_at(&view, at[0]), factor)
            }
            wheel::Step::ZoomY(factor) => {
                open.bounds.zoom_y(view, self.screen.bytes_at(&view, at[1]), factor)
            }
            wheel::Step::PanX(by) => {
                open.bounds.pan(view, by * self.screen.ratio / self.screen.scale(&view)[0], 0.0)
            }
        };
        self.show(view);
    }

    /// The hand takes hold of the plot.
    pub fn begin_drag(&mut self, x: f64, y: f64) {
        self.point(x, y);
        self.drag = Some(Drag { from: [x, y], view: self.target() });
    }

    /// The hand moves; what it holds moves with it.
    pub fn drag(&mut self, x: f64, y: f64) {
        self.point(x, y);
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

    /// The hand lets go.
    pub fn end_drag(&mut self) {
        self.drag = None;
    }

    /// A key goes down or up.
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

    /// No key is held any more.
    pub fn release_keys(&mut self) {
        self.keys.release();
    }

    /// Jumps ease, and keys gather speed, unless the reader prefers less motion.
    pub fn set_smooth(&mut self, smooth: bool) {
        self.smooth = smooth;
    }

    /// Shows everything.
    pub fn fit(&mut self) {
        if let Some(open) = self.open {
            self.jump(open.bounds.fit());
        }
    }

    /// Shows the slots from `x0` to `x1` with a little room beside them; the heights in view stay.
    pub fn fit_range(&mut self, x0: f64, x1: f64) {
        let room = (x1 - x0).abs() * RANGE_MARGIN;
        let view = self.target();
        self.jump(Area { x0: x0.min(x1) - room, x1: x0.max(x1) + room, ..view });
    }

    /// Moves a slot to the middle.
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

    /// Shows a view at once.
    fn show(&mut self, view: Area) {
        self.ease = None;
        self.view = view;
        self.dirty = true;
    }

    /// What is in view, or will be when the jump is over.
    pub fn target(&self) -> Area {
        self.ease.as_ref().map_or(self.view, Ease::target)
    }

    /// Shows a view at once, or the nearest that is allowed.
    pub fn set_view(&mut self, view: Area) {
        if let Some(open) = self.open {
            self.show(open.bounds.clamp(view));
        }
    }

    /// Lightens a block.
    pub fn set_hovered(&mut self, block: Option<u32>) {
        let block = block.filter(|block| *block != NO_BLOCK);
        self.dirty |= self.hovered != block;
        self.hovered = block;
    }

    /// Outlines a block.
    pub fn set_selected(&mut self, selected: Option<Selection>) {
        let selected = selected.filter(|selected| selected.block != NO_BLOCK);
        self.dirty |= self.selected != selected;
        self.selected = selected;
    }

    /// The labels of what is in view; none when nothing is open.
    pub fn labels(&self) -> Labels {
        match self.open {
            Some(open) if !self.screen.is_empty() => {
                labels(&self.screen, &self.view, &open.axis, &open.bounds)
            }
            _ => Labels { x: Vec::new(), y: Vec::new(), peak: None, plot: self.screen.plot_css() },
        }
    }

    /// The scale of what is in view.
    fn level(&self) -> Level {
        level(&self.view, self.screen.plot_size())
    }

    /// The device pixel of the peak, when it is in view.
    pub fn peak_pixel(&self) -> Option<[f64; 2]> {
        let open = self.open?;
        peak_pixel(&self.screen, &self.view, &open.axis, open.bounds.peak)
    }

    /// True when there is something to show, and room for it.
    pub fn is_open(&self) -> bool {
        self.open.is_some() && !self.screen.is_empty()
    }

    /// The canvas.
    pub fn screen(&self) -> &Screen {
        &self.screen
    }

    /// What is in view right now.
    pub fn view(&self) -> &Area {
        &self.view
    }

    /// The colors.
    pub fn theme(&self) -> Theme {
        self.theme
    }

    /// The lightened block.
    pub fn hovered(&self) -> Option<u32> {
        self.hovered
    }

    /// The outlined block, and the device pixels (from the left) between which it lives.
    pub fn selected(&self) -> Option<(u32, Option<[f32; 2]>)> {
        let selected = self.selected?;
        // The same rounding as of strips.
        let pixel = |slot: f64| (self.screen.x_of(&self.view, slot) + 0.5).floor() as f32;
        Some((selected.block, selected.span.map(|span| span.map(pixel))))
    }
}

mod overlay;

#[cfg(test)]
mod tests;
