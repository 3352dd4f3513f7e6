//! Which colour a block has: that of its call site, the same in every rank and after every reload;
//! or what else is asked.

use crate::segments::SegmentTiles;
use vramscope_analysis::pace::{Pace, STRIDE, at_once, filled, strides};
use vramscope_analysis::{Block, Categories, Sites, Trace, lifetime, name_hash};
use vramscope_render::Colour;
use vramscope_snapshot::{Snapshot, StackId};

/// A colour word for every block of a trace.
pub struct Colours {
    words: Vec<Colour>,
}

/// What it costs to colour a block, as [`Pace`] counts it.
const COLOURED: u64 = 4;

/// The smallest size that the allocator gives.
const SMALLEST: u64 = 512;

impl Colours {
    /// By call site: the hue from the site, one of four lightness steps from the whole stack.
    pub fn by_site(trace: &Trace, sites: &Sites) -> Self {
        at_once(Self::by_site_paced(trace, sites, &mut Pace::endless()))
    }

    /// The same in slices.
    pub async fn by_site_paced(trace: &Trace, sites: &Sites, pace: &mut Pace) -> Self {
        Self::of_blocks(trace, |_, block| site_colour(sites, block.stack), pace).await
    }

    /// By what they are, in slices.
    pub async fn by_category(trace: &Trace, categories: &Categories, pace: &mut Pace) -> Self {
        Self::of_blocks(trace, |i, _| Colour::category(categories.get(i).category as u8), pace)
            .await
    }

    /// By size, in slices: each power of two from 512 bytes to the largest a step, as far as there
    /// are steps.
    pub async fn by_size(trace: &Trace, pace: &mut Pace) -> Self {
        let power = |bytes: u64| bytes.max(SMALLEST).ilog2() - SMALLEST.ilog2();
        let most = power(most(trace, |block| block.bytes.0, pace).await);
        Self::of_blocks(
            trace,
            |_, block| ramp(f64::from(power(block.bytes.0)), f64::from(most)),
            pace,
        )
        .await
    }

    /// By how long they live within the window, on a logarithmic scale; in slices.
    pub async fn by_age(trace: &Trace, pace: &mut Pace) -> Self {
        let age = |lifetime: u64| (lifetime as f64 + 1.0).ln();
        let most = age(most(trace, |block| lifetime(trace, block), pace).await);
        Self::of_blocks(trace, |_, block| ramp(age(lifetime(trace, block)), most), pace).await
    }

    /// By stream, in slices.
    pub async fn by_stream(trace: &Trace, snapshot: &Snapshot, pace: &mut Pace) -> Self {
        let word = |_, block: &Block| match snapshot.stream(block.stream) {
            0 => Colour::new(DEFAULT_STREAM, 1),
            _ => spread(u32::from(block.stream.0)),
        };
        Self::of_blocks(trace, word, pace).await
    }

    /// By the segment that they are allocated in, in slices; grey where none is known.
    pub async fn by_segment(trace: &Trace, segments: &SegmentTiles, pace: &mut Pace) -> Self {
        let mut words = filled(Colour::NO_STACK, trace.blocks.len(), pace).await;
        // The first that a block was in comes last: spans are in the order in which they enter.
        for span in (0..segments.spans()).rev() {
            for blocks in segments.blocks_in(span).chunks(STRIDE) {
                pace.spend(1 + blocks.len() as u64).await;
                for &block in blocks {
                    words[block as usize] = spread(span);
                }
            }
        }
        Self { words }
    }

    /// With what a search does not find in grey, in slices.
    #[must_use]
    pub async fn dimmed(mut self, keep: impl Fn(u32) -> bool + Send, pace: &mut Pace) -> Self {
        for part in strides(self.words.len()) {
            pace.spend(part.len() as u64).await;
            for (block, word) in (part.start as u32..).zip(&mut self.words[part]) {
                if !keep(block) {
                    *word = Colour::DIMMED;
                }
            }
        }
        self
    }

    /// The colour of a block.
    pub fn of(&self, block: u32) -> Colour {
        self.words[block as usize]
    }

    async fn of_blocks(
        trace: &Trace,
        word: impl Fn(u32, &Block) -> Colour + Send,
        pace: &mut Pace,
    ) -> Self {
        let mut words = Vec::with_capacity(trace.blocks.len());
        for part in strides(trace.blocks.len()) {
            pace.spend(part.len() as u64 * COLOURED).await;
            words.extend(
                (part.start as u32..).zip(&trace.blocks[part]).map(|(i, block)| word(i, block)),
            );
        }
        Self { words }
    }
}

/// The largest of what blocks have.
async fn most(trace: &Trace, of: impl Fn(&Block) -> u64 + Send, pace: &mut Pace) -> u64 {
    let mut most = 0;
    for blocks in trace.blocks.chunks(STRIDE) {
        pace.spend(blocks.len() as u64).await;
        most = blocks.iter().map(&of).fold(most, u64::max);
    }
    most
}

/// The colour of a stack; grey without one.
pub fn site_colour(sites: &Sites, stack: StackId) -> Colour {
    let site = sites.get(stack);
    match site.frame {
        Some(_) => Colour::new((site.site_hash >> 32) as u8, (site.stack_hash & 3) as u8),
        None => Colour::NO_STACK,
    }
}

/// The colour of an annotated range: that of its name.
pub fn name_colour(name: &str) -> Colour {
    frame_colour(name_hash(name))
}

/// The colour of a frame, the same as that of the sites that it names.
pub fn frame_colour(hash: u64) -> Colour {
    Colour::new((hash >> 32) as u8, (hash & 3) as u8)
}

/// The hue of the default stream, which no other has.
const DEFAULT_STREAM: u8 = 160;

/// Neighbouring numbers far apart on the wheel, and none near the default stream's place: steps by
/// the golden ratio.
fn spread(index: u32) -> Colour {
    let turn = index.wrapping_mul(0x9E37_79B9);
    let away = 24 + (((turn >> 16) * 208) >> 16) as u8;
    Colour::new(DEFAULT_STREAM.wrapping_add(away), (index & 3) as u8)
}

fn ramp(part: f64, whole: f64) -> Colour {
    let step = if whole > 0.0 { part / whole * f64::from(Colour::RAMP - 1) } else { 0.0 };
    Colour::ramp(step.round() as u8)
}
