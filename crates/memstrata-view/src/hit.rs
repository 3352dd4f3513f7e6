//! What lies under the pointer, from the tiles that are on the screen.

use memstrata_render::{MERGED, Placement, StripColumns};

/// A strip under the pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strip {
    /// The block; of a merged strip the largest.
    pub block: u32,
    /// The strip stands for several blocks.
    pub merged: bool,
}

/// The strip of a tile whose pixels include this one, by its lower left corner.
///
/// All strips of the tile are looked at: 32 thousand take some 20 microseconds, which an index by column would save only
/// by costing more than that for every tile that arrives. The comparison is of the pixels that were drawn, so the answer
/// is what is seen, even for a strip of one pixel.
pub fn strip_at(strips: StripColumns<'_>, placement: &Placement, pixel: [f32; 2]) -> Option<Strip> {
    let [x, y] = pixel;
    if !placement.clip().contains(x, y) {
        return None;
    }
    let [x0, y0, x1, y1] = placement.around(pixel);
    // Four comparisons leave a handful of strips to round as the shader does.
    let near = |s: &[f32; 4]| s[0] <= x1 && s[2] >= x0 && s[1] <= y1 && s[3] >= y0;
    let found = strips.positions().iter().position(|s| near(s) && placement.snap(*s).contains(x, y))?;
    let block = strips.blocks()[found];
    Some(Strip { block: block & !MERGED, merged: block & MERGED != 0 })
}

#[cfg(test)]
mod tests {
    use memstrata_render::{Colour, MERGED, Placement, Strips};

    use super::{Strip, strip_at};

    #[test]
    fn the_strip_whose_pixel_it_is() {
        let mut strips = Strips::default();
        strips.push([0.0, 0.0, 4.0, 3.4], Colour::NO_STACK, 1);
        strips.push([0.0, 3.4, 4.0, 3.6], Colour::NO_STACK, 2);
        strips.push([0.0, 3.6, 4.0, 5.0], Colour::NO_STACK, 3 | MERGED);
        let placement = Placement::new([10.0, 20.0], [2.0, 1.0], [0.0, 0.0, 100.0, 100.0]);
        let at = |x: f32, y: f32| strip_at(strips.columns(), &placement, [x, y]);
        assert_eq!(at(10.0, 22.0), Some(Strip { block: 1, merged: false }));
        // Block 2 is from 23.4 to 23.6, which rounds to pixel 23.
        assert_eq!(at(17.0, 23.0), Some(Strip { block: 2, merged: false }));
        assert_eq!(at(17.0, 24.0), Some(Strip { block: 3, merged: true }));
        assert_eq!(at(18.0, 24.0), None);
        assert_eq!(at(17.0, 25.0), None);
        assert_eq!(at(9.0, 22.0), None);
    }
}
