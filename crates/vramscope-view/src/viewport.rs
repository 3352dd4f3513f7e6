//! Limits of the view: how far it can zoom and pan.

use crate::screen::valid_length;
use crate::tile::{Area, PlotKind, Rows};

/// Free space above the peak in the whole view, for the peak's mark and label. A share of the
/// height.
const HEADROOM: f64 = 0.08;
/// Minimum slots in view. With two slots an event can be distinguished from its neighbor.
const MIN_SLOTS: f64 = 2.0;
/// Minimum bytes in view. Less than the allocator's smallest block (512 bytes), because requested
/// sizes can be smaller.
const MIN_BYTES: f64 = 64.0;
/// Maximum distance of the view past the ends of the axis, as a share of the view. Enough to show
/// that the axis ends there.
const MARGIN: f64 = 0.04;
/// Maximum height of a row, as a multiple of [`Rows::max_px`].
const MAX_ROW_ZOOM: f64 = 8.0;

/// The extent of the data, which limits the view.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bounds {
    /// Slots of the axis.
    pub extent: f64,
    /// Bytes at the peak. 0 for rows.
    pub peak: f64,
    /// Minimum upper edge of the whole view in bytes. Lines may be drawn up to this height when the
    /// stack is lower.
    pub top: f64,
    /// Lower edge of the whole view in bytes. Panning can reach lower heights.
    pub base: f64,
    /// The rows, for plots of rows instead of bytes.
    pub rows: Option<Rows>,
    /// Height of the plot in CSS pixels. It decides how many rows fit.
    pub plot: f64,
}

impl Bounds {
    /// Bounds of a stack of blocks.
    pub const fn bytes(extent: f64, peak: f64) -> Self {
        Self { extent, peak, top: 0.0, base: 0.0, rows: None, plot: 0.0 }
    }

    /// Bounds of a plot. Invalid numbers are replaced by the nearest valid ones.
    pub fn new(extent: f64, peak: f64, kind: PlotKind) -> Self {
        let bounds = Self::bytes(valid_length(extent), valid_length(peak));
        let PlotKind::Rows(rows) = kind else { return bounds };
        let min_px = valid_length(rows.min_px).max(1.0);
        let rows = Rows {
            units: valid_length(rows.units),
            row_units: valid_length(rows.row_units).max(1.0),
            min_px,
            max_px: valid_length(rows.max_px).max(min_px),
        };
        Self { peak: 0.0, rows: Some(rows), ..bounds }
    }

    /// The whole view: all slots, from the base to a little above the highest value. For rows: as
    /// many rows as fit, from the first row.
    pub fn fit(&self) -> Area {
        let (y0, h) = match &self.rows {
            Some(rows) => {
                let h = self.rows_height(
                    rows,
                    clamp(
                        self.plot.max(1.0) * rows.row_units / rows.units,
                        [rows.min_px, rows.max_px],
                    ),
                );
                (rows.units - h, h)
            }
            None => {
                let end = self.data().y1;
                let h = ((end - self.base.min(end)) * (1.0 + HEADROOM)).max(MIN_BYTES);
                (self.base.min(self.ceiling() - h), h)
            }
        };
        Area { x0: 0.0, x1: self.extent.max(1.0), y0, y1: y0 + h }
    }

    /// The maximum upper edge of the view.
    fn ceiling(&self) -> f64 {
        let end = self.data().y1;
        if self.rows.is_some() { end } else { (end * (1.0 + HEADROOM)).max(MIN_BYTES) }
    }

    /// The area that may have strips. Strips above the peak are lines, up to `top`.
    pub fn data(&self) -> Area {
        let y1 = self.rows.map_or(self.peak.max(self.top), |rows| rows.units);
        Area { x0: 0.0, x1: self.extent, y0: 0.0, y1 }
    }

    /// [`Bounds::data`], extended by the upper half of a line at `top`.
    pub fn drawn(&self) -> Area {
        let data = self.data();
        let line =
            if self.rows.is_none() && self.top > 0.0 { data.y1 * HEADROOM / 4.0 } else { 0.0 };
        Area { y1: data.y1 + line, ..data }
    }

    fn width(&self, wanted: f64) -> f64 {
        let all = self.extent.max(1.0);
        clamp(wanted, [MIN_SLOTS.min(all), all])
    }

    /// Units in view when a row is `pixels` CSS pixels high.
    fn rows_height(&self, rows: &Rows, pixels: f64) -> f64 {
        self.plot.max(1.0) / pixels * rows.row_units
    }

    fn height(&self, wanted: f64) -> f64 {
        let Some(rows) = &self.rows else { return clamp(wanted, [MIN_BYTES, self.ceiling()]) };
        let max_px =
            if rows.min_px < rows.max_px { rows.max_px * MAX_ROW_ZOOM } else { rows.max_px };
        clamp(wanted, [self.rows_height(rows, max_px), self.rows_height(rows, rows.min_px)])
    }

    /// The nearest allowed view. A view with infinite or NaN edges becomes the whole view.
    pub fn clamp(&self, view: Area) -> Area {
        if ![view.x0, view.x1, view.y0, view.y1].iter().all(|v| v.is_finite()) {
            return self.fit();
        }
        let (w, h) = (self.width(view.width()), self.height(view.height()));
        let all = self.extent.max(1.0);
        // The margin is 0 when all slots are in view, so that the whole view cannot move.
        let margin = MARGIN * w * (1.0 - w / all);
        let x0 = clamp(view.x0, [-margin, all - w + margin]);
        // When rows do not fill the plot, the free space is below them.
        let high = self.ceiling() - h;
        let y0 = clamp(view.y0, [high.min(0.0), high]);
        Area { x0, x1: x0 + w, y0, y1: y0 + h }
    }

    /// The nearest allowed view with the center and the size of an area.
    pub fn centered_on(&self, area: Area) -> Area {
        let (w, h) = (self.width(area.width()), self.height(area.height()));
        let (x0, y0) =
            (f64::midpoint(area.x0, area.x1) - w / 2.0, f64::midpoint(area.y0, area.y1) - h / 2.0);
        self.clamp(Area { x0, x1: x0 + w, y0, y1: y0 + h })
    }

    /// Adapts a view when these bounds are replaced by `now`.
    ///
    /// If all heights were in view, all new heights are. Otherwise the view keeps its upper edge.
    /// Rows keep their height in pixels and their distance from the first row.
    pub fn carry_over(&self, view: Area, now: &Self) -> Area {
        let (before, all) = (self.fit(), now.fit());
        let near = |a: f64, b: f64| (a - b).abs() <= before.height() * 1e-9;
        let scale = if self.rows.is_some() { now.plot.max(1.0) / self.plot.max(1.0) } else { 1.0 };
        now.clamp(if near(view.y0, before.y0) && near(view.y1, before.y1) {
            Area { y0: all.y0, y1: all.y1, ..view }
        } else {
            let units = |bounds: &Self| bounds.rows.map_or(0.0, |rows| rows.units);
            let y1 = view.y1 + units(now) - units(self);
            Area { y0: y1 - view.height() * scale, y1, ..view }
        })
    }

    /// Multiplies the number of visible slots by `factor`. The slot `at` stays in place.
    pub fn zoom_x(&self, view: Area, at: f64, factor: f64) -> Area {
        let w = self.width(view.width() * factor);
        let x0 = at - (at - view.x0) / view.width() * w;
        self.clamp(Area { x0, x1: x0 + w, ..view })
    }

    /// Multiplies the number of visible bytes by `factor`. The height `at` stays in place.
    pub fn zoom_y(&self, view: Area, at: f64, factor: f64) -> Area {
        let h = self.height(view.height() * factor);
        let y0 = at - (at - view.y0) / view.height() * h;
        self.clamp(Area { y0, y1: y0 + h, ..view })
    }

    /// Moves the view by slots and bytes.
    pub fn pan(&self, view: Area, dx: f64, dy: f64) -> Area {
        self.clamp(Area { x0: view.x0 + dx, x1: view.x1 + dx, y0: view.y0 + dy, y1: view.y1 + dy })
    }
}

/// Like `f64::clamp`, but never panics. `f64::clamp` panics with a message that contains its
/// bounds, and the code that formats floats would be a tenth of the WebAssembly module.
#[inline]
pub(crate) fn clamp(value: f64, [low, high]: [f64; 2]) -> f64 {
    value.max(low).min(high)
}

#[cfg(test)]
mod tests {
    use super::{Bounds, MIN_BYTES, MIN_SLOTS};
    use crate::tile::Area;

    const BOUNDS: Bounds = Bounds::bytes(1000.0, 1e6);

    fn assert_near(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-6 * b.abs().max(1.0), "{a} is not {b}");
    }

    #[test]
    fn fit_starts_at_zero_and_ends_above_the_peak() {
        let fit = BOUNDS.fit();
        assert_eq!(fit, Area { x0: 0.0, x1: 1000.0, y0: 0.0, y1: fit.y1 });
        assert!(fit.y1 > 1e6 && fit.y1 < 1.2e6);
        assert_eq!(BOUNDS.clamp(fit), fit);
    }

    #[test]
    fn zooming_keeps_the_point_and_is_reversible() {
        let at = 300.0;
        let view = BOUNDS.zoom_x(BOUNDS.fit(), at, 0.25);
        assert_near(view.width(), 250.0);
        assert_near((at - view.x0) / view.width(), 0.3);
        assert_near(BOUNDS.zoom_x(view, at, 4.0).width(), 1000.0);
        let high = BOUNDS.zoom_y(BOUNDS.fit(), 4e5, 0.5);
        assert_near((4e5 - high.y0) / high.height(), 4e5 / BOUNDS.fit().y1);
    }

    #[test]
    fn zooming_past_the_limits_does_not_move_the_view() {
        let mut view = BOUNDS.fit();
        for _ in 0..200 {
            view = BOUNDS.zoom_y(BOUNDS.zoom_x(view, 500.0, 0.5), 0.0, 0.5);
        }
        assert_near(view.width(), MIN_SLOTS);
        assert_near(view.height(), MIN_BYTES);
        assert_near((500.0 - view.x0) / view.width(), 0.5);
        let out = BOUNDS.zoom_y(BOUNDS.zoom_x(view, 500.0, 1e9), 0.0, 1e9);
        assert_eq!(out, BOUNDS.fit());
    }

    #[test]
    fn panning_stops_a_little_past_the_ends() {
        let view = BOUNDS.zoom_x(BOUNDS.fit(), 0.0, 0.1);
        let left = BOUNDS.pan(view, -1e9, -1e9);
        assert!(left.x0 < 0.0 && left.x0 >= -4.0 && left.y0 == 0.0);
        let right = BOUNDS.pan(view, 1e9, 1e12);
        assert!(right.x1 > 1000.0 && right.x1 <= 1004.0);
        assert_near(right.y1, BOUNDS.fit().y1);
    }

    #[test]
    fn invalid_input_gives_a_valid_view() {
        let invalid = Area { x0: f64::NAN, x1: 1.0, y0: 0.0, y1: 1.0 };
        assert_eq!(BOUNDS.clamp(invalid), BOUNDS.fit());
        let reversed = BOUNDS.clamp(Area { x0: 10.0, x1: -10.0, y0: 5.0, y1: 1.0 });
        assert!(reversed.width() > 0.0 && reversed.height() > 0.0);
        // A trace of one slot, or of no bytes.
        let tiny = Bounds::bytes(1.0, 0.0);
        assert_eq!(tiny.zoom_x(tiny.fit(), 0.5, 0.01), tiny.fit());
    }
}
