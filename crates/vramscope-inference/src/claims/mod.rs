//! Claims: what vramscope says of a run, beyond what the trace shows.
//!
//! A claim is a room: one file, or one folder, has its detection, facts, words, place and proof.
//! Everything else is a table over the list of claims.

#[cfg(test)]
mod cases;
pub(crate) mod changes;
pub(crate) mod findings;
mod found;
mod id;
mod kinds;
mod peak_parts;
mod phrase;
mod precedence;
mod predicted;
mod replays;
mod scene;
mod severity;
pub(crate) mod words;

pub use found::{Common, Found, Part};
pub use id::{FindingId, NoFindingId};
pub use kinds::{About, Basis, FindingKind};
pub use peak_parts::{PeakPart, is_known_part, known_parts, peak_parts};
pub use phrase::{Phrase, Sentence, at_or_with, lower_first, plain, site_filter};
pub use precedence::is_detail;
pub use predicted::{
    ChangeKind, Covers, EditRecord, Lasts, Lever, LeverBasis, LeverPlace, Look, Predicted,
    Simulated,
};
pub use scene::{Claim, Exhibit, Parts, Scene, Spot, SpotWhat, Words};
pub use severity::Severity;
