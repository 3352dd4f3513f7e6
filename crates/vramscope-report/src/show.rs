//! `vramscope show`: what an id of an answer stands for.

use crate::backward::BackwardTable;
use crate::blocks::{BlockRecord, BlockSort, Blocks, of_blocks};
use crate::findings::{FindingEntry, with_id};
use crate::holders::{self, Holder};
use crate::search::{Matcher, matching, quoted};
use crate::shapes::ShapeTable;
use crate::{BlockReference, CategoryShare, StackTable, Target, by_category, rank_of, slot_after};
use serde::Serialize;
use vramscope_inference::FindingId;
use vramscope_trace::slicing::now;

/// `vramscope.show/1`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Shown<'a> {
    /// The schema's name and version.
    pub schema: &'static str,
    /// The file's path.
    pub path: &'a str,
    /// The rank in the path; null if there is none.
    pub rank: Option<u32>,
    /// The device's ordinal.
    pub device: u32,
    /// The id.
    pub id: String,
    /// `finding`, `block` or `search`.
    pub kind: &'static str,
    /// The search for its blocks, as on the page; absent for a block, and for a finding that is
    /// about no blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<String>,
    /// The finding; absent for others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finding: Option<FindingEntry>,
    /// Its blocks that are live at the peak of `requested_bytes`.
    pub at_peak: LiveSum,
    /// Its blocks that are live at the end.
    pub at_end: LiveSum,
    /// Live bytes at the peak by category.
    pub categories: Vec<CategoryShare>,
    /// The number of its blocks in the window.
    pub total: usize,
    /// The unit of `lifetime`: `us` (microseconds), or `events` without a clock.
    pub lifetime_unit: &'static str,
    /// Its blocks, the largest first, at most `--limit`.
    pub blocks: Vec<BlockRecord<'a>>,
    /// The number of blocks left out by `--limit`.
    pub omitted: usize,
    /// What holds its blocks that are live at the end, most bytes first. Absent unless the file
    /// beside the snapshot tells it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub holders: Vec<Holder>,
    /// The shapes of `blocks`, as recorded or as far as sizes tell.
    pub shapes: ShapeTable,
    /// The places in backward of `blocks`.
    pub backward: BackwardTable,
    /// The call stacks of `blocks`, innermost frame first.
    pub stacks: StackTable<'a>,
}

/// Blocks that are live at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LiveSum {
    /// Requested bytes.
    pub bytes: u64,
    /// Blocks.
    pub blocks: u32,
}

/// What an id stands for: the id of a finding, of a block or of a call stack, or any search.
///
/// # Errors
/// A message when the text is no id of this device and no search.
pub fn show<'a>(target: Target<'a>, id: &str, limit: Option<usize>) -> Result<Shown<'a>, String> {
    let trace = target.trace();
    let block = id.parse::<BlockReference>().ok().and_then(|reference| reference.find(trace));
    let mut finding = None;
    if id.parse::<FindingId>().is_ok() {
        // As `diagnose` states it.
        target.entry.simulate(target.index);
    }
    let (kind, search, found) = if let Some(block) = block {
        ("block", None, vec![block])
    } else if let Some(entry) = with_id(target, id) {
        let terms =
            entry.record.terms().iter().map(|term| quoted(term)).collect::<Vec<_>>().join(" ");
        finding = Some(entry);
        match terms.as_str() {
            "" => ("finding", None, Vec::new()),
            terms => ("finding", Some(terms.to_owned()), search(target, terms)?),
        }
    } else {
        ("search", Some(id.to_owned()), search(target, id)?)
    };
    if kind == "search" && found.is_empty() {
        return Err(format!(
            "{id:?} is no finding, block or call stack of {}, and no block matches it as a search",
            target.path
        ));
    }
    let peak = slot_after(trace, trace.requested_band.peak_event.map_or(-1, i64::from));
    let live = |slot: u32| {
        let blocks = found.iter().map(|&block| (block, &trace.blocks[block as usize]));
        blocks.filter(move |(_, block)| block.is_live_at(slot))
    };
    let sum = |slot: u32| {
        live(slot).fold(LiveSum::default(), |sum, (_, block)| LiveSum {
            bytes: sum.bytes + block.bytes.0,
            blocks: sum.blocks + 1,
        })
    };
    let categories = target.entry.categories(target.index);
    let category =
        |(block, of): (u32, &vramscope_trace::Block)| (categories.get(block).category, of.bytes.0);
    let (at_peak, at_end) = (sum(peak), sum(trace.slots() - 1));
    let shares = by_category(live(peak).map(category));
    let holders = match found[..] {
        [only] => holders::of_block(target, only).into_iter().collect(),
        _ => holders::of_blocks(target, &found),
    };
    let Blocks { total, lifetime_unit, blocks, omitted, shapes, backward, stacks, .. } =
        of_blocks(target, found, BlockSort::Size, limit);
    Ok(Shown {
        schema: "vramscope.show/1",
        path: target.path,
        rank: rank_of(target.path),
        device: target.device(),
        id: id.to_owned(),
        kind,
        search,
        finding,
        at_peak,
        at_end,
        categories: shares,
        total,
        lifetime_unit,
        blocks,
        omitted,
        holders,
        shapes,
        backward,
        stacks,
    })
}

/// The blocks that a search matches.
fn search(target: Target<'_>, text: &str) -> Result<Vec<u32>, String> {
    now(async |budget| match Matcher::of_table(target, text, budget).await? {
        Some(matcher) => Ok(matching(target, &matcher, budget).await),
        None => Ok(Vec::new()),
    })
}
