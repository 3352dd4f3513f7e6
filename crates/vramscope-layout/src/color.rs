//! The color of each block: by call site, or by another property.
//!
//! In lists a call site has one color in all ranks and after every reload. In plots the largest
//! call sites of a trace have distinct colors, and other sites are gray.

use crate::segments::SegmentTiles;
use vramscope_inference::Categories;
use vramscope_render::Color;
use vramscope_snapshot::{Snapshot, StackId, StreamId};
use vramscope_trace::slicing::{Budget, STRIDE, filled, strides};
use vramscope_trace::{Block, Sites, Trace, lifetime, name_hash};

/// The colors of all blocks of a trace.
pub struct Colors {
    words: Vec<Color>,
    /// A bit for each block that matches the search. `None` without a search.
    hits: Option<Vec<u64>>,
}

/// Blocks that came between two states.
pub const CAME: Color = Color::difference(4);
/// Blocks that stayed.
pub const STAYED: Color = Color::difference(0);
/// Blocks that went.
pub const WENT: Color = Color::difference(-4);

/// Cost of coloring a block, in units of [`Budget`].
const COLOR_COST: u64 = 4;

/// Smallest block size of the caching allocator.
const MIN_BLOCK_BYTES: u64 = 512;

impl Colors {
    /// Colors by call site. The largest sites have distinct colors, other sites are gray.
    pub async fn by_site(trace: &Trace, sites: &Sites, budget: &mut Budget) -> Self {
        let largest = LargestSites::new(trace, sites, budget).await;
        Self::by_largest_sites(trace, sites, &largest, budget).await
    }

    /// [`Colors::by_site`] with the largest sites that a caller has already.
    pub async fn by_largest_sites(
        trace: &Trace,
        sites: &Sites,
        largest: &LargestSites,
        budget: &mut Budget,
    ) -> Self {
        Self::map_blocks(trace, |_, block| largest.color(sites, block.stack), budget).await
    }

    /// Colors by category.
    pub async fn by_category(trace: &Trace, categories: &Categories, budget: &mut Budget) -> Self {
        Self::map_blocks(trace, |i, _| Color::category(categories.get(i).category as u8), budget)
            .await
    }

    /// Colors by size. Powers of two from 512 bytes to the largest block are spread over the steps
    /// of the ramp.
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

    /// Colors by lifetime within the window on a logarithmic scale.
    pub async fn by_age(trace: &Trace, budget: &mut Budget) -> Self {
        let age = |lifetime: u64| (lifetime as f64 + 1.0).ln();
        let max = age(max_over_blocks(trace, |block| lifetime(trace, block), budget).await);
        let color = |_, block: &Block| ramp_color(age(lifetime(trace, block)), max);
        Self::map_blocks(trace, color, budget).await
    }

    /// Colors by stream.
    pub async fn by_stream(trace: &Trace, snapshot: &Snapshot, budget: &mut Budget) -> Self {
        Self::map_blocks(trace, |_, block| stream_color(snapshot, block.stream), budget).await
    }

    /// Colors by the segment of each block. Blocks without a known segment are gray.
    pub async fn by_segment(trace: &Trace, segments: &SegmentTiles, budget: &mut Budget) -> Self {
        let mut words = filled(Color::NO_STACK, trace.blocks.len(), budget).await;
        // A block that was in several spans gets the color of the first: spans are ordered by
        // `enters`, and later writes win.
        for span in (0..segments.spans()).rev() {
            for blocks in segments.blocks_in(span).chunks(STRIDE) {
                budget.charge(1 + blocks.len() as u64).await;
                for &block in blocks {
                    words[block as usize] = segment_color(span);
                }
            }
        }
        Self { words, hits: None }
    }

    /// Colors by what changed from the state in one slot to that in another. Blocks that are live
    /// in neither are dimmed.
    pub async fn by_change(trace: &Trace, [from, to]: [u32; 2], budget: &mut Budget) -> Self {
        let color = |_, block: &Block| match (block.is_live_at(from), block.is_live_at(to)) {
            (false, true) => CAME,
            (true, true) => STAYED,
            (true, false) => WENT,
            (false, false) => Color::DIMMED,
        };
        Self::map_blocks(trace, color, budget).await
    }

    /// Dims all blocks for which `is_hit` is false.
    #[must_use]
    pub async fn dimmed(
        mut self,
        is_hit: impl Fn(u32) -> bool + Send,
        budget: &mut Budget,
    ) -> Self {
        let bits = u64::BITS as usize;
        let mut hits = vec![0; self.words.len().div_ceil(bits)];
        for part in strides(self.words.len()) {
            budget.charge(part.len() as u64).await;
            for block in part {
                hits[block / bits] |= u64::from(is_hit(block as u32)) << (block % bits);
            }
        }
        self.hits = Some(hits);
        self
    }

    /// The color of a block.
    pub fn of(&self, block: u32) -> Color {
        if self.is_hit(block) { self.words[block as usize] } else { Color::DIMMED }
    }

    /// Whether a block matches the search. True for all without a search.
    pub fn is_hit(&self, block: u32) -> bool {
        self.hits
            .as_ref()
            .is_none_or(|hits| hits[(block / u64::BITS) as usize] & 1 << (block % u64::BITS) != 0)
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
        Self { words, hits: None }
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

/// The call sites that hold the most memory at once, with distinct colors.
#[derive(Clone, Debug, Default)]
pub struct LargestSites {
    /// The hash of each site, a stack of it, and its color. The largest first.
    pub sites: Vec<(u64, StackId, Color)>,
}

impl LargestSites {
    /// Finds the sites.
    pub async fn new(trace: &Trace, sites: &Sites, budget: &mut Budget) -> Self {
        // The site of each stack that has blocks, as an index into the sorted hashes.
        let mut stacks: Vec<(u64, StackId)> = Vec::new();
        let mut is_seen: Vec<bool> = Vec::new();
        for blocks in trace.blocks.chunks(STRIDE) {
            budget.charge(blocks.len() as u64).await;
            for block in blocks {
                let index = block.stack.0 as usize;
                if index >= is_seen.len() {
                    is_seen.resize(index + 1, false);
                }
                let site = sites.get(block.stack);
                if !std::mem::replace(&mut is_seen[index], true) && site.frame.is_some() {
                    stacks.push((site.site_hash, block.stack));
                }
            }
        }
        budget.charge(16 * stacks.len() as u64).await;
        stacks.sort();
        let mut heads = stacks.clone();
        heads.dedup_by_key(|(hash, _)| *hash);
        let mut site_of = vec![u32::MAX; is_seen.len()];
        let mut next = 0;
        for &(hash, stack) in &stacks {
            while heads[next].0 != hash {
                next += 1;
            }
            site_of[stack.0 as usize] = next as u32;
        }
        // The most bytes of each site that are live at once.
        let (mut live, mut most) = (vec![0u64; heads.len()], vec![0u64; heads.len()]);
        for slots in strides(trace.slots() as usize) {
            budget.charge(2 * slots.len() as u64).await;
            for change in trace.changes_in(slots.start as u32..slots.end as u32) {
                let block = &trace.blocks[change.block() as usize];
                let site = site_of[block.stack.0 as usize] as usize;
                let Some(bytes) = live.get_mut(site) else { continue };
                *bytes = if change.enters() {
                    *bytes + block.bytes.0
                } else {
                    bytes.saturating_sub(block.bytes.0)
                };
                most[site] = most[site].max(*bytes);
            }
        }
        let mut order: Vec<usize> = (0..heads.len()).filter(|&site| most[site] > 0).collect();
        order.sort_by(|&a, &b| most[b].cmp(&most[a]).then(heads[a].0.cmp(&heads[b].0)));
        order.truncate(Color::SITES as usize);
        // The hash decides the color where it is free, so that a site mostly has one color in all
        // ranks.
        let mut is_taken = [false; Color::SITES as usize];
        let found = order.iter().map(|&site| {
            let (hash, stack) = heads[site];
            let from = (hash % u64::from(Color::SITES)) as usize;
            let color = (from..from + is_taken.len())
                .map(|i| i % is_taken.len())
                .find(|&color| !is_taken[color])
                .unwrap_or(from);
            is_taken[color] = true;
            (hash, stack, Color::site(color as u8))
        });
        Self { sites: found.collect() }
    }

    /// The index of a stack's site.
    pub fn index(&self, sites: &Sites, stack: StackId) -> Option<usize> {
        let site = sites.get(stack);
        site.frame.and_then(|_| self.sites.iter().position(|&(hash, ..)| hash == site.site_hash))
    }

    fn color(&self, sites: &Sites, stack: StackId) -> Color {
        self.index(sites, stack).map_or(Color::OTHER, |index| self.sites[index].2)
    }
}

/// The color of a stack's call site. Gray for an empty stack.
pub fn site_color(sites: &Sites, stack: StackId) -> Color {
    let site = sites.get(stack);
    match site.frame {
        Some(_) => Color::new((site.site_hash >> 32) as u8, (site.stack_hash & 3) as u8),
        None => Color::NO_STACK,
    }
}

/// The color of a stream.
pub fn stream_color(snapshot: &Snapshot, stream: StreamId) -> Color {
    match snapshot.stream(stream) {
        0 => Color::new(DEFAULT_STREAM, 1),
        _ => distinct_color(u32::from(stream.0)),
    }
}

/// The color of a segment by its index.
pub fn segment_color(span: u32) -> Color {
    distinct_color(span)
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
