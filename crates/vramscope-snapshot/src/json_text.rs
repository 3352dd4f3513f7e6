//! Values as JSON text, for metadata dicts and settings.

use std::fmt::Write as _;
use vramscope_pickle::{Heap, Kind, Value};

/// Deeper values are written as `...`. Metadata and settings nest less deeply, but values of
/// damaged files may hold themselves.
const MAX_DEPTH: usize = 16;

/// Limits of values and bytes. The rest is written as `...`. Without limits, values that hold each
/// other many times would exhaust memory.
const MAX_VALUES: usize = 4096;
const MAX_TEXT_BYTES: usize = 16 << 10;

/// Limit of a dict key that is not a string: JSON within JSON grows with every level.
const MAX_KEY_BYTES: usize = 256;

/// Formats a value as one line of JSON. Types that JSON does not have become strings that name
/// them.
pub(crate) fn json_text(heap: &Heap, value: Value) -> String {
    let mut text = JsonWriter { heap, out: String::new(), values: 0 };
    text.value(value, 0);
    text.out
}

struct JsonWriter<'a> {
    heap: &'a Heap,
    out: String,
    values: usize,
}

impl JsonWriter<'_> {
    fn is_full(&self) -> bool {
        self.values > MAX_VALUES || self.out.len() > MAX_TEXT_BYTES
    }

    fn value(&mut self, value: Value, depth: usize) {
        let heap = self.heap;
        let value = heap.resolve(value);
        self.values += 1;
        if depth > MAX_DEPTH || self.is_full() {
            self.out.push_str("\"...\"");
            return;
        }
        match value.kind() {
            Kind::None => self.out.push_str("null"),
            Kind::Bool(b) => self.out.push_str(if b { "true" } else { "false" }),
            Kind::Int(_) | Kind::Long(_) => {
                push(&mut self.out, format_args!("{}", heap.int(value).unwrap_or(0)));
            }
            Kind::Float(_) => {
                push(&mut self.out, format_args!("{}", heap.float(value).unwrap_or(f64::NAN)));
            }
            Kind::Str(text) => quote(&heap.strings.text(text), &mut self.out),
            Kind::List(_) | Kind::Tuple(_) => {
                let items = heap.items(value).iter();
                self.within(['[', ']'], items, |text, &item| text.value(item, depth + 1));
            }
            Kind::Dict(_) => {
                let pairs = heap.items(value).chunks_exact(2);
                self.within(['{', '}'], pairs, |text, pair| {
                    text.key(pair[0], depth);
                    text.out.push(':');
                    text.value(pair[1], depth + 1);
                });
            }
            Kind::Bytes => self.out.push_str("\"(bytes)\""),
            Kind::Ext(..) => self.out.push_str("\"(rows)\""),
            Kind::Class(name) | Kind::Opaque(name) => {
                quote(&format!("({})", heap.strings.text(name)), &mut self.out);
            }
        }
    }

    /// Writes items between brackets, up to the limits.
    fn within<T>(
        &mut self,
        brackets: [char; 2],
        items: impl Iterator<Item = T>,
        write: impl Fn(&mut Self, T),
    ) {
        self.out.push(brackets[0]);
        for (i, item) in items.enumerate() {
            if i > 0 {
                self.out.push(',');
            }
            write(self, item);
            if self.is_full() {
                break;
            }
        }
        self.out.push(brackets[1]);
    }

    fn key(&mut self, key: Value, depth: usize) {
        if let Kind::Str(text) = key.kind() {
            quote(&self.heap.strings.text(text), &mut self.out);
            return;
        }
        let at = self.out.len();
        self.value(key, depth + 1);
        let text = self.out.split_off(at);
        quote(&text[..text.floor_char_boundary(MAX_KEY_BYTES)], &mut self.out);
    }
}

/// Limit of a text of the file in a message.
pub(crate) const MAX_SHOWN_BYTES: usize = 80;

/// The start of a text, at most `max` bytes, with `...` for the rest.
pub(crate) fn cut(text: &str, max: usize) -> String {
    let shown = &text[..text.floor_char_boundary(max)];
    if shown.len() < text.len() { format!("{shown}...") } else { shown.to_owned() }
}

/// Writes a string, cut to the limit of the whole text.
fn quote(text: &str, out: &mut String) {
    let cut_off = (text.len() > MAX_TEXT_BYTES).then(|| cut(text, MAX_TEXT_BYTES));
    let text = cut_off.as_deref().unwrap_or(text);
    out.push_str(&serde_json::to_string(text).expect("a str is always valid JSON"));
}

fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    out.write_fmt(text).expect("writing to a String cannot fail");
}
