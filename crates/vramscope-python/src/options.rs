//! Arguments that cross from Python as JSON.

use crate::failure::wrong;
use pyo3::prelude::*;
use serde::Deserialize;
use vramscope_cli::input::ReadOptions;
use vramscope_report::Category;
use vramscope_report::peak::BandKind;
use vramscope_report::what_if::{Options, parse_memory};

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

/// The arguments of `what_if`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WhatIf {
    set: Vec<String>,
    change: Vec<String>,
    device_memory: Option<String>,
    pytorch_memory: Option<String>,
    tokens: Option<f64>,
    without: Vec<String>,
    scale: Vec<(String, f64)>,
    fit: Option<String>,
}

/// The options of a prediction, and whether the most tokens that fit are asked for.
pub(crate) fn what_if(json: &str) -> PyResult<(Options, bool)> {
    let given: WhatIf = serde_json::from_str(json).map_err(|e| wrong(e.to_string()))?;
    let size = |text: Option<&String>| text.map(|text| parse_memory(text)).transpose();
    let category = |(name, factor): (String, f64)| {
        let category = Category::parse(&name);
        category.map(|c| (c, factor)).ok_or_else(|| wrong(format!("{name:?} is no category")))
    };
    let options = Options {
        device_memory: size(given.fit.as_ref().or(given.device_memory.as_ref())).map_err(wrong)?,
        pytorch_memory: size(given.pytorch_memory.as_ref()).map_err(wrong)?,
        set: given.set,
        change: given.change,
        tokens: given.tokens,
        without: given.without,
        scale: given.scale.into_iter().map(category).collect::<PyResult<_>>()?,
        other_rank: None,
        growth: None,
    };
    Ok((options, given.fit.is_some()))
}
