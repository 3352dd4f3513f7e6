//! The SVG document of a picture: scales, margins and text.

use std::fmt::Write as _;
use vramscope_layout::Palette;

/// Margins for labels, in pixels: left, top, right, bottom.
pub(super) const MARGINS: [f64; 4] = [72.0, 34.0, 16.0, 28.0];
/// Minimum distance of two labels of the x axis, in pixels.
pub(super) const X_LABEL_SPACING: f64 = 110.0;
/// Minimum distance of two labels of the y axis, in pixels.
pub(super) const Y_LABEL_SPACING: f64 = 48.0;
/// The width of a character of an 11 px label, in pixels, rounded up.
pub(super) const CHAR_WIDTH: f64 = 6.8;
/// The maximum width and height of the plot, in pixels.
pub(super) const MAX_SIDE: u32 = 8192;

/// A document under construction.
pub(super) struct Sheet {
    /// The SVG text so far.
    pub(super) out: String,
    /// The x range of the plot, in slots.
    pub(super) x: [f64; 2],
    /// The y range of the plot, in bytes or row units.
    pub(super) y: [f64; 2],
    /// The width of the plot without margins, in pixels.
    pub(super) width: f64,
    /// The height of the plot without margins, in pixels.
    pub(super) height: f64,
    /// The colors of strips.
    pub(super) palette: Palette,
}

impl Sheet {
    /// The pixel column of an x value, clamped to the plot.
    pub(super) fn px_x(&self, x: f64) -> f64 {
        let [x0, x1] = self.x;
        MARGINS[0] + ((x - x0) / (x1 - x0)).clamp(0.0, 1.0) * self.width
    }

    /// The pixel row of a y value, clamped to the plot.
    pub(super) fn px_y(&self, y: f64) -> f64 {
        let [y0, y1] = self.y;
        MARGINS[1] + (1.0 - ((y - y0) / (y1 - y0)).clamp(0.0, 1.0)) * self.height
    }

    /// Adds a line to the document.
    pub(super) fn put(&mut self, text: std::fmt::Arguments<'_>) {
        self.out.write_fmt(text).expect("writing to a String cannot fail");
        self.out.push('\n');
    }

    /// Adds a text element with these attributes.
    pub(super) fn text(&mut self, x: f64, y: f64, attributes: &str, text: &str) {
        let text = escaped(text);
        self.put(format_args!("<text x=\"{x:.1}\" y=\"{y:.1}\" {attributes}>{text}</text>"));
    }
}

/// Escapes untrusted text, such as names of files and frames. XML allows no control characters.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
