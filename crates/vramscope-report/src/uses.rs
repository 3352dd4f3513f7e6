//! `vramscope peak --by use`: which memory is read again, and when, as a traced step shows it.

use crate::target::Target;
use crate::{event_of, rank_of, row_site, time_of};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use vramscope_inference::{FAR_OPERATIONS, Floor, NextUse, NoUses, UseGroup, Uses};
use vramscope_trace::slicing::{Budget, now, strides};
use vramscope_units::{Bytes, grouped};

/// `vramscope.peak-use/1`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UsesReport<'a> {
    /// The schema's name and version.
    pub schema: &'static str,
    /// The file's path.
    pub path: &'a str,
    /// The rank in the path; null if there is none.
    pub rank: Option<u32>,
    /// The device's ordinal.
    pub device: u32,
    /// Why nothing is known; null if something is.
    pub refused: Option<&'static str>,
    /// The traced step, as the program counts; null where it counts none.
    pub step: Option<u64>,
    /// The event of the moment: by default the first of the traced step after which its
    /// `requested_bytes` are highest; -1 is the state before the window.
    pub event: i64,
    /// The time of `event`; null without a clock.
    pub time_us: Option<i64>,
    /// `requested_bytes` after it.
    pub bytes: u64,
    /// The highest `requested_bytes` of the traced step.
    pub step_peak: u64,
    /// The same if each block of the step died at its last use. What stays from step to step, what
    /// is kept and what is not seen lives as long as it does.
    pub floor: u64,
    /// The event of that.
    pub floor_event: i64,
    /// Operations of the step that use memory of the device. Views are none.
    pub operations: usize,
    /// Whether each kernel is seen that uses memory, as far as the trace tells.
    pub exact: bool,
    /// Bytes that are allocated long before their first use, although they are made from nothing,
    /// as `torch.zeros` does.
    pub early_bytes: u64,
    /// Live bytes by what becomes of them. They add up to `bytes`.
    pub groups: Vec<UseShare>,
    /// Live bytes by group, category and call site, most bytes first.
    pub rows: Vec<UseRow>,
    /// The number of rows left out by `--limit`; absent if none are.
    #[serde(skip_serializing_if = "is_zero")]
    pub omitted: usize,
    /// What follows, in sentences.
    pub text: Vec<String>,
}

/// Bytes of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UseShare {
    /// What becomes of the blocks.
    pub group: UseGroup,
    /// The group in words.
    pub text: &'static str,
    /// Requested bytes.
    pub bytes: u64,
    /// Blocks.
    pub blocks: u32,
}

/// Blocks of one group, category and call site.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UseRow {
    /// What becomes of the blocks.
    pub group: UseGroup,
    /// The category.
    pub category: &'static str,
    /// The call site.
    pub site: String,
    /// Requested bytes.
    pub bytes: u64,
    /// Blocks.
    pub blocks: u32,
    /// The fewest operations to a next use of one of them; null without one.
    pub next_in_operations: Option<u32>,
    /// The fewest microseconds to a next use in the step; null without one.
    pub next_in_us: Option<u64>,
    /// The operation that uses the largest of them for the last time in the step; null without one.
    pub last_operation: Option<String>,
    /// Bytes of them that are allocated long before their first use.
    pub early_bytes: u64,
}

/// serde demands a reference.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// What becomes of the blocks that are live in a slot; without one, at the peak of the traced step.
pub fn uses_at(target: Target<'_>, slot: Option<u32>, limit: Option<usize>) -> UsesReport<'_> {
    now(async |budget| report(target, slot, limit, budget).await)
}

/// [`uses_at`] in slices.
pub async fn report<'a>(
    target: Target<'a>,
    slot: Option<u32>,
    limit: Option<usize>,
    budget: &mut Budget,
) -> UsesReport<'a> {
    use crate::derived::Derived;
    target.entry.derive(Derived::Tensors, target.index, budget).await;
    target.entry.derive(Derived::Categories, target.index, budget).await;
    target.entry.derive(Derived::Uses, target.index, budget).await;
    let uses = match target.entry.uses(target.index) {
        Ok(uses) => uses,
        Err(why) => return refused(target, slot.unwrap_or(0), why_not(why)),
    };
    let trace = target.trace();
    budget.charge(trace.blocks.len() as u64).await;
    let floor = uses.floor(trace);
    let slot = slot.unwrap_or(floor.slot);
    let Some(moment) = uses.moment(trace, slot) else {
        return refused(target, slot, "the moment is not in the traced step");
    };
    for part in strides(moment.blocks.len()) {
        budget.charge(8 * part.len() as u64).await;
    }
    answer(target, uses, floor, slot, &moment.blocks, limit)
}

fn answer<'a>(
    target: Target<'a>,
    uses: &Uses,
    floor: Floor,
    slot: u32,
    blocks: &[NextUse],
    limit: Option<usize>,
) -> UsesReport<'a> {
    let trace = target.trace();
    let groups = shares(target, blocks);
    let mut rows = rows(target, uses, blocks);
    let bytes = sum(groups.iter().map(|of| of.bytes));
    let early = sum(rows.iter().map(|row| row.early_bytes));
    let text = sentences(uses, floor, slot, &groups, early);
    let omitted = rows.len().saturating_sub(limit.unwrap_or(usize::MAX));
    rows.truncate(rows.len() - omitted);
    UsesReport {
        step: uses.step,
        time_us: time_of(trace, slot),
        bytes,
        step_peak: floor.peak,
        floor: floor.floor,
        floor_event: event_of(floor.floor_slot),
        operations: uses.operations(),
        exact: uses.is_exact(),
        early_bytes: early,
        groups,
        rows,
        omitted,
        text,
        ..empty(target, slot)
    }
}

fn empty(target: Target<'_>, slot: u32) -> UsesReport<'_> {
    UsesReport {
        schema: "vramscope.peak-use/1",
        path: target.path,
        rank: rank_of(target.path),
        device: target.device(),
        refused: None,
        step: None,
        event: event_of(slot),
        time_us: None,
        bytes: 0,
        step_peak: 0,
        floor: 0,
        floor_event: event_of(slot),
        operations: 0,
        exact: false,
        early_bytes: 0,
        groups: Vec::new(),
        rows: Vec::new(),
        omitted: 0,
        text: Vec::new(),
    }
}

fn refused<'a>(target: Target<'a>, slot: u32, why: &'static str) -> UsesReport<'a> {
    let text = vec![format!("Nothing is known of uses: {why}.")];
    UsesReport { refused: Some(why), text, ..empty(target, slot) }
}

/// Why there are no uses, in words.
pub fn why_not(why: NoUses) -> &'static str {
    match why {
        NoUses::NotTraced => "no step was traced (vramscope record --use-step N)",
        NoUses::Cut => "the trace is not whole: a limit cut it, or the step did not end",
        NoUses::NotRecorded => "the traced step is not in the history",
        NoUses::Mismatch => "the uses are of other memory than this device's",
    }
}

/// A group in words.
pub fn group_text(group: UseGroup) -> &'static str {
    match group {
        UseGroup::Dead => "never read again",
        UseGroup::Far => "read far later",
        UseGroup::Overwritten => "overwritten before it is read",
        UseGroup::Soon => "read again soon",
        UseGroup::Now => "used now",
        UseGroup::Kept => "kept after the step",
        UseGroup::NotSeen => "not seen",
    }
}

/// A sum of sizes, which a damaged file may make too large.
fn sum(sizes: impl Iterator<Item = u64>) -> u64 {
    sizes.fold(0, u64::saturating_add)
}

fn shares(target: Target<'_>, blocks: &[NextUse]) -> Vec<UseShare> {
    let share = |group| {
        let of = || blocks.iter().filter(|one| one.group == group);
        let bytes = sum(of().map(|one| target.trace().blocks[one.block as usize].bytes.0));
        UseShare { group, text: group_text(group), bytes, blocks: of().count() as u32 }
    };
    UseGroup::ALL.into_iter().map(share).filter(|share| share.blocks > 0).collect()
}

fn rows(target: Target<'_>, uses: &Uses, blocks: &[NextUse]) -> Vec<UseRow> {
    let (trace, entry) = (target.trace(), target.entry);
    let categories = entry.categories(target.index);
    let mut of_rows: BTreeMap<(UseGroup, &'static str, String), Vec<&NextUse>> = BTreeMap::new();
    for one in blocks {
        let block = &trace.blocks[one.block as usize];
        let category = categories.get(one.block).category.name();
        let site = row_site(entry, block.stack, trace.no_stack(block));
        of_rows.entry((one.group, category, site)).or_default().push(one);
    }
    let bytes = |one: &NextUse| trace.blocks[one.block as usize].bytes.0;
    let row = |((group, category, site), blocks): ((_, _, _), Vec<&NextUse>)| UseRow {
        group,
        category,
        site,
        bytes: sum(blocks.iter().map(|one| bytes(one))),
        blocks: blocks.len() as u32,
        next_in_operations: blocks.iter().filter_map(|one| one.operations).min(),
        next_in_us: blocks.iter().filter_map(|one| one.micros).min(),
        last_operation: blocks
            .iter()
            .filter_map(|one| Some((one, uses.last_operation(one.block)?)))
            .max_by_key(|(one, _)| (bytes(one), Reverse(one.block)))
            .map(|(_, operation)| operation.to_owned()),
        early_bytes: sum(blocks.iter().filter(|one| one.early.is_some()).map(|one| bytes(one))),
    };
    let mut rows: Vec<UseRow> = of_rows.into_iter().map(row).collect();
    rows.sort_by_key(|row| (row.group, Reverse(row.bytes)));
    rows
}

/// What follows, and what is not seen.
fn sentences(uses: &Uses, floor: Floor, slot: u32, groups: &[UseShare], early: u64) -> Vec<String> {
    let bytes = |group| groups.iter().find(|of| of.group == group).map_or(0, |of| of.bytes);
    let mut text = Vec::new();
    if slot == floor.slot {
        text.push(format!(
            "If each block of the step died at its last use, the peak of {} would be {}.",
            Bytes(floor.peak),
            Bytes(floor.floor)
        ));
    }
    let (far, not_seen) = (bytes(UseGroup::Far), bytes(UseGroup::NotSeen));
    if far > 0 {
        text.push(format!(
            "{} are next read more than {FAR_OPERATIONS} operations later: they could wait in the \
             host's memory.",
            Bytes(far)
        ));
    }
    if early > 0 {
        text.push(format!(
            "{} are allocated long before their first use: they could be made later.",
            Bytes(early)
        ));
    }
    if not_seen > 0 {
        text.push(format!(
            "No operation was seen to use {}: they count as needed. CUDA graphs, compiled code, \
             other threads and kernels outside of PyTorch's dispatcher are not seen.",
            Bytes(not_seen)
        ));
    }
    if uses.has_compiled {
        text.push(
            "Code of torch.compile ran in the step. Its kernels may read what counts as never read \
             again."
                .to_owned(),
        );
    }
    if uses.filled_unseen > 0 {
        text.push(format!(
            "{} blocks were filled by kernels that are not seen. Such kernels may read what counts \
             as never read again.",
            grouped(uses.filled_unseen.into())
        ));
    }
    if uses.least_bytes > 0 {
        text.push(format!("Uses of less than {} were left out.", Bytes(uses.least_bytes)));
    }
    text
}
