//! Invariants that hold for any input bytes: no panic, no endless loop, memory in proportion to the
//! input, and answers that agree with each other.
//!
//! Four functions take bytes and panic when an invariant is broken. [`pickle`] runs the pickle
//! machine alone. [`reader`] reads a file into tables. [`load`] runs all that the page and the
//! program do with a file. [`reference()`] compares the tables with a slow and simple reading of
//! the same pickle. cargo-fuzz calls them (see this crate's README.md). This crate's tests replay
//! the corpus, and the files of `test_data/`, on stable Rust.
//!
//! ```
//! vramscope_fuzz::pickle(b"\x02\x80\x04}\x94.");
//! vramscope_fuzz::reader(b"\x02\x80\x04}\x94.");
//! vramscope_fuzz::load(b"\x02\x80\x04}\x94.");
//! vramscope_fuzz::reference(b"\x02\x80\x04}\x94.");
//! ```

mod load;
mod pickle;
mod reader;
mod reference;

pub use load::load;
pub use pickle::pickle;
pub use reader::reader;
pub use reference::{Compared, are_equal, compare_readings, generated_pickle, reference};

/// Splits the input: the first byte is the size of the pieces in which the rest arrives.
fn pieces(data: &[u8]) -> Option<(usize, &[u8])> {
    let (&size, bytes) = data.split_first()?;
    Some((usize::from(size).max(1), bytes))
}
