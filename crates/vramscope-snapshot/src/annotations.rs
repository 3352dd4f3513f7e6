//! `external_annotations`: ranges that the program named.

use vramscope_pickle::StrId;
use vramscope_units::Micros;

/// One end of a named range (`record_function`, `ProfilerStep#N`, `Optimizer.step#...`). There is
/// no thread id: ends pair by name, as a stack, and one of them may be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Annotation {
    /// The range's name.
    pub name: StrId,
    /// Which end.
    pub stage: Stage,
    /// The thread's current device, not the work's.
    pub device: i64,
    /// Since the Unix epoch.
    pub time: Option<Micros>,
}

/// Which end of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// `START`.
    Start,
    /// `END`.
    End,
}
