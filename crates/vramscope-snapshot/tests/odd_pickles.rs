//! Pickles of other writers than CPython's. `scripts/odd_pickles.py` writes them, and checks that
//! Python reads the object of the plain file.

use std::path::Path;
use vramscope_snapshot::{LoadError, Reader, Snapshot, dump};

fn read(bytes: &[u8], chunk: usize) -> Result<Snapshot, LoadError> {
    let mut reader = Reader::default();
    for piece in bytes.chunks(chunk) {
        reader.feed(piece)?;
    }
    Ok(reader.finish()?.remove(0).snapshot)
}

/// The tables, without warnings, which have offsets.
fn tables(snapshot: &Snapshot) -> String {
    let all = dump(snapshot);
    all.lines().filter(|line| !line.starts_with("warning ")).collect::<Vec<_>>().join("\n")
}

#[test]
fn odd_forms_mean_the_same_or_are_errors() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test_data");
    let mut counts = [0; 3];
    for entry in std::fs::read_dir(data.join("odd")).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let [folder, plain, _] = name.split("__").collect::<Vec<_>>()[..] else { panic!("{name}") };
        let plain = std::fs::read(data.join(folder).join(format!("{plain}.pickle")));
        let plain = read(&plain.expect("the plain file"), usize::MAX).expect("a snapshot");
        let odd = std::fs::read(&path).expect("a file");
        for chunk in [usize::MAX, 7] {
            let outcome = match read(&odd, chunk) {
                // Python reads it, so it is not damaged.
                Err(error) => {
                    assert!(error.to_string().contains("after it was used"), "{name}: {error}");
                    0
                }
                Ok(odd) if odd.report.changes_values() && !plain.report.changes_values() => 1,
                Ok(odd) => {
                    assert!(
                        tables(&odd) == tables(&plain),
                        "{name}\n{}\n{}",
                        tables(&plain),
                        tables(&odd)
                    );
                    2
                }
            };
            counts[outcome] += 1;
        }
    }
    let [errors, changed, equal] = counts;
    // Lists and dicts of a few frames or keys in several batches are errors.
    assert!(equal > errors && errors > 0, "{errors} errors, {changed} changed, {equal} equal");
}
