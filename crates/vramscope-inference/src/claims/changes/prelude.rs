//! What the file of a change needs.

pub(super) use super::compare::{Compared, came, came_or_went};
pub(super) use super::edit_at::Line;
pub(super) use super::features::{Enabled, Features, Proof};
pub(super) use super::recipe::Value;
pub(super) use super::words::ProofWords;
pub(super) use super::{Change, Cost, Group};
pub(super) use crate::category::Category;
pub(super) use crate::evidence::Evidence;
pub(super) use crate::evidence::Run;
pub(super) use crate::evidence::marks::Mark;
use crate::evidence::optimizer::WHAT;
pub(super) use crate::recipes::facts::{Facts, Pass};
pub(super) use crate::recipes::lives::{Life, Lives};
pub(super) use crate::recipes::{Applied, Declined};
pub(super) use crate::step_phases::StepPhase;

/// Fields that changes of the optimizer have alike.
pub(super) const OF_OPTIMIZER: Change =
    Change { group: Group::Optimizer, line: Line::Optimizer, what: WHAT, ..Change::PLAIN };
