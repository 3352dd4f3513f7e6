//! What all conclusions read of a device, each found once.

pub(crate) mod failure;
pub(crate) mod passes;
