//! Free ranges of addresses.

use rustc_hash::FxHashSet;
use std::collections::BTreeMap;

/// Free ranges of addresses, and how many there are of each size.
#[derive(Default)]
pub(super) struct Gaps {
    ranges: BTreeMap<u64, u64>,
    sizes: BTreeMap<u64, u32>,
    /// Starts of segments of their own: nothing merges across.
    walls: FxHashSet<u64>,
    pub(super) total: u64,
}

impl Gaps {
    /// New free memory. If it is a segment of its own, nothing merges into it from below.
    pub(super) fn reserve(&mut self, from: u64, to: u64, is_expandable: bool) {
        if !is_expandable {
            self.walls.insert(from);
        }
        self.add(from, to);
    }

    /// What began here is gone.
    pub(super) fn forget(&mut self, from: u64) {
        self.walls.remove(&from);
    }

    /// The largest range.
    pub(super) fn largest(&self) -> u64 {
        self.sizes.last_key_value().map_or(0, |(&size, _)| size)
    }

    /// Whether a range begins here that would merge with what is free below.
    pub(super) fn is_open_at(&self, from: u64) -> bool {
        self.ranges.contains_key(&from) && !self.walls.contains(&from)
    }

    fn put(&mut self, from: u64, to: u64) {
        if from < to {
            self.ranges.insert(from, to);
            *self.sizes.entry(to - from).or_default() += 1;
            self.total += to - from;
        }
    }

    fn take(&mut self, from: u64) -> Option<u64> {
        let to = self.ranges.remove(&from)?;
        self.total -= to - from;
        if let Some(count) = self.sizes.get_mut(&(to - from)) {
            *count -= 1;
            if *count == 0 {
                self.sizes.remove(&(to - from));
            }
        }
        Some(to)
    }

    /// This is free now.
    pub(super) fn add(&mut self, mut from: u64, mut to: u64) {
        // In an untidy trace it may be there already.
        self.remove(from, to);
        if !self.walls.contains(&to)
            && let Some(end) = self.take(to)
        {
            to = end;
        }
        let before = self.ranges.range(..from).next_back().map(|(&start, &end)| (start, end));
        if let Some((start, end)) = before
            && end == from
            && !self.walls.contains(&from)
        {
            self.take(start);
            from = start;
        }
        self.put(from, to);
    }

    /// This is free no more.
    pub(super) fn remove(&mut self, from: u64, to: u64) {
        let first = self
            .ranges
            .range(..from)
            .next_back()
            .filter(|&(_, &end)| end > from)
            .map(|(&start, _)| start);
        let starts: Vec<u64> = first
            .into_iter()
            .chain(self.ranges.range(from..to.max(from)).map(|(&s, _)| s))
            .collect();
        for start in starts {
            let Some(end) = self.take(start) else { continue };
            self.put(start, from.min(end));
            self.put(to.max(start), end);
        }
    }
}
