//! Replays the fuzz corpus and the hand-made files of `test_data/` on stable Rust.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use vramscope_fuzz::{Compared, are_equal, compare_readings, generated_pickle};

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
fn files_beside_snapshots_hold_invariants() {
    replay("fuzz/sidecar", vramscope_fuzz::sidecar);
    for path in files("beside") {
        if path.to_string_lossy().ends_with(".vramscope.json") {
            vramscope_fuzz::sidecar(&fs::read(path).expect("a file"));
        }
    }
}

#[test]
fn indexes_hold_invariants() {
    replay("fuzz/index", vramscope_fuzz::index);
}

#[test]
fn profiles_hold_invariants() {
    replay("fuzz/profile", vramscope_fuzz::profile);
}

#[cfg(target_pointer_width = "64")]
#[test]
fn datasets_hold_invariants() {
    replay("fuzz/dataset", vramscope_fuzz::dataset);
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

#[test]
fn reference_corpus_holds_invariants() {
    replay("fuzz/reference", vramscope_fuzz::reference);
    replay("fuzz/load", vramscope_fuzz::reference);
}

/// Generated pickles, and with the variable `VRAMSCOPE_LONG`.
const GENERATED: u32 = 1000;
const GENERATED_LONG: u32 = 500_000;

/// Inputs of the generator, from mostly plain choices to any.
#[test]
fn generated_pickles_are_read_as_the_reference_reads_them() {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as u8
    };
    let mut counts = [0u32; 4];
    let is_long = std::env::var_os("VRAMSCOPE_LONG").is_some();
    let count = if is_long { GENERATED_LONG } else { GENERATED };
    for _ in 0..count {
        let (length, odd) = (usize::from(random()) * 4, random());
        let mut input = vec![255, random()];
        for _ in 0..length {
            input.push(if random() < odd { random() } else { 0 });
        }
        let pickle = generated_pickle(&input).expect("an input of the generator");
        counts[match compare_readings(&pickle, 61) {
            Compared::Equal => 0,
            Compared::Estimate => 1,
            Compared::Refused(_) => 2,
            Compared::Unread(_) => 3,
        }] += 1;
    }
    assert!(counts[0] > count / 2 && counts[2] > count / 100, "{counts:?}");
}

/// The pickle in a file, unpacked. Empty for other files.
fn pickle_of(path: &Path) -> Vec<u8> {
    let bytes = fs::read(path).expect("a file");
    let mut unpacked = Vec::new();
    match path.to_string_lossy() {
        name if name.ends_with(".pickle") => bytes,
        name if name.ends_with(".pickle.gz") => {
            let mut gzip = flate2::read::MultiGzDecoder::new(&bytes[..]);
            gzip.read_to_end(&mut unpacked).expect("a gzip file");
            unpacked
        }
        _ => unpacked,
    }
}

/// The reference reads what the recorders wrote, and agrees with the reader. The files of `what_if`
/// have the forms of the others.
#[test]
fn recorded_files_are_read_as_the_reference_reads_them() {
    let folders = ["recorded", "truth", "sites", "findings", "protocols", "scenarios"];
    let mut equal = 0;
    for path in folders.into_iter().flat_map(files) {
        let bytes = pickle_of(&path);
        if bytes.is_empty() {
            continue;
        }
        assert_eq!(compare_readings(&bytes, 1 << 16), Compared::Equal, "{}", path.display());
        equal += 1;
    }
    assert!(equal > 60, "{equal} files");
}

/// Odd forms of a file are equal to it for the reference, as they are for Python. The reader gives
/// equal tables, or refuses what changes late, or says that nothing is exact.
#[test]
fn odd_forms_are_read_as_the_reference_reads_them() {
    let mut counts = [0; 3];
    for path in files("odd") {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let [folder, plain, _] = name.split("__").collect::<Vec<_>>()[..] else { panic!("{name}") };
        let plain = path.with_file_name(format!("../{folder}/{plain}.pickle"));
        let (odd, plain) = (pickle_of(&path), fs::read(plain).expect("the plain file"));
        assert_eq!(are_equal(&odd, &plain), Some(true), "{name}");
        counts[match compare_readings(&odd, 61) {
            Compared::Equal => 0,
            Compared::Estimate => 1,
            Compared::Refused(message) => {
                assert!(message.contains("after it was used"), "{name}: {message}");
                2
            }
            Compared::Unread(reason) => panic!("{name}: {reason}"),
        }] += 1;
    }
    assert!(counts[0] > counts[1] + counts[2], "{counts:?}");
}

/// Edge cases are equal, or estimates that say so.
#[test]
fn edge_cases_are_read_as_the_reference_reads_them() {
    let mut counts = [0; 4];
    for path in ["edge", "damaged", "hostile"].into_iter().flat_map(files) {
        counts[match compare_readings(&pickle_of(&path), 7) {
            Compared::Equal => 0,
            Compared::Estimate => 1,
            Compared::Refused(_) => 2,
            Compared::Unread(_) => 3,
        }] += 1;
    }
    assert!(counts[0] > 30 && counts[0] > counts[3], "{counts:?}");
}
