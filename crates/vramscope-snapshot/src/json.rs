//! Loads snapshots from JSON. Re-exports are JSON, and PyTorch's viewer tries to read any file as
//! JSON first.
//!
//! The text is parsed at once, after all bytes have arrived, into the same sink as a pickle.

use crate::keys;
use crate::load::build;
use crate::report::LoadError;
use crate::snapshot::Snapshot;
use crate::source::Options;
use crate::tables::Tables;
use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use std::fmt;
use vramscope_pickle::{Heap, PickleError, Sink as _, Strings, Value};

/// Reads a snapshot from JSON text.
///
/// # Errors
/// When the text is not JSON, or not a snapshot.
pub(crate) fn load(text: &[u8], options: &Options) -> Result<Snapshot, LoadError> {
    let mut heap = Heap::with_strings(Strings::with_known(keys::KNOWN));
    heap.budget.set_max(options.max_memory);
    let tables = Tables::with_filter(&options.filter);
    let mut builder = Builder { heap, tables, text: text.len(), containers: 0, error: None };
    // Editors write a byte-order mark, which JSON does not allow.
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let mut json = serde_json::Deserializer::from_slice(text);
    let root = Seed(&mut builder).deserialize(&mut json).and_then(|root| json.end().map(|()| root));
    let root = root.map_err(|e| {
        builder.error.take().map_or_else(
            || LoadError::Json { line: e.line(), column: e.column(), reason: e.to_string() },
            LoadError::from,
        )
    })?;
    build(builder.heap, builder.tables, root, text.len() as u64)
}

struct Builder {
    heap: Heap,
    tables: Tables,
    /// Bytes of the text, which is held too.
    text: usize,
    /// Lists and dicts so far.
    containers: u32,
    /// Why reading was ended.
    error: Option<PickleError>,
}

/// Containers between two measurements of the memory.
const CHECK_CONTAINERS: u32 = 1 << 10;

impl Builder {
    /// Counts a container, and measures the memory from time to time.
    fn count<E: serde::de::Error>(&mut self) -> Result<(), E> {
        self.containers = self.containers.wrapping_add(1);
        if !self.containers.is_multiple_of(CHECK_CONTAINERS) {
            return Ok(());
        }
        let held = self.heap.memory() + self.tables.memory() + self.text;
        self.heap.budget.check(self.text as u64, held).map_err(|error| {
            self.error = Some(error);
            E::custom("too much memory")
        })
    }
}

struct Seed<'a>(&'a mut Builder);

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::NONE)
    }

    fn visit_bool<E>(self, b: bool) -> Result<Value, E> {
        Ok(Value::bool(b))
    }

    fn visit_i64<E>(self, i: i64) -> Result<Value, E> {
        Ok(self.0.heap.make_int(i128::from(i)))
    }

    fn visit_u64<E>(self, i: u64) -> Result<Value, E> {
        Ok(self.0.heap.make_int(i128::from(i)))
    }

    fn visit_f64<E>(self, f: f64) -> Result<Value, E> {
        Ok(self.0.heap.make_float(f))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(self.0.heap.make_str(text.as_bytes()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(Seed(self.0))? {
            items.push(item);
        }
        self.0.count()?;
        let Builder { heap, tables, .. } = self.0;
        let taken = if items.is_empty() { None } else { tables.list(heap, None, &items, 0) };
        Ok(taken.unwrap_or_else(|| heap.make_list(&items)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut pairs = Vec::new();
        while let Some(key) = map.next_key_seed(Seed(self.0))? {
            pairs.push(key);
            pairs.push(map.next_value_seed(Seed(self.0))?);
        }
        self.0.count()?;
        let Builder { heap, tables, .. } = self.0;
        let taken = if pairs.is_empty() { None } else { tables.dict(heap, None, &pairs, 0) };
        Ok(taken.unwrap_or_else(|| heap.make_dict(&pairs)))
    }
}
