//! A value with its display text.

use serde::{Deserialize, Serialize};
use vramscope_units::{Bytes, EventIndex, grouped};

/// An exact value with its display texts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct Quantity {
    /// The exact integer: bytes, microseconds, a count or an event index. It is serialized as
    /// decimal digits, because a JavaScript number cannot represent every u64.
    #[serde(rename = "raw", with = "digits")]
    #[cfg_attr(feature = "typescript", ts(type = "string"))]
    pub value: i128,
    /// The short text: `42.48 GiB`.
    pub text: String,
    /// The exact value with its unit, for tooltips: `45,609,994,504 bytes`.
    pub exact: String,
}

/// Serializes integers as decimal digits, for JavaScript.
mod digits {
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(value: &i128, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(value)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<i128, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

impl Quantity {
    /// Bytes.
    pub fn bytes(b: Bytes) -> Self {
        Self { value: b.0.into(), text: b.to_string(), exact: b.exact() }
    }

    /// Bytes that may be negative, which happens in damaged files.
    pub fn signed_bytes(b: i64) -> Self {
        let magnitude = Self::bytes(Bytes(b.unsigned_abs()));
        if b >= 0 {
            return magnitude;
        }
        let minus = |text: String| format!("-{text}");
        Self { value: b.into(), text: minus(magnitude.text), exact: minus(magnitude.exact) }
    }

    /// A change of bytes with its sign: `+1.20 GiB`.
    pub fn change_of_bytes(b: i64) -> Self {
        let plain = Self::signed_bytes(b);
        let plus = |text: String| if b > 0 { format!("+{text}") } else { text };
        Self { value: plain.value, text: plus(plain.text), exact: plus(plain.exact) }
    }

    /// A count: the text `1,204`, the exact text `1,204 blocks`.
    pub fn count(n: u64, one: &str, many: &str) -> Self {
        let text = grouped(n);
        let noun = if n == 1 { one } else { many };
        Self { value: n.into(), exact: format!("{text} {noun}"), text }
    }

    /// The event at a peak; `None` is the state before the window.
    pub fn peak_event(event: Option<u32>) -> Self {
        match event {
            Some(event) => {
                let text = EventIndex(event).to_string();
                Self { value: event.into(), exact: format!("after event {text}"), text }
            }
            None => Self {
                value: -1,
                text: "before the window".into(),
                exact: "before the first event of the window".into(),
            },
        }
    }
}
