//! The columns of a tile.

use crate::Color;

/// Columns in a tile; each is `2^kx` slots wide.
pub const TILE_COLUMNS: u32 = 512;
/// Rows in a tile; each is `2^ky` bytes high.
pub const TILE_ROWS: u32 = 1024;
/// Set in a strip's block when it stands for several blocks, of which it names the largest.
pub const MERGED: u32 = 1 << 31;
/// In place of a block: the strip is no block, but a line or a ground. Never with [`MERGED`].
pub const NO_BLOCK: u32 = MERGED - 1;

// Texel sizes: one RGBA32F a position, one R32UI a word.
const _: () = assert!(size_of::<[f32; 4]>() == 16);
const _: () = assert!(size_of::<u32>() == 4);

/// The strips of a tile, in any order: rectangles that do not overlap.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Strips {
    /// `x0, y0, x1, y1` in columns and rows of the tile; `y` grows upward.
    pub positions: Vec<[f32; 4]>,
    /// [`Color::word`] of each.
    pub colors: Vec<u32>,
    /// The block of each, with [`MERGED`] where it is the largest of several.
    pub blocks: Vec<u32>,
}

impl Strips {
    /// No strips, and room for `n`.
    pub fn with_capacity(n: usize) -> Self {
        Self {
            positions: Vec::with_capacity(n),
            colors: Vec::with_capacity(n),
            blocks: Vec::with_capacity(n),
        }
    }

    /// Columns as they arrive from a worker; `None` when their lengths do not belong together.
    pub fn from_flat(positions: Vec<f32>, colors: Vec<u32>, blocks: Vec<u32>) -> Option<Self> {
        if positions.len() != colors.len() * 4 || colors.len() != blocks.len() {
            return None;
        }
        // Without a copy, unless the vector's spare room is no whole number of strips.
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

    /// How many strips there are.
    pub fn len(&self) -> usize {
        self.positions.len()
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }

    /// Forgets the strips and keeps the room.
    pub fn clear(&mut self) {
        self.positions.clear();
        self.colors.clear();
        self.blocks.clear();
    }

    /// The positions as they cross to the page: four numbers a strip.
    pub fn flat_positions(&self) -> &[f32] {
        bytemuck::cast_slice(&self.positions)
    }

    /// The columns, borrowed.
    pub fn columns(&self) -> StripColumns<'_> {
        StripColumns { positions: &self.positions, colors: &self.colors, blocks: &self.blocks }
    }
}

/// Borrowed columns of equal length: what is uploaded and hit.
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

    /// The block of each strip.
    pub fn blocks(&self) -> &'a [u32] {
        self.blocks
    }

    /// How many strips there are.
    pub fn len(&self) -> usize {
        self.positions.len()
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::Strips;
    use crate::Color;

    #[test]
    fn columns_stay_parallel() {
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
    fn columns_of_different_lengths_are_refused() {
        let columns = |n: usize| Strips::from_flat(vec![0.0; n], vec![1, 2], vec![3, 4]);
        assert_eq!(columns(8).map(|strips| strips.len()), Some(2));
        assert_eq!(columns(7), None);
        assert_eq!(Strips::from_flat(vec![0.0; 8], vec![1], vec![3, 4]), None);
        let mut roomy = Vec::with_capacity(11);
        roomy.extend([1.0, 2.0, 3.0, 4.0]);
        let strips = Strips::from_flat(roomy, vec![0], vec![0]);
        assert_eq!(strips.map(|strips| strips.positions), Some(vec![[1.0, 2.0, 3.0, 4.0]]));
    }
}
