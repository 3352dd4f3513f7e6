//! What lies under the pointer, from the tiles that are on the screen.

use crate::viewport::between;
use vramscope_render::{MERGED, NO_BLOCK, Placement, StripColumns};

/// A strip under the pointer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Strip {
    /// Where it is in its tile: columns and rows, `[x0, y0, x1, y1]`.
    pub position: [f32; 4],
    /// The block; of a merged strip the largest.
    pub block: u32,
    /// The strip stands for several blocks.
    pub merged: bool,
}

/// The strip of a tile whose pixels include this one, by its lower left corner.
///
/// All strips of the tile are looked at: 32 thousand take some 20 microseconds, which an index by
/// column would save only by costing more than that for every tile that arrives. The comparison is
/// of the pixels that were drawn, so the answer is what is seen, even for a strip of one pixel.
/// Strips that are no blocks, lines and grounds, hide no block.
pub fn strip_at(strips: StripColumns<'_>, placement: &Placement, pixel: [f32; 2]) -> Option<Strip> {
    let [x, y] = pixel;
    if !placement.clip().contains(x, y) {
        return None;
    }
    let [x0, y0, x1, y1] = placement.around(pixel);
    // Four comparisons leave a handful of strips to round as the shader does.
    let near = |s: &[f32; 4]| s[0] <= x1 && s[2] >= x0 && s[1] <= y1 && s[3] >= y0;
    let is_block = |i: usize| strips.blocks()[i] & !MERGED != NO_BLOCK;
    let found = (strips.positions().iter().enumerate())
        .position(|(i, s)| near(s) && is_block(i) && placement.snap(*s).contains(x, y))?;
    let block = strips.blocks()[found];
    Some(Strip {
        position: strips.positions()[found],
        block: block & !MERGED,
        merged: block & MERGED != 0,
    })
}

/// The value within `[low, high)` that is nearest to this one, a little inside: columns and rows
/// are a pixel or two wide, so the pixel of a strip may reach beyond what it stands for, and who
/// asks what is there must ask about the strip.
pub fn within(value: f64, low: f64, high: f64) -> f64 {
    let margin = ((high - low) / 4.0).min(0.01);
    between(value, [low + margin, high - margin])
}

#[cfg(test)]
mod tests {
    use vramscope_render::{Color, MERGED, NO_BLOCK, Placement, Strips};

    use super::{Strip, strip_at, within};

    #[test]
    fn the_strip_whose_pixel_it_is() {
        let mut strips = Strips::default();
        strips.push([0.0, 0.0, 4.0, 3.4], Color::NO_STACK, 1);
        strips.push([0.0, 3.4, 4.0, 3.6], Color::NO_STACK, 2);
        strips.push([0.0, 3.6, 4.0, 5.0], Color::NO_STACK, 3 | MERGED);
        let placement = Placement::new([10.0, 20.0], [2.0, 1.0], [0.0, 0.0, 100.0, 100.0]);
        let at = |x: f32, y: f32| {
            strip_at(strips.columns(), &placement, [x, y]).map(|s: Strip| (s.block, s.merged))
        };
        let found = |block: u32, merged: bool| Some((block, merged));
        assert_eq!(at(10.0, 22.0), found(1, false));
        // Block 2 is from 23.4 to 23.6, which rounds to pixel 23.
        assert_eq!(at(17.0, 23.0), found(2, false));
        assert_eq!(at(17.0, 24.0), found(3, true));
        assert_eq!(at(18.0, 24.0), None);
        assert_eq!(at(17.0, 25.0), None);
        assert_eq!(at(9.0, 22.0), None);
    }

    #[test]
    fn lines_and_grounds_hide_no_block() {
        let mut strips = Strips::default();
        strips.push([0.0, 0.0, 8.0, 8.0], Color::SEGMENT, NO_BLOCK);
        strips.push([0.0, 0.0, 4.0, 8.0], Color::NO_STACK, 5);
        strips.push([0.0, 2.0, 8.0, 3.0], Color::RESERVED, NO_BLOCK);
        let placement = Placement::new([0.0, 0.0], [1.0, 1.0], [0.0, 0.0, 100.0, 100.0]);
        let at = |x: f32, y: f32| strip_at(strips.columns(), &placement, [x, y]).map(|s| s.block);
        assert_eq!([at(1.0, 2.0), at(1.0, 5.0)], [Some(5); 2]);
        assert_eq!([at(6.0, 2.0), at(6.0, 5.0)], [None; 2]);
    }

    #[test]
    fn a_pixel_beyond_its_strip_asks_about_the_strip() {
        assert_eq!(within(7.0, 4.0, 5.0), 4.99);
        assert_eq!(within(3.6, 4.0, 5.0), 4.01);
        assert_eq!(within(4.5, 4.0, 5.0), 4.5);
        assert_eq!(within(9.0, 4.0, 4.001), 4.00075);
    }
}
