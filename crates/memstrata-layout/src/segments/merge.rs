//! What is too low to see, merged column by column.

/// Something lower than what can be seen.
#[derive(Debug)]
pub(super) struct Small {
    /// Which part of the row it begins in. The parts are as high as what is merged, so nothing higher lies between two
    /// that begin in the same.
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

/// What some columns show of one part of a row, by index into its list.
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

/// With fewer, each is noted column by column.
const FEW: usize = 8;

/// Room for one part of a row.
///
/// Thousands may be there in all columns. A range of columns is noted as two that are each a power of two wide, which may
/// overlap, and at the end those are handed down to single columns: what it costs depends on the columns only.
#[derive(Debug, Default)]
pub(super) struct Merge {
    columns: usize,
    /// `marks[k * columns + c]` is about the columns `[c, c + 2^k)`.
    marks: Vec<Mark>,
}

impl Merge {
    pub(super) fn new(columns: u32) -> Self {
        let levels = columns.max(1).ilog2() as usize + 1;
        Self { columns: columns as usize, marks: vec![NONE; levels * columns as usize] }
    }

    /// What each column shows of a list that goes upwards; those that show the same together.
    pub(super) fn runs(&mut self, list: &[Small], mut each: impl FnMut(Run)) {
        let mut top = 0;
        let (mut from, mut to) = (u32::MAX, 0);
        for (i, small) in (0u32..).zip(list) {
            let mark = Mark { lowest: i, highest: i, largest: i };
            let [x0, x1] = small.columns;
            (from, to) = (from.min(x0), to.max(x1));
            if list.len() <= FEW {
                for c in x0..x1 {
                    self.note(list, c as usize, mark);
                }
            } else {
                let k = (x1 - x0).ilog2();
                top = top.max(k as usize);
                for c in [x0, x1 - (1 << k)] {
                    self.note(list, k as usize * self.columns + c as usize, mark);
                }
            }
        }
        for k in (1..=top).rev() {
            for c in from as usize..to as usize {
                let mark = std::mem::replace(&mut self.marks[k * self.columns + c], NONE);
                if mark != NONE {
                    let below = (k - 1) * self.columns + c;
                    self.note(list, below, mark);
                    self.note(list, below + (1 << (k - 1)), mark);
                }
            }
        }
        let mut open: Option<Run> = None;
        for c in from..to {
            let Mark { lowest, highest, largest } = std::mem::replace(&mut self.marks[c as usize], NONE);
            let is_there = lowest != NONE.lowest;
            let pending = is_there && list[largest as usize].pending <= c;
            if let Some(run) = &mut open {
                let same = (run.lowest, run.highest, run.largest, run.pending) == (lowest, highest, largest, pending);
                if same {
                    run.columns[1] = c + 1;
                    continue;
                }
            }
            let next = is_there.then_some(Run { columns: [c, c + 1], lowest, highest, largest, pending });
            if let Some(run) = std::mem::replace(&mut open, next) {
                each(run);
            }
        }
        if let Some(run) = open {
            each(run);
        }
    }

    fn note(&mut self, list: &[Small], at: usize, mark: Mark) {
        let old = &mut self.marks[at];
        if *old == NONE {
            *old = mark;
            return;
        }
        let size = |i: u32| (list[i as usize].weight, std::cmp::Reverse(i));
        let largest = if size(mark.largest) > size(old.largest) { mark.largest } else { old.largest };
        *old = Mark { lowest: old.lowest.min(mark.lowest), highest: old.highest.max(mark.highest), largest };
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
        Merge::new(16).runs(list, |run| out.push((run.columns, run.lowest, run.highest, run.largest)));
        out
    }

    #[test]
    fn columns_that_show_the_same_are_one_strip() {
        let list = [small(0.0, [0, 4], 5), small(1.0, [2, 6], 9), small(2.0, [8, 9], 1)];
        assert_eq!(runs(&list), [([0, 2], 0, 0, 0), ([2, 4], 0, 1, 1), ([4, 6], 1, 1, 1), ([8, 9], 2, 2, 2)]);
    }

    #[test]
    fn many_are_merged_as_few_are() {
        // The same shape as above, each many times over.
        let mut list = Vec::new();
        for (low, columns, weight) in [(0.0, [0, 4], 5), (1.0, [2, 6], 9), (2.0, [8, 9], 1)] {
            list.extend((0..5).map(|i| small(low + f64::from(i) / 10.0, columns, weight)));
        }
        assert_eq!(runs(&list), [([0, 2], 0, 4, 0), ([2, 4], 0, 9, 5), ([4, 6], 5, 9, 5), ([8, 9], 10, 14, 10)]);
    }

    #[test]
    fn what_waits_for_its_free_is_a_strip_of_its_own() {
        let mut one = small(0.0, [1, 9], 5);
        one.pending = 7;
        let mut out = Vec::new();
        Merge::new(16).runs(&[one], |run| out.push((run.columns, run.pending)));
        assert_eq!(out, [([1, 7], false), ([7, 9], true)]);
    }
}
