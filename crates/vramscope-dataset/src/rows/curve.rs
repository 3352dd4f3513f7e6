//! The table `curve`.

use super::Key;
use crate::table::Table;
use parquet::errors::Result;
use vramscope_report::peak::BandKind;
use vramscope_report::{Target, event_of, time_of};

/// The largest number of parts of a window.
const BUCKETS: u32 = 2048;

pub(super) fn add(
    table: &mut Table,
    [file, rank, device]: Key<'_>,
    target: Target<'_>,
) -> Result<()> {
    let trace = target.trace();
    let slots = trace.slots();
    let buckets = BUCKETS.min(slots);
    let edge = |at: u32| (u64::from(slots) * u64::from(at) / u64::from(buckets)) as u32;
    let bands = BandKind::ALL.map(|band| band.series(target));
    let free = target.entry.largest_free(target.index);
    for bucket in 0..buckets {
        let part = edge(bucket)..edge(bucket + 1);
        let [requested, active, allocated, reserved] =
            bands.each_ref().map(|band| band.largest(part.clone()).map_or(0, |(_, most)| most));
        let most_free = free.iter().filter_map(|of| of.most_in(part.clone()));
        let largest_free = most_free.map(|(_, bytes)| bytes.0).max().unwrap_or(0);
        table.push(&[
            file,
            rank,
            device,
            bucket.into(),
            event_of(part.start).into(),
            event_of(part.end).into(),
            // The state before the window has no time: it holds until the first event.
            time_of(trace, part.start.max(1).min(slots - 1)).into(),
            requested.into(),
            active.into(),
            allocated.into(),
            reserved.into(),
            largest_free.into(),
        ])?;
    }
    Ok(())
}
