//! Zip archives that readers could understand differently. `scripts/odd_archives.py` writes them,
//! with what PyTorch and Python read.

use serde_json::Value;
use std::path::Path;
use vramscope_snapshot::{LoadError, Reader};

/// The size in the snapshot's only event.
fn read(bytes: &[u8], chunk: usize) -> Result<u64, LoadError> {
    let mut reader = Reader::default();
    for piece in bytes.chunks(chunk) {
        reader.feed(piece)?;
    }
    let named = reader.finish()?.remove(0);
    Ok(named.snapshot.events.size(0).0)
}

#[test]
fn archives_are_read_as_by_pytorch_and_zipfile_or_refused() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test_data/archives");
    let table = std::fs::read(folder.join("expected.json")).expect("a table");
    let table: Value = serde_json::from_slice(&table).expect("a table");
    let mut differ = 0;
    for (name, expected) in table.as_object().expect("a table") {
        let bytes = std::fs::read(folder.join(format!("{name}.pt"))).expect("an archive");
        let found = read(&bytes, usize::MAX);
        assert_eq!(read(&bytes, 1), found, "{name}: chunks change the result");
        assert_eq!(found.is_ok(), expected["is_plain"] == true, "{name}: {found:?}");
        match found {
            Ok(size) => {
                assert_eq!(size, expected["zipfile"], "{name}");
                // PyTorch also wants a version.
                assert!(name == "without_version" || expected["torch"] == size, "{name}");
            }
            Err(error) => {
                differ += usize::from(expected["torch"] != expected["zipfile"]);
                if let Some(entry) = expected["entry"].as_str() {
                    let entry = format!("the entry `{entry}` ");
                    assert!(error.to_string().contains(&entry), "{name}: {error}");
                }
            }
        }
    }
    assert!(differ > 30, "only {differ} archives are read differently");
}
