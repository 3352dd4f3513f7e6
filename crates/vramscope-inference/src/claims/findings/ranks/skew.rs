//! The facts about a rank that holds more.

use crate::category::Category;
use crate::claims::id::FindingId;
use crate::claims::kinds::Basis;
use crate::claims::severity::Severity;
use crate::evidence::ranks::CallSite;
use vramscope_units::Bytes;

/// Memory that one rank has and the other ranks of its run lack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankSkew {
    /// The id of the finding.
    pub id: FindingId,
    /// How much it matters.
    pub severity: Severity,
    /// How the numbers were obtained.
    pub basis: Basis,
    /// The rank.
    pub rank: u32,
    /// Why.
    pub cause: SkewCause,
    /// The category of the call stack with the largest excess; `None` if the cause has none.
    pub category: Option<Category>,
    /// Bytes on this rank.
    pub bytes: Bytes,
    /// The median of the compared ranks. It is scaled where a larger batch explains a part.
    pub usual: Bytes,
    /// The number of compared ranks, this one included.
    pub ranks: usize,
    /// The same bytes on each of the compared ranks, by rank.
    pub each: Vec<(u32, Bytes)>,
    /// The call stacks that hold more, largest excess first; empty if the cause has none.
    pub sites: Vec<SkewSite>,
}

impl RankSkew {
    /// Bytes above what is usual.
    pub fn excess(&self) -> Bytes {
        Bytes(self.bytes.0.saturating_sub(self.usual.0))
    }
}

/// A call stack that holds more on one rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkewSite {
    /// The stack's hash, equal in all ranks.
    pub hash: u64,
    /// Its call site.
    pub site: CallSite,
    /// Bytes above what is usual.
    pub excess: Bytes,
}

/// Why a rank holds more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SkewCause {
    /// All call sites of a step's data hold more by one ratio: a larger batch or longer sequences.
    Batch {
        /// The ratio in percent.
        percent: u64,
        /// Bytes of inputs on this rank, and the median; `None` if they do not have that ratio.
        inputs: Option<(Bytes, Bytes)>,
    },
    /// Some call sites hold more on this rank, or hold memory on it only.
    Held,
    /// Parameters and optimizer state are larger.
    Sharding,
    /// Only `reserved_bytes` is larger.
    Reserved,
}
