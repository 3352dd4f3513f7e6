//! Quantities with units, and their text forms.
//!
//! Every crate that stores or shows a quantity uses these types. So bytes, microseconds, addresses
//! and event indices cannot be confused, and the page and the command-line program format a number
//! alike.
//!
//! ```
//! use vramscope_units::{Addr, Bytes, EventIndex, Micros};
//!
//! assert_eq!(Bytes(345_208_832).to_string(), "329.2 MiB");
//! assert_eq!(Bytes(345_208_832).exact(), "345,208,832 bytes");
//! assert_eq!(Micros(38_300).to_string(), "38.3 ms");
//! assert_eq!(EventIndex(3737).to_string(), "#3,737");
//! assert_eq!(Addr(0x7600_2a00_0000).to_string(), "0x76002a000000");
//! ```
//!
//! Byte units are binary (KiB, MiB, GiB), never decimal. Units serialize as integers under their
//! names, and [`texts`] has the words of each name. This crate depends on no other crate of the
//! workspace.

mod axis;
pub mod color;
mod name;
mod named;
mod shown;
pub mod svg;
mod text;

pub use axis::{Tick, TimeBreak, broken_time_ticks, byte_ticks, event_ticks, time_at, time_ticks};
pub use name::{WHOLE, acts, printable, push_printable, shown_name, shown_text, whole};
pub use shown::{
    Allocations, Blocks, Change, Count, CountChange, EventSpan, Events, Files, Flushes, Iteration,
    PeakEvent, Ranks, Segments, SignedBytes, Steps, is_unit, texts,
};
pub use text::{grouped, signed_grouped, sparkline};

use std::fmt;

/// A number of bytes of device memory.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    serde::Serialize,
    serde::Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(type = "Quantity"))]
pub struct Bytes(pub u64);

impl Bytes {
    /// The exact count: `345,208,832 bytes`.
    pub fn exact(self) -> String {
        format!("{} {}", grouped(self.0), if self.0 == 1 { "byte" } else { "bytes" })
    }
}

impl Bytes {
    /// The number and the unit of the text.
    pub fn parts(self) -> (String, &'static str) {
        text::bytes(self.0)
    }

    /// The text of a title, with three significant digits: `49.1 MiB`, `329 MiB`.
    pub fn brief(self) -> String {
        text::brief_bytes(self.0)
    }
}

impl fmt::Display for Bytes {
    /// Binary units with two to four significant digits: `512 B`, `2.00 MiB`, `42.48 GiB`, `329.2
    /// MiB`. From 0.95 of a unit on it is written in that unit: `0.98 GiB`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, unit) = self.parts();
        f.pad(&format!("{number} {unit}"))
    }
}

/// A time or a duration in microseconds. The field that stores a time documents its epoch.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    serde::Serialize,
    serde::Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(type = "Quantity"))]
pub struct Micros(pub i64);

impl fmt::Display for Micros {
    /// A duration: `412 µs`, `7.90 ms`, `1.204 s`, `2 min 03.1 s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&text::duration(self.0))
    }
}

/// An address of device or pinned host memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(type = "string"))]
pub struct Addr(pub u64);

impl Addr {
    /// The address as text.
    pub fn plain(self) -> String {
        self.to_string()
    }
}

/// Serializes as its text, because a JavaScript number cannot represent every address.
impl serde::Serialize for Addr {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Addr {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Addr".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        generator.subschema_for::<String>()
    }
}

impl fmt::Display for Addr {
    /// Hexadecimal without groups, as PyTorch and its logs print it: `0x76002a000000`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{:#x}", self.0))
    }
}

/// The 0-based index of an event in its device's trace, as recorded.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    serde::Serialize,
    serde::Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(type = "Quantity"))]
pub struct EventIndex(pub u32);

impl fmt::Display for EventIndex {
    /// `#3,737`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("#{}", grouped(u64::from(self.0))))
    }
}

#[cfg(test)]
mod tests;
