//! The two texts of a quantity, looked up by the name that its serialization carries.
//!
//! Records hold these units. Each unit serializes as a named newtype, so a plain serializer such as
//! `serde_json` writes the integer. A serializer that writes for people sees the name and asks
//! [`texts`] for the words. So one record serves scripts and the page.

use crate::{Bytes, EventIndex, Micros, grouped};

/// Declares units.
macro_rules! units {
    ($($(#[$doc:meta])* $name:ident($integer:ty);)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
            #[derive(serde::Serialize, serde::Deserialize)]
            #[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
            #[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(type = "Quantity"))]
            pub struct $name(pub $integer);
        )*
    };
}

units! {
    /// A change of bytes with its sign: `+1.20 GiB`.
    Change(i64);
    /// Bytes that are negative in damaged files only.
    SignedBytes(i64);
    /// The event after which a band peaks; -1 is the state before the window.
    PeakEvent(i64);
    /// The iteration that a path names.
    Iteration(u64);
    /// A length of time in events, where a trace has no clock: `3 events`.
    EventSpan(u64);
    /// A count in a table whose row names the thing. It is negative in damaged files only.
    Count(i64);
    /// A change of a count with its sign: `+1,204`.
    CountChange(i64);
}

impl std::fmt::Display for Iteration {
    /// `1,000`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&grouped(self.0))
    }
}

/// Declares counts of things. Each has a type of its own, because its exact text names the thing.
macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident: $one:literal, $many:literal;)*) => {
        units! { $($(#[$doc])* $name(u64);)* }

        /// The singular and plural noun of a count.
        fn nouns(name: &str) -> Option<[&'static str; 2]> {
            match name {
                $(stringify!($name) => Some([$one, $many]),)*
                _ => None,
            }
        }
    };
}

counts! {
    /// A number of blocks.
    Blocks: "block", "blocks";
    /// A number of allocations.
    Allocations: "allocation", "allocations";
    /// A number of trace events.
    Events: "event", "events";
    /// A number of segments.
    Segments: "segment", "segments";
    /// A number of training steps.
    Steps: "step", "steps";
    /// A number of ranks.
    Ranks: "rank", "ranks";
    /// A number of files.
    Files: "file", "files";
    /// How often the allocator returned all free memory.
    Flushes: "flush", "flushes";
}

/// Whether [`texts`] has words for this name.
pub fn is_unit(name: &str) -> bool {
    let own = [
        "Bytes",
        "SignedBytes",
        "Change",
        "Micros",
        "EventIndex",
        "PeakEvent",
        "Iteration",
        "EventSpan",
        "Count",
        "CountChange",
    ];
    own.contains(&name) || nouns(name).is_some()
}

/// The short and the exact text of the unit that serializes under `name`; `None` for other names.
///
/// `42.48 GiB` and `45,609,994,504 bytes` for `("Bytes", 45609994504)`.
pub fn texts(name: &str, value: i128) -> Option<[String; 2]> {
    let pair = |text: String, exact: String| Some([text, exact]);
    match name {
        "Bytes" => {
            let bytes = Bytes(u64::try_from(value).ok()?);
            pair(bytes.to_string(), bytes.exact())
        }
        "SignedBytes" | "Change" => {
            let bytes = Bytes(u64::try_from(value.unsigned_abs()).ok()?);
            let sign = match value.signum() {
                -1 => "-",
                1 if name == "Change" => "+",
                _ => "",
            };
            pair(format!("{sign}{bytes}"), format!("{sign}{}", bytes.exact()))
        }
        "Count" | "CountChange" => {
            let text = crate::signed_grouped(i64::try_from(value).ok()?);
            let plus = if name == "CountChange" && value > 0 { "+" } else { "" };
            pair(format!("{plus}{text}"), format!("{plus}{text}"))
        }
        "Micros" => {
            let micros = i64::try_from(value).ok()?;
            pair(Micros(micros).to_string(), format!("{} µs", crate::signed_grouped(micros)))
        }
        "EventIndex" => {
            let text = EventIndex(u32::try_from(value).ok()?).to_string();
            pair(text.clone(), format!("event {text}"))
        }
        "PeakEvent" => match u32::try_from(value) {
            Ok(event) => {
                let text = EventIndex(event).to_string();
                pair(text.clone(), format!("after event {text}"))
            }
            Err(_) => {
                pair("before the window".into(), "before the first event of the window".into())
            }
        },
        "Iteration" => {
            let text = Iteration(u64::try_from(value).ok()?).to_string();
            pair(text.clone(), format!("iteration {text}"))
        }
        "EventSpan" => {
            let [_, text] = texts("Events", value)?;
            pair(text.clone(), text)
        }
        _ => {
            let [one, many] = nouns(name)?;
            let text = grouped(u64::try_from(value).ok()?);
            let exact = format!("{text} {}", if value == 1 { one } else { many });
            pair(text, exact)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, value: i128, text: &str, exact: &str) {
        assert!(is_unit(name), "{name}");
        assert_eq!(texts(name, value), Some([text.to_owned(), exact.to_owned()]), "{name}");
    }

    #[test]
    fn units_have_a_short_and_an_exact_text() {
        check("Bytes", 45_609_994_504, "42.48 GiB", "45,609,994,504 bytes");
        check("Change", 2 << 20, "+2.00 MiB", "+2,097,152 bytes");
        check("Change", 0, "0 B", "0 bytes");
        check("SignedBytes", -512, "-512 B", "-512 bytes");
        check("Micros", 38_300, "38.3 ms", "38,300 µs");
        check("EventIndex", 3737, "#3,737", "event #3,737");
        check("PeakEvent", 3737, "#3,737", "after event #3,737");
        check("PeakEvent", -1, "before the window", "before the first event of the window");
        check("Iteration", 1000, "1,000", "iteration 1,000");
        check("Blocks", 1, "1", "1 block");
        check("Ranks", 1204, "1,204", "1,204 ranks");
        check("Count", 1204, "1,204", "1,204");
        check("CountChange", 1204, "+1,204", "+1,204");
        check("CountChange", -3, "-3", "-3");
    }

    #[test]
    fn other_names_and_impossible_values_have_no_text() {
        assert_eq!(texts("Finding", 1), None);
        assert!(!is_unit("Finding"));
        assert_eq!(texts("Bytes", -1), None);
    }
}
