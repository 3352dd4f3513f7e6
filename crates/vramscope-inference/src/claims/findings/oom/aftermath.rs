//! What followed failed allocations, and which of several ended the run.

use crate::category::Category;
use crate::evidence::Evidence;
use vramscope_snapshot::{Action, StackId};
use vramscope_trace::slicing::{Budget, strides};
use vramscope_trace::{Block, Oom, Origin};
use vramscope_units::Bytes;

/// The share of live memory, in percent, whose release shows that the program left the code that
/// asked.
const UNWOUND_PERCENT: u64 = 5;

/// The fewest larger and larger requests of one line that make a [`Climb`].
const MIN_CLIMB: usize = 4;

/// What followed the last failure of a cascade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aftermath {
    /// Nothing was allocated after it.
    Ended,
    /// The line that asked went on at once, and nothing was dropped: a library asked for less.
    Handled,
    /// The program dropped memory, or went on elsewhere.
    WentOn {
        /// Training steps that end after it.
        steps: u32,
    },
}

/// Requests of one line that are larger each time, up to the one that failed. Each result replaces
/// the one before, as when a program concatenates results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Climb {
    /// The number of requests before the one that failed.
    pub times: u32,
    /// By how much the request that failed is larger than the one before it.
    pub step: Bytes,
}

/// What followed an event.
pub(super) async fn aftermath(cx: Evidence<'_>, failure: Oom, budget: &mut Budget) -> Aftermath {
    let rows = &cx.trace.device.events;
    let events = &cx.snapshot.events;
    let row = rows.start + failure.event.0;
    let mut next = None;
    for part in strides((rows.end - row - 1) as usize) {
        budget.charge(part.len() as u64).await;
        let part = row + 1 + part.start as u32..row + 1 + part.end as u32;
        next = part.into_iter().find(|&row| events.action(row) == Action::ALLOC);
        if next.is_some() {
            break;
        }
    }
    let Some(next) = next else { return Aftermath::Ended };
    let site = |row: u32| cx.sites.get(events.stack(row)).site_hash;
    let live = |slot: u32| cx.trace.requested.at(slot);
    let (before, after) = (live(failure.event.0 + 1), live(next - rows.start));
    let dropped = before.saturating_sub(after);
    if site(row) == site(next) && dropped.saturating_mul(100) < before * UNWOUND_PERCENT {
        return Aftermath::Handled;
    }
    let begins = cx.steps.filter(|steps| steps.are_training()).map(|steps| &steps.begins[..]);
    let begins = begins.unwrap_or_default();
    let first = begins.partition_point(|&begin| begin <= failure.event.0);
    Aftermath::WentOn { steps: (begins.len() - first) as u32 }
}

/// The index of the failure that counts: the last, if it ended the run and the program had not
/// dropped half of its memory since the first. Else the first.
pub(super) fn that_counts(cx: Evidence<'_>, ooms: &[Oom], aftermath: Aftermath) -> usize {
    let live = |oom: &Oom| cx.trace.requested.at(oom.event.0 + 1);
    let last = ooms.len() - 1;
    let has_ended = aftermath == Aftermath::Ended;
    if has_ended && live(&ooms[last]) >= live(&ooms[0]) / 2 { last } else { 0 }
}

/// The requests of the call stack of the one that failed, if each is larger than the one before.
pub(super) async fn climb(
    cx: Evidence<'_>,
    oom: Oom,
    stack: StackId,
    budget: &mut Budget,
) -> Option<Climb> {
    if stack == StackId::EMPTY {
        return None;
    }
    let mut made: Vec<&Block> = Vec::new();
    for part in strides(cx.trace.blocks.len()) {
        budget.charge(part.len() as u64).await;
        made.extend(cx.trace.blocks[part].iter().filter(|block| {
            block.stack == stack && block.origin() == Origin::Alloc && block.enters <= oom.event.0
        }));
    }
    made.sort_unstable_by_key(|block| block.enters);
    let last = made.last().filter(|last| last.is_live_at(oom.event.0))?;
    let step = oom.requested.0.checked_sub(last.bytes.0).filter(|&step| step > 0)?;
    let next = made.iter().skip(2).map(|block| block.enters).chain([oom.event.0]);
    let pairs = made.windows(2).zip(next).map(|(pair, next)| (pair[0], pair[1], next));
    let replaces = |(old, new, next): &(&Block, &Block, u32)| {
        old.bytes < new.bytes && new.enters < old.leaves && old.leaves <= *next
    };
    let pairs: Vec<_> = pairs.collect();
    let times = pairs.iter().rev().take_while(|pair| replaces(pair)).count() + 1;
    (times >= MIN_CLIMB).then_some(Climb { times: times as u32, step: Bytes(step) })
}

/// Live blocks of a line whose sizes are those of parameters or of optimizer state, as
/// `state.clone()` of a whole model makes them, or `state.float()` twice as large: their bytes and
/// number. `live` has the size,
/// category and call site of each block.
pub(super) fn copies(live: &[(u64, Category, u64)], site: u64) -> Option<(Bytes, u32)> {
    let is_of_model =
        |category: Category| matches!(category, Category::Parameter | Category::OptimizerState);
    let mut known: Vec<u64> = live
        .iter()
        .filter(|(_, category, of)| *of != site && is_of_model(*category))
        .map(|one| one.0)
        .collect();
    known.sort_unstable();
    known.dedup();
    let made: Vec<u64> = live.iter().filter(|one| one.2 == site).map(|one| one.0).collect();
    let whole = made.iter().sum::<u64>();
    let is_known = |size: u64| known.binary_search(&size).is_ok();
    let is_alike = |&size: &u64| is_known(size) || is_known(2 * size) || is_known(size / 2);
    let alike: Vec<u64> = made.into_iter().filter(is_alike).collect();
    let bytes = alike.iter().sum::<u64>();
    let mut sizes = alike.clone();
    sizes.sort_unstable();
    sizes.dedup();
    // Tensors of one size may be anything. A model has several sizes.
    let is_copy = alike.len() >= MIN_COPIES && sizes.len() >= MIN_SIZES && bytes * 10 >= whole * 9;
    is_copy.then_some((Bytes(bytes), alike.len() as u32))
}

/// The fewest blocks that make copies of a model.
const MIN_COPIES: usize = 6;

/// The fewest distinct sizes among them.
const MIN_SIZES: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_have_the_sizes_of_parameters() {
        let model = [(8, 1), (16, 2), (32, 2), (64, 1)].map(|(size, of)| (size, of, 7));
        let blocks = |site: u64, category: Category| {
            model.iter().flat_map(move |&(size, times, _)| {
                std::iter::repeat_n((size, category, site), times)
            })
        };
        let mut live: Vec<_> = blocks(1, Category::Parameter).collect();
        live.extend(blocks(2, Category::Activation));
        assert_eq!(copies(&live, 2), Some((Bytes(8 + 32 + 64 + 64), 6)));
        assert_eq!(copies(&live, 1), None, "nothing else has parameters");
        live.extend([(1000, Category::Activation, 2); 2]);
        assert_eq!(copies(&live, 2), None, "most of the line is of another size");
    }
}
