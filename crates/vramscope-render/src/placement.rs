//! The position of a tile on the screen.

use bytemuck::{Pod, Zeroable};

use crate::{TILE_COLUMNS, TILE_ROWS};

/// A rectangle in whole device pixels from the lower left corner of the canvas. `y` grows upward.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct PixelRect {
    /// Left edge.
    pub x0: f32,
    /// Lower edge.
    pub y0: f32,
    /// Right edge.
    pub x1: f32,
    /// Upper edge.
    pub y1: f32,
}

impl PixelRect {
    /// True when the rectangle has no pixels.
    pub fn is_empty(&self) -> bool {
        self.x1 <= self.x0 || self.y1 <= self.y0
    }

    /// True when the pixel with this lower left corner is inside.
    pub fn contains(&self, x: f32, y: f32) -> bool {
        self.x0 <= x && x < self.x1 && self.y0 <= y && y < self.y1
    }
}

/// The mapping from a tile's columns and rows to device pixels, and the pixels that the tile may
/// touch.
///
/// The numbers are `f32` because shaders need that. They lose no precision, because they are
/// computed from `f64` relative to a point of the tile that is on the screen. A tile stretched to a
/// million pixels is as sharp as one that fits the screen.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Placement {
    /// A point of the tile, in columns and rows.
    reference: [f32; 2],
    /// The device pixel of `reference`.
    at: [f32; 2],
    /// Device pixels per column, and per row.
    scale: [f32; 2],
    /// The part of the screen that this tile fills. At most the area that the tile covers.
    clip: PixelRect,
}

// Ten floats. The strips program reads them as vertex attributes at these offsets.
const _: () = assert!(size_of::<Placement>() == 40);

impl Placement {
    /// A tile with its lower left corner at the device pixel `corner`, and `scale` pixels per
    /// column and per row. It is drawn inside `clip` (`x0, y0, x1, y1`). The clip is cut to the
    /// tile and rounded to pixels, so that tiles with a common edge round it equally.
    pub fn new(corner: [f64; 2], scale: [f64; 2], clip: [f64; 4]) -> Self {
        let far = [
            corner[0] + scale[0] * f64::from(TILE_COLUMNS),
            corner[1] + scale[1] * f64::from(TILE_ROWS),
        ];
        let x0 = round(clip[0].max(corner[0]));
        let y0 = round(clip[1].max(corner[1]));
        // At least the near edge: an empty clip must not have a negative size.
        let x1 = round(clip[2].min(far[0])).max(x0);
        let y1 = round(clip[3].min(far[1])).max(y0);
        let reference =
            [((x0 - corner[0]) / scale[0]) as f32, ((y0 - corner[1]) / scale[1]) as f32];
        Self {
            reference,
            at: [
                (corner[0] + f64::from(reference[0]) * scale[0]) as f32,
                (corner[1] + f64::from(reference[1]) * scale[1]) as f32,
            ],
            scale: [scale[0] as f32, scale[1] as f32],
            clip: PixelRect { x0: x0 as f32, y0: y0 as f32, x1: x1 as f32, y1: y1 as f32 },
        }
    }

    /// The pixels that the tile may touch.
    pub fn clip(&self) -> PixelRect {
        self.clip
    }

    /// The pixels that a strip fills, by the arithmetic of the shader.
    ///
    /// An edge on the tile's border gets the pixel of the border, which was rounded once for both
    /// adjacent tiles.
    pub fn snap(&self, strip: [f32; 4]) -> PixelRect {
        let [x0, y0, x1, y1] = strip;
        let clip = self.clip;
        let x =
            |column: f32| ((column - self.reference[0]) * self.scale[0] + self.at[0] + 0.5).floor();
        let y = |row: f32| ((row - self.reference[1]) * self.scale[1] + self.at[1] + 0.5).floor();
        // Like GLSL's `clamp`. `f32::clamp` panics with a message that contains its bounds, and the
        // code that formats floats is large.
        let (in_x, in_y) =
            (|x: f32| x.max(clip.x0).min(clip.x1), |y: f32| y.max(clip.y0).min(clip.y1));
        PixelRect {
            x0: if x0 <= 0.0 { clip.x0 } else { in_x(x(x0)) },
            y0: if y0 <= 0.0 { clip.y0 } else { in_y(y(y0)) },
            x1: if x1 >= TILE_COLUMNS as f32 { clip.x1 } else { in_x(x(x1)) },
            y1: if y1 >= TILE_ROWS as f32 { clip.y1 } else { in_y(y(y1)) },
        }
    }

    /// The part of the tile, in columns and rows, in which all strips lie that may fill a pixel.
    /// The pixel is given by its lower left corner. [`snap`](Self::snap) moves an edge by at most
    /// half a pixel, and the margin here is one pixel.
    pub fn around(&self, pixel: [f32; 2]) -> [f32; 4] {
        let column = |x: f32| (x - self.at[0]) / self.scale[0] + self.reference[0];
        let row = |y: f32| (y - self.at[1]) / self.scale[1] + self.reference[1];
        [column(pixel[0] - 1.0), row(pixel[1] - 1.0), column(pixel[0] + 2.0), row(pixel[1] + 2.0)]
    }
}

/// Rounds half up, also below zero, like `floor(v + 0.5)` in the shader.
fn round(v: f64) -> f64 {
    (v + 0.5).floor()
}

#[cfg(test)]
mod tests {
    use super::{PixelRect, Placement};

    const EVERYWHERE: [f64; 4] = [0.0, 0.0, 4000.0, 4000.0];

    fn rect(x0: f32, y0: f32, x1: f32, y1: f32) -> PixelRect {
        PixelRect { x0, y0, x1, y1 }
    }

    #[test]
    fn snap_rounds_half_up() {
        let placement = Placement::new([10.25, 20.0], [1.5, 0.75], EVERYWHERE);
        // 10.25 + 1.5 = 11.75 and 10.25 + 3 = 13.25; 20 + 0.75 and 20 + 7.5.
        assert_eq!(placement.snap([1.0, 1.0, 2.0, 10.0]), rect(12.0, 21.0, 13.0, 28.0));
    }

    #[test]
    fn adjacent_tiles_share_their_edge() {
        for step in 0..1000 {
            let scale = 0.5 + f64::from(step) / 999.0;
            let corner = [f64::from(step) * 0.137, 0.0];
            let next = [corner[0] + 512.0 * scale, 0.0];
            let (a, b) = (
                Placement::new(corner, [scale, 1.0], EVERYWHERE),
                Placement::new(next, [scale, 1.0], EVERYWHERE),
            );
            let last = a.snap([511.0, 0.0, 512.0, 1.0]);
            let first = b.snap([0.0, 0.0, 1.0, 1.0]);
            assert_eq!(last.x1.to_bits(), first.x0.to_bits(), "scale {scale}");
        }
    }

    #[test]
    fn columns_of_at_least_a_pixel_stay_visible() {
        for step in 0..500 {
            let placement = Placement::new(
                [f64::from(step) * 0.37, 0.0],
                [1.001 + f64::from(step) / 501.0, 1.0],
                EVERYWHERE,
            );
            for column in 0..512 {
                let strip = placement.snap([column as f32, 0.0, column as f32 + 1.0, 1.0]);
                assert!(strip.x1 > strip.x0, "column {column} of step {step}");
            }
        }
    }

    #[test]
    fn stretched_tiles_are_exact_on_screen() {
        // A column has 2^20 pixels. The screen shows the border between columns 300 and 301.
        let scale = 1_048_576.0;
        let corner = [400.0 - 301.0 * scale, 0.0];
        let placement = Placement::new(corner, [scale, 1.0], [0.0, 0.0, 800.0, 600.0]);
        assert_eq!(placement.snap([300.0, 0.0, 301.0, 5.0]), rect(0.0, 0.0, 400.0, 5.0));
        assert_eq!(placement.snap([301.0, 0.0, 302.0, 5.0]), rect(400.0, 0.0, 800.0, 5.0));
    }

    #[test]
    fn around_includes_every_strip_with_the_pixel() {
        for (corner, scale) in [
            ([3.3, 7.9], [1.7, 0.6]),
            ([-90.5, -800.25], [1.0, 0.51]),
            ([-1e6, 2.0], [4000.0, 33.3]),
        ] {
            let placement = Placement::new(corner, scale, [0.0, 0.0, 640.0, 400.0]);
            for i in 0..5000u32 {
                let x = (i * 37 % 512) as f32;
                let y = (i * 53 % 2048) as f32 / 2.0;
                let strip = [x, y, x + 1.0 + (i % 7) as f32, y + 0.5 + (i % 5) as f32];
                let seen = placement.snap(strip);
                for pixel in [[seen.x0, seen.y0], [seen.x1 - 1.0, seen.y1 - 1.0]] {
                    let [x0, y0, x1, y1] = placement.around(pixel);
                    let touched =
                        strip[0] <= x1 && strip[2] >= x0 && strip[1] <= y1 && strip[3] >= y0;
                    assert!(
                        touched || !seen.contains(pixel[0], pixel[1]),
                        "{strip:?} at {pixel:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn strips_outside_the_clip_are_empty() {
        let placement = Placement::new([0.0, 0.0], [1.0, 1.0], [100.0, 0.0, 200.0, 50.0]);
        assert!(placement.snap([0.0, 0.0, 99.0, 10.0]).is_empty());
        assert!(placement.snap([120.0, 60.0, 130.0, 70.0]).is_empty());
        assert!(placement.snap([120.0, 40.0, 130.0, 70.0]).contains(125.0, 49.0));
    }
}
