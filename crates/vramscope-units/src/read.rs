//! Reads the integers of units in both of their forms: the integer of scripts, and the `{raw, ..}`
//! of the page, which hands records of a worker on to the coordinator.

use serde::Deserializer;
use serde::de::{Error, IgnoredAny, MapAccess, Unexpected, Visitor};
use std::fmt;
use std::marker::PhantomData;

/// Reads an integer of either form.
pub(crate) fn integer<'de, D: Deserializer<'de>, T: TryFrom<i128>>(from: D) -> Result<T, D::Error> {
    from.deserialize_any(Integer(PhantomData))
}

struct Integer<T>(PhantomData<T>);

impl<'de, T: TryFrom<i128>> Visitor<'de> for Integer<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an integer in range, or an object with `raw`")
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<T, E> {
        let refused = |_| E::invalid_value(Unexpected::Signed(value), &self);
        T::try_from(value.into()).map_err(refused)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<T, E> {
        let refused = |_| E::invalid_value(Unexpected::Unsigned(value), &self);
        T::try_from(value.into()).map_err(refused)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
        let mut raw: Option<String> = None;
        while let Some(key) = map.next_key::<String>()? {
            if key == "raw" {
                raw = Some(map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        let raw = raw.ok_or_else(|| A::Error::missing_field("raw"))?;
        let value = raw.parse::<i128>().ok().and_then(|value| T::try_from(value).ok());
        value.ok_or_else(|| A::Error::invalid_value(Unexpected::Str(&raw), &self))
    }
}

#[cfg(test)]
mod tests {
    use crate::{Blocks, Bytes, Change, EventIndex};

    #[test]
    fn a_unit_reads_both_of_its_forms() {
        let page = r#"{"raw": "18446744073709551615", "text": "16.00 EiB", "exact": "many"}"#;
        assert_eq!(serde_json::from_str::<Bytes>(page).ok(), Some(Bytes(u64::MAX)));
        assert_eq!(serde_json::from_str::<Bytes>("12").ok(), Some(Bytes(12)));
        assert_eq!(serde_json::from_str::<Change>("-12").ok(), Some(Change(-12)));
        let many = serde_json::from_str::<Vec<Blocks>>(r#"[3, {"raw": "4"}]"#).ok();
        assert_eq!(many, Some(vec![Blocks(3), Blocks(4)]));
    }

    #[test]
    fn numbers_out_of_range_and_other_values_are_refused() {
        for text in
            ["-1", "1.5", "4294967296", "\"7\"", "{}", r#"{"raw": "x"}"#, r#"{"raw": "-1"}"#]
        {
            assert!(serde_json::from_str::<EventIndex>(text).is_err(), "{text}");
        }
    }
}
