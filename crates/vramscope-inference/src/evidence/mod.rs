//! What claims read: questions about a program, each answered in one place.

pub(crate) mod ranks;
