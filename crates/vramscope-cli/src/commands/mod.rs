//! One module per command. It selects the report and writes it as text.

pub(crate) mod blocks;
pub(crate) mod cards;
pub(crate) mod diagnose;
pub(crate) mod diff;
pub(crate) mod events;
pub(crate) mod explain;
pub(crate) mod export;
pub(crate) mod findings;
pub(crate) mod help;
pub(crate) mod in_python;
pub(crate) mod info;
pub(crate) mod peak;
pub(crate) mod ranks;
pub(crate) mod schema;
pub(crate) mod segments;
mod serving;
pub(crate) mod show;
pub(crate) mod skill;
pub(crate) mod source;
pub(crate) mod sql;
pub(crate) mod state;
pub(crate) mod steps;
pub(crate) mod summary;
pub(crate) mod what_if;

use crate::Failure;
use crate::arguments::{Arguments, Band, FlameWeight, When};
use clap::CommandFactory as _;
use std::io::{self, Write};
use vramscope_report::flame::Weight;
use vramscope_report::peak::BandKind;
use vramscope_report::state::At;
use vramscope_report::steps::peak_of_step;
use vramscope_report::summary::ooms;
use vramscope_report::{CategoryShare, Target, device_name, now};
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

/// The slot of a moment.
fn slot(target: Target<'_>, when: When) -> Result<u32, Failure> {
    let missing = |what: String| {
        Failure::Usage(format!("{}, {}: {what}", target.path, device_name(target.device())))
    };
    let at = match when {
        When::At(at) => at,
        When::Oom => match ooms(target.trace()).last() {
            Some(oom) => At::Event(oom.event.0.into()),
            None => return Err(missing("no allocation failed".to_owned())),
        },
        When::Step(step) => {
            let event = now(async |budget| peak_of_step(target, step, budget).await);
            At::Event(event.ok_or_else(|| missing(format!("there is no step {step}")))?)
        }
    };
    at.slot(target.trace()).map_err(Failure::Usage)
}

/// The weight of a block in flame graphs and folded stacks.
fn weight(target: Target<'_>, weight: FlameWeight, at: Option<When>) -> Result<Weight, Failure> {
    if at.is_some() && weight != FlameWeight::Bytes {
        return Err(Failure::Usage("--at is a moment: it needs --weight bytes".to_owned()));
    }
    Ok(match weight {
        FlameWeight::Bytes => Weight::Bytes(slot(target, at.unwrap_or(When::At(At::Peak)))?),
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
