//! The format of a command's answer, and what it reads.

use super::{Command, DiffFormat, Format, RowFormat};
use std::path::{Path, PathBuf};

impl Command {
    /// The format of the answer. Text, where the command has no choice.
    pub(crate) fn format(&self) -> Format {
        let common = match self {
            Self::Summary(a) | Self::Info(a) => &a.common,
            Self::Peak(a) => &a.input.common,
            Self::Steps(a) => &a.input.common,
            Self::Source(a) => &a.input.common,
            Self::State(a) => &a.input.common,
            Self::Blocks(a) => &a.input.common,
            Self::Segments(a) => &a.input.common,
            Self::Events(a) => &a.input.common,
            Self::Ranks(a) => &a.common,
            Self::WhatIf(a) => &a.common,
            Self::Show(a) => &a.input.common,
            Self::Export(a) => &a.input.common,
            Self::Diagnose(a) => return a.format.into(),
            Self::Sql(a) if a.format == RowFormat::Json => return Format::Json,
            Self::Diff(a) => return a.format.into(),
            Self::Explain(a) => return a.format.into(),
            Self::Record(_)
            | Self::DryRun(_)
            | Self::Fix(_)
            | Self::Serve(_)
            | Self::Sql(_)
            | Self::Schema { .. }
            | Self::Mcp(_)
            | Self::Skill
            | Self::Completions { .. }
            | Self::Help { .. } => return Format::Text,
        };
        common.format
    }

    /// The paths of snapshots, of a command that reads nothing else.
    pub(crate) fn snapshots(&self) -> Vec<&Path> {
        let (one, several): (Option<&PathBuf>, &[PathBuf]) = match self {
            Self::Summary(a) | Self::Info(a) => (None, &a.paths),
            Self::Peak(a) => (Some(&a.input.path), &[]),
            Self::Steps(a) => (Some(&a.input.path), &[]),
            Self::Source(a) => (Some(&a.input.path), &[]),
            Self::State(a) => (Some(&a.input.path), &[]),
            Self::Blocks(a) => (Some(&a.input.path), &[]),
            Self::Segments(a) => (Some(&a.input.path), &[]),
            Self::Events(a) => (Some(&a.input.path), &[]),
            // The id and the file may have either order.
            Self::Show(a) => return vec![&a.input.path, Path::new(&a.id)],
            Self::WhatIf(a) => (None, &a.paths),
            Self::Export(a) => (Some(&a.input.path), &a.more),
            Self::Diff(a) => (Some(&a.a), a.b.as_slice()),
            _ => (None, &[]),
        };
        one.into_iter().chain(several).map(PathBuf::as_path).collect()
    }
}

impl From<DiffFormat> for Format {
    fn from(format: DiffFormat) -> Self {
        match format {
            DiffFormat::Json => Self::Json,
            DiffFormat::Text | DiffFormat::Markdown => Self::Text,
        }
    }
}
