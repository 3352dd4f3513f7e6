//! `external_annotations`: ranges named by the program.

use vramscope_pickle::StrId;
use vramscope_units::Micros;

/// One end of a named range (`record_function`, `ProfilerStep#N`, `Optimizer.step#...`).
/// Annotations have no thread id: ends are paired by name, as a stack. One end of a range may be
/// missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Annotation {
    /// The range's name.
    pub name: StrId,
    /// Start or end.
    pub stage: Stage,
    /// The current device of the thread, which need not be the device of its work.
    pub device: i64,
    /// The time since the Unix epoch.
    pub time: Option<Micros>,
}

/// The end of a range that an [`Annotation`] marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// `START`.
    Start,
    /// `END`.
    End,
}
