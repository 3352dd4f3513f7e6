//! Invariants that hold for any input bytes: no panic, no endless loop, memory in proportion to the
//! input, and answers that agree with each other.
//!
//! These functions take bytes and panic when an invariant is broken:
//!
//! - [`pickle`] runs the pickle machine alone;
//! - [`reader`] reads a file into tables;
//! - [`load`] runs all that the page and the program do with a file;
//! - [`reference()`] compares the tables with a slow and simple reading of the same pickle;
//! - [`sidecar`] reads the file beside a snapshot;
//! - [`index`] reads the index of a run;
//! - [`profile`] writes a snapshot into a trace of `torch.profiler`;
//! - `dataset` reads a part of a Parquet dataset. Datasets need 64-bit pointers.
//!
//! cargo-fuzz calls them (see this crate's README.md). This crate's tests replay the corpus, and
//! the files of `test_data/`, on stable Rust.
//!
//! ```
//! vramscope_fuzz::pickle(b"\x02\x80\x04}\x94.");
//! vramscope_fuzz::reader(b"\x02\x80\x04}\x94.");
//! vramscope_fuzz::load(b"\x02\x80\x04}\x94.");
//! vramscope_fuzz::reference(b"\x02\x80\x04}\x94.");
//! vramscope_fuzz::sidecar(b"{\"version\": 1}");
//! ```

#[cfg(target_pointer_width = "64")]
mod dataset;
mod fixture;
mod index;
mod load;
mod pickle;
mod profile;
mod reader;
mod reference;
mod sidecar;

#[cfg(target_pointer_width = "64")]
pub use dataset::dataset;
pub use index::index;
pub use load::load;
pub use pickle::pickle;
pub use profile::profile;
pub use reader::reader;
pub use reference::{Compared, are_equal, compare_readings, generated_pickle, reference};
pub use sidecar::sidecar;

/// Splits the input: the first byte is the size of the pieces in which the rest arrives.
fn pieces(data: &[u8]) -> Option<(usize, &[u8])> {
    let (&size, bytes) = data.split_first()?;
    Some((usize::from(size).max(1), bytes))
}
