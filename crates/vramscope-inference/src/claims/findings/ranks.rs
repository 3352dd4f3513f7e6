//! Ranks that hold far more than the other ranks of their run.
//!
//! A rank is compared with the ranks that allocate from the same call stacks, by the rule of
//! [`crate::evidence::ranks`]. One cause on one rank is one finding.

mod cause;
mod words;

pub use words::{rank_why, rank_words};

use crate::category::Category;
use crate::claims::id::FindingId;
use crate::claims::kinds::Basis;
use crate::claims::severity::Severity;
use crate::evidence::ranks::{
    CallSite, MIN_RANKS, RankFacts, of_like_code, rank_matrix, rank_runs,
};
use vramscope_units::Bytes;

/// What one rank holds more than the other ranks of its run.
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

/// The most ranks of a run that are compared by call sites too, whenever ranks are added.
const MAX_MATRIX_RANKS: usize = 256;

/// Ranks (by index) that hold far more than the other ranks of their run. Findings of one rank are
/// sorted by severity. A rank that holds less is not reported.
pub fn rank_skew(ranks: &[RankFacts]) -> Vec<(usize, RankSkew)> {
    let mut found: Vec<(usize, RankSkew)> = Vec::new();
    for run in rank_runs(ranks) {
        for group in of_like_code(ranks, &run) {
            if group.len() >= MIN_RANKS {
                let members: Vec<&RankFacts> = group.iter().map(|&rank| &ranks[rank]).collect();
                let skews = cause::compare(&members);
                found.extend(skews.into_iter().map(|(member, skew)| (group[member], skew)));
            }
        }
        if run.len() > MAX_MATRIX_RANKS {
            continue;
        }
        // A rank that runs other code (without activation checkpointing, say) has few call stacks
        // in common with the others, but most of its call sites.
        let members: Vec<&RankFacts> = run.iter().map(|&rank| &ranks[rank]).collect();
        let matrix = rank_matrix(&members);
        for outlier in &matrix.outliers {
            let rank = run[matrix.columns[outlier.column].member];
            if found.iter().all(|of| of.0 != rank) {
                let skew = cause::of_outlier(&ranks[rank], &matrix, outlier);
                found.extend(skew.map(|skew| (rank, skew)));
            }
        }
    }
    found.sort_by(|a, b| {
        let key = |f: &(usize, RankSkew)| (f.0, f.1.severity, std::cmp::Reverse(f.1.excess()));
        key(a).cmp(&key(b)).then_with(|| a.1.id.cmp(&b.1.id))
    });
    found
}
