//! Files to convert, and rows of datasets.

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float32Type, Int32Type, Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;
use vramscope_dataset::{PartWriter, Plan, SQL_NAME, Source};
use vramscope_report::summary::ErrorSummary;
use vramscope_report::{FileReader, LoadedFile};
use vramscope_testgen::{Fleet, FleetOptions, Generator, Options};

/// An empty folder of this test.
pub(crate) fn folder(test: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("dataset").join(test);
    if folder.exists() {
        fs::remove_dir_all(&folder).expect("the folder of an earlier run");
    }
    fs::create_dir_all(&folder).expect("a new folder");
    folder
}

/// The files below a folder, sorted. The file that marks a dataset is left out.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut rest = vec![folder.to_owned()];
    while let Some(next) = rest.pop() {
        for entry in fs::read_dir(next).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                rest.push(path);
            } else if !path.ends_with(SQL_NAME) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

pub(crate) fn source(path: &Path) -> Source {
    Source::new(path, path.metadata().ok().as_ref(), None)
}

pub(crate) fn load(path: &Path) -> Result<LoadedFile, ErrorSummary> {
    let bytes = fs::read(path).expect("a file");
    let mut reader = FileReader::new(&path.to_string_lossy(), bytes.len() as u64);
    reader.feed(&bytes)?;
    reader.finish()
}

/// Writes what a dataset lacks of these files.
pub(crate) fn export(dataset: &Path, sources: Vec<Source>, threads: usize) -> Plan {
    let plan = Plan::new(dataset, sources).expect("a plan");
    let queue = Mutex::new(plan.parts.iter());
    let work = || {
        while let Some(part) = queue.lock().ok().and_then(|mut queue| queue.next()) {
            let writer = PartWriter::begin(dataset, part).expect("files can be created");
            let mut writer = writer.expect("no other process writes the part");
            for source in &part.sources {
                writer.add(source, &load(&source.path)).expect("rows can be written");
            }
            writer.finish().expect("the part can be finished");
        }
    };
    thread::scope(|scope| {
        (1..threads).for_each(|_| drop(scope.spawn(work)));
        work();
    });
    plan
}

/// Snapshots of 4 ranks in 2 iterations, of which one rank holds more than the others.
pub(crate) fn fleet(folder: &Path) -> Vec<PathBuf> {
    let options = FleetOptions { ranks: 4, stages: 2, skewed: 1, leaking: 1, seed: 1 };
    let fleet = Fleet::new(options).expect("a fleet");
    let options = Options { events: 2000, live: 200, ..Options::default() };
    let generator = Generator::new(&options).expect("a generator");
    let mut paths = Vec::new();
    for iteration in [0, 100] {
        let folder = folder.join(format!("iteration_{iteration}"));
        fs::create_dir_all(&folder).expect("a new folder");
        for rank in 0..4 {
            let path = folder.join(format!("rank{rank}_memory_snapshot.pickle"));
            let file = File::create(&path).expect("a new file");
            generator.write_of(&fleet, rank, iteration, file).expect("a snapshot");
            paths.push(path);
        }
    }
    paths
}

/// The rows of a table, with the partition that they lie in.
pub(crate) fn rows(dataset: &Path, table: &str) -> Vec<Map<String, Value>> {
    let mut rows = Vec::new();
    for path in files(&dataset.join(table)) {
        let plain = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let file = File::open(&path).expect("a file of the dataset");
        let reader = ParquetRecordBatchReaderBuilder::try_new_with_options(file, plain);
        for batch in reader.expect("Parquet").build().expect("a reader") {
            let batch = batch.expect("rows");
            for at in 0..batch.num_rows() {
                let schema = batch.schema();
                let names = schema.fields().iter().map(|field| field.name().clone());
                let values = batch.columns().iter().map(|column| value(column, at));
                let mut row: Map<String, Value> = names.zip(values).collect();
                for part in path.strip_prefix(dataset).expect("below the dataset") {
                    let part = part.to_string_lossy();
                    if let Some((key, of)) = part.split_once('=') {
                        row.insert(key.to_owned(), of.into());
                    }
                }
                rows.push(row);
            }
        }
    }
    rows
}

fn value(column: &ArrayRef, at: usize) -> Value {
    if column.is_null(at) {
        return Value::Null;
    }
    match column.data_type() {
        DataType::Int32 => column.as_primitive::<Int32Type>().value(at).into(),
        DataType::Int64 => column.as_primitive::<Int64Type>().value(at).into(),
        DataType::UInt64 => column.as_primitive::<UInt64Type>().value(at).into(),
        DataType::Float32 => json!(column.as_primitive::<Float32Type>().value(at)),
        DataType::Boolean => column.as_boolean().value(at).into(),
        DataType::Utf8 => column.as_string::<i32>().value(at).into(),
        DataType::List(_) => {
            let list = column.as_list::<i32>().value(at);
            (0..list.len()).map(|at| value(&list, at)).collect()
        }
        other => panic!("{other} is no type of a column"),
    }
}

/// The sum of a number over rows, by a key.
pub(crate) fn sums<K: Ord>(
    rows: &[Map<String, Value>],
    key: impl Fn(&Map<String, Value>) -> K,
    number: &str,
) -> BTreeMap<K, i64> {
    let mut sums = BTreeMap::new();
    for row in rows {
        *sums.entry(key(row)).or_default() += row[number].as_i64().expect("a number");
    }
    sums
}

pub(crate) fn text<'a>(row: &'a Map<String, Value>, column: &str) -> &'a str {
    row[column].as_str().expect("a text")
}
