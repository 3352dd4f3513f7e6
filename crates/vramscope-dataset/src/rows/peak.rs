//! The table `peak`.

use super::{Key, Stacks};
use crate::table::{Table, Value};
use parquet::errors::Result;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use vramscope_analysis::{Category, Measure, NoStack};
use vramscope_report::peak::BandKind;
use vramscope_report::{Target, event_of, slot_of};
use vramscope_snapshot::StackId;

/// What is reserved and in no block.
const CACHED: &str = "cached free";

/// What is counted and in no block: a damaged file has it.
const UNKNOWN: &str = "outside of blocks";

pub(super) fn add(
    table: &mut Table,
    [file, rank, device]: Key<'_>,
    target: Target<'_>,
    stacks: &mut Stacks<'_>,
) -> Result<()> {
    for band in BandKind::ALL {
        let (figures, _) = band.of(target);
        let slot = slot_of(figures.peak_event);
        // Reserved bytes are those of segments, which hold the active blocks and free memory.
        let measure = band.measure(slot).unwrap_or(Measure::Active(slot));
        let mut rest = figures.peak;
        let mut row =
            |category: Option<Category>, id: Option<&str>, site: &str, bytes, blocks: u32| {
                table.push(&[
                    file,
                    rank,
                    device,
                    band.name().into(),
                    event_of(slot).into(),
                    category.map(Category::name).into(),
                    id.into(),
                    site.into(),
                    Value::Int(bytes),
                    blocks.into(),
                ])
            };
        for ((category, stack, no_stack), (bytes, blocks)) in sums(target, measure) {
            let stack = stacks.name(stack, no_stack);
            let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
            row(Some(category), stack.id.as_deref(), &stack.site, bytes, blocks)?;
            rest = rest.saturating_sub(bytes);
        }
        if rest != 0 {
            let site = if band == BandKind::Reserved { CACHED } else { UNKNOWN };
            row(None, None, site, rest, 0)?;
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
