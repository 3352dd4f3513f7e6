//! `vramscope schema`: the JSON Schema of a command's answer.

use super::what_if::RunReport;
use crate::Failure;
use crate::arguments::Answer;
use crate::no_memory::NoMemory;
use schemars::{JsonSchema, Schema, generate::SchemaSettings};
use std::io::{self, Write};
use vramscope_report::annotate::Annotated;
use vramscope_report::blocks::Blocks;
use vramscope_report::changes::StateChanges;
use vramscope_report::diagnose::Diagnosis;
use vramscope_report::diff::Diff;
use vramscope_report::events::Events;
use vramscope_report::explain::Explained;
use vramscope_report::flame::Flame;
use vramscope_report::info::Info;
use vramscope_report::matrix::MatrixReport;
use vramscope_report::modules::ModulesReport;
use vramscope_report::peak::Peak;
use vramscope_report::phases::Phases;
use vramscope_report::segments::Segments;
use vramscope_report::series::SeriesReport;
use vramscope_report::shapes::ShapesReport;
use vramscope_report::show::Shown;
use vramscope_report::state::State;
use vramscope_report::steps::StepsReport;
use vramscope_report::summary::Summary;
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
        Answer::Peak => of::<Peak<'static>>(),
        Answer::Phases => of::<Phases<'static>>(),
        Answer::Steps => of::<StepsReport<'static>>(),
        Answer::Shapes => of::<ShapesReport<'static>>(),
        Answer::Modules => of::<ModulesReport<'static>>(),
        Answer::Annotate => of::<Annotated<'static>>(),
        // With --from and --to, what changed.
        Answer::State => of::<OneOf<State<'static>, StateChanges<'static>>>(),
        Answer::Flame => of::<Flame<'static>>(),
        Answer::Blocks => of::<Blocks<'static>>(),
        Answer::Segments => of::<Segments<'static>>(),
        Answer::Events => of::<Events<'static>>(),
        Answer::Diagnose => of::<Diagnosis>(),
        Answer::Explain => of::<Explained>(),
        Answer::Matrix => of::<MatrixReport>(),
        Answer::Series => of::<SeriesReport>(),
        // With several files, the answers for each.
        Answer::WhatIf => of::<OneOf<WhatIfReport, RunReport>>(),
        Answer::Diff => of::<Diff>(),
        Answer::Info => of::<Info>(),
        Answer::Show => of::<Shown<'static>>(),
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
