//! `vramscope state --from A --to B`: what came, went and stayed between two states.

use super::{CategoryShare, StackTable, Target, by_category, event_of, site, time_of};
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::cmp::Reverse;
use vramscope_analysis::Category;
use vramscope_analysis::SmallSort;
use vramscope_snapshot::StackId;

/// `vramscope.state/1` with `--from` and `--to`.
#[derive(Debug, Serialize)]
pub struct StateChanges<'a> {
    /// The schema's name and version.
    pub schema: &'static str,
    /// The file's path.
    pub path: &'a str,
    /// The device's ordinal.
    pub device: u32,
    /// The earlier state.
    pub from: Totals,
    /// The later state.
    pub to: Totals,
    /// Blocks that are live in `to` only.
    pub came: BlockShares,
    /// Blocks that are live in `from` only.
    pub went: BlockShares,
    /// Blocks that are live in both.
    pub stayed: BlockShares,
    /// The call stacks of the sites, innermost frame first.
    pub stacks: StackTable<'a>,
}

/// The totals of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// The event after which this state holds, from 0; -1 is the state before the window.
    pub event: i64,
    /// The time of `event`; null without a clock.
    pub time_us: Option<i64>,
    /// Requested bytes.
    pub requested_bytes: u64,
    /// Block sizes.
    pub active_bytes: u64,
    /// Block sizes without pending frees.
    pub allocated_bytes: u64,
    /// Sizes of the segments.
    pub reserved_bytes: u64,
}

/// Blocks by category and by call site.
#[derive(Debug, Serialize)]
pub struct BlockShares {
    /// Requested bytes.
    pub bytes: u64,
    /// The number of blocks.
    pub blocks: u32,
    /// Requested bytes by category, most bytes first.
    pub categories: Vec<CategoryShare>,
    /// Requested bytes by call site, most bytes first.
    pub sites: Vec<SiteShare>,
    /// The number of sites left out by `--limit`.
    pub omitted: usize,
}

/// The blocks of a call site.
#[derive(Debug, Serialize)]
pub struct SiteShare {
    /// Requested bytes.
    pub bytes: u64,
    /// The number of blocks.
    pub blocks: u32,
    /// The category with most of the bytes.
    pub category: Category,
    /// True if `site` and `stack` are those of the frees: the file does not have those of the
    /// allocations.
    pub of_free: bool,
    /// The call site: the stack's innermost frame in the user's own code.
    pub site: String,
    /// The index in `stacks` of the site's call stack with most of the bytes.
    pub stack: u32,
}

/// The bytes of one call site.
#[derive(Default)]
struct SiteSums {
    blocks: u32,
    categories: [u64; Category::ALL.len()],
    /// Bytes by stack.
    stacks: FxHashMap<StackId, u64>,
}

/// The blocks that came, went and stayed between two slots, with at most `limit` call sites each.
pub fn state_changes(
    target: Target<'_>,
    from: u32,
    to: u32,
    limit: Option<usize>,
) -> StateChanges<'_> {
    let trace = target.trace();
    let (mut came, mut went, mut stayed) = (Vec::new(), Vec::new(), Vec::new());
    for (i, block) in (0..).zip(&trace.blocks) {
        let is_live = |slot: u32| block.enters <= slot && slot < block.leaves;
        match (is_live(from), is_live(to)) {
            (false, true) => came.push(i),
            (true, false) => went.push(i),
            (true, true) => stayed.push(i),
            (false, false) => {}
        }
    }
    let mut stacks = StackTable::default();
    let mut shares = |blocks: &[u32]| block_shares(target, blocks, limit, &mut stacks);
    StateChanges {
        schema: "vramscope.state/1",
        path: target.path,
        device: target.device(),
        from: totals(target, from),
        to: totals(target, to),
        came: shares(&came),
        went: shares(&went),
        stayed: shares(&stayed),
        stacks,
    }
}

fn totals(target: Target<'_>, slot: u32) -> Totals {
    let (trace, carving) = (target.trace(), target.entry.carving(target.index));
    Totals {
        event: event_of(slot),
        time_us: time_of(trace, slot),
        requested_bytes: trace.requested.at(slot),
        active_bytes: carving.active.at(slot),
        allocated_bytes: carving.allocated.at(slot),
        reserved_bytes: carving.segments.at(slot).iter().map(|span| span.size.0).sum(),
    }
}

fn block_shares<'a>(
    target: Target<'a>,
    blocks: &[u32],
    limit: Option<usize>,
    stacks: &mut StackTable<'a>,
) -> BlockShares {
    let (trace, entry) = (target.trace(), target.entry);
    let categories = entry.categories(target.index);
    // By the call site's frame, and whether the stack is that of a free.
    let mut sites: FxHashMap<_, SiteSums> = FxHashMap::default();
    for &i in blocks {
        let block = &trace.blocks[i as usize];
        let key = (entry.sites.get(block.stack).frame, block.has_stack_of_free());
        let sums = sites.entry(key).or_default();
        sums.blocks += 1;
        sums.categories[categories.get(i).category as usize] += block.bytes.0;
        *sums.stacks.entry(block.stack).or_default() += block.bytes.0;
    }
    let mut rows: Vec<(SiteShare, StackId)> = sites
        .into_iter()
        .filter_map(|((_, of_free), sums)| {
            let (&stack, _) =
                sums.stacks.iter().max_by_key(|&(&stack, &bytes)| (bytes, Reverse(stack.0)))?;
            let most = (0..sums.categories.len()).rev().max_by_key(|&c| sums.categories[c])?;
            let row = SiteShare {
                bytes: sums.categories.iter().sum(),
                blocks: sums.blocks,
                category: Category::ALL[most],
                of_free,
                site: site(entry, stack),
                stack: 0,
            };
            Some((row, stack))
        })
        .collect();
    rows.sort_small_by(|(a, x), (b, y)| (b.bytes, &a.site, x.0).cmp(&(a.bytes, &b.site, y.0)));
    let shown = limit.unwrap_or(usize::MAX).min(rows.len());
    let omitted = rows.len() - shown;
    rows.truncate(shown);
    let bytes = |i: u32| trace.blocks[i as usize].bytes.0;
    BlockShares {
        bytes: blocks.iter().map(|&i| bytes(i)).sum(),
        blocks: blocks.len() as u32,
        categories: by_category(blocks.iter().map(|&i| (categories.get(i).category, bytes(i)))),
        sites: rows
            .into_iter()
            .map(|(row, stack)| SiteShare { stack: stacks.add(target.snapshot(), stack), ..row })
            .collect(),
        omitted,
    }
}
