//! Serializes records for the page.
//!
//! A record is written once, with typed units. [`Page`] wraps any value and any serializer, and
//! writes each unit of vramscope-units as `{raw, text, exact}` (`Quantity` in TypeScript). Without
//! the wrapper the unit is the integer that the program prints as JSON. Texts are cut to what a page
//! can show, but for
//! those that [`whole`](vramscope_units::whole) writes. Everything else passes through.

use serde::Serialize;
use serde::ser::{self, SerializeStruct, Serializer};

/// A value whose units are written with their texts.
///
/// ```
/// use vramscope_session::Page;
/// use vramscope_units::Bytes;
///
/// let shown = serde_json::to_string(&Page(&[Bytes(2 << 20)])).expect("plain values");
/// assert_eq!(shown, r#"[{"raw":"2097152","text":"2.00 MiB","exact":"2,097,152 bytes"}]"#);
/// ```
pub struct Page<'a, T: ?Sized>(pub &'a T);

impl<T: Serialize + ?Sized> Serialize for Page<'_, T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(Shown(to))
    }
}

/// The serializer, and the writers of compound values, behind [`Page`].
struct Shown<S>(S);

/// JavaScript has every integer below this one.
const MAX_SAFE: u64 = 1 << 53;

/// Passes scalar values through.
macro_rules! pass {
    ($($name:ident: $t:ty),* $(,)?) => {
        $(fn $name(self, value: $t) -> Result<S::Ok, S::Error> { self.0.$name(value) })*
    };
}

impl<S: Serializer> Serializer for Shown<S> {
    type Ok = S::Ok;
    type Error = S::Error;
    type SerializeSeq = Shown<S::SerializeSeq>;
    type SerializeTuple = Shown<S::SerializeTuple>;
    type SerializeTupleStruct = Shown<S::SerializeTupleStruct>;
    type SerializeTupleVariant = Shown<S::SerializeTupleVariant>;
    type SerializeMap = Shown<S::SerializeMap>;
    type SerializeStruct = Shown<S::SerializeStruct>;
    type SerializeStructVariant = Shown<S::SerializeStructVariant>;

    pass! {
        serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32,
        serialize_i128: i128, serialize_u8: u8, serialize_u16: u16,
        serialize_u32: u32, serialize_u128: u128, serialize_f32: f32,
        serialize_f64: f64, serialize_char: char, serialize_bytes: &[u8],
        serialize_unit_struct: &'static str,
    }

    /// Names come from files, and a long one would freeze the page.
    fn serialize_str(self, value: &str) -> Result<S::Ok, S::Error> {
        self.0.serialize_str(&vramscope_units::shown_text(value))
    }

    /// An id beyond 2^53, such as a stream of a damaged file, becomes the nearest double.
    fn serialize_i64(self, value: i64) -> Result<S::Ok, S::Error> {
        if value.unsigned_abs() < MAX_SAFE {
            return self.0.serialize_i64(value);
        }
        self.0.serialize_f64(value as f64)
    }

    /// As [`Self::serialize_i64`].
    fn serialize_u64(self, value: u64) -> Result<S::Ok, S::Error> {
        if value < MAX_SAFE {
            return self.0.serialize_u64(value);
        }
        self.0.serialize_f64(value as f64)
    }

    fn serialize_none(self) -> Result<S::Ok, S::Error> {
        self.0.serialize_none()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<S::Ok, S::Error> {
        self.0.serialize_some(&Page(value))
    }

    fn serialize_unit(self) -> Result<S::Ok, S::Error> {
        self.0.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
    ) -> Result<S::Ok, S::Error> {
        self.0.serialize_unit_variant(name, index, variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        if name == vramscope_units::WHOLE {
            return self.0.serialize_newtype_struct(name, value);
        }
        if !vramscope_units::is_unit(name) {
            return self.0.serialize_newtype_struct(name, &Page(value));
        }
        let value = serde_json::to_value(value).map_err(ser::Error::custom)?;
        let raw = value.as_number().and_then(serde_json::Number::as_i128);
        let (raw, [text, exact]) = raw
            .and_then(|raw| Some((raw, vramscope_units::texts(name, raw)?)))
            .ok_or_else(|| ser::Error::custom(format_args!("{value} is no {name}")))?;
        let mut quantity = self.0.serialize_struct("Quantity", 3)?;
        // A JavaScript number cannot represent every u64.
        quantity.serialize_field("raw", &raw.to_string())?;
        quantity.serialize_field("text", &text)?;
        quantity.serialize_field("exact", &exact)?;
        quantity.end()
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        self.0.serialize_newtype_variant(name, index, variant, &Page(value))
    }

    fn serialize_seq(self, len: Option<usize>) -> Result<Self::SerializeSeq, S::Error> {
        self.0.serialize_seq(len).map(Shown)
    }

    fn serialize_tuple(self, len: usize) -> Result<Self::SerializeTuple, S::Error> {
        self.0.serialize_tuple(len).map(Shown)
    }

    fn serialize_tuple_struct(
        self,
        name: &'static str,
        len: usize,
    ) -> Result<Self::SerializeTupleStruct, S::Error> {
        self.0.serialize_tuple_struct(name, len).map(Shown)
    }

    fn serialize_tuple_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Self::SerializeTupleVariant, S::Error> {
        self.0.serialize_tuple_variant(name, index, variant, len).map(Shown)
    }

    fn serialize_map(self, len: Option<usize>) -> Result<Self::SerializeMap, S::Error> {
        self.0.serialize_map(len).map(Shown)
    }

    fn serialize_struct(
        self,
        name: &'static str,
        len: usize,
    ) -> Result<Self::SerializeStruct, S::Error> {
        self.0.serialize_struct(name, len).map(Shown)
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Self::SerializeStructVariant, S::Error> {
        self.0.serialize_struct_variant(name, index, variant, len).map(Shown)
    }

    fn is_human_readable(&self) -> bool {
        self.0.is_human_readable()
    }
}

/// Writers of lists, whose elements have no names.
macro_rules! list {
    ($($writer:ident: $element:ident),* $(,)?) => {
        $(impl<S: ser::$writer> ser::$writer for Shown<S> {
            type Ok = S::Ok;
            type Error = S::Error;

            fn $element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), S::Error> {
                self.0.$element(&Page(value))
            }

            fn end(self) -> Result<S::Ok, S::Error> {
                self.0.end()
            }
        })*
    };
}

list! {
    SerializeSeq: serialize_element,
    SerializeTuple: serialize_element,
    SerializeTupleStruct: serialize_field,
    SerializeTupleVariant: serialize_field,
}

/// Writers of structs, whose fields have names.
macro_rules! fields {
    ($($writer:ident),* $(,)?) => {
        $(impl<S: ser::$writer> ser::$writer for Shown<S> {
            type Ok = S::Ok;
            type Error = S::Error;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                key: &'static str,
                value: &T,
            ) -> Result<(), S::Error> {
                self.0.serialize_field(key, &Page(value))
            }

            fn skip_field(&mut self, key: &'static str) -> Result<(), S::Error> {
                self.0.skip_field(key)
            }

            fn end(self) -> Result<S::Ok, S::Error> {
                self.0.end()
            }
        })*
    };
}

fields!(SerializeStruct, SerializeStructVariant);

impl<S: ser::SerializeMap> ser::SerializeMap for Shown<S> {
    type Ok = S::Ok;
    type Error = S::Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), S::Error> {
        self.0.serialize_key(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), S::Error> {
        self.0.serialize_value(&Page(value))
    }

    fn end(self) -> Result<S::Ok, S::Error> {
        self.0.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::collections::BTreeMap;
    use vramscope_units::{Addr, Blocks, Bytes, Change};

    #[derive(Serialize)]
    struct Record {
        bytes: Bytes,
        change: Option<Change>,
        blocks: Option<Blocks>,
        address: Addr,
        by_name: BTreeMap<&'static str, Bytes>,
        pair: (Bytes, u32),
        kind: Kind,
    }

    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    enum Kind {
        Known { bytes: Bytes },
    }

    fn record() -> Record {
        Record {
            bytes: Bytes(u64::MAX),
            change: Some(Change(1024)),
            blocks: None,
            address: Addr(4096),
            by_name: BTreeMap::from([("a", Bytes(1))]),
            pair: (Bytes(2), 7),
            kind: Kind::Known { bytes: Bytes(3) },
        }
    }

    #[test]
    fn ids_that_javascript_lacks_are_rounded() {
        let ids = [-7_i64, i64::MIN, (1 << 53) - 1];
        let shown = serde_json::to_value(Page(&(ids, u64::MAX))).expect("plain values");
        let rounded = -9_223_372_036_854_775_808.0;
        assert_eq!(
            shown,
            json!([[-7, rounded, 9_007_199_254_740_991_u64], 18_446_744_073_709_551_615.0])
        );
    }

    #[test]
    fn program_and_page_write_one_record() {
        let plain = serde_json::to_value(record()).expect("plain values");
        assert_eq!(
            plain,
            json!({
                "bytes": u64::MAX, "change": 1024, "blocks": null, "address": "0x1000",
                "by_name": {"a": 1}, "pair": [2, 7], "kind": {"known": {"bytes": 3}},
            })
        );
        let bytes =
            |raw: &str, text: &str, exact: &str| json!({"raw": raw, "text": text, "exact": exact});
        let shown = serde_json::to_value(Page(&record())).expect("plain values");
        assert_eq!(
            shown,
            json!({
                "bytes": bytes(
                    "18446744073709551615",
                    "16.00 EiB",
                    "18,446,744,073,709,551,615 bytes"
                ),
                "change": bytes("1024", "+1.00 KiB", "+1,024 bytes"),
                "blocks": null,
                "address": "0x1000",
                "by_name": {"a": bytes("1", "1 B", "1 byte")},
                "pair": [bytes("2", "2 B", "2 bytes"), 7],
                "kind": {"known": {"bytes": bytes("3", "3 B", "3 bytes")}},
            })
        );
    }
}
