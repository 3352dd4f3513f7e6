//! What a scene tells of places in it, and what is set on it from elsewhere: ranges, limits, boxes.

use super::{Open, Place, Scene};
use crate::axes::{measure_x, measure_y};
use crate::boxes::boxes;
use crate::screen::sane;
use crate::tile::{Area, Rows, power};
use crate::viewport::Bounds;
use vramscope_render::NO_BLOCK;

/// CSS pixels of a side of a box that says how far to zoom; a shorter one says nothing.
const LEAST_BOX: f64 = 8.0;

impl<G> Scene<G> {
    /// Other bounds for what is open.
    pub(super) fn rebound(&mut self, bounds: Bounds) {
        let view = self.target();
        if let Some(open) = &mut self.open
            && open.bounds != bounds
        {
            let view = open.bounds.carry(view, &bounds);
            open.bounds = bounds;
            self.show(view);
        }
    }

    /// The whole view reaches at least this high, and there are strips up to there; nothing: up to
    /// the peak.
    pub fn set_top(&mut self, bytes: Option<f64>) {
        if let Some(Open { bounds, .. }) = self.open {
            self.rebound(Bounds { top: sane(bytes.unwrap_or(0.0)), ..bounds });
        }
    }

    /// The whole view begins at this height.
    pub fn set_base(&mut self, bytes: f64) {
        if let Some(Open { bounds, .. }) = self.open {
            self.rebound(Bounds { base: sane(bytes), ..bounds });
        }
    }

    /// There are other rows, so many units high together; those that were in view stay there. If
    /// none of the row between the heights `shown` is in view, it comes to the middle.
    pub fn set_rows(&mut self, units: f64, shown: Option<[f64; 2]>) {
        let Some(Open { bounds: bounds @ Bounds { rows: Some(rows), .. }, .. }) = self.open else {
            return;
        };
        let units = sane(units);
        let bounds = Bounds { rows: Some(Rows { units, ..rows }), ..bounds };
        if units == rows.units {
            self.refresh();
        } else {
            // Heights count from the last row: what was drawn would be at another one.
            self.cache.clear();
            self.asked.clear();
            self.placed.clear();
        }
        self.rebound(bounds);
        let view = self.target();
        if let Some([low, high]) = shown.filter(|[low, high]| *high <= view.y0 || view.y1 <= *low) {
            let y0 = f64::midpoint(low, high) - view.height() / 2.0;
            self.show(bounds.clamp(Area { y0, y1: y0 + view.height(), ..view }));
        }
    }

    /// Draws a line at the most that there can be.
    pub fn set_capacity(&mut self, bytes: Option<f64>) {
        let bytes = bytes.filter(|bytes| bytes.is_finite());
        self.dirty |= self.capacity != bytes;
        self.capacity = bytes;
    }

    /// The device pixel (from the bottom) of that line, when it is in view.
    pub fn capacity_pixel(&self) -> Option<f64> {
        let bytes = self.capacity.filter(|_| !self.has_rows())?;
        (self.view.y0..=self.view.y1).contains(&bytes).then(|| self.screen.y_of(&self.view, bytes))
    }

    /// True when heights are rows and not bytes.
    pub fn has_rows(&self) -> bool {
        self.open.is_some_and(|open| open.bounds.rows.is_some())
    }

    /// Shows these slots at once, or the nearest that are allowed; heights go on as they do.
    pub fn set_range(&mut self, x0: f64, x1: f64) {
        let Some(open) = self.open.filter(|_| x0.is_finite() && x1.is_finite()) else { return };
        let Area { x0, x1, .. } =
            open.bounds.clamp(Area { x0: x0.min(x1), x1: x0.max(x1), ..self.view });
        if let Some(ease) = &mut self.ease {
            ease.keep_x(x0, x1);
        }
        self.dirty |= [self.view.x0, self.view.x1] != [x0, x1];
        (self.view.x0, self.view.x1) = (x0, x1);
    }

    /// Blocks of the last frame that have room for words of so many CSS pixels, the largest first:
    /// each with the widest of its strips as `[block, x0, x1, y0, y1]`, in slots and bytes. At most
    /// `most`.
    pub fn roomy(&self, width: f64, height: f64, most: usize) -> Vec<f64> {
        let (width, height) =
            ((width * self.screen.ratio) as f32, (height * self.screen.ratio) as f32);
        let mut found: Vec<(u32, f32, [f64; 4])> = Vec::new();
        for placed in &self.placed {
            let Some(tile) = self.cache.get(placed.key) else { continue };
            let strips = tile.strips().columns();
            let area = placed.key.area();
            let [column, row] = [power(placed.key.kx), power(placed.key.ky)];
            for (strip, &block) in strips.positions().iter().zip(strips.blocks()) {
                let seen = placed.placement.snap(*strip);
                let (wide, high) = (seen.x1 - seen.x0, seen.y1 - seen.y0);
                // Neither several blocks nor none.
                if wide < width || high < height || block >= NO_BLOCK {
                    continue;
                }
                let [x0, y0, x1, y1] = strip.map(f64::from);
                let at = [
                    area.x0 + x0 * column,
                    area.x0 + x1 * column,
                    area.y0 + y0 * row,
                    area.y0 + y1 * row,
                ];
                match found.iter_mut().find(|(known, ..)| *known == block) {
                    Some(known) if known.1 >= wide * high => {}
                    Some(known) => (known.1, known.2) = (wide * high, at),
                    None => found.push((block, wide * high, at)),
                }
            }
        }
        found.sort_unstable_by(|a, b| b.1.total_cmp(&a.1));
        found.truncate(most);
        found
            .iter()
            .flat_map(|&(block, _, [x0, x1, y0, y1])| [f64::from(block), x0, x1, y0, y1])
            .collect()
    }

    /// The place at a CSS position, or at the nearest one in the plot.
    pub fn place(&self, x: f64, y: f64) -> Place {
        if !self.is_open() {
            return Place { x: self.view.x0, y: self.view.y0 };
        }
        let [x, y] = self.screen.nearest(x, y);
        Place { x: self.screen.slot_at(&self.view, x), y: self.screen.bytes_at(&self.view, y) }
    }

    /// Jumps to an area.
    pub fn zoom_to(&mut self, area: Area) {
        if let Some(open) = self.open {
            self.jump(open.bounds.about(area));
        }
    }

    /// Jumps to what is between two CSS positions: along x only, or y only, when the other side is
    /// too short to be meant. False when both are.
    pub fn zoom_box(&mut self, from: [f64; 2], to: [f64; 2]) -> bool {
        let [wide, high] = [0, 1].map(|i| (from[i] - to[i]).abs() >= LEAST_BOX);
        if !self.is_open() || !(wide || high) {
            return false;
        }
        let (a, b) = (self.place(from[0], from[1]), self.place(to[0], to[1]));
        let mut area = self.target();
        if wide {
            (area.x0, area.x1) = (a.x.min(b.x), a.x.max(b.x));
        }
        if high {
            (area.y0, area.y1) = (a.y.min(b.y), a.y.max(b.y));
        }
        self.zoom_to(area);
        true
    }

    /// So many slots in words.
    pub fn measure_x(&self, slots: f64) -> String {
        self.open.map(|open| measure_x(open.axis.kind, slots)).unwrap_or_default()
    }

    /// So many bytes in words.
    pub fn measure_y(&self, bytes: f64) -> String {
        self.open.map(|open| measure_y(&open.bounds, bytes)).unwrap_or_default()
    }

    /// What is laid over the plot: `[x0, x1, y0, y1]` of each box.
    pub fn set_boxes(&mut self, boxes: Vec<f64>) {
        self.boxes = boxes;
    }

    /// Where those boxes are that are in view; see [`boxes`].
    pub fn boxes(&self) -> Vec<f64> {
        if self.is_open() { boxes(&self.screen, &self.view, &self.boxes) } else { Vec::new() }
    }
}

#[cfg(test)]
mod tests;
