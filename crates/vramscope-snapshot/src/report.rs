//! What was odd about a file, and what made it unreadable.

use vramscope_pickle::PickleError;

/// Something that the reader should know; the numbers stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// A stable name, for programs.
    pub code: &'static str,
    /// In words, with the place of the first.
    pub message: String,
    /// Where in the pickle it was met first, when it has a place there.
    pub byte_offset: Option<u64>,
    /// How often.
    pub count: u32,
}

/// Gathers warnings: one a code, with the first message and a count.
#[derive(Clone, Debug, Default)]
pub struct Report {
    warnings: Vec<Warning>,
}

impl Report {
    /// Something odd. The message of the first of its code is kept.
    pub fn warn(
        &mut self,
        code: &'static str,
        byte_offset: Option<u64>,
        message: impl FnOnce() -> String,
    ) {
        self.warn_many(code, byte_offset, 1, message);
    }

    /// The same, met `count` times.
    pub fn warn_many(
        &mut self,
        code: &'static str,
        byte_offset: Option<u64>,
        count: u32,
        message: impl FnOnce() -> String,
    ) {
        match self.warnings.iter_mut().find(|w| w.code == code) {
            Some(warning) => warning.count += count,
            None => self.warnings.push(Warning { code, message: message(), byte_offset, count }),
        }
    }

    /// All of them, in the order in which they were first met.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }
}

/// Why a file is no snapshot that can be shown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// It is no whole pickle.
    #[error(transparent)]
    Pickle(#[from] PickleError),
    /// It is a pickle of something else.
    #[error(
        "this is not a memory snapshot: its root is {found}, expected a dict with `segments` and `device_traces`, or a list of segments"
    )]
    NotASnapshot {
        /// What the root is.
        found: String,
    },
    /// It is text, but not JSON of a snapshot.
    #[error("this is JSON, but could not be read at line {line}, column {column}: {reason}")]
    Json {
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// What the JSON reader says.
        reason: String,
    },
    /// A gzip stream that breaks off or fails its check sum.
    #[error("the gzip stream is damaged after {at} decompressed bytes: {reason}")]
    Gzip {
        /// Bytes decompressed before.
        at: u64,
        /// What the decompressor says.
        reason: String,
    },
    /// An HTML page that holds no snapshot.
    #[error(
        "this HTML page holds no snapshot: no base64 data of `trace_plot` or `segment_plot` (PyTorch 2.1 or later) was found in {bytes} bytes"
    )]
    Html {
        /// Its size.
        bytes: u64,
    },
    /// Base64 inside an HTML page that is none.
    #[error("the snapshot inside this HTML page is not valid base64, at offset {at}")]
    Base64 {
        /// Where.
        at: u64,
    },
    /// A container that is known, and not read.
    #[error("{what}")]
    Refused {
        /// What it is, and what to do.
        what: &'static str,
    },
    /// A first byte that begins nothing known.
    #[error(
        "this is no snapshot: it starts with {found}, expected a pickle, a gzip of one, `trace_plot` HTML or JSON"
    )]
    Unknown {
        /// The first bytes.
        found: String,
    },
}

impl LoadError {
    /// What the reader can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Pickle(PickleError::Empty | PickleError::UnexpectedEnd { .. }) => Some(
                "The process may have ended while it wrote the file, or a copy broke off. Take the snapshot again.",
            ),
            Self::Pickle(_) => {
                Some("Copy the file again; if that does not help, take the snapshot again.")
            }
            Self::NotASnapshot { .. } | Self::Unknown { .. } => {
                Some("Snapshots are written by torch.cuda.memory._dump_snapshot(\"rank0.pickle\").")
            }
            Self::Json { .. }
            | Self::Gzip { .. }
            | Self::Html { .. }
            | Self::Base64 { .. }
            | Self::Refused { .. } => None,
        }
    }
}
