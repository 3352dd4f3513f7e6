//! Items that are made far ahead of their use: a producer fills a queue without a bound.
//!
//! At the peak many blocks of one call stack and size wait, most of them made at once. They are
//! used in the order in which they were made, a few in each pass.

use crate::claims::found::{Common, Found, parts};
use crate::claims::kinds::{Basis, FindingKind};
use crate::claims::scene::{Claim, Scene, Words};
use crate::claims::words::counted;
use crate::evidence::{Cut, Evidence, Materiality, saving};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use vramscope_snapshot::StackId;
use vramscope_trace::slicing::Budget;
use vramscope_trace::{Block, Origin};
use vramscope_units::{Bytes, grouped};

/// The least saving of a finding, of the peak.
const MATTERS: Materiality = Materiality::percent(15);

/// The fewest items that wait.
const MIN_WAITING: usize = 8;

/// The fewest items that were used.
const MIN_USED: usize = 4;

/// The items of a bounded queue: `maxsize` in the advice.
const BOUND: usize = 2;

/// Items that were made far ahead of their use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ahead {
    /// Items at the peak.
    pub waiting: u32,
    /// The most that one pass used.
    pub per_pass: u32,
    /// The peak is lower by this if the next item is made when one is used.
    pub saving: Bytes,
}

/// The finding about items that wait for their use.
pub(super) async fn ahead(cx: Evidence<'_>, budget: &mut Budget) -> Option<Found<Ahead>> {
    let peak = cx.peak_slot();
    let live = cx.trace.live_at(peak, budget).await;
    budget.charge(4 * live.len() as u64).await;
    let mut waiting: FxHashMap<(StackId, u64), (usize, u64)> = FxHashMap::default();
    for (index, block) in live {
        if block.origin() == Origin::Alloc && cx.is_result(index) {
            let (count, bytes) = waiting.entry((block.stack, block.bytes.0)).or_default();
            *count += 1;
            *bytes += block.bytes.0;
        }
    }
    waiting.retain(|_, (count, bytes)| *count >= MIN_WAITING && MATTERS.is_met(*bytes, cx.peak()));
    if waiting.is_empty() {
        return None;
    }
    let mut all: BTreeMap<(u32, u64), Vec<u32>> = BTreeMap::new();
    let visit = |index, block: &Block| {
        let key = (block.stack, block.bytes.0);
        if waiting.contains_key(&key) && block.origin() == Origin::Alloc {
            all.entry((key.0.0, key.1)).or_default().push(index);
        }
    };
    cx.trace.each_block(2, budget, visit).await;
    let queued = all.values().filter_map(|items| Some((items, per_pass(cx, items)?)));
    let (items, per_pass) = queued.max_by_key(|(items, _)| items.len())?;
    let block = |index: u32| &cx.trace.blocks[index as usize];
    let pair = |(&later, &earlier): (&u32, &u32)| Cut {
        from: block(later).enters,
        to: block(earlier).leaves.min(block(later).leaves),
        bytes: block(later).bytes.0,
    };
    let cuts: Vec<Cut> = items.iter().skip(BOUND).zip(items).map(pair).collect();
    let saving = saving(cx, &cuts, budget).await.bytes;
    if !MATTERS.is_met(saving, cx.peak()) {
        return None;
    }
    let all = items.iter().map(|&index| block(index));
    let live: Vec<&Block> = all.filter(|block| block.is_live_at(peak)).collect();
    let facts = Ahead { waiting: live.len() as u32, per_pass, saving: Bytes(saving) };
    let bytes = live.iter().map(|block| block.bytes.0).sum();
    let events = live.iter().filter_map(|block| block.alloc_event()).map(|e| e.0).collect();
    Some(
        Common {
            basis: Basis::Exact,
            blocks: live.len() as u32,
            parts: parts(live.iter().map(|block| (block.stack, block.bytes.0))),
            ..cx.found(FindingKind::PeakCause, "ahead", bytes, saving, events)
        }
        .with(facts),
    )
}

/// The most items that one pass uses, if these are a queue: `items` are all of one call stack and
/// size, as they were made.
fn per_pass(cx: Evidence<'_>, items: &[u32]) -> Option<u32> {
    let block = |index: u32| &cx.trace.blocks[index as usize];
    let peak = cx.peak_slot();
    let uses: Vec<u32> =
        items.iter().filter_map(|&index| Some(block(index).free_requested()?.0)).collect();
    // A queue gives its items in the order in which it got them.
    let is_in_order = uses.is_sorted()
        && items.iter().skip(uses.len()).all(|&index| block(index).free_requested().is_none());
    if uses.len() < MIN_USED || !is_in_order {
        return None;
    }
    let mut used: BTreeMap<usize, u32> = BTreeMap::new();
    for pass in uses.iter().filter_map(|&event| cx.passes.of_event(event)) {
        *used.entry(pass).or_default() += 1;
    }
    let mut made: BTreeMap<Option<usize>, usize> = BTreeMap::new();
    let waiting = items.iter().map(|&index| block(index)).filter(|block| block.is_live_at(peak));
    for event in waiting.filter_map(Block::alloc_event) {
        *made.entry(cx.passes.of_event(event.0)).or_default() += 1;
    }
    let count: usize = made.values().sum();
    let at_once = made.values().copied().max()?;
    let per_pass = used.values().copied().max().filter(|_| used.len() >= MIN_USED)?;
    // A buffer that is full gets as many as it gives.
    (at_once * 2 >= count && per_pass as usize * 4 <= count).then_some(per_pass)
}

impl Claim for Ahead {
    fn words(&self, scene: &Scene<'_>) -> Words {
        let Self { waiting, per_pass, saving } = self;
        let bytes = scene.bytes();
        let waiting = grouped(u64::from(*waiting));
        let cause = format!("{waiting} items made ahead of use");
        let spot = self.spot(scene);
        Words {
            title: scene.titled(&cause, spot.as_ref(), bytes),
            text: format!(
                "{waiting} items ({bytes}) wait at the peak, and a pass uses {per_pass}, in the \
                 order in which they were made. If each is made when another one is used, the \
                 peak is {saving} lower."
            ),
            action: "Bound the queue (queue.Queue(maxsize=2)), so that its producer waits. Or \
                     move each item to the GPU only when it is used."
                .to_owned(),
        }
    }

    fn why(&self, _scene: &Scene<'_>) -> String {
        format!(
            "each pass uses {}; with {} ahead the peak is {} lower",
            self.per_pass,
            counted(BOUND, "item"),
            self.saving
        )
    }

    fn saving(&self, _scene: &Scene<'_>) -> Option<Bytes> {
        Some(self.saving)
    }
}

#[cfg(test)]
crate::claims::cases::cases! {
    PeakCause,
    fires: ["causes/prefetch.pickle.gz"],
    silent: ["causes/teacher.pickle.gz"]
}
