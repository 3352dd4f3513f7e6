//! Positions of the rows of the segments view.

use super::RowOrder;
use super::shared::ROW_QUARTERS;
use std::ops::Range;

/// The rows of the segments view, from the top down. One of them may be enlarged.
///
/// Heights count from the bottom.
#[derive(Clone, Copy, Debug)]
pub struct SegmentRows<'a> {
    order: &'a RowOrder,
    /// The usual height of a row in units.
    height: f64,
    /// The enlarged row, and its additional height in units.
    grown: Option<(usize, f64)>,
}

impl<'a> SegmentRows<'a> {
    /// Rows of usually `height` units each. `grown` is a span and a factor: the row of that span is
    /// enlarged by the factor of the usual height.
    pub fn new(order: &'a RowOrder, height: f64, grown: Option<(u32, u32)>) -> Self {
        let enlarged = |(span, times): (u32, u32)| {
            Some((order.row_of(span)?, height * f64::from(times.saturating_sub(1))))
        };
        Self { order, height, grown: grown.and_then(enlarged) }
    }

    /// The spans in the rows.
    pub fn order(&self) -> &'a RowOrder {
        self.order
    }

    /// Total height of all rows in units.
    pub fn units(&self) -> f64 {
        self.units_of(self.order.quarters()) + self.grown.map_or(0.0, |(_, more)| more)
    }

    fn units_of(&self, quarters: u32) -> f64 {
        f64::from(quarters) * self.height / f64::from(ROW_QUARTERS)
    }

    /// The lower and the upper edge of a row, in units.
    pub fn edges(&self, row: usize) -> [f64; 2] {
        let (below, height) = self.order.edge(row);
        let more = |is_raised: &dyn Fn(usize) -> bool| {
            self.grown.filter(|&(grown, _)| is_raised(grown)).map_or(0.0, |(_, more)| more)
        };
        let low = self.units_of(self.order.quarters() - below) + more(&|grown| row < grown);
        [low, low + self.units_of(height.into()) + more(&|grown| row == grown)]
    }

    /// The lower and the upper edge of the enlarged row.
    pub fn grown(&self) -> Option<[f64; 2]> {
        self.grown.map(|(row, _)| self.edges(row))
    }

    /// The usual height of a row in units. No row is lower.
    pub fn height(&self) -> f64 {
        self.height
    }

    /// The rows that overlap the range between two heights.
    pub fn between(&self, low: f64, high: f64) -> Range<usize> {
        let from = self.first(|row| self.edges(row)[0] < high);
        from..self.first(|row| self.edges(row)[1] <= low).max(from)
    }

    /// The first row for which `is` is true. `is` must be true for all rows below that row as well.
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
    fn rows_are_stacked_and_one_is_enlarged() {
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
    fn rows_have_their_heights_and_gaps() {
        let mut order = RowOrder::default();
        order.push_sized(&[0], 8, 4);
        order.push_sized(&[1], 4, 0);
        order.push_sized(&[2], 6, 4);
        let rows = SegmentRows::new(&order, 8.0, None);
        assert_eq!(rows.units(), 52.0);
        assert_eq!([0, 1, 2].map(|row| rows.edges(row)), [[28.0, 44.0], [20.0, 28.0], [0.0, 12.0]]);
        // The range of a gap has no row.
        assert_eq!(rows.between(12.0, 20.0).len(), 0);
        assert_eq!(rows.between(11.0, 21.0), 1..3);
        let grown = SegmentRows::new(&order, 8.0, Some((1, 3)));
        assert_eq!(grown.units(), 68.0);
        assert_eq!([0, 1].map(|row| grown.edges(row)), [[44.0, 60.0], [20.0, 44.0]]);
    }

    #[test]
    fn between_returns_overlapping_rows() {
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
                    // An empty range inside a row may return that row.
                    assert!(
                        found == expected || low == high && found.len() <= 1,
                        "{grown:?} {low} to {high}: {found:?}"
                    );
                }
            }
        }
    }
}
