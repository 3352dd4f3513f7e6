//! Numeric constants in source text as functions that a trial can change.

use std::collections::{BTreeMap, BTreeSet};

const TYPES: [&str; 11] =
    ["u8", "u16", "u32", "u64", "u128", "usize", "i32", "i64", "i128", "f32", "f64"];

/// A numeric constant.
pub(super) struct Constant {
    /// The file, relative to the root.
    pub(super) file: String,
    pub(super) name: String,
    /// The text of its value.
    pub(super) value: String,
}

/// Visibility, name, type and value of the constant that a line declares.
fn declared(line: &str) -> Option<(&str, &str, &str, &str)> {
    let (before, rest) = line.split_once("const ")?;
    let (name, rest) = rest.split_once(": ")?;
    let (kind, rest) = rest.split_once(" = ")?;
    let is_bare = before.trim().is_empty() || before.trim_start().starts_with("pub");
    (is_bare && TYPES.contains(&kind)).then_some((before, name, kind, rest.strip_suffix(';')?))
}

/// The constants of a file, without those of tests, costs of the budget, and those whose comment
/// gives a file or a constant of PyTorch as the source.
pub(super) fn constants(file: &str, code: &str) -> Vec<Constant> {
    let (mut found, mut comment) = (Vec::new(), String::new());
    for line in code.lines().take_while(|line| *line != "#[cfg(test)]") {
        if line.trim_start().starts_with("//") {
            comment.push_str(line);
            continue;
        }
        let is_of_pytorch = [".cpp", ".cu", "`k"].iter().any(|part| comment.contains(part));
        comment.clear();
        if let Some((_, name, _, value)) = declared(line)
            && !is_of_pytorch
            && !name.starts_with("COST")
        {
            let [file, name, value] = [file, name, value].map(str::to_owned);
            found.push(Constant { file, name, value });
        }
    }
    found
}

/// The words of a text with the text before each.
pub(super) fn words(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut rest = text;
    std::iter::from_fn(move || {
        let begin = rest.find(is_word)?;
        let end = begin + rest[begin..].find(|c| !is_word(c)).unwrap_or(rest.len() - begin);
        let found = (&rest[..begin], &rest[begin..end]);
        rest = &rest[end..];
        Some(found)
    })
}

/// The code with calls for the constants of `swept`, which has indexes by name and file.
pub(super) fn rewritten(
    file: &str,
    code: &str,
    swept: &BTreeMap<&str, BTreeMap<&str, usize>>,
) -> String {
    let own = |name: &str| swept.get(name).and_then(|files| files.get(file));
    let declares: BTreeSet<&str> = code
        .lines()
        .filter_map(|line| Some(line.split_once("const ")?.1.split_once(':')?.0))
        .collect();
    let (mut out, mut in_use) = (String::new(), false);
    for line in code.lines() {
        in_use |= ["use ", "pub use ", "pub(super) use ", "pub(crate) use "]
            .iter()
            .any(|start| line.trim_start().starts_with(start));
        let called = |text: &str| {
            let mut out = String::new();
            let mut length = 0;
            for (before, word) in words(text) {
                let is_swept = swept.contains_key(word) && !declares.contains(word);
                let call = if own(word).is_some() || is_swept { "()" } else { "" };
                out.extend([before, word, call]);
                length += before.len() + word.len();
            }
            out + &text[length..]
        };
        match declared(line).map(|parts| (parts, own(parts.1))) {
            Some(((before, name, kind, value), Some(index))) => {
                let value = called(value);
                let call = format!("crate::sweep::get({index}, {value})");
                out.extend([before, "fn ", name, "() -> ", kind, " { ", &call, " }"]);
            }
            _ if in_use => out += line,
            _ => out += &called(line),
        }
        out.push('\n');
        in_use &= !line.contains(';');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_become_calls_outside_of_imports() {
        let code = "use super::{\n    LAST, f};\n/// Of `A.cpp`.\nconst OF: u64 = 1;\n\
                    const COST: u64 = 2;\n\
                    pub const MIN: u64 = 3 << 4;\nfn g(x: u64) -> bool { x > MIN && x < LAST }\n";
        let found = constants("a.rs", code);
        assert_eq!(
            found.iter().map(|c| (&*c.name, &*c.value)).collect::<Vec<_>>(),
            [("MIN", "3 << 4")]
        );
        let swept = [("MIN", [("a.rs", 0)].into()), ("LAST", [("b.rs", 1)].into())].into();
        let new = rewritten("a.rs", code, &swept);
        assert!(new.contains("pub fn MIN() -> u64 { crate::sweep::get(0, 3 << 4) }\n"), "{new}");
        assert!(new.ends_with("{ x > MIN() && x < LAST() }\n"), "{new}");
        assert!(
            new.starts_with("use super::{\n    LAST, f};\n/// Of `A.cpp`.\nconst OF: u64 = 1;"),
            "{new}"
        );
    }
}
