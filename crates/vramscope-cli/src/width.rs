//! The width of text: that of the terminal, and how lines are cut and broken to fit it.

use vramscope_report::diagnostic::cut_middle;

/// Columns where there is no terminal.
const DEFAULT: usize = 100;

/// Fewer columns than this are not believed.
const LEAST: usize = 40;

/// The columns of a line of text: those that `COLUMNS` names, else those of the terminal.
pub(crate) fn columns() -> usize {
    let given = std::env::var("COLUMNS").ok().and_then(|columns| columns.trim().parse().ok());
    let of_terminal = || console::Term::stdout().size_checked().map(|(_, columns)| columns.into());
    given.or_else(of_terminal).filter(|&columns| columns > 0).unwrap_or(DEFAULT).max(LEAST)
}

/// The text in at most `width` characters: its begin and its end, with `…` between them.
pub(crate) fn middle(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.to_owned();
    }
    // An indent tells the level in a tree.
    let rest = text.trim_start_matches(' ');
    let indent = (text.len() - rest.len()).min(width / 2);
    if indent > 0 {
        return format!("{}{}", " ".repeat(indent), middle(rest, width - indent));
    }
    cut_middle(text, width)
}

/// Breaks a line of words, which may have styles, into lines of at most `width` columns. Further
/// lines are indented. A word that is longer has a line of its own.
pub(crate) fn wrap(line: &str, width: usize) -> String {
    let indent = line.len() - line.trim_start_matches(' ').len();
    wrap_to(line, width, if indent >= 8 { indent } else { indent + 2 })
}

/// [`wrap`] with this indent of further lines.
pub(crate) fn wrap_to(line: &str, width: usize, further: usize) -> String {
    if visible(line) <= width {
        return line.to_owned();
    }
    let rest = line.trim_start_matches(' ');
    let indent = line.len() - rest.len();
    let mut out = " ".repeat(indent);
    let mut column = indent;
    let mut spaces = 0;
    let mut is_first = true;
    for word in rest.split(' ') {
        let length = visible(word);
        if !is_first && column + spaces + length > width && length > 0 {
            out.push('\n');
            out.push_str(&" ".repeat(further));
            column = further;
        } else {
            out.push_str(&" ".repeat(spaces));
            column += spaces;
        }
        out.push_str(word);
        column += length;
        spaces = 1;
        is_first = false;
    }
    out
}

/// The columns of a text: its characters without styles.
pub(crate) fn visible(text: &str) -> usize {
    let mut columns = 0;
    let mut is_style = false;
    for c in text.chars() {
        match c {
            '\x1b' => is_style = true,
            'm' if is_style => is_style = false,
            _ if is_style => {}
            _ => columns += 1,
        }
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::{middle, visible, wrap};

    #[test]
    fn the_middle_of_a_long_text_is_cut() {
        assert_eq!(middle("gpt.py:26 forward", 17), "gpt.py:26 forward");
        assert_eq!(
            middle("gpt.py:26 forward > linear.py:125 forward", 21),
            "gpt.py:26 …25 forward"
        );
        assert_eq!(middle("abc", 1), "…");
        assert_eq!(middle("    abcdefgh", 9), "    ab…gh");
    }

    #[test]
    fn lines_break_between_words_and_keep_styles() {
        assert_eq!(wrap("  one two three", 9), "  one two\n    three");
        assert_eq!(wrap("a_word_that_is_long b", 8), "a_word_that_is_long\n  b");
        assert_eq!(
            wrap("             aligned text", 20),
            "             aligned\n             text"
        );
        assert_eq!(visible("\x1b[1mbold\x1b[0m text"), 9);
        assert_eq!(wrap("\x1b[1mbold\x1b[0m text", 9), "\x1b[1mbold\x1b[0m text");
        assert_eq!(wrap("path  device 0", 10), "path \n  device 0");
    }
}
