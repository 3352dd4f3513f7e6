//! The four bands: memory totals over time, named as in `torch.cuda.memory_stats()`.

use crate::Target;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use vramscope_trace::slicing::Budget;
use vramscope_trace::{Band, Exactness, Measure, Series};
use vramscope_units::named;

named! {
    /// A band of `torch.cuda.memory_stats()`, in display order: from the program's requests to the
    /// memory taken from the device.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    #[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
    pub enum BandKind {
        /// `requested_bytes`.
        #[serde(rename = "requested_bytes")]
        Requested = "requested_bytes",
        /// `active_bytes`.
        #[serde(rename = "active_bytes")]
        Active = "active_bytes",
        /// `allocated_bytes`.
        #[serde(rename = "allocated_bytes")]
        Allocated = "allocated_bytes",
        /// `reserved_bytes`.
        #[serde(rename = "reserved_bytes")]
        Reserved = "reserved_bytes",
    }
}

impl BandKind {
    /// The band's figures on a device, and their exactness.
    pub fn of(self, target: Target<'_>) -> (Band, Exactness) {
        let (trace, carving) = (target.trace(), target.entry.carving(target.index));
        match self {
            Self::Requested => (trace.requested_band, trace.exactness),
            Self::Active => (carving.active_band, carving.exactness),
            Self::Allocated => (carving.allocated_band, carving.exactness),
            Self::Reserved => (trace.reserved_band, trace.reserved_exactness()),
        }
    }

    /// The band's value in every slot.
    pub async fn series<'a>(self, target: Target<'a>, budget: &mut Budget) -> Cow<'a, Series> {
        let carving = target.entry.carving(target.index);
        match self {
            Self::Requested => Cow::Borrowed(&target.trace().requested),
            Self::Active => Cow::Borrowed(&carving.active),
            Self::Allocated => Cow::Borrowed(&carving.allocated),
            Self::Reserved => Cow::Owned(target.trace().reserved(target.snapshot(), budget).await),
        }
    }

    /// The measure of a block in a slot; `None` for `reserved_bytes`, which has segments, not
    /// blocks.
    pub fn measure(self, slot: u32) -> Option<Measure> {
        match self {
            Self::Requested => Some(Measure::Requested(slot)),
            Self::Active => Some(Measure::Active(slot)),
            Self::Allocated => Some(Measure::Allocated(slot)),
            Self::Reserved => None,
        }
    }
}
