//! All integration tests, in one binary: linking one takes less time than linking many.

mod devices;
mod explain;
mod finding_text;
mod holders;
mod index;
mod like_passes;
mod lists;
mod modules;
mod moments;
mod optimizations;
mod oracle;
mod part;
mod phases;
mod recipes;
mod redact;
mod refused;
mod serving;
mod shapes;
mod sites;
mod verdict;
