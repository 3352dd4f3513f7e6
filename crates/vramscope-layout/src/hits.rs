//! The hits of a search in a strip of the timeline.

/// The hits of a search in a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hits {
    /// Their bytes.
    pub(crate) bytes: u64,
    /// Bytes of the largest.
    pub(crate) largest: u64,
    /// The largest. Of equally large ones the lowest.
    pub(crate) block: u32,
}

impl Hits {
    /// The hits of two neighbors.
    pub(crate) fn join(self, above: Self) -> Self {
        let larger = if self.largest >= above.largest { self } else { above };
        Self { bytes: self.bytes + above.bytes, ..larger }
    }
}
