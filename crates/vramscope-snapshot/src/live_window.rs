//! Selects the rows of a trace that a range of its events needs.
//!
//! Blocks that live wholly before or wholly after the range are dropped with all their events, as
//! soon as that is known. All events inside the range stay, and so do all events of blocks that are
//! live in some state of the range. So each state in the range equals that of the whole trace: the
//! same blocks with the same sizes and stacks. Segment events stay, because they are few and may
//! cancel in part. So does the event after a reserved segment, because it tells the segment's kind.
//!
//! Events are assigned to blocks by the rules of vramscope-trace, also in incomplete traces. If
//! an alloc is lost, its block counts as live since the free before it completed. Dropping that
//! completion after the range would make the block live inside the range. So one completion per
//! address is kept where the final segments have an active block, or are not known yet.

use crate::events::Action;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Before,
    Within,
    After,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum RowFate {
    Dropped,
    /// Kept, unless its block turns out to be outside the range.
    Kept,
    /// Kept in any case: inside the range, or needed by another kept row.
    Pinned,
}

/// No row.
const NO_ROW: u32 = u32::MAX;

/// A live block, and the rows of its events.
#[derive(Clone, Copy)]
struct LiveBlock {
    alloc: u32,
    request: u32,
    phase: Phase,
    /// Whether its events stay wherever it ends.
    pinned: bool,
}

/// The state of an address.
#[derive(Clone, Copy)]
struct AddressState {
    live: Option<LiveBlock>,
    /// The row of a free request without a live block.
    request: u32,
}

/// The filter of one trace. Rows are counted from the trace's first row.
#[derive(Default)]
pub(crate) struct LiveWindow {
    pub(crate) seen: u32,
    /// The number of segment events among `seen`.
    pub(crate) segments: u32,
    /// The number of rows in the table before the range.
    pub(crate) before: u32,
    fates: Vec<RowFate>,
    /// The number of dropped rows that are still in the table.
    pub(crate) dropped: usize,
    /// The first of them.
    first_dropped: Option<u32>,
    addresses: FxHashMap<u64, AddressState>,
    /// Address keys with a completed free after the range.
    completed_after: FxHashSet<u64>,
    /// Per address key, the rows of its first block that lived wholly after the range.
    first_after: FxHashMap<u64, [u32; 3]>,
    /// Whether the event before reserved a segment, and was not after the range.
    after_reserve: bool,
}

/// A hash key of an address, whose low bits are nearly always zero. The same as in
/// vramscope-trace.
pub(crate) fn address_key(address: u64) -> u64 {
    address.rotate_right(9)
}

impl LiveWindow {
    /// A window that keeps no rows, after `seen` events.
    pub(crate) fn counting(seen: u32) -> Self {
        Self { seen, ..Self::default() }
    }

    /// The number of rows in the table.
    pub(crate) fn rows(&self) -> u32 {
        self.fates.len() as u32
    }

    /// The rows that [`LiveWindow::renumber`] moves or drops.
    pub(crate) fn moving_rows(&self) -> Range<u32> {
        self.first_dropped.unwrap_or(self.rows())..self.rows()
    }

    /// Whether to remove dropped rows from the table now. Either their number outweighs the rows to
    /// move and the addresses to renumber, or the range has just begun: its rows all stay, and
    /// would be moved later. `before` is `seen` at the last check.
    pub(crate) fn should_compact(&self, range: &Range<u32>, before: u32) -> bool {
        let begins = before < range.start && self.seen >= range.start;
        begins
            || self.dropped
                > usize::midpoint(self.moving_rows().len(), self.addresses.len()).max(4096)
    }

    /// Whether a row is not dropped.
    pub(crate) fn keeps(&self, row: u32) -> bool {
        self.fates.get(row as usize) != Some(&RowFate::Dropped)
    }

    fn drop_row(&mut self, row: u32) {
        if let Some(fate) = self.fates.get_mut(row as usize)
            && *fate == RowFate::Kept
        {
            *fate = RowFate::Dropped;
            self.dropped += 1;
            self.first_dropped = Some(self.first_dropped.map_or(row, |first| first.min(row)));
        }
    }

    fn drop_rows(&mut self, rows: impl IntoIterator<Item = u32>) {
        for row in rows {
            self.drop_row(row);
        }
    }

    fn is_pinned(&self, row: u32) -> bool {
        self.fates.get(row as usize) == Some(&RowFate::Pinned)
    }

    pub(crate) fn observe(
        &mut self,
        range: &Range<u32>,
        active: Option<&FxHashSet<u64>>,
        action: Action,
        address: u64,
    ) {
        let phase = match self.seen {
            event if event < range.start => Phase::Before,
            event if event < range.end => Phase::Within,
            _ => Phase::After,
        };
        self.seen += 1;
        self.before += u32::from(phase == Phase::Before);
        let is_segment = (Action::SEGMENT_ALLOC..=Action::SEGMENT_UNMAP).contains(&action);
        self.segments += u32::from(is_segment);
        let pinned = self.after_reserve || is_segment;
        let row = self.fates.len() as u32;
        self.fates.push(if pinned || phase == Phase::Within {
            RowFate::Pinned
        } else {
            RowFate::Kept
        });
        self.after_reserve = match action {
            Action::SEGMENT_ALLOC | Action::SEGMENT_MAP => phase != Phase::After,
            _ => self.after_reserve && is_segment,
        };
        match action {
            _ if is_segment => {}
            Action::ALLOC => self.alloc(address_key(address), row, phase, pinned),
            Action::FREE_REQUESTED => self.request(address_key(address), row, pinned),
            Action::FREE_COMPLETED | Action::FREE => {
                let key = address_key(address);
                if action == Action::FREE {
                    self.request(key, row, pinned);
                }
                let may_return = active.is_none_or(|active| active.contains(&key));
                self.complete(key, row, phase, pinned, may_return);
            }
            _ => self.drop_row(row),
        }
    }

    fn alloc(&mut self, key: u64, row: u32, phase: Phase, mut pinned: bool) {
        let before = self.addresses.get(&key).copied();
        if let Some(place) = before {
            self.drop_row(place.request);
        }
        // A free is lost, so the old block ends here. Its end has to stay if the block stays.
        if let Some(old) = before.and_then(|place| place.live) {
            if old.is_outside(phase) {
                self.drop_rows([old.alloc, old.request]);
            } else {
                pinned = true;
            }
        }
        self.addresses.insert(
            key,
            AddressState {
                live: Some(LiveBlock { alloc: row, request: NO_ROW, phase, pinned }),
                request: NO_ROW,
            },
        );
    }

    fn request(&mut self, key: u64, row: u32, pinned: bool) {
        let place =
            self.addresses.entry(key).or_insert(AddressState { live: None, request: NO_ROW });
        let before = match &mut place.live {
            Some(life) => {
                life.pinned |= pinned;
                std::mem::replace(&mut life.request, row)
            }
            None => std::mem::replace(&mut place.request, row),
        };
        // Only the last request counts.
        self.drop_row(before);
    }

    /// A completed free. `may_return`: the address may be active at the end although the alloc is
    /// lost.
    fn complete(&mut self, key: u64, row: u32, phase: Phase, pinned: bool, may_return: bool) {
        let place = self.addresses.remove(&key);
        let again = phase == Phase::After && !self.completed_after.insert(key);
        if let Some(life) = place.and_then(|p| p.live) {
            let rows = [life.alloc, life.request, row];
            if pinned || !life.is_outside(phase) {
            } else if phase == Phase::After && !again && may_return {
                self.first_after.insert(key, rows);
            } else {
                self.drop_rows(rows);
            }
            return;
        }
        // The block is older than the trace, or its alloc is lost. It is live since the completed
        // free before, or always.
        let request = place.map_or(NO_ROW, |p| p.request);
        if (phase == Phase::Before || again) && !pinned && !self.is_pinned(request) {
            self.drop_rows([request, row]);
        }
    }

    /// Ends the trace. Drops the blocks kept for a lost alloc, unless it was lost.
    pub(crate) fn finish(&mut self, active: &FxHashSet<u64>) {
        let is_live = |key| self.addresses.get(key).is_some_and(|place| place.live.is_some());
        let unneeded =
            self.first_after.iter().filter(|(key, _)| is_live(key) || !active.contains(key));
        let rows: Vec<u32> = unneeded.flat_map(|(_, &rows)| rows).collect();
        self.drop_rows(rows);
        self.first_after.clear();
    }

    /// Whether the address is active at the end, but has no alloc since a free after the range.
    pub(crate) fn is_lost(&self, key: u64) -> bool {
        let is_live = self.addresses.get(&key).is_some_and(|place| place.live.is_some());
        self.completed_after.contains(&key) && !is_live
    }

    /// Renumbers the rows after the dropped ones were removed from the table.
    pub(crate) fn renumber(&mut self) {
        let moving = self.moving_rows();
        let (mut next, mut numbers) = (moving.start, Vec::with_capacity(moving.len()));
        for row in moving.clone() {
            let fate = self.fates[row as usize];
            let is_kept = fate != RowFate::Dropped;
            numbers.push(if is_kept { next } else { NO_ROW });
            if is_kept {
                self.fates[next as usize] = fate;
                next += 1;
            }
            if row + 1 == self.before {
                self.before = next;
            }
        }
        self.fates.truncate(next as usize);
        (self.dropped, self.first_dropped) = (0, None);
        let number = |row: &mut u32| {
            if let Some(place) = row.checked_sub(moving.start) {
                *row = numbers.get(place as usize).copied().unwrap_or(NO_ROW);
            }
        };
        let rows = self.addresses.values_mut().flat_map(|AddressState { live, request }| {
            let of_life = live.as_mut().map(|life| [&mut life.alloc, &mut life.request]);
            of_life.into_iter().flatten().chain([request])
        });
        rows.for_each(number);
        self.first_after.values_mut().flatten().for_each(number);
    }

    pub(crate) fn memory(&self) -> usize {
        self.fates.capacity()
            + self.addresses.capacity() * size_of::<(u64, AddressState)>()
            + self.completed_after.capacity() * size_of::<u64>()
            + self.first_after.capacity() * size_of::<(u64, [u32; 3])>()
    }
}

impl LiveBlock {
    /// Whether a block that ends in this phase is live in no state of the range.
    fn is_outside(&self, end: Phase) -> bool {
        !self.pinned && self.phase == end && end != Phase::Within
    }
}
