//! A set of free address ranges.

use rustc_hash::FxHashSet;
use std::collections::BTreeMap;

/// Free address ranges, indexed by address and by size.
#[derive(Default)]
pub(super) struct Gaps {
    /// End of each range, by its start.
    ranges: BTreeMap<u64, u64>,
    /// Number of ranges by size in bytes.
    sizes: BTreeMap<u64, u32>,
    /// Starts of ordinary segments. Free ranges never merge across them.
    walls: FxHashSet<u64>,
    /// Sum of all ranges, in bytes.
    pub(super) total: u64,
}

impl Gaps {
    /// Adds a newly reserved range. Free memory below does not merge into an ordinary segment.
    pub(super) fn reserve(&mut self, from: u64, to: u64, is_expandable: bool) {
        if !is_expandable {
            self.walls.insert(from);
        }
        self.add(from, to);
    }

    /// Forgets that an ordinary segment starts at `from`.
    pub(super) fn remove_wall(&mut self, from: u64) {
        self.walls.remove(&from);
    }

    /// Size of the largest range, in bytes.
    pub(super) fn largest(&self) -> u64 {
        self.sizes.last_key_value().map_or(0, |(&size, _)| size)
    }

    /// Whether a range starts at `from` that would merge with a free range below.
    pub(super) fn can_merge_below(&self, from: u64) -> bool {
        self.ranges.contains_key(&from) && !self.walls.contains(&from)
    }

    fn insert(&mut self, from: u64, to: u64) {
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

    /// The last range that starts before an address.
    fn before(&self, address: u64) -> Option<(u64, u64)> {
        self.ranges.range(..address).next_back().map(|(&start, &end)| (start, end))
    }

    /// Marks `[from, to)` as free, and merges it with its neighbors.
    pub(super) fn add(&mut self, mut from: u64, mut to: u64) {
        let mut before = self.before(to);
        if before.is_some_and(|(_, end)| end > from) {
            // In an inconsistent trace a part of the range is already free.
            self.remove(from, to);
            before = self.before(from);
        }
        if !self.walls.contains(&to)
            && let Some(end) = self.take(to)
        {
            to = end;
        }
        if let Some((start, end)) = before
            && end == from
            && !self.walls.contains(&from)
        {
            self.take(start);
            from = start;
        }
        self.insert(from, to);
    }

    /// Marks `[from, to)` as not free.
    pub(super) fn remove(&mut self, from: u64, to: u64) {
        let first = self.ranges.range(..=from).next_back().map(|(&start, &end)| (start, end));
        if let Some((start, end)) = first
            && from < to
            && to <= end
        {
            // One range has it all.
            self.take(start);
            self.insert(start, from);
            self.insert(to, end);
            return;
        }
        let first = self.before(from).filter(|&(_, end)| end > from).map(|(start, _)| start);
        let starts: Vec<u64> = first
            .into_iter()
            .chain(self.ranges.range(from..to.max(from)).map(|(&s, _)| s))
            .collect();
        for start in starts {
            let Some(end) = self.take(start) else { continue };
            self.insert(start, from.min(end));
            self.insert(to.max(start), end);
        }
    }
}
