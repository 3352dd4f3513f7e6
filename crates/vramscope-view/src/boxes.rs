//! Positions of the boxes that the page lays over the plot: names, marks, rulers and ranges.

use crate::screen::Screen;
use crate::tile::Area;
use crate::viewport::clamp;

/// The boxes in view, as `[index, left, top, width, height]` in CSS pixels of the canvas, in order.
///
/// `boxes` has `[x0, x1, y0, y1]` for each box, in slots and bytes (or units of rows). A height of
/// NaN means the edge of the plot. Edges are rounded to device pixels like those of strips, and cut
/// at the plot. A box is at least one CSS pixel wide and high, so a box without a width is a line.
pub(crate) fn boxes(screen: &Screen, view: &Area, boxes: &[f64]) -> Vec<f64> {
    let (plot, ratio) = (screen.plot, screen.ratio);
    let mut seen = Vec::new();
    for (i, area) in boxes.chunks_exact(4).enumerate() {
        // Every frame checks tens of thousands of rows, and few are in view. Two comparisons skip
        // most of them.
        if is_outside([area[0], area[1]], [view.x0, view.x1])
            || is_outside([area[2], area[3]], [view.y0, view.y1])
        {
            continue;
        }
        let edge = |bytes: f64, default: f64| {
            if bytes.is_nan() { default } else { screen.y_of(view, bytes) }
        };
        let x = [screen.x_of(view, area[0]), screen.x_of(view, area[1])];
        let y = [edge(area[2], f64::NEG_INFINITY), edge(area[3], f64::INFINITY)];
        if let (Some([left, right]), Some([low, high])) =
            (visible_part(x, [plot.x0, plot.x1], ratio), visible_part(y, [plot.y0, plot.y1], ratio))
        {
            seen.extend([
                i as f64,
                screen.css_x(left),
                screen.css_y(high),
                (right - left) / ratio,
                (high - low) / ratio,
            ]);
        }
    }
    seen
}

/// True when the range is certainly outside the view. False for NaN.
fn is_outside([from, to]: [f64; 2], [low, high]: [f64; 2]) -> bool {
    (from > high && to > high) || (from < low && to < low)
}

/// The part of a range of device pixels that is inside the plot, widened to at least `min_size`.
/// `None` when the range is outside the plot. A range without extent is a line and may be inside.
fn visible_part([from, to]: [f64; 2], plot: [f32; 2], min_size: f64) -> Option<[f64; 2]> {
    let [low, high] = plot.map(f64::from);
    let (from, to) = if from > to { (to, from) } else { (from, to) };
    let seen = if from == to { low <= from && from <= high } else { from < high && to > low };
    let pixel = |v: f64| clamp((v + 0.5).floor(), [low, high]);
    let (from, to) = (pixel(from), pixel(to));
    seen.then(|| {
        let from = if to - from < min_size { from.min(high - min_size).max(low) } else { from };
        [from, to.max(from + min_size)]
    })
}

#[cfg(test)]
mod tests {
    use super::boxes;
    use crate::screen::Screen;
    use crate::tile::Area;

    const VIEW: Area = Area { x0: 100.0, x1: 200.0, y0: 0.0, y1: 4000.0 };

    /// On a plot of 1000 x 400 CSS pixels at 64, 8. A slot is 10 pixels wide, and 10 bytes are one
    /// pixel high.
    fn seen(list: &[[f64; 4]]) -> Vec<f64> {
        boxes(&Screen::new(1076.0, 432.0, 2.0), &VIEW, list.as_flattened())
    }

    #[test]
    fn boxes_are_at_their_slots_and_bytes() {
        assert_eq!(seen(&[[110.0, 120.0, 1000.0, 2000.0]]), [0.0, 164.0, 208.0, 100.0, 100.0]);
        let both = seen(&[
            [0.0, 50.0, 0.0, 1.0],
            [190.0, 900.0, -5.0, 200.0],
            [150.0, 151.0, 0.0, 4000.0],
        ]);
        assert_eq!(
            both,
            [[1.0, 964.0, 388.0, 100.0, 20.0], [2.0, 564.0, 8.0, 10.0, 400.0]].as_flattened()
        );
    }

    #[test]
    fn nan_heights_are_the_edges_of_the_plot() {
        assert_eq!(
            seen(&[[150.0, f64::INFINITY, f64::NAN, f64::NAN]]),
            [0.0, 564.0, 8.0, 500.0, 400.0]
        );
        assert_eq!(
            seen(&[[f64::NEG_INFINITY, 110.0, f64::NAN, 2000.0]]),
            [0.0, 64.0, 208.0, 100.0, 200.0]
        );
        let all = [f64::NEG_INFINITY, f64::INFINITY, f64::NEG_INFINITY, f64::INFINITY];
        assert_eq!(seen(&[all]), [0.0, 64.0, 8.0, 1000.0, 400.0]);
        assert_eq!(
            seen(&[[120.0, 110.0, 2000.0, 1000.0]]),
            seen(&[[110.0, 120.0, 1000.0, 2000.0]])
        );
        assert!(seen(&[[f64::NAN, 150.0, 0.0, 1.0], [150.0, f64::NAN, 0.0, 1.0]]).is_empty());
    }

    #[test]
    fn lines_are_one_pixel_wide_and_inside_the_plot() {
        let line = |x: f64| seen(&[[x, x, f64::NAN, f64::NAN]]);
        assert_eq!(line(150.0), [0.0, 564.0, 8.0, 1.0, 400.0]);
        assert_eq!(line(200.0), [0.0, 1063.0, 8.0, 1.0, 400.0]);
        assert!(line(99.9).is_empty() && line(200.1).is_empty());
        assert_eq!(seen(&[[110.0, 120.0, 0.0, 0.0]]), [0.0, 164.0, 407.0, 100.0, 1.0]);
        // A box that only touches the edge of the plot is not in view. An incomplete box is
        // ignored.
        assert!(seen(&[[90.0, 100.0, 0.0, 10.0], [200.0, 210.0, 0.0, 10.0]]).is_empty());
        assert!(boxes(&Screen::new(1076.0, 432.0, 1.0), &VIEW, &[110.0, 120.0, 0.0]).is_empty());
    }
}
