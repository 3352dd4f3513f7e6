//! Axis ticks: round values with their labels.

use crate::text::{byte_unit, pointed, scale, signed_grouped, unit_name};

/// A labeled position on an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    /// The position, in the axis's unit (bytes, event index or microseconds).
    pub value: f64,
    /// The label.
    pub text: String,
}

/// Ticks for bytes in `[lo, hi]`, in steps of 1, 2, 4, 8, ... of a binary unit. At most `most` + 1,
/// but two or more where the range has as many bytes: one label tells no scale.
pub fn byte_ticks(lo: f64, hi: f64, most: usize) -> Vec<Tick> {
    let step = ((hi - lo) / most.max(1) as f64).max(1.0);
    let mut step = 2f64.powi(step.log2().ceil() as i32);
    while step > 1.0 && (hi / step).floor() - (lo / step).ceil() < 1.0 {
        step /= 2.0;
    }
    // From two units on, so that an axis up to 2 GiB has whole MiB and not "0.125 GiB".
    let unit = byte_unit((hi.abs() / 2.0).max(1.0) as u64);
    // Enough decimals that all labels differ.
    let scale = scale(unit) as f64;
    let decimals = decimals_for(step / scale);
    let text = |v: f64| match v {
        0.0 => "0".to_owned(),
        _ => format!("{} {}", exact(v / scale, decimals), unit_name(unit)),
    };
    ticks(lo, hi, step, text)
}

/// Ticks for event indices in `[lo, hi]`, in steps of 1, 2 or 5 times a power
/// of ten.
pub fn event_ticks(lo: f64, hi: f64, most: usize) -> Vec<Tick> {
    let step = decimal_step((hi - lo) / most.max(1) as f64).max(1.0);
    ticks(lo, hi, step, |v| format!("#{}", signed_grouped(v as i64)))
}

/// Ticks for microseconds in `[lo, hi]`. The unit follows from the larger
/// end, the number of decimals from the step.
pub fn time_ticks(lo: f64, hi: f64, most: usize) -> Vec<Tick> {
    let step = decimal_step((hi - lo) / most.max(1) as f64).max(1.0);
    let far = lo.abs().max(hi.abs());
    let (unit, name) = if far >= 1e6 {
        (1e6, "s")
    } else if far >= 1e3 {
        (1e3, "ms")
    } else {
        (1.0, "µs")
    };
    let decimals = decimals_for(step / unit);
    ticks(lo, hi, step, |v| format!("{} {name}", exact(v / unit, decimals)))
}

/// A part of a time axis that takes less room than its time. Positions and times are microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeBreak {
    /// Where it begins.
    pub x0: f64,
    /// Where it ends.
    pub x1: f64,
    /// The time in it.
    pub time: f64,
}

/// The time at a position of an axis with breaks, in order.
pub fn time_at(position: f64, breaks: &[TimeBreak]) -> f64 {
    let mut time = position;
    for part in breaks.iter().take_while(|part| part.x0 < position) {
        let share = ((position - part.x0) / (part.x1 - part.x0)).min(1.0);
        time += share * (part.time - (part.x1 - part.x0));
    }
    time
}

/// Ticks between two positions of a time axis with breaks, in order. None are in a break. The value
/// of a tick is its position, and its text the time.
pub fn broken_time_ticks(lo: f64, hi: f64, most: usize, breaks: &[TimeBreak]) -> Vec<Tick> {
    if breaks.is_empty() {
        return time_ticks(lo, hi, most);
    }
    let spacing = (hi - lo) / most.max(1) as f64;
    let mut all: Vec<Tick> = Vec::new();
    let starts = [lo].into_iter().chain(breaks.iter().map(|part| part.x1));
    let ends = breaks.iter().map(|part| part.x0).chain([hi]);
    for (start, end) in starts.zip(ends) {
        let (start, end) = (start.max(lo), end.min(hi));
        let room = ((end - start) / spacing).round();
        if room.is_nan() || room < 1.0 {
            continue;
        }
        let shift = time_at(start, breaks) - start;
        for Tick { value, text } in time_ticks(start + shift, end + shift, room as usize) {
            let position = value - shift;
            // A tick beside a break may be close to the one before it.
            if all.last().is_none_or(|last| position - last.value >= 0.7 * spacing) {
                all.push(Tick { value: position, text });
            }
        }
    }
    all
}

/// The smallest of 1, 2, 5 times a power of ten that is at least `least`.
fn decimal_step(least: f64) -> f64 {
    let power = 10f64.powf(least.max(f64::MIN_POSITIVE).log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|f| f * power >= least * (1.0 - 1e-9));
    factor.unwrap_or(10.0) * power
}

fn decimals_for(step: f64) -> usize {
    let mut decimals = 0;
    let mut rest = step;
    while decimals < 9 && (rest - rest.round()).abs() > 1e-9 * rest.abs().max(1e-9) {
        rest *= 10.0;
        decimals += 1;
    }
    decimals
}

/// A number with exactly `decimals` decimals.
fn exact(value: f64, decimals: usize) -> String {
    let digits = (value * 10f64.powi(decimals as i32)).round() as i64;
    format!("{}{}", if digits < 0 { "-" } else { "" }, pointed(digits.unsigned_abs(), decimals))
}

fn ticks(lo: f64, hi: f64, step: f64, text: impl Fn(f64) -> String) -> Vec<Tick> {
    if !(lo.is_finite() && hi.is_finite()) || hi < lo {
        return Vec::new();
    }
    let first = (lo / step).ceil();
    let count = ((hi / step).floor() - first).max(-1.0) as i64 + 1;
    let at = |i: i64| (first + i as f64) * step + 0.0; // + 0.0: no "-0"
    (0..count).map(|i| Tick { value: at(i), text: text(at(i)) }).collect()
}
