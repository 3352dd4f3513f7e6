//! All blocks as a table.

use super::events::{PAGE, site};
use super::lru_cache::LruCache;
use super::picked::Picked;
use super::search::{Matcher, part_of};
use super::{flame, target as target_of};
use crate::scheduler::SLICE;
use std::ops::{Not, Range};
use std::sync::Arc;
use vramscope_analysis::slicing::{Budget, STRIDE, run_to_completion};
use vramscope_analysis::{Block, Category, Origin, Trace, lifetime, parallel, sort};
use vramscope_layout::site_color;
use vramscope_protocol::DeviceRef;
use vramscope_protocol::views::{BlockLine, BlockPage, BlockSort, BlockTable};
use vramscope_report::LoadedFile;
use vramscope_report::{Quantity, text};
use vramscope_report::{Target, slot_after};
use vramscope_snapshot::{Snapshot, StackId, StreamId};
use vramscope_units::{Bytes, EventIndex};

/// What is kept so that scrolling costs nothing.
pub(crate) struct Cache {
    found: LruCache<(DeviceRef, BlockTable), Found>,
}

impl Default for Cache {
    fn default() -> Self {
        Self { found: LruCache::new(1) }
    }
}

/// The blocks of a table.
pub(super) struct Found {
    /// In the order of its rows.
    pub(super) order: Vec<u32>,
    text: String,
}

impl Cache {
    /// Whether a table is there; if not, makes a slice of it.
    pub(crate) fn is_ready(
        &mut self,
        file: &Arc<LoadedFile>,
        target: DeviceRef,
        table: &BlockTable,
    ) -> bool {
        let wanted = (target, table.clone());
        self.found.is_ready(&wanted, || found(file.clone(), wanted.clone()))
    }

    pub(crate) fn page(
        &mut self,
        at: Target<'_>,
        target: DeviceRef,
        table: &BlockTable,
        rows: Range<u32>,
        near: Option<u32>,
    ) -> BlockPage {
        let make = || run_to_completion(Found::sliced(at, table, &mut Budget::unlimited()));
        let Found { order, text } = self.found.get(&(target, table.clone()), make);
        let total = order.len() as u32;
        let from = rows.start.min(total);
        let until = rows.end.min(total).min(from.saturating_add(PAGE)).max(from);
        BlockPage {
            total,
            text: text.clone(),
            from,
            rows: order[from as usize..until as usize].iter().map(|&i| line(at, i)).collect(),
            at: near.and_then(|block| order.iter().position(|&i| i == block)).map(|row| row as u32),
        }
    }
}

async fn found(file: Arc<LoadedFile>, (target, table): (DeviceRef, BlockTable)) -> Option<Found> {
    Some(Found::sliced(target_of(&file, target)?, &table, &mut Budget::of(SLICE)).await)
}

/// So many blocks for each thread are looked at in one go, and what one costs.
const BLOCKS: usize = 1 << 14;
const COST: u64 = 8;

impl Found {
    pub(super) async fn sliced(at: Target<'_>, table: &BlockTable, budget: &mut Budget) -> Self {
        let trace = at.trace();
        let matcher = match Matcher::of_table(at, &table.text, budget).await {
            Ok(matcher) => matcher,
            Err(text) => return Self { order: Vec::new(), text },
        };
        let below = match &table.node {
            Some((spec, node)) => Some(flame::blocks_below(at, spec, *node, budget).await),
            None => None,
        };
        let slot = table.live_at.map(|event| slot_after(trace, event));
        let category = |i: u32| at.entry.categories(at.index).get(i).category;
        let is_wanted = |i: u32| {
            let block = &trace.blocks[i as usize];
            slot.is_none_or(|slot| block.enters <= slot && slot < block.leaves)
                && (table.category.is_empty() || category(i).name() == table.category)
                && below.as_ref().is_none_or(|list| list.binary_search(&i).is_ok())
                && matcher.as_ref().is_none_or(|m| m.block(at, i))
        };
        let sites =
            if table.sort == BlockSort::Site { site_ranks(at, budget).await } else { Vec::new() };
        // Rows show both: they are made before the work is shared.
        parallel::join(|| at.entry.carving(at.index), || at.entry.categories(at.index));
        let mut wanted = Picked::default();
        let mut bytes = 0u64;
        let stride = (BLOCKS * parallel::threads()) as u32;
        let count = trace.blocks.len() as u32;
        for from in (0..count).step_by(stride as usize) {
            let is_wanted = |i: u32| Some(from + i).filter(|&i| is_wanted(i));
            for i in parallel::filter_map(stride.min(count - from), is_wanted) {
                wanted.push(i);
                bytes = bytes.saturating_add(trace.blocks[i as usize].bytes.0);
            }
            budget.charge(COST * BLOCKS as u64).await;
        }
        let order = match table.sort {
            // Twice as wide as all others: what is sorted takes twice as much memory.
            BlockSort::ByteSeconds => {
                let key = |i: u32| {
                    let block = &trace.blocks[i as usize];
                    u128::from(block.bytes.0) * u128::from(lifetime(trace, block))
                };
                sorted(wanted, table.descending, key, budget).await
            }
            of => sorted(wanted, table.descending, |i| key(at, of, &sites, i), budget).await,
        };
        let count = part_of(order.len(), trace.blocks.len(), "block", "blocks");
        Self { order, text: format!("{count}, {}", Bytes(bytes)) }
    }
}

/// Blocks by what they are sorted by, equals in the order of the stack.
async fn sorted<K: Ord + Copy + Send + Not<Output = K>>(
    blocks: Picked,
    descending: bool,
    key: impl Fn(u32) -> K + Sync,
    budget: &mut Budget,
) -> Vec<u32> {
    // They have their room from the start: a copy of so many would be a long slice.
    let mut rows: Vec<(K, u32)> = Vec::with_capacity(blocks.len() as usize);
    let stride = (BLOCKS * parallel::threads()) as u32;
    for from in (0..blocks.len()).step_by(stride as usize) {
        let few: Vec<u32> = blocks.range(from..from + stride).collect();
        rows.extend(parallel::map(&few, |&i| {
            let key = key(i);
            (if descending { !key } else { key }, i)
        }));
        budget.charge(COST * BLOCKS as u64).await;
    }
    drop(blocks);
    sort(&mut rows, budget).await;
    let mut order = Vec::with_capacity(rows.len());
    for part in rows.chunks(BLOCKS) {
        order.extend(part.iter().map(|&(_, i)| i));
        budget.charge(part.len() as u64).await;
    }
    order
}

/// What a block is sorted by, as a number; byte-seconds as far as they fit into it.
fn key(at: Target<'_>, sort: BlockSort, sites: &[u32], index: u32) -> u64 {
    let trace = at.trace();
    let block = &trace.blocks[index as usize];
    match sort {
        BlockSort::Size => block.bytes.0,
        BlockSort::BlockSize => at.entry.carving(at.index).sizes[index as usize].0,
        BlockSort::Category => {
            let name = at.entry.categories(at.index).get(index).category.name();
            Category::ALL.iter().filter(|c| c.name() < name).count() as u64
        }
        BlockSort::Allocated => block.enters.into(),
        // Of what is there at the end, what waits for its free goes first.
        BlockSort::Freed => {
            u64::from(block.leaves) << 1 | u64::from(block.free_requested().is_none())
        }
        BlockSort::Lifetime => lifetime(trace, block),
        BlockSort::ByteSeconds => block.bytes.0.saturating_mul(lifetime(trace, block)),
        BlockSort::Address => block.address.0,
        // The order of signed numbers, moved above zero.
        BlockSort::Stream => at.snapshot().stream(block.stream) as u64 ^ 1 << 63,
        BlockSort::Site => sites[block.stack.0 as usize].into(),
    }
}

/// The place of each stack's call site among all of them, by name.
async fn site_ranks(at: Target<'_>, budget: &mut Budget) -> Vec<u32> {
    let count = at.snapshot().stacks.len() as u32;
    let mut names: Vec<(String, u32)> = Vec::with_capacity(count as usize);
    let stride = (STRIDE * parallel::threads()) as u32;
    for from in (0..count).step_by(stride as usize) {
        names.extend(parallel::filter_map(stride.min(count - from), |i| {
            Some((site(at, StackId(from + i)), from + i))
        }));
        budget.charge(32 * STRIDE as u64).await;
    }
    sort(&mut names, budget).await;
    let mut ranks = vec![0; names.len()];
    let mut rank = 0;
    for (i, (name, stack)) in names.iter().enumerate() {
        if i > 0 && *name != names[i - 1].0 {
            rank += 1;
        }
        ranks[*stack as usize] = rank;
    }
    ranks
}

fn line(at: Target<'_>, index: u32) -> BlockLine {
    let (trace, entry) = (at.trace(), at.entry);
    let block = &trace.blocks[index as usize];
    BlockLine {
        block: index,
        reference: text::block_reference(trace, block),
        bytes: Quantity::bytes(block.bytes),
        block_bytes: Quantity::bytes(entry.carving(at.index).sizes[index as usize]),
        category: entry.categories(at.index).get(index).category.name().to_owned(),
        allocated: match (block.alloc_event(), block.origin()) {
            (Some(event), _) => event.to_string(),
            (None, Origin::LostAlloc) => "not recorded".to_owned(),
            (None, _) => "before window".to_owned(),
        },
        freed: freed(trace, block),
        lifetime: text::short_lifetime(trace, block),
        address: text::block_address(block),
        stream: short_stream(at.snapshot(), block.stream),
        site: site(at, block.stack),
        color: site_color(&entry.sites, block.stack).word(),
    }
}

fn freed(trace: &Trace, block: &Block) -> String {
    match block.free_completed() {
        Some(event) => event.to_string(),
        None if block.leaves < trace.slots() => format!("before {}", EventIndex(block.leaves - 1)),
        None if block.free_requested().is_some() => "pending".to_owned(),
        None => "live at end".to_owned(),
    }
}

/// A stream where there is little room: of the handle only its end.
fn short_stream(snapshot: &Snapshot, id: StreamId) -> Quantity {
    let handle = snapshot.stream(id);
    let short = if handle == 0 { "0".to_owned() } else { end_of(handle as u64, &snapshot.streams) };
    Quantity { value: handle.into(), text: short, exact: text::stream(snapshot, id) }
}

/// `…9ab0`: as many of a handle's last digits as tell it from all others; four at least.
fn end_of(handle: u64, all: &[i64]) -> String {
    let others =
        all.iter().map(|&other| other as u64).filter(|&other| other != handle && other != 0);
    let digits = others.map(|other| (other ^ handle).trailing_zeros() / 4 + 1).fold(4, u32::max);
    match handle.checked_shr(4 * digits) {
        None | Some(0) => format!("{handle:#x}"),
        Some(rest) => {
            format!("…{:0width$x}", handle ^ (rest << (4 * digits)), width = digits as usize)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::end_of;

    #[test]
    fn a_handle_is_told_by_its_end() {
        let all = [0, 0x55bd_0000_9ab0, 0x55bd_0001_9ab0, 0x55bd_0000_0010, 0x7, -0x10];
        let ends: Vec<String> =
            all[1..].iter().map(|&handle| end_of(handle as u64, &all)).collect();
        assert_eq!(ends, ["…09ab0", "…19ab0", "…0010", "0x7", "…fff0"]);
        // Another handle of that end, but for the highest digit.
        assert_eq!(end_of(0x1000_0000_0000_0001, &[1]), "0x1000000000000001");
        assert_eq!(end_of(0x1234_5678, &[0x1234_5678]), "…5678");
    }
}
