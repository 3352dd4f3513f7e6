//! Texts of files: names that people record, and that others see.
//!
//! A file may come from anybody, and its names may have any length and any characters. A browser
//! takes seconds to lay out a name with thousands of combining marks, and a terminal obeys control
//! characters.

use std::borrow::Cow;
use unicode_width::UnicodeWidthChar as _;

/// The most characters of a name in a label.
const NAME: usize = 300;
/// The most characters of a text on the page.
const TEXT: usize = 4_000;
/// The most bytes of the path of a curve.
const PATH: usize = 1 << 20;
/// The most marks in a row that take no space, such as accents. Words in use have up to three.
const MARKS: usize = 4;

/// Whether a character acts on a terminal or a page instead of being shown: controls, line
/// separators, and marks that change the direction of text.
pub fn acts(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}')
}

/// Text in which characters that act are shown as escapes: `\n`, `\x1b`, `\u{202e}`.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(acts) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    text.chars().for_each(|c| push_printable(c, &mut out));
    Cow::Owned(out)
}

/// Appends a character, or its escape if it acts.
pub fn push_printable(c: char, out: &mut String) {
    match c {
        '\n' | '\r' | '\t' => out.extend(c.escape_default()),
        c if c.is_ascii_control() => {
            let digits = [u32::from(c) >> 4, u32::from(c) % 16];
            out.push_str("\\x");
            out.extend(digits.into_iter().filter_map(|digit| char::from_digit(digit, 16)));
        }
        c if acts(c) => out.extend(c.escape_unicode()),
        c => out.push(c),
    }
}

/// A name in a label or a sentence: [`printable`], and at most 300 characters with at most four
/// marks in a row. A name that was cut ends with `…`.
pub fn shown_name(name: &str) -> Cow<'_, str> {
    match cut(name, NAME) {
        Cow::Borrowed(name) => printable(name),
        Cow::Owned(name) => Cow::Owned(printable(&name).into_owned()),
    }
}

/// A text as the page shows it: at most 4,000 characters with at most four marks in a row. A text
/// that was cut ends with `…`. The path of a curve is longer, and is no text.
pub fn shown_text(text: &str) -> Cow<'_, str> {
    let is_path = text.len() <= PATH && text.starts_with('M') && text.bytes().all(is_of_path);
    if is_path { Cow::Borrowed(text) } else { cut(text, TEXT) }
}

/// Whether a byte may be in the data of a path, as [`svg`](crate::svg) writes it.
fn is_of_path(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'.' | b'-' | b' ' | b',' | b'M' | b'L' | b'H' | b'V' | b'Z')
}

/// At most `most` characters, with at most [`MARKS`] marks in a row.
fn cut(text: &str, most: usize) -> Cow<'_, str> {
    if text.is_ascii() && text.len() <= most {
        return Cow::Borrowed(text);
    }
    let mut out = String::new();
    let (mut count, mut marks) = (0, 0);
    for c in text.chars() {
        marks = if c.width() == Some(0) { marks + 1 } else { 0 };
        if marks > MARKS {
            continue;
        }
        if count == most {
            out.push('…');
            break;
        }
        count += 1;
        out.push(c);
    }
    if out == text { Cow::Borrowed(text) } else { Cow::Owned(out) }
}

/// The name under which [`whole`] writes a value.
pub const WHOLE: &str = "Whole";

/// Writes a field that the page copies or saves. It passes whole, as the page does not show it:
/// `#[serde(serialize_with = "vramscope_units::whole")]`.
///
/// # Errors
/// The serializer fails.
pub fn whole<T: serde::Serialize, S: serde::Serializer>(
    value: &T,
    to: S,
) -> Result<S::Ok, S::Error> {
    to.serialize_newtype_struct(WHOLE, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_are_shown() {
        let hostile = "a\x1b]52;c;AAAA\x07\x1b[2J\x1b[1mb\rc\nd\u{9b}31m\u{202e}e\u{2066}\x7f";
        assert_eq!(
            printable(hostile),
            "a\\x1b]52;c;AAAA\\x07\\x1b[2J\\x1b[1mb\\rc\\nd\\u{9b}31m\\u{202e}e\\u{2066}\\x7f"
        );
        assert_eq!(shown_name(hostile), printable(hostile));
        for plain in ["", "model.py:59 forward", "größe 模型 é", r"C:\x"] {
            assert!(matches!(printable(plain), Cow::Borrowed(text) if text == plain));
            assert!(matches!(shown_name(plain), Cow::Borrowed(text) if text == plain));
        }
    }

    #[test]
    fn long_names_and_rows_of_marks_are_cut() {
        let marks = format!("e{}x", "\u{301}".repeat(16_000));
        assert_eq!(shown_name(&marks), format!("e{}x", "\u{301}".repeat(4)));
        assert_eq!(shown_text(&marks), shown_name(&marks));
        // Hebrew points are letters to Unicode, and marks to a browser.
        let points = format!("ש{}", "\u{5b8}".repeat(16_000));
        assert_eq!(shown_name(&points).chars().count(), 5);
        for (name, most) in [("x".repeat(1 << 20), 300), ("é".repeat(1 << 20), 300)] {
            let shown = shown_name(&name);
            assert_eq!(shown.chars().count(), most + 1);
            assert!(shown.ends_with('…'));
            assert_eq!(shown_text(&name).chars().count(), 4_001);
        }
        assert_eq!(shown_name(&"é".repeat(300)), "é".repeat(300));
        let path = format!("M0 1{}Z", "H2.5V-7".repeat(1000));
        assert_eq!(shown_text(&path), path);
        assert_eq!(shown_text("two\nlines\twith e\u{301}"), "two\nlines\twith e\u{301}");
    }
}
