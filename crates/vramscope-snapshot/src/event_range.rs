//! What of the traces stays in the tables: the rows that [`LiveWindow`] keeps of a range of events, or
//! none but their number.

use crate::delta_column::{DeltaColumn, SIZES};
use crate::events::{Action, Events};
use crate::live_window::{LiveWindow, key};
use crate::load::TraceProgress;
use crate::report::WarningKind;
use crate::segments::Block;
use crate::snapshot::Excerpt;
use crate::tables::{Tables, ext};
use rustc_hash::FxHashSet;
use std::ops::Range;
use vramscope_pickle::Value;

/// The events of every trace that are kept; `None` for all.
#[derive(Clone, Default)]
pub(crate) struct EventFilter(pub(crate) Option<Range<u32>>);

/// Which rows of events are gone. The parser holds events by numbers, which are never used again.
#[derive(Default)]
pub(crate) struct RowRemap {
    /// An event's number is its row and so many.
    rows: u32,
    /// Events of a lower number were in a list of which rows may be gone: they cannot be told from
    /// others any more.
    settled: u32,
}

impl RowRemap {
    pub(crate) fn number(&self, row: u32) -> u32 {
        row + self.rows
    }

    pub(crate) fn row(&self, number: u32) -> Option<u32> {
        (number >= self.settled).then(|| number - self.rows)
    }
}

/// What is kept of the traces of a file.
#[derive(Default)]
pub(crate) struct FilterState {
    range: Range<u32>,
    /// One for each list of events, by its index in `Tables::runs`.
    windows: Vec<(usize, LiveWindow)>,
    /// Active blocks of the final segments, by address, where those came before the traces, as they
    /// do.
    active: Option<FxHashSet<u64>>,
    /// No row is kept, also not inside the range.
    pub(crate) only_counts: bool,
    /// One for each list of events that has grown since somebody last looked.
    recent: Vec<Recent>,
    /// How many events there had been when it was asked how many will come, and how many of them of
    /// segments.
    looked: (usize, usize),
}

/// Events that have passed since somebody last looked: most leave no row.
struct Recent {
    /// Which list of events.
    run: usize,
    actions: Vec<Action>,
    sizes: DeltaColumn,
}

impl FilterState {
    fn window(&mut self, run: usize) -> &mut LiveWindow {
        let at = self.windows.iter().rposition(|(of, _)| *of == run).unwrap_or_else(|| {
            self.windows.push((run, LiveWindow::default()));
            self.windows.len() - 1
        });
        &mut self.windows[at].1
    }

    fn seen(&self, run: usize) -> Option<&LiveWindow> {
        self.windows.iter().find(|(of, _)| *of == run).map(|(_, window)| window)
    }

    fn remember(&mut self, run: usize, events: &Events, rows: Range<u32>) {
        let at = self.recent.iter().position(|recent| recent.run == run).unwrap_or_else(|| {
            self.recent.push(Recent { run, actions: Vec::new(), sizes: DeltaColumn::new(SIZES) });
            self.recent.len() - 1
        });
        let recent = &mut self.recent[at];
        for row in rows {
            recent.actions.push(events.action(row));
            recent.sizes.push(events.size(row).0);
        }
    }

    /// Somebody has looked.
    pub(crate) fn forget_recent(&mut self) {
        // The last list is the one that goes on: its memory stays.
        self.recent.drain(..self.recent.len().saturating_sub(1));
        if let Some(last) = self.recent.first_mut() {
            last.actions.clear();
            last.sizes.truncate(0);
        }
    }

    /// Of a list of events what passed since somebody last looked; `None` of one that had ended
    /// before.
    pub(crate) fn reading(&self, run: usize) -> Option<TraceProgress<'_>> {
        let Recent { actions, sizes, .. } = self.recent.iter().find(|recent| recent.run == run)?;
        let skipped = self.seen(run)?.seen as usize - actions.len();
        Some(TraceProgress { trace: run as u32, skipped, actions, sizes: (sizes, 0) })
    }

    /// How many events came since this was asked last, and how many times as many will stay of what
    /// is to come, if that is `remaining` times what came: those inside the range, and outside of it
    /// those of segments, as many of them as of recent.
    fn expected(&mut self, remaining: f64) -> (usize, f64) {
        let sum = |of: fn(&LiveWindow) -> u32| {
            self.windows.iter().map(|(_, window)| of(window) as usize).sum::<usize>()
        };
        let now = (sum(|window| window.seen), sum(|window| window.segments));
        let before = std::mem::replace(&mut self.looked, now);
        let (recent, segments) = (now.0 - before.0, now.1 - before.1);
        // In front of the range nothing is known of it yet.
        let Some((_, window)) =
            self.windows.last().filter(|(_, window)| window.seen >= self.range.start)
        else {
            return (recent, 0.0);
        };
        let inside = remaining
            .min(f64::from(self.range.end.saturating_sub(window.seen)) / recent.max(1) as f64);
        // Inside it is too early to tell, since a trace begins with more of those. But room for as
        // many events as come between two looks has to be left behind the range, too.
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
    blocks.iter().filter(|b| b.state.is_active()).map(|b| key(b.address.0)).collect()
}

impl Tables {
    pub(crate) fn with_filter(filter: &EventFilter) -> Self {
        let mut tables = Self::new();
        tables.filter =
            filter.0.clone().map(|range| Box::new(FilterState { range, ..FilterState::default() }));
        tables
    }

    /// Make room for the rows in the remaining of the file, `remaining` times what came since the last time.
    /// False where all rows stay.
    pub(crate) fn reserve_ahead_filtered(&mut self, remaining: f64) -> bool {
        let Some(filter) = &mut self.filter else { return false };
        if !filter.only_counts {
            let (recent, remaining) = filter.expected(remaining);
            self.events.reserve(recent, remaining);
        }
        true
    }

    /// A list of events has grown: drop what is not needed of it.
    pub(crate) fn filter_list(&mut self, index: usize) {
        let Some(filter) = &mut self.filter else { return };
        let run = self.row_ranges[index];
        if run.kind != ext::EVENT {
            return;
        }
        let range = filter.range.clone();
        let only_counts = filter.only_counts;
        if filter.active.is_none() && !self.blocks.is_empty() {
            filter.active = Some(active(&self.blocks));
        }
        let known = filter.active.take();
        let window = filter.window(index);
        let (seen, there) = (window.seen, window.rows());
        let new = run.start + there..run.end;
        if only_counts {
            window.seen += new.len() as u32;
        } else {
            for row in new.clone() {
                window.see(
                    &range,
                    known.as_ref(),
                    self.events.action(row),
                    self.events.addr(row).0,
                );
            }
        }
        let is_worth_it = window.is_worth_it(&range, seen);
        filter.active = known;
        filter.remember(index, &self.events, new.clone());
        if only_counts {
            self.drop_rows(new, |_| false);
            self.row_ranges[index].end = run.start + there;
        } else if is_worth_it {
            self.compact(index);
        }
        self.remap.settled = self.remap.rows + self.events.len() as u32;
    }

    /// Take what was dropped of a list of events out of the table.
    fn compact(&mut self, index: usize) {
        let Some(mut filter) = self.filter.take() else { return };
        let run = self.row_ranges[index];
        let window = filter.window(index);
        let moving = window.moving();
        let rows = run.start + moving.start..run.start + moving.end;
        self.drop_rows(rows, |row| window.keeps(row - run.start));
        window.renumber();
        self.row_ranges[index].end = run.start + window.rows();
        self.filter = Some(filter);
    }

    /// Drop rows of events; those behind them, and the lists that they are in, move up.
    fn drop_rows(&mut self, rows: Range<u32>, keep: impl Fn(u32) -> bool) {
        let dropped = self.events.retain_rows(rows.clone(), keep);
        for run in
            self.row_ranges.iter_mut().filter(|run| run.kind == ext::EVENT && run.start >= rows.end)
        {
            run.start -= dropped;
            run.end -= dropped;
        }
        self.remap.rows += dropped;
    }

    /// All has been read: only what stays is left in the table.
    pub(crate) fn settle(&mut self) {
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
                window.end(&active);
                let is_late = |key| {
                    known.as_ref().is_some_and(|known| !known.contains(key)) && window.is_lost(*key)
                };
                let recent = active.iter().filter(|key| is_late(key)).count() as u32;
                filter.active = known;
                if recent > 0 {
                    self.report.warn_many(WarningKind::PartSegments, None, recent, || {
                        "segments stand behind the traces: blocks of which the alloc was lost may begin too early"
                            .into()
                    });
                }
                self.compact(index);
            }
        }
    }

    /// From now on no event leaves a row, and those that did are gone: they are only counted.
    pub(crate) fn only_count(&mut self) {
        let mut filter = self.filter.take().unwrap_or_default();
        let mut end = 0;
        for (index, run) in
            self.row_ranges.iter_mut().enumerate().filter(|(_, run)| run.kind == ext::EVENT)
        {
            let window = filter.window(index);
            let seen = window.seen.max(run.end - run.start);
            *window = LiveWindow::counting(seen);
            end = end.max(run.end);
            (run.start, run.end) = (0, 0);
        }
        filter.only_counts = true;
        self.filter = Some(filter);
        let dropped = self.events.retain_rows(0..end, |_| false);
        self.events.shrink();
        self.remap.rows += dropped;
        self.remap.settled = self.remap.rows;
    }

    /// RowCounts that are not needed, and have not been taken out of the table yet.
    pub(crate) fn dropped_so_far(&self) -> usize {
        self.filter
            .as_ref()
            .map_or(0, |filter| filter.windows.iter().map(|(_, window)| window.dropped).sum())
    }

    /// The events of the longest list of them, also of those that are gone.
    pub(crate) fn longest_trace(&self) -> u32 {
        let seen = |index: usize| {
            self.filter.as_ref().and_then(|filter| filter.seen(index)).map(|w| w.seen)
        };
        let row_ranges =
            self.row_ranges.iter().enumerate().filter(|(_, run)| run.kind == ext::EVENT);
        row_ranges.map(|(index, run)| seen(index).unwrap_or(run.end - run.start)).max().unwrap_or(0)
    }

    /// Which events of a list are in the table, when that is not all of them.
    pub(crate) fn excerpt(&self, list: Value) -> Option<Excerpt> {
        let filter = self.filter.as_ref()?;
        let window = filter.seen(list.as_ext(ext::ROW_RANGE)? as usize)?;
        let (from, to) = (filter.range.start.min(window.seen), filter.range.end.min(window.seen));
        let excerpt =
            Excerpt { events: from..to.max(from), of: window.seen, before: window.before };
        (excerpt.events != (0..window.seen)).then_some(excerpt)
    }
}
