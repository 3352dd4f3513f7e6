//! The peak lens: separate peaks, the allocations and frees around one, and the live set at it.

use super::{Target, row_site};
use crate::band::BandKind;
use crate::peak::separate_peaks;
use crate::phases::{Place, places};
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::cmp::Reverse;
use vramscope_inference::Category;
use vramscope_snapshot::StackId;
use vramscope_trace::slicing::{Budget, strides};
use vramscope_trace::{NoStack, Peak};
use vramscope_units::{Bytes, EventIndex};

/// Allocations and frees up to a peak, which is the last of them.
const BEFORE: usize = 40;

/// Allocations and frees after a peak.
const AFTER: usize = 20;

/// A separate peak.
#[derive(Clone, Debug)]
pub struct SeparatePeak {
    /// The peak.
    pub peak: Peak,
    /// The step and the phase.
    pub place: Place,
    /// How much lower the next separate peak is; `None` for the last.
    pub next_lower: Option<Bytes>,
    /// The peak and what its end would bring, one sentence each.
    pub text: Vec<String>,
}

/// The separate peaks of a band with their places, the highest first.
pub async fn peaks(target: Target<'_>, band: BandKind, budget: &mut Budget) -> Vec<SeparatePeak> {
    let series = band.series(target, budget).await;
    let peaks = separate_peaks(&series, band.of(target).0, budget).await;
    let slots: Vec<u32> = peaks.iter().map(|peak| peak.slot).collect();
    let places = places(target, &slots, budget).await;
    let below = |index: usize, of: &Peak| {
        peaks.get(index).map(|next| Bytes(of.value.saturating_sub(next.value)))
    };
    let mut found = Vec::with_capacity(peaks.len());
    for (index, (&peak, place)) in peaks.iter().zip(places).enumerate() {
        let next_lower = below(index + 1, &peak);
        let mut text =
            vec![format!("Peak {}: {} {}{}.", index + 1, Bytes(peak.value), at(&peak), of(place))];
        text.push(match (next_lower, peaks.get(index + 1)) {
            (Some(Bytes(0)), Some(next)) => {
                format!("The next is as high, {}: removing this one alone saves nothing.", at(next))
            }
            (Some(lower), Some(next)) => {
                let it = if index == 0 { "this peak" } else { "this peak, too," };
                format!("Removing {it} saves {lower}. The next is {}.", at(next))
            }
            _ if index == 0 => "There is no other separate peak.".to_owned(),
            _ => "There is no lower separate peak.".to_owned(),
        });
        found.push(SeparatePeak { peak, place, next_lower, text });
    }
    found
}

/// `at #16,402`.
fn at(peak: &Peak) -> String {
    match peak.slot.checked_sub(1) {
        Some(event) => format!("at {}", EventIndex(event)),
        None => "before the window".to_owned(),
    }
}

/// ` (backward, step 3)`; empty if nothing shows phases.
fn of(place: Place) -> String {
    match place_words(&place) {
        words if words.is_empty() => words,
        words => format!(" ({words})"),
    }
}

/// `backward, step 3`; empty if nothing shows phases.
pub fn place_words(place: &Place) -> String {
    let phase = place.phase.map(|phase| if phase == "other" { "other code" } else { phase });
    let layer = place.layer_text();
    match (phase, place.step_text()) {
        (Some(phase), Some(step)) => format!("{phase}{layer}, {step}"),
        (Some(phase), None) => format!("{phase}{layer}"),
        (None, _) => String::new(),
    }
}

/// An allocation or a free near a peak.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AroundRecord {
    /// The event's index, from 0.
    pub event: u32,
    /// `alloc` or `free`.
    pub action: &'static str,
    /// What `requested_bytes` changes by.
    pub bytes: i64,
    /// `requested_bytes` after it.
    pub requested_bytes: u64,
    /// The address: `0x...`.
    pub address: String,
    /// The category of the block.
    pub category: Category,
    /// The call site of the block, or why there is no call stack.
    pub site: String,
    /// The block.
    #[serde(skip)]
    pub block: u32,
}

/// The last allocations and frees up to a slot, and the first after it.
pub async fn around(target: Target<'_>, slot: u32, budget: &mut Budget) -> Vec<AroundRecord> {
    let (trace, entry) = (target.trace(), target.entry);
    let categories = entry.categories(target.index);
    // Slot 0 is the state before the window.
    let mut slots: Vec<u32> = Vec::new();
    let mut count = 0;
    for at in (1..=slot).rev() {
        budget.charge(1).await;
        let here = trace.changes_in(at..at + 1).len();
        if here > 0 {
            slots.push(at);
        }
        count += here;
        if count >= BEFORE {
            break;
        }
    }
    slots.reverse();
    count = 0;
    for at in slot + 1..trace.slots() {
        budget.charge(1).await;
        let here = trace.changes_in(at..at + 1).len();
        if here > 0 {
            slots.push(at);
        }
        count += here;
        if count >= AFTER {
            break;
        }
    }
    let mut records = Vec::with_capacity(BEFORE + AFTER);
    for at in slots {
        let changes = trace.changes_in(at..at + 1);
        let sign = |enters: bool| if enters { 1 } else { -1 };
        // Requested bytes after each change of the slot.
        let mut total = trace.requested.at(at - 1) as i64;
        for change in changes {
            let block = &trace.blocks[change.block() as usize];
            let bytes = sign(change.enters()) * block.bytes.0.cast_signed();
            total = total.saturating_add(bytes);
            records.push(AroundRecord {
                event: at - 1,
                action: if change.enters() { "alloc" } else { "free" },
                bytes,
                requested_bytes: total.max(0).cast_unsigned(),
                address: block.address.plain(),
                category: categories.get(change.block()).category,
                site: row_site(entry, block.stack, trace.no_stack(block)),
                block: change.block(),
            });
        }
    }
    records
}

/// Live blocks of one category and call site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LiveSite {
    /// The category.
    pub category: Category,
    /// The call site, or why there is no call stack.
    pub site: String,
    /// Requested bytes.
    pub bytes: u64,
    /// The number of blocks.
    pub blocks: u32,
    /// The blocks, the largest first.
    #[serde(skip)]
    pub members: Vec<u32>,
}

/// The blocks that are live in a slot, by category and call site, most bytes first. Requests of
/// zero bytes hold no memory and are left out.
pub async fn live_sites(target: Target<'_>, slot: u32, budget: &mut Budget) -> Vec<LiveSite> {
    let (trace, entry) = (target.trace(), target.entry);
    let categories = entry.categories(target.index);
    let mut known: FxHashMap<_, usize> = FxHashMap::default();
    let mut sites: Vec<LiveSite> = Vec::new();
    let mut stacks: Vec<(StackId, Option<NoStack>)> = Vec::new();
    // Blocks are sorted by the slot at which they enter.
    let entered = trace.blocks.partition_point(|block| block.enters <= slot);
    for part in strides(entered) {
        budget.charge(2 * part.len() as u64).await;
        for (i, block) in (part.start as u32..).zip(&trace.blocks[part]) {
            if slot >= block.leaves || block.bytes.0 == 0 {
                continue;
            }
            let (category, why) = (categories.get(i).category, trace.no_stack(block));
            let frame = entry.sites.get(block.stack).frame.filter(|_| why.is_none());
            let at = *known.entry((category, frame, why)).or_insert(sites.len());
            if at == sites.len() {
                let site = String::new();
                sites.push(LiveSite { category, site, bytes: 0, blocks: 0, members: Vec::new() });
                stacks.push((block.stack, why));
            }
            let site = &mut sites[at];
            site.bytes = site.bytes.saturating_add(block.bytes.0);
            site.blocks += 1;
            site.members.push(i);
        }
    }
    for (site, (stack, why)) in sites.iter_mut().zip(stacks) {
        budget.charge(2 * site.members.len() as u64).await;
        site.site = row_site(entry, stack, why);
        site.members.sort_by_key(|&i| (Reverse(trace.blocks[i as usize].bytes), i));
    }
    sites.sort_by_key(|site| (Reverse(site.bytes), site.category as usize, site.members[0]));
    sites
}
