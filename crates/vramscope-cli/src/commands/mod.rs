//! One module per command. It selects the report and writes it as text.

pub(crate) mod annotate;
pub(crate) mod blocks;
pub(crate) mod diagnose;
pub(crate) mod diff;
pub(crate) mod events;
pub(crate) mod explain;
pub(crate) mod export;
mod findings;
pub(crate) mod flame;
pub(crate) mod index;
pub(crate) mod info;
pub(crate) mod matrix;
pub(crate) mod modules;
pub(crate) mod peak;
pub(crate) mod phases;
pub(crate) mod schema;
pub(crate) mod segments;
pub(crate) mod series;
pub(crate) mod shapes;
pub(crate) mod show;
pub(crate) mod state;
pub(crate) mod steps;
pub(crate) mod summary;
pub(crate) mod what_if;

use crate::Failure;
use crate::arguments::{Arguments, Band, FlameWeight, Moment};
use clap::CommandFactory as _;
use std::io::{self, Write};
use vramscope_report::flame::Weight;
use vramscope_report::peak::BandKind;
use vramscope_report::state::At;
use vramscope_report::{CategoryShare, Target};
use vramscope_units::grouped;

/// Prints a shell's completion script.
///
/// # Errors
/// The output cannot be written.
pub(crate) fn completions(shell: clap_complete::Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "vramscope", &mut script);
    Ok(io::stdout().write_all(&script)?)
}

/// The slot of the selected state, or of `default` where no option selects one.
fn slot(target: Target<'_>, moment: &Moment, default: At) -> Result<u32, Failure> {
    let at = match (moment.event, moment.time, moment.at) {
        (Some(event), ..) => At::Event(event),
        (_, Some(time), _) => At::Time(time),
        (_, _, Some(at)) => at,
        (None, None, None) => default,
    };
    at.slot(target.trace()).map_err(Failure::Usage)
}

/// The weight of a block in flame graphs and folded stacks.
fn weight(target: Target<'_>, weight: FlameWeight, moment: &Moment) -> Result<Weight, Failure> {
    Ok(match weight {
        FlameWeight::Peak => Weight::Bytes(slot(target, moment, At::Peak)?),
        FlameWeight::Cursor => Weight::Bytes(slot(target, moment, At::End)?),
        FlameWeight::ByteSeconds => Weight::ByteSeconds,
        FlameWeight::Count => Weight::Count,
        FlameWeight::Churn => Weight::Churn,
    })
}

fn band(band: Band) -> BandKind {
    match band {
        Band::Requested => BandKind::Requested,
        Band::Active => BandKind::Active,
        Band::Allocated => BandKind::Allocated,
        Band::Reserved => BandKind::Reserved,
    }
}

/// Writes the table of categories.
fn write_categories(out: &mut dyn Write, shares: &[CategoryShare]) -> io::Result<()> {
    let total: u64 = shares.iter().map(|s| s.bytes.0).sum();
    let mut table = crate::output::Table::new(
        &["category", "bytes", "share", "blocks"],
        &[false, true, true, true],
    );
    for share in shares {
        table.row(vec![
            share.category.name().to_owned(),
            share.bytes.to_string(),
            crate::output::percent(share.bytes.0.into(), total.into()),
            grouped(share.blocks.into()),
        ]);
    }
    table.write(out)
}
