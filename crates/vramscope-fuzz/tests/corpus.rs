//! Replays the fuzz corpus and the hand-made files of `test_data/` on stable Rust.

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

/// Runs `check` on each file of a folder, and names the file that fails.
fn replay(folder: &str, check: fn(&[u8])) {
    for path in files(folder) {
        let bytes = fs::read(&path).expect("a file of the corpus");
        let result = std::panic::catch_unwind(|| check(&bytes));
        assert!(result.is_ok(), "{}", path.display());
    }
}

#[test]
fn pickle_corpus_holds_invariants() {
    replay("fuzz/pickle", vramscope_fuzz::pickle);
}

#[test]
fn load_corpus_holds_invariants() {
    replay("fuzz/load", vramscope_fuzz::load);
    replay("fuzz/load", vramscope_fuzz::reader);
}

#[test]
fn hand_made_files_hold_invariants() {
    for folder in ["edge", "scenarios", "damaged", "protocols", "hostile", "odd"] {
        for path in files(folder) {
            let mut bytes = fs::read(&path).expect("a file");
            // The first byte is the size of the pieces.
            bytes.insert(0, 61);
            vramscope_fuzz::pickle(&bytes);
            vramscope_fuzz::reader(&bytes);
            vramscope_fuzz::load(&bytes);
        }
    }
}
