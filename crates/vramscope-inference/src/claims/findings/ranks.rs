//! Ranks that hold far more than the other ranks of their run.
//!
//! A run is the files of one folder whose names have distinct ranks. Ranks differ for good reasons:
//! pipeline stages run different code, and batches differ. So a rank is compared only with ranks
//! that allocate from the same call stacks, and must exceed the spread among them. One cause on one
//! rank is one finding.

mod cause;
mod words;

pub use words::{rank_why, rank_words};

use crate::category::Category;
use crate::claims::id::FindingId;
use crate::claims::kinds::{Basis, FindingKind};
use crate::claims::severity::Severity;
use crate::rank_matrix::rank_matrix;
use rustc_hash::{FxHashMap, FxHashSet};
use vramscope_snapshot::HOST;
use vramscope_units::Bytes;

/// The figures of one device of one file that are compared across ranks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankFacts {
    /// The folder of the run's files.
    pub folder: String,
    /// The path inside of the folder, without the rank's digits.
    pub file: String,
    /// The rank in the path; `None` if the file is no rank of a run.
    pub rank: Option<u32>,
    /// The device's ordinal.
    pub device: u32,
    /// The peak of `requested_bytes`.
    pub requested_peak: u64,
    /// The peak of `reserved_bytes`.
    pub reserved_peak: u64,
    /// Live memory at the peak of `requested_bytes` by call stack.
    pub by_stack: Vec<RankStack>,
    /// Live memory at the peak of `requested_bytes` by call site: the sites with the most bytes.
    pub by_site: Vec<(String, u64)>,
    /// Live bytes by category at the peak of `requested_bytes`.
    pub by_category: Vec<(Category, u64)>,
    /// Kind and bytes of the rank's own findings.
    pub findings: Vec<(FindingKind, u64)>,
}

/// The live memory of one call stack at the peak of a rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankStack {
    /// The stack's hash, equal in all ranks.
    pub hash: u64,
    /// Its call site.
    pub site: String,
    /// Bytes.
    pub bytes: u64,
    /// The category with most of the bytes.
    pub category: Category,
    /// Whether a finding about growth or held memory of this rank names the call site.
    pub is_told: bool,
}

impl RankStack {
    /// Whether the call site is a frame. Names of what has none begin with a parenthesis.
    pub(crate) fn has_frames(&self) -> bool {
        !self.site.starts_with('(')
    }
}

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
    pub site: String,
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

/// The fewest ranks in a group that have a meaningful median.
const MIN_RANKS: usize = 3;

/// The most ranks of a run that are compared by call sites too, whenever ranks are added.
const MAX_MATRIX_RANKS: usize = 256;

/// Ranks (by index) that hold far more than the other ranks of their run. Findings of one rank are
/// sorted by severity. A rank that holds less is not reported.
pub fn rank_skew(ranks: &[RankFacts]) -> Vec<(usize, RankSkew)> {
    let mut found: Vec<(usize, RankSkew)> = Vec::new();
    for run in rank_runs(ranks) {
        for group in groups(ranks, &run) {
            if group.len() >= MIN_RANKS {
                let members: Vec<&RankFacts> = group.iter().map(|&rank| &ranks[rank]).collect();
                let skews = cause::compare(&members);
                found.extend(skews.into_iter().map(|(member, skew)| (group[member], skew)));
            }
        }
        if run.len() <= MAX_MATRIX_RANKS {
            of_matrix(ranks, &run, &mut found);
        }
    }
    found.sort_by(|a, b| {
        let key = |f: &(usize, RankSkew)| (f.0, f.1.severity, std::cmp::Reverse(f.1.excess()));
        key(a).cmp(&key(b)).then_with(|| a.1.id.cmp(&b.1.id))
    });
    found
}

/// What the matrix shows of ranks without a finding. A rank that runs other code (without
/// activation checkpointing, say) has few call stacks in common with the others, but most of its
/// call sites.
fn of_matrix(ranks: &[RankFacts], run: &[usize], found: &mut Vec<(usize, RankSkew)>) {
    let members: Vec<&RankFacts> = run.iter().map(|&rank| &ranks[rank]).collect();
    let matrix = rank_matrix(&members);
    for outlier in &matrix.outliers {
        let column = &matrix.columns[outlier.column];
        let rank = run[column.member];
        if outlier.bytes <= outlier.usual || found.iter().any(|of| of.0 == rank) {
            continue;
        }
        let others = matrix
            .columns
            .iter()
            .filter(|other| other.cluster == column.cluster && other.member != column.member);
        let others: Vec<&RankFacts> = others.map(|other| members[other.member]).collect();
        let sites: Vec<&str> =
            outlier.rows.iter().map(|&row| matrix.rows[row].site.as_str()).collect();
        let held = (outlier.bytes, outlier.usual);
        found.extend(cause::of_outlier(&ranks[rank], &others, &sites, held).map(|s| (rank, s)));
    }
}

/// The runs among files, by index: the files of one folder if their ranks are distinct, else those
/// of them whose names differ by the rank alone.
pub fn rank_runs(ranks: &[RankFacts]) -> Vec<Vec<usize>> {
    // Of a file with several devices, the one with the highest peak takes part.
    let mut files: Vec<((&str, &str, u32), usize)> = Vec::new();
    for (i, facts) in ranks.iter().enumerate() {
        // Pinned host memory is not what fills a GPU.
        let Some(rank) = facts.rank.filter(|_| facts.device != HOST) else { continue };
        files.push(((&facts.folder, &facts.file, rank), i));
    }
    files.sort_by_key(|&(file, i)| (file, std::cmp::Reverse(ranks[i].requested_peak)));
    files.dedup_by_key(|file| file.0);
    let mut runs: Vec<Vec<usize>> = Vec::new();
    for folder in files.chunk_by(|a, b| a.0.0 == b.0.0) {
        let distinct: FxHashSet<u32> = folder.iter().map(|file| file.0.2).collect();
        if distinct.len() == folder.len() {
            runs.push(folder.iter().map(|file| file.1).collect());
        } else {
            let by_name = folder.chunk_by(|a, b| a.0.1 == b.0.1);
            runs.extend(by_name.map(|files| files.iter().map(|file| file.1).collect()));
        }
    }
    for run in &mut runs {
        run.sort_by_key(|&i| ranks[i].rank);
    }
    runs
}

/// Groups the ranks of a run whose call stacks overlap with those of the group's first rank: at
/// least four in five of the stacks that either of them has.
///
/// A rank with a leak has one or two stacks of its own. A pipeline stage has many.
fn groups(ranks: &[RankFacts], run: &[usize]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    // The number of stacks of each group's first rank, and the groups whose first rank has a stack.
    // So a rank is compared with the groups that share a stack with it, not with all.
    let mut sizes: Vec<usize> = Vec::new();
    let mut with_stack: FxHashMap<u64, Vec<usize>> = FxHashMap::default();
    let mut without_stacks: Option<usize> = None;
    for &rank in run {
        let mut stacks: Vec<u64> = ranks[rank].by_stack.iter().map(|s| s.hash).collect();
        stacks.sort_unstable();
        stacks.dedup();
        // Each group as often as it shares a stack with the rank.
        let of_stacks = stacks.iter().filter_map(|hash| with_stack.get(hash));
        let mut sharing: Vec<usize> = of_stacks.flatten().copied().collect();
        sharing.sort_unstable();
        let is_alike = |shared: &&[usize]| {
            let all = sizes[shared[0]] + stacks.len() - shared.len();
            shared.len() * 5 >= all * 4
        };
        let found = if stacks.is_empty() {
            without_stacks
        } else {
            sharing.chunk_by(|a, b| a == b).find(is_alike).map(|shared| shared[0])
        };
        if let Some(group) = found {
            groups[group].push(rank);
            continue;
        }
        let group = groups.len();
        groups.push(vec![rank]);
        sizes.push(stacks.len());
        if stacks.is_empty() {
            without_stacks = Some(group);
        }
        for hash in stacks {
            with_stack.entry(hash).or_default().push(group);
        }
    }
    groups
}
