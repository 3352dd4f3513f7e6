//! The format of a command's answer.

use super::{Command, DiffFormat, Format};

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
            Self::Diff(a) => return a.format.into(),
            Self::Record(_)
            | Self::Serve(_)
            | Self::Schema { .. }
            | Self::Mcp(_)
            | Self::Skill
            | Self::Completions { .. }
            | Self::Help { .. } => return Format::Text,
        };
        common.format
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
