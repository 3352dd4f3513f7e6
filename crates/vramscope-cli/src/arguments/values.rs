//! Values of options: names to choose from, and parsers of events, addresses and factors.

use clap::ValueEnum;
use std::ops::Range;
use vramscope_report::state::At;

/// A command that prints JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Answer {
    Diagnose,
    Peak,
    Steps,
    Explain,
    WhatIf,
    Source,
    Ranks,
    Diff,
    Info,
    Show,
    Summary,
    State,
    Blocks,
    Segments,
    Events,
    Sql,
    /// What a command about one device prints about a snapshot without memory
    None,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Text,
    Json,
}

/// Parses `A..B`, `A..` or `..B`.
pub(super) fn event_range(text: &str) -> Result<Range<u32>, String> {
    let (from, to) = text.split_once("..").ok_or("expected A..B, such as 1000..2000")?;
    let number = |text: &str, default: u32| match text {
        "" => Ok(default),
        text => text.parse().map_err(|e| format!("{text}: {e}")),
    };
    let (from, to) = (number(from, 0)?, number(to, u32::MAX)?);
    if from > to { Err(format!("{from} is greater than {to}")) } else { Ok(from..to) }
}

/// Parses a device's ordinal, or `host`.
pub(super) fn device(text: &str) -> Result<u32, String> {
    match text {
        "host" => Ok(vramscope_report::HOST),
        text => text.parse().map_err(|_| "expected an ordinal such as 0, or host".to_owned()),
    }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Band {
    #[value(name = "requested_bytes", alias = "requested")]
    Requested,
    #[value(name = "active_bytes", alias = "active")]
    Active,
    #[value(name = "allocated_bytes", alias = "allocated")]
    Allocated,
    #[value(name = "reserved_bytes", alias = "reserved")]
    Reserved,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PeakRows {
    /// Call stacks, named by the innermost frame in your own code
    Stack,
    /// Call sites and categories
    Site,
    /// Your own lines at any level of the stacks, with all that they call
    Line,
    /// Modules, as names or call stacks tell
    Module,
    /// Shapes of tensors, as recorded or as far as sizes tell
    Shape,
    /// Variables and objects that hold it at the end, and what dropping them frees
    Holder,
    /// What becomes of it in the step that `record --use-step` has traced
    Use,
    Category,
    Stream,
    /// Memory pools and kinds of segments
    Pool,
}

/// A moment of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    At(At),
    /// The last failed allocation.
    Oom,
    /// The highest moment of this step.
    Step(u32),
}

/// Output formats of `diff` and `diagnose`.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DiffFormat {
    Text,
    Json,
    /// For a pull request comment
    Markdown,
}

/// Parses `start`, `peak`, `end`, `oom`, a step, an event as texts name it, or a time.
pub(super) fn moment(text: &str) -> Result<When, String> {
    let expected = || {
        "expected start, peak, end, oom, step:3, an event such as #1200, or a time in microseconds"
            .to_owned()
    };
    let step = text.strip_prefix("step").map(|step| step.trim_start_matches([':', ' ']));
    if let Some(step) = step {
        return step.replace(',', "").parse().map(When::Step).map_err(|_| expected());
    }
    Ok(When::At(match text {
        "start" => At::Start,
        "peak" => At::Peak,
        "end" => At::End,
        "oom" => return Ok(When::Oom),
        text => {
            let (digits, is_event) = match text.strip_prefix('#') {
                Some(digits) => (digits, true),
                None => (text, false),
            };
            let number = digits.replace(',', "").parse().map_err(|_| expected())?;
            // A trace has fewer events, and 2^32 microseconds are the first hours of 1970.
            let is_time = !is_event && number > i64::from(u32::MAX);
            if is_time { At::Time(number) } else { At::Event(number) }
        }
    }))
}

/// Parses `0x7f..`, or a decimal number.
pub(super) fn address(text: &str) -> Result<u64, String> {
    let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let number = hexadecimal.map_or_else(|| text.parse(), |digits| u64::from_str_radix(digits, 16));
    number.map_err(|_| "expected an address such as 0x7f3a5c000000".to_owned())
}

/// Parses one event or `A..B`.
pub(super) fn event_or_range(text: &str) -> Result<Range<u32>, String> {
    match text.parse::<u32>() {
        Ok(event) => Ok(event..event.saturating_add(1)),
        Err(_) => event_range(text),
    }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FlameWeight {
    /// Requested bytes of live blocks at --at, the peak by default
    Bytes,
    /// Requested bytes times lifetime within the window
    ByteSeconds,
    /// Number of allocations
    Count,
    /// Requested bytes of all allocations, including freed ones
    Churn,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SortBy {
    Size,
    Lifetime,
    ByteSeconds,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportAs {
    /// Folded stacks, one per line, for flamegraph.pl and inferno
    Folded,
    /// For speedscope.app
    Speedscope,
    /// Table of all blocks
    Csv,
    /// For ui.perfetto.dev: bands as counters, annotations as slices, OOMs as instants
    Perfetto,
    /// Events A to B of `--window` as a snapshot of its own, with the memory as it is after them
    Pickle,
    /// One HTML file to pass on: verdict, findings, curve, and the viewer with the snapshots
    Html,
    /// Folder of Parquet tables of all files and ranks (docs/fleets.md)
    Parquet,
    /// One small file with a card of every rank, for the page, `diagnose` and `ranks`
    Index,
}

/// What an HTML report holds beside its text.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportData {
    /// The viewer and the snapshots
    Full,
    /// The text alone, with curves and findings
    Reduced,
}
