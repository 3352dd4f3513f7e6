//! Layout of the plot on the canvas, and conversions between CSS pixels, device pixels, slots and
//! bytes.

use vramscope_render::{PixelRect, Placement};

use crate::tile::{Area, TileGeometry, TileKey, power};

/// Default space for the labels of the y axis, in CSS pixels.
pub const DEFAULT_LEFT: f64 = 64.0;
/// Space for the labels of the x axis, in CSS pixels.
const BOTTOM: f64 = 24.0;
/// Space above the plot for half a label, in CSS pixels.
const TOP: f64 = 8.0;
/// Space on the right in CSS pixels, so that the last label is not cut.
const RIGHT: f64 = 12.0;

/// A rectangle in CSS pixels of the canvas. `y` grows downward.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct CssRect {
    /// Left edge.
    pub left: f64,
    /// Upper edge.
    pub top: f64,
    /// Width.
    pub width: f64,
    /// Height.
    pub height: f64,
}

/// The size of a canvas, and the position of the plot in it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Screen {
    /// Size of the canvas in CSS pixels.
    pub css: [f64; 2],
    /// Device pixels per CSS pixel.
    pub ratio: f64,
    /// Space left of the plot in CSS pixels.
    pub left: f64,
    /// Size of the canvas in device pixels.
    pub canvas: [u32; 2],
    /// The plot in whole device pixels from the lower left. `y` grows upward.
    pub plot: PixelRect,
}

impl Screen {
    /// A canvas with a size in CSS pixels, and `ratio` device pixels per CSS pixel.
    pub fn new(width: f64, height: f64, ratio: f64) -> Self {
        let css = [valid_length(width), valid_length(height)];
        let ratio = if ratio.is_finite() && ratio > 0.0 { ratio } else { 1.0 };
        Self { css, ratio, ..Self::default() }.with_left(DEFAULT_LEFT)
    }

    /// Replaces the space left of the plot, in CSS pixels.
    #[must_use]
    pub fn with_left(self, left: f64) -> Self {
        let Self { css, ratio, .. } = self;
        let left = valid_length(left);
        let pixels = |css: f64| (css * ratio).round();
        let canvas = css.map(pixels);
        let [x0, y0] = [pixels(left).min(canvas[0]), pixels(BOTTOM).min(canvas[1])];
        let x1 = (canvas[0] - pixels(RIGHT)).max(x0);
        let y1 = (canvas[1] - pixels(TOP)).max(y0);
        Self {
            css,
            ratio,
            left,
            canvas: canvas.map(|v| v as u32),
            plot: PixelRect { x0: x0 as f32, y0: y0 as f32, x1: x1 as f32, y1: y1 as f32 },
        }
    }

    /// True when the plot has no pixels.
    pub fn is_empty(&self) -> bool {
        self.plot.is_empty()
    }

    /// Width and height of the plot in device pixels.
    pub fn plot_size(&self) -> [f64; 2] {
        [f64::from(self.plot.x1 - self.plot.x0), f64::from(self.plot.y1 - self.plot.y0)]
    }

    /// The plot in CSS pixels, for elements laid over the canvas.
    pub fn plot_css(&self) -> CssRect {
        let [width, height] = self.plot_size();
        CssRect {
            left: f64::from(self.plot.x0) / self.ratio,
            top: (f64::from(self.canvas[1]) - f64::from(self.plot.y1)) / self.ratio,
            width: width / self.ratio,
            height: height / self.ratio,
        }
    }

    /// Device pixels per slot and per byte.
    pub fn scale(&self, view: &Area) -> [f64; 2] {
        let [w, h] = self.plot_size();
        [w / view.width(), h / view.height()]
    }

    /// The device pixel (from the left) of a slot.
    pub fn x_of(&self, view: &Area, slot: f64) -> f64 {
        f64::from(self.plot.x0) + (slot - view.x0) * self.scale(view)[0]
    }

    /// The device pixel (from the bottom) of a height.
    pub fn y_of(&self, view: &Area, bytes: f64) -> f64 {
        f64::from(self.plot.y0) + (bytes - view.y0) * self.scale(view)[1]
    }

    /// The CSS position (from the left) of a device pixel.
    pub fn css_x(&self, pixel: f64) -> f64 {
        pixel / self.ratio
    }

    /// The CSS position (from the top) of a device pixel, which is given from the bottom.
    pub fn css_y(&self, pixel: f64) -> f64 {
        (f64::from(self.canvas[1]) - pixel) / self.ratio
    }

    /// The lower left corner of the device pixel at a CSS position in the canvas.
    pub fn pixel_at(&self, x: f64, y: f64) -> [f64; 2] {
        [(x * self.ratio).floor(), f64::from(self.canvas[1]) - 1.0 - (y * self.ratio).floor()]
    }

    /// True when a CSS position is in the plot.
    pub fn in_plot(&self, x: f64, y: f64) -> bool {
        let [x, y] = self.pixel_at(x, y);
        self.plot.contains(x as f32, y as f32)
    }

    /// The slot at a CSS position.
    pub fn slot_at(&self, view: &Area, x: f64) -> f64 {
        view.x0 + (x * self.ratio - f64::from(self.plot.x0)) / self.scale(view)[0]
    }

    /// The bytes at a CSS position.
    pub fn bytes_at(&self, view: &Area, y: f64) -> f64 {
        view.y0
            + (f64::from(self.canvas[1]) - y * self.ratio - f64::from(self.plot.y0))
                / self.scale(view)[1]
    }

    /// The nearest CSS position in the plot. NaN gives the left and the upper edge.
    pub fn nearest(&self, x: f64, y: f64) -> [f64; 2] {
        let plot = self.plot_css();
        [x.max(plot.left).min(plot.left + plot.width), y.max(plot.top).min(plot.top + plot.height)]
    }

    /// The placement of a tile. Only the part in `clip` is drawn.
    pub fn place(&self, view: &Area, key: TileKey, clip: &Area) -> Placement {
        let area = key.area();
        let [sx, sy] = self.scale(view);
        let plot = &self.plot;
        Placement::new(
            [self.x_of(view, area.x0), self.y_of(view, area.y0)],
            [sx * power(key.kx), sy * power(key.ky)],
            [
                self.x_of(view, clip.x0).max(f64::from(plot.x0)),
                self.y_of(view, clip.y0).max(f64::from(plot.y0)),
                self.x_of(view, clip.x1).min(f64::from(plot.x1)),
                self.y_of(view, clip.y1).min(f64::from(plot.y1)),
            ],
        )
    }
}

/// Replaces negative, infinite and NaN lengths by 0.
pub fn valid_length(v: f64) -> f64 {
    if v.is_finite() { v.max(0.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use vramscope_render::PixelRect;

    use super::{CssRect, Screen};
    use crate::tile::{Area, TileKey};

    const VIEW: Area = Area { x0: 100.0, x1: 200.0, y0: 0.0, y1: 4096.0 };

    #[test]
    fn css_and_device_pixels_convert_to_slots_and_bytes() {
        let screen = Screen::new(1076.0, 432.0, 2.0);
        assert_eq!(screen.canvas, [2152, 864]);
        assert_eq!(
            screen.plot_css(),
            CssRect { left: 64.0, top: 8.0, width: 1000.0, height: 400.0 }
        );
        assert!((screen.slot_at(&VIEW, 564.0) - 150.0).abs() < 1e-9);
        assert!((screen.bytes_at(&VIEW, 208.0) - 2048.0).abs() < 1e-9);
        assert!((screen.css_x(screen.x_of(&VIEW, 150.0)) - 564.0).abs() < 1e-9);
        assert!((screen.css_y(screen.y_of(&VIEW, 2048.0)) - 208.0).abs() < 1e-9);
    }

    #[test]
    fn in_plot_excludes_the_gutters() {
        let screen = Screen::new(500.0, 300.0, 1.0);
        assert!(screen.in_plot(64.0, 8.0) && screen.in_plot(487.9, 275.9));
        assert!(!screen.in_plot(63.9, 100.0) && !screen.in_plot(488.0, 100.0));
        assert!(!screen.in_plot(100.0, 7.9) && !screen.in_plot(100.0, 276.0));
    }

    #[test]
    fn with_left_moves_the_plot() {
        let screen = Screen::new(500.0, 300.0, 2.0).with_left(0.0);
        assert_eq!(screen.plot_css(), CssRect { left: 0.0, top: 8.0, width: 488.0, height: 268.0 });
        assert_eq!(screen.with_left(64.0), Screen::new(500.0, 300.0, 2.0));
        assert_eq!(screen.with_left(f64::NAN), screen);
        assert!(screen.with_left(1e9).is_empty());
    }

    #[test]
    fn canvases_without_space_for_the_plot_are_empty() {
        for (w, h, ratio) in [(0.0, 0.0, 1.0), (70.0, 400.0, 1.0), (f64::NAN, 10.0, 0.0)] {
            assert!(Screen::new(w, h, ratio).is_empty());
        }
    }

    #[test]
    fn tiles_are_placed_over_their_slots_and_bytes() {
        let screen = Screen::new(1076.0, 432.0, 1.0);
        let key = TileKey { kx: 0, ky: 2, ix: 0, iy: 0 };
        let placement = screen.place(&VIEW, key, &VIEW);
        // Slot 100 is at the plot's left edge. A slot is 10 pixels wide. 1,024 rows of 4 bytes fill
        // the 400 pixels of the plot.
        let seen = placement.snap([110.0, 0.0, 111.0, 512.0]);
        assert_eq!(seen, PixelRect { x0: 164.0, x1: 174.0, y0: 24.0, y1: 224.0 });
    }
}
