//! A compact summary of a rank. It remains when the rank's tables are unloaded, and is the input
//! for the comparison of ranks.

use crate::derived::Derived;
use crate::findings::{FindingEntry, of_device};
use crate::frames::{FrameRecord, owned_frames, row_site, site};
use crate::loaded_file::SnapshotEntry;
use crate::peak::{BandKind, RowKey, block_key, row_key};
use crate::shares::{CategoryShare, by_category};
use crate::summary::OomSummary;
use crate::target::{Target, event_of, slot_of};
use crate::text;
use rustc_hash::FxHashMap;
use serde::Serialize;
use vramscope_analysis::slicing::{self, Budget, strides};
use vramscope_analysis::{
    BlindSpot, Category, FindingKind, Measure, RankFacts, RankStack, Share, blind_spots, by_stack,
    merge_same_lines, name_hash, parallel,
};

/// One device of one rank. The size is at most a few hundred kilobytes for any file, so the
/// summaries of 1,000 ranks fit in memory.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RankSummary {
    /// The file's path.
    pub path: String,
    /// The rank in the path; null if there is none.
    pub rank: Option<u32>,
    /// The device's ordinal.
    pub device: u32,
    /// The four bands by name, with their peaks in bytes.
    pub peaks: Vec<(&'static str, i64)>,
    /// The first event after which `requested_bytes` peaks, from 0; -1 is the state before the
    /// window.
    pub peak_event: i64,
    /// Live bytes at the peak of `requested_bytes` by category, most bytes first.
    pub categories: Vec<CategoryShare>,
    /// Live bytes at the peak of `requested_bytes` by call stack: the 200 largest.
    pub stacks: Vec<StackShare>,
    /// Live bytes at the peak of `requested_bytes` by call site: the 128 largest.
    pub sites: Vec<(String, u64)>,
    /// Out-of-memory events.
    pub ooms: Vec<OomSummary>,
    /// The rank's own findings, by severity, then bytes.
    pub findings: Vec<FindingEntry>,
    /// What could not be looked for; empty if another device of the file has more events.
    #[serde(skip)]
    pub blind_spots: Vec<BlindSpot>,
}

/// The live bytes of a call stack at the peak of `requested_bytes`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StackShare {
    /// A hash of the frames' names, files and lines, equal in all ranks.
    pub hash: u64,
    /// The call site.
    pub site: String,
    /// Requested bytes.
    pub bytes: u64,
    /// The category with most of the bytes.
    pub category: Category,
    /// Whether a finding about growth or held memory names the call site.
    pub is_told: bool,
    /// The call stack, innermost frame first.
    pub frames: Vec<FrameRecord<'static>>,
}

/// The maximum number of call stacks in a summary.
const MAX_STACKS: usize = 200;

/// The maximum number of call sites in a summary.
const MAX_SITES: usize = 128;

impl RankSummary {
    /// Summarizes one device. Derive block sizes and categories first: otherwise they are computed
    /// here at once.
    pub async fn new(target: Target<'_>, budget: &mut Budget) -> Self {
        let (trace, entry, snapshot) = (target.trace(), target.entry, target.snapshot());
        let slot = slot_of(trace.requested_band.peak_event);
        let (categories, carving) =
            parallel::join(|| entry.categories(target.index), || entry.carving(target.index));
        // Findings need block sizes, which exist now.
        let mut findings_budget = budget.fork();
        let shares = by_stack(trace, |i| Measure::Requested(slot).of(trace, carving, i), budget);
        let findings = entry.derive(Derived::Findings, target.index, &mut findings_budget);
        let (shares, ()) = slicing::join(shares, findings).await;
        let shares = merge_same_lines(shares, &entry.sites);
        let mut live = Vec::new();
        let rows: FxHashMap<RowKey, usize> = shares.iter().map(row_key).zip(0..).collect();
        let mut by_category_of_row = vec![[0u64; Category::ALL.len()]; shares.len()];
        for part in strides(trace.blocks.len()) {
            budget.charge(2 * part.len() as u64).await;
            let blocks = (part.start as u32..).zip(&trace.blocks[part]);
            let of_slot = blocks.filter(|(_, b)| b.is_live_at(slot));
            live.extend(of_slot.map(|(i, b)| {
                let category = categories.get(i).category;
                if let Some(&row) = rows.get(&block_key(target, i)) {
                    by_category_of_row[row][category as usize] += b.bytes.0;
                }
                (category, b.bytes.0)
            }));
        }
        let category_of = |row: usize| {
            let sums = &by_category_of_row[row];
            Category::ALL.into_iter().max_by_key(|&c| sums[c as usize]).unwrap_or(Category::Unknown)
        };
        let told = told_sites(target);
        let is_main = entry.default_trace().is_some_and(|main| std::ptr::eq(main, trace));
        let blind_spots = if is_main {
            blind_spots(entry.evidence(target.index), budget).await
        } else {
            Vec::new()
        };
        Self {
            path: target.path.to_owned(),
            rank: crate::rank_of(target.path),
            device: target.device(),
            peaks: BandKind::ALL.iter().map(|band| (band.name(), band.of(target).0.peak)).collect(),
            peak_event: event_of(slot),
            categories: by_category(live.into_iter()),
            stacks: shares
                .iter()
                .take(MAX_STACKS)
                .enumerate()
                .map(|(row, s)| StackShare {
                    hash: row_hash(entry, s),
                    bytes: s.weight as u64,
                    category: category_of(row),
                    is_told: told.contains(&site(entry, s.stack)),
                    frames: owned_frames(snapshot, s.stack),
                    site: row_site(entry, s.stack, s.no_stack),
                })
                .collect(),
            sites: by_site(entry, &shares),
            ooms: crate::summary::ooms(trace),
            findings: of_device(target),
            blind_spots,
        }
    }

    /// The figures that are compared across ranks.
    pub fn facts(&self) -> RankFacts {
        let peak = |band: BandKind| {
            let peak = self.peaks.iter().find(|peak| peak.0 == band.name());
            peak.map_or(0, |peak| u64::try_from(peak.1).unwrap_or(0))
        };
        let stack = |s: &StackShare| RankStack {
            hash: s.hash,
            site: s.site.clone(),
            bytes: s.bytes,
            category: s.category,
            is_told: s.is_told,
        };
        RankFacts {
            device: self.device,
            requested_peak: peak(BandKind::Requested),
            reserved_peak: peak(BandKind::Reserved),
            by_stack: self.stacks.iter().map(stack).collect(),
            by_site: self.sites.clone(),
            by_category: self.categories.iter().map(|c| (c.category, c.bytes)).collect(),
            findings: self.findings.iter().map(|f| (f.record.kind, f.record.bytes.0)).collect(),
            ..run_facts(&self.path)
        }
    }
}

/// Live requested bytes in a slot by call site: the largest ones.
pub(crate) async fn sites_at(
    target: Target<'_>,
    slot: u32,
    budget: &mut Budget,
) -> Vec<(String, u64)> {
    let (trace, entry) = (target.trace(), target.entry);
    let carving = entry.carving(target.index);
    let shares = by_stack(trace, |i| Measure::Requested(slot).of(trace, carving, i), budget);
    by_site(entry, &merge_same_lines(shares.await, &entry.sites))
}

/// The bytes of the largest call sites, each of all its call stacks.
fn by_site(entry: &SnapshotEntry, shares: &[Share]) -> Vec<(String, u64)> {
    let mut sites: Vec<(String, u64)> = Vec::with_capacity(shares.len());
    for share in shares {
        sites.push((row_site(entry, share.stack, share.no_stack), share.weight as u64));
    }
    sites.sort_by(|a, b| a.0.cmp(&b.0));
    sites.dedup_by(|next, sum| {
        let is_same = next.0 == sum.0;
        if is_same {
            sum.1 = sum.1.saturating_add(next.1);
        }
        is_same
    });
    sites.retain(|site| site.1 > 0);
    sites.sort_by_key(|site| std::cmp::Reverse(site.1));
    sites.truncate(MAX_SITES);
    sites
}

/// The hash of a row of blocks: that of its call stack, or of why there is none.
fn row_hash(entry: &SnapshotEntry, share: &Share) -> u64 {
    match share.no_stack {
        Some(why) => name_hash(text::no_stack(why)),
        None => entry.sites.get(share.stack).stack_hash,
    }
}

/// The run and the rank in a path, without figures.
pub fn run_facts(path: &str) -> RankFacts {
    let Some((folder, file)) = crate::rank_of::run_of(path) else { return RankFacts::default() };
    RankFacts {
        folder: folder.to_owned(),
        file,
        rank: crate::rank_of(path),
        ..RankFacts::default()
    }
}

/// The call sites that findings about growth and held memory name.
fn told_sites(target: Target<'_>) -> Vec<String> {
    let found = target.entry.findings(target.index).iter().filter(|finding| {
        matches!(
            finding.kind(),
            FindingKind::Growth
                | FindingKind::Cycle
                | FindingKind::GradientsHeld
                | FindingKind::HeldTooLong
        )
    });
    found.flat_map(|f| &f.parts).map(|part| site(target.entry, part.stack)).collect()
}
