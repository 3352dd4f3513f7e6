//! The table `curve`.

use crate::columns::{Bound, Key, Keyed, TableRows, key};
use crate::table::Table;
use parquet::errors::Result;
use vramscope_report::columns::Rows;
use vramscope_report::peak::BandKind;
use vramscope_report::{Target, event_of, time_of};
use vramscope_trace::columns_of;
use vramscope_trace::slicing::now;
use vramscope_units::{Bytes, Micros, PeakEvent};

/// The largest number of parts of a window.
const BUCKETS: u32 = 2048;

/// `curve`.
pub(crate) struct Curve;

pub(crate) struct CurveRow {
    bucket: u32,
    begin: PeakEvent,
    end: PeakEvent,
    time: Option<Micros>,
    /// The largest of each band, in the order of [`BandKind::ALL`].
    bands: [u64; 4],
    largest_free: Bytes,
}

impl Rows for Curve {
    type Row<'a> = Keyed<'a, CurveRow>;
}

impl TableRows for Curve {
    const NAME: &'static str = "curve";
    const ROW: &'static str = "one of at most 2,048 equal parts of a device's window; the \
        bytes are the largest in it";

    fn columns() -> Vec<Bound<Self>> {
        type Of = Bound<Curve>;
        let mut columns = key();
        columns.extend([
            Of::new("bucket", "Number of the part, from 0", |row| row.bucket).delta(),
            Of::new("begin_event", "First event", |row| row.begin),
            Of::new("end_event", "Event after the last", |row| row.end),
            Of::new("begin_us", "Time of the first event", |row| row.time),
        ]);
        columns.extend((0..).zip(BandKind::ALL).map(|(at, band)| {
            let description = match band {
                BandKind::Requested => "Largest `requested_bytes`",
                BandKind::Active => "Largest `active_bytes`",
                BandKind::Allocated => "Largest `allocated_bytes`",
                BandKind::Reserved => "Largest `reserved_bytes`",
            };
            let column = Of::new(band.name(), description, move |row| Bytes(row.bands[at]));
            if band == BandKind::Reserved { column.delta() } else { column.split() }
        }));
        let free = Of::new("largest_free_bytes", "Largest free piece of any segment", |row| {
            row.largest_free
        });
        columns.push(free.delta());
        columns
    }
}

pub(super) fn add(table: &mut Table<Curve>, key: Key<'_>, target: Target<'_>) -> Result<()> {
    let trace = target.trace();
    let slots = trace.slots();
    let buckets = BUCKETS.min(slots);
    let parts = columns_of(0..slots.into(), buckets);
    let bands = BandKind::ALL.map(|band| now(async |budget| band.series(target, budget).await));
    let free = target.entry.largest_free(target.index);
    for (bucket, part) in (0..).zip(parts) {
        let part = part.start as u32..part.end as u32;
        let most_free = free.iter().filter_map(|of| of.most_in(part.clone()));
        table.push(&key.row(CurveRow {
            bucket,
            begin: PeakEvent(event_of(part.start)),
            end: PeakEvent(event_of(part.end)),
            // The state before the window has no time: it holds until the first event.
            time: time_of(trace, part.start.max(1).min(slots - 1)).map(Micros),
            bands:
                bands.each_ref().map(|band| band.largest(part.clone()).map_or(0, |(_, most)| most)),
            largest_free: most_free.map(|(_, bytes)| bytes).max().unwrap_or_default(),
        }))?;
    }
    Ok(())
}
