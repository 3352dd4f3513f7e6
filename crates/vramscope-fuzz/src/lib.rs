//! What must hold for any bytes at all: no panic, no endless loop, memory in proportion, and
//! answers that agree with each other.
//!
//! Two functions take bytes and panic when something does not hold: [`pickle`] for the machine
//! alone, [`load`] for everything that the page and the program do with a file. cargo-fuzz calls
//! them (README.md beside this crate says how); the corpus that it found is replayed on stable by
//! this crate's tests, with everything in `test_data/`.
//!
//! ```
//! vramscope_fuzz::pickle(b"\x02\x80\x04}\x94.");
//! vramscope_fuzz::load(b"\x02\x80\x04}\x94.");
//! ```

mod load;
mod pickle;

pub use load::load;
pub use pickle::pickle;

/// The first byte says in pieces of which size the rest arrives.
fn pieces(data: &[u8]) -> Option<(usize, &[u8])> {
    let (&size, bytes) = data.split_first()?;
    Some((usize::from(size).max(1), bytes))
}
