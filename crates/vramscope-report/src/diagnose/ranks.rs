//! The ranks of a run in groups of like ones.

use super::{Diagnosed, Headline, requested_peak};
use crate::findings::FindingEntry;
use crate::peak::BandKind;
use crate::text::ranges;
use serde::Serialize;
use std::collections::BTreeMap;
use vramscope_inference::{FindingId, Severity};
use vramscope_snapshot::HOST;

/// Ranks whose peaks differ by less are alike, in percent.
const ALIKE_PERCENT: u64 = 110;

/// Ranks that hold about as much, with the same kind of finding or none.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RankGroup {
    /// The ranks: `0-2,4-7`.
    pub ranks: String,
    /// The least and the highest peak of `requested_bytes`.
    pub peak_bytes: [u64; 2],
    /// The same of `reserved_bytes`.
    pub reserved_bytes: [u64; 2],
    /// The same of `requested_bytes` after the last whole step.
    pub kept_bytes: [u64; 2],
    /// The severity of the worst finding of these ranks; null without one above low.
    pub severity: Option<Severity>,
    /// The id of that finding; null without one.
    pub finding: Option<FindingId>,
}

/// The memory of one device of a rank.
pub(super) struct RankMemory {
    rank: u32,
    pub(super) path: String,
    device: u32,
    peak: u64,
    reserved: u64,
    kept: u64,
}

impl RankMemory {
    /// The memory of a device; `None` without a rank, and for host memory.
    pub(super) fn of(of: &Diagnosed) -> Option<Self> {
        let card = &of.card;
        Some(Self {
            rank: card.rank.filter(|_| card.device != HOST)?,
            path: card.path.clone(),
            device: card.device,
            peak: requested_peak(of),
            reserved: card.peak(BandKind::Reserved),
            kept: card.kept.0,
        })
    }
}

/// The groups, those with a finding first; empty unless there are several ranks. `headlines` are
/// those of all devices, `findings` what they are about.
pub(super) fn groups(
    devices: Vec<RankMemory>,
    headlines: &[&Headline],
    findings: &[(FindingEntry, Option<u32>)],
) -> Vec<RankGroup> {
    let headline = |of: &RankMemory| {
        headlines.iter().find(|one| (&one.path, one.device) == (&of.path, of.device)).copied()
    };
    // Of several devices or dumps of a rank, that with the worst finding speaks, else the peak.
    let weight = |of: &RankMemory| {
        let severity = headline(of).and_then(|one| one.severity);
        (severity.map(std::cmp::Reverse), of.peak)
    };
    let mut of_rank: BTreeMap<u32, RankMemory> = BTreeMap::new();
    for device in devices {
        if of_rank.get(&device.rank).is_none_or(|known| weight(known) < weight(&device)) {
            of_rank.insert(device.rank, device);
        }
    }
    if of_rank.len() < 2 {
        return Vec::new();
    }
    let cause = |id: &FindingId| {
        let mut records = findings.iter().map(|(entry, _)| &entry.record);
        records.find(|record| record.id == *id).map(|record| record.cause().to_string())
    };
    let mut all: Vec<RankMemory> = of_rank.into_values().collect();
    all.sort_by_key(|one| (one.peak, one.rank));
    let mut groups: Vec<(Option<String>, Vec<u32>, RankGroup)> = Vec::new();
    for one in all {
        let headline = headline(&one);
        let finding = headline.and_then(|headline| headline.finding.clone());
        let cause = finding.as_ref().and_then(cause);
        let is_alike = |(of, _, group): &&mut (Option<String>, Vec<u32>, RankGroup)| {
            *of == cause
                && one.peak.saturating_mul(100) <= group.peak_bytes[0].saturating_mul(ALIKE_PERCENT)
        };
        if let Some((_, ranks, group)) = groups.iter_mut().find(is_alike) {
            ranks.push(one.rank);
            widen(&mut group.peak_bytes, one.peak);
            widen(&mut group.reserved_bytes, one.reserved);
            widen(&mut group.kept_bytes, one.kept);
            continue;
        }
        let group = RankGroup {
            ranks: String::new(),
            peak_bytes: [one.peak; 2],
            reserved_bytes: [one.reserved; 2],
            kept_bytes: [one.kept; 2],
            severity: headline.and_then(|headline| headline.severity),
            finding,
        };
        groups.push((cause, vec![one.rank], group));
    }
    let named = groups.into_iter().map(|(_, mut ranks, group)| {
        ranks.sort_unstable();
        RankGroup { ranks: ranges(&ranks), ..group }
    });
    let mut groups: Vec<RankGroup> = named.collect();
    groups.sort_by_key(|group| {
        (group.severity.is_none(), group.severity, std::cmp::Reverse(group.peak_bytes[1]))
    });
    groups
}

fn widen(range: &mut [u64; 2], value: u64) {
    *range = [range[0].min(value), range[1].max(value)];
}
