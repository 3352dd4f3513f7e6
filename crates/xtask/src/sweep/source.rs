//! Finds numeric constants in source text, and turns them into functions that a trial can change.

use std::collections::BTreeSet;
use std::ops::Range;

const TYPES: [&str; 11] =
    ["u8", "u16", "u32", "u64", "u128", "usize", "i32", "i64", "i128", "f32", "f64"];

/// A numeric constant.
#[derive(Clone)]
pub(super) struct Constant {
    /// The file, relative to the root.
    pub(super) file: String,
    pub(super) name: String,
    /// The text of its value.
    pub(super) value: String,
    kind: String,
    /// From `const` to `;`.
    range: Range<usize>,
    /// Where the value begins.
    begin: usize,
}

/// The code with blanks for comments, literals of text, and tests at its end. Offsets stay.
fn blanked(code: &str) -> String {
    let mut out = code.as_bytes().to_vec();
    let mut at = 0;
    while at < out.len() {
        let rest = &code.as_bytes()[at..];
        let before = at.checked_sub(1).map_or(b' ', |before| code.as_bytes()[before]);
        let raw = rest.iter().skip(1).take_while(|c| **c == b'#').count();
        let until = |end: &str, from: usize| {
            code.get(at + from..).and_then(|rest| rest.find(end)).map_or(rest.len(), |i| i + from)
        };
        let length = if rest.starts_with(b"//") {
            until("\n", 2)
        } else if rest.starts_with(b"#[cfg(test)]\nmod ") {
            rest.len()
        } else if rest[0] == b'r' && rest.get(1 + raw) == Some(&b'"') && !is_word(before) {
            let end = format!("\"{}", "#".repeat(raw));
            until(&end, raw + 2) + end.len()
        } else if rest[0] == b'"' {
            let mut end = 1;
            while end < rest.len() && rest[end] != b'"' {
                end += 1 + usize::from(rest[end] == b'\\');
            }
            end + 1
        } else if rest[0] == b'\'' && rest.get(1) == Some(&b'\\') {
            until("'", 3) + 1
        } else if rest[0] == b'\'' {
            // A lifetime has no second quote behind its first character.
            let letter = code[at + 1..].chars().next().map_or(1, char::len_utf8);
            if rest.get(1 + letter) == Some(&b'\'') { letter + 2 } else { 1 }
        } else {
            at += 1;
            continue;
        };
        let end = (at + length).min(out.len());
        out[at..end].iter_mut().filter(|c| **c != b'\n').for_each(|c| *c = b' ');
        at = end;
    }
    // Only literals and comments have characters beyond ASCII.
    String::from_utf8_lossy(&out).into_owned()
}

fn is_word(c: u8) -> bool {
    c.is_ascii_alphanumeric() || c == b'_'
}

/// The words of a text, as ranges.
pub(super) fn words(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let begin = at + text.as_bytes()[at..].iter().position(|c| is_word(*c))?;
        let rest = &text.as_bytes()[begin..];
        at = begin + rest.iter().position(|c| !is_word(*c)).unwrap_or(rest.len());
        Some(begin..at)
    })
}

/// Whether the comment above an offset gives PyTorch's file or constant as the source.
fn is_of_pytorch(code: &str, at: usize) -> bool {
    let above = code[..code[..at].rfind('\n').unwrap_or(0)].lines().rev().map(str::trim);
    let mut comment = above.take_while(|line| line.starts_with("//"));
    comment.any(|line| [".cpp", ".cu", "`k"].iter().any(|part| line.contains(part)))
}

/// The constants of a file, without costs of the budget and without those of PyTorch.
pub(super) fn constants(file: &str, code: &str) -> Vec<Constant> {
    let text = blanked(code);
    let words: Vec<Range<usize>> = words(&text).collect();
    let mut found = Vec::new();
    for three in words.windows(3) {
        let [keyword, name, kind] = three else { continue };
        let between = text[name.end..kind.start].trim();
        let rest = text[kind.end..].trim_start();
        if &text[keyword.clone()] != "const"
            || between != ":"
            || !rest.starts_with('=')
            || !TYPES.contains(&&text[kind.clone()])
            || text[name.clone()].starts_with("COST")
            || is_of_pytorch(code, keyword.start)
        {
            continue;
        }
        let begin = text.len() - rest.len() + 1;
        let Some(end) = text[begin..].find(';').map(|end| begin + end) else { continue };
        found.push(Constant {
            file: file.to_owned(),
            name: text[name.clone()].to_owned(),
            value: code[begin..end].trim().to_owned(),
            kind: text[kind.clone()].to_owned(),
            range: keyword.start..end + 1,
            begin,
        });
    }
    found
}

/// The code of `file` with calls for the constants of `swept`, each with its index.
pub(super) fn rewritten(file: &str, code: &str, swept: &[(usize, &Constant)]) -> String {
    let text = blanked(code);
    let own: Vec<&(usize, &Constant)> = swept.iter().filter(|c| c.1.file == file).collect();
    let words: Vec<Range<usize>> = words(&text).collect();
    let declared: BTreeSet<&str> = words
        .windows(2)
        .filter(|two| matches!(&text[two[0].clone()], "const" | "static"))
        .map(|two| &text[two[1].clone()])
        .collect();
    let imports: Vec<Range<usize>> = words
        .iter()
        .filter(|word| &text[(*word).clone()] == "use")
        .map(|word| word.start..text[word.start..].find(';').map_or(text.len(), |i| word.start + i))
        .collect();
    let is_import = |at: usize| imports.iter().any(|import| import.contains(&at));
    let mut edits: Vec<(Range<usize>, String)> = Vec::new();
    for (index, constant) in &own {
        let Constant { name, kind, range, begin, .. } = constant;
        let head = format!("fn {name}() -> {kind} {{ crate::sweep::get({index}, ");
        edits.push((range.start..*begin, head));
        edits.push((range.end - 1..range.end, ") }".into()));
    }
    for word in &words {
        let name = &text[word.clone()];
        let is_own = own.iter().any(|c| c.1.name == name);
        let is_named = || {
            text[..word.start].trim_end().ends_with("::")
                || words.iter().any(|w| &text[w.clone()] == name && is_import(w.start))
        };
        let is_other =
            || !declared.contains(name) && swept.iter().any(|c| c.1.name == name) && is_named();
        let is_head = own.iter().any(|c| (c.1.range.start..c.1.begin).contains(&word.start));
        if (is_own || is_other()) && !is_import(word.start) && !is_head {
            edits.push((word.end..word.end, "()".into()));
        }
    }
    edits.sort_by_key(|edit| (edit.0.start, edit.0.end));
    let mut out = code.to_owned();
    for (range, new) in edits.into_iter().rev() {
        out.replace_range(range, &new);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_become_calls_outside_of_texts_and_imports() {
        let code = "use super::{LAST, f};\n/// Of `A.cpp`.\nconst OF: u64 = 1;\nconst COST: u64 = 2;\n\
                    const MIN: u64 = 3 << 4;\nconst C: char = '\"';\n\
                    fn g<'a>(x: u64) -> bool { x > MIN && x < LAST && f(\"MIN\") } // MIN\n";
        let found = constants("a.rs", code);
        assert_eq!(
            found.iter().map(|c| (&*c.name, &*c.value)).collect::<Vec<_>>(),
            [("MIN", "3 << 4")]
        );
        let last = Constant { file: "b.rs".into(), name: "LAST".into(), ..found[0].clone() };
        let new = rewritten("a.rs", code, &[(0, &found[0]), (1, &last)]);
        assert!(new.contains("fn MIN() -> u64 { crate::sweep::get(0,  3 << 4) }"), "{new}");
        assert!(new.contains("{ x > MIN() && x < LAST() && f(\"MIN\") } // MIN\n"), "{new}");
        assert!(
            new.contains("use super::{LAST, f};\n/// Of `A.cpp`.\nconst OF: u64 = 1;"),
            "{new}"
        );
    }
}
