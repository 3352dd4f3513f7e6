//! Where the rows of the segments view are.

use super::RowOrder;
use std::ops::Range;

/// The rows of the segments view, from the top down: all as high as the others but for one that may
/// be higher.
///
/// Heights count from the bottom. Nothing is kept for a row, so that half a million of them cost
/// nothing.
#[derive(Clone, Copy, Debug)]
pub struct SegmentRows<'a> {
    order: &'a RowOrder,
    height: f64,
    /// The row that is higher, and by how much.
    grown: Option<(usize, f64)>,
}

impl<'a> SegmentRows<'a> {
    /// Rows so many units high each; that of the span `grown` so many times as high.
    pub fn new(order: &'a RowOrder, height: f64, grown: Option<(u32, u32)>) -> Self {
        let place = |(span, times): (u32, u32)| {
            Some((order.row_of(span)?, height * f64::from(times.saturating_sub(1))))
        };
        Self { order, height, grown: grown.and_then(place) }
    }

    /// What is in the rows.
    pub fn order(&self) -> &'a RowOrder {
        self.order
    }

    /// How high all of them are together, in units.
    pub fn units(&self) -> f64 {
        self.above(0)
    }

    /// The upper edge of a row; behind the last one 0.
    fn above(&self, row: usize) -> f64 {
        let more = self.grown.filter(|&(grown, _)| row <= grown).map_or(0.0, |(_, more)| more);
        (self.order.len() - row) as f64 * self.height + more
    }

    /// The lower and the upper edge of a row, in units.
    pub fn edges(&self, row: usize) -> [f64; 2] {
        [self.above(row + 1), self.above(row)]
    }

    /// The edges of the higher row.
    pub fn grown(&self) -> Option<[f64; 2]> {
        self.grown.map(|(row, _)| self.edges(row))
    }

    /// The least that a row is high, in units.
    pub(super) fn height(&self) -> f64 {
        self.height
    }

    /// The rows that reach into what is between two heights.
    pub fn between(&self, low: f64, high: f64) -> Range<usize> {
        let from = self.first(|row| self.above(row + 1) < high);
        from..self.first(|row| self.above(row) <= low).max(from)
    }

    /// The first row of which something is true that is true of all below it.
    fn first(&self, is: impl Fn(usize) -> bool) -> usize {
        let (mut from, mut to) = (0, self.order.len());
        while from < to {
            let middle = usize::midpoint(from, to);
            if is(middle) {
                to = middle;
            } else {
                from = middle + 1;
            }
        }
        from
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(rows: &[&[u32]]) -> RowOrder {
        let mut order = RowOrder::default();
        for row in rows {
            order.push(row);
        }
        order
    }

    #[test]
    fn rows_lie_on_top_of_each_other_and_one_is_higher() {
        let order = order(&[&[7], &[1, 3, 5], &[9, 2], &[4]]);
        for (grown, units) in [(None, 40.0), (Some((3, 4)), 70.0), (Some((8, 4)), 40.0)] {
            let rows = SegmentRows::new(&order, 10.0, grown);
            assert_eq!((rows.units(), rows.order()), (units, &order));
            let mut top = units;
            for row in 0..order.len() {
                let high = if row == 1 && units > 40.0 { 40.0 } else { 10.0 };
                assert_eq!(rows.edges(row), [top - high, top], "row {row}");
                top -= high;
            }
            assert_eq!(top, 0.0);
            assert_eq!(rows.grown(), (units > 40.0).then_some([20.0, 60.0]));
        }
        assert_eq!(SegmentRows::new(&RowOrder::default(), 10.0, Some((1, 4))).units(), 0.0);
    }

    #[test]
    fn rows_between_are_those_that_reach_into_it() {
        let mut order = RowOrder::default();
        for span in 0..50 {
            order.push(&[span]);
        }
        for grown in [None, Some((0, 4)), Some((20, 4)), Some((49, 2))] {
            let rows = SegmentRows::new(&order, 10.0, grown);
            for low in (-3..60).map(|n| f64::from(n) * 10.0) {
                for (low, high) in
                    [(low, low + 25.0), (low + 5.0, low + 5.5), (low, low + 1e9), (low, low)]
                {
                    let reach = |&row: &usize| {
                        let [bottom, top] = rows.edges(row);
                        bottom < high && low < top
                    };
                    let expected: Vec<usize> = (0..50).filter(reach).collect();
                    let found: Vec<usize> = rows.between(low, high).collect();
                    // Nothing is between a height and itself, though it is within a row.
                    assert!(
                        found == expected || low == high && found.len() <= 1,
                        "{grown:?} {low} to {high}: {found:?}"
                    );
                }
            }
        }
    }
}
