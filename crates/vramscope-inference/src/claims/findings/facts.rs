//! The facts of all findings of a device. [`super`] has the list.

use super::all_findings;
use crate::claims::found::Found;
use crate::claims::kinds::FindingKind;
use crate::claims::scene::Claim;

/// A finding of one device. A comparison of ranks makes [`RankSkew`](super::RankSkew), which is a
/// finding of its own.
pub type Finding = Found<Facts>;

/// Declares [`Facts`].
macro_rules! facts {
    ($(
        $(#[$doc:meta])*
        $kind:ident: $name:literal, $label:literal, $about:ident => [$($facts:ident($of:ty)),*];
    )*) => {
        /// The facts of a finding.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Facts {
            $($(
                #[doc = concat!("See [`FindingKind::", stringify!($kind), "`].")]
                $facts($of),
            )*)*
        }

        impl Facts {
            /// The words, place and proof of these facts.
            pub fn claim(&self) -> &dyn Claim {
                match self { $($(Self::$facts(facts) => facts,)*)* }
            }
        }

        $($(impl From<Found<$of>> for Finding {
            fn from(found: Found<$of>) -> Self {
                debug_assert_eq!(found.common.id.kind, FindingKind::$kind);
                found.common.with(Facts::$facts(found.facts))
            }
        })*)*
    };
}

all_findings!(facts);
