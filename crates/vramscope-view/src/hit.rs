//! Hit tests: finds the strip under the pointer in the tiles on the screen.

use crate::viewport::clamp;
use vramscope_render::{Color, MERGED, NO_BLOCK, Placement, StripColumns};

/// A strip under the pointer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct StripHit {
    /// `[x0, y0, x1, y1]` in columns and rows of its tile.
    pub position: [f32; 4],
    /// The block. In a merged strip the largest one.
    pub block: u32,
    /// Whether the strip merges several blocks.
    pub merged: bool,
    /// The color word.
    pub color: u32,
}

impl StripHit {
    /// Whether the strip has a hit of the search. True for all without a search.
    pub(crate) fn is_lit(&self) -> bool {
        is_lit(self.color)
    }
}

/// Whether a strip of this color has a hit of the search.
pub(crate) fn is_lit(color: u32) -> bool {
    Color::from_word(color).plain() != Color::DIMMED
}

/// The strip of a tile that fills a device pixel. `pixel` is the pixel's lower left corner.
///
/// The search is linear: 32,000 strips take about 20 µs. An index by column would cost more than
/// that for every tile that arrives. Strips are compared by the pixels that were drawn, so the
/// result matches the screen even for strips of one pixel. Lines and backgrounds ([`NO_BLOCK`]) are
/// ignored, so they hide no block.
pub(crate) fn strip_at(
    strips: StripColumns<'_>,
    placement: &Placement,
    pixel: [f32; 2],
) -> Option<StripHit> {
    let [x, y] = pixel;
    if !placement.clip().contains(x, y) {
        return None;
    }
    let [x0, y0, x1, y1] = placement.around(pixel);
    // Four comparisons select a few strips, which are then rounded like in the shader.
    let near = |s: &[f32; 4]| s[0] <= x1 && s[2] >= x0 && s[1] <= y1 && s[3] >= y0;
    let is_block = |i: usize| strips.blocks()[i] & !MERGED != NO_BLOCK;
    let found = (strips.positions().iter().enumerate())
        .position(|(i, s)| near(s) && is_block(i) && placement.snap(*s).contains(x, y))?;
    let block = strips.blocks()[found];
    Some(StripHit {
        position: strips.positions()[found],
        block: block & !MERGED,
        merged: block & MERGED != 0,
        color: strips.colors()[found],
    })
}

/// Clamps `value` to `[low, high)`, slightly inside of both edges.
///
/// A column or row is one or two pixels wide, so the pixels of a strip may reach beyond its range.
/// A query about the pointer's position must be about the strip that was hit.
pub(crate) fn clamp_inside(value: f64, low: f64, high: f64) -> f64 {
    let margin = ((high - low) / 4.0).min(0.01);
    clamp(value, [low + margin, high - margin])
}

#[cfg(test)]
mod tests {
    use vramscope_render::{Color, MERGED, NO_BLOCK, Placement, Strips};

    use super::{StripHit, clamp_inside, strip_at};

    #[test]
    fn strip_at_returns_the_strip_of_the_pixel() {
        let mut strips = Strips::default();
        strips.push([0.0, 0.0, 4.0, 3.4], Color::NO_STACK, 1);
        strips.push([0.0, 3.4, 4.0, 3.6], Color::NO_STACK, 2);
        strips.push([0.0, 3.6, 4.0, 5.0], Color::NO_STACK, 3 | MERGED);
        let placement = Placement::new([10.0, 20.0], [2.0, 1.0], [0.0, 0.0, 100.0, 100.0]);
        let at = |x: f32, y: f32| {
            strip_at(strips.columns(), &placement, [x, y]).map(|s: StripHit| (s.block, s.merged))
        };
        let found = |block: u32, merged: bool| Some((block, merged));
        assert_eq!(at(10.0, 22.0), found(1, false));
        // Block 2 is from 23.4 to 23.6, which is rounded to pixel 23.
        assert_eq!(at(17.0, 23.0), found(2, false));
        assert_eq!(at(17.0, 24.0), found(3, true));
        assert_eq!(at(18.0, 24.0), None);
        assert_eq!(at(17.0, 25.0), None);
        assert_eq!(at(9.0, 22.0), None);
    }

    #[test]
    fn lines_and_backgrounds_hide_no_block() {
        let mut strips = Strips::default();
        strips.push([0.0, 0.0, 8.0, 8.0], Color::SEGMENT.hatched(), NO_BLOCK);
        strips.push([0.0, 0.0, 4.0, 8.0], Color::NO_STACK, 5);
        strips.push([0.0, 2.5, 8.0, 2.5], Color::RESERVED, NO_BLOCK);
        let placement = Placement::new([0.0, 0.0], [1.0, 1.0], [0.0, 0.0, 100.0, 100.0]);
        let at = |x: f32, y: f32| strip_at(strips.columns(), &placement, [x, y]).map(|s| s.block);
        assert_eq!([at(1.0, 2.0), at(1.0, 5.0)], [Some(5); 2]);
        assert_eq!([at(6.0, 2.0), at(6.0, 5.0)], [None; 2]);
    }

    #[test]
    fn clamp_inside_keeps_a_margin() {
        assert_eq!(clamp_inside(7.0, 4.0, 5.0), 4.99);
        assert_eq!(clamp_inside(3.6, 4.0, 5.0), 4.01);
        assert_eq!(clamp_inside(4.5, 4.0, 5.0), 4.5);
        assert_eq!(clamp_inside(9.0, 4.0, 4.001), 4.00075);
    }
}
