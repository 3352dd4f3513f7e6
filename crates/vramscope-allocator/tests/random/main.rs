//! Random programs.

mod invariants;
mod oracle;
mod steps;
