//! The blocks of a trace as a table.

mod sort;

use self::sort::sort_blocks;
use super::events::MAX_PAGE_ROWS;
use super::lru_cache::LruCache;
use super::ranked_bitmap::RankedBitmap;
use super::subject::Subject;
use crate::messages::DeviceRef;
use crate::messages::views::{BlockPage, BlockRow, BlockTable, BlockView};
use crate::scheduler::SLICE;
use std::ops::Range;
use vramscope_layout::site_color;
use vramscope_report::blocks::record;
use vramscope_report::search::{Matcher, count_of_total};
use vramscope_report::shapes::BlockShapes;
use vramscope_report::{BlockPlaces, Quantity, Target, slot_after, text};
use vramscope_snapshot::{Snapshot, StreamId};
use vramscope_trace::slicing::{Budget, now};
use vramscope_trace::{Block, Origin, Trace, parallel};
use vramscope_units::{Bytes, EventIndex};

/// Caches the last table, so that scrolling needs no new sort.
pub(crate) struct Cache {
    tables: LruCache<(DeviceRef, BlockTable), FilteredBlocks>,
}

impl Default for Cache {
    fn default() -> Self {
        Self { tables: LruCache::new(1) }
    }
}

/// The blocks that pass the filter of a table.
pub(super) struct FilteredBlocks {
    /// Block indices in the order of the rows.
    pub(super) order: Vec<u32>,
    /// The number of blocks and their bytes, or the message when the search cannot be parsed.
    text: String,
}

impl Cache {
    /// A page of at most [`MAX_PAGE_ROWS`] rows, and the row of the block `near`. Runs a slice of
    /// computing the table; `None` until it is complete.
    pub(crate) fn page(
        &mut self,
        on: &Subject,
        table: BlockTable,
        rows: Range<u32>,
        near: Option<u32>,
    ) -> Option<BlockPage> {
        let at = on.at();
        let FilteredBlocks { order, text } =
            self.tables.poll((on.device, table), |key| filtered(on.clone(), key))?;
        let total = order.len() as u32;
        let from = rows.start.min(total);
        let until = rows.end.min(total).min(from.saturating_add(MAX_PAGE_ROWS)).max(from);
        let shown = &order[from as usize..until as usize];
        let mut shapes = BlockShapes::new(at);
        let places = now(async |budget| BlockPlaces::of(at, shown.to_vec(), budget).await);
        Some(BlockPage {
            total,
            text: text.clone(),
            has_tensors: !at.entry.tensors(at.index).is_empty()
                || at.entry.known_dims(at.index).is_some(),
            from,
            rows: shown.iter().map(|&i| row(at, i, &places, &mut shapes)).collect(),
            at: near.and_then(|block| order.iter().position(|&i| i == block)).map(|row| row as u32),
        })
    }
}

async fn filtered(on: Subject, (_, table): (DeviceRef, BlockTable)) -> FilteredBlocks {
    FilteredBlocks::new(on.at(), &table, &mut Budget::of(SLICE)).await
}

/// Blocks for each thread between two budget charges.
const STRIDE_PER_THREAD: usize = 1 << 14;
/// Work units of a block.
const UNITS_PER_BLOCK: u64 = 8;

impl FilteredBlocks {
    /// Filters and sorts the blocks of a table.
    pub(super) async fn new(at: Target<'_>, table: &BlockTable, budget: &mut Budget) -> Self {
        let trace = at.trace();
        let matcher = match Matcher::of_table(at, &table.text, budget).await {
            Ok(matcher) => matcher,
            Err(text) => return Self { order: Vec::new(), text },
        };
        let slot = table.live_at.map(|event| slot_after(trace, event));
        let category = |i: u32| at.entry.categories(at.index).get(i).category;
        let is_wanted = |i: u32| {
            let block = &trace.blocks[i as usize];
            slot.is_none_or(|slot| block.is_live_at(slot))
                && (table.category.is_empty() || category(i).name() == table.category)
                && matcher.as_ref().is_none_or(|m| m.block(at, i))
        };
        // Rows show both. Computed here, so that no filter thread waits for them.
        parallel::join(|| at.entry.carving(at.index), || at.entry.categories(at.index));
        let mut wanted = RankedBitmap::default();
        let mut bytes = 0u64;
        let stride = (STRIDE_PER_THREAD * parallel::threads()) as u32;
        let count = trace.blocks.len() as u32;
        for from in (0..count).step_by(stride as usize) {
            let is_wanted = |i: u32| Some(from + i).filter(|&i| is_wanted(i));
            for i in parallel::filter_map(stride.min(count - from), is_wanted) {
                wanted.push(i);
                bytes = bytes.saturating_add(trace.blocks[i as usize].bytes.0);
            }
            budget.charge(UNITS_PER_BLOCK * STRIDE_PER_THREAD as u64).await;
        }
        let order = sort_blocks(at, wanted, (table.sort, table.descending), budget).await;
        let count = count_of_total(order.len(), trace.blocks.len(), "block", "blocks");
        Self { order, text: format!("{count}, {}", Bytes(bytes)) }
    }
}

fn row(
    at: Target<'_>,
    index: u32,
    places: &BlockPlaces<'_>,
    shapes: &mut BlockShapes<'_>,
) -> BlockRow {
    let (trace, entry) = (at.trace(), at.entry);
    let block = &trace.blocks[index as usize];
    let view = BlockView {
        block: index,
        reference: text::block_reference(trace, block),
        tensor: match entry.tensor(at.index, index) {
            Some(tensor) => tensor.short_text(),
            None => shapes.of(index).map_or_else(String::new, |shape| shape.words()),
        },
        allocated: match (block.alloc_event(), block.origin()) {
            (Some(event), _) => event.to_string(),
            (None, Origin::LostAlloc) => "not recorded".to_owned(),
            (None, _) => "before window".to_owned(),
        },
        freed: freed(trace, block),
        life: text::lifetime(trace, block),
        place: text::short_block_address(block),
        handle: short_stream(at.snapshot(), block.stream),
        color: site_color(&entry.sites, block.stack).word(),
    };
    BlockRow { record: record(places, at, index, block.stack.0).into_owned(), view }
}

fn freed(trace: &Trace, block: &Block) -> String {
    match block.free_completed() {
        Some(event) => event.to_string(),
        None if block.leaves < trace.slots() => format!("before {}", EventIndex(block.leaves - 1)),
        None if block.free_requested().is_some() => "pending".to_owned(),
        None => "not freed".to_owned(),
    }
}

/// A stream for a narrow column: the last digits of its handle.
fn short_stream(snapshot: &Snapshot, id: StreamId) -> Quantity {
    let handle = snapshot.stream(id);
    let short =
        if handle == 0 { "0".to_owned() } else { last_digits(handle as u64, &snapshot.streams) };
    Quantity { value: handle.into(), text: short, exact: text::stream(snapshot, id) }
}

/// `…9ab0`: the last digits of a handle, as many as distinguish it from all others, at least four.
fn last_digits(handle: u64, all: &[i64]) -> String {
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
    use super::last_digits;

    #[test]
    fn last_digits_distinguish_a_handle_from_all_others() {
        let all = [0, 0x55bd_0000_9ab0, 0x55bd_0001_9ab0, 0x55bd_0000_0010, 0x7, -0x10];
        let ends: Vec<String> =
            all[1..].iter().map(|&handle| last_digits(handle as u64, &all)).collect();
        assert_eq!(ends, ["…09ab0", "…19ab0", "…0010", "0x7", "…fff0"]);
        // All digits but the highest are those of another handle.
        assert_eq!(last_digits(0x1000_0000_0000_0001, &[1]), "0x1000000000000001");
        assert_eq!(last_digits(0x1234_5678, &[0x1234_5678]), "…5678");
    }
}
