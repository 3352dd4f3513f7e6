//! The ids of findings.

use super::kinds::FindingKind;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// The id of a finding, equal for one file on every machine: `growth-0-c65c1b32de31d67b`. It
/// serializes as this text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(type = "string"))]
pub struct FindingId {
    /// The kind.
    pub kind: FindingKind,
    /// The device's ordinal.
    pub device: u32,
    /// The part that tells findings of one kind apart: an event, the hash of a call stack, or a
    /// name.
    pub what: String,
}

impl fmt::Display for FindingId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.kind.name(), self.device, self.what)
    }
}

/// Kinds are ordered by name, so that lists keep the order of the texts.
impl Ord for FindingId {
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |id: &Self| (id.kind.name(), id.device);
        key(self).cmp(&key(other)).then_with(|| self.what.cmp(&other.what))
    }
}

impl PartialOrd for FindingId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A text is no id of a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoFindingId(String);

impl fmt::Display for NoFindingId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is no id of a finding: expected `kind-device-name`", self.0)
    }
}

impl std::error::Error for NoFindingId {}

impl FromStr for FindingId {
    type Err = NoFindingId;

    fn from_str(text: &str) -> Result<Self, NoFindingId> {
        let mut parts = text.splitn(3, '-');
        let id = (|| {
            let kind = FindingKind::parse(parts.next()?)?;
            let device = parts.next()?.parse().ok()?;
            Some(Self { kind, device, what: parts.next()?.to_owned() })
        })();
        id.ok_or_else(|| NoFindingId(text.to_owned()))
    }
}

impl Serialize for FindingId {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for FindingId {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for FindingId {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "FindingId".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        String::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_reads_what_it_writes() {
        for text in ["growth-0-c65c1b32de31d67b", "churn-1-make-room", "stranded_pool-0-(0, 0)--7"]
        {
            let id: FindingId = text.parse().expect("an id");
            assert_eq!(id.to_string(), text);
        }
        let id: FindingId = "churn-12-make-room".parse().expect("an id");
        assert_eq!((id.kind, id.device, id.what.as_str()), (FindingKind::Churn, 12, "make-room"));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "growth", "growth-0", "growth-x-1", "leak-0-1", "0:0x7f3a5c000000@12"] {
            assert!(text.parse::<FindingId>().is_err(), "{text}");
        }
    }
}
