//! `vramscope export`: the same data in the forms of other tools.

mod csv;
mod folded;
mod perfetto;
mod speedscope;

pub(crate) use csv::quoted;

use super::Target;
use super::flame::Weight;
use std::io::{self, Write};
use vramscope_analysis::Measure;

/// A form of another tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Folded stacks, one a line, outermost frame first: for `flamegraph.pl`, inferno and others.
    Folded(Weight),
    /// For <https://www.speedscope.app>.
    Speedscope(Weight),
    /// All blocks as a table.
    Csv,
    /// Chrome's trace format as the Perfetto UI reads it: bands as counters, annotated ranges as
    /// slices, OOMs as instants.
    Perfetto,
}

/// Write a device in another tool's form.
///
/// # Errors
/// When it cannot be written.
pub fn export(target: Target<'_>, form: Form, out: &mut dyn Write) -> io::Result<()> {
    match form {
        Form::Folded(weight) => folded::write(target, weight, out),
        Form::Speedscope(weight) => speedscope::write(target, weight, out),
        Form::Csv => csv::write(target, out),
        Form::Perfetto => perfetto::write(target, out),
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
