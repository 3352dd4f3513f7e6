//! The curve of a trace while its file is still being read.
//!
//! It is the sum of what has been allocated and freed so far, and only a sketch: what was live
//! before the window is known at the end, so there is no zero line and no peak in it.

use std::fmt::Write as _;
use vramscope_protocol::Provisional;
use vramscope_report::Quantity;
use vramscope_snapshot::{Action, Reader, TraceProgress};

/// Columns of the sketch; as many again are kept for the time until they are halved.
const COLUMNS: usize = 500;
/// Width and height of its box.
const BOX: [i64; 2] = [1000, 100];

/// What has been added up.
#[derive(Debug, Default)]
pub(crate) struct Sketch {
    /// Which trace.
    trace: u32,
    /// Events that have been added up.
    done: usize,
    sum: i64,
    low: i64,
    /// The largest sum in each column, of `width` events.
    columns: Vec<i64>,
    width: usize,
    /// That of the longest trace before this one.
    before: Option<Box<Self>>,
}

impl Sketch {
    /// Go on with what has been read. Every chunk has to be followed.
    pub(crate) fn follow(&mut self, reader: &Reader) {
        for progress in reader.trace_progress(self.trace) {
            self.add(progress);
        }
    }

    fn add(&mut self, progress: TraceProgress<'_>) {
        if self.trace != progress.trace || self.width == 0 {
            let before = std::mem::take(self);
            *self = Self { trace: progress.trace, width: 1, ..Self::default() };
            self.before = before.into_longest();
        }
        let done = self.done.saturating_sub(progress.skipped);
        for (action, size) in progress.events_from(done) {
            match action {
                Action::ALLOC => self.sum = self.sum.wrapping_add(size as i64),
                Action::FREE_COMPLETED => self.sum = self.sum.wrapping_sub(size as i64),
                _ => {}
            }
            self.low = self.low.min(self.sum);
            let column = self.done / self.width;
            self.done += 1;
            match self.columns.get_mut(column) {
                Some(most) => *most = (*most).max(self.sum),
                None => self.columns.push(self.sum),
            }
            if self.columns.len() == 2 * COLUMNS {
                self.halve();
            }
        }
    }

    fn halve(&mut self) {
        self.columns =
            self.columns.chunks(2).map(|pair| pair[0].max(pair[pair.len() - 1])).collect();
        self.width *= 2;
    }

    /// The sketch as a picture; `None` while there is nothing in it.
    pub(crate) fn picture(&self) -> Option<Provisional> {
        let path = self.path()?;
        Some(Provisional {
            path,
            text: format!("{} so far", Quantity::count(self.done as u64, "event", "events").exact),
        })
    }

    fn into_longest(mut self) -> Option<Box<Self>> {
        let before = self.before.take().filter(|before| before.done > self.done);
        before.or_else(|| Some(Box::new(self)))
    }

    /// That of the longest trace so far.
    pub(crate) fn longest(&self) -> &Self {
        self.before.as_deref().filter(|before| before.done > self.done).unwrap_or(self)
    }

    /// The same of a trace that has ended.
    pub(crate) fn picture_of_all(&self) -> Option<Provisional> {
        Some(Provisional {
            path: self.path()?,
            text: Quantity::count(self.done as u64, "event", "events").exact,
        })
    }

    /// The first event of every column, then how many events there are.
    pub(crate) fn edges(&self, events: u32) -> Vec<u32> {
        let starts = (0..self.columns.len()).map(|column| (column * self.width) as u32);
        starts.chain([events]).collect()
    }

    /// An event in the middle of the highest column.
    pub(crate) fn top(&self) -> u32 {
        let highest = (0..self.columns.len()).rev().max_by_key(|&column| self.columns[column]);
        (highest.unwrap_or(0) * self.width + self.width / 2) as u32
    }

    fn path(&self) -> Option<String> {
        let high = self.columns.iter().copied().max()?;
        let [width, height] = BOX;
        let span = high.wrapping_sub(self.low).max(1);
        let (columns, mut path) = (self.columns.len() as i64, format!("M0 {height}"));
        for (i, &value) in (0..).zip(&self.columns) {
            let (x, part) = (
                i * width / columns,
                i128::from(value.wrapping_sub(self.low)) * i128::from(height),
            );
            write!(path, "H{x}V{}", height - (part / i128::from(span)) as i64)
                .expect("a String takes all text");
        }
        write!(path, "H{width}V{height}Z").expect("a String takes all text");
        Some(path)
    }
}

#[cfg(test)]
mod tests {
    use super::Sketch;
    use vramscope_snapshot::{Action, TraceProgress};

    fn follow(sketch: &mut Sketch, trace: u32, actions: &[Action], sizes: &[u64]) {
        let sizes = &sizes.iter().copied().collect();
        sketch.add(TraceProgress { trace, skipped: 0, actions, sizes: (sizes, 0) });
    }

    #[test]
    fn the_sum_of_what_was_read_lifted_to_its_lowest() {
        let actions =
            [Action::FREE_COMPLETED, Action::ALLOC, Action::ALLOC, Action::FREE_REQUESTED];
        let mut sketch = Sketch::default();
        follow(&mut sketch, 0, &actions[..2], &[100, 100]);
        follow(&mut sketch, 0, &actions, &[100, 100, 300, 300]);
        let picture = sketch.picture().expect("four events");
        assert_eq!(picture.path, "M0 100H0V100H250V75H500V0H750V0H1000V100Z");
        assert_eq!(picture.text, "4 events so far");
    }

    #[test]
    fn another_device_begins_anew_and_nothing_is_no_picture() {
        let mut sketch = Sketch::default();
        assert!(sketch.picture().is_none());
        follow(&mut sketch, 0, &[Action::ALLOC; 3], &[1, 1, 1]);
        follow(&mut sketch, 3, &[Action::ALLOC], &[8]);
        assert_eq!(sketch.picture().map(|p| p.text), Some("1 event so far".to_owned()));
    }

    #[test]
    fn columns_stay_few_and_keep_their_largest() {
        let mut sketch = Sketch::default();
        let actions: Vec<Action> = (0..100_000)
            .map(|i| if i % 2 == 0 { Action::ALLOC } else { Action::FREE_COMPLETED })
            .collect();
        let sizes: Vec<u64> =
            (0..100_000).map(|i| if i / 2 == 20_000 { 1 << 40 } else { 512 }).collect();
        follow(&mut sketch, 0, &actions, &sizes);
        assert!(sketch.columns.len() < 1000);
        assert_eq!(sketch.columns.iter().max(), Some(&(1 << 40)));
        assert_eq!(sketch.done, 100_000);
    }
}
