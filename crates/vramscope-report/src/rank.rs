//! A compact summary of a rank. It remains when the rank's tables are unloaded, and is the input
//! for the comparison of ranks.

use crate::derived::Derived;
use crate::findings::{FindingRecord, of_device};
use crate::frames::{FrameRecord, owned_frames, row_site};
use crate::loaded_file::SnapshotEntry;
use crate::peak::BandKind;
use crate::shares::{CategoryShare, by_category};
use crate::summary::OomSummary;
use crate::target::{Target, slot_of};
use crate::text::{self, rank_name};
use serde::Serialize;
use vramscope_analysis::slicing::{self, Budget, run_to_completion, strides};
use vramscope_analysis::{
    Measure, RankFacts, Share, by_stack_sliced, merge_same_lines, name_hash, parallel,
};

/// One device of one rank. The size is at most a few hundred kilobytes for any file, so the
/// summaries of 1,000 ranks fit in memory.
#[derive(Clone, Debug, Serialize)]
pub struct RankSummary {
    /// The file's path.
    pub path: String,
    /// The rank in the path; null if there is none.
    pub rank: Option<u32>,
    /// The device's ordinal.
    pub device: u32,
    /// The four bands by name, with their peaks in bytes.
    pub peaks: Vec<(&'static str, i64)>,
    /// Live bytes at the peak of `requested_bytes` by category, most bytes first.
    pub categories: Vec<CategoryShare>,
    /// Live bytes at the peak of `requested_bytes` by call stack: the 200 largest.
    pub stacks: Vec<StackShare>,
    /// Out-of-memory events.
    pub ooms: Vec<OomSummary>,
    /// The rank's own findings, by severity, then bytes.
    pub findings: Vec<FindingRecord>,
}

/// The live bytes of a call stack at the peak of `requested_bytes`.
#[derive(Clone, Debug, Serialize)]
pub struct StackShare {
    /// A hash of the frames' names, files and lines, equal in all ranks.
    pub hash: u64,
    /// The call site.
    pub site: String,
    /// Requested bytes.
    pub bytes: u64,
    /// The call stack, innermost frame first.
    pub frames: Vec<FrameRecord<'static>>,
}

/// The maximum number of call stacks in a summary.
const MAX_STACKS: usize = 200;

impl RankSummary {
    /// Summarizes one device.
    pub fn new(target: Target<'_>) -> Self {
        run_to_completion(Self::sliced(target, &mut Budget::unlimited()))
    }

    /// [`Self::new`] in slices. Derive block sizes and categories first: otherwise they are
    /// computed here at once.
    pub async fn sliced(target: Target<'_>, budget: &mut Budget) -> Self {
        let (trace, entry, snapshot) = (target.trace(), target.entry, target.snapshot());
        let slot = slot_of(trace.requested_band.peak_event);
        let (categories, carving) =
            parallel::join(|| entry.categories(target.index), || entry.carving(target.index));
        // Findings need block sizes, which exist now.
        let mut findings_budget = budget.fork();
        let shares =
            by_stack_sliced(trace, |i| Measure::Requested(slot).of(trace, carving, i), budget);
        let findings = entry.derive(Derived::Findings, target.index, &mut findings_budget);
        let (shares, ()) = slicing::join(shares, findings).await;
        let shares = merge_same_lines(shares, &entry.sites);
        let mut live = Vec::new();
        for part in strides(trace.blocks.len()) {
            budget.charge(2 * part.len() as u64).await;
            let blocks = (part.start as u32..).zip(&trace.blocks[part]);
            let of_slot = blocks.filter(|(_, b)| b.enters <= slot && slot < b.leaves);
            live.extend(of_slot.map(|(i, b)| (categories.get(i).category, b.bytes.0)));
        }
        Self {
            path: target.path.to_owned(),
            rank: crate::rank_of(target.path),
            device: target.device(),
            peaks: BandKind::ALL.iter().map(|band| (band.name(), band.of(target).0.peak)).collect(),
            categories: by_category(live.into_iter()),
            stacks: shares
                .iter()
                .take(MAX_STACKS)
                .map(|s| StackShare {
                    hash: row_hash(entry, s),
                    site: row_site(entry, s.stack, s.no_stack),
                    bytes: s.weight as u64,
                    frames: owned_frames(snapshot, s.stack),
                })
                .collect(),
            ooms: crate::summary::ooms(trace),
            findings: of_device(target),
        }
    }

    /// The figures that are compared across ranks.
    pub fn facts(&self) -> RankFacts {
        RankFacts {
            name: rank_name(self.rank, &self.path),
            device: self.device,
            peaks: self.peaks.clone(),
            by_stack: self.stacks.iter().map(|s| (s.hash, s.site.clone(), s.bytes)).collect(),
            by_category: self.categories.iter().map(|c| (c.category, c.bytes)).collect(),
        }
    }
}

/// The hash of a row of blocks: that of its call stack, or of why there is none.
fn row_hash(entry: &SnapshotEntry, share: &Share) -> u64 {
    match share.no_stack {
        Some(why) => name_hash(text::no_stack(why)),
        None => entry.sites.get(share.stack).stack_hash,
    }
}
