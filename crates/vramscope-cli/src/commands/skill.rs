//! `vramscope skill`: what an agent should know of this program.

use crate::Failure;
use std::io::{self, Write as _};

/// The skill, as the repository has it.
const SKILL: &str = include_str!("../../skills/vramscope/SKILL.md");

/// Prints the skill.
///
/// # Errors
/// The output cannot be written.
pub(crate) fn run() -> Result<(), Failure> {
    Ok(io::stdout().write_all(SKILL.as_bytes())?)
}
