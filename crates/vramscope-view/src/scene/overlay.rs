//! Ranges, limits, rows and boxes of a scene, and conversions of positions in it.

use super::{OpenPlot, PlotPoint, Scene};
use crate::axes::{measure_x, measure_y};
use crate::boxes::boxes;
use crate::hit::is_lit;
use crate::screen::valid_length;
use crate::tile::{Area, Rows, TileGeometry, power};
use crate::viewport::Bounds;
use vramscope_render::NO_BLOCK;
use vramscope_units::TimeBreak;

/// Minimum length in CSS pixels of a side of the zoom box. A shorter side is ignored.
const MIN_ZOOM_BOX_PX: f64 = 8.0;

impl<G> Scene<G> {
    /// Replaces the bounds of the open plot, and adapts the view.
    pub(super) fn set_bounds(&mut self, bounds: Bounds) {
        let view = self.target();
        if let Some(open) = &mut self.open
            && open.bounds != bounds
        {
            let view = open.bounds.carry_over(view, &bounds);
            open.bounds = bounds;
            self.show(view);
        }
    }

    /// Sets the minimum upper edge of the whole view in bytes. Tiles are requested up to this
    /// height. `None` resets it to the peak.
    pub fn set_top(&mut self, bytes: Option<f64>) {
        if let Some(OpenPlot { bounds, .. }) = self.open {
            self.set_bounds(Bounds { top: valid_length(bytes.unwrap_or(0.0)), ..bounds });
        }
    }

    /// Sets the lower edge of the whole view in bytes.
    pub fn set_base(&mut self, bytes: f64) {
        if let Some(OpenPlot { bounds, .. }) = self.open {
            self.set_bounds(Bounds { base: valid_length(bytes), ..bounds });
        }
    }

    /// Replaces the rows by rows of `units` in total. The view keeps its distance from the first
    /// row. If the row between the heights `shown` is then completely out of view, it is moved to
    /// the center.
    pub fn set_rows(&mut self, units: f64, shown: Option<[f64; 2]>) {
        let Some(OpenPlot { bounds: bounds @ Bounds { rows: Some(rows), .. }, .. }) = self.open
        else {
            return;
        };
        let units = valid_length(units);
        let bounds = Bounds { rows: Some(Rows { units, ..rows }), ..bounds };
        if units == rows.units {
            self.refresh();
        } else {
            // Heights count from the last row, so the old tiles would be at wrong rows.
            self.cache.clear();
            self.requested.clear();
            self.placed.clear();
        }
        self.set_bounds(bounds);
        let view = self.target();
        if let Some([low, high]) = shown.filter(|[low, high]| *high <= view.y0 || view.y1 <= *low) {
            let y0 = f64::midpoint(low, high) - view.height() / 2.0;
            self.show(bounds.clamp(Area { y0, y1: y0 + view.height(), ..view }));
        }
    }

    /// Draws a line at the device's capacity.
    pub fn set_capacity(&mut self, bytes: Option<f64>) {
        let bytes = bytes.filter(|bytes| bytes.is_finite());
        self.dirty |= self.capacity != bytes;
        self.capacity = bytes;
    }

    /// Sets the ranges of slots that have another ground, such as every second step. `ranges` has
    /// two numbers for each.
    pub fn set_shaded(&mut self, ranges: &[f64]) {
        self.shaded.clear();
        self.shaded.extend(ranges.chunks_exact(2).map(|range| [range[0], range[1]]));
        self.dirty = true;
    }

    /// Sets the parts of the time axis that take less room: first and last slot, and microseconds.
    pub fn set_breaks(&mut self, breaks: &[f64]) {
        let origin = self.open.map_or(0.0, |open| open.axis.origin);
        let part =
            |part: &[f64]| TimeBreak { x0: part[0] - origin, x1: part[1] - origin, time: part[2] };
        self.breaks = breaks.chunks_exact(3).map(part).collect();
        self.dirty = true;
    }

    /// The device pixels of the shaded ranges in view, from left to right.
    pub fn shaded_pixels(&self) -> impl Iterator<Item = [f32; 2]> {
        let [left, right] = [self.screen.plot.x0, self.screen.plot.x1];
        self.shaded.iter().filter_map(move |range| {
            let [from, to] = range.map(|slot| {
                let pixel = (self.screen.x_of(&self.view, slot) + 0.5).floor() as f32;
                pixel.max(left).min(right)
            });
            (from < to).then_some([from, to])
        })
    }

    /// The device pixel (from the bottom) of the capacity line, if it is in view.
    pub fn capacity_pixel(&self) -> Option<f64> {
        let bytes = self.capacity.filter(|_| !self.has_rows())?;
        (self.view.y0..=self.view.y1).contains(&bytes).then(|| self.screen.y_of(&self.view, bytes))
    }

    /// True when the plot has rows instead of bytes.
    pub fn has_rows(&self) -> bool {
        self.open.is_some_and(|open| open.bounds.rows.is_some())
    }

    /// Shows the nearest allowed range of slots without animation. A running jump continues along
    /// y.
    pub fn set_range(&mut self, x0: f64, x1: f64) {
        let Some(open) = self.open.filter(|_| x0.is_finite() && x1.is_finite()) else { return };
        let Area { x0, x1, .. } =
            open.bounds.clamp(Area { x0: x0.min(x1), x1: x0.max(x1), ..self.view });
        if let Some(ease) = &mut self.ease {
            ease.fix_x(x0, x1);
        }
        self.dirty |= [self.view.x0, self.view.x1] != [x0, x1];
        (self.view.x0, self.view.x1) = (x0, x1);
    }

    /// The lit blocks of the last frame with space for a label of `width` by `height` CSS pixels,
    /// largest first, at most `limit`. Each is `[block, x0, x1, y0, y1, color word]` of its largest
    /// strip, in slots and bytes.
    pub fn labelable_blocks(&self, width: f64, height: f64, limit: usize) -> Vec<f64> {
        let (width, height) =
            ((width * self.screen.ratio) as f32, (height * self.screen.ratio) as f32);
        let mut found: Vec<(u32, f32, [f64; 5])> = Vec::new();
        for placed in &self.placed {
            let Some(tile) = self.cache.get(placed.key) else { continue };
            let strips = tile.strips().columns();
            let area = placed.key.area();
            let [column, row] = [power(placed.key.kx), power(placed.key.ky)];
            let words = strips.blocks().iter().zip(strips.colors());
            for (strip, (&block, &color)) in strips.positions().iter().zip(words) {
                let seen = placed.placement.snap(*strip);
                let (wide, high) = (seen.x1 - seen.x0, seen.y1 - seen.y0);
                // Also skips merged strips, whose block numbers are larger than `NO_BLOCK`.
                if wide < width || high < height || block >= NO_BLOCK || !is_lit(color) {
                    continue;
                }
                let [x0, y0, x1, y1] = strip.map(f64::from);
                let at = [
                    area.x0 + x0 * column,
                    area.x0 + x1 * column,
                    area.y0 + y0 * row,
                    area.y0 + y1 * row,
                    f64::from(color),
                ];
                match found.iter_mut().find(|(known, ..)| *known == block) {
                    Some(known) if known.1 >= wide * high => {}
                    Some(known) => (known.1, known.2) = (wide * high, at),
                    None => found.push((block, wide * high, at)),
                }
            }
        }
        found.sort_unstable_by(|a, b| b.1.total_cmp(&a.1));
        found.truncate(limit);
        found
            .iter()
            .flat_map(|&(block, _, [x0, x1, y0, y1, color])| {
                [f64::from(block), x0, x1, y0, y1, color]
            })
            .collect()
    }

    /// The point at the nearest CSS position in the plot.
    pub fn place(&self, x: f64, y: f64) -> PlotPoint {
        if !self.is_open() {
            return PlotPoint { x: self.view.x0, y: self.view.y0 };
        }
        let [x, y] = self.screen.nearest(x, y);
        PlotPoint { x: self.screen.slot_at(&self.view, x), y: self.screen.bytes_at(&self.view, y) }
    }

    /// Jumps to an area.
    pub fn zoom_to(&mut self, area: Area) {
        if let Some(open) = self.open {
            self.jump(open.bounds.centered_on(area));
        }
    }

    /// Jumps to the box between two CSS positions. A side that is too short leaves its axis
    /// unchanged. Returns false when both sides are too short.
    pub fn zoom_box(&mut self, from: [f64; 2], to: [f64; 2]) -> bool {
        let [wide, high] = [0, 1].map(|i| (from[i] - to[i]).abs() >= MIN_ZOOM_BOX_PX);
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

    /// Formats the length between two slots.
    pub fn measure_x(&self, from: f64, to: f64) -> String {
        self.open.map(|open| measure_x(&open.axis, &self.breaks, [from, to])).unwrap_or_default()
    }

    /// Formats a number of bytes.
    pub fn measure_y(&self, bytes: f64) -> String {
        self.open.map(|open| measure_y(&open.bounds, bytes)).unwrap_or_default()
    }

    /// Sets the boxes that are laid over the plot, as `[x0, x1, y0, y1]` each.
    pub fn set_boxes(&mut self, boxes: Vec<f64>) {
        self.boxes = boxes;
    }

    /// The boxes in view, as `[index, left, top, width, height]` in CSS pixels of the canvas.
    pub fn boxes(&self) -> Vec<f64> {
        if self.is_open() { boxes(&self.screen, &self.view, &self.boxes) } else { Vec::new() }
    }
}

#[cfg(test)]
mod tests;
