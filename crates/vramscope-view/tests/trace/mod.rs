//! A synthetic training run, and a simple layout of its tiles without merging.

use vramscope_render::{Color, Strips, TILE_COLUMNS, TILE_ROWS};
use vramscope_view::tile::{TileGeometry, TileKey, power};

const MIB: f64 = 1_048_576.0;

struct Block {
    from: f64,
    to: f64,
    bytes: f64,
    color: Color,
}

/// A trace. Its blocks are in stack order.
pub(crate) struct Trace {
    blocks: Vec<Block>,
    pub(crate) extent: f64,
    pub(crate) peak: f64,
    pub(crate) peak_slot: f64,
}

impl Trace {
    /// A block of the second step that moves down a few times.
    pub(crate) const LONG_LIVED: u32 = 40 + 114 + 4 * 15;

    /// Weights, and three steps with activations. Each step has two temporary blocks at its peak.
    pub(crate) fn new() -> Self {
        let extent = 24_000.0;
        let mut blocks = Vec::new();
        for i in 0..40u8 {
            let bytes = f64::from(20 + u32::from(i) * 37 % 90) * MIB;
            blocks.push(Block {
                from: 0.0,
                to: extent,
                bytes,
                color: Color::new(60 + i % 3 * 4, i % 4),
            });
        }
        for step in 0..3u8 {
            let start = 500.0 + f64::from(step) * 7800.0;
            for layer in 0..28u8 {
                for part in 0..4u8 {
                    let from = start + f64::from(layer) * 120.0 + f64::from(part) * 25.0;
                    // Blocks saved for the backward pass are freed in reverse order. Part 2 is
                    // freed early, and all blocks above it move down.
                    let to = match part {
                        2 => start + 3700.0 + f64::from(layer) * 110.0,
                        _ => start + 7200.0 - f64::from(layer) * 130.0 - f64::from(part) * 30.0,
                    };
                    let bytes = [150.0, 66.0, 110.0, 5.0][usize::from(part)] * MIB;
                    let color =
                        Color::new([10, 225, 245, 140][usize::from(part)], (layer + part) % 4);
                    blocks.push(Block { from, to, bytes, color });
                }
            }
            let from = start + 3400.0;
            blocks.push(Block {
                from,
                to: from + 160.0,
                bytes: 1900.0 * MIB,
                color: Color::new(38, 1),
            });
            blocks.push(Block {
                from: from + 40.0,
                to: from + 90.0,
                bytes: 600.0 * MIB,
                color: Color::NO_STACK,
            });
        }
        let mut trace = Self { blocks, extent, peak: 0.0, peak_slot: 0.0 };
        for slot in 0..extent as u32 {
            let height = trace.height(f64::from(slot));
            if height > trace.peak {
                (trace.peak, trace.peak_slot) = (height, f64::from(slot));
            }
        }
        trace
    }

    fn height(&self, slot: f64) -> f64 {
        self.blocks.iter().filter(|b| b.from <= slot && slot < b.to).map(|b| b.bytes).sum()
    }

    pub(crate) fn span(&self, block: u32) -> [f64; 2] {
        let block = &self.blocks[block as usize];
        [block.from, block.to]
    }

    pub(crate) fn color(&self, block: u32) -> u32 {
        self.blocks[block as usize].color.word()
    }

    /// The strips of a tile. A block gets a new strip whenever its height changes.
    pub(crate) fn tile(&self, key: TileKey) -> Strips {
        let area = key.area();
        let (column, row) = (power(key.kx), power(key.ky));
        let mut strips = Strips::default();
        let mut open: Vec<Option<[f32; 4]>> = vec![None; self.blocks.len()];
        let mut heights = vec![(0.0, 0.0); self.blocks.len()];
        for i in 0..=TILE_COLUMNS {
            // The highest of 8 sampled slots of the column.
            let from = area.x0 + f64::from(i) * column;
            let at = (0..8)
                .map(|s| (from + f64::from(s) * column / 8.0).floor())
                .max_by(|a, b| self.height(*a).total_cmp(&self.height(*b)))
                .unwrap_or(from);
            let mut y = 0.0;
            for (block, height) in self.blocks.iter().zip(&mut heights) {
                let live = i < TILE_COLUMNS && block.from <= at && at < block.to;
                *height = (y, if live { y + block.bytes } else { y });
                y = height.1;
            }
            for (b, (open, (low, high))) in open.iter_mut().zip(&heights).enumerate() {
                let rows =
                    |bytes: f64| ((bytes - area.y0) / row).clamp(0.0, f64::from(TILE_ROWS)) as f32;
                let (y0, y1) = (rows(*low), rows(*high));
                if let Some(strip) = *open
                    && (y1 <= y0
                        || [strip[1].to_bits(), strip[3].to_bits()] != [y0.to_bits(), y1.to_bits()])
                {
                    strips.push(
                        [strip[0], strip[1], i as f32, strip[3]],
                        self.blocks[b].color,
                        b as u32,
                    );
                    *open = None;
                }
                if y1 > y0 && open.is_none() {
                    *open = Some([i as f32, y0, 0.0, y1]);
                }
            }
        }
        strips
    }
}
