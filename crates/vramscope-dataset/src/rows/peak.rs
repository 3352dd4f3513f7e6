//! The table `peak`.

use super::stacks::Named;
use super::{HasStack, Stacks, stack_id};
use crate::columns::{Bound, Key, Keyed, TableRows, key};
use crate::table::Table;
use parquet::errors::Result;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use vramscope_inference::Category;
use vramscope_report::columns::Rows;
use vramscope_report::peak::BandKind;
use vramscope_report::{Target, event_of, slot_of};
use vramscope_snapshot::StackId;
use vramscope_trace::{Measure, NoStack};
use vramscope_units::{PeakEvent, SignedBytes};

/// What is reserved and in no block.
const CACHED: &str = "cached free";

/// What is counted and in no block: a damaged file has it.
const UNKNOWN: &str = "outside of blocks";

/// `peak`.
pub(crate) struct Peak;

pub(crate) struct PeakRow<'a> {
    band: BandKind,
    event: PeakEvent,
    category: Option<Category>,
    stack_id: Option<&'a str>,
    site: &'a str,
    bytes: i64,
    blocks: u32,
}

impl Rows for Peak {
    type Row<'a> = Keyed<'a, PeakRow<'a>>;
}

impl HasStack for Keyed<'_, PeakRow<'_>> {
    fn stack_id(&self) -> Option<&str> {
        self.stack_id
    }
}

impl TableRows for Peak {
    const NAME: &'static str = "peak";
    const ROW: &'static str =
        "a category and call stack at the peak of a band; the bytes add up to the peak";

    fn columns() -> Vec<Bound<Self>> {
        type Of = Bound<Peak>;
        let mut columns = key();
        columns.extend([
            Of::name(
                "band",
                "`requested_bytes`, `active_bytes`, `allocated_bytes` or `reserved_bytes`",
                |row| row.band.name().into(),
            ),
            Of::new("peak_event", "First event after which the band is largest", |row| row.event),
            Of::maybe_name(
                "category",
                "What the blocks hold; null for bytes outside of blocks",
                |row| row.category.map(|category| category.name().into()),
            ),
            stack_id(),
            Of::name(
                "site",
                "Call site with its line; `cached free` for reserved bytes outside of blocks",
                |row| row.site.into(),
            ),
            Of::new("bytes", "Bytes", |row| SignedBytes(row.bytes)),
            Of::new("blocks", "Blocks", |row| row.blocks),
        ]);
        columns
    }
}

pub(super) fn add(
    table: &mut Table<Peak>,
    key: Key<'_>,
    target: Target<'_>,
    stacks: &mut Stacks<'_>,
) -> Result<()> {
    for band in BandKind::ALL {
        let (figures, _) = band.of(target);
        let slot = slot_of(figures.peak_event);
        let event = PeakEvent(event_of(slot));
        // Reserved bytes are those of segments, which hold the active blocks and free memory.
        let measure = band.measure(slot).unwrap_or(Measure::Active(slot));
        let mut rest = figures.peak;
        for ((category, stack, no_stack), (bytes, blocks)) in sums(target, measure) {
            let Named { id, site } = stacks.name(stack, no_stack);
            let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
            table.push(&key.row(PeakRow {
                band,
                event,
                category: Some(category),
                stack_id: id.as_deref(),
                site,
                bytes,
                blocks,
            }))?;
            rest = rest.saturating_sub(bytes);
        }
        if rest != 0 {
            let site = if band == BandKind::Reserved { CACHED } else { UNKNOWN };
            let (category, stack_id, bytes, blocks) = (None, None, rest, 0);
            let row = PeakRow { band, event, category, stack_id, site, bytes, blocks };
            table.push(&key.row(row))?;
        }
    }
    Ok(())
}

/// What the blocks of a row have in common.
type RowKey = (Category, StackId, Option<NoStack>);

/// The bytes and blocks of each category and call stack, most bytes first.
fn sums(target: Target<'_>, measure: Measure) -> Vec<(RowKey, (u128, u32))> {
    let (trace, entry) = (target.trace(), target.entry);
    let (carving, categories) = (entry.carving(target.index), entry.categories(target.index));
    let mut sums: FxHashMap<RowKey, (u128, u32)> = FxHashMap::default();
    for (index, block) in (0..).zip(&trace.blocks) {
        let bytes = measure.of(trace, carving, index);
        if bytes > 0 {
            let stack = entry.sites.same_line(block.stack);
            let key = (categories.get(index).category, stack, trace.no_stack(block));
            let sum = sums.entry(key).or_default();
            *sum = (sum.0 + bytes, sum.1 + 1);
        }
    }
    let mut rows: Vec<_> = sums.into_iter().collect();
    rows.sort_unstable_by_key(|&((category, stack, why), (bytes, _))| {
        (Reverse(bytes), category as usize, stack.0, why.map(|why| why as usize))
    });
    rows
}
