//! `vramscope state --from A --to B`: what came, went and stayed between two states.

use super::{CategoryShare, StackTable, Target, by_category, event_of, row_site, site, time_of};
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::cmp::Reverse;
use std::ops::Range;
use vramscope_inference::Category;
use vramscope_snapshot::StackId;
use vramscope_trace::slicing::{Budget, now};
use vramscope_trace::{Block, NoStack, outside};

/// `vramscope.state/1` with `--from` and `--to`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// The changes of each category, the largest net change first.
    pub by_category: Vec<CategoryChange>,
    /// The changes of each call site, the largest net change first.
    pub by_site: Vec<SiteChange>,
    /// The number of rows of `by_site` left out by `--limit`.
    pub by_site_omitted: usize,
    /// Memory that is reserved in `to` only.
    pub mapped_bytes: u64,
    /// Memory that is reserved in `from` only.
    pub released_bytes: u64,
    /// The call stacks of the sites, innermost frame first.
    pub stacks: StackTable<'a>,
}

/// The totals of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

/// Blocks and their requested bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BlockSum {
    /// Requested bytes.
    pub bytes: u64,
    /// The number of blocks.
    pub blocks: u32,
}

/// Blocks that came, went and stayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChangeSums {
    /// Blocks that are live in the later state only.
    pub came: BlockSum,
    /// Blocks that are live in the earlier state only.
    pub went: BlockSum,
    /// Blocks that are live in both.
    pub stayed: BlockSum,
    /// The bytes of `came` less those of `went`.
    pub net_bytes: i64,
}

/// The changes of a category.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CategoryChange {
    /// The category.
    pub category: Category,
    /// What changed.
    #[serde(flatten)]
    pub sums: ChangeSums,
}

/// The changes of a call site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SiteChange {
    /// The call site, or why there is no call stack.
    pub site: String,
    /// The category with most of the bytes.
    pub category: Category,
    /// True if `site` and `stack` are those of the frees.
    pub of_free: bool,
    /// What changed.
    #[serde(flatten)]
    pub sums: ChangeSums,
    /// The index in `stacks` of the call stack of the site's largest block.
    pub stack: u32,
    /// That block.
    #[serde(skip)]
    pub block: u32,
}

/// What changed between two states, in sums.
#[derive(Clone, Debug)]
pub struct Changes {
    /// All blocks.
    pub all: ChangeSums,
    /// By category, the largest net change first.
    pub categories: Vec<CategoryChange>,
    /// By call site, the largest net change first. `stack` is not set.
    pub sites: Vec<SiteChange>,
    /// Memory that is reserved in the later state only.
    pub mapped_bytes: u64,
    /// Memory that is reserved in the earlier state only.
    pub released_bytes: u64,
}

/// How a block changed.
#[derive(Clone, Copy)]
enum How {
    Came,
    Went,
    Stayed,
}

impl ChangeSums {
    fn add(&mut self, how: How, bytes: u64) {
        let sum = match how {
            How::Came => &mut self.came,
            How::Went => &mut self.went,
            How::Stayed => &mut self.stayed,
        };
        sum.bytes = sum.bytes.saturating_add(bytes);
        sum.blocks += 1;
        self.net_bytes = (self.came.bytes as i64).saturating_sub(self.went.bytes as i64);
    }

    /// The order of rows: the largest net change first, then the most bytes.
    fn rank(&self) -> (Reverse<u64>, Reverse<u64>) {
        let all = [self.came, self.went, self.stayed];
        let bytes = all.iter().fold(0u64, |sum, part| sum.saturating_add(part.bytes));
        (Reverse(self.net_bytes.unsigned_abs()), Reverse(bytes))
    }
}

/// The changes of one call site while they are added up.
struct SiteWork {
    key: (StackId, bool, Option<NoStack>),
    sums: ChangeSums,
    categories: [u64; Category::ALL.len()],
    /// The largest block, whose stack is that of the key.
    block: u32,
}

/// What changed from the state in one slot to that in another. The second may be the earlier
/// one.
pub async fn changes(target: Target<'_>, [from, to]: [u32; 2], budget: &mut Budget) -> Changes {
    let (trace, entry) = (target.trace(), target.entry);
    let categories = entry.categories(target.index);
    let mut all = ChangeSums::default();
    let mut by_category = Category::ALL.map(|category| CategoryChange { category, sums: all });
    let mut sites: Vec<SiteWork> = Vec::new();
    let mut known: FxHashMap<_, usize> = FxHashMap::default();
    let visit = |i, block: &Block| {
        let how = match (block.is_live_at(from), block.is_live_at(to)) {
            (false, true) => How::Came,
            (true, false) => How::Went,
            (true, true) => How::Stayed,
            (false, false) => return,
        };
        let (bytes, category) = (block.bytes.0, categories.get(i).category as usize);
        all.add(how, bytes);
        by_category[category].sums.add(how, bytes);
        let why = trace.no_stack(block);
        let frame = entry.sites.get(block.stack).frame.filter(|_| why.is_none());
        let key = (frame, block.has_stack_of_free(), why);
        let at = *known.entry(key).or_insert(sites.len());
        if at == sites.len() {
            sites.push(SiteWork {
                key: (block.stack, block.has_stack_of_free(), why),
                sums: ChangeSums::default(),
                categories: [0; Category::ALL.len()],
                block: i,
            });
        }
        let site = &mut sites[at];
        site.sums.add(how, bytes);
        site.categories[category] += bytes;
        if block.bytes > trace.blocks[site.block as usize].bytes {
            (site.block, site.key.0) = (i, block.stack);
        }
    };
    trace.each_block(3, budget, visit).await;
    let mut by_category: Vec<CategoryChange> =
        by_category.into_iter().filter(|row| row.sums != ChangeSums::default()).collect();
    by_category.sort_by_key(|row| (row.sums.rank(), row.category as usize));
    sites.sort_by_key(|site| (site.sums.rank(), site.block));
    budget.charge(16 * sites.len() as u64).await;
    let row = |site: SiteWork| {
        let ((stack, of_free, why), all) = (site.key, site.categories);
        let most = (0..all.len()).rev().max_by_key(|&category| all[category]).unwrap_or(0);
        SiteChange {
            site: row_site(entry, stack, why),
            category: Category::ALL[most],
            of_free,
            sums: site.sums,
            stack: 0,
            block: site.block,
        }
    };
    let reserved = |slot: u32| -> Vec<Range<u64>> {
        let spans = entry.carving(target.index).segments.at(slot);
        spans.iter().map(|span| span.address.0..span.end()).collect()
    };
    let (before, after) = (reserved(from), reserved(to));
    let bytes = |ranges: Vec<Range<u64>>| ranges.iter().map(|range| range.end - range.start).sum();
    Changes {
        all,
        categories: by_category,
        sites: sites.into_iter().map(row).collect(),
        mapped_bytes: bytes(outside(&after, &before)),
        released_bytes: bytes(outside(&before, &after)),
    }
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
        match (block.is_live_at(from), block.is_live_at(to)) {
            (false, true) => came.push(i),
            (true, false) => went.push(i),
            (true, true) => stayed.push(i),
            (false, false) => {}
        }
    }
    let Changes { categories: by_category, sites, mapped_bytes, released_bytes, .. } =
        now(async |budget| changes(target, [from, to], budget).await);
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
        by_category,
        by_site_omitted: sites.len().saturating_sub(limit.unwrap_or(usize::MAX)),
        by_site: sites
            .into_iter()
            .take(limit.unwrap_or(usize::MAX))
            .map(|row| {
                let stack = trace.blocks[row.block as usize].stack;
                SiteChange { stack: stacks.add(target.snapshot(), stack), ..row }
            })
            .collect(),
        mapped_bytes,
        released_bytes,
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
    rows.sort_by(|(a, x), (b, y)| (b.bytes, &a.site, x.0).cmp(&(a.bytes, &b.site, y.0)));
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
