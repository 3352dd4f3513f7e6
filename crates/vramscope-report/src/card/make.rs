//! Cards from snapshots.

use super::{
    COLUMNS, Card, CardFinding, FULL_HEIGHT, FreeMemory, MAX_SITES, MAX_STACKS, MAX_STEPS,
    NamedStack, Names, SiteBytes, StackBytes, StepBytes, Told,
};
use crate::capacity::capacity;
use crate::derived::Derived;
use crate::findings::{FindingEntry, blind, of_device};
use crate::frames::{owned_frames, row_site, site};
use crate::loaded_file::SnapshotEntry;
use crate::peak::{BandKind, RowKey, block_key, row_key};
use crate::phases::step_words;
use crate::segments::states;
use crate::shares::by_category;
use crate::summary::{BandSummary, ooms};
use crate::target::{Target, event_of, slot_of};
use crate::text;
use rustc_hash::FxHashMap;
use vramscope_inference::{CallSite, Category, FindingKind, step_floors};
use vramscope_trace::slicing::{self, Budget};
use vramscope_trace::{
    Measure, Share, by_stack, columns_of, merge_same_lines, name_hash, parallel,
};
use vramscope_units::{Bytes, Events, Iteration, PeakEvent};

impl Card {
    /// The card of a device. It names its own call sites and stacks. Derive block sizes and
    /// categories first: otherwise they are computed here at once.
    pub async fn new(target: Target<'_>, budget: &mut Budget) -> Self {
        let (trace, entry) = (target.trace(), target.entry);
        let slot = slot_of(trace.requested_band.peak_event);
        let (categories, carving) =
            parallel::join(|| entry.categories(target.index), || entry.carving(target.index));
        // Findings need block sizes, which exist now.
        let mut findings_budget = budget.fork();
        let shares = by_stack(trace, |i| Measure::Requested(slot).of(trace, carving, i), budget);
        let findings = entry.derive(Derived::Findings, target.index, &mut findings_budget);
        let (shares, ()) = slicing::join(shares, findings).await;
        let shares = merge_same_lines(shares, &entry.sites);
        let rows: FxHashMap<RowKey, usize> = shares.iter().map(row_key).zip(0..).collect();
        let mut sums_of_row = vec![[0u64; Category::ALL.len()]; shares.len()];
        let of_slot = trace.live_at(slot, budget).await;
        budget.charge(2 * of_slot.len() as u64).await;
        let of_slot = of_slot.into_iter().map(|(i, b)| {
            let category = categories.get(i).category;
            if let Some(&row) = rows.get(&block_key(target, i)) {
                sums_of_row[row][category as usize] += b.bytes.0;
            }
            (category, b.bytes.0)
        });
        let live: Vec<_> = of_slot.collect();
        let mut names = Interner::default();
        let sites = names.sites(by_site(entry, &shares));
        let stacks = names.stacks(target, &shares, &sums_of_row);
        let (first_step, steps, kept_slot) = last_steps(target, budget).await;
        let kept_sites = names.sites(sites_at(target, kept_slot, budget).await);
        let is_main = entry.default_trace().is_some_and(|main| std::ptr::eq(main, trace));
        let blind_spots = if is_main { blind::of_device(target, budget).await } else { Vec::new() };
        let entries = of_device(target);
        let finding = |FindingEntry { record, leads, .. }: &FindingEntry| CardFinding {
            record: record.brief(),
            place: record.place(step_words(target)[0]),
            leads: *leads,
        };
        Self {
            path: target.path.to_owned(),
            bytes: Bytes(entry.file_bytes),
            rank: crate::rank_of(target.path),
            iteration: crate::iteration_of(target.path).map(Iteration),
            device: target.device(),
            events: Events(trace.device.events.len() as u64),
            bands: BandKind::ALL.map(|band| BandSummary::of(target, band)),
            free: free_at(target, slot_of(trace.reserved_band.peak_event), budget).await,
            end_free: free_at(target, trace.slots() - 1, budget).await,
            capacity: capacity(target, budget).await.map(|capacity| capacity.bytes),
            categories: by_category(live.into_iter()),
            sites,
            stacks,
            kept_event: PeakEvent(event_of(kept_slot)),
            kept: Bytes(trace.requested.at(kept_slot)),
            kept_sites,
            ooms: ooms(trace),
            findings: entries.iter().map(finding).collect(),
            other_findings: Vec::new(),
            curve: curve(target, budget).await,
            first_step,
            steps,
            names: names.names,
            entries,
            blind_spots,
            told: None,
        }
    }

    /// [`Self::new`] with all that `vramscope diagnose` says: the card of an index.
    pub async fn whole(target: Target<'_>, budget: &mut Budget) -> Self {
        let mut card = Self::new(target, budget).await;
        card.told = Some(Told::new(target, &card, budget).await);
        card
    }
}

/// The last whole steps with the number of the first, and the slot whose memory is kept.
async fn last_steps(target: Target<'_>, budget: &mut Budget) -> (u32, Vec<StepBytes>, u32) {
    let trace = target.trace();
    let floors = match target.entry.steps(target.index) {
        Some(steps) => step_floors(trace, steps, budget).await,
        None => Vec::new(),
    };
    let last = &floors[floors.len().saturating_sub(MAX_STEPS)..];
    (
        last.first().map_or(0, |step| step.step),
        last.iter().map(|step| StepBytes { peak: step.peak, floor: step.floor }).collect(),
        last.last().map_or(trace.slots() - 1, |step| step.end),
    )
}

async fn free_at(target: Target<'_>, slot: u32, budget: &mut Budget) -> FreeMemory {
    let states = states(target, slot, budget).await;
    FreeMemory {
        bytes: Bytes(states.iter().map(|segment| segment.free.0).sum()),
        largest: states.iter().map(|segment| segment.largest_free).max().unwrap_or_default(),
    }
}

/// The most requested bytes in equal parts of the window.
async fn curve(target: Target<'_>, budget: &mut Budget) -> Vec<u32> {
    let trace = target.trace();
    let height = trace.reserved_band.peak.max(trace.requested_band.peak).max(1) as u64;
    let slots = columns_of(0..trace.slots().into(), COLUMNS as u32);
    let slots = slots.map(|part| part.start as u32..part.end as u32);
    let tops = trace.requested.tops(slots, budget).await;
    let units = |most: u64| u128::from(most) * u128::from(FULL_HEIGHT) / u128::from(height);
    tops.into_iter().map(|most| units(most).min(FULL_HEIGHT.into()) as u32).collect()
}

/// Gives names their indices.
#[derive(Default)]
struct Interner {
    names: Names,
    known: FxHashMap<CallSite, u32>,
}

impl Interner {
    fn site(&mut self, site: CallSite) -> u32 {
        let next = self.names.sites.len() as u32;
        *self.known.entry(site).or_insert_with_key(|site| {
            self.names.sites.push(site.clone());
            next
        })
    }

    fn sites(&mut self, all: Vec<(CallSite, u64)>) -> Vec<SiteBytes> {
        let row = |(site, bytes)| SiteBytes { site: self.site(site), bytes: Bytes(bytes) };
        all.into_iter().map(row).collect()
    }

    /// The call stacks with the most bytes. `sums_of_row` are the bytes of each by category.
    fn stacks(
        &mut self,
        target: Target<'_>,
        shares: &[Share],
        sums_of_row: &[[u64; Category::ALL.len()]],
    ) -> Vec<StackBytes> {
        let (entry, found) = (target.entry, found_sites(target));
        let mut stacks = Vec::new();
        for (share, sums) in shares.iter().zip(sums_of_row).take(MAX_STACKS) {
            let most = Category::ALL.into_iter().max_by_key(|&of| sums[of as usize]);
            let site_index = self.site(call_site(entry, share));
            stacks.push(StackBytes {
                stack: self.names.stacks.len() as u32,
                bytes: Bytes(share.weight as u64),
                category: most.unwrap_or(Category::Unknown),
                is_found: found.contains(&site(entry, share.stack)),
                frames: owned_frames(target.snapshot(), share.stack),
            });
            self.names.stacks.push(NamedStack { hash: row_hash(entry, share), site: site_index });
        }
        stacks
    }
}

/// Live requested bytes in a slot by call site: the largest ones.
pub(crate) async fn sites_at(
    target: Target<'_>,
    slot: u32,
    budget: &mut Budget,
) -> Vec<(CallSite, u64)> {
    let (trace, entry) = (target.trace(), target.entry);
    let carving = entry.carving(target.index);
    let shares = by_stack(trace, |i| Measure::Requested(slot).of(trace, carving, i), budget);
    by_site(entry, &merge_same_lines(shares.await, &entry.sites))
}

/// The bytes of the largest call sites, each of all its call stacks.
fn by_site(entry: &SnapshotEntry, shares: &[Share]) -> Vec<(CallSite, u64)> {
    let mut sites: Vec<(CallSite, u64)> = Vec::with_capacity(shares.len());
    for share in shares {
        sites.push((call_site(entry, share), share.weight as u64));
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

fn call_site(entry: &SnapshotEntry, share: &Share) -> CallSite {
    let has_frame = share.no_stack.is_none() && entry.sites.get(share.stack).frame.is_some();
    CallSite { name: row_site(entry, share.stack, share.no_stack), has_frame }
}

/// The hash of a row of blocks: that of its call stack, or of the reason why it has none.
fn row_hash(entry: &SnapshotEntry, share: &Share) -> u64 {
    match share.no_stack {
        Some(why) => name_hash(text::no_stack(why)),
        None => entry.sites.get(share.stack).stack_hash,
    }
}

/// The call sites that findings about growth and held memory name.
fn found_sites(target: Target<'_>) -> Vec<String> {
    let found = target.entry.findings(target.index).iter().filter(|finding| {
        matches!(
            finding.kind(),
            FindingKind::Growth
                | FindingKind::Cycle
                | FindingKind::GradientsHeld
                | FindingKind::HeldTooLong
                | FindingKind::NoGrad
        )
    });
    found.flat_map(|f| &f.parts).map(|part| site(target.entry, part.stack)).collect()
}
