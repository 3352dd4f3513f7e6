//! The memory limit of a load: a file that is too large ends in a message before memory runs out.
//!
//! A browser tab has 4 GiB of addresses. While a file is read, [`MemoryLimit`] projects the memory
//! of its tables and of the data derived from them. Beyond the limit the reader drops its rows and
//! only counts. [`CurvePreview`] continues to the end, so that the page can offer an event range of
//! the whole trace.

use crate::load_preview::CurvePreview;
use crate::messages::{Failure, PartChoice, TooLarge};
use std::ops::Range;
use vramscope_report::{FileReader, Quantity};
use vramscope_snapshot::{Reader, RowCounts};
use vramscope_units::Bytes;

/// Bytes for each event of the data derived from the tables: blocks, their lives, and what views
/// need. `vramscope-bench memory` measures at most 42 with block sizes. The rest is a reserve. The
/// model of the allocator comes on top, because it is kept once a prediction was asked for.
const DERIVED_BYTES_PER_EVENT: u64 = 54 + MODEL_BYTES_PER_EVENT;
/// Bytes for each event of `WhatIf::heap_bytes`: a call of 12 bytes for each event, and a request
/// of 16 bytes for each block, which has three events on average.
const MODEL_BYTES_PER_EVENT: u64 = 20;
/// The total is extrapolated after this fraction of the events' bytes, or after
/// [`EXTRAPOLATE_AFTER_BYTES`].
const EXTRAPOLATE_AFTER_FRACTION: f64 = 0.1;
/// The total is extrapolated after this many unpacked bytes.
const EXTRAPOLATE_AFTER_BYTES: u64 = 64 << 20;
/// An event range of fewer events is not offered.
const MIN_OFFERED_EVENTS: u64 = 50;

/// The memory limit, and the state of the projection.
pub(crate) struct MemoryLimit {
    /// The limit, in bytes.
    limit: u64,
    /// Unpacked bytes read.
    unpacked: u64,
    /// The fraction of the file before its first event.
    before_events: Option<f64>,
    /// Bytes for each event, measured when the limit was exceeded.
    exceeded_at: Option<u64>,
}

impl MemoryLimit {
    /// A limit of `limit` bytes.
    pub(crate) fn new(limit: u64) -> Self {
        Self { limit, unpacked: 0, before_events: None, exceeded_at: None }
    }

    /// Whether the limit was exceeded, so that the reader only counts rows.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.exceeded_at.is_some()
    }

    /// Updates the projection after a chunk of `chunk` unpacked bytes, which ends at `fraction` of
    /// the file. `events` is the event range that is read.
    ///
    /// # Errors
    /// The limit is exceeded, and dropping rows cannot help.
    pub(crate) fn check(
        &mut self,
        events: Option<&Range<u32>>,
        piece: usize,
        file: &mut FileReader,
    ) -> Result<(), Failure> {
        self.unpacked += piece as u64;
        let (read, total) = (file.read(), file.total());
        let fraction = if total == 0 { 0.0 } else { read as f64 / total as f64 };
        let (used, rows) = (file.tables().memory() as u64, file.tables().rows());
        if self.exceeded_at.is_none() && self.projected(events, fraction, used, rows) > self.limit {
            let bytes_per_row = (rows.bytes as u64).checked_div(rows.held as u64).unwrap_or(0);
            self.exceeded_at = Some(bytes_per_row + DERIVED_BYTES_PER_EVENT);
            if !file.tables_mut().only_count() {
                return Err(self.failure(file.path(), events, used, false));
            }
        } else if self.exceeded_at.is_some() && used > self.limit {
            return Err(self.failure(file.path(), events, used, false));
        }
        Ok(())
    }

    /// A lower bound of the bytes that the whole file needs.
    fn projected(
        &mut self,
        events: Option<&Range<u32>>,
        fraction: f64,
        used: u64,
        rows: RowCounts,
    ) -> u64 {
        let held = rows.held as u64;
        // Memory that only reading needs is released before derived data is computed.
        let so_far = used.max(rows.bytes as u64 + DERIVED_BYTES_PER_EVENT * held);
        if held == 0 {
            return so_far;
        }
        let before = *self.before_events.get_or_insert(fraction);
        let read = (fraction - before) / (1.0 - before);
        // The bytes read say nothing about the rows of an event range.
        if events.is_some()
            || !read.is_finite()
            || read <= 0.0
            || (read < EXTRAPOLATE_AFTER_FRACTION && self.unpacked < EXTRAPOLATE_AFTER_BYTES)
        {
            return so_far;
        }
        let per_event = rows.bytes as u64 / held + DERIVED_BYTES_PER_EVENT;
        so_far.max((held as f64 / read * per_event as f64) as u64)
    }

    /// The message for a file that was read to its end; `None` if it is within the limit.
    pub(crate) fn too_large(
        &self,
        path: &str,
        events: Option<&Range<u32>>,
        reader: &Reader,
        preview: &CurvePreview,
    ) -> Option<TooLarge> {
        let per_event = self.exceeded_at?;
        let (base, total) = (reader.memory() as u64, reader.rows().longest_trace);
        let choice = self.choice(base, per_event, total, preview.longest());
        let read = events.map_or(total, |range| range.end.min(total).saturating_sub(range.start));
        let needs = base.max(per_event * u64::from(read));
        Some(TooLarge { failure: self.failure(path, events, needs, choice.is_some()), choice })
    }

    /// The event range to offer, around the highest column of the curve.
    fn choice(
        &self,
        base: u64,
        per_event: u64,
        events: u32,
        preview: &CurvePreview,
    ) -> Option<PartChoice> {
        // Reading an event range also keeps events around it, hence half.
        let fits = self.limit.checked_sub(base)? / per_event / 2;
        let fits = round_down(fits.min(u64::from(events)));
        if fits < MIN_OFFERED_EVENTS {
            return None;
        }
        let curve = preview.complete_picture()?;
        let edges = preview.edges(events);
        let (first, last) = centered_range(preview.highest_event(), fits as u32, events);
        let text = format!(
            "About {} can be opened at once.",
            Quantity::count(fits, "event", "events").exact
        );
        Some(PartChoice {
            curve,
            edges,
            events: Quantity::count(u64::from(events), "event", "events"),
            first,
            last,
            text,
        })
    }

    fn failure(
        &self,
        path: &str,
        events: Option<&Range<u32>>,
        needs: u64,
        has_choice: bool,
    ) -> Failure {
        // A lower bound can be below the limit. The message never says so.
        let needs = Bytes(needs.max(self.limit + self.limit / 100));
        let what = if events.is_some() { "This part of the snapshot" } else { "This snapshot" };
        let remedy = if has_choice { "Choose a part of it here, or use" } else { "Use" };
        let name = vramscope_report::text::file_name(path);
        let limit = Bytes(self.limit);
        Failure {
            id: None,
            message: format!(
                "{what} needs about {needs} of memory, but at most {limit} are available in a \
                 browser tab."
            ),
            hint: Some(format!(
                "{remedy} the command line, which has no such limit: vramscope summary {name}"
            )),
            file: None,
        }
    }
}

/// Rounds down to two digits.
fn round_down(n: u64) -> u64 {
    let unit = 10u64.pow(n.checked_ilog10().unwrap_or(0).saturating_sub(1));
    n / unit * unit
}

/// The first and last event of a range of `count` events around `center`, shifted to fit into
/// `events`.
fn centered_range(center: u32, count: u32, events: u32) -> (u32, u32) {
    let first = center.saturating_sub(count / 2).min(events.saturating_sub(count));
    (first, (first + count.max(1) - 1).min(events.saturating_sub(1)))
}

#[cfg(test)]
mod tests {
    use super::{MODEL_BYTES_PER_EVENT, centered_range, round_down};
    use crate::loader::Loader;
    use std::path::Path;

    #[test]
    fn the_model_takes_the_bytes_that_the_limit_counts() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test_data/recorded");
        for name in ["t26/gpt_small.pickle.gz", "t26/expandable_gpt.pickle.gz"] {
            let mut loader = Loader::new(name, 0);
            loader.feed(&std::fs::read(folder.join(name)).expect("a file")).expect("a snapshot");
            let file = loader.finish().expect("a snapshot");
            let entry = &file.entries[0];
            let bytes = entry.what_if(0).expect("a model").heap_bytes() as u64;
            let events = entry.traces[0].device.events.len() as u64;
            let per_event = bytes / events;
            assert!(
                events > 1000 && (12..MODEL_BYTES_PER_EVENT).contains(&per_event),
                "{name}: {per_event}"
            );
        }
    }

    #[test]
    fn centered_range_stays_within_the_trace() {
        assert_eq!(centered_range(500, 100, 1000), (450, 549));
        assert_eq!(centered_range(10, 100, 1000), (0, 99));
        assert_eq!(centered_range(990, 100, 1000), (900, 999));
        assert_eq!(centered_range(5, 10, 10), (0, 9));
        assert_eq!(centered_range(0, 0, 0), (0, 0));
    }

    #[test]
    fn round_down_keeps_two_digits() {
        let rounded = [0, 7, 99, 128, 1_299_999].map(round_down);
        assert_eq!(rounded, [0, 7, 99, 120, 1_200_000]);
    }
}
