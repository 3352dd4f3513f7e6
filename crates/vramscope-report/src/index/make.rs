//! Cards from snapshots.

use super::{COLUMNS, Card, CardFinding, FULL_HEIGHT, MAX_FINDINGS, MAX_STEPS};
use crate::capacity::capacity;
use crate::findings::FindingEntry;
use crate::peak::BandKind;
use crate::plain;
use crate::rank::{RankSummary, sites_at};
use crate::target::{Target, event_of, slot_of};
use rustc_hash::FxHashMap;
use vramscope_analysis::slicing::now;
use vramscope_analysis::{Exactness, Fragmentation, Steps, columns_of, step_floors};

impl Card {
    /// The card of a device. It names its own call sites and stacks. `bytes` is the size of the
    /// file.
    pub fn new(target: Target<'_>, bytes: u64) -> Self {
        Self::of(&now(async |budget| RankSummary::new(target, budget).await), target, bytes)
    }

    /// [`Self::new`] where the summary is known.
    pub fn of(summary: &RankSummary, target: Target<'_>, bytes: u64) -> Self {
        let trace = target.trace();
        let mut card = Self {
            bytes,
            device: Some(summary.device),
            events: trace.device.events.len() as u64,
            end: trace.requested_band.end,
            ..Self::of_path(&summary.path)
        };
        for band in BandKind::ALL {
            let (figures, exactness) = band.of(target);
            card.peaks.push(figures.peak);
            card.peak_events.push(event_of(slot_of(figures.peak_event)));
            card.estimates.push((exactness == Exactness::Estimate).into());
        }
        for share in &summary.categories {
            card.categories.push(share.category);
            card.category_bytes.push(share.bytes);
        }
        let mut names = Names::default();
        card.add_sites(summary, &mut names);
        for oom in &summary.ooms {
            card.oom_events.push(oom.event.into());
            card.oom_requests.push(oom.requested);
        }
        card.add_findings(&summary.findings, target.entry.steps(target.index));
        card.add_free_memory(target);
        card.curve = curve(target);
        card.add_steps(target, &mut names);
        card.new_sites = names.names;
        let capacity = now(async |budget| capacity(target, budget).await);
        card.capacity = capacity.map(|capacity| capacity.bytes.0);
        card
    }

    /// The card of a file that could not be read, or in which nothing was allocated.
    pub fn failed(path: &str, bytes: u64, error: &str) -> Self {
        Self { bytes, error: Some(error.to_owned()), ..Self::of_path(path) }
    }

    fn of_path(path: &str) -> Self {
        Self {
            path: path.to_owned(),
            rank: crate::rank_of(path),
            iteration: crate::iteration_of(path),
            ..Self::default()
        }
    }

    fn add_sites(&mut self, summary: &RankSummary, names: &mut Names) {
        for (site, bytes) in &summary.sites {
            self.sites.push(names.index_of(site));
            self.site_bytes.push(*bytes);
        }
        for (place, stack) in (0..).zip(&summary.stacks) {
            self.stacks.push(place);
            self.stack_bytes.push(stack.bytes);
            self.stack_categories.push(stack.category as u64);
            if stack.is_told {
                self.told.push(place);
            }
            self.new_stacks.push(stack.hash);
            self.new_stack_sites.push(names.index_of(&stack.site));
        }
    }

    fn add_findings(&mut self, findings: &[FindingEntry], steps: Option<&Steps>) {
        for finding in findings {
            self.kinds.push(finding.record.kind);
            self.kind_bytes.push(finding.record.bytes.0);
        }
        let mut worst: Vec<&FindingEntry> = findings.iter().collect();
        worst.sort_by_key(|finding| finding.record.weight());
        let is_training = steps.is_none_or(Steps::are_training);
        let row = |FindingEntry { record, headline, .. }: &&FindingEntry| CardFinding {
            record: record.brief(),
            headline: plain(headline),
            place: record.place(is_training),
        };
        self.findings = worst.iter().take(MAX_FINDINGS).map(row).collect();
    }

    fn add_free_memory(&mut self, target: Target<'_>) {
        let trace = target.trace();
        let carving = target.entry.carving(target.index);
        let cached =
            now(async |budget| Fragmentation::new(target.snapshot(), trace, carving, budget).await);
        let at_peak = slot_of(trace.reserved_band.peak_event);
        (self.free, self.largest_free) = (cached.free.at(at_peak), cached.largest.at(at_peak));
        let at_end = trace.slots() - 1;
        (self.end_free, self.end_largest_free) =
            (cached.free.at(at_end), cached.largest.at(at_end));
    }

    fn add_steps(&mut self, target: Target<'_>, names: &mut Names) {
        let mut kept = target.trace().slots() - 1;
        if let Some(steps) = target.entry.steps(target.index) {
            let floors = now(async |budget| step_floors(target.trace(), steps, budget).await);
            let last = &floors[floors.len().saturating_sub(MAX_STEPS)..];
            self.first_step = last.first().map_or(0, |step| step.step.into());
            self.step_peaks = last.iter().map(|step| step.peak.0).collect();
            self.step_floors = last.iter().map(|step| step.floor.0).collect();
            kept = last.last().map_or(kept, |step| step.end);
        }
        self.kept_event = event_of(kept);
        self.kept = target.trace().requested.at(kept);
        for (site, bytes) in now(async |budget| sites_at(target, kept, budget).await) {
            self.kept_sites.push(names.index_of(&site));
            self.kept_site_bytes.push(bytes);
        }
    }
}

/// The call sites of a card, each once.
#[derive(Default)]
struct Names {
    names: Vec<String>,
    known: FxHashMap<String, u64>,
}

impl Names {
    fn index_of(&mut self, site: &str) -> u64 {
        if let Some(&index) = self.known.get(site) {
            return index;
        }
        let index = self.names.len() as u64;
        self.names.push(site.to_owned());
        self.known.insert(site.to_owned(), index);
        index
    }
}

/// The most requested bytes in equal parts of the window.
fn curve(target: Target<'_>) -> Vec<u64> {
    let trace = target.trace();
    let height = trace.reserved_band.peak.max(trace.requested_band.peak).max(1) as u64;
    let slots = columns_of(0..trace.slots().into(), COLUMNS as u32);
    let slots = slots.map(|part| part.start as u32..part.end as u32);
    let tops = now(async |budget| trace.requested.tops(slots, budget).await);
    let units = |most: u64| u128::from(most) * u128::from(FULL_HEIGHT) / u128::from(height);
    tops.into_iter().map(|most| units(most).min(FULL_HEIGHT.into()) as u64).collect()
}
