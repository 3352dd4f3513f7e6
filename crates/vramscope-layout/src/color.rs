//! Which color a block has: that of its call site, the same in every rank and after every reload;
//! or what else is asked.

use crate::segments::SegmentTiles;
use vramscope_analysis::slicing::{Budget, STRIDE, filled, run_to_completion, strides};
use vramscope_analysis::{Block, Categories, Sites, Trace, lifetime, name_hash};
use vramscope_render::Color;
use vramscope_snapshot::{Snapshot, StackId};

/// A color word for every block of a trace.
pub struct Colors {
    words: Vec<Color>,
}

/// What it costs to color a block, as [`Budget`] counts it.
const COLORED: u64 = 4;

/// The smallest size that the allocator gives.
const SMALLEST: u64 = 512;

impl Colors {
    /// By call site: the hue from the site, one of four lightness steps from the whole stack.
    pub fn by_site(trace: &Trace, sites: &Sites) -> Self {
        run_to_completion(Self::by_site_sliced(trace, sites, &mut Budget::unlimited()))
    }

    /// The same in slices.
    pub async fn by_site_sliced(trace: &Trace, sites: &Sites, budget: &mut Budget) -> Self {
        Self::of_blocks(trace, |_, block| site_color(sites, block.stack), budget).await
    }

    /// By what they are, in slices.
    pub async fn by_category(trace: &Trace, categories: &Categories, budget: &mut Budget) -> Self {
        Self::of_blocks(trace, |i, _| Color::category(categories.get(i).category as u8), budget)
            .await
    }

    /// By size, in slices: each power of two from 512 bytes to the largest a step, as far as there
    /// are steps.
    pub async fn by_size(trace: &Trace, budget: &mut Budget) -> Self {
        let power = |bytes: u64| bytes.max(SMALLEST).ilog2() - SMALLEST.ilog2();
        let most = power(most(trace, |block| block.bytes.0, budget).await);
        Self::of_blocks(
            trace,
            |_, block| ramp(f64::from(power(block.bytes.0)), f64::from(most)),
            budget,
        )
        .await
    }

    /// By how long they live within the window, on a logarithmic scale; in slices.
    pub async fn by_age(trace: &Trace, budget: &mut Budget) -> Self {
        let age = |lifetime: u64| (lifetime as f64 + 1.0).ln();
        let most = age(most(trace, |block| lifetime(trace, block), budget).await);
        Self::of_blocks(trace, |_, block| ramp(age(lifetime(trace, block)), most), budget).await
    }

    /// By stream, in slices.
    pub async fn by_stream(trace: &Trace, snapshot: &Snapshot, budget: &mut Budget) -> Self {
        let word = |_, block: &Block| match snapshot.stream(block.stream) {
            0 => Color::new(DEFAULT_STREAM, 1),
            _ => spread(u32::from(block.stream.0)),
        };
        Self::of_blocks(trace, word, budget).await
    }

    /// By the segment that they are allocated in, in slices; gray where none is known.
    pub async fn by_segment(trace: &Trace, segments: &SegmentTiles, budget: &mut Budget) -> Self {
        let mut words = filled(Color::NO_STACK, trace.blocks.len(), budget).await;
        // The first that a block was in comes last: spans are in the order in which they enter.
        for span in (0..segments.spans()).rev() {
            for blocks in segments.blocks_in(span).chunks(STRIDE) {
                budget.charge(1 + blocks.len() as u64).await;
                for &block in blocks {
                    words[block as usize] = spread(span);
                }
            }
        }
        Self { words }
    }

    /// With what a search does not find in gray, in slices.
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

    async fn of_blocks(
        trace: &Trace,
        word: impl Fn(u32, &Block) -> Color + Send,
        budget: &mut Budget,
    ) -> Self {
        let mut words = Vec::with_capacity(trace.blocks.len());
        for part in strides(trace.blocks.len()) {
            budget.charge(part.len() as u64 * COLORED).await;
            words.extend(
                (part.start as u32..).zip(&trace.blocks[part]).map(|(i, block)| word(i, block)),
            );
        }
        Self { words }
    }
}

/// The largest of what blocks have.
async fn most(trace: &Trace, of: impl Fn(&Block) -> u64 + Send, budget: &mut Budget) -> u64 {
    let mut most = 0;
    for blocks in trace.blocks.chunks(STRIDE) {
        budget.charge(blocks.len() as u64).await;
        most = blocks.iter().map(&of).fold(most, u64::max);
    }
    most
}

/// The color of a stack; gray without one.
pub fn site_color(sites: &Sites, stack: StackId) -> Color {
    let site = sites.get(stack);
    match site.frame {
        Some(_) => Color::new((site.site_hash >> 32) as u8, (site.stack_hash & 3) as u8),
        None => Color::NO_STACK,
    }
}

/// The color of an annotated range: that of its name.
pub fn name_color(name: &str) -> Color {
    frame_color(name_hash(name))
}

/// The color of a frame, the same as that of the sites that it names.
pub fn frame_color(hash: u64) -> Color {
    Color::new((hash >> 32) as u8, (hash & 3) as u8)
}

/// The hue of the default stream, which no other has.
const DEFAULT_STREAM: u8 = 160;

/// Neighboring numbers far apart on the wheel, and none near the default stream's place: steps by
/// the golden ratio.
fn spread(index: u32) -> Color {
    let turn = index.wrapping_mul(0x9E37_79B9);
    let away = 24 + (((turn >> 16) * 208) >> 16) as u8;
    Color::new(DEFAULT_STREAM.wrapping_add(away), (index & 3) as u8)
}

fn ramp(part: f64, whole: f64) -> Color {
    let step = if whole > 0.0 { part / whole * f64::from(Color::RAMP - 1) } else { 0.0 };
    Color::ramp(step.round() as u8)
}
