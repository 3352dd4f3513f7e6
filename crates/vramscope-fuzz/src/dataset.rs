//! Reads bytes as a part of a Parquet dataset.

use arrow_array::builder::{Int64Builder, StringBuilder};
use arrow_array::{ArrayRef, BinaryArray, Float64Array, Int32Array, NullArray, RecordBatch};
use parquet::arrow::ArrowWriter;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vramscope_dataset::{Cards, Plan, Source};
use vramscope_report::index::parse_entry;

/// Where the part lies in the dataset.
const PART: &str = "ranks/run=r/iteration=0/part-0123456789abcdef.parquet";

/// Inputs that begin with a byte from this on are choices of columns, not bytes of a file.
const CHOICES: u8 = 128;

/// The columns that an export compares, and the card.
const COLUMNS: [&str; 7] =
    ["file", "path", "file_bytes", "modified_us", "error", "error_kind", "card"];

/// Reads the bytes as the table `ranks` of a part: as an export does that adds files to the
/// dataset, and as `index` does, which reads the cards. Inputs from `CHOICES` on are written as
/// a Parquet file first.
///
/// # Panics
/// When an invariant is broken.
pub fn dataset(data: &[u8]) {
    let bytes = match data.split_first() {
        Some((&first, choices)) if first >= CHOICES => written(choices),
        _ => data.to_vec(),
    };
    let folder = Folder::new();
    let path = folder.0.join(PART);
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder can be made");
    fs::write(&path, bytes).expect("a file can be written");
    match Cards::open(&folder.0).expect("the folder can be listed") {
        Some(cards) => {
            let count = cards.count();
            let mut read = 0;
            let all = cards.read(|json| {
                read += 1;
                if let Err(why) = parse_entry(json.as_bytes()) {
                    assert!(!why.is_empty(), "a failure has a reason");
                }
                Ok(())
            });
            if let (Ok(count), Ok(())) = (count, all) {
                // A file has a card for each of its devices.
                assert!(count <= read, "{count} files of {read} cards");
            }
        }
        None => panic!("the file is there"),
    }
    let sources = || vec![Source::new(Path::new("/r/rank0.pickle"), None, Some("r"))];
    let plan = Plan::new(&folder.0, sources());
    if let Ok(plan) = plan {
        let missing: usize = plan.parts.iter().map(|part| part.sources.len()).sum();
        assert_eq!(plan.present + missing, 1, "the file is there, or will be written");
        assert_eq!(path.exists(), plan.removed.is_empty());
    } else {
        assert!(path.exists(), "what cannot be read stays");
    }
}

/// A Parquet file of chosen columns.
fn written(choices: &[u8]) -> Vec<u8> {
    let mut choices = choices.iter().copied();
    let mut next = || usize::from(choices.next().unwrap_or(0));
    let rows = next() % 8;
    let mut columns: Vec<(&str, ArrayRef)> = Vec::new();
    for name in COLUMNS {
        let is_text = !name.ends_with("bytes") && !name.ends_with("us");
        let array: ArrayRef = match next() % 16 {
            0 => continue,
            1 => Arc::new(NullArray::new(rows)),
            2 => Arc::new(Int32Array::from(vec![7; rows])),
            3 => Arc::new(Float64Array::from(vec![f64::NAN; rows])),
            4 => Arc::new(BinaryArray::from(vec![&b"\xff"[..]; rows])),
            kind if is_text != (kind == 5) => {
                let mut texts = StringBuilder::new();
                for _ in 0..rows {
                    texts.append_option(match next() % 8 {
                        0 => None,
                        1 => Some("rank0.pickle"),
                        2 => Some("/r/rank0.pickle"),
                        3 => Some("/r/rank0.pickle#name"),
                        4 => Some("unreadable"),
                        5 => Some(r#"{"path": "/r/rank0.pickle", "bytes": 3, "rank": 0}"#),
                        6 => Some("#"),
                        _ => Some(""),
                    });
                }
                Arc::new(texts.finish())
            }
            _ => {
                let mut numbers = Int64Builder::new();
                for _ in 0..rows {
                    numbers.append_option(match next() % 5 {
                        0 => None,
                        1 => Some(0),
                        2 => Some(-1),
                        3 => Some(i64::MIN),
                        _ => Some(100),
                    });
                }
                Arc::new(numbers.finish())
            }
        };
        columns.push((name, array));
    }
    let columns = columns.into_iter().map(|(name, array)| (name, array, true));
    // No column is no table.
    let Ok(batch) = RecordBatch::try_from_iter_with_nullable(columns) else { return Vec::new() };
    let mut file = Vec::new();
    let mut writer =
        ArrowWriter::try_new(&mut file, batch.schema(), None).expect("columns of known types");
    writer.write(&batch).expect("memory takes all bytes");
    writer.close().expect("memory takes all bytes");
    file
}

/// A folder in memory, if the system has one.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let memory = Path::new("/dev/shm");
        let root = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let thread = format!("{:?}", std::thread::current().id());
        let number: String = thread.chars().filter(char::is_ascii_digit).collect();
        let folder = root.join(format!("vramscope-fuzz-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder can be made");
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}
