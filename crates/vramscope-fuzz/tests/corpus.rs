//! Everything that fuzzing has found, and every file of `test_data/`, on stable.

use std::fs;
use std::path::{Path, PathBuf};

fn files(folder: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders =
        vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test_data").join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of test_data") {
            let path = entry.expect("an entry").path();
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    assert!(!found.is_empty(), "nothing in {folder}");
    found
}

/// Each by itself, so that the name of the one that fails is told.
fn each(folder: &str, check: fn(&[u8])) {
    for path in files(folder) {
        let bytes = fs::read(&path).expect("a file of the corpus");
        let held = std::panic::catch_unwind(|| check(&bytes));
        assert!(held.is_ok(), "{}", path.display());
    }
}

#[test]
fn the_machine_reads_what_fuzzing_found() {
    each("fuzz/pickle", vramscope_fuzz::pickle);
}

#[test]
fn files_that_fuzzing_found_are_read_or_refused() {
    each("fuzz/load", vramscope_fuzz::load);
}

#[test]
fn made_files_hold_too() {
    for folder in ["edge", "scenarios", "damaged", "protocols"] {
        for path in files(folder) {
            let mut bytes = fs::read(&path).expect("a file");
            // The first byte is the size of the pieces.
            bytes.insert(0, 61);
            vramscope_fuzz::pickle(&bytes);
            vramscope_fuzz::load(&bytes);
        }
    }
}
