//! A range of a trace's events, and what was live around it: the rest of the trace leaves no row.
//!
//! Blocks that live wholly before the range or wholly after it are dropped as soon as that is
//! known, with all of their events; everything inside stays, and so does every event of a block
//! that is live in some state of the range. So each state in the range is that of the whole trace:
//! the same blocks with the same sizes and stacks. Segment events stay (they are few, and cancel in
//! parts), as does what follows a segment that is reserved, since it tells the segment's kind.
//!
//! The rules by which events belong to blocks are those of vramscope-analysis, also for untidy
//! traces. An alloc that was lost counts from the completion before it: such a completion may not
//! be dropped after the range, or the block would be live in it. One an address is kept where the
//! final segments have an active block, or are not known yet.

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
    /// As far as is known.
    Kept,
    /// Inside the range, or needed whatever comes.
    Pinned,
}

/// No row.
const NO_ROW: u32 = u32::MAX;

/// A block that is live.
#[derive(Clone, Copy)]
struct LiveBlock {
    alloc: u32,
    request: u32,
    phase: Phase,
    /// Its events stay, wherever it ends.
    pinned: bool,
}

/// What an address is up to.
#[derive(Clone, Copy)]
struct AddressState {
    live: Option<LiveBlock>,
    /// A request that met no live block.
    request: u32,
}

/// One trace on its way through. RowCounts are counted from the trace's first.
#[derive(Default)]
pub(crate) struct LiveWindow {
    pub(crate) seen: u32,
    /// How many of those were of segments.
    pub(crate) segments: u32,
    /// RowCounts before the range that are in the table.
    pub(crate) before: u32,
    marks: Vec<RowFate>,
    /// How many of the rows are to go.
    pub(crate) dropped: usize,
    /// The first of those.
    first_dropped: Option<u32>,
    addresses: FxHashMap<u64, AddressState>,
    /// Addresses that were completed after the range.
    completed_after: FxHashSet<u64>,
    /// The first block of an address that lived wholly after the range: its rows.
    first_after: FxHashMap<u64, [u32; 3]>,
    /// The event before was that of a segment that is reserved, not after the range.
    reserved: bool,
}

/// As in vramscope-analysis: the low bits of addresses are nearly always zeros.
pub(crate) fn key(address: u64) -> u64 {
    address.rotate_right(9)
}

impl LiveWindow {
    /// One of which nothing is kept but how many events it has had.
    pub(crate) fn counting(seen: u32) -> Self {
        Self { seen, ..Self::default() }
    }

    /// RowCounts that are in the table.
    pub(crate) fn rows(&self) -> u32 {
        self.marks.len() as u32
    }

    /// The rows that move when those go that are to go.
    pub(crate) fn moving(&self) -> Range<u32> {
        self.first_dropped.unwrap_or(self.rows())..self.rows()
    }

    /// Whether to take out now what is to go, `before` events having been seen the last time: what
    /// moves for it, and what has to be found anew, is not much more than that; or the range has
    /// begun. All of it stays, and would move for what is left in front of it.
    pub(crate) fn is_worth_it(&self, range: &Range<u32>, before: u32) -> bool {
        let begins = before < range.start && self.seen >= range.start;
        begins
            || self.dropped > usize::midpoint(self.moving().len(), self.addresses.len()).max(4096)
    }

    /// Whether a row stays, as far as is known.
    pub(crate) fn keeps(&self, row: u32) -> bool {
        self.marks.get(row as usize) != Some(&RowFate::Dropped)
    }

    fn drop_row(&mut self, row: u32) {
        if let Some(mark) = self.marks.get_mut(row as usize)
            && *mark == RowFate::Kept
        {
            *mark = RowFate::Dropped;
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
        self.marks.get(row as usize) == Some(&RowFate::Pinned)
    }

    pub(crate) fn see(
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
        let pinned = self.reserved || is_segment;
        let row = self.marks.len() as u32;
        self.marks.push(if pinned || phase == Phase::Within {
            RowFate::Pinned
        } else {
            RowFate::Kept
        });
        self.reserved = match action {
            Action::SEGMENT_ALLOC | Action::SEGMENT_MAP => phase != Phase::After,
            _ => self.reserved && is_segment,
        };
        match action {
            _ if is_segment => {}
            Action::ALLOC => self.alloc(key(address), row, phase, pinned),
            Action::FREE_REQUESTED => self.request(key(address), row, pinned),
            Action::FREE_COMPLETED | Action::FREE => {
                let key = key(address);
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
        // A free was lost: the old block ends here. Where that one stays, so must what ends it.
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
        // The last request counts.
        self.drop_row(before);
    }

    /// A block may return without an alloc where one is active in the end.
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
        // From before the trace, or of an alloc that was lost: it was live since the completion
        // before, or always.
        let request = place.map_or(NO_ROW, |p| p.request);
        if (phase == Phase::Before || again) && !pinned && !self.is_pinned(request) {
            self.drop_rows([request, row]);
        }
    }

    /// The trace has ended: what was kept in case that an alloc was lost goes, unless it was.
    pub(crate) fn end(&mut self, active: &FxHashSet<u64>) {
        let is_live = |key| self.addresses.get(key).is_some_and(|place| place.live.is_some());
        let unneeded =
            self.first_after.iter().filter(|(key, _)| is_live(key) || !active.contains(key));
        let rows: Vec<u32> = unneeded.flat_map(|(_, &rows)| rows).collect();
        self.drop_rows(rows);
        self.first_after.clear();
    }

    /// Whether the block that is active at an address in the end has no alloc since one was freed
    /// there after the range.
    pub(crate) fn is_lost(&self, key: u64) -> bool {
        let is_live = self.addresses.get(&key).is_some_and(|place| place.live.is_some());
        self.completed_after.contains(&key) && !is_live
    }

    /// Forget the rows that were dropped, which the table no longer has.
    pub(crate) fn renumber(&mut self) {
        let moving = self.moving();
        let (mut next, mut numbers) = (moving.start, Vec::with_capacity(moving.len()));
        for row in moving.clone() {
            let mark = self.marks[row as usize];
            let is_kept = mark != RowFate::Dropped;
            numbers.push(if is_kept { next } else { NO_ROW });
            if is_kept {
                self.marks[next as usize] = mark;
                next += 1;
            }
            if row + 1 == self.before {
                self.before = next;
            }
        }
        self.marks.truncate(next as usize);
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
        self.marks.capacity()
            + self.addresses.capacity() * size_of::<(u64, AddressState)>()
            + self.completed_after.capacity() * size_of::<u64>()
            + self.first_after.capacity() * size_of::<(u64, [u32; 3])>()
    }
}

impl LiveBlock {
    /// Whether a block that ends in this phase was live in no state of the range.
    fn is_outside(&self, end: Phase) -> bool {
        !self.pinned && self.phase == end && end != Phase::Within
    }
}
