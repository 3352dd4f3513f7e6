//! Text of files in GitHub Markdown. Names come from files that people send each other.

/// Whether a character acts on a terminal or a page instead of being shown: controls, line
/// separators, and marks that change the direction of text.
pub fn acts(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}')
}

/// Text as inline code. Names come from files, so they must not end the code span, open an HTML tag
/// or mention a user.
pub fn inline_code(text: &str) -> String {
    let line: String = text.chars().map(|c| if acts(c) { ' ' } else { c }).collect();
    let longest = line.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let gap = if line.starts_with('`') || line.ends_with('`') { " " } else { "" };
    format!("{fence}{gap}{line}{gap}{fence}")
}

/// Inline code for a table cell, where a bar ends the cell even inside code.
pub fn code_cell(text: &str) -> String {
    inline_code(text).replace('|', "\\|")
}

/// Escapes a sentence that contains names from files.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '~' => {
                out.extend(['\\', c]);
            }
            '&' => out.push_str("&amp;"),
            // A zero-width space prevents a mention.
            '@' => out.push_str("@\u{200b}"),
            c if acts(c) => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_from_files_are_escaped() {
        assert_eq!(inline_code("a.py:3 f"), "`a.py:3 f`");
        assert_eq!(inline_code("`x``y"), "``` `x``y ```");
        assert_eq!(code_cell("a|b\nc"), "`a\\|b c`");
        assert_eq!(escape("<b> of @me, a_b"), "\\<b\\> of @\u{200b}me, a\\_b");
    }
}
