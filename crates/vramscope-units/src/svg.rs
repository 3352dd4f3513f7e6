//! SVG paths. A tenth of a unit is less than a pixel, so numbers have at most one decimal.

/// A path that grows by commands.
#[derive(Debug, Default)]
pub struct Path(String);

impl Path {
    /// Appends a command with a number in tenths of a unit.
    pub fn tenths(&mut self, command: &str, tenths: i64) {
        let sign = if tenths < 0 { "-" } else { "" };
        let (whole, rest) = (tenths.unsigned_abs() / 10, tenths.unsigned_abs() % 10);
        for part in [command, sign, &whole.to_string()] {
            self.0.push_str(part);
        }
        if rest != 0 {
            self.0.push('.');
            self.0.push_str(&rest.to_string());
        }
    }

    /// Appends a command with a number, rounded to tenths.
    pub fn to(&mut self, command: &str, number: f64) {
        self.tenths(command, (number * 10.0).round() as i64);
    }

    /// The path, closed for a fill.
    #[must_use]
    pub fn closed(mut self) -> String {
        self.0.push('Z');
        self.0
    }
}

impl From<Path> for String {
    fn from(path: Path) -> Self {
        path.0
    }
}

/// A filled path below columns. `scale` is the value at the full height.
pub fn area(columns: &[u64], size: [u32; 2], scale: u64) -> String {
    let height = i64::from(size[1]) * 10;
    let mut path = steps(columns, [0, size[0] * 10], size[1], scale, height);
    path.tenths("V", height);
    path.closed()
}

/// The tops of columns as one line, between two x positions in tenths of a unit.
pub fn outline(columns: &[u64], between: [u32; 2], height: u32, scale: u64) -> String {
    let first = columns.first().map_or(i64::from(height) * 10, |&top| y(top, height, scale));
    steps(columns, between, height, scale, first).into()
}

/// The tops of columns as one line over the full width.
pub fn line(columns: &[u64], size: [u32; 2], scale: u64) -> String {
    outline(columns, [0, size[0] * 10], size[1], scale)
}

/// The distance of a value from the top, in tenths of a unit.
fn y(value: u64, height: u32, scale: u64) -> i64 {
    let fraction = if scale == 0 { 0.0 } else { (value as f64 / scale as f64).min(1.0) };
    ((1.0 - fraction) * f64::from(height * 10)).round() as i64
}

/// A stepped path over the tops of columns that begins at the height `start`. `left` and `right`
/// are in tenths of a unit, and y points down. Equal neighbors share a step.
fn steps(columns: &[u64], [left, right]: [u32; 2], height: u32, scale: u64, start: i64) -> Path {
    let width = u64::from(right.saturating_sub(left));
    let x = |column: usize| {
        i64::from(left) + (width * column as u64 / columns.len().max(1) as u64) as i64
    };
    let mut path = Path::default();
    path.tenths("M", left.into());
    path.tenths(" ", start);
    let mut last = start;
    for (column, &value) in columns.iter().enumerate() {
        let y = y(value, height, scale);
        if y != last {
            if column > 0 {
                path.tenths("H", x(column));
            }
            path.tenths("V", y);
            last = y;
        }
    }
    path.tenths("H", right.into());
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_to_tenths() {
        let mut path = Path::default();
        for (command, number) in [("M", 0.04), (" ", -0.5), ("L", -12.96), (" ", 7.0)] {
            path.to(command, number);
        }
        assert_eq!(String::from(path), "M0 -0.5L-13 7");
    }

    #[test]
    fn paths_are_steps_with_at_most_one_decimal() {
        assert_eq!(area(&[0, 1, 1, 3], [8, 3], 3), "M0 3H2V2H6V0H8V3Z");
        assert_eq!(area(&[1, 0], [8, 10], 3), "M0 10V6.7H4V10H8V10Z");
        assert_eq!(line(&[3, 1, 1], [9, 3], 3), "M0 0H3V2H9");
        assert_eq!(outline(&[3, 1], [15, 40], 3, 3), "M1.5 0H2.7V2H4");
        // No columns, and a value above the scale.
        assert_eq!(area(&[], [8, 4], 0), "M0 4H8V4Z");
        assert_eq!(line(&[9], [8, 4], 3), "M0 0H8");
    }
}
