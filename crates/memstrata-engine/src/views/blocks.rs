//! All blocks as a table.

use super::events::{PAGE, site};
use super::flame;
use super::search::{Matcher, part_of};
use crate::detail::{reference, reused};
use crate::protocol::DeviceRef;
use crate::protocol::views::{BlockLine, BlockPage, BlockSort, BlockTable};
use crate::report::Target;
use crate::text;
use memstrata_analysis::{Block, Category, Origin, Trace, lifetime, parallel};
use memstrata_layout::site_colour;
use memstrata_snapshot::StackId;
use memstrata_units::{Addr, Bytes, EventIndex};
use std::ops::Range;

/// What is kept so that scrolling costs nothing.
#[derive(Default)]
pub(crate) struct Kept {
    found: Option<(DeviceRef, BlockTable, Found)>,
}

/// The blocks of a table.
pub(super) struct Found {
    /// In the order of its rows.
    pub(super) order: Vec<u32>,
    text: String,
}

impl Kept {
    pub(crate) fn page(
        &mut self,
        at: Target<'_>,
        target: DeviceRef,
        table: &BlockTable,
        rows: Range<u32>,
        near: Option<u32>,
        flames: &mut flame::Kept,
    ) -> BlockPage {
        if self.found.as_ref().is_none_or(|(of, by, _)| *of != target || by != table) {
            self.found = None;
        }
        let found = self.found.get_or_insert_with(|| (target, table.clone(), Found::new(at, target, table, flames)));
        let Found { order, text } = &found.2;
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

/// The slot after an event; before the window, and beyond the trace, the nearest there is.
pub(super) fn slot_after(trace: &Trace, event: i64) -> u32 {
    event.saturating_add(1).clamp(0, i64::from(trace.slots()) - 1) as u32
}

impl Found {
    pub(super) fn new(at: Target<'_>, target: DeviceRef, table: &BlockTable, flames: &mut flame::Kept) -> Self {
        let trace = at.trace();
        let matcher = match Matcher::of_table(at, &table.text) {
            Ok(matcher) => matcher,
            Err(text) => return Self { order: Vec::new(), text },
        };
        let below = table.node.as_ref().map(|(spec, node)| flames.get(at, target, spec).blocks_below(at, *node));
        let slot = table.live_at.map(|event| slot_after(trace, event));
        let category = |i: u32| at.part.categories(at.index).get(i).category;
        let is_wanted = |i: u32| {
            let block = &trace.blocks[i as usize];
            slot.is_none_or(|slot| block.enters <= slot && slot < block.leaves)
                && (table.category.is_empty() || category(i).name() == table.category)
                && below.as_ref().is_none_or(|list| list.binary_search(&i).is_ok())
                && matcher.as_ref().is_none_or(|m| m.block(at, i))
        };
        let sites = if table.sort == BlockSort::Site { site_ranks(at) } else { Vec::new() };
        // Rows show both: they are made before the work is shared.
        parallel::join(|| at.part.carving(at.index), || at.part.categories(at.index));
        let mut rows: Vec<(u128, u32)> = parallel::filter_map(trace.blocks.len() as u32, |i| {
            // The other way round, equals stay in the order of the stack.
            let in_order = |key: u128| (if table.descending { !key } else { key }, i);
            is_wanted(i).then(|| in_order(key(at, table.sort, &sites, i)))
        });
        parallel::sort(&mut rows);
        let bytes = rows.iter().fold(0u64, |sum, &(_, i)| sum.saturating_add(trace.blocks[i as usize].bytes.0));
        let count = part_of(rows.len(), trace.blocks.len(), "block", "blocks");
        Self { order: rows.into_iter().map(|(_, i)| i).collect(), text: format!("{count}, {}", Bytes(bytes)) }
    }
}

/// What a block is sorted by, as a number.
fn key(at: Target<'_>, sort: BlockSort, sites: &[u32], index: u32) -> u128 {
    let trace = at.trace();
    let block = &trace.blocks[index as usize];
    match sort {
        BlockSort::Size => block.bytes.0.into(),
        BlockSort::BlockSize => at.part.carving(at.index).sizes[index as usize].0.into(),
        BlockSort::Category => {
            let name = at.part.categories(at.index).get(index).category.name();
            Category::ALL.iter().filter(|c| c.name() < name).count() as u128
        }
        BlockSort::Allocated => block.enters.into(),
        // Of what is there at the end, what waits for its free goes first.
        BlockSort::Freed => u128::from(block.leaves) << 1 | u128::from(block.free_requested().is_none()),
        BlockSort::Lifetime => lifetime(trace, block).into(),
        BlockSort::ByteSeconds => u128::from(block.bytes.0) * u128::from(lifetime(trace, block)),
        BlockSort::Address => block.address.0.into(),
        // The order of signed numbers, moved above zero.
        BlockSort::Stream => (at.snapshot().stream(block.stream) as u64 ^ 1 << 63).into(),
        BlockSort::Site => sites[block.stack.0 as usize].into(),
    }
}

/// The place of each stack's call site among all of them, by name.
fn site_ranks(at: Target<'_>) -> Vec<u32> {
    let mut names: Vec<(String, u32)> =
        parallel::filter_map(at.snapshot().stacks.len() as u32, |id| Some((site(at, StackId(id)), id)));
    parallel::sort(&mut names);
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
    let (trace, part) = (at.trace(), at.part);
    let block = &trace.blocks[index as usize];
    BlockLine {
        block: index,
        reference: reference(trace, block),
        bytes: text::bytes(block.bytes),
        block_bytes: text::bytes(part.carving(at.index).sizes[index as usize]),
        category: part.categories(at.index).get(index).category.name().to_owned(),
        allocated: match (block.alloc_event(), block.origin) {
            (Some(event), _) => event.to_string(),
            (None, Origin::LostAlloc) => "not recorded".to_owned(),
            (None, _) => "before the window".to_owned(),
        },
        freed: freed(trace, block),
        lifetime: text::lifetime(trace, block),
        address: reused(block),
        stream: match at.snapshot().stream(block.stream) {
            0 => "0".to_owned(),
            stream => Addr(stream as u64).to_string(),
        },
        site: site(at, block.stack),
        colour: site_colour(&part.sites, block.stack).word(),
    }
}

fn freed(trace: &Trace, block: &Block) -> String {
    match block.free_completed() {
        Some(event) => event.to_string(),
        None if block.leaves < trace.slots() => format!("lost before {}", EventIndex(block.leaves - 1)),
        None if block.free_requested().is_some() => "pending".to_owned(),
        None => "live at the end".to_owned(),
    }
}
