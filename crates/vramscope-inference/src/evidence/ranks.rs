//! Ranks of a run side by side: which of them are compared, and which differ.
//!
//! Ranks differ for good reasons: pipeline stages run different code, and batches differ. So a rank
//! is compared with like ranks only, and must differ by far more than these differ among
//! themselves. One rule says so, for the finding and for the matrix. A rank is an outlier in a
//! figure if
//!
//! 1. the figure [is far](Spread::is_far) from the median, measured by the usual difference;
//! 2. [few](are_few) ranks are, otherwise they are another kind of rank;
//! 3. the difference [matters](matters) beside the usual peak.

mod matrix;

pub use matrix::{
    ALIKE_PARTS, MatrixColumn, MatrixRow, RankCluster, RankMatrix, RankOutlier, rank_matrix,
};

use crate::category::Category;
use crate::claims::FindingKind;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use vramscope_snapshot::HOST;

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
    pub by_site: Vec<(CallSite, u64)>,
    /// Live bytes by category at the peak of `requested_bytes`.
    pub by_category: Vec<(Category, u64)>,
    /// Kind and bytes of the rank's own findings.
    pub findings: Vec<(FindingKind, u64)>,
}

/// A call site.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallSite {
    /// Its name: `train.py:88 step`. Without a frame, the reason why there is none.
    pub name: String,
    /// Whether it is a frame.
    pub has_frame: bool,
}

/// The live memory of one call stack at the peak of a rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankStack {
    /// The stack's hash, equal in all ranks.
    pub hash: u64,
    /// Its call site.
    pub site: CallSite,
    /// Bytes.
    pub bytes: u64,
    /// The category with most of the bytes.
    pub category: Category,
    /// Whether a finding about growth or held memory of this rank names the call site.
    pub is_named: bool,
}

/// The fewest ranks with a meaningful median.
pub(crate) const MIN_RANKS: usize = 3;

/// A figure is far from the median beyond this many usual differences. For values of a normal
/// distribution these are six standard deviations, of which each is 1.4826 usual differences.
const DIFFERENCES: u64 = 9;

/// And beyond the median divided by this: ranks that are equal but for one have no usual
/// difference.
const MIN_PART: u64 = 4;

/// The smallest difference that matters, whatever the peak.
const MIN_BYTES: u64 = 16 << 20;

/// A difference matters from this part of the usual peak: one in fifty.
const MIN_PEAK_PART: u64 = 50;

/// The smallest difference at one call stack or call site that counts.
const MIN_SITE_BYTES: u64 = 1 << 20;

/// The middle of a figure over ranks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spread {
    /// The median.
    pub(crate) median: u64,
    /// The median difference from the median.
    usual: u64,
}

impl Spread {
    /// Ranks without a value count as zero.
    pub(crate) fn of(mut values: Vec<u64>, ranks: usize) -> Self {
        values.resize(ranks, 0);
        let median = middle(&mut values);
        for value in &mut values {
            *value = value.abs_diff(median);
        }
        Self { median, usual: middle(&mut values) }
    }

    /// Whether a value is far from what is expected of its rank: from the median, or from that
    /// times the ratio of the rank's batch.
    pub(crate) fn is_far(self, value: u64, expected: u64) -> bool {
        let usual = self.usual.saturating_mul(DIFFERENCES);
        value.abs_diff(expected) > usual.max(expected / MIN_PART)
    }

    /// [`Self::is_far`] for the bytes of a call stack or a call site.
    pub(crate) fn is_site_far(self, bytes: u64, expected: u64) -> bool {
        self.is_far(bytes, expected) && bytes.abs_diff(expected) > MIN_SITE_BYTES
    }
}

/// Whether `far` of some ranks are exceptions: at most one in eight, or one of a few ranks.
pub(crate) fn are_few(far: usize, ranks: usize) -> bool {
    far <= (ranks / 8).max(1)
}

/// Whether a difference is a part of the usual peak to speak of.
pub(crate) fn matters(bytes: u64, usual_peak: u64) -> bool {
    bytes >= MIN_BYTES.max(usual_peak / MIN_PEAK_PART)
}

/// The median; of an even number of values the upper one of the two in the middle. 0 without
/// values.
pub fn median(values: &[u64]) -> u64 {
    middle(&mut values.to_vec())
}

#[inline(never)]
fn middle(values: &mut [u64]) -> u64 {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}

/// The sum, or the largest number: a damaged file may have any.
pub(crate) fn total(bytes: impl IntoIterator<Item = u64>) -> u64 {
    bytes.into_iter().fold(0, u64::saturating_add)
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

/// Groups ranks whose call stacks overlap with those of the group's first rank: at least four in
/// five of the stacks that either of them has.
///
/// A rank with a leak has one or two stacks of its own. A pipeline stage has many.
pub(crate) fn of_like_code(ranks: &[RankFacts], run: &[usize]) -> Vec<Vec<usize>> {
    let mut groups: Vec<(usize, Vec<usize>)> = Vec::new();
    // So a rank is compared with the groups that share a stack with it, not with all.
    let mut with_stack: FxHashMap<Option<u64>, Vec<usize>> = FxHashMap::default();
    for &rank in run {
        let stacks = ranks[rank].by_stack.iter().map(|stack| Some(stack.hash));
        let mut stacks: Vec<Option<u64>> = stacks.collect();
        stacks.sort_unstable();
        stacks.dedup();
        if stacks.is_empty() {
            stacks.push(None);
        }
        let mut shared: BTreeMap<usize, usize> = BTreeMap::new();
        for &group in stacks.iter().filter_map(|stack| with_stack.get(stack)).flatten() {
            *shared.entry(group).or_default() += 1;
        }
        let is_alike = |&(&group, &shared): &(&usize, &usize)| {
            shared * 5 >= (groups[group].0 + stacks.len() - shared) * 4
        };
        if let Some((&group, _)) = shared.iter().find(is_alike) {
            groups[group].1.push(rank);
            continue;
        }
        for &stack in &stacks {
            with_stack.entry(stack).or_default().push(groups.len());
        }
        groups.push((stacks.len(), vec![rank]));
    }
    groups.into_iter().map(|group| group.1).collect()
}
