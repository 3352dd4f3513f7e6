//! The iterations of `vramscope ranks` over generated fleets, in which the growth is planted.

use serde_json::Value;
use std::fs::{self, File};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use vramscope_report::index::{Entry, Reader};
use vramscope_testgen::fleet::{LEAK_BYTES, LEAK_SITE, STEPS_PER_ITERATION};
use vramscope_testgen::{Fleet, FleetOptions, Generator, Options};

/// A folder with a fleet of 8 ranks in 2 stages.
struct Run {
    folder: PathBuf,
    fleet: Fleet,
}

impl Run {
    /// A fleet with this many ranks that leak.
    fn new(name: &str, leaking: u64, iterations: Range<u64>) -> Self {
        let folder =
            std::env::temp_dir().join(format!("vramscope-series-{name}-{}", std::process::id()));
        if folder.is_dir() {
            fs::remove_dir_all(&folder).expect("the folder can be emptied");
        }
        let options = FleetOptions { ranks: 8, stages: 2, skewed: 0, leaking, seed: 3 };
        let run = Self { folder, fleet: Fleet::new(options).expect("a fleet") };
        let options = Options { events: 2000, live: 300, seed: 1, frames: 8 };
        let generator = Generator::new(&options).expect("a generator");
        for iteration in iterations {
            for rank in 0..8 {
                let path = run.file(iteration, rank);
                fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
                let file = File::create(path).expect("a file");
                generator.write_of(&run.fleet, rank, iteration, file).expect("a snapshot");
            }
        }
        run
    }

    fn file(&self, iteration: u64, rank: u64) -> PathBuf {
        let iteration = iteration * STEPS_PER_ITERATION;
        let folder = self.folder.join(format!("fleet/iteration_{iteration}"));
        folder.join(format!("rank{rank}_memory_snapshot.pickle"))
    }

    /// Runs the program in the folder: printed paths are the same on every machine.
    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_vramscope"));
        command
            .env("COLUMNS", "100")
            .current_dir(&self.folder)
            .args(arguments)
            .output()
            .expect("the program runs")
    }

    fn text(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {errors}");
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    /// The only run in the answer.
    fn series(&self, path: &str) -> Value {
        let text = self.text(&["ranks", path, "--format", "json"]);
        let report: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(report["schema"], "vramscope.ranks/1");
        assert_eq!(list(&report["series"]).len(), 1, "{report}");
        report["series"][0].clone()
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.folder).expect("the folder can be removed");
    }
}

fn list(value: &Value) -> &Vec<Value> {
    value.as_array().expect("a list")
}

fn number(value: &Value) -> i64 {
    value.as_i64().expect("a number")
}

fn strings(value: &Value) -> Vec<&str> {
    list(value).iter().map(|text| text.as_str().expect("a text")).collect()
}

#[test]
fn the_planted_leak_is_the_only_drift() {
    let run = Run::new("leak", 1, 0..4);
    let series = run.series("fleet");
    assert_eq!(series["iterations"], serde_json::json!([0, 100, 200, 300]));
    assert_eq!(list(&series["ranks"]).len(), 8);
    let leaking = run.fleet.leaking()[0];
    let [drift] = &list(&series["drifts"])[..] else { panic!("one drift: {series}") };
    assert_eq!(drift["site"], LEAK_SITE);
    assert_eq!(drift["bytes_per_iteration"], LEAK_BYTES * STEPS_PER_ITERATION);
    assert_eq!(drift["bytes_per_step"], LEAK_BYTES);
    assert_eq!(list(&drift["ranks"]).len(), 1);
    assert_eq!(drift["ranks"][0]["rank"], leaking);
    assert_eq!(drift["ranks"][0]["snapshots"], 4);
    assert_eq!(drift["steady_ranks"], 7);
    let sentence = format!(
        "Rank {leaking} grows by 800.0 MiB per iteration at {LEAK_SITE}; the other 7 ranks do not."
    );
    assert!(strings(&series["text"]).iter().any(|text| text.starts_with(&sentence)), "{series}");
    assert!(drift["disproof"].as_str().is_some_and(|text| text.contains("would disprove it")));
    // That with the most growth is first. The others do not grow at all.
    let ranks = list(&series["ranks"]);
    assert_eq!(ranks[0]["rank"], leaking);
    for rank in &ranks[1..] {
        let growth: Vec<Value> = list(&rank["growth_bytes"]).clone();
        assert_eq!(growth, [Value::Null, 0.into(), 0.into(), 0.into()], "{rank}");
    }
    assert_eq!(series["blind_spots"], serde_json::json!([]));
}

#[test]
fn figures_are_those_of_each_snapshot() {
    let run = Run::new("figures", 1, 0..3);
    let series = run.series("fleet");
    for rank in list(&series["ranks"]) {
        for (place, iteration) in list(&series["iterations"]).iter().enumerate() {
            let iteration = iteration.as_u64().expect("a number") / STEPS_PER_ITERATION;
            let file = run.file(iteration, rank["rank"].as_u64().expect("a rank"));
            let file = file.to_str().expect("UTF-8");
            let summary = run.text(&["summary", file, "--format", "json"]);
            let summary: Value = serde_json::from_str(&summary).expect("JSON");
            let device = &summary["files"][0]["devices"][0];
            assert_eq!(rank["peak_bytes"][place], device["requested_bytes"]["peak"]);
            let steps = run.text(&["steps", file, "--format", "json"]);
            let steps: Value = serde_json::from_str(&steps).expect("JSON");
            let mut whole = list(&steps["steps"]).iter().filter(|step| step["whole"] == true);
            let last = whole.next_back().expect("a whole step");
            assert_eq!(rank["kept_bytes"][place], last["floor_bytes"]);
            assert_eq!(rank["reserved_bytes"][place], device["reserved_bytes"]["peak"]);
            let event = number(&device["reserved_bytes"]["peak_event"]).to_string();
            let segments = ["segments", file, "--at", &event, "--format", "json"];
            let segments: Value = serde_json::from_str(&run.text(&segments)).expect("JSON");
            let free = &segments["fragmentation"];
            assert_eq!(rank["free_bytes"][place], free["free"]);
            assert_eq!(rank["largest_free_bytes"][place], free["largest_free"]);
        }
    }
}

#[test]
fn an_index_gives_the_series_of_its_files() {
    let run = Run::new("index", 1, 0..3);
    let of_files = run.text(&["ranks", "fleet", "--format", "json"]);
    run.text(&["export", "--as", "index", "fleet", "-o", "run.vramscope"]);
    assert_eq!(run.text(&["ranks", "run.vramscope", "--format", "json"]), of_files);
    // Not compressed.
    let mut text = String::new();
    let file = File::open(run.folder.join("run.vramscope")).expect("an index");
    let mut unpacked = flate2::read::GzDecoder::new(file);
    std::io::Read::read_to_string(&mut unpacked, &mut text).expect("a text");
    fs::write(run.folder.join("plain.vramscope"), &text).expect("a file can be written");
    assert_eq!(run.text(&["ranks", "plain.vramscope", "--format", "json"]), of_files);
    // Cut off after a line, and no index at all.
    let end = text.trim_end().rfind('\n').expect("several lines");
    fs::write(run.folder.join("cut.vramscope"), &text[..=end]).expect("a file can be written");
    let cut = run.run(&["ranks", "cut.vramscope", "--format", "json"]);
    assert_eq!(cut.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&cut.stderr).contains("the index ends early"));
    fs::write(run.folder.join("other.vramscope"), "{}\n").expect("a file can be written");
    let other = run.run(&["ranks", "other.vramscope"]);
    assert_eq!(other.status.code(), Some(2));
    let said = String::from_utf8_lossy(&other.stderr).into_owned();
    assert!(said.contains("its schema is ``, expected vramscope.index/1"), "{said}");
}

#[test]
fn a_dataset_gives_the_index_and_the_series_of_its_files() {
    let run = Run::new("dataset", 1, 0..3);
    let folder = run.folder.canonicalize().expect("the folder is there");
    let folder = folder.join("fleet");
    let files = folder.to_str().expect("UTF-8");
    fs::write(folder.join("rank9.pickle"), b"\x80\x04}q").expect("a file can be written");
    let exported = run.run(&["export", "fleet", "--as", "parquet", "-o", "dataset"]);
    assert_eq!(exported.status.code(), Some(2), "a file is damaged");
    let of = |path: &str| {
        let output = run.run(&["ranks", path, "--format", "json"]);
        assert_eq!(output.status.code(), Some(2));
        let mut report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        // A dataset does not tell how many other files there were.
        report["skipped_files"] = 0.into();
        report
    };
    assert_eq!(of("dataset"), of(files));
    let cards = |name: &str| {
        let mut text = String::new();
        let file = File::open(run.folder.join(name)).expect("an index");
        let mut unpacked = flate2::read::GzDecoder::new(file);
        std::io::Read::read_to_string(&mut unpacked, &mut text).expect("a text");
        let mut reader = Reader::default();
        let entries = reader.feed(text.as_bytes()).expect("an index");
        assert!(reader.is_done());
        assert_eq!((entries.len(), reader.files()), (25, 25));
        let (mut cards, failed): (Vec<_>, Vec<_>) = entries.into_iter().partition(Result::is_ok);
        assert_eq!(failed.len(), 1);
        let of = |entry: Entry| entry.map(|card| (card.path.clone(), card.facts(reader.names())));
        let mut facts: Vec<_> = cards.drain(..).filter_map(|card| of(card).ok()).collect();
        facts.sort_by(|a, b| a.0.cmp(&b.0));
        facts
    };
    for (path, name) in [("dataset", "a.vramscope"), (files, "b.vramscope")] {
        let made = run.run(&["export", "--as", "index", path, "-o", name]);
        assert_eq!(made.status.code(), Some(2), "a file is damaged");
        assert!(String::from_utf8_lossy(&made.stderr).contains("rank9.pickle: "));
    }
    assert_eq!(cards("a.vramscope"), cards("b.vramscope"));
    let refused =
        run.run(&["export", "--as", "index", "dataset", "-o", "c.vramscope", "--rules", "none"]);
    assert_eq!(refused.status.code(), Some(64));
    assert!(!run.folder.join("c.vramscope").exists());
}

#[test]
fn without_a_leak_nothing_drifts() {
    let run = Run::new("none", 0, 0..4);
    let series = run.series("fleet");
    assert_eq!(series["drifts"], serde_json::json!([]));
    let text = strings(&series["text"]);
    assert_eq!(text.last(), Some(&"No call site grows steadily on any of 8 ranks."), "{text:?}");
    assert_eq!(text.len(), 2, "{text:?}");
}

#[test]
fn growth_on_every_rank_is_one_drift() {
    let run = Run::new("all", 8, 0..3);
    let series = run.series("fleet");
    let [drift] = &list(&series["drifts"])[..] else { panic!("one drift: {series}") };
    assert_eq!(list(&drift["ranks"]).len(), 8);
    let sentence =
        format!("All 8 ranks grow by a median of 800.0 MiB per iteration at {LEAK_SITE}.");
    assert!(drift["text"].as_str().is_some_and(|text| text.starts_with(&sentence)), "{drift}");
}

#[test]
fn two_iterations_are_too_few() {
    let run = Run::new("few", 1, 0..2);
    let series = run.series("fleet");
    assert_eq!(series["drifts"], serde_json::json!([]));
    assert_eq!(
        strings(&series["blind_spots"]),
        ["Drift: it needs 3 iterations of a rank, and there are 2."]
    );
    // The growth itself is there.
    let leaking = &list(&series["ranks"])[0];
    assert_eq!(leaking["rank"], run.fleet.leaking()[0]);
    assert!(number(&leaking["growth_bytes"][1]) > 700 << 20, "{leaking}");
    assert!(!strings(&series["text"]).iter().any(|text| text.contains("grow")), "{series}");
}

#[test]
fn what_is_missing_or_damaged_is_said() {
    let run = Run::new("missing", 1, 0..5);
    let leaking = run.fleet.leaking()[0];
    let other = (leaking + 1) % 8;
    // The leaking rank lacks one iteration, another rank has only two.
    fs::remove_file(run.file(2, leaking)).expect("the file is there");
    for iteration in [0, 1] {
        fs::remove_file(run.file(iteration, other)).expect("the file is there");
    }
    fs::write(run.file(4, other), b"\x80\x04}q").expect("a file can be written");
    // A second file of an iteration with fewer events, and a file without an iteration.
    let exit = run.folder.join("fleet/iteration_400_exit");
    fs::create_dir(&exit).expect("a folder can be made");
    let name = "rank0_memory_snapshot.json";
    fs::write(
        exit.join(name),
        r#"{"segments": [], "device_traces": [[{"action": "alloc",
        "addr": 4096, "size": 100, "frames": []}]]}"#,
    )
    .expect("a file can be written");
    fs::copy(run.file(0, 0), run.folder.join("fleet/rank0.pickle")).expect("a copy");
    let output = run.run(&["ranks", "fleet", "--format", "json"]);
    assert_eq!(output.status.code(), Some(2), "a file is damaged");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(
        (&report["files_without_iteration"], &report["failed_files"]),
        (&2.into(), &1.into())
    );
    let series = &report["series"][0];
    let [drift] = &list(&series["drifts"])[..] else { panic!("one drift: {series}") };
    // A window may have one step more than others.
    let planted = LEAK_BYTES * STEPS_PER_ITERATION;
    let found = drift["bytes_per_iteration"].as_u64().expect("a number");
    assert!(found.abs_diff(planted) < LEAK_BYTES, "{found}");
    assert_eq!(drift["bytes_per_step"], found / STEPS_PER_ITERATION);
    assert_eq!((&drift["steady_ranks"], &drift["unknown_ranks"]), (&6.into(), &1.into()));
    assert!(
        drift["text"].as_str().is_some_and(|text| text
            .contains("; 6 other ranks do not, of 1 more it is not known.")),
        "{drift}"
    );
    assert_eq!(
        strings(&series["blind_spots"])[0],
        format!("Drift on rank {other}: it needs 3 iterations of a rank.")
    );
    let row = list(&series["ranks"]).iter().find(|row| row["rank"] == leaking).expect("it");
    assert_eq!(row["peak_bytes"][2], Value::Null);
    assert!(number(&row["growth_bytes"][3]) > 1500 << 20, "of two iterations: {row}");
}

#[test]
fn the_text_and_the_schema() {
    let run = Run::new("text", 1, 0..3);
    assert_golden!("series__series_text", run.text(&["ranks", "fleet", "--limit", "3"]));
    let json = run.text(&["ranks", "fleet", "--limit", "2", "--format", "json"]);
    let schema: Value = serde_json::from_str(&run.text(&["schema", "ranks"])).expect("JSON");
    let validator = jsonschema::validator_for(&schema).expect("a JSON Schema");
    let answer: Value = serde_json::from_str(&json).expect("JSON");
    assert!(validator.is_valid(&answer), "{json}");
    assert_golden!("series__series_json", json);
    let none = run.text(&["ranks", path_of_one(&run.file(0, 0))]);
    assert!(none.contains("iteration_0  1 rank") || none.contains("fleet  1 rank"), "{none}");
}

fn path_of_one(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}
