//! A set of events that finds the neighbors of an event without a search.

/// Events per word.
const WORD: u32 = u64::BITS;

/// Events in ascending order. A word of 64 bits covers 64 events, so a set takes a quarter of a
/// byte for each event of the window.
#[derive(Default)]
pub(super) struct EventSet {
    words: Vec<u64>,
    /// The last event before the first event of each word.
    before: Vec<Option<u32>>,
    /// The first event after the last event of each word.
    after: Vec<Option<u32>>,
    first: Option<u32>,
    last: Option<u32>,
}

impl EventSet {
    /// Adds an event. No later one may be in the set. Neighbors are known after [`Self::finish`].
    pub(super) fn push(&mut self, event: u32) {
        let word = (event / WORD) as usize;
        while self.words.len() <= word {
            self.words.push(0);
            self.before.push(self.last);
        }
        self.words[word] |= 1 << (event % WORD);
        self.first.get_or_insert(event);
        self.last = Some(event);
    }

    /// Prepares [`Self::next_after`].
    pub(super) fn finish(&mut self) {
        self.after = vec![None; self.words.len()];
        let mut next = None;
        for (after, (at, word)) in self.after.iter_mut().zip(self.words.iter().enumerate()).rev() {
            *after = next;
            if *word != 0 {
                next = Some(at as u32 * WORD + word.trailing_zeros());
            }
        }
    }

    /// The first event.
    pub(super) fn first(&self) -> Option<u32> {
        self.first
    }

    /// The last event before `event`.
    pub(super) fn last_before(&self, event: u32) -> Option<u32> {
        let at = (event / WORD) as usize;
        let Some(word) = self.words.get(at) else { return self.last };
        let below = word & ((1 << (event % WORD)) - 1);
        let within = below.checked_ilog2().map(|bit| at as u32 * WORD + bit);
        within.or(self.before[at])
    }

    /// The first event after `event`.
    pub(super) fn next_after(&self, event: u32) -> Option<u32> {
        let at = (event / WORD) as usize;
        let word = self.words.get(at)?;
        let above = word & (u64::MAX << (event % WORD) << 1);
        if above == 0 {
            return self.after[at];
        }
        Some(at as u32 * WORD + above.trailing_zeros())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbors_are_those_of_a_sorted_list() {
        for events in [
            &[][..],
            &[0],
            &[63],
            &[64],
            &[5, 6, 63, 64, 65, 127, 128],
            &[1, 2, 190, 191, 192, 700],
        ] {
            let mut set = EventSet::default();
            for &event in events {
                set.push(event);
            }
            set.finish();
            assert_eq!(set.first(), events.first().copied());
            for event in (0..1000).chain([u32::MAX]) {
                let before = events.iter().rev().find(|&&of| of < event).copied();
                let after = events.iter().find(|&&of| of > event).copied();
                let found = (set.last_before(event), set.next_after(event));
                assert_eq!(found, (before, after), "{event} in {events:?}");
            }
        }
    }
}
