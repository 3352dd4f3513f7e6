//! What could not be looked for, over all files.

use crate::card::Card;
use crate::target::Target;
use crate::text::rank_name;
use serde::Serialize;
use vramscope_inference::{BlindSpot, blind_spots};
use vramscope_trace::group_by_key;
use vramscope_trace::slicing::Budget;
use vramscope_units::grouped;

/// What could not be looked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct BlindSpotRecord {
    /// The stable name of the kind.
    pub kind: &'static str,
    /// What cannot be told, why, and how to record it; with the files, if it is not about all.
    pub text: String,
}

impl From<BlindSpot> for BlindSpotRecord {
    fn from(spot: BlindSpot) -> Self {
        Self { kind: spot.name(), text: spot.text() }
    }
}

/// The reason of a snapshot that the recorder writes when memory runs out (SIDECAR.md).
const OUT_OF_MEMORY: &str = "oom";

/// What could not be looked for on a device, as the snapshot and the file beside it show.
pub(crate) async fn of_device(target: Target<'_>, budget: &mut Budget) -> Vec<BlindSpot> {
    let entry = target.entry;
    let mut spots = blind_spots(entry.evidence(target.index), budget).await;
    let reason = entry.sidecar().and_then(|sidecar| sidecar.reason.as_deref());
    // Where PyTorch calls an observer, an event comes first.
    let has_event = entry.traces.iter().any(|trace| !trace.ooms.is_empty());
    let has_history = !target.trace().is_state_only() && target.trace().slots() > 1;
    if reason == Some(OUT_OF_MEMORY) && !has_event && has_history {
        spots.insert(0, BlindSpot::RefusedEarly);
    }
    spots
}

/// The blind spots of all files, each kind once. Where files differ in a number, the text has that
/// of the first.
pub(crate) fn merged(ranks: &[Card]) -> Vec<BlindSpotRecord> {
    let files = distinct(ranks.iter());
    let mut merged: Vec<(BlindSpot, Vec<&Card>)> = Vec::new();
    for (rank, &spot) in ranks.iter().flat_map(|r| r.blind_spots.iter().map(move |s| (r, s))) {
        match merged.iter_mut().find(|(known, _)| known.name() == spot.name()) {
            Some((_, of)) => of.push(rank),
            None => merged.push((spot, vec![rank])),
        }
    }
    merged.sort_by_key(|&(spot, _)| spot);
    let record = |(spot, of): (BlindSpot, Vec<&Card>)| {
        let text = spot.text();
        let of_files = distinct(of.iter().copied());
        let first = of.first().map(|rank| rank_name(rank.rank, &rank.path)).unwrap_or_default();
        let is_equal = of.iter().all(|rank| rank.blind_spots.contains(&spot));
        let text = match (of_files, is_equal) {
            (count, true) if count == files => text,
            (1, _) => format!("{first}: {text}"),
            (count, true) => {
                format!("{text} ({} of {} files)", grouped(count as u64), grouped(files as u64))
            }
            (count, false) => format!(
                "{text} ({first}; {} of {} files in all)",
                grouped(count as u64),
                grouped(files as u64)
            ),
        };
        BlindSpotRecord { kind: spot.name(), text }
    };
    merged.into_iter().map(record).collect()
}

/// The number of distinct files.
fn distinct<'a>(ranks: impl Iterator<Item = &'a Card>) -> usize {
    group_by_key(ranks.map(|rank| (rank.path.as_str(), ())).collect()).len()
}
