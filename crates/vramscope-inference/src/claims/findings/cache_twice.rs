//! A cache of keys and values that is made again for each token, while the one before is held.
//!
//! A call site makes as many blocks in each pass, each slightly larger than that of the pass
//! before. Where all of the old ones are live until the last new one is made, the cache exists
//! twice. A cache that drops the old block of each layer is silent: it has one block too many.

use crate::category::Category;
use crate::claims::found::{Common, Found, parts};
use crate::claims::kinds::FindingKind;
use crate::claims::phrase::Sentence;
use crate::claims::scene::{Claim, Scene, Words};
use crate::evidence::{Cut, Evidence, Materiality, saving};
use vramscope_snapshot::StackId;
use vramscope_trace::slicing::{Budget, strides};
use vramscope_trace::{Block, Origin, group_by_key};
use vramscope_units::{Bytes, EventIndex};

/// Old copies with a smaller share of the peak are no claim.
const MATTERS: Materiality = Materiality::percent(10);

/// The fewest passes in a row that make all blocks again.
const MIN_PASSES: usize = 3;

/// How much larger a new block is at most, in percent of the old one.
const MAX_LARGER_PERCENT: u64 = 150;

/// A cache that exists twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheTwice {
    /// Bytes of the old blocks that are live at the peak of `requested_bytes`.
    pub old: Bytes,
    /// Bytes of the new ones.
    pub new: Bytes,
    /// Passes that make the cache again.
    pub passes: usize,
    /// The event that frees the largest of the old blocks; `None` if it stays.
    pub until: Option<EventIndex>,
    /// How much lower the peak of `requested_bytes` is without old blocks.
    pub saving: Bytes,
}

/// An old block, and the one that takes its place.
type Pair<'a> = (&'a Block, &'a Block);

/// The finding about a cache that exists twice at the peak.
pub(super) async fn cache_twice(
    cx: Evidence<'_>,
    budget: &mut Budget,
) -> Option<Found<CacheTwice>> {
    let peak = cx.peak_slot();
    let is_cache = |index: u32| cx.categories.get(index).category == Category::Cache;
    let mut caches: Vec<(StackId, &Block)> = Vec::new();
    for part in strides(cx.trace.blocks.len()) {
        budget.charge(2 * part.len() as u64).await;
        for (index, block) in (part.start as u32..).zip(&cx.trace.blocks[part]) {
            if block.origin() == Origin::Alloc && is_cache(index) {
                caches.push((block.stack, block));
            }
        }
    }
    let mut replaced: Vec<Pair<'_>> = Vec::new();
    let mut passes = 0;
    for (_, made) in group_by_key(caches) {
        budget.charge(8 * made.len() as u64).await;
        let (pairs, again) = replacements(cx, &made);
        if again >= MIN_PASSES {
            replaced.extend(prompt(cx, &made, budget).await);
            replaced.extend(pairs);
            passes = passes.max(again);
        }
    }
    let is_twice = |pair: &&Pair<'_>| pair.0.is_live_at(peak) && pair.1.is_live_at(peak);
    let at_peak: Vec<&Pair<'_>> = replaced.iter().filter(is_twice).collect();
    let sum = |of: &dyn Fn(&Pair<'_>) -> u64| at_peak.iter().map(|pair| of(pair)).sum::<u64>();
    let (old, new) = (sum(&|pair| pair.0.bytes.0), sum(&|pair| pair.1.bytes.0));
    if !MATTERS.is_met(old, cx.peak()) {
        return None;
    }
    let cuts: Vec<Cut> = replaced
        .iter()
        .map(|(old, new)| Cut { from: new.enters + 1, to: old.leaves, bytes: old.bytes.0 })
        .collect();
    let saved = saving(cx, &cuts, budget).await.bytes.min(old);
    if !MATTERS.is_met(saved, cx.peak()) {
        return None;
    }
    let old_blocks = || at_peak.iter().map(|pair| pair.0);
    let until = old_blocks().max_by_key(|block| block.bytes).and_then(Block::free_requested);
    let facts =
        CacheTwice { old: Bytes(old), new: Bytes(new), passes, until, saving: Bytes(saved) };
    // The line that makes the cache again. That of the prompt's keys and values is another one.
    let parts = parts(at_peak.iter().map(|(old, new)| (new.stack, old.bytes.0)));
    let what = format!("cache-{}", cx.hash(parts.first()?.stack));
    let events = old_blocks().filter_map(Block::alloc_event).map(|event| event.0).collect();
    Some(
        Common {
            phase: peak.checked_sub(1).and_then(|event| cx.phase_at(event)),
            blocks: at_peak.len() as u32,
            parts,
            ..cx.found(FindingKind::HeldTooLong, what, old, saved, events)
        }
        .with(facts),
    )
}

/// The pass that makes a block.
fn pass(cx: Evidence<'_>, block: &Block) -> Option<usize> {
    cx.passes.of_event(block.alloc_event()?.0)
}

/// Whether a block takes the place of another: it is slightly larger.
fn is_larger(old: &Block, new: &Block) -> bool {
    let (old, new) = (old.bytes.0, new.bytes.0);
    new > old && new * 100 <= old * MAX_LARGER_PERCENT
}

/// The keys and values of the prompt, which other lines make: `made` takes their place first.
async fn prompt<'a>(cx: Evidence<'a>, made: &[&'a Block], budget: &mut Budget) -> Vec<Pair<'a>> {
    let Some(&first) = made.first() else { return Vec::new() };
    let mut passes = made.chunk_by(|a, b| pass(cx, a) == pass(cx, b));
    let now = passes.next().unwrap_or_default();
    let end = passes.next().map_or(u32::MAX, |next| next[0].enters);
    let earlier = cx.trace.blocks.partition_point(|block| block.enters < first.enters);
    budget.charge(earlier as u64).await;
    let is_before = |(index, block): &(u32, &Block)| {
        block.stack != first.stack
            && block.leaves > first.enters
            && block.leaves <= end
            && (cx.is_result(*index) || cx.categories.get(*index).category == Category::Cache)
    };
    let blocks = (0..).zip(&cx.trace.blocks[..earlier]).filter(is_before);
    let mut before = blocks.map(|(_, block)| block);
    let mut next = before.next();
    let mut pairs = Vec::new();
    for &new in now {
        while let Some(old) = next {
            next = before.next();
            if is_larger(old, new) {
                pairs.push((old, new));
                break;
            }
        }
    }
    pairs
}

/// The blocks of a call stack that a pass replaces by larger ones, and in how many passes all of
/// them are. A block that outlives its second successor is kept, not replaced.
fn replacements<'a>(cx: Evidence<'_>, made: &[&'a Block]) -> (Vec<Pair<'a>>, usize) {
    let passes: Vec<&[&'a Block]> = made.chunk_by(|a, b| pass(cx, a) == pass(cx, b)).collect();
    let (mut pairs, mut again) = (Vec::new(), 0);
    for (at, both) in passes.windows(2).enumerate() {
        let (before, now) = (both[0], both[1]);
        let is_next = pass(cx, now[0]) == pass(cx, before[0]).map(|pass| pass + 1);
        let larger = |(old, new): (&&Block, &&Block)| is_larger(old, new);
        // The window may cut the last pass off.
        let is_whole = now.len() == before.len() || at + 2 == passes.len();
        if !is_next || !is_whole || !before.iter().zip(now).all(larger) {
            continue;
        }
        let next = passes.get(at + 2).and_then(|next| next.first());
        let is_dropped = |old: &&Block| next.is_none_or(|next| old.leaves <= next.enters);
        let dropped = before.iter().zip(now).filter(|(old, _)| is_dropped(old));
        let before_len = pairs.len();
        pairs.extend(dropped.map(|(old, new)| (*old, *new)));
        again += usize::from((pairs.len() - before_len) * 2 > before.len());
    }
    (pairs, again)
}

impl Claim for CacheTwice {
    fn words(&self, scene: &Scene<'_>) -> Words {
        let Self { old, new, passes, until, saving } = self;
        let site = scene.main_site();
        let until = until.map_or_else(String::new, |event| format!(", until {event}"));
        Words {
            title: Sentence::new("Old KV cache kept")
                .and(scene.at(self.spot(scene).as_ref()))
                .text(" while the new one is made: ")
                .event(old.brief(), scene.first_event()),
            text: format!(
                "{site} makes all keys and values again in each of {passes} passes, slightly \
                 larger, while those of the pass before are held{until}. At the peak {old} of old \
                 ones are live beside {new} of new ones. Without the old ones the peak is {saving} \
                 lower."
            ),
            action: "Write new keys and values to a cache of fixed length (StaticCache in \
                     transformers). Or drop the old keys and values of each layer as soon as the \
                     new ones are made: no tuple or list holds them any more."
                .to_owned(),
        }
    }

    fn why(&self, _scene: &Scene<'_>) -> String {
        format!(
            "two copies of the cache live: each pass makes all keys and values again, and holds \
             the old ones until it is over; without them the peak is {} lower",
            self.saving
        )
    }

    fn saving(&self, _scene: &Scene<'_>) -> Option<Bytes> {
        Some(self.saving)
    }
}

#[cfg(test)]
crate::claims::cases::cases! {
    HeldTooLong,
    fires: ["causes/cache_twice.pickle.gz"],
    silent: ["causes/cache_twice_cured.pickle.gz"]
}
