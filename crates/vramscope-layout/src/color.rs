//! The color of each block: by call site, or by another property.
//!
//! A call site has one color in all ranks and after every reload.

use crate::segments::SegmentTiles;
use vramscope_analysis::slicing::{Budget, STRIDE, filled, run_to_completion, strides};
use vramscope_analysis::{Block, Categories, Sites, Trace, lifetime, name_hash};
use vramscope_render::Color;
use vramscope_snapshot::{Snapshot, StackId};

/// The colors of all blocks of a trace.
pub struct Colors {
    words: Vec<Color>,
}

/// Cost of coloring a block, in units of [`Budget`].
const COLOR_COST: u64 = 4;

/// Smallest block size of the caching allocator.
const MIN_BLOCK_BYTES: u64 = 512;

impl Colors {
    /// Colors by call site. The site gives the hue, and the whole stack gives one of four lightness
    /// steps.
    pub fn by_site(trace: &Trace, sites: &Sites) -> Self {
        run_to_completion(Self::by_site_sliced(trace, sites, &mut Budget::unlimited()))
    }

    /// Sliced version of [`Colors::by_site`].
    pub async fn by_site_sliced(trace: &Trace, sites: &Sites, budget: &mut Budget) -> Self {
        Self::map_blocks(trace, |_, block| site_color(sites, block.stack), budget).await
    }

    /// Colors by category, in slices.
    pub async fn by_category(trace: &Trace, categories: &Categories, budget: &mut Budget) -> Self {
        Self::map_blocks(trace, |i, _| Color::category(categories.get(i).category as u8), budget)
            .await
    }

    /// Colors by size, in slices. Powers of two from 512 bytes to the largest block are spread over
    /// the steps of the ramp.
    pub async fn by_size(trace: &Trace, budget: &mut Budget) -> Self {
        let power = |bytes: u64| bytes.max(MIN_BLOCK_BYTES).ilog2() - MIN_BLOCK_BYTES.ilog2();
        let max = power(max_over_blocks(trace, |block| block.bytes.0, budget).await);
        Self::map_blocks(
            trace,
            |_, block| ramp_color(f64::from(power(block.bytes.0)), f64::from(max)),
            budget,
        )
        .await
    }

    /// Colors by lifetime within the window on a logarithmic scale, in slices.
    pub async fn by_age(trace: &Trace, budget: &mut Budget) -> Self {
        let age = |lifetime: u64| (lifetime as f64 + 1.0).ln();
        let max = age(max_over_blocks(trace, |block| lifetime(trace, block), budget).await);
        let color = |_, block: &Block| ramp_color(age(lifetime(trace, block)), max);
        Self::map_blocks(trace, color, budget).await
    }

    /// Colors by stream, in slices.
    pub async fn by_stream(trace: &Trace, snapshot: &Snapshot, budget: &mut Budget) -> Self {
        let word = |_, block: &Block| match snapshot.stream(block.stream) {
            0 => Color::new(DEFAULT_STREAM, 1),
            _ => distinct_color(u32::from(block.stream.0)),
        };
        Self::map_blocks(trace, word, budget).await
    }

    /// Colors by the segment of each block, in slices. Blocks without a known segment are gray.
    pub async fn by_segment(trace: &Trace, segments: &SegmentTiles, budget: &mut Budget) -> Self {
        let mut words = filled(Color::NO_STACK, trace.blocks.len(), budget).await;
        // A block that was in several spans gets the color of the first: spans are ordered by
        // `enters`, and later writes win.
        for span in (0..segments.spans()).rev() {
            for blocks in segments.blocks_in(span).chunks(STRIDE) {
                budget.charge(1 + blocks.len() as u64).await;
                for &block in blocks {
                    words[block as usize] = distinct_color(span);
                }
            }
        }
        Self { words }
    }

    /// Dims all blocks for which `keep` is false, in slices.
    #[must_use]
    pub async fn dimmed(mut self, keep: impl Fn(u32) -> bool + Send, budget: &mut Budget) -> Self {
        for part in strides(self.words.len()) {
            budget.charge(part.len() as u64).await;
            for (block, word) in (part.start as u32..).zip(&mut self.words[part]) {
                if !keep(block) {
                    *word = Color::DIMMED;
                }
            }
        }
        self
    }

    /// The color of a block.
    pub fn of(&self, block: u32) -> Color {
        self.words[block as usize]
    }

    async fn map_blocks(
        trace: &Trace,
        word: impl Fn(u32, &Block) -> Color + Send,
        budget: &mut Budget,
    ) -> Self {
        let mut words = Vec::with_capacity(trace.blocks.len());
        for part in strides(trace.blocks.len()) {
            budget.charge(part.len() as u64 * COLOR_COST).await;
            words.extend(
                (part.start as u32..).zip(&trace.blocks[part]).map(|(i, block)| word(i, block)),
            );
        }
        Self { words }
    }
}

/// The maximum of `value` over all blocks.
async fn max_over_blocks(
    trace: &Trace,
    value: impl Fn(&Block) -> u64 + Send,
    budget: &mut Budget,
) -> u64 {
    let mut max = 0;
    for blocks in trace.blocks.chunks(STRIDE) {
        budget.charge(blocks.len() as u64).await;
        max = blocks.iter().map(&value).fold(max, u64::max);
    }
    max
}

/// The color of a stack's call site. Gray for an empty stack.
pub fn site_color(sites: &Sites, stack: StackId) -> Color {
    let site = sites.get(stack);
    match site.frame {
        Some(_) => Color::new((site.site_hash >> 32) as u8, (site.stack_hash & 3) as u8),
        None => Color::NO_STACK,
    }
}

/// The color of an annotated range, derived from its name.
pub fn name_color(name: &str) -> Color {
    frame_color(name_hash(name))
}

/// The color of a frame, from its hash. It equals the color of the call sites with this frame.
pub fn frame_color(hash: u64) -> Color {
    Color::new((hash >> 32) as u8, (hash & 3) as u8)
}

/// Hue of the default stream. No other stream or segment has it.
const DEFAULT_STREAM: u8 = 160;

/// A color for a running number. Steps by the golden ratio put consecutive numbers far apart on the
/// hue wheel. Hues near [`DEFAULT_STREAM`] are left out.
fn distinct_color(index: u32) -> Color {
    let turn = index.wrapping_mul(0x9E37_79B9);
    let away = 24 + (((turn >> 16) * 208) >> 16) as u8;
    Color::new(DEFAULT_STREAM.wrapping_add(away), (index & 3) as u8)
}

fn ramp_color(value: f64, max: f64) -> Color {
    let step = if max > 0.0 { value / max * f64::from(Color::RAMP - 1) } else { 0.0 };
    Color::ramp(step.round() as u8)
}
