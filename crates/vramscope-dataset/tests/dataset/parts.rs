//! Parts of a dataset: all or nothing, once, and the same however they are written.

use crate::common::{export, files, fleet, folder, load, rows, source, text};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use vramscope_dataset::{PartWriter, Plan, Source, check_dataset};
use vramscope_report::summary::{ErrorKind as FileError, ErrorSummary};

fn sources(paths: &[PathBuf]) -> Vec<Source> {
    paths.iter().map(|path| source(path)).collect()
}

/// The files of a dataset with their contents.
fn contents(dataset: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let name = |path: &PathBuf| path.strip_prefix(dataset).expect("below the dataset").to_owned();
    let read = |path: PathBuf| (name(&path), fs::read(&path).expect("a file"));
    files(dataset).into_iter().map(read).collect()
}

fn named(dataset: &Path, table: &str) -> Vec<PathBuf> {
    files(&dataset.join(table))
}

#[test]
fn threads_do_not_change_a_byte() {
    let paths = fleet(&folder("threads_fleet"));
    let [one, three] = [folder("threads_one"), folder("threads_three")];
    export(&one, sources(&paths), 1);
    export(&three, sources(&paths), 3);
    assert_eq!(named(&one, "ranks").len(), 2, "a part for each iteration");
    assert!(contents(&one) == contents(&three));
}

#[test]
fn an_interrupted_export_continues() {
    let paths = fleet(&folder("interrupted_fleet"));
    let dataset = folder("interrupted");
    export(&dataset, sources(&paths), 1);
    let whole = contents(&dataset);
    let again = export(&dataset, sources(&paths), 1);
    assert_eq!((again.parts.len(), again.present), (0, 8), "nothing to do");
    // The writer of the second part is killed while it renames its files.
    let ranks = named(&dataset, "ranks").remove(1);
    fs::rename(&ranks, ranks.with_extension("parquet.tmp")).expect("a file");
    let blocks = named(&dataset, "blocks").remove(1);
    fs::write(blocks.with_extension("parquet.tmp"), "PAR1").expect("a file");
    // Another one was killed before it had anything.
    let lost = ranks.with_file_name("part-0000000000000000.parquet.tmp");
    fs::write(&lost, "").expect("a file");
    let plan = Plan::new(&dataset, sources(&paths)).expect("a plan");
    assert_eq!((plan.parts.len(), plan.present), (1, 4));
    assert!(!lost.exists() && !blocks.exists());
    assert_eq!(files(&dataset).len(), whole.len() / 2, "nothing of the part is left");
    let again = export(&dataset, sources(&paths), 1);
    assert_eq!((again.parts.len(), again.present), (1, 4));
    assert!(contents(&dataset) == whole, "the same files as without the interruption");
}

#[test]
fn a_part_that_is_being_written_is_left_alone_and_shows_nothing() {
    let paths = fleet(&folder("written_fleet"));
    let dataset = folder("written");
    let plan = Plan::new(&dataset, sources(&paths[..4])).expect("a plan");
    let mut writer = PartWriter::begin(&dataset, &plan.parts[0]).expect("files").expect("a writer");
    let read = load(&paths[0]);
    writer.add(&plan.parts[0].sources[0], &read).expect("rows");
    let is_temporary = |path: &PathBuf| path.to_string_lossy().ends_with(".parquet.tmp");
    assert!(files(&dataset).iter().all(is_temporary));
    let other = Plan::new(&dataset, sources(&paths[..4])).expect("a plan");
    assert_eq!(other.parts, plan.parts);
    assert_eq!(files(&dataset).len(), 11, "the temporary files are still there");
    drop(writer);
    assert_eq!(files(&dataset), Vec::<PathBuf>::new(), "they go with the writer");
    export(&dataset, sources(&paths[..4]), 1);
    assert!(PartWriter::begin(&dataset, &plan.parts[0]).expect("files").is_none());
    assert_eq!(rows(&dataset, "ranks").len(), 4);
}

#[test]
fn changed_files_replace_their_rows() {
    let paths = fleet(&folder("changed_fleet"));
    let dataset = folder("changed");
    export(&dataset, sources(&paths), 1);
    let file = File::options().write(true).open(&paths[5]).expect("a file");
    let later = SystemTime::now() + Duration::from_mins(1);
    file.set_modified(later).expect("a time");
    // A part is written again as a whole.
    let error = Plan::new(&dataset, sources(&paths[5..6])).expect_err("the part has more files");
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert_eq!(rows(&dataset, "ranks").len(), 8);
    let plan = export(&dataset, sources(&paths), 1);
    assert_eq!((plan.parts.len(), plan.parts[0].sources.len(), plan.present), (1, 4, 4));
    let ranks = rows(&dataset, "ranks");
    assert_eq!(ranks.len(), 8);
    let changed = source(&paths[5]).modified_us.expect("a time");
    assert_eq!(ranks.iter().filter(|row| row["modified_us"] == changed).count(), 1);
}

#[test]
fn runs_of_one_name_are_told_apart() {
    let [a, b] = [folder("names/a/job"), folder("names/b/job")];
    let (in_a, in_b) = (fleet(&a), fleet(&b));
    let dataset = folder("names_dataset");
    export(&dataset, sources(&in_a), 1);
    let both: Vec<PathBuf> = in_a.iter().chain(&in_b).cloned().collect();
    let error = Plan::new(&dataset, sources(&both)).expect_err("two files of one name");
    assert!(error.to_string().contains("would both be iteration_0/rank0"), "{error}");
    let error = Plan::new(&dataset, sources(&in_b)).expect_err("another run of that name");
    assert!(error.to_string().contains("give this run another name"), "{error}");
    let second = in_b.iter().map(|path| {
        let metadata = path.metadata().expect("a file");
        Source::new(path, Some(&metadata), Some("job 2/b"))
    });
    let plan = export(&dataset, second.collect(), 1);
    assert_eq!(plan.parts.len(), 2);
    assert!(dataset.join("ranks/run=job%202%2Fb/iteration=100").is_dir());
    assert_eq!(rows(&dataset, "ranks").len(), 16);
}

#[test]
fn bad_files_have_rows_and_unreadable_ones_are_tried_again() {
    let data = folder("bad_fleet");
    let mut paths = fleet(&data)[..2].to_vec();
    let damaged = data.join("iteration_0/rank2_memory_snapshot.pickle");
    let bytes = fs::read(&damaged).expect("a snapshot");
    fs::write(&damaged, &bytes[..bytes.len() / 2]).expect("a file");
    paths.push(damaged);
    let dataset = folder("bad");
    export(&dataset, sources(&paths), 1);
    let ranks = rows(&dataset, "ranks");
    assert_eq!(ranks.len(), 3);
    let row = ranks.iter().find(|row| row["rank"] == 2).expect("a row");
    assert_eq!(text(row, "error_kind"), "damaged");
    assert!(row["device"].is_null());
    let plan = Plan::new(&dataset, sources(&paths)).expect("a plan");
    assert_eq!((plan.parts.len(), plan.present, plan.failed.len()), (0, 3, 1));
    assert_eq!(plan.failed[0].1, text(row, "error"));

    let dataset = folder("unreadable");
    let plan = Plan::new(&dataset, sources(&paths[..1])).expect("a plan");
    let mut writer = PartWriter::begin(&dataset, &plan.parts[0]).expect("files").expect("a writer");
    let error = ErrorSummary {
        message: "cannot read the file: the network is down".to_owned(),
        hint: None,
        kind: FileError::Unreadable,
        byte_offset: None,
    };
    writer.add(&plan.parts[0].sources[0], &Err(error)).expect("a row");
    writer.finish().expect("a part");
    assert_eq!(text(&rows(&dataset, "ranks")[0], "error_kind"), "unreadable");
    export(&dataset, sources(&paths[..1]), 1);
    let ranks = rows(&dataset, "ranks");
    assert!(ranks.len() == 1 && ranks[0]["error"].is_null());
}

#[test]
fn files_of_others_are_never_removed() {
    let paths = fleet(&folder("foreign_fleet"));
    let dataset = folder("foreign");
    let write = |path: PathBuf| {
        fs::create_dir_all(path.parent().expect("a folder")).expect("a new folder");
        fs::write(&path, "mine").expect("a file");
        path
    };
    let foreign = [
        "annotations/split=train/lang=en/a-00000-of-00001.parquet",
        "blocks/run=x/iteration=0/users.parquet",
        "blocks/run=x/iteration=0/users.parquet.tmp",
        // The name of a part alone proves nothing: the footer must name these tables.
        "blocks/run=x/iteration=0/part-0123456789abcdef.parquet",
    ]
    .map(|name| write(dataset.join(name)));
    let error = check_dataset(&dataset, false).expect_err("a folder of others");
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    check_dataset(&dataset, true).expect("told so");
    let plan = Plan::new(&dataset, sources(&paths)).expect("a plan");
    assert_eq!(plan.removed, Vec::<PathBuf>::new());
    export(&dataset, sources(&paths), 1);
    check_dataset(&dataset, false).expect("it is a dataset now");
    for path in foreign {
        assert_eq!(fs::read(&path).expect("it is still there"), b"mine", "{}", path.display());
    }
}

#[cfg(unix)]
#[test]
fn links_of_a_dataset_are_not_followed() {
    use std::os::unix::fs::symlink;
    let paths = fleet(&folder("linked_fleet"));
    let (dataset, elsewhere) = (folder("linked"), folder("linked_elsewhere"));
    export(&dataset, sources(&paths), 1);
    // A whole table of an interrupted export lies behind a link.
    let part = named(&dataset, "blocks").remove(0);
    let there = elsewhere.join("part-0123456789abcdef.parquet");
    fs::copy(&part, &there).expect("a file");
    fs::create_dir_all(dataset.join("blocks/run=y")).expect("a new folder");
    symlink(&elsewhere, dataset.join("blocks/run=y/iteration=0")).expect("a link");
    let plan = Plan::new(&dataset, sources(&paths)).expect("a plan");
    assert!(plan.removed.is_empty() && there.exists());
}
