//! The rows of a file: one function for each table.

mod blocks;
mod curve;
mod moments;
mod peak;
mod phases;
mod ranks;
mod segments;
mod stacks;

pub(crate) use ranks::{UNREADABLE, failed};
pub(crate) use stacks::Known;

use crate::part::{Source, Tables};
use crate::table::Value;
use parquet::errors::Result;
use stacks::Stacks;
use vramscope_report::{LoadedFile, Target, rank_of};

/// The values with which the rows of a device begin: file, rank and device.
type Key<'a> = [Value<'a>; 3];

/// Adds the rows of a file.
pub(crate) fn add(
    tables: &mut Tables,
    known: &mut Known,
    source: &Source,
    file: &LoadedFile,
) -> Result<()> {
    let rank = rank_of(&file.path).into();
    for entry in &file.entries {
        let name = match entry.name.as_str() {
            "" => source.file.clone(),
            name => format!("{}#{name}", source.file),
        };
        let mut stacks = Stacks::new(entry, known);
        for index in 0..entry.traces.len() {
            let target = Target { path: &entry.path, entry, index };
            let key: Key<'_> = [(&name).into(), rank, target.device().into()];
            blocks::add(&mut tables.blocks, key, target, &mut stacks)?;
            peak::add(&mut tables.peak, key, target, &mut stacks)?;
            curve::add(&mut tables.curve, key, target)?;
            segments::add(&mut tables.segments, key, target, &mut stacks)?;
            phases::add(&mut tables.phases, key, target)?;
            moments::ooms(&mut tables.ooms, key, target)?;
            moments::findings(&mut tables.findings, key, target, &mut stacks)?;
        }
        moments::annotations(&mut tables.annotations, [(&name).into(), rank], entry)?;
        ranks::add(&mut tables.ranks, [(&name).into(), rank], source, file, entry)?;
        stacks.finish(&mut tables.stacks, &mut tables.frames)?;
    }
    Ok(())
}
