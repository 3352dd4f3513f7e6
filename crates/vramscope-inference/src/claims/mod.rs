//! Claims: what the program concludes and says. Each has one file, with its words.

pub(crate) mod changes;
