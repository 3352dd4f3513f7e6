//! Formatting numbers as text.

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

/// `digits` with a decimal point before the last `decimals` of them: 1204 and 3 give `1.204`.
/// Integer arithmetic keeps the rounding exact.
pub(crate) fn pointed(digits: u64, decimals: usize) -> String {
    if decimals == 0 {
        return digits.to_string();
    }
    let mut text = format!("{digits:0>width$}", width = decimals + 1);
    text.insert(text.len() - decimals, '.');
    text
}

/// `n / over` with `decimals` decimals, ties to even.
fn decimal(n: u64, over: u64, decimals: usize) -> String {
    let (n, over) = (u128::from(n) * 10u128.pow(decimals as u32), u128::from(over));
    let (digits, rest) = (n / over, n % over);
    let up = 2 * rest > over || (2 * rest == over && digits % 2 == 1);
    pointed((digits + u128::from(up)) as u64, decimals)
}

/// Whether `n / over` is at least `thousandths` / 1000.
fn reaches(n: u64, over: u64, thousandths: u64) -> bool {
    u128::from(n) * 1000 >= u128::from(over) * u128::from(thousandths)
}

/// The unit in which `n` bytes are written, as an index into `UNITS`.
pub(crate) fn byte_unit(n: u64) -> usize {
    // From 0.95 of the next unit on, so that 0.996 GiB and 1.05 GiB are seen to be close. Bytes
    // are exact up to 1 KiB.
    let next = |unit: usize| if unit == 0 { n >= 1024 } else { reaches(n, scale(unit + 1), 950) };
    (0..UNITS.len() - 1).take_while(|&unit| next(unit)).count()
}

pub(crate) fn scale(unit: usize) -> u64 {
    1 << (10 * unit)
}

pub(crate) fn unit_name(unit: usize) -> &'static str {
    UNITS[unit]
}

/// The number and the unit.
pub(crate) fn bytes(n: u64) -> (String, &'static str) {
    let unit = byte_unit(n);
    if unit == 0 {
        return (n.to_string(), "B");
    }
    let decimals = if reaches(n, scale(unit), 99_995) { 1 } else { 2 };
    (decimal(n, scale(unit), decimals), UNITS[unit])
}

/// The number and the unit, with three significant digits.
pub(crate) fn brief_bytes(n: u64) -> String {
    let unit = byte_unit(n);
    let decimals = match unit {
        0 => 0,
        _ if reaches(n, scale(unit), 99_950) => 0,
        _ => 1 + usize::from(!reaches(n, scale(unit), 9_995)),
    };
    format!("{} {}", decimal(n, scale(unit), decimals), UNITS[unit])
}

pub(crate) fn duration(us: i64) -> String {
    let (sign, n) = (if us < 0 { "-" } else { "" }, us.unsigned_abs());
    let (value, unit) = match n {
        0..1_000 => return format!("{us} µs"),
        1_000..1_000_000 => {
            let decimals = if reaches(n, 1000, 99_950) {
                0
            } else {
                1 + usize::from(!reaches(n, 1000, 9_995))
            };
            (decimal(n, 1000, decimals), "ms")
        }
        1_000_000..120_000_000 => (decimal(n, 1_000_000, 3), "s"),
        _ => {
            let tenths = n / 100_000 + u64::from(n % 100_000 >= 50_000);
            let (minutes, seconds) = (grouped(tenths / 600), pointed(tenths % 600, 1));
            return format!("{sign}{minutes} min {seconds:0>4} s");
        }
    };
    format!("{sign}{value} {unit}")
}

/// A line of bars, up to the largest value. Several values share a bar where there are more values
/// than columns; it shows their maximum.
pub fn sparkline(values: &[u64]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    const COLUMNS: usize = 48;
    let most = values.iter().copied().max().unwrap_or(0).max(1);
    let bar = |values: &[u64]| {
        let value = values.iter().copied().max().unwrap_or(0);
        BARS[((value as f64 / most as f64) * 7.0).round() as usize]
    };
    values.chunks(values.len().div_ceil(COLUMNS).max(1)).map(bar).collect()
}
