//! Allocator settings that cost memory or time in this run. Only measured counts and bytes make a
//! finding, never a setting alone.
//!
//! Keys are those of `allocator_settings`, which snapshots contain since PyTorch 2.3.

use super::fragmentation::slot_in_use;
use super::retry::{MIN_BYTES, ReturnedByCause};
use super::{Context, Facts, Finding, FixedSegments, SettingCost};
use crate::blocks::Block;
use crate::slicing::{Budget, strides};
use rustc_hash::FxHashMap;
use vramscope_snapshot::Action;
use vramscope_units::Bytes;

/// The fewest bytes added by rounding to report.
const MIN_ROUNDING_BYTES: u64 = 128 << 20;

/// The smallest share of requested bytes added by rounding to report.
const MIN_ROUNDING_PERCENT: u64 = 8;

/// The fewest segments above `max_split_size` to report.
const MIN_UNSPLIT_SEGMENTS: usize = 8;

/// `kMinBlockSize` of the allocator. Block sizes are multiples of it.
const MIN_BLOCK_BYTES: u64 = 512;

pub(super) async fn settings(
    cx: &Context<'_>,
    returned: &ReturnedByCause,
    budget: &mut Budget,
) -> Vec<Finding> {
    let collects = garbage_collection(cx, returned);
    let fixed = if collects.is_some() { None } else { fixed_segments(cx, returned, budget).await };
    [collects, fixed, max_split_size(cx, budget).await, roundup(cx, budget).await]
        .into_iter()
        .flatten()
        .collect()
}

fn finding(cx: &Context, cost: SettingCost, bytes: u64, events: Vec<u32>) -> Finding {
    cx.finding(cost.key(), bytes, events, None, Facts::Settings(cost))
}

/// `garbage_collection_threshold` returned segments that were needed again.
fn garbage_collection(cx: &Context, returned: &ReturnedByCause) -> Option<Finding> {
    let threshold = cx.setting("garbage_collection_threshold")?;
    let returned = &returned.to_make_room;
    if threshold.parse::<f64>().ok()? <= 0.0 || !returned.is_reportable() {
        return None;
    }
    let cost = SettingCost::GarbageCollectionThreshold {
        threshold: threshold.to_owned(),
        segments: returned.events.len(),
        reserved_again: Bytes(returned.again_bytes),
    };
    Some(finding(cx, cost, returned.again_bytes, returned.events.clone()))
}

/// `expandable_segments` is off, and free memory in segments of fixed size could not be used.
async fn fixed_segments(
    cx: &Context<'_>,
    returned: &ReturnedByCause,
    budget: &mut Budget,
) -> Option<Finding> {
    if cx.setting("expandable_segments")? != "false" {
        return None;
    }
    if let Some((event, unused)) = failed_beside_free(cx, budget).await {
        let cost = FixedSegments::FailedBesideFree { unused: Bytes(unused) };
        return Some(finding(cx, SettingCost::ExpandableSegments(cost), unused, vec![event]));
    }
    let returned = &returned.to_make_room;
    returned.is_reportable().then(|| {
        let cost = FixedSegments::Returned {
            segments: returned.events.len(),
            reserved_again: Bytes(returned.again_bytes),
        };
        let cost = SettingCost::ExpandableSegments(cost);
        finding(cx, cost, returned.again_bytes, returned.events.clone())
    })
}

/// The OOM with the most reserved memory that was not in use: its event and these bytes. Only OOMs
/// that requested no more than that count.
async fn failed_beside_free(cx: &Context<'_>, budget: &mut Budget) -> Option<(u32, u64)> {
    let (mut event, mut reserved) = (0, cx.trace.reserved_band.start);
    let mut found = Vec::new();
    for oom in &cx.trace.ooms {
        let after = oom.event.0 + 1;
        reserved += cx.reserved_in(event..after, budget).await;
        event = after;
        let unused = u64::try_from(reserved - cx.trace.requested.at(after) as i64);
        found.extend(
            unused
                .ok()
                .filter(|&unused| unused >= oom.requested.0.max(MIN_BYTES))
                .map(|u| (oom.event.0, u)),
        );
    }
    found.into_iter().max_by_key(|&(event, unused)| (unused, std::cmp::Reverse(event)))
}

/// Segments above `max_split_size` are never split. Each serves one allocation at a time, of nearly
/// its own size.
async fn max_split_size(cx: &Context<'_>, budget: &mut Budget) -> Option<Finding> {
    let text = cx.setting("max_split_size")?;
    // No limit is -1. Later releases write one of the largest 64-bit numbers instead.
    let limit = text.parse::<u64>().ok().filter(|&limit| limit < 1 << 62)?;
    let events = &cx.snapshot.events;
    let mut uses: FxHashMap<u64, u32> = FxHashMap::default();
    for part in strides(cx.trace.blocks.len()) {
        budget.charge(4 * part.len() as u64).await;
        for block in &cx.trace.blocks[part] {
            *uses.entry(block.address.0).or_default() += 1;
        }
    }
    let mut large: Vec<(u32, u32)> = Vec::new();
    for part in strides(cx.trace.device.events.len()) {
        budget.charge(part.len() as u64).await;
        let rows = part.map(|event| (event as u32, cx.trace.device.events.start + event as u32));
        let is_large =
            |row| events.action(row) == Action::SEGMENT_ALLOC && events.size(row).0 > limit;
        large.extend(rows.filter(|&(_, row)| is_large(row)));
    }
    let bytes = large.iter().map(|&(_, row)| events.size(row).0).sum::<u64>();
    let used: u32 =
        large.iter().map(|&(_, row)| uses.get(&events.addr(row).0).copied().unwrap_or(0)).sum();
    let peak = u64::try_from(cx.trace.reserved_band.peak).ok()?;
    let rarely_reused = large.len() >= MIN_UNSPLIT_SEGMENTS
        && used as usize <= large.len() * 2
        && bytes >= peak / 4;
    let slot = slot_in_use(cx, cx.trace.reserved_band.peak_event?);
    let unused = peak.saturating_sub(cx.trace.requested.at(slot));
    (rarely_reused && unused * 5 >= peak).then(|| {
        let cost = SettingCost::MaxSplitSize {
            limit: Bytes(limit),
            segments: large.len(),
            allocations: used,
            unused: Bytes(unused),
            reserved_peak: Bytes(peak),
        };
        finding(cx, cost, unused, large.iter().map(|l| l.0).collect())
    })
}

/// Bytes that `roundup_power2_divisions` adds at the peak of `requested_bytes`.
async fn roundup(cx: &Context<'_>, budget: &mut Budget) -> Option<Finding> {
    let divisions: Vec<u64> = (0..16u32)
        .map(|i| {
            cx.setting(&format!("roundup_power2_divisions.{}", 1u64 << i))
                .and_then(|v| v.parse().ok())
                .unwrap_or(0)
        })
        .collect();
    if divisions.iter().all(|&d| d <= 1) {
        return None;
    }
    let slot = cx.trace.requested_band.peak_event.map_or(0, |event| event + 1);
    let live = |b: &&Block| b.enters <= slot && slot < b.leaves;
    let mut wasted = 0;
    for part in strides(cx.trace.blocks.len()) {
        budget.charge(part.len() as u64).await;
        wasted += cx.trace.blocks[part]
            .iter()
            .filter(live)
            .map(|b| waste(b.bytes.0, &divisions))
            .sum::<u64>();
    }
    let requested = cx.trace.requested.at(slot);
    (wasted >= MIN_ROUNDING_BYTES && wasted * 100 >= requested * MIN_ROUNDING_PERCENT).then(|| {
        let cost = SettingCost::RoundupPower2Divisions {
            added: Bytes(wasted),
            requested: Bytes(requested),
        };
        let events = cx.trace.requested_band.peak_event.into_iter().collect();
        finding(cx, cost, wasted, events)
    })
}

/// Bytes that rounding to divisions of a power of two adds, compared with rounding to
/// [`MIN_BLOCK_BYTES`] (`DeviceCachingAllocator::round_size` and `roundup_power2_next_division`).
fn waste(size: u64, divisions: &[u64]) -> u64 {
    let Some(log) = size.checked_ilog2() else { return 0 };
    let interval = (log as usize).saturating_sub(20).min(divisions.len() - 1);
    let steps = divisions[interval];
    // Larger sizes do not exist, and would overflow.
    if steps <= 1 || size <= MIN_BLOCK_BYTES * steps || size > 1 << 62 {
        return 0;
    }
    let step = ((1 << log) / steps).max(1);
    size.next_multiple_of(step).saturating_sub(size.next_multiple_of(MIN_BLOCK_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waste_of_rounding_to_quarter_powers_of_two() {
        let quarters = [4; 16];
        assert_eq!(waste(1 << 20, &quarters), 0);
        assert_eq!(waste((1 << 20) + 512, &quarters), (1 << 18) - 512);
        assert_eq!(waste(600, &quarters), 0, "too small for four steps of 512 bytes");
        assert_eq!(waste(0, &quarters), 0);
    }
}
