//! Text of files in GitHub Markdown. Names come from files that people send each other.

use vramscope_units::acts;

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
    for (at, c) in text.char_indices() {
        match c {
            // GitHub makes links of bare addresses. A zero-width space prevents it.
            ':' if text[at + 1..].starts_with("//") => out.push_str(":\u{200b}"),
            '.' if is_www(&text[..at]) => out.push_str("\u{200b}."),
            '\\' | '$' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '~' => {
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

fn is_www(text: &str) -> bool {
    text.len() >= 3 && text.as_bytes()[text.len() - 3..].eq_ignore_ascii_case(b"www")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_from_files_are_escaped() {
        assert_eq!(inline_code("a.py:3 f"), "`a.py:3 f`");
        assert_eq!(inline_code("`x``y"), "``` `x``y ```");
        assert_eq!(code_cell("a|b\nc"), "`a\\|b c`");
        assert_eq!(
            escape("http://x.y, WWW.x.y: $1$"),
            "http:\u{200b}//x.y, WWW\u{200b}.x.y: \\$1\\$"
        );
        assert_eq!(escape("<b> of @me, a_b"), "\\<b\\> of @\u{200b}me, a\\_b");
    }
}
