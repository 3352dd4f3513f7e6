//! The table `phases`.

use super::Key;
use crate::table::Table;
use parquet::errors::Result;
use vramscope_report::Target;
use vramscope_report::phases::{PhaseRecord, phases};

pub(super) fn add(
    table: &mut Table,
    [file, rank, device]: Key<'_>,
    target: Target<'_>,
) -> Result<()> {
    let report = phases(target, None);
    let mut row = |step: Option<u32>, is_whole: bool, phase: &PhaseRecord| {
        let [parameter, gradient, optimizer, buffer, input, activation, rest @ ..] =
            phase.categories.0;
        let [temporary, workspace, communication, cache, unknown] = rest;
        table.push(&[
            file,
            rank,
            device,
            step.into(),
            is_whole.into(),
            phase.phase.into(),
            phase.begin.into(),
            phase.end.into(),
            phase.peak_bytes.into(),
            phase.peak_event.into(),
            phase.blocks.into(),
            phase.reserved_growth.into(),
            phase.site.as_deref().into(),
            parameter.into(),
            gradient.into(),
            optimizer.into(),
            buffer.into(),
            input.into(),
            activation.into(),
            temporary.into(),
            workspace.into(),
            communication.into(),
            cache.into(),
            unknown.into(),
        ])
    };
    for step in &report.steps {
        step.phases.iter().try_for_each(|phase| row(Some(step.step), step.whole, phase))?;
    }
    report.outside.iter().try_for_each(|phase| row(None, false, phase))
}
