//! Merges blocks that are too low to see, column by column.

use vramscope_trace::slicing::STRIDE;

/// A block, or the background of a segment, that is lower than the merge height.
#[derive(Clone, Debug)]
pub(super) struct LowRect {
    /// The bucket of its lower edge. Buckets are as high as the merge height, so no block of at
    /// least the merge height lies between two rectangles of one bucket.
    pub(super) bucket: u32,
    pub(super) low: f64,
    pub(super) high: f64,
    /// First column, and one past the last.
    pub(super) columns: [u32; 2],
    /// The first column in which the block waits for its free to complete.
    pub(super) pending_from: u32,
    /// Bytes, which decide the color of a merged strip.
    pub(super) weight: u64,
    pub(super) block: u32,
}

/// Consecutive columns that show the same rectangles of one bucket. The rectangles are given by
/// index into all pushed ones.
pub(super) struct ColumnRun {
    pub(super) columns: [u32; 2],
    pub(super) lowest: u32,
    pub(super) highest: u32,
    pub(super) largest: u32,
    /// Whether the largest block waits for its free to complete.
    pub(super) pending: bool,
}

/// Indexes of the lowest, the highest and the largest of several rectangles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Extremes {
    lowest: u32,
    highest: u32,
    largest: u32,
}

const EMPTY: Extremes = Extremes { lowest: u32::MAX, highest: 0, largest: 0 };

/// Cost of adding a rectangle, in units of [`Cost::work`](crate::Cost::work).
const ADD_COST: u64 = 8;

/// In buckets of at most this many rectangles, each is added column by column.
const MAX_PER_COLUMN: usize = 8;

/// The low rectangles of a row, and how far they have been merged.
///
/// A sparse table over the columns: a rectangle is added to two ranges of columns that may overlap,
/// each a power of two wide. At the end the ranges are passed down to single columns. Adding a
/// rectangle therefore takes constant time, even when thousands cover all columns.
#[derive(Debug, Default)]
pub(super) struct Merger {
    columns: usize,
    /// `extremes[k * columns + c]` covers the columns `[c, c + 2^k)`.
    extremes: Vec<Extremes>,
    rects: Vec<LowRect>,
    /// Number of rectangles per bucket. After sorting: the end of each bucket in `order`.
    bucket_ends: Vec<u32>,
    /// Indexes into `rects`, sorted by bucket.
    order: Vec<u32>,
    /// How many rectangles have been sorted into `order`.
    sorted: usize,
    /// How many entries of `order` have been added to `extremes`.
    added: usize,
    /// The current bucket.
    bucket: usize,
    /// First column of the current bucket.
    first_column: u32,
    /// One past the last column of the current bucket.
    end_column: u32,
    /// Log2 of the widest range of the current bucket.
    widest: usize,
}

impl Merger {
    pub(super) fn new(columns: u32) -> Self {
        let levels = columns.max(1).ilog2() as usize + 1;
        let extremes = vec![EMPTY; levels * columns as usize];
        Self { columns: columns as usize, extremes, first_column: u32::MAX, ..Self::default() }
    }

    pub(super) fn push(&mut self, rect: LowRect) {
        let bucket = rect.bucket as usize;
        if self.bucket_ends.len() <= bucket {
            self.bucket_ends.resize(bucket + 1, 0);
        }
        self.bucket_ends[bucket] += 1;
        self.rects.push(rect);
    }

    /// Drops all pushed rectangles. None of them may have been merged yet.
    pub(super) fn clear(&mut self) {
        self.rects.clear();
        self.bucket_ends.clear();
    }

    /// Continues to merge the pushed rectangles, bucket by bucket. Calls `emit` for every run of
    /// columns. Returns true when done, and false when `work` has reached `end`.
    pub(super) fn advance(
        &mut self,
        work: &mut u64,
        end: u64,
        mut emit: impl FnMut(&[LowRect], &ColumnRun),
    ) -> bool {
        if self.order.len() < self.rects.len() {
            let mut start = 0;
            for bucket in &mut self.bucket_ends {
                start += std::mem::replace(bucket, start);
            }
            self.order.resize(self.rects.len(), 0);
        }
        while self.sorted < self.rects.len() {
            if *work >= end {
                return false;
            }
            let to = self.rects.len().min(self.sorted + STRIDE);
            for (i, rect) in (self.sorted as u32..).zip(&self.rects[self.sorted..to]) {
                let place = &mut self.bucket_ends[rect.bucket as usize];
                self.order[*place as usize] = i;
                *place += 1;
            }
            *work += (to - self.sorted) as u64;
            self.sorted = to;
        }
        // Sorting has moved each entry of `bucket_ends` from the start of its bucket to its end.
        while let Some(&behind) = self.bucket_ends.get(self.bucket) {
            let first = if self.bucket == 0 { 0 } else { self.bucket_ends[self.bucket - 1] };
            while self.added < behind as usize {
                if *work >= end {
                    return false;
                }
                let to = (behind as usize).min(self.added + STRIDE / ADD_COST as usize);
                for at in self.added..to {
                    self.add(self.order[at], (behind - first) as usize <= MAX_PER_COLUMN);
                }
                *work += (to - self.added) as u64 * ADD_COST;
                self.added = to;
            }
            if first < behind {
                *work += ((self.widest + 1) * self.columns) as u64 / 2;
                self.emit_runs(&mut emit);
            }
            self.bucket += 1;
        }
        self.clear();
        self.order.clear();
        (self.sorted, self.added, self.bucket) = (0, 0, 0);
        true
    }

    fn add(&mut self, i: u32, is_small_bucket: bool) {
        let extreme = Extremes { lowest: i, highest: i, largest: i };
        let [x0, x1] = self.rects[i as usize].columns;
        (self.first_column, self.end_column) = (self.first_column.min(x0), self.end_column.max(x1));
        if is_small_bucket {
            for c in x0..x1 {
                self.combine(c as usize, extreme);
            }
        } else {
            let k = (x1 - x0).ilog2();
            self.widest = self.widest.max(k as usize);
            for c in [x0, x1 - (1 << k)] {
                self.combine(k as usize * self.columns + c as usize, extreme);
            }
        }
    }

    /// Emits the runs of the current bucket, and resets `extremes`.
    fn emit_runs(&mut self, emit: &mut impl FnMut(&[LowRect], &ColumnRun)) {
        let (first_column, end_column) = (
            std::mem::replace(&mut self.first_column, u32::MAX),
            std::mem::take(&mut self.end_column),
        );
        for k in (1..=std::mem::take(&mut self.widest)).rev() {
            for c in first_column as usize..end_column as usize {
                let extreme = std::mem::replace(&mut self.extremes[k * self.columns + c], EMPTY);
                if extreme != EMPTY {
                    let below = (k - 1) * self.columns + c;
                    self.combine(below, extreme);
                    self.combine(below + (1 << (k - 1)), extreme);
                }
            }
        }
        let mut open: Option<ColumnRun> = None;
        for c in first_column..end_column {
            let Extremes { lowest, highest, largest } =
                std::mem::replace(&mut self.extremes[c as usize], EMPTY);
            let is_there = lowest != EMPTY.lowest;
            let pending = is_there && self.rects[largest as usize].pending_from <= c;
            if let Some(run) = &mut open {
                let same = (run.lowest, run.highest, run.largest, run.pending)
                    == (lowest, highest, largest, pending);
                if same {
                    run.columns[1] = c + 1;
                    continue;
                }
            }
            let next = is_there.then_some(ColumnRun {
                columns: [c, c + 1],
                lowest,
                highest,
                largest,
                pending,
            });
            if let Some(run) = std::mem::replace(&mut open, next) {
                emit(&self.rects, &run);
            }
        }
        if let Some(run) = open {
            emit(&self.rects, &run);
        }
    }

    fn combine(&mut self, at: usize, extreme: Extremes) {
        let old = &mut self.extremes[at];
        if *old == EMPTY {
            *old = extreme;
            return;
        }
        let rect = |i: u32| &self.rects[i as usize];
        // A total order: rectangles that are otherwise equal are ordered by their index.
        let upwards = |a: u32, b: u32| {
            let (one, other) = (rect(a), rect(b));
            one.low.total_cmp(&other.low).then(one.columns.cmp(&other.columns)).then(a.cmp(&b))
        };
        let by_size =
            |a: u32, b: u32| rect(a).weight.cmp(&rect(b).weight).then_with(|| upwards(b, a));
        *old = Extremes {
            lowest: if upwards(extreme.lowest, old.lowest).is_lt() {
                extreme.lowest
            } else {
                old.lowest
            },
            highest: if upwards(extreme.highest, old.highest).is_gt() {
                extreme.highest
            } else {
                old.highest
            },
            largest: if by_size(extreme.largest, old.largest).is_gt() {
                extreme.largest
            } else {
                old.largest
            },
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rect(low: f64, columns: [u32; 2], weight: u64) -> LowRect {
        LowRect {
            bucket: 0,
            low,
            high: low + 1.0,
            columns,
            pending_from: columns[1],
            weight,
            block: 0,
        }
    }

    fn runs(list: &[LowRect]) -> Vec<([u32; 2], u32, u32, u32)> {
        let mut out = Vec::new();
        let mut merger = Merger::new(16);
        // Twice, to check that a merger can be reused.
        for _ in 0..2 {
            out.clear();
            for rect in list {
                merger.push(rect.clone());
            }
            let (mut work, mut slices) = (0, 1);
            while !merger.advance(&mut work, 8 * slices, |_, run| {
                out.push((run.columns, run.lowest, run.highest, run.largest));
            }) {
                slices += 1;
            }
            assert!(work > 8 * slices - 8, "{slices} slices for {work}");
        }
        out
    }

    #[test]
    fn equal_columns_become_one_run() {
        let list = [rect(0.0, [0, 4], 5), rect(1.0, [2, 6], 9), rect(2.0, [8, 9], 1)];
        assert_eq!(
            runs(&list),
            [([0, 2], 0, 0, 0), ([2, 4], 0, 1, 1), ([4, 6], 1, 1, 1), ([8, 9], 2, 2, 2)]
        );
    }

    #[test]
    fn large_buckets_merge_like_small_ones() {
        // The rectangles of `equal_columns_become_one_run`, five times each.
        let mut list = Vec::new();
        for (low, columns, weight) in [(0.0, [0, 4], 5), (1.0, [2, 6], 9), (2.0, [8, 9], 1)] {
            list.extend((0..5).map(|i| rect(low + f64::from(i) / 10.0, columns, weight)));
        }
        assert_eq!(
            runs(&list),
            [([0, 2], 0, 4, 0), ([2, 4], 0, 9, 5), ([4, 6], 5, 9, 5), ([8, 9], 10, 14, 10)]
        );
    }

    #[test]
    fn sliced_merging_equals_unsliced() {
        let list: Vec<LowRect> = (0..20_000u32)
            .map(|i| LowRect {
                bucket: i % 3,
                ..rect(f64::from(i * 7919 % 20_000), [i % 9, 9 + i % 7], 1)
            })
            .collect();
        let merged = |slice: u64| {
            let (mut merger, mut out) = (Merger::new(16), Vec::new());
            for rect in &list {
                merger.push(rect.clone());
            }
            let (mut work, mut slices) = (0, 1);
            while !merger.advance(&mut work, slice.saturating_mul(slices), |_, run| {
                out.push((run.columns, run.lowest, run.highest, run.largest));
            }) {
                slices += 1;
                assert!(
                    work < slice * (slices - 1) + 2 * STRIDE as u64,
                    "a slice of {slice} went on to {work}"
                );
            }
            (out, slices)
        };
        let (whole, one) = merged(u64::MAX);
        let (sliced, many) = merged(10_000);
        assert!(whole == sliced && one == 1 && many >= 18, "{many} slices");
        // The expected extremes of each bucket by brute force.
        for (bucket, runs) in (0..3).zip(whole.chunk_by(|a, b| a.0[1] <= b.0[0])) {
            for &(columns, lowest, highest, largest) in runs {
                let there = |c: u32| {
                    (0..20_000).filter(move |i| i % 3 == bucket && i % 9 <= c && c < 9 + i % 7)
                };
                let low = |i: &u32| *i * 7919 % 20_000;
                for c in columns[0]..columns[1] {
                    assert_eq!(
                        (Some(lowest), Some(highest)),
                        (there(c).min_by_key(low), there(c).max_by_key(low))
                    );
                    assert_eq!(largest, lowest, "all weights are equal");
                }
            }
        }
    }

    #[test]
    fn pending_columns_become_their_own_run() {
        let mut one = rect(0.0, [1, 9], 5);
        one.pending_from = 7;
        let mut out = Vec::new();
        let mut merger = Merger::new(16);
        merger.push(one);
        assert!(merger.advance(&mut 0, u64::MAX, |_, run| out.push((run.columns, run.pending))));
        assert_eq!(out, [([1, 7], false), ([7, 9], true)]);
    }
}
