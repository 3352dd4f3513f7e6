//! Which colour a block has: that of its call site, the same in every rank and after every reload; or what else is asked.

use crate::segments::SegmentTiles;
use memstrata_analysis::{Block, Categories, Sites, Trace, lifetime, name_hash};
use memstrata_render::Colour;
use memstrata_snapshot::{Snapshot, StackId};

/// A colour word for every block of a trace.
pub struct Colours {
    words: Vec<Colour>,
}

/// The smallest size that the allocator gives.
const SMALLEST: u64 = 512;

impl Colours {
    /// By call site: the hue from the site, one of four lightness steps from the whole stack.
    pub fn by_site(trace: &Trace, sites: &Sites) -> Self {
        Self::of_blocks(trace, |block| site_colour(sites, block.stack))
    }

    /// By what they are.
    pub fn by_category(trace: &Trace, categories: &Categories) -> Self {
        let word = |block| Colour::category(categories.get(block).category as u8);
        Self { words: (0..trace.blocks.len() as u32).map(word).collect() }
    }

    /// By size: each power of two from 512 bytes to the largest a step, as far as there are steps.
    pub fn by_size(trace: &Trace) -> Self {
        let power = |block: &Block| block.bytes.0.max(SMALLEST).ilog2() - SMALLEST.ilog2();
        let most = trace.blocks.iter().map(power).max().unwrap_or(0);
        Self::of_blocks(trace, |block| ramp(f64::from(power(block)), f64::from(most)))
    }

    /// By how long they live within the window, on a logarithmic scale.
    pub fn by_age(trace: &Trace) -> Self {
        let age = |block: &Block| (lifetime(trace, block) as f64 + 1.0).ln();
        let most = trace.blocks.iter().map(age).fold(0.0, f64::max);
        Self::of_blocks(trace, |block| ramp(age(block), most))
    }

    /// By stream.
    pub fn by_stream(trace: &Trace, snapshot: &Snapshot) -> Self {
        Self::of_blocks(trace, |block| match snapshot.stream(block.stream) {
            0 => Colour::new(DEFAULT_STREAM, 1),
            _ => spread(u32::from(block.stream.0)),
        })
    }

    /// By the segment that they are allocated in; grey where none is known.
    pub fn by_segment(trace: &Trace, segments: &SegmentTiles) -> Self {
        let mut words = vec![Colour::NO_STACK; trace.blocks.len()];
        // The first that a block was in comes last: spans are in the order in which they enter.
        for span in (0..segments.spans()).rev() {
            for &block in segments.blocks_in(span) {
                words[block as usize] = spread(span);
            }
        }
        Self { words }
    }

    /// With what a search does not find in grey.
    #[must_use]
    pub fn dimmed(mut self, keep: impl Fn(u32) -> bool) -> Self {
        for (block, word) in (0u32..).zip(&mut self.words) {
            if !keep(block) {
                *word = Colour::DIMMED;
            }
        }
        self
    }

    /// The colour of a block.
    pub fn of(&self, block: u32) -> Colour {
        self.words[block as usize]
    }

    fn of_blocks(trace: &Trace, word: impl Fn(&Block) -> Colour) -> Self {
        Self { words: trace.blocks.iter().map(word).collect() }
    }
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

/// Neighbouring numbers far apart on the wheel, and none near the default stream's place: steps by the golden ratio.
fn spread(index: u32) -> Colour {
    let turn = index.wrapping_mul(0x9E37_79B9);
    let away = 24 + (((turn >> 16) * 208) >> 16) as u8;
    Colour::new(DEFAULT_STREAM.wrapping_add(away), (index & 3) as u8)
}

fn ramp(part: f64, whole: f64) -> Colour {
    let step = if whole > 0.0 { part / whole * f64::from(Colour::RAMP - 1) } else { 0.0 };
    Colour::ramp(step.round() as u8)
}
