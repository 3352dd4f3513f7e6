//! The curves of two sides in one plot.

use crate::queries::minimap::outline;
use vramscope_protocol::views::{COMPARED, ComparedCurves, PlaceMark};
use vramscope_report::side::{Align, Side, SideCurve};
use vramscope_units::{Tick, byte_ticks, event_ticks, time_ticks};

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
                |t: Tick| Tick { text: format!("step {}", t.text.trim_start_matches('#')), ..t };
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
    }
}
