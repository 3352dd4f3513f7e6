//! Imports of the files of changes.

pub(super) use super::change::{
    Change, Compared, Cost, Features, Group, Line, Slows, came, came_or_went,
};
pub(super) use super::value::Value;
pub(super) use super::words::{ProofWords, part_of};
pub(super) use crate::category::Category;
pub(super) use crate::evidence::marks::Mark;
use crate::evidence::optimizer::WHAT;
pub(super) use crate::evidence::proof::{Enabled, Proof};
pub(super) use crate::evidence::{Evidence, Run};
pub(super) use crate::recipes::facts::{Facts, Pass};
pub(super) use crate::recipes::lives::{Life, Lives};
pub(super) use crate::recipes::{Applied, Declined};
pub(super) use crate::step_phases::StepPhase;

/// Fields that changes of the optimizer have alike.
pub(super) const OF_OPTIMIZER: Change =
    Change { group: Group::Optimizer, line: Line::Optimizer, what: WHAT, ..Change::PLAIN };
