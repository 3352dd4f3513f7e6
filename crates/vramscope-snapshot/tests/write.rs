//! Writing a snapshot as a pickle: reading it gives the same tables.

use std::path::{Path, PathBuf};
use vramscope_snapshot::{AsRecorded, NamedSnapshot, Reader, dump, write_pickle};

fn read(bytes: &[u8]) -> Vec<NamedSnapshot> {
    let mut reader = Reader::default();
    if reader.feed(bytes).is_err() {
        return Vec::new();
    }
    reader.finish().unwrap_or_default()
}

/// The files below a folder.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("it can be listed").path();
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

/// What a pickle keeps: all but warnings about the first file, and texts with source code.
fn kept(text: &str) -> String {
    // Text that is not Unicode becomes U+FFFD.
    let text = text.replace(r"\xed\xa0\x80", &r"\xef\xbf\xbd".repeat(3));
    let lines = text.lines().filter(|line| !line.starts_with("warning "));
    let without = |line: &str| {
        let mut line = line.to_owned();
        while let Some(at) = line.find("(fx_") {
            let end = line[at..].find("\")").expect("a note ends") + at + 2;
            line.replace_range(at..end, "");
        }
        line.find(" forward_frames ").map_or(line.clone(), |at| line[..at].to_owned())
    };
    let mut lines: Vec<String> = lines.map(without).collect();
    // Settings that the file has twice change their places.
    if let Some(first) = lines.iter().position(|line| line.starts_with("setting ")) {
        let count = lines.iter().filter(|line| line.starts_with("setting ")).count();
        lines[first..first + count].sort();
    }
    lines.join("\n")
}

#[test]
fn a_written_snapshot_has_the_tables_of_the_read_one() {
    let mut paths = Vec::new();
    for folder in ["scenarios", "edge", "containers", "protocols", "recorded", "odd", "npu"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test_data").join(folder);
        files(&folder, &mut paths);
    }
    paths.sort();
    let mut compared = 0;
    for path in paths {
        for NamedSnapshot { snapshot, name } in read(&std::fs::read(&path).expect("a file")) {
            // What is dropped while reading is a warning about the first file only.
            if snapshot.report.warnings().iter().any(|warning| warning.kind.changes_values()) {
                continue;
            }
            let mut pickle = Vec::new();
            write_pickle(&snapshot, &AsRecorded, &mut |piece| pickle.extend_from_slice(piece));
            let again = read(&pickle);
            assert_eq!(again.len(), 1, "{} {name}", path.display());
            let [before, after] = [&snapshot, &again[0].snapshot].map(|s| kept(&dump(s)));
            for (before, after) in before.lines().zip(after.lines()) {
                if before != after {
                    let same =
                        before.bytes().zip(after.bytes()).take_while(|(a, b)| a == b).count();
                    let from = same.saturating_sub(40);
                    panic!(
                        "{} {name}: {:.200} is not {:.200}",
                        path.display(),
                        &before[from..],
                        &after[from..]
                    );
                }
            }
            assert_eq!(before.lines().count(), after.lines().count(), "{}", path.display());
            compared += 1;
        }
    }
    assert!(compared > 60, "{compared}");
}
