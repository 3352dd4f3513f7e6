//! Squarified treemaps: rectangles whose areas are in proportion to values, as square as possible.
//!
//! Bruls, Huizing, van Wijk: Squarified Treemaps, 2000.

/// A rectangle: left, top, width, height.
pub type Rect = [f64; 4];

/// Places values, which are sorted and the largest first, in a rectangle. Together they fill it.
/// Values that are not positive get no area.
pub fn squarify(values: &[f64], [mut left, mut top, mut width, mut height]: Rect) -> Vec<Rect> {
    let mut rest: f64 = values.iter().map(|value| value.max(0.0)).sum();
    let mut places = Vec::with_capacity(values.len());
    let mut from = 0;
    while from < values.len() {
        // What is left of the rectangle per unit.
        let scale = if rest > 0.0 { width * height / rest } else { 0.0 };
        let side = width.min(height);
        let mut until = from;
        let mut sum = 0.0;
        let mut worst = f64::INFINITY;
        while let Some(value) = values.get(until) {
            let next = sum + value.max(0.0);
            let ratio = worst_ratio(values[from], value.max(0.0), next, side, scale);
            if until > from && ratio > worst {
                break;
            }
            (sum, worst, until) = (next, ratio, until + 1);
        }
        // A row along the shorter side.
        let depth = if side > 0.0 { sum * scale / side } else { 0.0 };
        let is_column = width >= height;
        let mut at = 0.0;
        for value in &values[from..until] {
            let length = if sum > 0.0 { side * value.max(0.0) / sum } else { 0.0 };
            places.push(if is_column {
                [left, top + at, depth, length]
            } else {
                [left + at, top, length, depth]
            });
            at += length;
        }
        if is_column {
            (left, width) = (left + depth, (width - depth).max(0.0));
        } else {
            (top, height) = (top + depth, (height - depth).max(0.0));
        }
        rest -= sum;
        from = until;
    }
    places
}

/// The least square ratio of sides in a row of values from `most` down to `least`.
fn worst_ratio(most: f64, least: f64, sum: f64, side: f64, scale: f64) -> f64 {
    let (side, sum) = (side * side, sum * sum * scale);
    if sum <= 0.0 || least <= 0.0 {
        return f64::INFINITY;
    }
    (side * most / sum).max(sum / (side * least))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn area([_, _, width, height]: Rect) -> f64 {
        width * height
    }

    #[test]
    fn the_example_of_the_paper_is_placed_as_there() {
        let places = squarify(&[6.0, 6.0, 4.0, 3.0, 2.0, 2.0, 1.0], [0.0, 0.0, 6.0, 4.0]);
        let near = |a: Rect, b: Rect| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-9);
        assert!(near(places[0], [0.0, 0.0, 3.0, 2.0]), "{places:?}");
        assert!(near(places[1], [0.0, 2.0, 3.0, 2.0]), "{places:?}");
        assert!(near(places[2], [3.0, 0.0, 12.0 / 7.0, 7.0 / 3.0]), "{places:?}");
        assert!(near(places[3], [3.0 + 12.0 / 7.0, 0.0, 9.0 / 7.0, 7.0 / 3.0]), "{places:?}");
    }

    proptest! {
        #[test]
        fn areas_are_in_proportion_and_fill_the_rectangle(
            mut values in proptest::collection::vec(0.0..1e12f64, 1..60),
            width in 1.0..2000.0f64,
            height in 1.0..2000.0f64,
        ) {
            values.sort_by(|a, b| b.total_cmp(a));
            let all: f64 = values.iter().sum();
            let whole = [3.0, 5.0, width, height];
            let places = squarify(&values, whole);
            prop_assert_eq!(places.len(), values.len());
            for (place, value) in places.iter().zip(&values) {
                let wanted = if all > 0.0 { area(whole) * value / all } else { 0.0 };
                prop_assert!((area(*place) - wanted).abs() <= 1e-6 * area(whole));
                let [left, top, w, h] = *place;
                prop_assert!(left >= 3.0 && top >= 5.0);
                prop_assert!(left + w <= 3.0 + width + 1e-6 && top + h <= 5.0 + height + 1e-6);
            }
            // No two of them overlap.
            for (i, a) in places.iter().enumerate() {
                for b in &places[..i] {
                    let across = (a[0] + a[2]).min(b[0] + b[2]) - a[0].max(b[0]);
                    let down = (a[1] + a[3]).min(b[1] + b[3]) - a[1].max(b[1]);
                    prop_assert!(across.min(down) <= 1e-6, "{:?} {:?}", a, b);
                }
            }
        }
    }
}
