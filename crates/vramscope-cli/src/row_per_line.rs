//! JSON with one row of a list per line, for tools that read lines and for eyes.

use serde_json::ser::Formatter;
use std::io::{self, Write};
use vramscope_units::acts;

/// Values at this depth and above are on lines of their own: the report's fields, and the rows of
/// its lists.
const LINE_DEPTH: usize = 2;

/// Writes a line per field of the report and per row of its lists, without space inside a row. A
/// report can have millions of rows, and the space of nested fields would be half of it.
#[derive(Default)]
pub(crate) struct RowPerLine {
    depth: usize,
    /// Whether the current list or object has a value.
    has_value: bool,
}

impl RowPerLine {
    fn begin<W: ?Sized + Write>(&mut self, out: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth += 1;
        self.has_value = false;
        out.write_all(bracket)
    }

    fn end<W: ?Sized + Write>(&mut self, out: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth -= 1;
        if self.has_value && self.depth < LINE_DEPTH {
            self.new_line(out)?;
        }
        self.has_value = true;
        out.write_all(bracket)
    }

    fn next<W: ?Sized + Write>(&mut self, out: &mut W, is_first: bool) -> io::Result<()> {
        if !is_first {
            out.write_all(b",")?;
        }
        self.has_value = true;
        if self.depth <= LINE_DEPTH { self.new_line(out) } else { Ok(()) }
    }

    fn new_line<W: ?Sized + Write>(&self, out: &mut W) -> io::Result<()> {
        out.write_all(b"\n")?;
        (0..self.depth).try_for_each(|_| out.write_all(b" "))
    }
}

impl Formatter for RowPerLine {
    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.begin(out, b"[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.end(out, b"]")
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.next(out, first)
    }

    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.begin(out, b"{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.end(out, b"}")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.next(out, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(if self.depth <= LINE_DEPTH { b": " } else { b":" })
    }

    /// Escapes what acts on a terminal, which JSON allows to. The value stays the same.
    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        out: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut rest = fragment;
        while let Some((at, c)) = rest.char_indices().find(|&(_, c)| acts(c)) {
            write!(out, "{}\\u{:04x}", &rest[..at], u32::from(c))?;
            rest = &rest[at + c.len_utf8()..];
        }
        out.write_all(rest.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Serialize as _;
    use serde_json::json;

    #[test]
    fn characters_that_act_are_escaped() {
        let report = json!(["a\u{9b}31m\u{202e}b\u{7f}\n\u{1b}", "plain"]);
        let mut out = Vec::new();
        let mut serializer =
            serde_json::Serializer::with_formatter(&mut out, RowPerLine::default());
        report.serialize(&mut serializer).expect("writing to memory");
        let text = String::from_utf8(out).expect("text");
        assert!(text.contains(r#""a\u009b31m\u202eb\u007f\n\u001b""#), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).expect("JSON"), report);
    }

    #[test]
    fn rows_are_on_one_line_each() {
        let report =
            json!({"a": 1, "list": [{"b": [1, 2], "c": {}}, []], "none": [], "x": {"y": 2}});
        let mut out = Vec::new();
        let mut serializer =
            serde_json::Serializer::with_formatter(&mut out, RowPerLine::default());
        report.serialize(&mut serializer).expect("writing to memory");
        let text = String::from_utf8(out).expect("text");
        assert_eq!(
            text,
            "{\n \"a\": 1,\n \"list\": [\n  {\"b\":[1,2],\"c\":{}},\n  []\n ],\n \"none\": [],\n \
             \"x\": {\n  \"y\": 2\n }\n}"
        );
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).expect("JSON"), report);
    }
}
