//! Which dumps are of one process, and what is said of them.

use serde_json::{Value, json};
use vramscope_report::diagnose::{Diagnosis, Listing, MAX_FINDINGS, at_peak, diagnose};
use vramscope_report::diagnostic::{Answer, plain_text};
use vramscope_report::moments::{Evidence, When};
use vramscope_report::{FileReader, LoadedFile};

const MIB: u64 = 1 << 20;

/// A program that keeps 4 MiB of `train.py:7` in each step, and starts with ten blocks of 1 MiB.
struct Program {
    /// The time of the first event.
    start: u64,
    /// The address of the first block.
    base: u64,
    /// Whether events have a time.
    has_clock: bool,
}

impl Program {
    fn events(&self, steps: u64) -> Vec<Value> {
        let block = |i: u64, size: u64, line: u64| {
            let frames = json!([{"name": "main", "filename": "/job/train.py", "line": line}]);
            json!({"action": "alloc", "addr": self.base + (i << 32), "size": size, "stream": 0,
                "time_us": self.start + i * 10, "frames": frames})
        };
        let parameters = (0..10).map(|i| block(i, MIB, 3));
        parameters.chain((0..steps).map(|step| block(10 + step, 4 * MIB, 7))).collect()
    }

    /// The dump after some steps, with the events of the last `window` of them.
    fn dump(&self, steps: u64, window: usize) -> String {
        let events = self.events(steps);
        let segments: Vec<Value> = (events.iter())
            .map(|event| {
                json!({"device": 0, "address": event["addr"], "total_size": event["size"],
                    "stream": 0, "segment_type": "large", "allocated_size": event["size"],
                    "active_size": event["size"], "requested_size": event["size"],
                    "blocks": [{"address": event["addr"], "size": event["size"],
                        "requested_size": event["size"], "state": "active_allocated",
                        "frames": event["frames"]}]})
            })
            .collect();
        let mut events = events[events.len().saturating_sub(window)..].to_vec();
        if !self.has_clock {
            for event in &mut events {
                event.as_object_mut().expect("an event").remove("time_us");
            }
        }
        json!({"segments": segments, "device_traces": [events]}).to_string()
    }
}

const ONE: Program = Program { start: 1_000_000, base: 1 << 40, has_clock: true };

/// The diagnosis of files, each with its name.
fn diagnosis(files: &[(&str, String)]) -> Diagnosis {
    let load = |(name, text): &(&str, String)| -> LoadedFile {
        let mut reader = FileReader::new(name, text.len() as u64);
        reader.feed(text.as_bytes()).expect("JSON of a snapshot");
        reader.finish().expect("a whole snapshot")
    };
    let files: Vec<LoadedFile> = files.iter().map(load).collect();
    let devices = files.iter().map(|file| at_peak(file.target(0, 0).expect("device 0")));
    diagnose(devices.collect(), Listing::Main(MAX_FINDINGS), 0)
}

#[test]
fn dumps_that_share_events_are_moments_of_one_process() {
    // The names tell nothing.
    let found = diagnosis(&[
        ("b.json", ONE.dump(6, 100)),
        ("a.json", ONE.dump(30, 100)),
        ("c.json", ONE.dump(12, 100)),
    ]);
    let [process] = &found.processes[..] else { panic!("{:?}", found.processes) };
    assert_eq!((process.evidence, process.when), (Evidence::Events, When::Dump));
    let moments: Vec<_> = process.moments.iter().map(|of| (&*of.path, of.bytes / MIB)).collect();
    assert_eq!(moments, [("b.json", 34), ("c.json", 58), ("a.json", 130)]);
    assert_eq!(process.growth_bytes, 96 * MIB as i64);
    assert_eq!(process.sites.len(), 1, "{:?}", process.sites);
    assert_eq!(
        process.text,
        "3 moments of one process: 34.00 MiB, 58.00 MiB and 130.0 MiB in use when each was taken. \
         It grew by 96.00 MiB: 96.00 MiB at train.py:7 main."
    );
    let answer = plain_text(&Answer::new(&found, &["run".to_owned()], false), 100);
    assert!(answer.replace("\n  ", " ").contains(&process.text), "{answer}");
}

#[test]
fn dumps_of_a_series_are_of_one_process_if_its_blocks_stay() {
    for has_clock in [true, false] {
        let one = Program { has_clock, ..ONE };
        let (early, late) = (one.dump(6, 4), one.dump(20, 4));
        let found = diagnosis(&[
            ("run/snapshot_step20.json", late.clone()),
            ("run/snapshot_step6.json", early),
        ]);
        let [process] = &found.processes[..] else { panic!("{:?}", found.processes) };
        assert_eq!(process.evidence, Evidence::Blocks);
        assert_eq!(process.growth_bytes, 56 * MIB as i64, "{has_clock}");
        // Without the numbers of steps, equal addresses may be those of another run.
        let found = diagnosis(&[("run/a.json", one.dump(6, 4)), ("run/b.json", late)]);
        assert!(found.processes.is_empty(), "{:?}", found.processes);
    }
}

#[test]
fn other_processes_are_not_joined() {
    let later = Program { start: 9_000_000, ..ONE };
    let elsewhere = Program { base: 2 << 40, ..ONE };
    let cases = [
        ("a rerun at the same addresses", ["a.json", "b.json"], later.dump(30, 100)),
        ("other addresses at the same times", ["a.json", "b.json"], elsewhere.dump(30, 100)),
        ("a copy", ["a.json", "b.json"], ONE.dump(6, 100)),
        ("two ranks", ["rank0.json", "rank1.json"], ONE.dump(30, 100)),
        ("other addresses", ["step_1.json", "step_2.json"], elsewhere.dump(30, 4)),
    ];
    for (case, [first, second], text) in cases {
        let found = diagnosis(&[(first, ONE.dump(6, 100)), (second, text)]);
        assert!(found.processes.is_empty(), "{case}: {:?}", found.processes);
    }
}

/// Two programs that a generator started at one time and one address.
#[test]
fn dumps_whose_events_differ_within_one_window_are_of_two_processes() {
    let mut other: Value = serde_json::from_str(&ONE.dump(30, 100)).expect("JSON");
    let events = other["device_traces"][0].as_array_mut().expect("events");
    events[10..].iter_mut().for_each(|event| event["size"] = (8 * MIB).into());
    let found = diagnosis(&[("a.json", ONE.dump(30, 100)), ("b.json", other.to_string())]);
    assert!(found.processes.is_empty(), "{:?}", found.processes);
}

#[test]
fn dumps_of_each_rank_are_a_process() {
    let other = Program { start: 1_000_005, ..ONE };
    let files = [
        ("run/step_6/rank0.json", ONE.dump(6, 100)),
        ("run/step_9/rank0.json", ONE.dump(9, 100)),
        ("run/step_6/rank1.json", other.dump(6, 100)),
        ("run/step_9/rank1.json", other.dump(8, 100)),
    ];
    let found = diagnosis(&files);
    let texts: Vec<&str> = found.processes.iter().map(|process| &*process.text).collect();
    assert_eq!(texts.len(), 2, "{texts:?}");
    assert!(texts[0].starts_with("rank 0: 2 moments of one process: 34.00 MiB and 46.00 MiB"));
    assert!(texts[1].starts_with("rank 1: 2 moments of one process: 34.00 MiB and 42.00 MiB"));
}
