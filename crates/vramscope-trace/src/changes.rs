//! The blocks that enter and leave at each slot.
//!
//! All changes are in one list, in slot order. The index of a slot into that list is a rank bitmap,
//! because nearly every slot has at most one change. One bit per slot marks a change. Each word of
//! 64 slots stores the index of its first change, and the number of set bits before a slot gives
//! the rest. A word stores explicit indices where a slot has several changes. That happens in slot
//! 0 (all blocks from before the window) and where events were lost.

use std::ops::Range;

/// A block that enters or leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change(u32);

impl Change {
    const LEAVES: u32 = 1 << 31;

    /// Index into [`Trace::blocks`](crate::Trace::blocks).
    pub fn block(self) -> u32 {
        self.0 & !Self::LEAVES
    }

    /// Whether the block enters. Otherwise it leaves.
    pub fn enters(self) -> bool {
        self.0 & Self::LEAVES == 0
    }
}

/// All changes of a trace, in slot order.
#[derive(Clone, Debug)]
pub(crate) struct Changes {
    all: Vec<Change>,
    words: Vec<Word>,
    /// Index into `all` of every slot, for words in which a slot has several changes.
    explicit_offsets: Vec<[u32; WORD_SLOTS]>,
}

/// The index of 64 slots.
#[derive(Clone, Copy, Debug)]
struct Word {
    /// One bit per slot, lowest first: whether the slot has a change.
    bits: u64,
    /// Index into [`Changes::all`] of the word's first change.
    start: u32,
    /// Index into [`Changes::explicit_offsets`], or [`RANKED`].
    explicit: u32,
}

const WORD_SLOTS: usize = u64::BITS as usize;
/// [`Word::explicit`] of a word in which no slot has several changes. The rank of a slot's bit
/// gives its index.
const RANKED: u32 = u32::MAX;

impl Changes {
    /// Builds the changes of blocks from the slots in which each block is live.
    ///
    /// Within a slot, leaving blocks come before entering ones. When a lost free ends a block and a
    /// new block takes its address, the running total must not count both.
    pub(crate) fn new(lives: &(impl Iterator<Item = Range<u32>> + Clone), slots: usize) -> Self {
        // A counting sort. While changes are added, `starts[slot + 1]` is the index of the slot's
        // next change. It starts at the slot's first index and ends at the next slot's first index.
        let mut starts = vec![0u32; slots + 2];
        for life in lives.clone() {
            starts[life.start as usize + 2] += 1;
            if (life.end as usize) < slots {
                starts[life.end as usize + 2] += 1;
            }
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let mut all = vec![Change(0); sum as usize];
        let mut add = |change: Change, slot: u32| {
            let at = &mut starts[slot as usize + 1];
            all[*at as usize] = change;
            *at += 1;
        };
        for (block, life) in (0..).zip(lives.clone()) {
            if (life.end as usize) < slots {
                add(Change(block | Change::LEAVES), life.end);
            }
        }
        for (block, life) in (0..).zip(lives.clone()) {
            add(Change(block), life.start);
        }
        Self::with_starts(all, &starts)
    }

    /// Compresses `starts`, the index into `all` of each slot's first change. An entry behind the
    /// last slot holds the end of `all`.
    fn with_starts(all: Vec<Change>, starts: &[u32]) -> Self {
        let mut explicit_offsets = Vec::new();
        let end = all.len() as u32;
        let words = (0..starts.len() - 1).step_by(WORD_SLOTS).map(|first| {
            let mut word = Word { bits: 0, start: starts[first], explicit: RANKED };
            let mut max_count = 0;
            for (slot, pair) in starts[first..].windows(2).take(WORD_SLOTS).enumerate() {
                let count = pair[1] - pair[0];
                max_count = max_count.max(count);
                word.bits |= u64::from(count > 0) << slot;
            }
            if max_count > 1 {
                word.explicit = explicit_offsets.len() as u32;
                explicit_offsets.push(std::array::from_fn(|slot| {
                    starts.get(first + slot).copied().unwrap_or(end)
                }));
            }
            word
        });
        let words = words.collect();
        Self { all, words, explicit_offsets }
    }

    /// The changes of each of the first `slots` slots, in order.
    pub(crate) fn each(&self, slots: usize) -> impl Iterator<Item = &[Change]> {
        let mut start = 0;
        (0..slots).map(move |slot| {
            let word = self.words[slot / WORD_SLOTS];
            let end = match word.explicit {
                RANKED => start + usize::from(word.has(slot % WORD_SLOTS)),
                _ => self.start(slot + 1),
            };
            &self.all[std::mem::replace(&mut start, end)..end]
        })
    }

    /// The changes of a slot.
    #[inline]
    pub(crate) fn at(&self, slot: usize) -> &[Change] {
        let word = self.words[slot / WORD_SLOTS];
        if word.explicit == RANKED {
            let start = word.rank(slot % WORD_SLOTS) as usize;
            &self.all[start..start + usize::from(word.has(slot % WORD_SLOTS))]
        } else {
            self.within(slot..slot + 1)
        }
    }

    /// The changes of a range of slots, in order.
    #[inline]
    pub(crate) fn within(&self, slots: Range<usize>) -> &[Change] {
        &self.all[self.start(slots.start)..self.start(slots.end)]
    }

    /// Index into `all` of a slot's first change.
    #[inline]
    fn start(&self, slot: usize) -> usize {
        let word = self.words[slot / WORD_SLOTS];
        (match word.explicit {
            RANKED => word.rank(slot % WORD_SLOTS),
            explicit => self.explicit_offsets[explicit as usize][slot % WORD_SLOTS],
        }) as usize
    }
}

impl Word {
    /// Whether a slot of the word has a change.
    #[inline]
    fn has(self, slot: usize) -> bool {
        self.bits >> slot & 1 != 0
    }

    /// Index into [`Changes::all`] of a slot's change, in a [`RANKED`] word.
    #[inline]
    fn rank(self, slot: usize) -> u32 {
        self.start + (self.bits & ((1 << slot) - 1)).count_ones()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A number of slots, and the lives of blocks in them. Several blocks may enter at the same
    /// slot, mostly at the first, the middle and the last one.
    fn lives() -> impl Strategy<Value = (usize, Vec<Range<u32>>)> {
        (1..400u32).prop_flat_map(|slots| {
            let start = prop_oneof![
                1 => Just(0),
                8 => 0..slots,
                1 => Just(slots - 1),
                1 => Just(slots / 2),
            ];
            let life = start.prop_flat_map(move |start| {
                (start + 1..slots + 2).prop_map(move |end| start..end.min(slots))
            });
            (Just(slots as usize), proptest::collection::vec(life, 0..300))
        })
    }

    proptest! {
        #[test]
        fn every_accessor_returns_the_changes_of_its_slots((slots, lives) in lives()) {
            let changes = Changes::new(&lives.iter().cloned(), slots);
            let mut all = Vec::new();
            for slot in 0..slots {
                let with = |at: fn(&Range<u32>) -> u32, kind: u32| {
                    let blocks = (0u32..).zip(&lives);
                    let here = blocks.filter(move |(_, life)| at(life) == slot as u32);
                    here.map(move |(block, _)| Change(block | kind))
                };
                let leaving = with(|life| life.end, Change::LEAVES);
                let expected: Vec<Change> = leaving.chain(with(|life| life.start, 0)).collect();
                prop_assert_eq!(changes.at(slot), &expected[..], "slot {}", slot);
                prop_assert_eq!(changes.within(slot..slot + 1), &expected[..]);
                all.extend(expected);
                prop_assert_eq!(changes.within(0..slot + 1), &all[..]);
            }
            prop_assert_eq!(changes.within(0..slots), &all[..]);
            let each: Vec<Change> = changes.each(slots).flatten().copied().collect();
            prop_assert_eq!(each, all);
            let mut each = changes.each(slots).enumerate();
            prop_assert!(each.all(|(slot, here)| here == changes.at(slot)));
        }
    }

    #[test]
    fn offsets_are_explicit_only_in_words_with_several_changes_in_a_slot() {
        let lives = [0..70, 0..300, 65..200, 130..400, 131..200];
        let changes = Changes::new(&lives.into_iter(), 400);
        let explicit: Vec<bool> =
            changes.words.iter().map(|word| word.explicit != RANKED).collect();
        // Two blocks enter at slot 0, and two leave at slot 200.
        assert_eq!(explicit, [true, false, false, true, false, false, false]);
        assert_eq!(changes.at(200), [Change(2 | Change::LEAVES), Change(4 | Change::LEAVES)]);
    }
}
