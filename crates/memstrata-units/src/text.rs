//! Numbers as text.

const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/// `1234567` as `1,234,567`.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// [`grouped`] with a sign: `-1,234`.
pub fn signed_grouped(n: i64) -> String {
    format!("{}{}", if n < 0 { "-" } else { "" }, grouped(n.unsigned_abs()))
}

/// The unit in which `n` bytes are written: its index in `UNITS`.
pub(crate) fn byte_unit(n: u64) -> usize {
    // A value that rounds up to 1024.0 of a unit is written as 1.00 of the next.
    let mut unit = 0;
    while unit + 1 < UNITS.len() && (n as f64 / scale(unit)) >= 1023.95 {
        unit += 1;
    }
    unit
}

pub(crate) fn scale(unit: usize) -> f64 {
    1024f64.powi(unit as i32)
}

pub(crate) fn unit_name(unit: usize) -> &'static str {
    UNITS[unit]
}

pub(crate) fn bytes(n: u64) -> String {
    let unit = byte_unit(n);
    if unit == 0 {
        return format!("{n} B");
    }
    let value = n as f64 / scale(unit);
    let decimals = if value >= 99.995 { 1 } else { 2 };
    format!("{value:.decimals$} {}", UNITS[unit])
}

pub(crate) fn duration(us: i64) -> String {
    let sign = if us < 0 { "-" } else { "" };
    let n = us.unsigned_abs() as f64;
    let (value, unit) = match us.unsigned_abs() {
        0..1_000 => return format!("{us} µs"),
        1_000..1_000_000 => (n / 1e3, "ms"),
        1_000_000..120_000_000 => (n / 1e6, "s"),
        whole => {
            let minutes = whole / 60_000_000;
            let seconds = (whole % 60_000_000) as f64 / 1e6;
            return format!("{sign}{} min {seconds:04.1} s", grouped(minutes));
        }
    };
    let decimals = match (unit, value) {
        ("s", _) => 3,
        (_, v) if v >= 99.95 => 0,
        (_, v) if v >= 9.995 => 1,
        _ => 2,
    };
    format!("{sign}{value:.decimals$} {unit}")
}

pub(crate) fn address(a: u64) -> String {
    let digits = format!("{a:x}");
    let mut out = String::from("0x");
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(4) {
            out.push('_');
        }
        out.push(c);
    }
    out
}
