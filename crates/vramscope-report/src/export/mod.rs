//! Exports: tables as CSV or JSON, and the formats of other tools.
//!
//! The command line and the page call the same writers, which work in slices. The command line
//! passes an unlimited budget.

mod folded;
mod perfetto;
mod profile;
mod speedscope;
mod table;

pub use perfetto::TracePlace;
pub use profile::{MergeError, Profile, merge_profile};
pub use table::{Object, block_csv, csv, finding_columns, json_list};

use crate::flame::Weight;
use crate::target::Target;
use std::io::{self, Write};
use vramscope_trace::Measure;
use vramscope_trace::slicing::{Budget, now};

/// A format of another tool, or the table of all blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// Folded stacks, one per line, outermost frame first: for `flamegraph.pl`, inferno and others.
    Folded(Weight),
    /// For <https://www.speedscope.app>.
    Speedscope(Weight),
    /// All blocks as CSV.
    Csv,
    /// Chrome's trace format for the Perfetto UI: bands as counters, annotated ranges as slices,
    /// OOMs as instants.
    Perfetto,
}

/// Writes the events of a device into the list of another trace's events.
///
/// # Errors
/// The output cannot be written.
pub fn trace_events(
    target: Target<'_>,
    place: TracePlace,
    out: &mut (dyn Write + Send),
) -> io::Result<()> {
    now(async |budget| perfetto::events(target, place, out, budget).await)
}

/// Exports a device in the given format.
///
/// # Errors
/// The output cannot be written.
pub async fn export(
    target: Target<'_>,
    format: ExportFormat,
    out: &mut (dyn Write + Send),
    budget: &mut Budget,
) -> io::Result<()> {
    match format {
        ExportFormat::Folded(weight) => folded::write(target, weight, out, budget).await,
        ExportFormat::Speedscope(weight) => speedscope::write(target, weight, out, budget).await,
        ExportFormat::Csv => {
            let blocks = 0..target.trace().blocks.len() as u32;
            block_csv(target, blocks, out, budget).await
        }
        ExportFormat::Perfetto => perfetto::write(target, out, budget).await,
    }
}

fn measure(weight: Weight) -> Measure {
    match weight {
        Weight::Bytes(slot) => Measure::Requested(slot),
        Weight::ByteSeconds => Measure::ByteTime,
        Weight::Count => Measure::Count,
        Weight::Churn => Measure::Churn,
    }
}
