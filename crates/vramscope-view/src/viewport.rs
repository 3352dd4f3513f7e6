//! What is in view, and how far it may move.

use crate::screen::sane;
use crate::tile::{Area, PlotKind, Rows};

/// Free height above the peak when everything is shown, for its mark and label.
const HEADROOM: f64 = 0.08;
/// The least that can be in view: two slots, so that an event can be told from its neighbor ...
const LEAST_SLOTS: f64 = 2.0;
/// ... and less than the smallest block that the allocator hands out (512 bytes), since requests
/// can be smaller.
const LEAST_BYTES: f64 = 64.0;
/// How far the view may go past the ends, as a share of what is in view: enough to see that it is
/// the end.
const MARGIN: f64 = 0.04;
/// How many times higher than with room for all of them rows can be made.
const ROW_ZOOM: f64 = 8.0;

/// How far there is something to see.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bounds {
    /// Slots of the axis.
    pub extent: f64,
    /// Bytes at the peak; 0 where heights are rows.
    pub peak: f64,
    /// Bytes that the whole view reaches at least: something is drawn up to there, though the stack
    /// is lower.
    pub top: f64,
    /// The lowest height of the whole view in bytes; what is below can be panned to.
    pub base: f64,
    /// Rows in place of bytes.
    pub rows: Option<Rows>,
    /// CSS pixels of the plot's height, which say how many rows fit.
    pub plot: f64,
}

impl Bounds {
    /// Of a stack of blocks.
    pub const fn bytes(extent: f64, peak: f64) -> Self {
        Self { extent, peak, top: 0.0, base: 0.0, rows: None, plot: 0.0 }
    }

    /// Of a plot; numbers that are none, or make no sense, become the nearest that do.
    pub fn new(extent: f64, peak: f64, kind: PlotKind) -> Self {
        let bounds = Self::bytes(sane(extent), sane(peak));
        let PlotKind::Rows(rows) = kind else { return bounds };
        let least = sane(rows.least).max(1.0);
        let rows = Rows {
            units: sane(rows.units),
            row_units: sane(rows.row_units).max(1.0),
            least,
            most: sane(rows.most).max(least),
        };
        Self { peak: 0.0, rows: Some(rows), ..bounds }
    }

    /// Everything: all slots, from the base to a little above the highest; of rows as many as fit,
    /// from the first one.
    pub fn fit(&self) -> Area {
        let (y0, h) = match &self.rows {
            Some(rows) => {
                let h = self.rows_height(
                    rows,
                    between(
                        self.plot.max(1.0) * rows.row_units / rows.units,
                        [rows.least, rows.most],
                    ),
                );
                (rows.units - h, h)
            }
            None => {
                let end = self.data().y1;
                let h = ((end - self.base.min(end)) * (1.0 + HEADROOM)).max(LEAST_BYTES);
                (self.base.min(self.ceiling() - h), h)
            }
        };
        Area { x0: 0.0, x1: self.extent.max(1.0), y0, y1: y0 + h }
    }

    /// The upper end of what can be panned to.
    fn ceiling(&self) -> f64 {
        let end = self.data().y1;
        if self.rows.is_some() { end } else { (end * (1.0 + HEADROOM)).max(LEAST_BYTES) }
    }

    /// Where there may be strips: above the peak only what `top` is for.
    pub fn data(&self) -> Area {
        let y1 = self.rows.map_or(self.peak.max(self.top), |rows| rows.units);
        Area { x0: 0.0, x1: self.extent, y0: 0.0, y1 }
    }

    /// The same with the upper half of a line at `top`.
    pub fn drawn(&self) -> Area {
        let data = self.data();
        let line =
            if self.rows.is_none() && self.top > 0.0 { data.y1 * HEADROOM / 4.0 } else { 0.0 };
        Area { y1: data.y1 + line, ..data }
    }

    fn width(&self, wanted: f64) -> f64 {
        let all = self.extent.max(1.0);
        between(wanted, [LEAST_SLOTS.min(all), all])
    }

    /// Units in view when a row is so many CSS pixels high.
    fn rows_height(&self, rows: &Rows, pixels: f64) -> f64 {
        self.plot.max(1.0) / pixels * rows.row_units
    }

    fn height(&self, wanted: f64) -> f64 {
        let Some(rows) = &self.rows else { return between(wanted, [LEAST_BYTES, self.ceiling()]) };
        let most = if rows.least < rows.most { rows.most * ROW_ZOOM } else { rows.most };
        between(wanted, [self.rows_height(rows, most), self.rows_height(rows, rows.least)])
    }

    /// The nearest allowed view; a view with something other than numbers in it becomes the whole.
    pub fn clamp(&self, view: Area) -> Area {
        if ![view.x0, view.x1, view.y0, view.y1].iter().all(|v| v.is_finite()) {
            return self.fit();
        }
        let (w, h) = (self.width(view.width()), self.height(view.height()));
        let all = self.extent.max(1.0);
        // No margin when all is in view, so that the whole sits still.
        let margin = MARGIN * w * (1.0 - w / all);
        let x0 = between(view.x0, [-margin, all - w + margin]);
        // Rows that leave room free leave it below them.
        let high = self.ceiling() - h;
        let y0 = between(view.y0, [high.min(0.0), high]);
        Area { x0, x1: x0 + w, y0, y1: y0 + h }
    }

    /// The nearest allowed view about the middle of an area.
    pub fn about(&self, area: Area) -> Area {
        let (w, h) = (self.width(area.width()), self.height(area.height()));
        let (x0, y0) =
            (f64::midpoint(area.x0, area.x1) - w / 2.0, f64::midpoint(area.y0, area.y1) - h / 2.0);
        self.clamp(Area { x0, x1: x0 + w, y0, y1: y0 + h })
    }

    /// What takes the place of a view when these bounds become others: all heights where all were
    /// in view, else the same from its upper edge down, with rows as high and as far from the first
    /// one as before.
    pub fn carry(&self, view: Area, now: &Self) -> Area {
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

    /// Makes `factor` times as many slots visible; the slot `at` stays where it is.
    pub fn zoom_x(&self, view: Area, at: f64, factor: f64) -> Area {
        let w = self.width(view.width() * factor);
        let x0 = at - (at - view.x0) / view.width() * w;
        self.clamp(Area { x0, x1: x0 + w, ..view })
    }

    /// Makes `factor` times as many bytes visible; the height `at` stays where it is.
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

/// As `f64::clamp`, which writes its bounds when they are none: what writes floats would be a tenth
/// of the module.
#[inline]
pub(crate) fn between(value: f64, [low, high]: [f64; 2]) -> f64 {
    value.max(low).min(high)
}

#[cfg(test)]
mod tests {
    use super::{Bounds, LEAST_BYTES, LEAST_SLOTS};
    use crate::tile::Area;

    const BOUNDS: Bounds = Bounds::bytes(1000.0, 1e6);

    fn near(a: f64, b: f64) {
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
    fn zooming_keeps_the_point_and_comes_back() {
        let at = 300.0;
        let view = BOUNDS.zoom_x(BOUNDS.fit(), at, 0.25);
        near(view.width(), 250.0);
        near((at - view.x0) / view.width(), 0.3);
        near(BOUNDS.zoom_x(view, at, 4.0).width(), 1000.0);
        let high = BOUNDS.zoom_y(BOUNDS.fit(), 4e5, 0.5);
        near((4e5 - high.y0) / high.height(), 4e5 / BOUNDS.fit().y1);
    }

    #[test]
    fn the_smallest_and_largest_views_do_not_move_when_zoomed_further() {
        let mut view = BOUNDS.fit();
        for _ in 0..200 {
            view = BOUNDS.zoom_y(BOUNDS.zoom_x(view, 500.0, 0.5), 0.0, 0.5);
        }
        near(view.width(), LEAST_SLOTS);
        near(view.height(), LEAST_BYTES);
        near((500.0 - view.x0) / view.width(), 0.5);
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
        near(right.y1, BOUNDS.fit().y1);
    }

    #[test]
    fn odd_input_gives_a_sane_view() {
        let odd = Area { x0: f64::NAN, x1: 1.0, y0: 0.0, y1: 1.0 };
        assert_eq!(BOUNDS.clamp(odd), BOUNDS.fit());
        let reversed = BOUNDS.clamp(Area { x0: 10.0, x1: -10.0, y0: 5.0, y1: 1.0 });
        assert!(reversed.width() > 0.0 && reversed.height() > 0.0);
        // A trace of one slot, or of no bytes.
        let tiny = Bounds::bytes(1.0, 0.0);
        assert_eq!(tiny.zoom_x(tiny.fit(), 0.5, 0.01), tiny.fit());
    }
}
