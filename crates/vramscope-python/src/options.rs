//! Arguments that cross from Python as texts.

use crate::failure::wrong;
use pyo3::prelude::*;
use vramscope_cli::input::ReadOptions;
use vramscope_report::peak::BandKind;
use vramscope_report::what_if::parse_memory;

/// What is read of files.
pub(crate) fn reading(
    events: Option<(u32, u32)>,
    max_memory: Option<&str>,
) -> PyResult<ReadOptions> {
    Ok(ReadOptions {
        events: events.map(|(from, to)| from..to),
        max_memory: max_memory.map(parse_memory).transpose().map_err(wrong)?,
    })
}

/// A band by its name, or by its name without `_bytes`.
pub(crate) fn band(name: &str) -> PyResult<BandKind> {
    let is_named =
        |kind: &&BandKind| kind.name() == name || kind.name().strip_suffix("_bytes") == Some(name);
    BandKind::ALL.iter().find(is_named).copied().ok_or_else(|| {
        let names = BandKind::ALL.map(BandKind::name).join(", ");
        wrong(format!("{name:?} is no band: expected one of {names}"))
    })
}
