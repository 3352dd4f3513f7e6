//! What claims read of a recording, each question answered in one file.

pub(crate) mod attention;
pub(crate) mod autocast;
pub(crate) mod checkpoint;
pub(crate) mod evaluation;
pub(crate) mod gradients;
pub(crate) mod marks;
pub(crate) mod optimizer;
mod run;
pub(crate) mod stacks;
pub(crate) mod traits;

pub(crate) use run::Run;
