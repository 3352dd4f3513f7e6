//! Filters the events of traces while they are read. Either keeps the rows that [`LiveWindow`]
//! selects for a range of events, or keeps no rows and counts events.

use crate::delta_column::{DeltaColumn, SIZES};
use crate::events::{Action, Events};
use crate::live_window::{LiveWindow, address_key};
use crate::load::TraceProgress;
use crate::report::WarningKind;
use crate::segments::Block;
use crate::snapshot::Excerpt;
use crate::tables::{Tables, ext};
use rustc_hash::FxHashSet;
use std::ops::Range;
use vramscope_pickle::Value;

/// The range of events to keep of every trace. `None` keeps all.
#[derive(Clone, Default)]
pub(crate) struct EventFilter(pub(crate) Option<Range<u32>>);

/// Maps event numbers to rows after rows were dropped. The parser refers to events by number, and
/// numbers are never reused.
#[derive(Default)]
pub(crate) struct RowRemap {
    /// The number of dropped rows: `event number = row + removed`.
    removed: u32,
    /// Numbers below this cannot be mapped: rows of their list may have been dropped.
    unmapped_below: u32,
}

impl RowRemap {
    pub(crate) fn number(&self, row: u32) -> u32 {
        row + self.removed
    }

    pub(crate) fn row(&self, number: u32) -> Option<u32> {
        (number >= self.unmapped_below).then(|| number - self.removed)
    }
}

/// The state of the filter of a file.
#[derive(Default)]
pub(crate) struct FilterState {
    range: Range<u32>,
    /// One window per list of events, sorted by the list's index in `Tables::row_ranges`.
    windows: Vec<(usize, LiveWindow)>,
    /// Address keys of the final segments' active blocks. PyTorch writes them before their trace;
    /// `None` if they have not been read yet.
    active: Option<FxHashSet<u64>>,
    /// Whether to keep no rows and only count events.
    pub(crate) only_counts: bool,
    /// Per list of events, sorted by list, the events since the last
    /// [`FilterState::forget_recent`].
    recent: Vec<Recent>,
    /// The numbers of events and of segment events at the last call of
    /// [`FilterState::expected_rows`].
    at_last_reserve: (usize, usize),
}

/// The newest events of a list. Most of them leave no row.
struct Recent {
    /// The list's index in `Tables::row_ranges`.
    list: usize,
    actions: Vec<Action>,
    sizes: DeltaColumn,
}

impl FilterState {
    fn window(&mut self, list: usize) -> &mut LiveWindow {
        let at = self.windows.binary_search_by_key(&list, |w| w.0).unwrap_or_else(|at| {
            self.windows.insert(at, (list, LiveWindow::default()));
            at
        });
        &mut self.windows[at].1
    }

    fn seen(&self, list: usize) -> Option<&LiveWindow> {
        let at = self.windows.binary_search_by_key(&list, |w| w.0).ok()?;
        Some(&self.windows[at].1)
    }

    fn remember(&mut self, list: usize, events: &Events, rows: Range<u32>) {
        let at = self.recent.binary_search_by_key(&list, |r| r.list).unwrap_or_else(|at| {
            let new = Recent { list, actions: Vec::new(), sizes: DeltaColumn::new(SIZES) };
            self.recent.insert(at, new);
            at
        });
        let recent = &mut self.recent[at];
        for row in rows {
            recent.actions.push(events.action(row));
            recent.sizes.push(events.size(row).0);
        }
    }

    /// Starts a new batch of recent events.
    pub(crate) fn forget_recent(&mut self) {
        // Keeps the last list's buffers, because that list continues.
        self.recent.drain(..self.recent.len().saturating_sub(1));
        if let Some(last) = self.recent.first_mut() {
            last.actions.clear();
            last.sizes.truncate(0);
        }
    }

    /// The recent events of a list. `None` if the list ended before them.
    pub(crate) fn progress(&self, list: usize) -> Option<TraceProgress<'_>> {
        let Recent { actions, sizes, .. } =
            &self.recent[self.recent.binary_search_by_key(&list, |r| r.list).ok()?];
        let skipped = self.seen(list)?.seen as usize - actions.len();
        Some(TraceProgress { trace: list as u32, skipped, actions, sizes: (sizes, 0) })
    }

    /// Predicts rows for [`Events::reserve`]. Returns the number of events since the last call, and
    /// the expected rows as a multiple of it. `remaining` is the length of the rest of the file, in
    /// multiples of the bytes read since the last call. All events inside the range get rows.
    /// Outside it segment events do, at their recent rate.
    fn expected_rows(&mut self, remaining: f64) -> (usize, f64) {
        let sum = |of: fn(&LiveWindow) -> u32| {
            self.windows.iter().map(|(_, window)| of(window) as usize).sum::<usize>()
        };
        let now = (sum(|window| window.seen), sum(|window| window.segments));
        let before = std::mem::replace(&mut self.at_last_reserve, now);
        let (recent, segments) = (now.0 - before.0, now.1 - before.1);
        // Before the range its rows cannot be predicted.
        let Some((_, window)) =
            self.windows.last().filter(|(_, window)| window.seen >= self.range.start)
        else {
            return (recent, 0.0);
        };
        let inside = remaining
            .min(f64::from(self.range.end.saturating_sub(window.seen)) / recent.max(1) as f64);
        // A trace begins with more segment events than usual, so inside the range their rate is no
        // guide. Reserve at most two more steps for the events behind the range.
        let outside = if inside > 0.0 {
            f64::min(2.0, remaining - inside)
        } else {
            remaining * segments as f64 / recent.max(1) as f64
        };
        (recent, inside + outside)
    }

    pub(crate) fn memory(&self) -> usize {
        let windows: usize = self.windows.iter().map(|(_, w)| w.memory()).sum();
        let active = self.active.as_ref().map_or(0, |active| active.capacity() * size_of::<u64>());
        let recent: usize =
            self.recent.iter().map(|r| r.actions.capacity() + r.sizes.memory()).sum();
        windows + active + recent
    }
}

fn active(blocks: &[Block]) -> FxHashSet<u64> {
    blocks.iter().filter(|b| b.state.is_active()).map(|b| address_key(b.address.0)).collect()
}

impl Tables {
    pub(crate) fn with_filter(filter: &EventFilter) -> Self {
        let mut tables = Self::new();
        tables.filter =
            filter.0.clone().map(|range| Box::new(FilterState { range, ..FilterState::default() }));
        tables
    }

    /// Reserves capacity for the rows in the rest of the file, as [`Events::reserve_ahead`] does.
    /// Returns false if all rows are kept.
    pub(crate) fn reserve_ahead_filtered(&mut self, remaining: f64) -> bool {
        let Some(filter) = &mut self.filter else { return false };
        if !filter.only_counts {
            let (recent, remaining) = filter.expected_rows(remaining);
            self.events.reserve(recent, remaining);
        }
        true
    }

    /// Drops rows of a list of events that has grown.
    pub(crate) fn filter_list(&mut self, index: usize) {
        let Some(filter) = &mut self.filter else { return };
        let list = self.row_ranges[index];
        if list.kind != ext::EVENT {
            return;
        }
        let range = filter.range.clone();
        let only_counts = filter.only_counts;
        // The segments of pinned host memory are in front of its trace, behind the other traces.
        let is_new = filter.seen(index).is_none();
        if (filter.active.is_none() || is_new) && !self.blocks.is_empty() {
            filter.active = Some(active(&self.blocks));
        }
        let known = filter.active.take();
        let window = filter.window(index);
        let (seen, there) = (window.seen, window.rows());
        let new = list.start + there..list.end;
        if only_counts {
            window.seen += new.len() as u32;
        } else {
            for row in new.clone() {
                window.observe(
                    &range,
                    known.as_ref(),
                    self.events.action(row),
                    self.events.addr(row).0,
                );
            }
        }
        let should_compact = window.should_compact(&range, seen);
        filter.active = known;
        filter.remember(index, &self.events, new.clone());
        if only_counts {
            self.drop_rows(new, |_| false);
            self.row_ranges[index].end = list.start + there;
        } else if should_compact {
            self.compact(index);
        }
        self.remap.unmapped_below = self.remap.removed + self.events.len() as u32;
    }

    /// Removes the dropped rows of a list of events from the table.
    fn compact(&mut self, index: usize) {
        let Some(mut filter) = self.filter.take() else { return };
        let list = self.row_ranges[index];
        let window = filter.window(index);
        let moving = window.moving_rows();
        let rows = list.start + moving.start..list.start + moving.end;
        self.drop_rows(rows, |row| window.keeps(row - list.start));
        window.renumber();
        self.row_ranges[index].end = list.start + window.rows();
        self.filter = Some(filter);
    }

    /// Removes rows of events from the table. Later rows and their lists move up.
    fn drop_rows(&mut self, rows: Range<u32>, keep: impl Fn(u32) -> bool) {
        let is_at_end = rows.end as usize == self.events.len();
        let dropped = self.events.retain_rows(rows.clone(), keep);
        self.remap.removed += dropped;
        if is_at_end {
            return;
        }
        for list in self
            .row_ranges
            .iter_mut()
            .filter(|list| list.kind == ext::EVENT && list.start >= rows.end)
        {
            list.start -= dropped;
            list.end -= dropped;
        }
    }

    /// Drops the remaining unneeded rows after the whole file has been read.
    pub(crate) fn finish_filter(&mut self) {
        if self.filter.is_none() {
            return;
        }
        let active = active(&self.blocks);
        for index in 0..self.row_ranges.len() {
            if self.row_ranges[index].kind == ext::EVENT
                && let Some(filter) = &mut self.filter
                && !filter.only_counts
            {
                let known = filter.active.take();
                let window = filter.window(index);
                window.finish(&active);
                let is_late = |key| {
                    known.as_ref().is_some_and(|known| !known.contains(key)) && window.is_lost(*key)
                };
                let late = active.iter().filter(|key| is_late(key)).count() as u32;
                filter.active = known;
                if late > 0 {
                    self.report.warn_many(WarningKind::PartSegments, None, late, || {
                        "segments follow the traces in the file: \
                         blocks whose alloc is missing may begin too early"
                            .into()
                    });
                }
                self.compact(index);
            }
        }
    }

    /// Drops all rows of events, and counts events from now on.
    pub(crate) fn only_count(&mut self) {
        let mut filter = self.filter.take().unwrap_or_default();
        let mut end = 0;
        for (index, list) in
            self.row_ranges.iter_mut().enumerate().filter(|(_, list)| list.kind == ext::EVENT)
        {
            let window = filter.window(index);
            let seen = window.seen.max(list.end - list.start);
            *window = LiveWindow::counting(seen);
            end = end.max(list.end);
            (list.start, list.end) = (0, 0);
        }
        filter.only_counts = true;
        self.filter = Some(filter);
        let dropped = self.events.retain_rows(0..end, |_| false);
        self.events.shrink();
        self.remap.removed += dropped;
        self.remap.unmapped_below = self.remap.removed;
    }

    /// The number of dropped rows that are still in the table.
    pub(crate) fn dropped_so_far(&self) -> usize {
        self.filter
            .as_ref()
            .map_or(0, |filter| filter.windows.iter().map(|(_, window)| window.dropped).sum())
    }

    /// The number of events of the longest list, with and without a row.
    pub(crate) fn longest_trace(&self) -> u32 {
        let seen = |index: usize| {
            self.filter.as_ref().and_then(|filter| filter.seen(index)).map(|w| w.seen)
        };
        let lists = self.row_ranges.iter().enumerate().filter(|(_, list)| list.kind == ext::EVENT);
        lists.map(|(index, list)| seen(index).unwrap_or(list.end - list.start)).max().unwrap_or(0)
    }

    /// The range of a list's events in the table. `None` if all of them are.
    pub(crate) fn excerpt(&self, list: Value) -> Option<Excerpt> {
        let filter = self.filter.as_ref()?;
        let window = filter.seen(list.as_ext(ext::ROW_RANGE)? as usize)?;
        let (from, to) = (filter.range.start.min(window.seen), filter.range.end.min(window.seen));
        let excerpt =
            Excerpt { events: from..to.max(from), of: window.seen, before: window.before };
        (excerpt.events != (0..window.seen)).then_some(excerpt)
    }
}
