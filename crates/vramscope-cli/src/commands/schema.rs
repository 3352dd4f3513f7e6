//! `vramscope schema`: the JSON Schema of a command's answer.

use super::diagnose::Report as Diagnosed;
use super::sql::Answer as Rows;
use super::what_if::RunReport;
use crate::Failure;
use crate::arguments::Answer;
use crate::no_memory::NoMemory;
use schemars::{JsonSchema, Schema, generate::SchemaSettings};
use std::io::{self, Write};
use vramscope_report::annotate::Annotated;
use vramscope_report::blocks::Blocks;
use vramscope_report::changes::StateChanges;
use vramscope_report::diff::Diff;
use vramscope_report::events::Events;
use vramscope_report::explain::Explained;
use vramscope_report::flame::Flame;
use vramscope_report::holders::HoldersReport;
use vramscope_report::info::Info;
use vramscope_report::meaning::Meaning;
use vramscope_report::modules::ModulesReport;
use vramscope_report::one_gpu::OneGpu;
use vramscope_report::peak::Peak;
use vramscope_report::ranks::Ranks;
use vramscope_report::segments::Segments;
use vramscope_report::shapes::ShapesReport;
use vramscope_report::show::Shown;
use vramscope_report::state::State;
use vramscope_report::steps::StepTable;
use vramscope_report::summary::Summary;
use vramscope_report::uses::UsesReport;
use vramscope_report::what_if::WhatIfReport;

/// Prints the JSON Schema of what a command prints with `--format json`.
///
/// # Errors
/// The output cannot be written.
pub(crate) fn run(command: Answer) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, &schema(command))?;
    Ok(writeln!(out)?)
}

/// The schema of a command's answer.
pub(crate) fn schema(command: Answer) -> Schema {
    match command {
        Answer::Summary => of::<Summary>(),
        // With --tree, --by shape, --by module, --by holder and --by use, other forms.
        Answer::Peak => of::<
            OneOf<
                OneOf<Peak<'static>, Flame<'static>>,
                OneOf<
                    OneOf<ShapesReport<'static>, ModulesReport<'static>>,
                    OneOf<HoldersReport<'static>, UsesReport<'static>>,
                >,
            >,
        >(),
        Answer::Steps => of::<StepTable<'static>>(),
        Answer::Source => of::<Annotated<'static>>(),
        // With --from and --to, what changed.
        Answer::State => of::<OneOf<State<'static>, StateChanges<'static>>>(),
        Answer::Blocks => of::<Blocks<'static>>(),
        Answer::Segments => of::<Segments<'static>>(),
        Answer::Events => of::<Events<'static>>(),
        Answer::Diagnose => of::<Diagnosed>(),
        // With --one-gpu, the processes on one clock.
        Answer::Ranks => of::<OneOf<Ranks, OneGpu>>(),
        // Of a name, what it means.
        Answer::Explain => of::<OneOf<Explained, Meaning>>(),
        // With several files, the answers for each.
        Answer::WhatIf => of::<OneOf<WhatIfReport, RunReport>>(),
        // With --from and --to, what changed between two moments.
        Answer::Diff => of::<OneOf<Diff, StateChanges<'static>>>(),
        Answer::Info => of::<Info>(),
        Answer::Show => of::<Shown<'static>>(),
        Answer::Sql => of::<Rows>(),
        Answer::None => of::<NoMemory>(),
    }
}

fn of<T: JsonSchema>() -> Schema {
    // What is written, not what could be read: fields that are always there are required.
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>()
}

/// One of two forms of an answer.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum OneOf<A, B> {
    A(A),
    B(B),
}
