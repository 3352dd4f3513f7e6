//! Every event is kept: what stands in the place of `parts` where ranges of events are not read.

#![expect(
    clippy::unused_self,
    clippy::unnecessary_wraps,
    reason = "where ranges are read they are used"
)]

use crate::snapshot::Excerpt;
use crate::tables::Tables;
use vramscope_pickle::Value;

/// Everything.
#[derive(Clone, Default)]
pub(crate) struct Keep;

/// No row is gone: an event's number is its row.
#[derive(Default)]
pub(crate) struct Gone {}

impl Gone {
    pub(crate) fn number(&self, row: u32) -> u32 {
        row
    }

    pub(crate) fn row(&self, number: u32) -> Option<u32> {
        Some(number)
    }
}

impl Tables {
    pub(crate) fn keeping(_: &Keep) -> Self {
        Self::new()
    }

    pub(crate) fn cut(&mut self, _: usize) {}

    pub(crate) fn settle(&mut self) {}

    pub(crate) fn excerpt(&self, _: Value) -> Option<Excerpt> {
        None
    }
}
