//! The kinds of findings and their names. [`super::findings`] has the list.

use super::findings::all_findings;
use serde::{Deserialize, Serialize};
use vramscope_units::named;

/// The subject of a finding. Findings of two ranks about one thing are one finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// The device: one cause, wherever each rank was.
    Device,
    /// The pool, the stream or the cause of returns that its id names.
    Id,
    /// Blocks of a call site.
    Blocks,
    /// A rank beside others.
    Rank,
}

/// Declares [`FindingKind`].
macro_rules! kinds {
    ($(
        $(#[$doc:meta])*
        $kind:ident: $name:literal, $label:literal, $about:ident => [$($facts:ident($of:ty)),*];
    )*) => {
        /// The kinds of findings.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
        #[serde(rename_all = "snake_case")]
        pub enum FindingKind {
            $($(#[$doc])* $kind,)*
        }

        impl FindingKind {
            /// All kinds.
            pub const ALL: &[Self] = &[$(Self::$kind,)*];

            /// The name in JSON.
            pub fn name(self) -> &'static str {
                match self { $(Self::$kind => $name,)* }
            }

            /// The name on the page.
            pub fn label(self) -> &'static str {
                match self { $(Self::$kind => $label,)* }
            }

            /// When a finding of the kind is made, what it does not see, and what helps: Markdown.
            pub fn page(self) -> &'static str {
                match self {
                    $(Self::$kind => include_str!(concat!(
                        env!("CARGO_MANIFEST_DIR"),
                        "/src/claims/findings/pages/",
                        $name,
                        ".md"
                    )),)*
                }
            }

            /// The subject of findings of the kind.
            pub fn about(self) -> About {
                match self { $(Self::$kind => About::$about,)* }
            }
        }
    };
}

all_findings!(kinds);

impl FindingKind {
    /// The kind with this name in JSON.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }
}

named! {
    /// How the numbers of a finding were obtained.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    #[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
    #[serde(rename_all = "snake_case")]
    pub enum Basis {
        /// The file has them.
        Recorded = "recorded",
        /// They follow from the file without a guess.
        Exact = "exact",
        /// They rest on a guess that the finding names.
        Estimate = "estimate",
    }
}
