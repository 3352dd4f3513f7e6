//! What of the traces stays in the tables: the rows that [`Window`] keeps of a range of events, or
//! none but their number.

use crate::events::{Action, Events};
use crate::load::Reading;
use crate::narrow::{Narrow, SIZES};
use crate::segments::Block;
use crate::snapshot::Excerpt;
use crate::tables::{Tables, ext};
use crate::window::{Window, key};
use rustc_hash::FxHashSet;
use std::ops::Range;
use vramscope_pickle::Value;

/// The events of every trace that are kept; `None` for all.
#[derive(Clone, Default)]
pub(crate) struct Keep(pub(crate) Option<Range<u32>>);

/// Which rows of events are gone. The parser holds events by numbers, which are never used again.
#[derive(Default)]
pub(crate) struct Gone {
    /// An event's number is its row and so many.
    rows: u32,
    /// Events of a lower number were in a list of which rows may be gone: they cannot be told from
    /// others any more.
    settled: u32,
}

impl Gone {
    pub(crate) fn number(&self, row: u32) -> u32 {
        row + self.rows
    }

    pub(crate) fn row(&self, number: u32) -> Option<u32> {
        (number >= self.settled).then(|| number - self.rows)
    }
}

/// What is kept of the traces of a file.
#[derive(Default)]
pub(crate) struct Parts {
    range: Range<u32>,
    /// One for each list of events, by its index in `Tables::runs`.
    windows: Vec<(usize, Window)>,
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
    sizes: Narrow,
}

impl Parts {
    fn window(&mut self, run: usize) -> &mut Window {
        let at = self.windows.iter().rposition(|(of, _)| *of == run).unwrap_or_else(|| {
            self.windows.push((run, Window::default()));
            self.windows.len() - 1
        });
        &mut self.windows[at].1
    }

    fn seen(&self, run: usize) -> Option<&Window> {
        self.windows.iter().find(|(of, _)| *of == run).map(|(_, window)| window)
    }

    fn remember(&mut self, run: usize, events: &Events, rows: Range<u32>) {
        let at = self.recent.iter().position(|recent| recent.run == run).unwrap_or_else(|| {
            self.recent.push(Recent { run, actions: Vec::new(), sizes: Narrow::new(SIZES) });
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
    pub(crate) fn reading(&self, run: usize) -> Option<Reading<'_>> {
        let Recent { actions, sizes, .. } = self.recent.iter().find(|recent| recent.run == run)?;
        let skipped = self.seen(run)?.seen as usize - actions.len();
        Some(Reading { trace: run as u32, skipped, actions, sizes: (sizes, 0) })
    }

    /// How many events came since this was asked last, and how many times as many will stay of what
    /// is to come, if that is `rest` times what came: those inside the range, and outside of it
    /// those of segments, as many of them as of late.
    fn expected(&mut self, rest: f64) -> (usize, f64) {
        let sum = |of: fn(&Window) -> u32| {
            self.windows.iter().map(|(_, window)| of(window) as usize).sum::<usize>()
        };
        let now = (sum(|window| window.seen), sum(|window| window.segments));
        let before = std::mem::replace(&mut self.looked, now);
        let (late, segments) = (now.0 - before.0, now.1 - before.1);
        // In front of the range nothing is known of it yet.
        let Some((_, window)) =
            self.windows.last().filter(|(_, window)| window.seen >= self.range.start)
        else {
            return (late, 0.0);
        };
        let inside =
            rest.min(f64::from(self.range.end.saturating_sub(window.seen)) / late.max(1) as f64);
        // Inside it is too early to tell, since a trace begins with more of those. But room for as
        // many events as come between two looks has to be left behind the range, too.
        let outside = if inside > 0.0 {
            f64::min(2.0, rest - inside)
        } else {
            rest * segments as f64 / late.max(1) as f64
        };
        (late, inside + outside)
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
    pub(crate) fn keeping(keep: &Keep) -> Self {
        let mut tables = Self::new();
        tables.parts = keep.0.clone().map(|range| Box::new(Parts { range, ..Parts::default() }));
        tables
    }

    /// Make room for the rows in the rest of the file, `rest` times what came since the last time.
    /// False where all rows stay.
    pub(crate) fn foresee_part(&mut self, rest: f64) -> bool {
        let Some(parts) = &mut self.parts else { return false };
        if !parts.only_counts {
            let (late, rest) = parts.expected(rest);
            self.events.make_room(late, rest);
        }
        true
    }

    /// A list of events has grown: drop what is not needed of it.
    pub(crate) fn cut(&mut self, index: usize) {
        let Some(parts) = &mut self.parts else { return };
        let run = self.runs[index];
        if run.kind != ext::EVENT {
            return;
        }
        let range = parts.range.clone();
        let only_counts = parts.only_counts;
        if parts.active.is_none() && !self.blocks.is_empty() {
            parts.active = Some(active(&self.blocks));
        }
        let known = parts.active.take();
        let window = parts.window(index);
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
        parts.active = known;
        parts.remember(index, &self.events, new.clone());
        if only_counts {
            self.drop_rows(new, |_| false);
            self.runs[index].end = run.start + there;
        } else if is_worth_it {
            self.compact(index);
        }
        self.gone.settled = self.gone.rows + self.events.len() as u32;
    }

    /// Take what was dropped of a list of events out of the table.
    fn compact(&mut self, index: usize) {
        let Some(mut parts) = self.parts.take() else { return };
        let run = self.runs[index];
        let window = parts.window(index);
        let moving = window.moving();
        let rows = run.start + moving.start..run.start + moving.end;
        self.drop_rows(rows, |row| window.keeps(row - run.start));
        window.renumber();
        self.runs[index].end = run.start + window.rows();
        self.parts = Some(parts);
    }

    /// Drop rows of events; those behind them, and the lists that they are in, move up.
    fn drop_rows(&mut self, rows: Range<u32>, keep: impl Fn(u32) -> bool) {
        let dropped = self.events.keep(rows.clone(), keep);
        for run in
            self.runs.iter_mut().filter(|run| run.kind == ext::EVENT && run.start >= rows.end)
        {
            run.start -= dropped;
            run.end -= dropped;
        }
        self.gone.rows += dropped;
    }

    /// All has been read: only what stays is left in the table.
    pub(crate) fn settle(&mut self) {
        if self.parts.is_none() {
            return;
        }
        let active = active(&self.blocks);
        for index in 0..self.runs.len() {
            if self.runs[index].kind == ext::EVENT
                && let Some(parts) = &mut self.parts
                && !parts.only_counts
            {
                let known = parts.active.take();
                let window = parts.window(index);
                window.end(&active);
                let is_late = |key| {
                    known.as_ref().is_some_and(|known| !known.contains(key)) && window.is_lost(*key)
                };
                let late = active.iter().filter(|key| is_late(key)).count() as u32;
                parts.active = known;
                if late > 0 {
                    self.report.warn_many("part_segments", None, late, || {
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
        let mut parts = self.parts.take().unwrap_or_default();
        let mut end = 0;
        for (index, run) in
            self.runs.iter_mut().enumerate().filter(|(_, run)| run.kind == ext::EVENT)
        {
            let window = parts.window(index);
            let seen = window.seen.max(run.end - run.start);
            *window = Window::counting(seen);
            end = end.max(run.end);
            (run.start, run.end) = (0, 0);
        }
        parts.only_counts = true;
        self.parts = Some(parts);
        let dropped = self.events.keep(0..end, |_| false);
        self.events.shrink();
        self.gone.rows += dropped;
        self.gone.settled = self.gone.rows;
    }

    /// Rows that are not needed, and have not been taken out of the table yet.
    pub(crate) fn dropped_so_far(&self) -> usize {
        self.parts
            .as_ref()
            .map_or(0, |parts| parts.windows.iter().map(|(_, window)| window.dropped).sum())
    }

    /// The events of the longest list of them, also of those that are gone.
    pub(crate) fn longest_trace(&self) -> u32 {
        let seen =
            |index: usize| self.parts.as_ref().and_then(|parts| parts.seen(index)).map(|w| w.seen);
        let runs = self.runs.iter().enumerate().filter(|(_, run)| run.kind == ext::EVENT);
        runs.map(|(index, run)| seen(index).unwrap_or(run.end - run.start)).max().unwrap_or(0)
    }

    /// Which events of a list are in the table, when that is not all of them.
    pub(crate) fn excerpt(&self, list: Value) -> Option<Excerpt> {
        let parts = self.parts.as_ref()?;
        let window = parts.seen(list.as_ext(ext::RUN)? as usize)?;
        let (from, to) = (parts.range.start.min(window.seen), parts.range.end.min(window.seen));
        let excerpt =
            Excerpt { events: from..to.max(from), of: window.seen, before: window.before };
        (excerpt.events != (0..window.seen)).then_some(excerpt)
    }
}
