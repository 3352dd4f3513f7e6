//! Text operands of protocols 0 and 1.

use crate::error::{ByteOffset, PickleError};

fn text_error(expected: &'static str, at: ByteOffset) -> PickleError {
    PickleError::Text { expected, at }
}

/// A decimal integer. `None` if it needs more than 128 bits.
pub(crate) fn decimal(line: &[u8], at: ByteOffset) -> Result<Option<i128>, PickleError> {
    let digits = line.strip_prefix(b"-").unwrap_or(line);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(text_error("a decimal integer", at));
    }
    // All characters are digits, so parsing can fail only for size.
    Ok(std::str::from_utf8(line).ok().and_then(|s| s.parse().ok()))
}

/// An integer as Python's source has it, where a leading zero is an error or means octal.
pub(crate) fn literal(line: &[u8], at: ByteOffset) -> Result<Option<i128>, PickleError> {
    let digits = line.strip_prefix(b"-").unwrap_or(line);
    if digits.starts_with(b"0") && digits.iter().any(|&b| b != b'0') {
        return Err(text_error("a decimal integer without leading zeros", at));
    }
    decimal(line, at)
}

pub(crate) fn index(line: &[u8], at: ByteOffset) -> Result<u32, PickleError> {
    let number = decimal(line, at)?;
    number.and_then(|i| u32::try_from(i).ok()).ok_or(text_error("a memo index below 2^32", at))
}

/// A float as Python's `repr` writes it.
pub(crate) fn float(line: &[u8], at: ByteOffset) -> Result<f64, PickleError> {
    let text = line.trim_ascii();
    let digits = text.strip_prefix(b"-").or(text.strip_prefix(b"+")).unwrap_or(text);
    // Rust also parses `infinity` and other spellings that Python does not write.
    let is_known_form = matches!(digits, b"inf" | b"nan" | [b'0'..=b'9' | b'.', ..]);
    let number = std::str::from_utf8(text).ok().filter(|_| is_known_form);
    number.and_then(|text| text.parse().ok()).ok_or(text_error("a number", at))
}

/// The `repr` of a Python 2 string: quoted, with backslash escapes.
pub(crate) fn quoted(line: &[u8], at: ByteOffset) -> Result<Vec<u8>, PickleError> {
    let line = line.trim_ascii();
    let inner = match line {
        [q @ (b'\'' | b'"'), inner @ .., end] if q == end => inner,
        _ => return Err(text_error("a quoted string", at)),
    };
    let mut out = Vec::with_capacity(inner.len());
    let mut rest = inner.iter();
    while let Some(&b) = rest.next() {
        if b != b'\\' {
            out.push(b);
            continue;
        }
        let escape = *rest.next().ok_or(text_error("an escaped character", at))?;
        let byte = match escape {
            b'\\' | b'\'' | b'"' => escape,
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'a' => 7,
            b'b' => 8,
            b'f' => 12,
            b'v' => 11,
            b'x' => {
                let (high, low) = (rest.next(), rest.next());
                let digits = [high, low].map(|d| d.and_then(|&d| char::from(d).to_digit(16)));
                let [Some(high), Some(low)] = digits else {
                    return Err(text_error("two hexadecimal digits", at));
                };
                (high * 16 + low) as u8
            }
            b'0'..=b'7' => {
                let mut code = u32::from(escape - b'0');
                for _ in 0..2 {
                    let Some(&digit @ b'0'..=b'7') = rest.as_slice().first() else { break };
                    code = code * 8 + u32::from(digit - b'0');
                    rest.next();
                }
                code as u8
            }
            // Python keeps an escape that it does not know.
            other => {
                out.push(b'\\');
                other
            }
        };
        out.push(byte);
    }
    Ok(out)
}

/// Python's `raw-unicode-escape`: Latin-1 with `\uXXXX` and `\UXXXXXXXX`. Lone surrogates become
/// the bytes that the binary protocols write (`surrogatepass`), so that a string is equal in every
/// protocol.
pub(crate) fn raw_unicode_escape(line: &[u8], at: ByteOffset) -> Result<Vec<u8>, PickleError> {
    let mut out = Vec::with_capacity(line.len());
    let mut rest = line;
    while let Some((&b, after)) = rest.split_first() {
        rest = after;
        let digits = match (b, rest.first()) {
            (b'\\', Some(b'u')) => 4,
            (b'\\', Some(b'U')) => 8,
            (b'\\', Some(&other)) => {
                // A backslash after a backslash begins no escape.
                push_code(&mut out, u32::from(b));
                push_code(&mut out, u32::from(other));
                rest = &rest[1..];
                continue;
            }
            _ => {
                push_code(&mut out, u32::from(b));
                continue;
            }
        };
        let hex = rest.get(1..=digits).and_then(|h| std::str::from_utf8(h).ok());
        let code = hex.and_then(|h| u32::from_str_radix(h, 16).ok()).filter(|&c| c <= 0x10_ffff);
        push_code(&mut out, code.ok_or(text_error("the hexadecimal digits of a \\u escape", at))?);
        rest = &rest[1 + digits..];
    }
    Ok(out)
}

/// Appends a code point as UTF-8, surrogates included.
fn push_code(out: &mut Vec<u8>, code: u32) {
    if let Some(c) = char::from_u32(code) {
        let mut buffer = [0; 4];
        out.extend_from_slice(c.encode_utf8(&mut buffer).as_bytes());
    } else {
        let low = |shift: u32| 0x80 | (code >> shift & 0x3f) as u8;
        out.extend_from_slice(&[0xe0 | (code >> 12) as u8, low(6), low(0)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_decoded() {
        assert_eq!(quoted(br"'a\x41\n\\'", 0), Ok(b"aA\n\\".to_vec()));
        assert_eq!(quoted(br"'\101\7\q\''", 0), Ok(b"A\x07\\q'".to_vec()));
        assert!(quoted(b"'a", 0).is_err());
        assert!(quoted(b"'", 0).is_err());
        assert_eq!(
            raw_unicode_escape(br"a\u00e9\U0001f600\ud800\n", 0),
            Ok("aé😀"
                .as_bytes()
                .iter()
                .copied()
                .chain([0xed, 0xa0, 0x80])
                .chain(*b"\\n")
                .collect())
        );
        assert!(raw_unicode_escape(br"\u12", 0).is_err());
        assert_eq!(raw_unicode_escape(br"\\u0041\", 0), Ok(br"\\u0041\".to_vec()));
        assert_eq!(raw_unicode_escape(b"\xe9", 0), Ok("é".as_bytes().to_vec()));
    }

    #[test]
    fn integers_are_validated_at_any_size() {
        assert_eq!(decimal(b"-18446744073709551616", 0), Ok(Some(-(1i128 << 64))));
        assert_eq!(decimal(&[b'9'; 60], 0), Ok(None));
        assert!(decimal(b"1x", 0).is_err());
        assert!(decimal(b"-", 0).is_err());
        assert!(literal(b"010", 0).is_err() && literal(b"-01", 0).is_err());
        assert_eq!(literal(b"-100", 0), Ok(Some(-100)));
        assert_eq!(literal(b"000", 0), Ok(Some(0)));
        assert_eq!(index(b"010", 0), Ok(10));
        assert!(index(b"4294967296", 0).is_err());
    }
}
