//! Claims: what vramscope says of a run, beyond what the trace shows.
//!
//! A claim is a room: one file, or one folder, has its detection, facts, words, place and proof.
//! Everything else is a table over the list of claims.

pub(crate) mod findings;
mod phrase;
mod precedence;
mod predicted;
mod replays;
mod scene;
pub(crate) mod words;

pub use phrase::{Phrase, Sentence, plain, site_filter};
pub use precedence::is_detail;
pub use predicted::{ChangeKind, Cost, Covers, Fix, Look, Predicted, Simulated};
pub use scene::{Exhibit, Parts, Scene, Spot, SpotWhat, Words};
