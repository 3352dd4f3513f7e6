//! The strips of a tile, as parallel arrays.

use crate::Color;

/// Columns per tile. Each is `2^kx` slots wide.
pub const TILE_COLUMNS: u32 = 512;
/// Rows per tile. Each is `2^ky` bytes high.
pub const TILE_ROWS: u32 = 1024;
/// Bit of a block number: the strip merges several blocks, and the number is that of the largest.
pub const MERGED: u32 = 1 << 31;
/// Block number of strips that are not blocks: lines and backgrounds. Never set with [`MERGED`].
pub const NO_BLOCK: u32 = MERGED - 1;

// Texel sizes: one RGBA32F per position, one R32UI per word.
const _: () = assert!(size_of::<[f32; 4]>() == 16);
const _: () = assert!(size_of::<u32>() == 4);

/// The strips of a tile: rectangles in any order. Strips of blocks do not overlap.
///
/// A strip in the color of a line ([`Color::is_line`]) has no height, or no width. It is drawn with
/// a fixed width in pixels, and may lie a few rows beyond the tile, whose edge then cuts it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Strips {
    /// `x0, y0, x1, y1` of each strip, in columns and rows of the tile. `y` grows upward.
    pub positions: Vec<[f32; 4]>,
    /// [`Color::word`] of each strip.
    pub colors: Vec<u32>,
    /// Block number of each strip. Merged strips have the [`MERGED`] bit set.
    pub blocks: Vec<u32>,
}

impl Strips {
    /// Empty, with capacity for `n` strips.
    pub fn with_capacity(n: usize) -> Self {
        Self {
            positions: Vec::with_capacity(n),
            colors: Vec::with_capacity(n),
            blocks: Vec::with_capacity(n),
        }
    }

    /// Strips from the three arrays of a worker. `None` when the lengths do not match.
    pub fn from_flat(positions: Vec<f32>, colors: Vec<u32>, blocks: Vec<u32>) -> Option<Self> {
        if positions.len() != colors.len() * 4 || colors.len() != blocks.len() {
            return None;
        }
        // Copies only when the capacity of `positions` is not a multiple of 4.
        let positions = bytemuck::allocation::try_cast_vec(positions)
            .unwrap_or_else(|(_, positions)| bytemuck::cast_slice(&positions).to_vec());
        Some(Self { positions, colors, blocks })
    }

    /// Adds a strip.
    pub fn push(&mut self, position: [f32; 4], color: Color, block: u32) {
        self.positions.push(position);
        self.colors.push(color.word());
        self.blocks.push(block);
    }

    /// Number of strips.
    pub fn len(&self) -> usize {
        self.positions.len()
    }

    /// True when there are no strips.
    pub fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }

    /// Removes all strips and keeps the capacity.
    pub fn clear(&mut self) {
        self.positions.clear();
        self.colors.clear();
        self.blocks.clear();
    }

    /// The positions as transferred to the page: four numbers per strip.
    pub fn flat_positions(&self) -> &[f32] {
        bytemuck::cast_slice(&self.positions)
    }

    /// Borrows the arrays.
    pub fn columns(&self) -> StripColumns<'_> {
        StripColumns { positions: &self.positions, colors: &self.colors, blocks: &self.blocks }
    }
}

/// Borrowed arrays of [`Strips`], for uploads and hit tests. All have one length.
#[derive(Clone, Copy, Debug)]
pub struct StripColumns<'a> {
    positions: &'a [[f32; 4]],
    colors: &'a [u32],
    blocks: &'a [u32],
}

impl<'a> StripColumns<'a> {
    /// `x0, y0, x1, y1` of each strip.
    pub fn positions(&self) -> &'a [[f32; 4]] {
        self.positions
    }

    /// The color word of each strip.
    pub fn colors(&self) -> &'a [u32] {
        self.colors
    }

    /// The block number of each strip.
    pub fn blocks(&self) -> &'a [u32] {
        self.blocks
    }

    /// Number of strips.
    pub fn len(&self) -> usize {
        self.positions.len()
    }

    /// True when there are no strips.
    pub fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::Strips;
    use crate::Color;

    #[test]
    fn push_keeps_arrays_parallel() {
        let mut strips = Strips::with_capacity(2);
        strips.push([0.0, 1.0, 2.0, 3.0], Color::new(1, 2), 5);
        strips.push([4.0, 5.0, 6.0, 7.0], Color::NO_STACK, 6);
        assert_eq!(strips.flat_positions(), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
        assert_eq!(
            (strips.colors.as_slice(), strips.blocks.as_slice()),
            (&[0x201, 0xFFFF][..], &[5, 6][..])
        );
        strips.clear();
        assert!(strips.is_empty() && strips.columns().is_empty());
    }

    #[test]
    fn from_flat_rejects_different_lengths() {
        let columns = |n: usize| Strips::from_flat(vec![0.0; n], vec![1, 2], vec![3, 4]);
        assert_eq!(columns(8).map(|strips| strips.len()), Some(2));
        assert_eq!(columns(7), None);
        assert_eq!(Strips::from_flat(vec![0.0; 8], vec![1], vec![3, 4]), None);
        let mut odd_capacity = Vec::with_capacity(11);
        odd_capacity.extend([1.0, 2.0, 3.0, 4.0]);
        let strips = Strips::from_flat(odd_capacity, vec![0], vec![0]);
        assert_eq!(strips.map(|strips| strips.positions), Some(vec![[1.0, 2.0, 3.0, 4.0]]));
    }
}
