//! Text of files on a terminal. Names come from files that people send each other, so they must not
//! move the cursor, write the clipboard, look like another row, or reverse the line.

use crate::output::STYLES;
use crate::terminal;
use crate::width::wrap;
use std::borrow::Cow;
use std::io::{self, Write};
pub(crate) use vramscope_units::printable;
use vramscope_units::{acts, push_printable};

/// A writer of text lines that lets no character act, except line breaks and the program's own
/// styles, and breaks lines that are too long for the terminal. It catches names that were written
/// without [`printable`].
pub(crate) struct Shield<W: Write> {
    out: W,
    /// The current line.
    line: Vec<u8>,
    /// The columns that a line has at most.
    columns: usize,
}

impl<W: Write> Shield<W> {
    pub(crate) fn new(out: W, columns: usize) -> Self {
        Self { out, line: Vec::new(), columns }
    }

    fn write_line(&mut self) -> io::Result<()> {
        let text = String::from_utf8_lossy(&self.line);
        let is_plain = !text.trim_end_matches('\n').contains(acts);
        let shown = if is_plain { text } else { Cow::Owned(shielded(&text)) };
        match shown.strip_suffix('\n') {
            Some(line) => writeln!(self.out, "{}", wrap(line, self.columns))?,
            None => self.out.write_all(shown.as_bytes())?,
        }
        self.line.clear();
        Ok(())
    }
}

/// One line, its break included.
fn shielded(line: &str) -> String {
    let styles = STYLES.iter().chain(&terminal::STYLES);
    let styles: Vec<String> = styles.map(|style| style.render().to_string()).collect();
    let is_style = |text: &&str| styles.iter().any(|s| !s.is_empty() && s == text);
    let (mut out, mut rest) = (String::new(), line);
    while let Some(c) = rest.chars().next() {
        // A style ends with `m`.
        let style = rest
            .find('m')
            .map(|end| &rest[..=end])
            .filter(|text| is_style(text) || *text == "\x1b[0m");
        if let Some(style) = style.filter(|_| c == '\x1b') {
            out.push_str(style);
            rest = &rest[style.len()..];
            continue;
        }
        if rest == "\n" {
            out.push('\n');
        } else {
            push_printable(c, &mut out);
        }
        rest = &rest[c.len_utf8()..];
    }
    out
}

impl<W: Write> Write for Shield<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for part in bytes.split_inclusive(|&b| b == b'\n') {
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") {
                self.write_line()?;
            }
        }
        Ok(bytes.len())
    }

    /// Writes the current line too, although it may continue.
    fn flush(&mut self) -> io::Result<()> {
        self.write_line()?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{STRONG, styled};

    const HOSTILE: &str = "a\x1b]52;c;AAAA\x07\x1b[2J\x1b[1mb\rc\nd\u{9b}31m\u{202e}e\u{2066}\x7f";

    #[test]
    fn shield_passes_only_lines_and_own_styles() {
        let mut shield = Shield::new(Vec::new(), 100);
        let text = format!("{}: {HOSTILE}\nnext\n", styled(STRONG, "title"));
        // In pieces that cut characters.
        text.as_bytes().chunks(3).try_for_each(|piece| shield.write_all(piece)).expect("memory");
        let seen = String::from_utf8(shield.out).expect("text");
        assert!(seen.starts_with("\x1b[1mtitle\x1b[0m: a\\x1b]52;c;AAAA\\x07\\x1b[2J"), "{seen:?}");
        assert!(seen.ends_with("\nd\\u{9b}31m\\u{202e}e\\u{2066}\\x7f\nnext\n"), "{seen:?}");
    }
}
