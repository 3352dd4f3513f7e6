//! The curves of two sides in one plot.

use crate::messages::views::{COMPARED, ComparedCurves, Difference, PlaceMark};
use vramscope_report::Quantity;
use vramscope_report::side::{Align, Side, SideCurve};
use vramscope_units::svg::{Path, outline};
use vramscope_units::{Tick, byte_ticks, event_ticks, signed_grouped, time_ticks};

/// Both curves in one box. The x axis spans both curves. The y axis ends above the higher peak.
pub(super) fn curves(side_a: &Side, side_b: &Side, align: Align) -> ComparedCurves {
    let of = |side: &'_ Side| side.curves.iter().find(|c| c.align == align).cloned();
    let (Some(a), Some(b)) = (of(side_a), of(side_b)) else {
        let without = match (of(side_a), of(side_b)) {
            (None, None) => "neither",
            (None, _) => "A",
            _ => "B",
        };
        let missing = match (align, without) {
            (Align::Time, "neither") => "Neither recording has times".to_owned(),
            (Align::Time, side) => format!("{side} was recorded without times"),
            (Align::Step, "neither") => {
                "No training steps were found in either recording".to_owned()
            }
            (_, side) => format!("No training steps were found in {side}"),
        };
        return ComparedCurves {
            align,
            missing,
            a: String::new(),
            b: String::new(),
            x: Vec::new(),
            y: Vec::new(),
            difference: Difference::default(),
        };
    };
    let (from, to) = (a.from.min(b.from), a.to.max(b.to));
    let length = (to - from).max(f64::MIN_POSITIVE);
    let top = a.tops.iter().chain(&b.tops).copied().max().unwrap_or(0);
    // Headroom, so that the line at the peak is not clipped.
    let scale = top.saturating_add(top / 24).max(1);
    let path = |curve: &SideCurve| {
        let tenths = |x: f64| ((x - from) / length * f64::from(COMPARED[0]) * 10.0).round() as u32;
        outline(&curve.tops, [tenths(curve.from), tenths(curve.to)], COMPARED[1], scale)
    };
    let marks = |ticks: Vec<Tick>, low: f64, length: f64| -> Vec<PlaceMark> {
        let mark = |t: Tick| PlaceMark { at: (t.value - low) / length, text: t.text };
        ticks.into_iter().map(mark).collect()
    };
    let x = match align {
        Align::Event => event_ticks(from.max(0.0), to, 8),
        Align::Time => time_ticks(from.max(0.0), to, 8),
        Align::Step => {
            let step =
                |t: Tick| Tick { text: format!("step {}", signed_grouped(t.value as i64)), ..t };
            event_ticks(from.max(0.0), to, 8).into_iter().map(step).collect()
        }
    };
    ComparedCurves {
        align,
        missing: String::new(),
        a: path(&a),
        b: path(&b),
        x: marks(x, from, length),
        y: marks(byte_ticks(0.0, scale as f64, 4), 0.0, scale as f64),
        difference: difference(&a, &b, from, to),
    }
}

/// Columns of the difference.
const COLUMNS: usize = 400;

/// The difference of two curves in `from..to`. Where only one recording has data, there is none.
fn difference(a: &SideCurve, b: &SideCurve, from: f64, to: f64) -> Difference {
    let step = (to - from) / COLUMNS as f64;
    let at = |column: usize| {
        let x = from + (column as f64 + 0.5) * step;
        Some(value(b, x)?.saturating_sub(value(a, x)?))
    };
    let values: Vec<i64> = (0..COLUMNS).map(|column| at(column).unwrap_or(0)).collect();
    let most = values.iter().copied().max().unwrap_or(0).max(0);
    let least = values.iter().copied().min().unwrap_or(0).min(0);
    let span = (most as f64 - least as f64).max(1.0);
    let [width, height] = COMPARED.map(f64::from);
    let zero = most as f64 / span;
    let path = |of: &dyn Fn(i64) -> i64| {
        let mut out = Path::default();
        let y = |value: i64| (most - value) as f64 / span * height;
        let x = |column: usize| column as f64 * width / COLUMNS as f64;
        out.to("M0 ", y(0));
        let mut last = 0;
        for (column, value) in values.iter().map(|&v| of(v)).enumerate() {
            if value != last {
                out.to("H", x(column));
                out.to("V", y(value));
            }
            last = value;
        }
        out.to("H", width);
        out.to("V", y(0));
        out.closed()
    };
    let text = |bytes: i64| match bytes {
        0 => String::new(),
        bytes => Quantity::change_of_bytes(bytes).text,
    };
    Difference {
        more: path(&|v| v.max(0)),
        less: path(&|v| v.min(0)),
        zero,
        most: text(most),
        least: text(least),
    }
}

/// The curve at a position; `None` outside of the recording.
fn value(curve: &SideCurve, x: f64) -> Option<i64> {
    let share = (x - curve.from) / (curve.to - curve.from).max(f64::MIN_POSITIVE);
    if !(0.0..1.0).contains(&share) {
        return None;
    }
    let top = curve.tops.get((share * curve.tops.len() as f64) as usize)?;
    Some(i64::try_from(*top).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn difference_is_signed_and_ends_with_the_shorter_recording() {
        let curve = |to: f64, tops: &[u64]| SideCurve {
            align: Align::Event,
            from: 0.0,
            to,
            tops: tops.to_vec(),
        };
        let (a, b) = (curve(4.0, &[100, 100, 300, 300]), curve(2.0, &[400, 100]));
        let found = difference(&a, &b, 0.0, 4.0);
        assert_eq!((found.most.as_str(), found.least.as_str(), found.zero), ("+300 B", "", 1.0));
        // A quarter of the width has 300 bytes more, the next one nothing, and the rest no data.
        assert_eq!(found.more, "M0 200H0V0H300V200H1200V200Z");
        assert_eq!(found.less, "M0 200H1200V200Z");
        let back = difference(&b, &a, 0.0, 4.0);
        assert_eq!((back.most.as_str(), back.least.as_str(), back.zero), ("", "-300 B", 0.0));
        assert_eq!(back.less, "M0 0H0V200H300V0H1200V0Z");
    }
}
