//! All integration tests, in one binary: they share how files are read.

mod excerpt;
mod host;
mod late;
mod model;
mod npu;
mod pools;
mod replay;
mod scenarios;

use std::path::{Path, PathBuf};
use vramscope_snapshot::{Reader, Snapshot};

/// The folder with the files of tests.
fn test_data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test_data")
}

/// Reads a snapshot: a pickle or JSON, also compressed.
fn parse(bytes: &[u8]) -> Snapshot {
    let mut reader = Reader::default();
    reader.feed(bytes).expect("a snapshot");
    reader.finish().expect("a snapshot").remove(0).snapshot
}

/// The bytes of a file, whose path may be relative to `test_data`.
fn bytes_of(path: impl AsRef<Path>) -> Vec<u8> {
    let path = test_data().join(path);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The snapshot in a file, whose path may be relative to `test_data`.
fn load(path: impl AsRef<Path>) -> Snapshot {
    parse(&bytes_of(path))
}
