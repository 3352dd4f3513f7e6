//! Lines on standard error.

use std::fmt::Arguments;
use std::io::Write;

/// Writes a line to standard error.
pub(crate) fn report(line: Arguments) {
    let mut text = line.to_string();
    text.push('\n');
    // A program that closed standard error gets no lines, and goes on.
    drop(std::io::stderr().write_all(text.as_bytes()));
}
