//! `vramscope export --as index`: the file, its cards, what could not be read.

use crate::common::{folder, vramscope};
use flate2::read::GzDecoder;
use serde_json::Value;
use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::Output;

fn index(paths: &[&str], output: &Path) -> Output {
    let output = output.to_str().expect("UTF-8");
    vramscope(&["export", "--as", "index", "-o", output], paths)
}

/// The lines of an index.
pub(crate) fn lines(path: &Path) -> Vec<Value> {
    let mut text = String::new();
    let file = fs::File::open(path).expect("an index");
    GzDecoder::new(file).read_to_string(&mut text).expect("a gzip of text");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn an_index_has_a_card_of_every_rank() {
    let folder = folder("index/ranks");
    let path = folder.join("run.vramscope");
    let made = index(&["findings/ranks_fsdp2_skew"], &path);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let said = String::from_utf8(made.stdout).expect("UTF-8");
    assert!(said.contains("run.vramscope: 4 cards of 4 files, "), "{said}");
    let lines = lines(&path);
    assert_eq!(lines[0]["schema"], "vramscope.index/1");
    assert_eq!(lines[0]["title"], "ranks_fsdp2_skew");
    assert_eq!(lines[0]["files"], 4);
    assert_eq!(lines[5]["done"], true);
    assert_eq!(lines.len(), 6);
    let matrix = vramscope(&["ranks", "--format", "json"], &["findings/ranks_fsdp2_skew"]);
    let matrix: Value = serde_json::from_slice(&matrix.stdout).expect("JSON");
    for column in matrix["runs"][0]["columns"].as_array().expect("a list") {
        let rank = column["rank"].as_u64().expect("a number");
        let card = &lines[1 + rank as usize];
        assert_eq!(card["rank"], column["rank"]);
        assert_eq!(card["path"], column["path"]);
        assert_eq!(card["bands"][0]["peak"], column["peak_bytes"]);
    }
    // Nothing but the index is left.
    assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 1);
    fs::remove_dir_all(&folder).expect("the folder can be removed");
}

#[test]
fn a_file_that_cannot_be_read_is_a_line_with_its_error() {
    let folder = folder("index/bad");
    let path = folder.join("run.vramscope");
    let made = index(&["run_folder", "damaged/truncated.pickle", "missing.pickle"], &path);
    assert_eq!(made.status.code(), Some(2), "{}", String::from_utf8_lossy(&made.stderr));
    let lines = lines(&path);
    let cards = &lines[1..lines.len() - 1];
    let errors: Vec<bool> = cards.iter().map(|card| card["error"].is_string()).collect();
    assert_eq!(errors, [false, true, true], "{cards:?}");
    assert!(cards[2]["error"].as_str().expect("a text").starts_with("cannot read the file"));
    assert_eq!(cards[1]["device"], Value::Null);
    let last = &lines[lines.len() - 1];
    let skipped = last["skipped_files"].as_u64().expect("a number");
    assert_eq!(lines[0]["files"].as_u64(), Some(skipped + 3));
    assert!(skipped > 0);
    fs::remove_dir_all(&folder).expect("the folder can be removed");
}

#[test]
fn cards_have_the_iteration_of_their_folder() {
    let folder = folder("index/iterations");
    let snapshot = crate::common::test_data("recorded/t26/linear_seed_python.pickle");
    for iteration in ["iteration_0", "iteration_100"] {
        let run = folder.join("gpt").join(iteration);
        fs::create_dir_all(&run).expect("a folder can be made");
        fs::copy(&snapshot, run.join("rank3_memory_snapshot.pickle")).expect("a copy");
    }
    let path = folder.join("run.vramscope");
    let run = folder.join("gpt");
    assert!(index(&[run.to_str().expect("UTF-8")], &path).status.success());
    let lines = lines(&path);
    assert_eq!(lines[0]["title"], "gpt");
    let cards = &lines[1..3];
    assert_eq!([&cards[0]["iteration"], &cards[1]["iteration"]], [0, 100]);
    assert_eq!([&cards[0]["rank"], &cards[1]["rank"]], [3, 3]);
    // Both have the same call sites, which the first one names.
    assert!(cards[0]["names"]["sites"].as_array().is_some_and(|sites| !sites.is_empty()));
    assert_eq!(cards[1]["names"]["sites"].as_array().map(Vec::len), Some(0));
    fs::remove_dir_all(&folder).expect("the folder can be removed");
}

#[test]
fn nothing_is_written_without_a_card_or_a_place() {
    let folder = folder("index/none");
    let path = folder.join("run.vramscope");
    fs::write(folder.join("model.json"), "{}").expect("a file can be written");
    let none = index(&[folder.to_str().expect("UTF-8")], &path);
    assert_eq!(none.status.code(), Some(2));
    assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 1);
    let nowhere = index(&["findings/ranks_fsdp2_skew"], &folder.join("no/run.vramscope"));
    assert_eq!(nowhere.status.code(), Some(2));
    let said = String::from_utf8_lossy(&nowhere.stderr).into_owned();
    assert!(said.contains("cannot write"), "{said}");
    fs::remove_dir_all(&folder).expect("the folder can be removed");
}
