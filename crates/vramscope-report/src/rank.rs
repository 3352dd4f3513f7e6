//! A rank in a few kilobytes: what is kept of it when its tables are released, and what ranks are
//! compared by.

use crate::derived::Derived;
use crate::findings::{FindingRecord, of_device};
use crate::frames::{FrameRecord, owned_frames, site};
use crate::peak::BandKind;
use crate::shares::{CategoryShare, by_category};
use crate::summary::OomSummary;
use crate::target::{Target, slot_of};
use serde::Serialize;
use vramscope_analysis::slicing::{self, Budget, run_to_completion, strides};
use vramscope_analysis::{Measure, RankFacts, by_stack_sliced, parallel};

/// One device of one rank. At most a few hundred kilobytes, whatever the file: a thousand ranks
/// fit.
#[derive(Clone, Debug, Serialize)]
pub struct RankSummary {
    /// The file.
    pub path: String,
    /// The rank that its name tells.
    pub rank: Option<u32>,
    /// The device.
    pub device: u32,
    /// The four bands and their peaks in bytes.
    pub peaks: Vec<(&'static str, i64)>,
    /// What was live when `requested_bytes` was largest, by category, most bytes first.
    pub categories: Vec<CategoryShare>,
    /// The same by call stack; only the largest.
    pub stacks: Vec<StackShare>,
    /// Out-of-memory events.
    pub ooms: Vec<OomSummary>,
    /// Its own findings, the most severe first.
    pub findings: Vec<FindingRecord>,
}

/// What a call stack holds at the peak.
#[derive(Clone, Debug, Serialize)]
pub struct StackShare {
    /// A hash of its frames' names, files and lines: the same in every rank.
    pub hash: u64,
    /// The call site that names it.
    pub site: String,
    /// Requested bytes.
    pub bytes: u64,
    /// Innermost first.
    pub frames: Vec<FrameRecord<'static>>,
}

/// How many call stacks are kept of a rank.
const STACKS: usize = 200;

impl RankSummary {
    /// Of one device.
    pub fn new(target: Target<'_>) -> Self {
        run_to_completion(Self::sliced(target, &mut Budget::unlimited()))
    }

    /// The same in slices; block sizes and categories are made before.
    pub async fn sliced(target: Target<'_>, budget: &mut Budget) -> Self {
        let (trace, entry, snapshot) = (target.trace(), target.entry, target.snapshot());
        let slot = slot_of(trace.requested_band.peak_event);
        let (categories, carving) =
            parallel::join(|| entry.categories(target.index), || entry.carving(target.index));
        // Findings need block sizes, which are there now.
        let mut beside = budget.fork();
        let shares =
            by_stack_sliced(trace, |i| Measure::Requested(slot).of(trace, carving, i), budget);
        let findings = entry.derive(Derived::Findings, target.index, &mut beside);
        let (shares, ()) = slicing::join(shares, findings).await;
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
                .take(STACKS)
                .map(|s| StackShare {
                    hash: entry.sites.get(s.stack).stack_hash,
                    site: site(entry, s.stack),
                    bytes: s.weight as u64,
                    frames: owned_frames(snapshot, s.stack),
                })
                .collect(),
            ooms: crate::summary::ooms(trace),
            findings: of_device(target),
        }
    }

    /// What the comparison of ranks needs.
    pub fn facts(&self) -> RankFacts {
        RankFacts {
            name: crate::text::file_name(&self.path).to_owned(),
            device: self.device,
            peaks: self.peaks.clone(),
            by_stack: self.stacks.iter().map(|s| (s.hash, s.site.clone(), s.bytes)).collect(),
            by_category: self.categories.iter().map(|c| (c.category, c.bytes)).collect(),
        }
    }
}
