//! A preview of the curve while a file is still being read.
//!
//! The curve is the running sum of allocated minus freed bytes. Memory that was live before the
//! window is known only at the end of the file, so the preview has no zero line and no peak value.

use crate::messages::Provisional;
use vramscope_report::Quantity;
use vramscope_snapshot::{Action, Reader, TraceProgress};
use vramscope_units::svg::Path;

/// Columns after halving. At twice as many, neighbors are merged.
const MIN_COLUMNS: usize = 500;
/// Width and height of the path's view box.
const VIEW_BOX: [i64; 2] = [1000, 100];

/// The curve of the trace that is being read, and of the longest trace before it.
#[derive(Debug, Default)]
pub(crate) struct CurvePreview {
    /// The index of the trace.
    trace: u32,
    /// Events summed so far.
    done: usize,
    sum: i64,
    lowest: i64,
    /// The largest sum in each column of `width` events.
    columns: Vec<i64>,
    width: usize,
    /// The longest trace before this one.
    longest_before: Option<Box<Self>>,
}

impl CurvePreview {
    /// Adds the events that the reader has read since the last call. Must be called after every
    /// chunk.
    pub(crate) fn follow(&mut self, reader: &Reader) {
        for progress in reader.trace_progress(self.trace) {
            self.add(progress);
        }
    }

    fn add(&mut self, progress: TraceProgress<'_>) {
        if self.trace != progress.trace || self.width == 0 {
            let before = std::mem::take(self);
            *self = Self { trace: progress.trace, width: 1, ..Self::default() };
            self.longest_before = before.into_longest();
        }
        let done = self.done.saturating_sub(progress.skipped);
        for (action, size) in progress.events_from(done) {
            match action {
                Action::ALLOC => self.sum = self.sum.wrapping_add(size as i64),
                Action::FREE_COMPLETED => self.sum = self.sum.wrapping_sub(size as i64),
                _ => {}
            }
            self.lowest = self.lowest.min(self.sum);
            let column = self.done / self.width;
            self.done += 1;
            match self.columns.get_mut(column) {
                Some(largest) => *largest = (*largest).max(self.sum),
                None => self.columns.push(self.sum),
            }
            if self.columns.len() == 2 * MIN_COLUMNS {
                self.merge_columns();
            }
        }
    }

    fn merge_columns(&mut self) {
        self.columns =
            self.columns.chunks(2).map(|pair| pair[0].max(pair[pair.len() - 1])).collect();
        self.width *= 2;
    }

    /// The curve so far; `None` before the first event.
    pub(crate) fn picture(&self) -> Option<Provisional> {
        let path = self.path()?;
        let events = Quantity::count(self.done as u64, "event", "events").exact;
        Some(Provisional { path, text: format!("{events} so far") })
    }

    /// The curve of a trace that was read to its end; `None` without events.
    pub(crate) fn complete_picture(&self) -> Option<Provisional> {
        let path = self.path()?;
        Some(Provisional { path, text: Quantity::count(self.done as u64, "event", "events").exact })
    }

    fn into_longest(mut self) -> Option<Box<Self>> {
        let before = self.longest_before.take().filter(|before| before.done > self.done);
        before.or_else(|| Some(Box::new(self)))
    }

    /// The preview of the longest trace so far.
    pub(crate) fn longest(&self) -> &Self {
        self.longest_before.as_deref().filter(|before| before.done > self.done).unwrap_or(self)
    }

    /// The first event of every column, then the number of events.
    pub(crate) fn edges(&self, events: u32) -> Vec<u32> {
        let starts = (0..self.columns.len()).map(|column| (column * self.width) as u32);
        starts.chain([events]).collect()
    }

    /// The event in the middle of the highest column. Of equals the first.
    pub(crate) fn highest_event(&self) -> u32 {
        let highest = (0..self.columns.len()).rev().max_by_key(|&column| self.columns[column]);
        (highest.unwrap_or(0) * self.width + self.width / 2) as u32
    }

    /// The filled curve as an SVG path, from the lowest sum to the highest.
    fn path(&self) -> Option<String> {
        let highest = self.columns.iter().copied().max()?;
        let [width, height] = VIEW_BOX;
        let span = i128::from(highest.wrapping_sub(self.lowest).max(1));
        let (columns, mut path) = (self.columns.len() as i64, Path::default());
        path.tenths("M0 ", height * 10);
        for (i, &value) in (0..).zip(&self.columns) {
            let x = i * width / columns;
            let above = i128::from(value.wrapping_sub(self.lowest)) * i128::from(height);
            path.tenths("H", x * 10);
            path.tenths("V", (height - (above / span) as i64) * 10);
        }
        path.tenths("H", width * 10);
        path.tenths("V", height * 10);
        Some(path.closed())
    }
}

#[cfg(test)]
mod tests {
    use super::CurvePreview;
    use vramscope_snapshot::{Action, TraceProgress};

    fn add(preview: &mut CurvePreview, trace: u32, actions: &[Action], sizes: &[u64]) {
        let sizes = &sizes.iter().copied().collect();
        preview.add(TraceProgress { trace, skipped: 0, actions, sizes: (sizes, 0) });
    }

    #[test]
    fn path_starts_at_the_lowest_sum() {
        let actions =
            [Action::FREE_COMPLETED, Action::ALLOC, Action::ALLOC, Action::FREE_REQUESTED];
        let mut preview = CurvePreview::default();
        add(&mut preview, 0, &actions[..2], &[100, 100]);
        add(&mut preview, 0, &actions, &[100, 100, 300, 300]);
        let picture = preview.picture().expect("four events");
        assert_eq!(picture.path, "M0 100H0V100H250V75H500V0H750V0H1000V100Z");
        assert_eq!(picture.text, "4 events so far");
    }

    #[test]
    fn every_device_starts_a_new_preview() {
        let mut preview = CurvePreview::default();
        assert!(preview.picture().is_none(), "no event, no picture");
        add(&mut preview, 0, &[Action::ALLOC; 3], &[1, 1, 1]);
        add(&mut preview, 3, &[Action::ALLOC], &[8]);
        assert_eq!(preview.picture().map(|p| p.text), Some("1 event so far".to_owned()));
    }

    #[test]
    fn merged_columns_keep_the_largest_sum() {
        let mut preview = CurvePreview::default();
        let actions: Vec<Action> = (0..100_000)
            .map(|i| if i % 2 == 0 { Action::ALLOC } else { Action::FREE_COMPLETED })
            .collect();
        let sizes: Vec<u64> =
            (0..100_000).map(|i| if i / 2 == 20_000 { 1 << 40 } else { 512 }).collect();
        add(&mut preview, 0, &actions, &sizes);
        assert!(preview.columns.len() < 1000);
        assert_eq!(preview.columns.iter().max(), Some(&(1 << 40)));
        assert_eq!(preview.done, 100_000);
    }
}
