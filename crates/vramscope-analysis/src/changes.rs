//! Who enters and leaves at each slot.
//!
//! Nearly every slot has one change or none, so where the changes of a slot begin is counted: a bit
//! a slot says whether there is one, and every 64 slots it is said how many came before. Where a
//! slot has several (what is there before the window, events that were lost), the beginnings of all
//! 64 are listed.

use std::ops::Range;

/// A block enters or leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change(u32);

impl Change {
    const LEAVES: u32 = 1 << 31;

    /// Index of the block.
    pub fn block(self) -> u32 {
        self.0 & !Self::LEAVES
    }

    /// Whether it enters (or leaves).
    pub fn enters(self) -> bool {
        self.0 & Self::LEAVES == 0
    }
}

/// All changes of a trace, in the order of slots.
#[derive(Clone, Debug)]
pub(crate) struct Changes {
    all: Vec<Change>,
    words: Vec<Word>,
    /// Where the changes of each slot begin, for words that have a slot with several.
    listed: Vec<[u32; WORD]>,
}

/// 64 slots.
#[derive(Clone, Copy, Debug)]
struct Word {
    /// Which of them have a change.
    bits: u64,
    /// Where the changes of the first begin.
    start: u32,
    /// Where the beginnings of all of them are listed, or [`COUNTED`].
    listed: u32,
}

const WORD: usize = u64::BITS as usize;
/// No slot has several changes.
const COUNTED: u32 = u32::MAX;

impl Changes {
    /// Those of blocks which live in these slots. In a slot those that leave come first: where a
    /// lost free ends a block and a new one takes its place, the total must not count both.
    pub(crate) fn new(lives: &(impl Iterator<Item = Range<u32>> + Clone), slots: usize) -> Self {
        // The entry behind a slot's own counts where its next change goes: it begins at the slot's
        // start, and ends at its end, which is the start of the next.
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
        Self::counted(all, &starts)
    }

    /// Keeps of these beginnings what is needed; that of a slot behind the last is the end.
    fn counted(all: Vec<Change>, starts: &[u32]) -> Self {
        let mut listed = Vec::new();
        let end = all.len() as u32;
        let words = (0..starts.len() - 1).step_by(WORD).map(|first| {
            let mut word = Word { bits: 0, start: starts[first], listed: COUNTED };
            let mut most = 0;
            for (slot, pair) in starts[first..].windows(2).take(WORD).enumerate() {
                let count = pair[1] - pair[0];
                most = most.max(count);
                word.bits |= u64::from(count > 0) << slot;
            }
            if most > 1 {
                word.listed = listed.len() as u32;
                listed.push(std::array::from_fn(|slot| {
                    starts.get(first + slot).copied().unwrap_or(end)
                }));
            }
            word
        });
        let words = words.collect();
        Self { all, words, listed }
    }

    /// Those of each of so many slots in turn.
    pub(crate) fn each(&self, slots: usize) -> impl Iterator<Item = &[Change]> {
        let mut start = 0;
        (0..slots).map(move |slot| {
            let word = self.words[slot / WORD];
            let end = match word.listed {
                COUNTED => start + usize::from(word.has(slot % WORD)),
                _ => self.start(slot + 1),
            };
            &self.all[std::mem::replace(&mut start, end)..end]
        })
    }

    /// Those of a slot.
    #[inline]
    pub(crate) fn at(&self, slot: usize) -> &[Change] {
        let word = self.words[slot / WORD];
        if word.listed == COUNTED {
            let start = word.count(slot % WORD) as usize;
            &self.all[start..start + usize::from(word.has(slot % WORD))]
        } else {
            self.within(slot..slot + 1)
        }
    }

    /// Those of a range of slots, in order.
    #[inline]
    pub(crate) fn within(&self, slots: Range<usize>) -> &[Change] {
        &self.all[self.start(slots.start)..self.start(slots.end)]
    }

    /// Where those of a slot begin.
    #[inline]
    fn start(&self, slot: usize) -> usize {
        let word = self.words[slot / WORD];
        (match word.listed {
            COUNTED => word.count(slot % WORD),
            listed => self.listed[listed as usize][slot % WORD],
        }) as usize
    }
}

impl Word {
    #[inline]
    fn has(self, slot: usize) -> bool {
        self.bits >> slot & 1 != 0
    }

    /// Where the changes of one of its slots begin, if none has several.
    #[inline]
    fn count(self, slot: usize) -> u32 {
        self.start + (self.bits & ((1 << slot) - 1)).count_ones()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Blocks with a life in so many slots: mostly one that enters after the one before, now and
    /// then several at once.
    fn lives() -> impl Strategy<Value = (usize, Vec<Range<u32>>)> {
        (1..400u32).prop_flat_map(|slots| {
            let start = prop_oneof![1 => Just(0), 8 => 0..slots, 1 => Just(slots - 1), 1 => Just(slots / 2)];
            let life =
                start.prop_flat_map(move |start| (start + 1..slots + 2).prop_map(move |end| start..end.min(slots)));
            (Just(slots as usize), proptest::collection::vec(life, 0..300))
        })
    }

    proptest! {
        #[test]
        fn each_slot_has_its_changes((slots, lives) in lives()) {
            let changes = Changes::new(&lives.iter().cloned(), slots);
            let mut all = Vec::new();
            for slot in 0..slots {
                let with = |at: fn(&Range<u32>) -> u32, kind: u32| {
                    let there = (0u32..).zip(&lives).filter(move |(_, life)| at(life) == slot as u32);
                    there.map(move |(block, _)| Change(block | kind))
                };
                let here: Vec<Change> = with(|life| life.end, Change::LEAVES).chain(with(|life| life.start, 0)).collect();
                prop_assert_eq!(changes.at(slot), &here[..], "slot {}", slot);
                prop_assert_eq!(changes.within(slot..slot + 1), &here[..]);
                all.extend(here);
                prop_assert_eq!(changes.within(0..slot + 1), &all[..]);
            }
            prop_assert_eq!(changes.within(0..slots), &all[..]);
            prop_assert_eq!(changes.each(slots).flatten().collect::<Vec<_>>(), all.iter().collect::<Vec<_>>());
            prop_assert!(changes.each(slots).enumerate().all(|(slot, here)| here == changes.at(slot)));
        }
    }

    #[test]
    fn beginnings_are_listed_only_where_a_slot_has_several() {
        let lives = [0..70, 0..300, 65..200, 130..400, 131..200];
        let changes = Changes::new(&lives.into_iter(), 400);
        let listed: Vec<bool> = changes.words.iter().map(|word| word.listed != COUNTED).collect();
        // Two enter at slot 0, and two leave at slot 200.
        assert_eq!(listed, [true, false, false, true, false, false, false]);
        assert_eq!(changes.at(200), [Change(2 | Change::LEAVES), Change(4 | Change::LEAVES)]);
    }
}
