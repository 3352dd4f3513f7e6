//! What is too low to see, merged column by column.

use vramscope_analysis::slicing::STRIDE;

/// Something lower than what can be seen.
#[derive(Clone, Debug)]
pub(super) struct Small {
    /// Which part of the row it begins in. The parts are as high as what is merged, so nothing
    /// higher lies between two that begin in the same.
    pub(super) bucket: u32,
    pub(super) low: f64,
    pub(super) high: f64,
    /// From which column to which it is there, and from which on it waits for its free.
    pub(super) columns: [u32; 2],
    pub(super) pending: u32,
    /// Its bytes.
    pub(super) weight: u64,
    pub(super) block: u32,
}

/// What some columns show of one part of a row, by index into all that were pushed.
pub(super) struct Run {
    pub(super) columns: [u32; 2],
    pub(super) lowest: u32,
    pub(super) highest: u32,
    pub(super) largest: u32,
    /// Whether the largest waits for its free.
    pub(super) pending: bool,
}

/// The lowest, highest and largest of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    lowest: u32,
    highest: u32,
    largest: u32,
}

const NONE: Mark = Mark { lowest: u32::MAX, highest: 0, largest: 0 };

/// What it costs to note one, as [`Cost::work`](crate::Cost::work) counts it.
const COST: u64 = 8;

/// With fewer, each is noted column by column.
const FEW: usize = 8;

/// What is too low to see of a row, and how far it has been merged.
///
/// Thousands may be there in all columns. A range of columns is noted as two that are each a power
/// of two wide, which may overlap, and at the end those are handed down to single columns: what it
/// costs depends on the columns only.
#[derive(Debug, Default)]
pub(super) struct Merge {
    columns: usize,
    /// `marks[k * columns + c]` is about the columns `[c, c + 2^k)`.
    marks: Vec<Mark>,
    small: Vec<Small>,
    /// How many begin in each part of the row; once they are put in order, where those of the next
    /// part begin.
    parts: Vec<u32>,
    /// By part. So many have been put in order, and so many noted.
    order: Vec<u32>,
    ordered: usize,
    noted: usize,
    /// The part that is being noted, the columns of it, and the widest range.
    part: usize,
    from: u32,
    to: u32,
    top: usize,
}

impl Merge {
    pub(super) fn new(columns: u32) -> Self {
        let levels = columns.max(1).ilog2() as usize + 1;
        let marks = vec![NONE; levels * columns as usize];
        Self { columns: columns as usize, marks, from: u32::MAX, ..Self::default() }
    }

    pub(super) fn push(&mut self, small: Small) {
        let part = small.bucket as usize;
        if self.parts.len() <= part {
            self.parts.resize(part + 1, 0);
        }
        self.parts[part] += 1;
        self.small.push(small);
    }

    /// Forgets what was pushed, none of which has been merged.
    pub(super) fn clear(&mut self) {
        self.small.clear();
        self.parts.clear();
    }

    /// Goes on to merge what was pushed until that is done, which it says, or until `work` has come
    /// to `end`. Part by part, what each column shows; those that show the same together.
    pub(super) fn go_on(
        &mut self,
        work: &mut u64,
        end: u64,
        mut each: impl FnMut(&[Small], &Run),
    ) -> bool {
        if self.order.len() < self.small.len() {
            let mut start = 0;
            for part in &mut self.parts {
                start += std::mem::replace(part, start);
            }
            self.order.resize(self.small.len(), 0);
        }
        while self.ordered < self.small.len() {
            if *work >= end {
                return false;
            }
            let to = self.small.len().min(self.ordered + STRIDE);
            for (i, small) in (self.ordered as u32..).zip(&self.small[self.ordered..to]) {
                let place = &mut self.parts[small.bucket as usize];
                self.order[*place as usize] = i;
                *place += 1;
            }
            *work += (to - self.ordered) as u64;
            self.ordered = to;
        }
        // Where a part began, the one before ends now.
        while let Some(&behind) = self.parts.get(self.part) {
            let first = if self.part == 0 { 0 } else { self.parts[self.part - 1] };
            while self.noted < behind as usize {
                if *work >= end {
                    return false;
                }
                let to = (behind as usize).min(self.noted + STRIDE / COST as usize);
                for at in self.noted..to {
                    self.add(self.order[at], (behind - first) as usize <= FEW);
                }
                *work += (to - self.noted) as u64 * COST;
                self.noted = to;
            }
            if first < behind {
                *work += ((self.top + 1) * self.columns) as u64 / 2;
                self.runs(&mut each);
            }
            self.part += 1;
        }
        self.clear();
        self.order.clear();
        (self.ordered, self.noted, self.part) = (0, 0, 0);
        true
    }

    fn add(&mut self, i: u32, few: bool) {
        let mark = Mark { lowest: i, highest: i, largest: i };
        let [x0, x1] = self.small[i as usize].columns;
        (self.from, self.to) = (self.from.min(x0), self.to.max(x1));
        if few {
            for c in x0..x1 {
                self.note(c as usize, mark);
            }
        } else {
            let k = (x1 - x0).ilog2();
            self.top = self.top.max(k as usize);
            for c in [x0, x1 - (1 << k)] {
                self.note(k as usize * self.columns + c as usize, mark);
            }
        }
    }

    /// What each column shows of the part that has been noted.
    fn runs(&mut self, each: &mut impl FnMut(&[Small], &Run)) {
        let (from, to) =
            (std::mem::replace(&mut self.from, u32::MAX), std::mem::take(&mut self.to));
        for k in (1..=std::mem::take(&mut self.top)).rev() {
            for c in from as usize..to as usize {
                let mark = std::mem::replace(&mut self.marks[k * self.columns + c], NONE);
                if mark != NONE {
                    let below = (k - 1) * self.columns + c;
                    self.note(below, mark);
                    self.note(below + (1 << (k - 1)), mark);
                }
            }
        }
        let mut open: Option<Run> = None;
        for c in from..to {
            let Mark { lowest, highest, largest } =
                std::mem::replace(&mut self.marks[c as usize], NONE);
            let is_there = lowest != NONE.lowest;
            let pending = is_there && self.small[largest as usize].pending <= c;
            if let Some(run) = &mut open {
                let same = (run.lowest, run.highest, run.largest, run.pending)
                    == (lowest, highest, largest, pending);
                if same {
                    run.columns[1] = c + 1;
                    continue;
                }
            }
            let next =
                is_there.then_some(Run { columns: [c, c + 1], lowest, highest, largest, pending });
            if let Some(run) = std::mem::replace(&mut open, next) {
                each(&self.small, &run);
            }
        }
        if let Some(run) = open {
            each(&self.small, &run);
        }
    }

    fn note(&mut self, at: usize, mark: Mark) {
        let old = &mut self.marks[at];
        if *old == NONE {
            *old = mark;
            return;
        }
        let small = |i: u32| &self.small[i as usize];
        // No two are equal: what else is the same came one after the other.
        let upwards = |a: u32, b: u32| {
            let (one, other) = (small(a), small(b));
            one.low.total_cmp(&other.low).then(one.columns.cmp(&other.columns)).then(a.cmp(&b))
        };
        let by_size =
            |a: u32, b: u32| small(a).weight.cmp(&small(b).weight).then_with(|| upwards(b, a));
        *old = Mark {
            lowest: if upwards(mark.lowest, old.lowest).is_lt() { mark.lowest } else { old.lowest },
            highest: if upwards(mark.highest, old.highest).is_gt() {
                mark.highest
            } else {
                old.highest
            },
            largest: if by_size(mark.largest, old.largest).is_gt() {
                mark.largest
            } else {
                old.largest
            },
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small(low: f64, columns: [u32; 2], weight: u64) -> Small {
        Small { bucket: 0, low, high: low + 1.0, columns, pending: columns[1], weight, block: 0 }
    }

    fn runs(list: &[Small]) -> Vec<([u32; 2], u32, u32, u32)> {
        let mut out = Vec::new();
        let mut merge = Merge::new(16);
        // Twice, since it is used again.
        for _ in 0..2 {
            out.clear();
            for small in list {
                merge.push(small.clone());
            }
            let (mut work, mut slices) = (0, 1);
            while !merge.go_on(&mut work, 8 * slices, |_, run| {
                out.push((run.columns, run.lowest, run.highest, run.largest));
            }) {
                slices += 1;
            }
            assert!(work > 8 * slices - 8, "{slices} slices for {work}");
        }
        out
    }

    #[test]
    fn columns_that_show_the_same_are_one_strip() {
        let list = [small(0.0, [0, 4], 5), small(1.0, [2, 6], 9), small(2.0, [8, 9], 1)];
        assert_eq!(
            runs(&list),
            [([0, 2], 0, 0, 0), ([2, 4], 0, 1, 1), ([4, 6], 1, 1, 1), ([8, 9], 2, 2, 2)]
        );
    }

    #[test]
    fn many_are_merged_as_few_are() {
        // The same shape as above, each many times over.
        let mut list = Vec::new();
        for (low, columns, weight) in [(0.0, [0, 4], 5), (1.0, [2, 6], 9), (2.0, [8, 9], 1)] {
            list.extend((0..5).map(|i| small(low + f64::from(i) / 10.0, columns, weight)));
        }
        assert_eq!(
            runs(&list),
            [([0, 2], 0, 4, 0), ([2, 4], 0, 9, 5), ([4, 6], 5, 9, 5), ([8, 9], 10, 14, 10)]
        );
    }

    #[test]
    fn thousands_are_merged_in_slices() {
        let list: Vec<Small> = (0..20_000u32)
            .map(|i| Small {
                bucket: i % 3,
                ..small(f64::from(i * 7919 % 20_000), [i % 9, 9 + i % 7], 1)
            })
            .collect();
        let merged = |slice: u64| {
            let (mut merge, mut out) = (Merge::new(16), Vec::new());
            for small in &list {
                merge.push(small.clone());
            }
            let (mut work, mut slices) = (0, 1);
            while !merge.go_on(&mut work, slice.saturating_mul(slices), |_, run| {
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
        // What is lowest, highest and largest of each part, found by going through all of them.
        for (part, runs) in (0..3).zip(whole.chunk_by(|a, b| a.0[1] <= b.0[0])) {
            for &(columns, lowest, highest, largest) in runs {
                let there = |c: u32| {
                    (0..20_000).filter(move |i| i % 3 == part && i % 9 <= c && c < 9 + i % 7)
                };
                let low = |i: &u32| *i * 7919 % 20_000;
                for c in columns[0]..columns[1] {
                    assert_eq!(
                        (Some(lowest), Some(highest)),
                        (there(c).min_by_key(low), there(c).max_by_key(low))
                    );
                    assert_eq!(largest, lowest, "all weigh the same");
                }
            }
        }
    }

    #[test]
    fn what_waits_for_its_free_is_a_strip_of_its_own() {
        let mut one = small(0.0, [1, 9], 5);
        one.pending = 7;
        let mut out = Vec::new();
        let mut merge = Merge::new(16);
        merge.push(one);
        assert!(merge.go_on(&mut 0, u64::MAX, |_, run| out.push((run.columns, run.pending))));
        assert_eq!(out, [([1, 7], false), ([7, 9], true)]);
    }
}
