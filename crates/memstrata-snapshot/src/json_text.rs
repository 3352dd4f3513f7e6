//! A value as JSON text, for what is shown as it is: metadata dicts and settings.

use memstrata_pickle::{Heap, Kind, Value};
use std::fmt::Write as _;

/// Deeper values are written as `...`: nothing that is shown nests so far, and damaged files may hold themselves.
const MAX_DEPTH: usize = 16;

/// The value as one line of JSON. Things that JSON does not have are written as strings that name them.
pub(crate) fn json_text(heap: &Heap, value: Value) -> String {
    let mut out = String::new();
    write_value(heap, value, 0, &mut out);
    out
}

fn write_value(heap: &Heap, value: Value, depth: usize, out: &mut String) {
    let value = heap.resolve(value);
    if depth > MAX_DEPTH {
        out.push_str("\"...\"");
        return;
    }
    match value.kind() {
        Kind::None => out.push_str("null"),
        Kind::Bool(b) => out.push_str(if b { "true" } else { "false" }),
        Kind::Int(_) | Kind::Long(_) => push(out, format_args!("{}", heap.int(value).unwrap_or(0))),
        Kind::Float(_) => push(out, format_args!("{}", heap.float(value).unwrap_or(f64::NAN))),
        Kind::Str(text) => quote(&heap.strings.text(text), out),
        Kind::List(_) | Kind::Tuple(_) => {
            out.push('[');
            for (i, &item) in heap.items(value).iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_value(heap, item, depth + 1, out);
            }
            out.push(']');
        }
        Kind::Dict(_) => {
            out.push('{');
            for (i, pair) in heap.items(value).chunks_exact(2).enumerate() {
                if i > 0 {
                    out.push(',');
                }
                match pair[0].kind() {
                    Kind::Str(text) => quote(&heap.strings.text(text), out),
                    _ => quote(&json_text_within(heap, pair[0], depth), out),
                }
                out.push(':');
                write_value(heap, pair[1], depth + 1, out);
            }
            out.push('}');
        }
        Kind::Bytes => out.push_str("\"(bytes)\""),
        Kind::Ext(..) => out.push_str("\"(rows)\""),
        Kind::Class(name) | Kind::Opaque(name) => quote(&format!("({})", heap.strings.text(name)), out),
    }
}

fn json_text_within(heap: &Heap, value: Value, depth: usize) -> String {
    let mut out = String::new();
    write_value(heap, value, depth + 1, &mut out);
    out
}

fn quote(text: &str, out: &mut String) {
    // As a str, not as a Value: what writes every kind of number would come along into the page's wasm.
    out.push_str(&serde_json::to_string(text).expect("a str can always be written"));
}

fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    out.write_fmt(text).expect("a String takes all text");
}
