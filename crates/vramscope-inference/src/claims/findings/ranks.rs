//! Ranks that hold far more than the other ranks of their run.
//!
//! A rank is compared with the ranks that allocate from the same call stacks, by the rule of
//! [`crate::evidence::ranks`]. One cause on one rank is one finding.

mod cause;
mod skew;
mod words;

pub use skew::{RankSkew, SkewCause, SkewSite};
pub use words::{rank_why, rank_words};

use crate::evidence::ranks::{MIN_RANKS, RankFacts, of_like_code, rank_matrix, rank_runs};

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
