//! Text operands, as CPython reads them.

use super::unpickle::{Object, Result};

fn decimal(digits: &[u8]) -> Result<Object> {
    let text = std::str::from_utf8(digits).map_err(|_| "not an integer")?;
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    if unsigned.is_empty() || !unsigned.bytes().all(|b| b.is_ascii_digit()) {
        return Err("not a plain integer");
    }
    Ok(text.parse().map_or_else(|_| Object::Huge(digits.to_vec()), Object::Int))
}

/// The operand of INT: `strtol` with base 0, so that a leading zero means octal, and 00 and 01
/// booleans.
pub(super) fn int_line(line: &[u8]) -> Result<Object> {
    let digits = line.strip_prefix(b"-").unwrap_or(line);
    match line {
        b"00" => return Ok(Object::Bool(false)),
        b"01" => return Ok(Object::Bool(true)),
        _ => {}
    }
    if digits.len() > 1 && digits[0] == b'0' {
        let text = std::str::from_utf8(line).map_err(|_| "not an integer")?;
        return i64::from_str_radix(text, 8)
            .map(|i| Object::Int(i128::from(i)))
            .map_err(|_| "not an octal integer");
    }
    decimal(line)
}

/// The operand of LONG: Python's `int(line, 0)`.
pub(super) fn long_line(line: &[u8]) -> Result<Object> {
    let line = line.strip_suffix(b"L").unwrap_or(line);
    let digits = line.strip_prefix(b"-").unwrap_or(line);
    if digits.first() == Some(&b'0') && digits.iter().any(|&b| b != b'0') {
        return Err("an integer with a leading zero");
    }
    decimal(line)
}

pub(super) fn index_line(line: &[u8]) -> Result<u64> {
    match decimal(line)? {
        Object::Int(i) => u64::try_from(i).map_err(|_| "a negative index"),
        _ => Err("a huge index"),
    }
}

pub(super) fn ascii(text: Vec<u8>) -> Result<Object> {
    if text.is_ascii() { Ok(Object::Str(text)) } else { Err("bytes that are not ASCII") }
}

/// Python's `codecs.escape_decode` of what is between the quotes.
pub(super) fn quoted(line: &[u8]) -> Result<Vec<u8>> {
    let inner = match line {
        [a @ (b'\'' | b'"'), inner @ .., b] if a == b => inner,
        _ => return Err("no quotes"),
    };
    let mut out = Vec::new();
    let mut at = 0;
    while at < inner.len() {
        let byte = inner[at];
        at += 1;
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        let escape = *inner.get(at).ok_or("a backslash at the end")?;
        at += 1;
        match escape {
            b'\\' | b'\'' | b'"' => out.push(escape),
            b'b' => out.push(8),
            b'f' => out.push(12),
            b't' => out.push(b'\t'),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b'v' => out.push(11),
            b'a' => out.push(7),
            b'x' => {
                let digits = inner.get(at..at + 2).and_then(|d| std::str::from_utf8(d).ok());
                let digits = digits.filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
                let code = digits.and_then(|d| u8::from_str_radix(d, 16).ok());
                out.push(code.ok_or("no hexadecimal digits")?);
                at += 2;
            }
            b'0'..=b'7' => {
                let more = inner[at..].iter().take(2).take_while(|b| (b'0'..=b'7').contains(b));
                let digits: Vec<u8> = std::iter::once(escape).chain(more.copied()).collect();
                at += digits.len() - 1;
                let code = digits.iter().fold(0u32, |sum, b| sum * 8 + u32::from(b - b'0'));
                out.push(code as u8);
            }
            other => out.extend([b'\\', other]),
        }
    }
    Ok(out)
}

/// Python's `raw-unicode-escape`, as UTF-8 with surrogates.
pub(super) fn raw_unicode_escape(line: &[u8]) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < line.len() {
        let byte = line[at];
        at += 1;
        let n = match (byte, line.get(at)) {
            (b'\\', Some(b'u')) => 4,
            (b'\\', Some(b'U')) => 8,
            (b'\\', Some(&other)) => {
                push_code(&mut out, u32::from(b'\\'));
                push_code(&mut out, u32::from(other));
                at += 1;
                continue;
            }
            _ => {
                push_code(&mut out, u32::from(byte));
                continue;
            }
        };
        let digits = line.get(at + 1..at + 1 + n).and_then(|d| std::str::from_utf8(d).ok());
        let digits = digits.filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
        let code = digits.and_then(|d| u32::from_str_radix(d, 16).ok());
        let code = code.filter(|&code| code <= 0x10_ffff).ok_or("no code point")?;
        push_code(&mut out, code);
        at += 1 + n;
    }
    Ok(out)
}

fn push_code(out: &mut Vec<u8>, code: u32) {
    match char::from_u32(code) {
        Some(c) => out.extend(c.to_string().bytes()),
        None => {
            // A surrogate: three bytes, as `surrogatepass` writes it.
            let part = |shift: u32| 0x80 | (code >> shift & 0x3f) as u8;
            out.extend([0xe0 | (code >> 12) as u8, part(6), part(0)]);
        }
    }
}
