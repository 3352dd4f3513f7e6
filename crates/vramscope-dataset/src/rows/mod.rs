//! The tables: their columns, and the rows of a file.

mod blocks;
mod curve;
mod moments;
mod peak;
mod phases;
mod ranks;
mod segments;
mod stacks;

pub(crate) use blocks::Blocks;
pub(crate) use curve::Curve;
pub(crate) use moments::{Annotations, Findings, Ooms};
pub(crate) use peak::Peak;
pub(crate) use phases::Phases;
pub(crate) use ranks::{Ranks, UNREADABLE, failed};
pub(crate) use segments::Segments;
pub(crate) use stacks::{FrameRows, Known, StackRows};

use crate::columns::{Bound, Key};
use crate::part::{Source, Tables};
use parquet::errors::Result;
use stacks::Stacks;
use vramscope_report::columns::Rows;
use vramscope_report::{LoadedFile, Target, rank_of};

/// Adds the rows of a file.
pub(crate) fn add(
    tables: &mut Tables,
    known: &mut Known,
    source: &Source,
    file: &LoadedFile,
) -> Result<()> {
    let rank = rank_of(&file.path);
    for entry in &file.entries {
        let name = match entry.name.as_str() {
            "" => source.file.clone(),
            name => format!("{}#{name}", source.file),
        };
        let mut stacks = Stacks::new(entry, known);
        // Cards are those of an index: without what replays say. Findings are those of `diagnose`.
        let cards = ranks::cards(entry);
        (0..entry.traces.len()).for_each(|index| entry.simulate(index));
        let key = |device: i64| Key { file: &name, rank, device };
        for index in 0..entry.traces.len() {
            let target = Target { path: &entry.path, entry, index };
            let key = key(target.device().into());
            blocks::add(&mut tables.blocks, key, target, &mut stacks)?;
            peak::add(&mut tables.peak, key, target, &mut stacks)?;
            curve::add(&mut tables.curve, key, target)?;
            segments::add(&mut tables.segments, key, target, &mut stacks)?;
            phases::add(&mut tables.phases, key, target)?;
            moments::ooms(&mut tables.ooms, key, target)?;
            moments::findings(&mut tables.findings, key, target, &mut stacks)?;
        }
        moments::annotations(&mut tables.annotations, key, entry)?;
        ranks::add(&mut tables.ranks, (&name, rank), source, file, entry, cards)?;
        stacks.finish(&mut tables.stacks, &mut tables.frames)?;
    }
    Ok(())
}

/// A row with a call stack.
trait HasStack {
    /// The id of the stack; `None` if it has no frames.
    fn stack_id(&self) -> Option<&str>;
}

/// The column that names a row's call stack.
fn stack_id<T: Rows>() -> Bound<T>
where
    for<'a> T::Row<'a>: HasStack,
{
    let about = "Call stack, as in `stacks`; null if there is none";
    Bound::<T>::maybe_name("stack_id", about, |row| row.stack_id().map(Into::into))
}
