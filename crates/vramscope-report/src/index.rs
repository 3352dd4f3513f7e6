//! The index of a run: a card of each device of each file, as lines of JSON (docs/fleets.md).
//!
//! Call sites and call stacks are named by the first card that has them.

mod read;
mod write;

pub use read::Reader;
pub use write::Writer;

use crate::card::Card;
use serde::{Deserialize, Serialize};
use vramscope_units::{Bytes, Iteration};

/// The schema's name and version, in the first line.
pub const SCHEMA: &str = "vramscope.index/1";

/// The end of the name of an index.
pub const EXTENSION: &str = ".vramscope";

/// The error of a file without an allocation.
pub const NO_DEVICE: &str = "no memory was allocated on any device";

/// The card of a device, or the error of a file that has no card.
pub type Entry = Result<Box<Card>, FailedFile>;

/// A file without cards.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedFile {
    /// The file's path.
    pub path: String,
    /// Stored size of the file.
    pub bytes: Bytes,
    /// The rank in the path; null if there is none.
    pub rank: Option<u32>,
    /// The iteration in the path; null if there is none.
    pub iteration: Option<Iteration>,
    /// The reason.
    pub error: String,
}

impl FailedFile {
    /// A file that could not be read, or that has no allocation.
    pub fn new(path: &str, bytes: Bytes, error: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            bytes,
            rank: crate::rank_of(path),
            iteration: crate::iteration_of(path).map(Iteration),
            error: error.into(),
        }
    }

    /// The file as JSON in one line.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a file has text keys and integers only")
    }
}

/// Reads an entry outside of an index, as a dataset has it. A card that cannot be used is a file
/// without cards, and its error says where the fault is and what is expected there.
///
/// # Errors
/// The text names no file.
pub fn parse_entry(json: &[u8]) -> Result<Entry, String> {
    let why = match Card::parse(json) {
        Ok(card) => return Ok(Ok(Box::new(card))),
        Err(why) => why,
    };
    if let Ok(file) = serde_json::from_slice(json) {
        return Ok(Err(file));
    }
    let Ok(Place { path, bytes }) = serde_json::from_slice(json) else { return Err(why) };
    Ok(Err(FailedFile::new(&path, bytes, format!("its card is unusable: {why}"))))
}

/// The file of a card.
#[derive(Deserialize)]
struct Place {
    path: String,
    bytes: Bytes,
}
